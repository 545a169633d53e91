"""Totals of what jobs have of a measure, such as earnings, with the guarantee that counts of jobs have.

docs/methods/formal-totals.md says who is protected, and proves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self, cast

from sfumato.engine.connect import Tables
from sfumato.engine.data import OpenJobs
from sfumato.engine.query import times
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data, Frame
from sfumato.method import CONFIDENCE, Method
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.meaning import Comparison
from sfumato.statistics.column_texts import typical
from sfumato.statistics.fitting import epsilon_of, know_each_measure, named_method, used_options
from sfumato.statistics.jobs.at_periods import method_of, over_periods, shared_options
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.statistic import JobCounts
from sfumato.statistics.jobs.tabulate import as_jobs
from sfumato.statistics.registry import build
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

FOR_JOB_TOTALS = ("smooth-pareto", "vector-pareto")
"""The methods whose proof holds for totals: their noise follows what the largest establishment adds, and a cap."""
_SCALED = repr(2.0**64)
"""What amounts are divided by, exactly, so that sums of the largest binary numbers are finite."""
_PAYROLL = '["payroll"] to add up the earnings'


@dataclass(frozen=True, kw_only=True)
class Cut:
    """What the cap of a measure takes off: confidential, for whoever checks a release."""

    measure: str
    cap: int
    total: float
    """The share of the total of all jobs that is cut off."""
    jobs: float
    """The share of jobs that have more than the cap."""

    def in_words(self) -> str:
        """The same in a sentence."""
        return (
            f"Cap of {self.measure}: jobs count for at most {self.cap:,}. That cuts off {self.total:.2%} of the total, "
            f"of {self.jobs:.2%} of jobs. Confidential: these two shares are not protected."
        )

    def figures(self) -> dict[str, int | float]:
        """The same for machines."""
        return {"cap": self.cap, "share_of_total": self.total, "share_of_jobs": self.jobs}


@dataclass(frozen=True, kw_only=True)
class JobTotals(JobCounts):
    """What jobs have of a measure, added up by attributes of workplaces and workers."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "total"

    @classmethod
    def method_name(cls, table: Table, data: Frame) -> str:
        """The method as it is used: one number at a time, or all worker cells of a workplace cell at once.

        What an establishment adds to one worker cell may grow to any multiple in a step, so that neither single worker
        cells nor some of the workers can be protected by what they have themselves.
        """
        named_method(table, {name: name for name in FOR_JOB_TOTALS})
        filtered = [name for name in table.where if not data.is_known(name)]
        by_workers = any(not data.is_known(name) for name in table.by)
        if filtered or (by_workers and table.protect.options.get("form") == "scalar"):
            raise ReleaseError(
                f"table '{table.name}', total",
                expected="a total of all workers, whose worker cells are protected together",
                found=f"`where` on {', '.join(filtered)}" if filtered else 'form = "scalar"',
                do="put the attribute into `by` instead" if filtered else "leave `form` out",
            )
        return super().method_name(table, data)

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> Question:
        """What a table asks of jobs, given the codes of the attributes."""
        method = cls.method_name(table, data)
        know_each_measure(table, data)
        if table.totals:
            raise ReleaseError(
                f"table '{table.name}', totals",
                expected="nothing of it: `totals` are for tables of records",
                found="totals = true",
                do="leave it out, and publish a table by fewer attributes",
            )
        measure, cap = cast(str, table.measure), cls._cap(table, data)
        question = cls.question_of(table, data, codelists, method, instead=_PAYROLL)
        return replace(
            question,
            measure=measure,
            measured=data.measured(measure),
            cap=cap,
            unit=data.measures[measure].unit or measure,
        )

    @classmethod
    def _cap(cls, table: Table, data: Frame) -> int:
        """The cap of the measure, or why there can be no total of it."""
        name = cast(str, table.measure)
        measure, where = data.measures[name], f"table '{table.name}', measure '{name}'"
        if measure.cap is None:
            raise ReleaseError(
                where,
                expected="a cap: the most that one job counts for, known without the data",
                found="none",
                do=f"write {name} = {{ cap = 120000 }}, say, under [data.measures]; a ceiling of the law is a good one",
            )
        if measure.minimum < 0:
            raise ReleaseError(
                where,
                expected="values from 0 on: a job more may not make a total smaller",
                found=f"minimum = {float(measure.minimum):g}",
                do="make two measures of it, what is above 0 and what is below without its sign, and publish both",
            )
        if measure.outside == "clip":
            raise ReleaseError(
                where,
                expected="a measure with a cap alone",
                found='outside = "clip"',
                do="leave `outside` out: jobs above the cap count with the cap",
            )
        return measure.cap

    @classmethod
    def build_method(cls, table: Table, data: Frame, question: Question, *, alpha: Fraction | None) -> Method:
        """The method that protects a table, with its parameters; what one job adds at most is the cap."""
        name = cls.method_name(table, data)
        make = partial(
            build,
            name,
            alpha=alpha if table.protect.alpha is None else table.protect.alpha,
            worker_cells=question.worker_cells(data),
            options=shared_options(used_options(table, "form"), len(question.periods)),
            of_table={"floor": question.cap},
        )
        epsilon = epsilon_of(table, name, each=bool(question.periods))
        return cast(Method, method_of(table, data, question, epsilon, make))

    @cached_property
    def guarantee(self) -> EmployerEmployee:
        """For neighbours whose part of the total grows alike too."""
        return over_periods(self.method, self.question, (self.question.measured, self.one_job))

    @property
    def measure(self) -> str:
        """What is added up."""
        return cast(str, self.question.measure)

    @property
    def one_job(self) -> int:
        """What one job adds to a cell at most."""
        return cast(int, self.question.cap)

    def statistic_words(self) -> list[Any]:
        """What is added up, and where it is cut, as digests have it."""
        return [*super().statistic_words(), self.measure, self.one_job]

    @classmethod
    def scanned_as(cls) -> type[JobCounts]:
        """Counts and totals of jobs are made in one scan."""
        return JobCounts

    @classmethod
    def cut(cls, batch: Mapping[str, Self], data: OpenJobs) -> dict[str, Any]:
        """What the caps of measures take off totals, by measure: confidential."""
        caps = {one.measure: one.one_job for one in batch.values()}
        with as_jobs(data.frame, data.tables, {name: one.question for name, one in batch.items()}) as (_, tables):
            return {measure: _cut(tables, measure, cap) for measure, cap in caps.items()}

    # What is published.

    @property
    def counts_jobs_formally(self) -> bool:
        """Its values are no counts: sizes of establishments that others tell are in workers."""
        return False

    @property
    def of_records(self) -> bool:
        """It is about jobs."""
        return False

    @property
    def counted_in(self) -> str:
        """What its errors are numbers of, in short."""
        return self.question.unit

    @property
    def large_from(self) -> tuple[int, str] | None:
        """From how much on an establishment makes errors grow with it."""
        large = super().large_from
        return None if large is None else (large[0], self.question.unit)

    @property
    def unit_words(self) -> str:
        """What follows an amount: the unit of the measure, or what it is of where that has none."""
        unit = self.question.unit
        return unit if unit != self.measure else f"of {self.measure}"

    def _measure(self, data: Data) -> dict[str, Any]:
        """The measure, with the most that one job counts for."""
        found = super()._measure(data)
        return {"measure": {**found["measure"], "cap": self.one_job}}

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        cut = f"{self.one_job:,} {self.unit_words}"
        told = {
            "value": f"protected total, to which a job adds at most {cut}",
            "low": f"least true total, so cut, that the published one is consistent with, {CONFIDENCE:.0%} confidence",
            "high": f"greatest true total, so cut, that the published one is consistent with, {CONFIDENCE:.0%} "
            "confidence; empty: no limit",
        }
        return super().column_texts(plan) | told

    def what_was_done(self) -> str:
        """The table, the cut and the method, in words."""
        has_unit = self.question.unit != self.measure
        done = self.done_to_totals.format(number="total", unit=self.question.unit if has_unit else "numbers")
        of = f" of {self.measure}" if has_unit else ""
        return (
            f"**{self.table.title or self.name}** (`{self.name}`): of each job at most {self.one_job:,} "
            f"{self.unit_words}{of} counted, and what was above was cut off before anything else; then {done}."
        )

    @property
    def done_to_totals(self) -> str:
        """What the method does to totals, to numbers of which kind and in which unit."""
        return str(cast(Any, self.method).done)

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        unit = self.unit_words
        off = typical(self.method.planned_error(), unit, unit)
        text = f"{self.what_was_done()}{self.about_jobs} {off}{self.has_none(plan)}"
        if not (plan.release.frame.joined or self.lists_structural_zeros):
            text += " Combinations without any establishment, exactly 0, are not listed."
        return text + (
            " Nothing else was clamped or suppressed, so sums are right on average but for what was cut off, and a "
            "small cell can be negative. How much was cut off is confidential."
        )

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is public of establishments, unless counts of jobs say it."""
        return super().left_open(plan) if _speaks(cls, plan) else []

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:
        """What is bounded of establishments, unless counts of jobs say it."""
        return super().comparisons(plan) if _speaks(cls, plan) else ()

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (other kinds look at it)
        """How to read the error figures of totals with noise."""
        return [
            "Of totals, the noise that was really drawn, and its scale, are confidential too. `error`, `low` and "
            "`high` are computed from the published value and the parameters alone: `error` is the mean absolute error "
            "that the value would have if one establishment had all of it, an upper estimate, and `low` and `high` "
            f"enclose the true total with a probability of at least {CONFIDENCE:.0%}. The true total is that after "
            "the cut: what jobs have above the cap is in none of these numbers. No total is below 0: where a value is "
            "negative, `error` is at least as large as the value without its sign."
        ]


def _speaks(kind: type[JobTotals], plan: Surroundings) -> bool:
    """Whether no kind of counts of jobs before it says what all have in common."""
    return next(other for other in plan.kinds if issubclass(other, JobCounts)) is kind


def _cut(tables: Tables, measure: str, cap: int) -> Cut:
    """The shares of the total and of the jobs above a cap."""
    value = f"CAST({tables.engine.q(measure)} AS DOUBLE)"
    row = tables.jobs.row(
        _total=f"sum({value} / {_SCALED})",
        _cut=f"sum(CASE WHEN {value} > {cap} THEN ({value} - {cap}) / {_SCALED} ELSE 0 END)",
        _jobs="count(*)",
        _above=times(f"{value} > {cap}"),
    )
    return Cut(
        measure=measure,
        cap=cap,
        total=float(row["_cut"] or 0) / (float(row["_total"] or 0) or 1.0),
        jobs=int(row["_above"] or 0) / (int(row["_jobs"] or 0) or 1),
    )
