"""Means of what jobs have of a measure: protected totals over protected counts, both of which are published."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, cast

import numpy as np
import pyarrow as pa

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, Method, PublishedFigures
from sfumato.privacy.guarantee import EmployerEmployee, caps_together
from sfumato.statistics.column_texts import typical
from sfumato.statistics.fitting import epsilon_of, used_options
from sfumato.statistics.jobs.at_periods import counted, shared_options
from sfumato.statistics.jobs.at_periods import share as of_one
from sfumato.statistics.jobs.mean_of import (
    CERTAINTY,
    JOBS,
    TOTAL,
    MeanOf,
    allows_means,
    beside,
    certain_reach,
    fewest_jobs,
)
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.totals import JobTotals
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.published import Columns
from sfumato.statistics.registry import build
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

COUNT_SHARE = "count_share"
"""The option that says which share of epsilon the count spends."""


@dataclass(frozen=True, kw_only=True)
class JobMeans(JobTotals):
    """Means of a measure of jobs, by attributes of workplaces and workers."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "mean"

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> Question:
        """What a table asks of jobs, given the codes of the attributes."""
        taken = [name for name in (*table.by, *table.where) if name in (TOTAL, JOBS)]
        wrong = {
            f"an attribute called '{taken[0] if taken else ''}'": (bool(taken), "give the attribute another name"),
            'structural_zeros = "implied"': (
                table.structural_zeros == "implied",
                "leave it out: a combination without any establishment is a row without a mean",
            ),
            'unknown_errors = "published"': (table.unknown_errors == "published", "leave it out: all have an error"),
        }
        for found, (is_wrong, do) in wrong.items():
            if is_wrong:
                raise ReleaseError(
                    f"table '{table.name}', mean",
                    expected="a mean of jobs, with the columns `total` and `jobs` that it is made of in every row",
                    found=found,
                    do=do,
                )
        return super().ask(table, data, codelists)

    @classmethod
    def build_method(cls, table: Table, data: Frame, question: Question, *, alpha: Fraction | None) -> Method:
        """The two methods that share the epsilon of a table: of its total, and of its count."""
        name, periods = cls.method_name(table, data), len(question.periods)
        epsilon = of_one(epsilon_of(table, name), periods)
        share = _share(table)
        common: dict[str, Any] = {
            "alpha": alpha if table.protect.alpha is None else table.protect.alpha,
            "worker_cells": question.worker_cells(data),
            "options": shared_options(used_options(table, "form", COUNT_SHARE), periods),
        }
        spent = None if epsilon is None else epsilon * (1 - share)
        total = build(name, epsilon=spent, of_table={"floor": question.cap}, **common)
        jobs = cast(Any, build(name, epsilon=None if epsilon is None else epsilon * share, **common))
        if not allows_means(jobs):
            raise _no_means(table, cast(Fraction, epsilon), share, jobs, cast(Any, total), periods=periods)
        return cast(Method, MeanOf(total=cast(Any, total), jobs=jobs))

    @cached_property
    def guarantee(self) -> EmployerEmployee:
        """For neighbours whose part of the total, and number of jobs, grow alike."""
        whole = super().guarantee
        return replace(whole, caps=caps_together([whole.caps, counted(self.question)]))

    @classmethod
    def why_whole(cls, table: Table, question: Question, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why it is not made in chunks."""
        return "a mean: its total and its count are made beside each other, in one piece"

    @classmethod
    def lists_some(cls, table: Table, data: Any, question: Question) -> bool:  # noqa: ARG003 (other kinds look)
        """Every combination is a row, with a mean or without."""
        return False

    @property
    def lists_structural_zeros(self) -> bool:
        """Always, as rows without a mean."""
        return True

    def questions(self) -> dict[str, Question]:
        """The total, and the number of its jobs."""
        return {TOTAL: self.question, JOBS: replace(self.question, measure=None, cap=None)}

    def counted_together(self, found: Mapping[str, Cells]) -> Cells:
        """The true totals with the true counts beside them."""
        return beside(found[TOTAL], found[JOBS])

    @property
    def mean_of(self) -> MeanOf:
        """The method with its two parts."""
        return cast(MeanOf, self.method)

    @property
    def which_have_one(self) -> str:
        """From how many published jobs on a cell has a mean, in words."""
        jobs, fewest = self.mean_of.jobs, f"means are of {fewest_jobs(self.mean_of.jobs):,} published jobs or more"
        if not isinstance(jobs, VectorPareto):
            return fewest
        return f"{fewest}, and of more than {float(jobs.alpha) * certain_reach(jobs):.0%} of its workplace cell"

    # What is published.

    def rows(self, answer: Cells, agreed: Cells | None = None, *, listed: bool | None = None) -> pa.Table:
        """The table that readers get; where there is no establishment there is no mean."""
        if len(answer) < answer.domain:
            there = np.zeros(answer.domain, dtype=bool)
            there[answer.positions] = True
            whole = answer.everywhere()
            answer = whole.with_column("status", np.where(there, whole["status"], NOT_AVAILABLE))
        return super().rows(answer, agreed, listed=listed)

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (means are never made to agree)
        """The mean with its error and interval, and what it is made of."""
        unit, figures = 10**self.table.decimals, self.shown_figures(answer, answer)
        return {
            "value": self.shown_values(answer) / unit,
            "error": np.round(figures.error, self.table.decimals),
            "low": np.floor(figures.low * unit) / unit,
            "high": np.ceil(figures.high * unit) / unit,
            "status": answer["status"],
            TOTAL: answer["value"],
            JOBS: answer[JOBS],
        }

    def shown_values(self, shown: Cells) -> Integers:
        """The means as readers get them, in parts of the unit; 0 where there is none."""
        jobs = np.where(shown["status"] == 0, shown[JOBS], 1)
        mean = np.where(shown["status"] == 0, shown["value"] / jobs, 0.0)
        found: Integers = np.rint(mean * 10**self.table.decimals).astype(np.int64)
        return found

    def expected_errors(self, counted: Cells) -> Floats:
        """How far means are off on average, in parts of the unit: confidential."""
        found: Floats = self.mean_of.expected_error(counted) * 10**self.table.decimals
        return found

    def shown_figures(self, answer: Cells, shown: Cells) -> PublishedFigures:  # noqa: ARG002
        """The error figures of the means."""
        return self.mean_of.published_figures(answer, CONFIDENCE)

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: the true mean, in parts of the unit."""
        mean = counted[TOTAL] / np.maximum(counted[JOBS], 1)
        return counted.with_column("count", np.rint(mean * 10**self.table.decimals).astype(np.int64))

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:
        """The interval as it is published, in parts of the unit."""
        unit, figures = 10**self.table.decimals, self.shown_figures(answer, shown)
        return figures.low * unit, figures.high * unit

    @property
    def is_additive(self) -> bool:
        """Means do not add up."""
        return False

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "convergence_ratio"})

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        cut = f"{self.one_job:,} {self.unit_words}"
        return super().column_texts(plan) | {
            "value": f"mean: `total` over `jobs`; a job has at most {cut} in it. Empty where `jobs` is not above 0 "
            f"with a certainty of {CERTAINTY:.1%}: {self.which_have_one}",
            "error": "estimate of the mean absolute error of the mean if one establishment had all jobs of the cell",
            "low": f"least true mean, so cut, that both are consistent with, about {CONFIDENCE:.0%} confidence",
            "high": f"greatest true mean, so cut, that both are consistent with, about {CONFIDENCE:.0%} confidence",
            TOTAL: f"protected total. {typical(self.mean_of.total.planned_error(), self.unit_words, self.unit_words)}",
            JOBS: f"protected number of jobs. {typical(self.mean_of.jobs.planned_error())}",
        }

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:  # noqa: ARG002 (other kinds look at them)
        """What is known of combinations without an establishment."""
        return "listed: a combination without any establishment has a row without a mean"

    def design(self) -> dict[str, Any]:
        """What the total and the count spend."""
        spent = {TOTAL: self.mean_of.total.epsilon, JOBS: self.mean_of.jobs.epsilon}
        return {"spent_on": {name: float(epsilon) for name, epsilon in spent.items()}}

    def expected_error(self) -> tuple[str, str]:
        """How far totals and counts are typically off: how far a mean is depends on how many jobs there are."""
        total, jobs = self.mean_of.total.planned_error(), self.mean_of.jobs.planned_error()
        small = f"{total.in_a_small_cell} {self.question.unit} over jobs ± {jobs.in_a_small_cell}"
        return small, f"{total.in_a_large_cell}, over jobs ± {jobs.share:.1%}"

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        parts = self.mean_of
        return (
            f"{self.what_was_done()}{self.about_jobs} The number of jobs was protected in the same way. Means are "
            "quotients of the two, which are published beside them and spend epsilon = "
            f"{float(parts.total.epsilon):g} and {float(parts.jobs.epsilon):g}. There is no mean where the number of "
            f"jobs is not above 0 with a certainty of {CERTAINTY:.1%}: {self.which_have_one}. "
            "Totals and numbers of jobs are right on average, but for what was cut off; their quotients are not "
            "exactly."
        )

    @property
    def done_to_totals(self) -> str:
        """What the method does to totals, to numbers of which kind and in which unit."""
        return self.mean_of.total.done

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (other kinds look at it)
        """How to read the error figures of means."""
        return [
            "Of means, `low` and `high` enclose those that both published numbers, total and jobs, are consistent with "
            "(Fieller's interval), if one establishment had all jobs of the cell: they hold the true mean of values "
            f"after the cut in about {CONFIDENCE:.0%} of cases there, and in more elsewhere. That is so of cells that "
            "truly have as many jobs as a mean needs. A cell with fewer has a mean only where its number of jobs came "
            "out high by chance, in at most one of a thousand cases if it has no jobs, and nothing is claimed of its "
            "interval. `error` is an estimate of the mean absolute error, made in the same way."
        ]


