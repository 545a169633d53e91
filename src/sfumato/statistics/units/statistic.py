"""Totals of the values of units, such as the turnover of businesses, with a guarantee for each unit.

docs/methods/formal-records.md says who is protected, and proves it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.data import OpenRecords
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.measures.attacks import JointFindings
from sfumato.method import CONFIDENCE, Method, PublishedFigures
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.meaning import Comparison, about_tables, named_tables
from sfumato.privacy.units import unit_meaning, units_in_short, value_comparisons
from sfumato.statistics.fitting import (
    epsilon_of,
    know_measures,
    methods_for_records,
    named_method,
    need_one_period,
    refuse_unknown_codes,
)
from sfumato.statistics.published import Columns, PublishedTable
from sfumato.statistics.registry import build
from sfumato.statistics.table import FOR_UNITS, Table
from sfumato.statistics.units.attacks import attack_differences, attack_units
from sfumato.statistics.units.fitting import floor_of, refuse_unfit
from sfumato.statistics.units.pareto import NEGATIVES, POSITIVE, SignedPareto, UnitPareto
from sfumato.statistics.units.question import NEGATIVE, SUM, UnitQuestion
from sfumato.statistics.units.tabulate import refuse_unsuitable, unit_totals
from sfumato.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class UnitTotals(PublishedTable):
    """A measure of records added up by public attributes, the values of every unit hidden."""

    question: UnitQuestion
    method: Any

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return not data.of_jobs and table.statistic == "total" and table.protect.method in FOR_UNITS

    @classmethod
    def method_name(cls, table: Table, data: Microdata) -> str:  # noqa: ARG003 (other kinds look at it)
        """The method as it is used."""
        return named_method(table, methods_for_records(table))

    @classmethod
    def ask(cls, table: Table, data: Microdata, codelists: Mapping[str, Codelist]) -> UnitQuestion:
        """What a table asks of records, given the codes of the attributes."""
        know_measures(table, data)
        codes = {name: codelist.codes for name, codelist in codelists.items()}
        refuse_unknown_codes(table, codes)
        need_one_period(table, data)
        refuse_unfit(table, data)
        name, of = cast(str, table.measure), data.records
        by = tuple(Dimension(name=one, codes=table.kept(one, codes[one]), public=True) for one in table.by)
        return UnitQuestion(
            by=by,
            measure=name,
            measured=data.measured(name),
            floor=floor_of(table, data),
            money=data.measures[name].unit or name,
            unit=data.units[-1],
            unit_name=of.units[-1],
            several=bool(of.levels),
            apart=bool(of.levels) or of.period in table.by,
            signed=data.measures[name].minimum < 0,
            weight=of.weight,
            public=of.public,
            where=table.where,
        )

    @classmethod
    def build_method(cls, table: Table, data: Microdata, question: UnitQuestion, *, alpha: Fraction | None) -> Method:
        """The method that protects a table, with its parameters; `alpha` is the budget's."""
        name = cls.method_name(table, data)
        sums = 2 if question.signed and question.several else 1
        built = build(
            name,
            alpha=alpha if table.protect.alpha is None else table.protect.alpha,
            epsilon=epsilon_of(table, name),
            options=table.protect.options,
            of_table={
                "floor": question.floor,
                "sums": sums,
                "weighted": question.weight is not None,
                "several": question.several and question.weight is not None,
            },
        )
        return cast(Method, SignedPareto(of=cast(UnitPareto, built))) if question.signed else built

    @classmethod
    def countable(cls, data: Microdata, question: UnitQuestion) -> frozenset[str]:  # noqa: ARG003
        """The columns that the engine can supply."""
        return frozenset({"count", "largest"})

    @classmethod
    def why_whole(cls, table: Table, question: UnitQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return f"a {table.statistic} of records: units are added up for all cells together"

    @cached_property
    def guarantee(self) -> EmployerEmployee:
        """About values of units up to the floor, and within a factor."""
        caps = ((self.question.measured, self.question.floor),)
        return replace(cast(EmployerEmployee, self.method.guarantee()), caps=caps)

    @property
    def noise_of(self) -> UnitPareto:
        """The noise of one sum."""
        return cast(UnitPareto, self.method.of if self.question.signed else self.method)

    @property
    def protects_units(self) -> bool:
        """Whether units are larger than records."""
        return self.question.several

    @property
    def chooses_records(self) -> bool:
        """All records count."""
        return False

    def statistic_words(self) -> list[Any]:
        """What is added up, whose values are hidden and up to what, as digests have it."""
        asked = self.question
        return [*super().statistic_words(), "units", asked.measure, asked.floor, asked.unit_name, asked.signed]

    # From records to the answer.

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenRecords) -> None:
        """Refuse units in more cells than declared, and amounts beyond 64 bits."""
        for name, one in batch.items():
            method = one.noise_of
            parts = max(method.alpha.numerator, method.alpha.denominator)
            refuse_unsuitable(data.tables, name, one.question, most_cells=method.most_cells, parts=parts)

    @classmethod
    def scanned_as(cls) -> "type[UnitTotals]":
        """Totals and means are made in one way."""
        return UnitTotals

    @classmethod
    def tabulate(
        cls,
        batch: Mapping[str, Self],
        data: OpenRecords,
        secret: Secret | None,  # noqa: ARG003 (there is no key)
    ) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table, with what the largest unit has of each."""
        for name, one in batch.items():
            yield name, unit_totals(data.tables, one.question)

    # What is published.

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """Totals with their error figures; where values may be below 0, with both sums."""
        columns = super().columns_of(answer, shown)
        return columns | {name: answer[name] for name in (POSITIVE, NEGATIVES) if name in answer.columns}

    def shown_figures(self, answer: Cells, shown: Cells) -> PublishedFigures:  # noqa: ARG002 (totals never agree)
        """The error figures of the totals, which do not contradict them."""
        figures: PublishedFigures = self.method.published_figures(answer, CONFIDENCE)
        if not self.question.signed:
            return figures.beside(answer["value"])
        y = answer["value"].astype(np.float64)
        away = np.fmax(np.fmax(figures.low - y, y - figures.high), 0.0)
        return PublishedFigures(
            error=np.maximum(figures.error, away),
            low=np.minimum(figures.low, y),
            high=np.maximum(figures.high, y),
        )

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:
        """The interval as it is published; an end that is not told is at no end."""
        figures = self.shown_figures(answer, shown)
        low, high = figures.low, figures.high
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: the total, whatever its sign."""
        return self.showing(counted, counted["count"] - counted[f"{NEGATIVE}count"] if self.question.signed else None)

    @staticmethod
    def showing(counted: Cells, values: Integers | None) -> Cells:
        """True cells with other values as `count`, the sums that noise is added to kept beside them."""
        sums = {f"{SUM}{name}": counted[name] for name in ("count", "largest")}
        others = {name: column for name, column in counted.columns.items() if name != "largest"}
        shown = {} if values is None else {"count": values}
        return replace(counted, columns=others | shown | sums)

    def expected_errors(self, counted: Cells) -> Floats:
        """How far its values are off on average: confidential."""
        sums = {name.removeprefix(SUM): column for name, column in counted.columns.items() if name.startswith(SUM)}
        return cast(Floats, self.method.expected_error(replace(counted, columns={**counted.columns, **sums})))

    @property
    def one_job(self) -> int:
        """What a unit adds to a cell in a step at least."""
        return self.question.floor

    @property
    def attacked(self) -> str:
        """Whom attacks are on, in the words of the report."""
        return "units with a cell to themselves"

    def attacks(self, counted: Cells, answer: Cells, secret: Secret | None) -> tuple[Any, ...]:  # noqa: ARG002
        """How near a reader comes to the largest unit of each cell, beside what the guarantee allows."""
        return attack_units(self.question, self.noise_of, counted, answer)

    @classmethod
    def together(
        cls,
        batch: Mapping[str, tuple[Self, Cells, Cells]],
        earlier: Mapping[str, tuple[Self, Cells, Cells]],  # noqa: ARG003 (a guarantee bounds each period)
        change: float,  # noqa: ARG003
        releases: Sequence[Collection[str]] = (),  # noqa: ARG003
    ) -> JointFindings | None:
        """What readers find by subtracting tables of a measure that differ by some units."""
        found = attack_differences(
            {name: (one.question, one.noise_of, true, answer) for name, (one, true, answer) in batch.items()}
        )
        return JointFindings(attacks=tuple(found)) if found else None

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "status", "convergence_ratio", "establishments"})

    @property
    def words_for_money(self) -> str:
        """What follows an amount: the unit of the measure, or what it is of where that has none."""
        money = self.question.money
        return money if money != self.question.measure else f"of {money}"

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        told = super().column_texts(plan) | {
            "value": "protected total",
            "error": "upper estimate of the error: its mean absolute value if one unit had all of the total; of a "
            "negative value at least the value without its sign",
            "low": f"least true total that the published one is consistent with, {CONFIDENCE:.0%} confidence",
            "high": f"greatest true total that the published one is consistent with, {CONFIDENCE:.0%} confidence; "
            "empty: no limit",
        }
        if not self.question.signed:
            return told
        return told | {
            "value": f"protected total: `{POSITIVE}` less `{NEGATIVES}`",
            "error": "upper estimate of the error: its mean absolute value if one unit had all that is above 0, and "
            "one all that is below",
            "low": f"{told['low']} at least; empty: no limit",
            "high": f"greatest true total that it is consistent with, {CONFIDENCE:.0%} confidence at least; empty: no "
            "limit",
            POSITIVE: "protected sum of the values above 0",
            NEGATIVES: "protected sum of the values below 0, without their sign",
        }

    def _measure(self, data: Data) -> dict[str, Any]:
        """The measure, with the amount up to which a unit is hidden whole, and whose values are hidden."""
        found, asked = super()._measure(data), self.question
        return {"measure": {**found["measure"], "floor": asked.floor, "unit": asked.unit_name}}

    def design(self) -> dict[str, Any]:
        """What noise its cells have, so that sums of them have errors too, and in how many of them a unit may be."""
        sums = {} if self.question.signed or self.question.weight else self.noise_facts([one.name for one in self.by])
        return {**sums, "most_cells": self.noise_of.most_cells}

    @property
    def counted_in(self) -> str:
        """What its errors are numbers of, in short."""
        return self.question.money

    @property
    def large_from(self) -> tuple[int, str] | None:
        """Nothing: the words for that are about establishments."""
        return None

    def typical(self) -> str:
        """How far a total is typically off, in words."""
        error, money = self.method.planned_error(), self.words_for_money
        share = f"{100 * (error.share or 0):.3g} %"
        if not self.question.weight:
            return (
                f"Where no unit of a cell has more than {error.floor_size:,} {money} the noise is typically "
                f"{error.in_a_small_cell} {money}; otherwise it is typically {share} of the cell's largest unit."
            )
        small = f"{error.in_a_small_cell} {money} times the largest weight of the cell"
        if self.question.several:
            return f"The noise is typically {small}, and {share} of what its largest unit adds to it on top of that."
        return (
            f"Where no unit adds more to a cell than {error.floor_size:,} {money} times the largest weight in it, the "
            f"noise is typically {small}; otherwise it is typically {share} of what the largest unit adds."
        )

    # Words for the statement.

    def what_was_done(self) -> str:
        """The table and its method, in words."""
        has_unit = self.question.money != self.question.measure
        done = self.method.done.format(number="total", unit=self.question.money if has_unit else "numbers")
        return f"**{self.table.title or self.name}** (`{self.name}`): {done}."

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        asked, cells = self.question, self.noise_of.most_cells
        text = f"{self.what_was_done()} {self.typical()}"
        if cells > 1:
            text += (
                f" One {asked.unit_name} may be in {cells:,} cells, all of which one step may change: each cell has an "
                f"equal share of epsilon."
            )
        if self.noise_of.sums > 1:
            text += f" One {asked.unit_name} may have values above 0 and below 0: both sums share epsilon, too."
        elif asked.signed:
            text += (
                " One step moves one of the two sums of a cell and never both: a value above 0 and one below 0 are two "
                "steps apart at least."
            )
        if asked.weight:
            text += " Values count with their weights, which are public. Errors of sampling are in no figure."
        return (
            f"{text} Nothing was cut, clamped or suppressed, so sums are right on average, and a small cell can be "
            "negative."
        )

    @classmethod
    def _of(cls, plan: Surroundings) -> tuple[Any, ...]:
        """All statistics of units, of which the first kind that is there speaks."""
        kinds = [kind for kind in plan.kinds if issubclass(kind, UnitTotals)]
        return tuple(one for kind in kinds for one in plan.of_kind(kind)) if kinds[:1] == [cls] else ()

    @classmethod
    def _together(cls, plan: Surroundings) -> EmployerEmployee | None:
        """What all totals and means of units reveal together."""
        budget = plan.release.budget
        some = cls._of(plan)
        return sequential([one.guarantee.within(budget) for one in some]) if some and budget is not None else None

    @classmethod
    def in_short(cls, plan: Surroundings) -> list[str]:
        """What is protected of units, and what else is published of the same records."""
        total = cls._together(plan)
        if total is None:
            return []
        others = [one for one in (*plan.tables, *plan.cubes) if not one.is_covered]
        unit = plan.release.records.records.units[-1]
        tables = named_tables([one.name for one in cls._of(plan)]) if others else "this release"
        beside = " ".join(f"Nothing bounds what `{one.name}` reveals of the same records." for one in others)
        return [
            units_in_short(total, unit, tables),
            *([f"**This does not cover everything that is published here.** {beside}"] if others else []),
            *unit_meaning(total, unit),
            *cls._of_parts(plan, unit),
        ]

    @classmethod
    def _of_parts(cls, plan: Surroundings, unit: str) -> list[str]:
        """That parts of larger units are hidden too, and what losses are."""
        some = cls._of(plan)
        parts = (
            [f"That is so of all records of one {unit} together, of each of them, and of every part of the {unit}."]
            if any(one.question.several for one in some)
            else []
        )
        losses = sorted({one.question.measure for one in some if one.question.signed})
        if losses:
            parts.append(
                f"Of {' and '.join(losses)} that is so of values above 0 and of losses, each without its sign. From a "
                "value above 0 to a loss the steps of both are added: down to 0, and from there."
            )
        return [" ".join(parts)] if parts else []

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:
        """What is bounded of the values of units."""
        total = cls._together(plan)
        if total is None:
            return ()
        some = () if plan.guarantee.bound is not None else tuple(one.name for one in cls._of(plan))
        return about_tables(value_comparisons(total), some)

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is regarded as public of units."""
        if not cls._of(plan):
            return []
        data = plan.release.records
        named = ", ".join(data.label(name).lower() for name in data.public)
        belongs = f", to which {data.records.units[-1]} each belongs" if data.records.levels else ""
        weights = ", their weights" if data.records.weight else ""
        if data.records.public:
            return [
                f"Which units have a record{belongs}{weights} and their attributes ({named}) are "
                "regarded as public. What is protected is the value of a unit, and not that there is one."
            ]
        return [
            f"The attributes of units ({named}) are regarded as public. Whether a unit is in the data is not: one that "
            "is not there and one with the value 0 give the same totals. So whether it is there, with some value, is "
            "as many steps as that value is from 0."
        ]

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of totals of units."""
        if not plan.of_kind(cls):
            return []
        return [
            "Of totals of units, the noise that was really drawn, and its scale, are confidential. `error`, `low` and "
            "`high` are computed from the published value and the parameters alone: `error` is the mean absolute error "
            "that the value would have if one unit had all of it, an upper estimate, and `low` and `high` enclose the "
            f"true total with a probability of at least {CONFIDENCE:.0%}. A total of values that are not below 0 is "
            "not below 0 either: where it is, `error` is at least as large as the value without its sign."
        ]

    def expected_error(self) -> tuple[str, str]:
        """How far values are typically off, in short, in small cells and in large ones."""
        error = self.method.planned_error()
        weighed = " × weight" if self.question.weight else ""
        return f"{error.in_a_small_cell} {self.question.money}{weighed}", error.in_a_large_cell
