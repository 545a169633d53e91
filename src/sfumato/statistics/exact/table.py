"""What all tables of true numbers ask and publish alike, whatever they count.

What is withheld, rounded or merged is decided for all of them together, in `sfumato.statistics.exact.decide`.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.cells import Cells, Dimension
from sfumato.errors import ReleaseError, naming
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data
from sfumato.frame.levels import TOTAL
from sfumato.keys import Secret
from sfumato.measures.attacks import JointFindings
from sfumato.method import Method
from sfumato.privacy.guarantee import Guarantee
from sfumato.statistic import EXACT_NOTE, Busy, Statistic
from sfumato.statistics.exact.merged import all_levels, merged_question
from sfumato.statistics.exact.question import ExactQuestion, with_total
from sfumato.statistics.fitting import epsilon_of, know_each_measure, refuse_unknown_codes
from sfumato.statistics.published import Columns, PublishedTable
from sfumato.statistics.registry import build
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class ExactTable(PublishedTable):
    """True numbers by some attributes, of which some are withheld, rounded or merged."""

    question: ExactQuestion
    method: Any

    @classmethod
    def method_name(cls, table: Table, data: Data) -> str:  # noqa: ARG003 (other kinds look at it)
        """The method as it is used."""
        return table.protect.method

    @classmethod
    def ask(cls, table: Table, data: Any, codelists: Mapping[str, Codelist]) -> ExactQuestion:
        """What a table asks, codes checked."""
        cls._refuse(table, data)
        codes = {name: codelist.codes for name, codelist in codelists.items()}
        refuse_unknown_codes(table, codes)
        with naming(f"table '{table.name}'"):
            method = cls._build(table)
        by = [
            Dimension(
                name=name,
                codes=table.kept(name, codes[name]),
                public=data.is_public(name) or not cls.tells_public(),
            )
            for name in table.by
        ]
        period = data.time
        for one in by:
            if TOTAL in one.codes:  # without `totals` too: differences of two tables have totals
                raise ReleaseError(
                    f"table '{table.name}', '{one.name}'",
                    expected=f"attributes without a code '{TOTAL}', which names the sum of the others",
                    found="one with it",
                    do="rename the code",
                )
        if method.merges:
            return merged_question(
                table,
                data,
                codelists,
                method,
                units=cls.units_of(data, method),
                holdings=cls.holdings_of(table, data, method),
                public=cls.tells_public(),
            )
        return ExactQuestion(
            by=tuple(with_total(one) if table.totals and one.name != period else one for one in by),
            measure=table.measure,
            margins=table.totals,
            period=period,
            where=table.where,
            units=cls.units_of(data, method),
            holdings=cls.holdings_of(table, data, method),
            top=method.top,
            codes={name: codes[name] for name in dict.fromkeys((*table.by, *table.where))},
            of_workplaces=all(data.is_public(name) for name in table.where),
            contributors=method.has_rules,
        )

    @classmethod
    def tells_public(cls) -> bool:
        """Whether dimensions are told apart by whether everybody knows them of workplaces."""
        return True

    @classmethod
    def _refuse(cls, table: Table, data: Any) -> None:
        """Refuse statistics that are no counts or totals, and measures that may be below 0."""
        if table.statistic not in ("count", "total") or (table.count is not None and table.count != cls.counted()):
            raise ReleaseError(
                f"table '{table.name}', method '{table.protect.method}'",
                expected=f'count = "{cls.counted()}", or a total of a measure: true numbers that add up',
                found=f"{table.statistic}" + (f' = "{table.count}"' if table.count else ""),
                do="count, add up, or choose another method",
            )
        if unused := [key for key in ("composite", "nonnegative", "parts") if getattr(table, key)]:
            raise ReleaseError(
                f"table '{table.name}', {unused[0]}",
                expected="nothing of it: true numbers of all tables are decided together",
                found=f"`{unused[0]}`",
                do="leave it out",
            )
        know_each_measure(table, data)
        for name in table.measures:
            measure = data.measures[name]
            if measure.minimum < 0 or measure.outside == "clip":
                raise ReleaseError(
                    f"table '{table.name}', measure '{name}'",
                    expected="values from 0 on, as they are: rules compare contributions with their sum",
                    found="a minimum below 0" if measure.minimum < 0 else 'outside = "clip"',
                    do="make two measures of it, what is above 0 and what is below without its sign; or leave `outside`"
                    " out",
                )

    @classmethod
    @abstractmethod
    def counted(cls) -> str:
        """What is counted, as a release file writes it."""

    @classmethod
    @abstractmethod
    def units_of(cls, data: Any, method: Any) -> tuple[str, ...]:
        """The names of the levels of units that rules look at."""

    @classmethod
    def holdings_of(cls, table: Table, data: Any, method: Any) -> tuple[str, ...]:  # noqa: ARG003 (jobs have some)
        """The attributes that name larger units."""
        if method.levels:
            raise ReleaseError(
                f"table '{table.name}', levels",
                expected="larger units of records under [data.records]",
                found="`levels` of the method, which are for jobs",
                do='write levels = ["enterprise"] under [data.records], and leave it out here',
            )
        return ()

    @classmethod
    def build_method(
        cls,
        table: Table,
        data: Data,  # noqa: ARG003 (other kinds look at it)
        question: ExactQuestion,  # noqa: ARG003
        *,
        alpha: Fraction | None,  # noqa: ARG003 (there is no budget)
    ) -> Method:
        """The method that protects a table, with its rules."""
        method: Method = cls._build(table)
        return method

    @classmethod
    def _build(cls, table: Table) -> Any:
        name = table.protect.method
        epsilon_of(table, name)
        return build(name, options=table.protect.options)

    @classmethod
    def countable(cls, data: Data, question: ExactQuestion) -> frozenset[str]:  # noqa: ARG003 (other kinds look)
        """What the engine can supply: everything that is needed."""
        return frozenset({"contributions"})

    @classmethod
    def why_whole(cls, table: Table, question: ExactQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return "true numbers: what is withheld of a cell follows from all cells of all tables"

    @property
    def why_not_reconciled(self) -> str | None:
        """True numbers add up by themselves."""
        return "its values are true numbers, which agree where they are published"

    def may_have_cost(self, guarantee: Guarantee | None) -> bool:
        """Any without a bound: the answer is the same whatever its statement says."""
        return guarantee is not None and guarantee.bound is None

    def statistic_words(self) -> list[Any]:
        """What is added up, beside the dimensions."""
        return ["exact", self.table.statistic, self.question.measure, self.question.margins]

    def _note(self, data: str) -> str:
        """That these are true numbers, which later ones have to be linked to."""
        return super()._note(data) if self.key else f"{EXACT_NOTE} {self.method.name}"

    def noted(self, data: str) -> str:  # noqa: ARG002 (other kinds look at them)
        """The same beside a key."""
        return f"{EXACT_NOTE}-{self.method.name}"

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are rows; merged codes have none."""
        return not self.question.merged and super().lists_structural_zeros

    # Decided together.

    @classmethod
    def decided_by(cls) -> type[Statistic]:
        """All tables of true numbers are decided together."""
        return cls

    def answer(self, counted: Any, secret: Secret | None) -> Cells:
        """The answer of a table that no other is linked to."""
        return self.answer_together({self.name: (self, counted)}, {}, secret)[self.name]

    @classmethod
    def answer_together(
        cls,
        batch: Mapping[str, tuple[Self, Any]],
        known: Mapping[str, tuple[Self, Any, Any]],
        secret: Secret | None,
        busy: Busy = lambda _words, _share: None,
        last: Mapping[str, Any] = MappingProxyType({}),
    ) -> Mapping[str, Cells]:
        """What is published of all tables: proved over all of them, and over those that were published before."""
        from sfumato.statistics.exact.decide import decide

        return decide(batch, known, secret, busy, last).answers

    @classmethod
    def foreseen(
        cls,
        batch: Mapping[str, tuple[Self, Any]],
        known: Mapping[str, tuple[Self, Any, Any]],
        secret: Secret | None,
        busy: Busy,
        last: Mapping[str, Any],
    ) -> dict[str, Any]:
        """How many cells are sensitive and would be withheld, and how much of the total: confidential."""
        from sfumato.statistics.exact.decide import decide

        return dict(decide(batch, known, secret, busy, last).foreseen(batch))

    # What is published.

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (never made to agree)
        """The values, and which of them are withheld."""
        columns: Columns = {n: answer[n] for n in ("value", "status", "low", "high") if n in answer.columns}
        if "status" in columns and "high" in columns:
            columns["high"] = _ends(answer)
        return columns

    def aligned(self, counted: Any, answer: Cells) -> tuple[Cells, Cells]:
        """The true cells without what only attacks on permanent factors look at, and the answer."""
        if self.question.merged:  # true values, of the groups that were found
            columns = {"count": answer["value"]}
            return replace(counted, dimensions=answer.dimensions, positions=answer.positions, columns=columns), answer
        columns = {name: column for name, column in counted.columns.items() if name != "establishments"}
        return replace(counted, columns=columns), answer

    @classmethod
    def together(
        cls,
        batch: Mapping[str, tuple[Self, Cells, Cells]],
        earlier: Mapping[str, tuple[Self, Cells, Cells]],
        change: float,
        releases: Sequence[Collection[str]] = (),
    ) -> JointFindings | None:
        """Why cells are sensitive, and what readers of several kinds work out of all tables together."""
        from sfumato.statistics.exact.assess import findings

        return findings(batch, earlier, change, releases)

    def told(self, counted: Any, answer: Cells) -> tuple[Floats, Floats]:
        """What its answer tells of every cell, as the least and the greatest it can be, in parts."""
        exact, parts = counted["exact"].astype(np.float64), counted["parts"].astype(np.float64)
        if "low" in answer.columns:
            ends = _ends(answer)
            low = answer["low"] * parts - parts // 2
            high = np.where(np.isnan(ends), np.inf, ends) * parts + (parts - 1) // 2
            # A number is taken to be known to the last part.
            number = answer["status"] == 0 if "status" in answer.columns else answer["low"] == ends
            return np.where(number, exact, low), np.where(number, exact, high)
        shown = answer["status"] == 0
        return np.where(shown, exact, -np.inf), np.where(shown, exact, np.inf)

    @property
    def kind_of_cells(self) -> str:
        """Where codes are merged, cells are those of groups: of finer ones nothing is told."""
        return "cells of groups of codes" if self.question.merged else "cells"

    @property
    def attacked(self) -> str:
        """Whom attacks are on, in the words of the report."""
        return "cells that are sensitive"

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`, which they have."""
        return counted

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:  # noqa: ARG002
        """The interval as it is published, where there is one."""
        if "low" not in answer.columns:
            return None
        high = _ends(answer)
        return answer["low"].astype(np.float64), np.where(np.isnan(high), np.inf, high)

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"error", "rse", "convergence_ratio", *self.method.lacking})

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        told: dict[str, str] = self.method.column_texts
        return super().column_texts(plan) | told

    def design(self) -> dict[str, Any]:
        """The rules, in words and as numbers, at which levels of unit, and what was proved of them."""
        method = self.method
        words = {"sensitive": method.rules(), "units": list(self.question.units)}
        return {"rules": {**words, **method.limits(), **method.facts()}}

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:
        """With totals every attribute has one code more, and where codes are merged those of all levels."""
        if self.question.merged:
            return {name: all_levels(name, some, codelists) for name, some in self.question.merged.items()}
        if not self.table.totals:
            return {}
        return {
            name: Codelist(codes=(*codelists[name].codes, TOTAL), labels=(*codelists[name].labels, "Total"))
            for name in self.table.by
            if name != self.question.period
        }

    def expected_error(self) -> tuple[str, str]:
        """Values that are published are true, or rounded."""
        words: tuple[str, str] = self.method.error_words
        return words

    def found(self, answer: Any) -> dict[str, Any]:
        """Of rounding, how far numbers are from the truth."""
        return dict(self.method.found(answer))

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:
        """What was done to its numbers, and what was proved of it."""
        found = "" if answer is None else self.method.found_in_words(answer)
        units = self.question.units
        levels = f" A unit is one {', at another level one '.join(units)}." if units and self.method.has_rules else ""
        return f"{self.what_was_done()}{self.has_none(plan)}{found}{levels} {self.method.proved}"

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read values that are published."""
        return list(dict.fromkeys(table.method.reading for table in plan.of_kind(cls)))

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is not proved."""
        tables = plan.of_kind(cls)
        filtered = [one.name for one in tables if one.question.where and one.method.has_rules]
        several = (
            f"Tables {', '.join(f'`{name}`' for name in filtered)} are about some of the data each. What a wider table "
            "has beyond one of them is judged like a published table; what several of them tell by adding and "
            "subtracting more than two tables is not."
        )
        noisy = [one.name for one in plan.tables if one.decided_by() is None]
        beside = (
            f"Tables {', '.join(f'`{name}`' for name in noisy)} have noise and are no part of any proof. Where they "
            "are about the same cells as a true number that is withheld, rounded or merged, or about parts of them, "
            "they are estimates of it, as near as their own errors say."
        )
        return [
            *dict.fromkeys(one.method.not_proved for one in tables),
            *([several] if len(filtered) > 1 else []),
            *([beside] if noisy else []),
        ]


def _ends(answer: Cells) -> Floats:
    """The upper ends of ranges; NaN where there is none."""
    found: Floats = np.where(answer["high"] < 0, np.nan, answer["high"].astype(np.float64))
    return found