def _no_means(
    table: Table, epsilon: Fraction, share: Fraction, jobs: VectorPareto, total: VectorPareto, *, periods: int
) -> ReleaseError:
    """Why a table would have no mean whatever the data are, and what is needed at least; `epsilon` is of a period."""
    least = _least_epsilon(jobs)
    whole = _rounded_up(max(periods, 1) * least / share)
    do = f"write epsilon = {whole}, or have fewer codes of workers in `by`"
    needed = _rounded_up(least / epsilon)
    try:
        possible = float(needed) < 1 and bool(replace(total, epsilon=epsilon * (1 - Fraction(needed))).calibration)
    except ReleaseError:
        possible = False
    if possible:
        do = f"write {COUNT_SHARE} = {needed}, or epsilon = {whole}, or have fewer codes of workers in `by`"
    return ReleaseError(
        f"table '{table.name}', mean",
        expected=f"a number of jobs that spends epsilon = {_rounded_up(least)} or more: else none is above 0 for "
        "certain, however many jobs there are, and no cell can have a mean",
        found=f"{_rounded_up(jobs.epsilon)}: epsilon = {float(epsilon):g}"
        f"{' in each period' if periods > 1 else ''}, of which the number of jobs spends {float(share):.0%}",
        do=do,
    )


def _least_epsilon(jobs: VectorPareto) -> Fraction:
    """The least that a number of jobs has to spend so that there can be means, up to a hundredth."""
    low, high = jobs.epsilon, 2 * jobs.epsilon
    while not allows_means(replace(jobs, epsilon=high)):
        low, high = high, 2 * high
    while high - low > Fraction(1, 100):
        middle = ((low + high) / 2).limit_denominator(10**6)
        low, high = (low, middle) if allows_means(replace(jobs, epsilon=middle)) else (middle, high)
    return high


def _rounded_up(number: Fraction) -> str:
    """A number in hundredths, and none that is smaller."""
    return f"{ceil(number * 100) / 100:g}"


def _share(table: Table) -> Fraction:
    """Which share of epsilon the count spends."""
    said = table.protect.options.get(COUNT_SHARE, Fraction(1, 2))
    try:
        share = Fraction(str(said))
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise ReleaseError(
            f"table '{table.name}', {COUNT_SHARE}",
            expected="a share of epsilon between 0 and 1, which the number of jobs spends",
            found=repr(said),
            do="write 0.5, say",
        )
    return share
