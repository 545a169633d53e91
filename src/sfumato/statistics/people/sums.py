"""Totals and means of people with discrete Laplace noise: the kinds; docs/methods/people-totals.md has the proofs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.engine.data import OpenRecords
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata
from sfumato.method import CONFIDENCE, Method, PublishedFigures
from sfumato.statistics.column_texts import COLUMNS
from sfumato.statistics.jobs.mean_of import CERTAINTY
from sfumato.statistics.people.describe import errors_of_protection
from sfumato.statistics.people.laplace_sums import LaplaceMean
from sfumato.statistics.people.question import BoundedMeasure, SampleQuestion
from sfumato.statistics.people.small_samples import RecordLaplace
from sfumato.statistics.people.statistic import People
from sfumato.statistics.people.tabulate import Clipping, clipping
from sfumato.statistics.people.weights import hides_units
from sfumato.statistics.published import Columns
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

TOTAL, COUNT = "total", "count"
"""The columns with the total and the number of people that a mean goes with."""
_PEOPLE = "people"
"""The true number of people, where `count` is the mean that would be published without protection."""


@dataclass(frozen=True, kw_only=True)
class PeopleTotals(People):
    """What people have of a measure, added up in every group."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return not data.of_jobs and table.statistic == "total" and table.protect.method == RecordLaplace.named

    @classmethod
    def method_name(cls, table: Table, data: Microdata) -> str:
        """The method as it is used; whole units of several records are hidden in counts alone."""
        if hides_units(table):
            raise ReleaseError(
                f"table '{table.name}', protects",
                expected=f"nothing of it: a {table.statistic} of people hides one person, and counts alone whole units",
                found='protects = "unit"',
                do='leave out `protects` and `most_records`, or write count = "records"',
            )
        return super().method_name(table, data)

    @classmethod
    def scanned_as(cls) -> type[People]:
        """All statistics of people are made in one scan."""
        return People

    @classmethod
    def countable(cls, data: Microdata, question: SampleQuestion) -> frozenset[str]:  # noqa: ARG003
        """What the engine can tell of groups."""
        return frozenset({"count", "sum_y"})

    @classmethod
    def cut(cls, batch: Mapping[str, Self], data: OpenRecords) -> dict[str, Clipping]:
        """What the bounds of measures change of their totals, by measure: confidential."""
        bounds = dict.fromkeys(one.measure for one in batch.values())
        clips = [of for of in bounds if data.data.measures[of.name].outside == "clip"]
        return {of.name: clipping(data.tables, of) for of in clips}

    @property
    def measure(self) -> BoundedMeasure:
        """What is added up, and its bounds."""
        return cast(BoundedMeasure, self.question.y)

    @property
    def is_additive(self) -> bool:
        """Totals add up."""
        return True

    @property
    def estimates(self) -> bool:
        """Its values are assessed like counts, cell by cell."""
        return False

    # What is published.

    def shown_figures(self, answer: Cells, shown: Cells) -> PublishedFigures:  # noqa: ARG002 (totals never agree)
        """The error figures as the method makes them: totals may be below 0."""
        return cast(PublishedFigures, self.method.published_figures(answer, CONFIDENCE))

    def expected_errors(self, counted: Cells) -> Floats:
        """How far its values are off on average: confidential."""
        return cast(Floats, self.method.expected_error(counted))

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: what would be published without protection."""
        true = np.nan_to_num(self.method.true_value(counted))
        return counted.with_column("count", np.rint(true).astype(np.int64))

    def noise_facts(self, workplace: list[str]) -> dict[str, Any]:
        """What sums of its cells are told by; of values below 0 sums have no error figures, which suppose none."""
        return super().noise_facts(workplace) if (self.measure.low or 0) >= 0 else {}

    def design(self) -> dict[str, Any]:
        """The public design, without what is about errors that are not told."""
        return {name: fact for name, fact in super().design().items() if name != "unknown_errors"}

    def column_texts(self, plan: Surroundings) -> dict[str, str]:  # noqa: ARG002 (other kinds look at it)
        """What each published column says."""
        return {
            "value": f"protected total of {self.measure.name}, of values {self.bounds}",
            "error": "mean absolute error of the protection, or how far the value is beyond what is possible",
            "low": f"least total that the published one is consistent with, {CONFIDENCE:.0%} confidence",
            "high": f"greatest total that the published one is consistent with, {CONFIDENCE:.0%} confidence",
        }

    @property
    def bounds(self) -> str:
        """The bounds of values, in words."""
        return f"from {self.measure.low:,} to {self.measure.high:,}"

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of totals."""
        return [cls._with_the_rest(plan, cls.errors_in_words)]

    errors_in_words: ClassVar[str] = (
        "Of totals of people, `error` is the mean absolute error, the same in every cell, and `low` and `high` enclose "
        f"the total of values within their bounds with a probability of at least {CONFIDENCE:.0%}. A value may be "
        "beyond what is possible: nothing was clamped, so that sums are right on average."
    )

    @classmethod
    def _with_the_rest(cls, plan: Surroundings, text: str) -> str:
        """The words of a kind, and what is so of all tables of people where no other kind comes to say it."""
        last = [kind for kind in plan.kinds if issubclass(kind, People)][-1]
        return f"{text} {errors_of_protection(cls.family(plan))}" if last is cls else text

    @classmethod
    def operator_notes(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (other kinds look at it)
        """None: `check` tells what bounds change."""
        return []


@dataclass(frozen=True, kw_only=True)
class PeopleMeans(PeopleTotals):
    """The mean of a measure in every group of people, with its total and the number of people."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return not data.of_jobs and table.statistic == "mean" and table.protect.method == RecordLaplace.named

    @classmethod
    def ask(cls, table: Table, data: Microdata, codelists: Mapping[str, Codelist]) -> SampleQuestion:
        """What a mean asks: no place of several, as predictions have."""
        if TOTAL in (*table.by, *table.where):
            raise ReleaseError(
                f"table '{table.name}', attribute '{TOTAL}'",
                expected=f"attributes with other names than {TOTAL} and {COUNT}, which are columns of such tables",
                found=f"'{TOTAL}'",
                do="rename the column",
            )
        if table.unknown_errors == "published":
            raise ReleaseError(
                f"table '{table.name}', unknown_errors",
                expected=f"nothing of it: every mean by {table.protect.method} has an error",
                found='unknown_errors = "published"',
                do="leave it out",
            )
        return replace(super().ask(table, data, codelists), at=())

    @classmethod
    def build_method(cls, table: Table, data: Microdata, question: SampleQuestion, *, alpha: Fraction | None) -> Method:
        """The method that protects a table; nothing is divided between a mean and its number of people."""
        if "count_share" in table.protect.options:
            raise ReleaseError(
                f"table '{table.name}', count_share",
                expected="nothing of it: a mean of people and their number spend the same epsilon, all of it",
                found="count_share",
                do="leave it out",
            )
        return super().build_method(table, data, question, alpha=alpha)

    @property
    def is_additive(self) -> bool:
        """Means do not add up."""
        return False

    @property
    def _one(self) -> LaplaceMean:
        """The method of a period: how a mean is made of both sums is the same in all."""
        return cast(LaplaceMean, self.method.of_one_period())

    def noise_facts(self, workplace: list[str]) -> dict[str, Any]:  # noqa: ARG002 (other kinds look at it)
        """None: means are not added up."""
        return {}

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """The mean with its error and interval, and the total and the number of people that go with it."""
        unit, figures = 10**self.table.decimals, self.shown_figures(answer, shown)
        return {
            "value": self.shown_values(answer) / unit,
            "error": np.ceil(figures.error * unit) / unit,
            "low": np.floor(figures.low * unit) / unit,
            "high": np.ceil(figures.high * unit) / unit,
            "status": answer["status"],
            TOTAL: self._one.published_totals(answer),
            COUNT: np.rint(self._one.published_people(answer)).astype(np.int64),
        }

    def shown_values(self, shown: Cells) -> Integers:
        """The means as readers get them, in parts of the unit; 0 where there is none."""
        found: Integers = np.rint(np.nan_to_num(self._one.published_means(shown)) * self._unit).astype(np.int64)
        return found

    @property
    def _unit(self) -> int:
        return int(10**self.table.decimals)

    def expected_errors(self, counted: Cells) -> Floats:
        """How far means are off on average, in parts of the unit: confidential."""
        people = counted[_PEOPLE] if _PEOPLE in counted.columns else counted["count"]
        return super().expected_errors(counted.with_column("count", people)) * self._unit

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: the true mean, in parts of the unit; 0 where nobody is."""
        true = np.nan_to_num(self.method.true_value(counted)) * self._unit
        kept = counted.with_column(_PEOPLE, counted["count"])
        return kept.with_column("count", np.rint(true).astype(np.int64))

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:
        """The interval as it is published, in parts of the unit."""
        figures = self.shown_figures(answer, shown)
        return figures.low * self._unit, figures.high * self._unit

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "convergence_ratio", "establishments"})

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        return super().column_texts(plan) | {
            "value": f"mean of {self.measure.name}, of values {self.bounds}, made of the same two noisy sums as "
            f"`total` and `count`; empty where there may be nobody: means are of {self._fewest}",
            "error": "estimate of the mean absolute error of the protection",
            "low": f"least mean that both sums are consistent with, {CONFIDENCE:.0%} confidence",
            "high": f"greatest mean that both sums are consistent with, {CONFIDENCE:.0%} confidence",
            "status": COLUMNS["status"],
            TOTAL: f"protected total. {self.method.typical_error()}",
            COUNT: "protected number of people, or what they weigh, rounded; it may be below 0",
        }

    @property
    def _fewest(self) -> str:
        """From which number of people on there is a mean, in words."""
        what = "people" if self.question.weight is None else "in weight"
        of_others = ", or of fewer in periods that spend more" if self.table.protect.by_period else ""
        return f"{self.method.fewest:,} {what} or more{of_others}"

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:
        """What was done to its numbers, and where there is no mean."""
        return (
            f"{super().paragraph(plan, answer)} There is no mean where the number of people is not above 0 with a "
            f"certainty of {CERTAINTY:.1%}: means are of {self._fewest}. Totals and numbers of people are right on "
            "average; means are not exactly."
        )

    errors_in_words: ClassVar[str] = (
        "Of means of people by laplace, `low` and `high` enclose those that both noisy sums are consistent with "
        f"(Fieller's interval): they hold the mean of values within their bounds in at least {CONFIDENCE:.0%} of "
        "cases, where a group has so many people that it nearly always has a mean. `error` is an estimate of the mean "
        "absolute error. `total` and `count` are made of the same sums; `count` is rounded, and may be below 0."
    )
