"""Statistics of groups of people: counts, means, predictions and percentiles, each record one person and period."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, prod
from typing import Any, Self

import numpy as np

from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import Chunked
from sfumato.engine.data import OpenRecords
from sfumato.engine.units import within_limit
from sfumato.errors import MethodError, ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.method import ERROR_UNKNOWN, Method
from sfumato.noise.randomness import OperatingSystem
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.privacy.meaning import Comparison, about_tables, person_comparisons
from sfumato.statistics.column_texts import COLUMNS, NOISED
from sfumato.statistics.each_period import each_period
from sfumato.statistics.fitting import (
    classes_of,
    epsilon_of,
    know_measures,
    methods_for_records,
    named_method,
    refuse_unknown_codes,
    used_options,
)
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.describe import (
    BOUNDED,
    COUNTED,
    ESTIMATED,
    SEVERAL_RECORDS,
    Scope,
    errors_of_people,
    operator_notes,
    people_guarantee,
    people_in_words,
    people_leave_open,
    people_text,
    scope_of,
    units_in_words,
)
from sfumato.statistics.people.percentiles import bins_of
from sfumato.statistics.people.question import AT, SAMPLES, STATISTICS, SUMMED, BoundedMeasure, SampleQuestion
from sfumato.statistics.people.small_samples import NO_ERROR
from sfumato.statistics.people.tabulate import (
    BIN,
    LARGEST_GROUP,
    Weighing,
    clipped_values,
    is_plain_count,
    people_in_chunks,
    refuse_heavy,
    refuse_unsuitable,
    sampled,
    samples,
    weighed,
)
from sfumato.statistics.people.weights import limit_of, need_people, weight_of
from sfumato.statistics.published import Columns, PublishedTable, number
from sfumato.statistics.registry import build, known_of_table, needs
from sfumato.statistics.row_files import is_hidden
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

MADE = (AT, BIN, "count")
"""Columns of statistics of people; an attribute of theirs cannot have one of these names."""
_PLACES = {"predict": "Predicted at {}", "quantiles": "Percentile {}", "mean": "Mean"}


@dataclass(frozen=True, kw_only=True)
class People(PublishedTable):
    """A statistic of every group of people."""

    question: SampleQuestion
    method: Any

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:  # noqa: ARG003 (what no other kind of records is)
        """Whether a table of these data is of this kind."""
        return not data.of_jobs

    @classmethod
    def method_name(cls, table: Table, data: Microdata) -> str:  # noqa: ARG003 (other kinds look at it)
        """The method as it is used."""
        return named_method(table, methods_for_records(table))

    @classmethod
    def ask(cls, table: Table, data: Microdata, codelists: Mapping[str, Codelist]) -> SampleQuestion:
        """What a statistic of people asks; docs/methods/small-samples.md says who is protected."""
        method = cls.method_name(table, data)
        know_measures(table, data)
        codes = {name: codelist.codes for name, codelist in codelists.items()}
        refuse_unknown_codes(table, codes)
        need_people(table, data, method)
        classes = classes_of(table, data)
        for name in (*table.by, *table.where, *classes):
            if name in MADE:
                raise ReleaseError(
                    f"table '{table.name}', attribute '{name}'",
                    expected=f"attributes with other names than {', '.join(MADE)}, which are columns of such tables",
                    found=f"'{name}'",
                    do="rename the column",
                )

        def dimensions(names: Iterable[str]) -> tuple[Dimension, ...]:
            return tuple(Dimension(name=name, codes=table.kept(name, codes[name])) for name in names)

        statistic = next(known for known in STATISTICS if known == table.statistic)  # the method knows no other
        summed = statistic in SUMMED
        y = None if table.measure is None else _bounded(table, data, table.measure, needed=summed)
        bins = (
            None
            if table.quantiles is None or y is None
            else bins_of(table.quantiles.bins, y, curve=table.protect.options.get("curve", "adaptive"))
        )
        step = 1 if bins is None or table.measure is None else data.measures[table.measure].rounded
        bins = bins if bins is None or step == 1 else bins.between_multiples(step)
        at = {"predict": "{}", "quantiles": "p{}", "mean": "mean"}.get(table.statistic, "")
        return SampleQuestion(
            groups=dimensions(table.by),
            statistic=statistic,
            at=tuple(at.format(plain(place)) for place in table.at) if table.at is not None else (at,) if at else (),
            x=None if table.predict is None else _bounded(table, data, table.predict.on, needed=True),
            y=y,
            edges=() if bins is None else bins.edges,
            tails=(1, 1) if bins is None else bins.tails,
            step=step,
            classes=dimensions(classes),
            needs=needs(method),
            where=table.where,
            weight=weight_of(table, data),
            limit=limit_of(table, data),
        )

    @classmethod
    def build_method(cls, table: Table, data: Microdata, question: SampleQuestion, *, alpha: Fraction | None) -> Method:
        """The method that protects a table, with its parameters; `alpha` is the budget's."""
        name = cls.method_name(table, data)
        used = ("form", "classes") if "class" in question.needs else ("form",)
        known = _known(table, data, question, name)

        def built(epsilon: Fraction | None, **periods: int) -> Any:
            return build(
                name,
                alpha=alpha if table.protect.alpha is None else table.protect.alpha,
                epsilon=epsilon,
                options=used_options(table, *used),
                of_table=known | periods,
            )

        method = built(epsilon_of(table, name))
        if table.protect.by_period:
            of_period = next((d for d in question.groups if d.name == data.records.period), None)
            method = each_period(
                table.name,
                None if of_period is None else of_period.name,
                () if of_period is None else of_period.codes,
                table.protect.by_period,
                built,
            )
        if not getattr(method, "tells_errors", True) and table.unknown_errors == "withheld":
            raise ReleaseError(
                f"table '{table.name}', method '{name}'",
                expected='unknown_errors = "published": nothing that it publishes tells the error of any of its values',
                found="a table whose values would all be withheld",
                do='write unknown_errors = "published", or use noisy-regression, which tells errors',
            )
        found: Method = method
        return found

    @classmethod
    def countable(cls, data: Microdata, question: SampleQuestion) -> frozenset[str]:  # noqa: ARG003
        """What the engine can tell of groups."""
        if question.statistic == "predict":
            return SAMPLES
        # Whoever makes means too does not look for what is predicted from.
        return frozenset({"count"}) if question.statistic != "mean" else SAMPLES - {"samples"}

    @classmethod
    def why_whole(cls, table: Table, question: SampleQuestion, *, reconciled: bool) -> str | None:
        """Why a table cannot be made in chunks, as words that follow "found"; None when it can."""
        if table.protect.by_period:
            return "an epsilon of its own for every period: only tables with one epsilon are tabulated in parts"
        if not is_plain_count(question):
            what = "weighted counts" if question.weight else f"the statistic {table.statistic} of people"
            return f"{what}: only counts of people are tabulated in parts"
        if question.limit is not None:
            return 'protects = "unit": which records are counted is looked up for the whole table'
        if reconciled:
            return "reconcile = true: each cell is changed by the values of all others, in all tables that are to agree"
        if not table.establishments:
            return "establishments = false: a table in parts lists the cells that have an establishment"
        return None

    def statistic_words(self) -> list[Any]:
        """What is asked of every group, beside the dimensions."""
        asked = self.question
        bounds = [None if bound is None else [bound.name, bound.low, bound.high] for bound in (asked.x, asked.y)]
        classes = [[dimension.name, dimension.codes] for dimension in asked.classes]
        weighted = [] if asked.weight is None else [["weight", asked.weight.column]]
        if asked.limit is not None:
            weighted.append(["limit", asked.limit.column, asked.limit.name])
        return ["people", asked.statistic, *bounds, list(asked.edges), *weighted, classes]

    @property
    def protects_units(self) -> bool:
        """Whether all records of one unit are hidden together."""
        return self.question.limit is not None

    @property
    def why_not_reconciled(self) -> str | None:
        """A table that leaves out records of large units is about fewer records than others."""
        if self.protects_units:
            return "it counts only some records of large units"
        return super().why_not_reconciled

    def _note(self, data: str) -> str:
        """None: under another key it is another question, which is charged."""
        return "" if self.protects_units else super()._note(data)

    def words_in_any_order(self) -> list[Any]:
        """The same, with classes in the order of their names."""
        classes = sorted([dimension.name, sorted(dimension.codes)] for dimension in self.question.classes)
        return [*self.statistic_words()[:-1], classes]

    def method_in_order(self) -> Method:
        """The same method with the places it predicts at in one order."""
        found: Method = self.method.in_order()
        return found

    def as_asked_before(self, build_again: Any) -> "People | None":
        """Percentiles as version 0.1.0 asked for them: bins of a guess ended where the guess ends.

        `build_again` makes the method for another question.
        """
        quantiles, of = self.table.quantiles, self.question.y
        if quantiles is None or of is None:
            return None
        bins, question = quantiles.bins, None
        if self.table.protect.by_period or self.question.step > 1:
            return None  # version 0.1.0 had one ε for all periods, and knew of no rounding
        if bins.median is None or bins.sigma is None or bins.number is None:
            question = self.question
        else:
            with suppress(MethodError):
                even = PublicBins.equal_mass(
                    median=bins.median, sigma=bins.sigma, number=bins.number, minimum=of.low, maximum=of.high
                )
                question = replace(self.question, edges=even.edges, tails=even.tails)
        if question is None:
            return None
        return replace(self, question=question, method=replace(build_again(question), bounds=False))

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenRecords) -> None:
        """Refuse groups in several calibration classes, and values whose squares may not add up in 64 bits."""
        for name, one in batch.items():
            most = getattr(one.method, "most_people", LARGEST_GROUP)
            if one.question.weight is not None:
                refuse_heavy(data.tables, name, one.question.weight, most=LARGEST_GROUP if one.question.sums else most)
            refuse_unsuitable(data.tables, name, one.question, most=most)

    @classmethod
    def tabulate(
        cls,
        batch: Mapping[str, Self],
        data: OpenRecords,
        secret: Secret | None,
    ) -> Iterator[tuple[str, Any]]:
        """Sums of groups of people, or the values themselves where a method asks for them."""
        summed = {name: one.question for name, one in batch.items() if not one.question.of_values}
        sums: dict[str, Cells] = {}
        for limit in dict.fromkeys(question.limit for question in summed.values()):
            with within_limit(data, limit, secret) as kept:
                sums |= sampled(kept.tables, {name: asked for name, asked in summed.items() if asked.limit == limit})
        for name, one in batch.items():
            yield name, sums[name] if name in sums else samples(data.tables, one.question)

    @classmethod
    def tabulate_in_chunks(
        cls,
        batch: Mapping[str, Self],
        data: OpenRecords,
        secret: Secret | None,  # noqa: ARG003 (there is no key)
    ) -> AbstractContextManager[Mapping[str, Chunked]]:
        """Counts of people that are cut into chunks."""
        questions = {name: one.question for name, one in batch.items()}
        return nullcontext(
            people_in_chunks(data.tables, questions, {name: one.table.parts for name, one in batch.items()})
        )

    @classmethod
    def clipped(cls, batch: Mapping[str, Self], data: OpenRecords) -> dict[str, int]:
        """How many records count with a bound instead of their value, by measure: confidential."""
        return clipped_values(data.tables, {name: one.question for name, one in batch.items()})

    @classmethod
    def weighing(cls, batch: Mapping[str, Self], data: OpenRecords) -> dict[str, Weighing]:
        """What the weights of the records mean for the noise of each table: confidential."""
        asked = {name: one.question.weight for name, one in batch.items()}
        return {name: weighed(data.tables, weight) for name, weight in asked.items() if weight is not None}

    @property
    def is_additive(self) -> bool:
        """Only counts add up."""
        return not self.question.at

    @property
    def estimates(self) -> bool:
        """Whether its values are predictions, means or percentiles, and not counts."""
        return bool(self.question.at)

    def answer(self, counted: Any, secret: Secret | None) -> Cells:  # noqa: ARG002 (there is no key)
        """The protected statistic of every group."""
        drawn: Cells = self.method.protect(counted, OperatingSystem())
        return drawn

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """Estimates with the noisy number of people, in the unit of the measure; counts like other counts."""
        if not self.question.at:
            return super().columns_of(answer, shown)
        answer = self.shown_estimates(answer)
        unit, hidden = 10**self.table.decimals, is_hidden(answer["status"])
        error = np.where(hidden | (answer["error"] == NO_ERROR), np.nan, answer["error"] / unit)
        value = answer["value"] / unit if self.table.decimals else answer["value"]
        return {"value": value, "count": answer["count"], "error": error, "status": answer["status"]}

    def shown_estimates(self, answer: Cells) -> Cells:
        """The answer as readers get it: without values whose error nothing tells, unless the release wants them.

        Errors come from noisy numbers of people, so that what is withheld here tells nothing that is not published.
        """
        if self.table.unknown_errors == "published":
            return answer
        untold = (answer["error"] == NO_ERROR) & (answer["status"] == 0)
        status = np.where(untold, ERROR_UNKNOWN, answer["status"])
        return answer.with_column("status", status).with_column("value", np.where(untold, 0, answer["value"]))

    def design(self) -> dict[str, Any]:
        """The public design: where values end, and in which bins they were counted."""
        asked = self.question
        bounds = {bound.name: [bound.low, bound.high] for bound in (asked.x, asked.y) if bound is not None}
        return {
            **self.noise_facts([dimension.name for dimension in self.by]),
            **({"bounds": bounds} if bounds else {}),
            **({} if asked.limit is None else asked.limit.described()),
            **({"edges": list(asked.edges)} if asked.edges else {}),
            **({"rounded": asked.step} if asked.step > 1 else {}),
            **({"unknown_errors": self.table.unknown_errors} if asked.statistic in ("predict", "mean") else {}),
            **({"classes": [dimension.name for dimension in asked.classes]} if asked.classes else {}),
            **({"period_epsilons": self._period_epsilons} if self.table.protect.by_period else {}),
        }

    @property
    def _period_epsilons(self) -> dict[str, float | int]:
        """What each period spends, where the release file says it."""
        return {code: number(epsilon) for code, epsilon in self.table.protect.by_period.items()}

    def column_texts(self, plan: Surroundings) -> dict[str, str]:  # noqa: ARG002 (other kinds look at it)
        """What each published column says."""
        if self.question.at:
            bounded = BOUNDED if self.question.statistic == "quantiles" else {}
            return {**ESTIMATED, **bounded, "status": COLUMNS["status"]}
        return {name: COLUMNS[name] for name in ("value", *NOISED)} | COUNTED

    def made_labels(self, data: Data) -> dict[str, str]:
        """The words for the dimension that says which statistic a value is."""
        return {} if AT in data.attributes else {AT: "Statistic"}

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:  # noqa: ARG002
        """What is published of every group."""
        if not self.question.at:
            return {}
        words = _PLACES[self.question.statistic]
        return {AT: Codelist.of({code: words.format(code.removeprefix("p")) for code in self.question.at})}

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers, and what its epsilon was divided over."""
        data, together = plan.release.records, self._together(plan)
        return self.what_was_done() + people_text(self, data, together, periods=periods_of(data, self.question))

    @classmethod
    def family(cls, plan: Surroundings) -> tuple["People", ...]:
        """All tables of people of a release, whatever they tell of them."""
        return tuple(one for kind in plan.kinds if issubclass(kind, People) for one in plan.of_kind(kind))

    @classmethod
    def _speaks(cls, plan: Surroundings) -> bool:
        """Whether no kind of tables of people before it says what all have in common."""
        return next(kind for kind in plan.kinds if issubclass(kind, People)) is cls

    @classmethod
    def _together(cls, plan: Surroundings) -> EmployerEmployee | None:
        """What all tables, and cubes, reveal together of one person; where some bound nothing, tables of people."""
        return plan.guarantee.bound or people_guarantee(cls.family(plan), plan.release.budget)

    @classmethod
    def _only(cls, plan: Surroundings) -> Scope | None:
        """What is spoken of, where something else in the release is not covered."""
        return scope_of(plan, [one for one in plan.tables if issubclass(type(one), People)])

    @classmethod
    def in_short(cls, plan: Surroundings) -> list[str]:
        """What tables of people protect, and what others do that are published with them."""
        if not cls._speaks(plan):
            return []
        history = plan.release.records.records.period is not None
        said = people_in_words(plan, cls._together(plan), only=cls._only(plan), history=history)
        return [*said, *units_in_words(plan, cls.family(plan))]

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:
        """What tables of people bound."""
        total, only = cls._together(plan), cls._only(plan)
        some = () if only is None or plan.guarantee.bound is not None else only.tables
        return () if total is None or not cls._speaks(plan) else about_tables(person_comparisons(total), some)

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What tables of people do not protect."""
        family = cls.family(plan)
        several = plan.release.records.records.levels and not all(one.protects_units for one in family)
        return [people_leave_open(family) + (f" {SEVERAL_RECORDS}" if several else "")] if cls._speaks(plan) else []

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of tables of people."""
        return [errors_of_people(plan.of_kind(cls), cls.family(plan))]

    @classmethod
    def operator_notes(cls, plan: Surroundings) -> list[str]:
        """What whoever runs a release should know of its tables of people, and readers of the bundle need not."""
        return operator_notes(plan.of_kind(cls), plan.release.records)

    def expected_error(self) -> tuple[str, str]:
        """How far values are typically off, in short, in small groups and in large ones."""
        small, large = self.method.typical_by_size()
        return small, large


def periods_of(data: Microdata, question: SampleQuestion) -> int:
    """In how many periods a table publishes a person."""
    return next((len(dimension) for dimension in question.groups if dimension.name == data.records.period), 1)


def _bounded(table: Table, data: Microdata, name: str, *, needed: bool) -> BoundedMeasure:
    measure = data.measures[name]
    low, high = ceil(measure.minimum), None if measure.maximum is None else floor(measure.maximum)
    if needed and (high is None or high <= low):
        raise ReleaseError(
            f"table '{table.name}', measure '{name}'",
            expected="a minimum and a larger maximum, which bound what one person can change",
            found="no maximum" if high is None else "a maximum that is not above the minimum",
            do=f'write {name} = {{ minimum = …, maximum = …, outside = "clip" }} under [data.measures]',
        )
    return BoundedMeasure(name=name, low=low, high=high)


def _known(table: Table, data: Microdata, question: SampleQuestion, name: str) -> dict[str, Any]:
    """What a method for people has to know of its table, as far as it asks."""
    bounds = {"x": question.x, "y": question.y}
    facts: dict[str, Any] = {
        "statistic": question.statistic,
        "at": table.at or (),
        "decimals": table.decimals,
        "periods": periods_of(data, question),
        "edges": question.edges,
        "tails": question.tails,
        "step": question.step,
        "weight_steps": question.weight.steps if question.in_steps and question.weight is not None else 1,
        "classes": prod(map(len, question.classes)),
        **{f"low_{letter}": bound.low for letter, bound in bounds.items() if bound is not None},
        **{f"high_{letter}": bound.high for letter, bound in bounds.items() if bound is not None},
    }
    asked = known_of_table(name)
    if facts["periods"] > 1 and "periods" not in asked:
        raise ValueError(f"{name!r} does not say what several periods of a person cost")
    return {fact: value for fact, value in facts.items() if fact in asked}
