"""Sparse counts of jobs: very many worker cells, such as places of residence, of which only the larger are listed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self, cast

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.keys import Secret
from sfumato.method import CONFIDENCE
from sfumato.noise.randomness import OperatingSystem
from sfumato.privacy.meaning import Comparison
from sfumato.statistics.column_texts import typical
from sfumato.statistics.jobs.assess_sparse import SparseAssessment, assess_sparse
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.sparse_laplace import SparseLaplace, Workforces
from sfumato.statistics.jobs.statistic import SPARSE, JobCounts
from sfumato.statistics.jobs.tabulate import workforces
from sfumato.statistics.published import Columns
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

MOST_BLOCKS = 50_000_000
"""So many workplace cells, and more, do not fit into memory where each has a row."""
THRESHOLD = "threshold"
"""The column with the least value that is listed in a workplace cell."""


@dataclass(frozen=True, kw_only=True)
class SparseCounts(JobCounts):
    """Jobs counted by attributes of workplaces and workers, in cells too many to be listed all."""

    sparse: ClassVar[bool] = True

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "count" and table.protect.method == SPARSE

    @classmethod
    def method_name(cls, table: Table, data: Frame) -> str:  # noqa: ARG003 (other kinds look at them)
        """The method as it is used: also where workers are filtered, as it looks at whole workforces anyway."""
        return table.protect.method

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> Question:
        """What a table asks of jobs, given the codes of the attributes."""
        taken = THRESHOLD in (*table.by, *table.where)
        wrong = {
            'structural_zeros = "listed"': (
                table.structural_zeros == "listed",
                "leave it out: what has no row is published as 0, and there may be very many such combinations",
            ),
            "nonnegative = true": (table.nonnegative, "leave it out: no listed value is below 0"),
            f"an attribute called '{THRESHOLD}'": (taken, "give the attribute another name"),
        }
        for found, (is_wrong, do) in wrong.items():
            if is_wrong:
                raise ReleaseError(
                    f"table '{table.name}', method '{SPARSE}'",
                    expected=f"a table that lists values from a threshold on, which its column `{THRESHOLD}` tells",
                    found=found,
                    do=do,
                )
        question = super().ask(table, data, codelists)
        if data.joined or question.every_cell:
            _refuse_many_blocks(table, question)
        return question

    @classmethod
    def why_whole(cls, table: Table, question: Question, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why it is not made in chunks."""
        return f"the method {SPARSE}: only what it lists is made, in one piece"

    @property
    def protection(self) -> SparseLaplace:
        """The method with its parameters."""
        return cast(SparseLaplace, self.method)

    @property
    def lists_structural_zeros(self) -> bool:
        """Never: what has no row is published as 0."""
        return False

    @classmethod
    def tabulate(  # type: ignore[override]  # its method sees workforces, and not cells
        cls,
        batch: Mapping[str, Self],
        data: OpenJobs,
        secret: Secret | None,  # noqa: ARG003 (other kinds need it)
    ) -> Iterator[tuple[str, Workforces]]:
        """The workforces of every table: one scan of the jobs for all."""
        yield from workforces(data.frame, data.tables, {name: one.question for name, one in batch.items()})

    def answer(self, counted: Workforces, secret: Secret | None) -> Cells:  # type: ignore[override]  # noqa: ARG002
        """The listed cells, with the bound of the largest establishment of their workplace cell."""
        return self.protection.protect(counted, OperatingSystem())

    # What is published.

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """The published columns, with the least value that is listed."""
        return {**super().columns_of(answer, shown), THRESHOLD: self.protection.thresholds(answer["cap"])}

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        texts = {
            **super().column_texts(plan),
            "error": "mean absolute value of the noise; where the value is 0, the threshold",
            "high": f"greatest true value the published one is consistent with, {CONFIDENCE:.0%} confidence",
            "establishments": "number of establishments of the workplace cell, which is public",
            THRESHOLD: "least value that is listed in this workplace cell: where there is no row, or the value is 0, "
            "the value with noise is below it",
        }
        return {name: text for name, text in texts.items() if name not in self._without(plan)}

    def design(self) -> dict[str, Any]:
        """That which rows there are depends on chance, how likely an empty cell is listed, and what has a threshold."""
        workplace = [dimension.name for dimension in self.by if dimension.public]
        return {"sparse": True, "false_rate": float(self.protection.false_rate), "workplace": workplace}

    @property
    def is_additive(self) -> bool:
        """Sums of what is listed miss all that is not."""
        return False

    def _without(self, plan: Surroundings) -> frozenset[str]:
        silent = plan.release.data.joined or self.question.every_cell
        return frozenset({"establishments"}) if silent else frozenset()

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:  # noqa: ARG002 (other kinds look at them)
        """What is known of combinations that are not listed."""
        return (
            "implied: a combination of codes without a row is published as 0. Its value with noise is below the "
            "threshold that the rows of its workplace cell tell; a workplace cell without any row has no establishment"
        )

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at them)
        """What was done to its numbers."""
        return (
            f"{self.what_was_done()} {typical(self.method.planned_error())} A combination without a row is published "
            "as 0: it is below the threshold of its workplace cell, which every row of that cell tells, and need not "
            "be empty. Published numbers are therefore not right on average, and sums of many neither."
        )

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is public of establishments, unless other counts of jobs say it."""
        return [] if JobCounts in plan.kinds else super().left_open(plan)

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:
        """What is bounded of establishments, unless other counts of jobs say it."""
        return () if JobCounts in plan.kinds else super().comparisons(plan)

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (other kinds look at it)
        """How to read the error figures of sparse counts."""
        return [
            "In tables of which only values from a threshold on are listed the scale of the noise is public: `error` "
            "is the mean absolute value of the noise, and `low` and `high` enclose the true value with a probability "
            f"of at least {CONFIDENCE:.0%}, of combinations without a row too, which have those of a value of 0. "
            "`low` is 0 wherever the noise alone may well have reached the value."
        ]

    # What is assessed, confidentially.

    def aligned(self, counted: Workforces, answer: Cells) -> tuple[Cells, Cells]:
        """The true cells and the answer, about all cells that hold a job or are listed: others are 0 in both."""
        true = counted.counts()
        positions = np.union1d(true.positions, answer.positions)
        columns = {name: np.zeros_like(positions) for name in true.columns}
        for name, column in columns.items():
            column[np.searchsorted(positions, true.positions)] = true[name]
        value = np.zeros_like(positions)
        value[np.searchsorted(positions, answer.positions)] = answer["value"]
        both = Cells(dimensions=answer.dimensions, positions=positions)
        both = both.with_column("cap", self._caps_at(both, answer))
        return replace(both, columns={**both.columns, **columns}), both.with_column("value", value)

    @staticmethod
    def blocks_of(cells: Cells) -> Integers:
        """The workplace cell of every cell."""
        block = np.zeros(len(cells), dtype=np.int64)
        for dimension in cells.dimensions:
            if dimension.public:
                block = block * len(dimension) + cells.codes(dimension.name)
        return block

    def _caps_at(self, cells: Cells, answer: Cells) -> Integers:
        """The cap of the workplace cell of each of these cells, every one of which has a row in the answer."""
        known, first = np.unique(self.blocks_of(answer), return_index=True)
        caps: Integers = answer["cap"][first[np.searchsorted(known, self.blocks_of(cells))]]
        return caps

    def listing(self, counted: Workforces, answer: Cells) -> SparseAssessment:
        """What is listed without a job, and what is lost."""
        return assess_sparse(self, counted, answer)


def _refuse_many_blocks(table: Table, question: Question) -> None:
    """Refuse what would need too much memory where nothing tells which workplace cells have an establishment."""
    public = [dimension for dimension in question.by if dimension.public]
    blocks = prod(map(len, public))
    if blocks >= MOST_BLOCKS:
        raise ReleaseError(
            f"table '{table.name}', method '{SPARSE}'",
            expected=f"fewer than {MOST_BLOCKS:,} workplace cells: where establishments are not told, each has a row",
            found=f"{blocks:,}: {' × '.join(f'{len(d):,} {d.name}' for d in public)}",
            do="use fewer or coarser attributes of workplaces, or give a table of workplaces and tell establishments",
        )
