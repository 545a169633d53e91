"""What is published of a table: its rows, with error figures made from published numbers only, and its description."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.agree.agreed_errors import figures_after
from sfumato.agree.composite import COMPOSITE, COMPOSITE_ERROR, HUNDREDTHS
from sfumato.agree.largest import largest_of
from sfumato.agree.published import MEASURED, described_weights
from sfumato.agree.reconcile import nonnegative
from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data
from sfumato.keys import Secret
from sfumato.measures.attacks import JointFindings
from sfumato.measures.views import Strata
from sfumato.method import (
    CONFIDENCE,
    LARGEST,
    NOT_AVAILABLE,
    SCALE,
    SUPPRESSED,
    AddsUp,
    Biased,
    PublishedFigures,
    bought_steps,
    public_parameters,
    published_figures,
)
from sfumato.privacy.answers import AnswerChunks
from sfumato.privacy.blocks import EVERYTHING, Block
from sfumato.statistic import Busy, TableStatistic
from sfumato.statistics.column_texts import COLUMNS, ERROR_AGREED, ERROR_BOUGHT, ERROR_WITHIN
from sfumato.statistics.panel.indicators import NAME
from sfumato.statistics.row_files import as_arrow, at_period, csv_text, laid_out, parquet
from sfumato.statistics.table import LISTED_CELLS, Table
from sfumato.surroundings import Surroundings, describe_dimension, describe_time

Columns = dict[str, NDArray[Any]]
_PIECE = 100_000
"""Rows of text that are written at a time."""


@dataclass(frozen=True, kw_only=True)
class PublishedTable(TableStatistic):
    """A table as readers get it; each kind says which columns it has."""

    section: Table
    sparse: ClassVar[bool] = False
    """Whether only cells with something to list are made, so that there may be very many others."""
    relative: ClassVar[bool] = False
    """Whether its values are rates, of which a share says little."""

    @classmethod
    def lists_some(cls, table: Table, data: Any, question: Any) -> bool:  # noqa: ARG003 (some kinds look at them)
        """Whether cells with nothing to list are not made, so that combinations of codes may be very many."""
        return cls.sparse

    @property
    def is_unbiased(self) -> bool:
        """Whether sums of its published values are right on average."""
        return not isinstance(self.method, Biased) or self.method.unbiased

    @property
    def counts_jobs_formally(self) -> bool:
        """Whether its values are counts of jobs with noise that a guarantee is about, one for every cell."""
        return False

    @property
    def spends(self) -> Fraction:
        """The epsilon of the whole table; 0 without a guarantee."""
        bound = self.guarantee.bound
        return Fraction(0) if bound is None else bound.epsilon

    @property
    def is_covered(self) -> bool:
        """Whether a guarantee is about every number that is published of it."""
        return self.guarantee.bound is not None

    @property
    def why_not_reconciled(self) -> str | None:
        """Why it may not be made to agree with others, as words that follow "because"; None when it may."""
        if self.table.statistic != "count":
            return "it is no table of counts"
        if self.sparse:
            return "it lists only values from a threshold on, and what it does not list would be missing in sums"
        return None if self.is_unbiased else "its values are not right on average and would pull others from the truth"

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are published as rows that are exactly 0."""
        chosen = self.table.structural_zeros
        return chosen == "listed" or (chosen == "auto" and self.cells <= LISTED_CELLS)

    @property
    def table(self) -> Table:
        """What the release file says of it."""
        return self.section

    @classmethod
    def block_of(cls, question: Any, data: Any) -> Block:  # noqa: ARG003 (of jobs, a register tells)
        """The establishments that a table is about: all, unless public codes tell which."""
        return EVERYTHING

    @classmethod
    def weighing(cls, batch: Mapping[str, Self], data: Any) -> dict[str, Any]:  # noqa: ARG003 (some kinds have weights)
        """What the weights of the data mean for the noise of each table that bounds them: confidential."""
        return {}

    @classmethod
    def cut(cls, batch: Mapping[str, Self], data: Any) -> dict[str, Any]:  # noqa: ARG003 (some kinds cut)
        """What the caps of measures take off totals, by measure: confidential."""
        return {}

    @classmethod
    def foreseen(cls, batch: Any, known: Any, secret: Secret | None, busy: Busy, last: Any) -> dict[str, Any]:  # noqa: ARG003
        """What would be withheld of tables that are decided together, by their true numbers: confidential."""
        return {}

    # Rows.

    def rows(self, answer: Cells, agreed: Cells | None = None, *, listed: bool | None = None) -> pa.Table:
        """Lay out a stored answer as the table that readers get.

        `error`, `low` and `high` follow from protected values and public parameters: the true scale of noise is secret.
        `agreed` has the values after tables were made to agree, with their errors; figures are widened where they would
        contradict these. `listed` says whether combinations without any establishment are rows, as the plan has it.
        """
        listed = self.lists_structural_zeros if listed is None else listed
        if listed and not self.table.establishments and len(answer) < answer.domain:
            return self.rows(self._alike(answer), None if agreed is None else self._alike(agreed), listed=True)
        columns = self.columns_of(answer, agreed if agreed is not None else answer)
        added = {} if agreed is None else agreed.columns
        columns |= {name: added[name] for name in (MEASURED, COMPOSITE) if name in added}
        if COMPOSITE_ERROR in added:
            columns[COMPOSITE_ERROR] = added[COMPOSITE_ERROR] / HUNDREDTHS
        columns |= {name: answer[name] for name in (SCALE,) if name in answer.columns}
        if "establishments" in answer.columns and self.table.establishments:
            columns["establishments"] = answer["establishments"]
        positions = answer.positions
        if listed and len(answer) < answer.domain:
            # Nobody can work where no establishment is: these rows are exact, and their zeros cost nothing.
            positions = np.arange(answer.domain, dtype=np.int64)
            columns = {name: laid_out(column, answer) for name, column in columns.items()}
            if SCALE in columns:  # which was bought of listed cells, and of no others
                unbought = np.full(answer.domain, np.nan)
                unbought[answer.positions] = answer[SCALE]
                columns[SCALE] = unbought
        elif not listed and "establishments" in answer.columns and not self.table.establishments:
            kept = self._with_something(answer, columns)
            positions, columns = positions[kept], {name: column[kept] for name, column in columns.items()}
        chosen = self.chosen_rows(positions)
        if chosen is not None:
            positions, columns = positions[chosen], {name: column[chosen] for name, column in columns.items()}
        return as_arrow(answer, positions, columns)

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """The published columns of an answer, `shown` being its values after tables were made to agree."""
        figures = self.shown_figures(answer, shown)
        return {
            "value": self.shown_values(shown),
            "error": np.round(figures.error, 2),
            "low": figures.low,
            "high": figures.high,
        }

    def chosen_rows(self, positions: Integers) -> Flags | None:  # noqa: ARG002 (some kinds choose)
        """Which rows are published, where not all are."""
        return None

    def shown_values(self, shown: Cells) -> Integers:
        """The values as readers get them: raised to 0 where the table asks for it."""
        return nonnegative(shown)["value"] if self.table.nonnegative else shown["value"]

    def shown_figures(self, answer: Cells, shown: Cells) -> PublishedFigures:
        """The error figures of the answer as they stand beside the values that are shown."""
        before = published_figures(self.method, answer, CONFIDENCE, largest_of(shown)).beside(answer["value"])
        return figures_after(shown, before).beside(self.shown_values(shown))

    def _alike(self, cells: Cells) -> Cells:
        """All combinations: those without an establishment look like any other 0, and are as little available."""
        whole = cells.everywhere()
        if "status" not in cells.columns:
            return whole
        sizes = tuple(map(len, cells.dimensions))
        lasting = [at for at, d in enumerate(cells.dimensions) if d.name not in (self.period, NAME)]
        missing = (cells["status"] == NOT_AVAILABLE).astype(np.int64)
        kind = np.zeros(cells.domain, dtype=np.int64)
        kind[cells.positions] = 1 + missing
        most = kind.reshape(sizes)
        # A period and an indicator that no cell has are available nowhere.
        known = np.any(most == 1, axis=tuple(lasting), keepdims=True)
        nowhere = np.broadcast_to(~known, sizes).reshape(-1)
        return whole.with_column("status", np.where(nowhere, NOT_AVAILABLE, whole["status"]))

    def _with_something(self, answer: Cells, columns: Columns) -> Flags:
        """Which rows are of workplace cells with something published or suppressed; others may have no employer."""
        block = np.zeros(len(answer), dtype=np.int64)
        for dimension in answer.dimensions:
            if dimension.public and dimension.name not in (self.period, NAME):
                block = block * len(dimension) + answer.codes(dimension.name)
        some = columns["value"] != 0
        if "status" in columns:
            some |= columns["status"] == SUPPRESSED
        return np.isin(block, np.unique(block[some]))

    def files(
        self, answer: Cells, agreed: Cells | None = None, when: tuple[str, str] | None = None
    ) -> dict[str, list[Callable[[], Any]]]:
        """The files of the published table, each in pieces that can be made side by side."""
        table = at_period(self.rows(answer, agreed), when)
        pieces = range(0, len(table) or 1, _PIECE)
        return {
            f"tables/{self.name}.parquet": [partial(parquet, table)],
            f"tables/{self.name}.csv": [partial(csv_text, table.slice(at, _PIECE), header=at == 0) for at in pieces],
        }

    # Tables that add up may lie in finer ones, and are then published as sums of these.

    def lies_in(self, other: "PublishedTable") -> bool:  # noqa: ARG002 (some kinds add up)
        """Whether the cells of another table are parts of this one's, and add up to them."""
        return False

    def summed(self, own: Cells, finer: Any, parts: Cells) -> Cells:  # noqa: ARG002 (some kinds add up)
        """The answer as sums of a finer one."""
        return own

    # What is assessed, confidentially.

    @property
    def one_job(self) -> int:
        """What one job adds to a cell at most."""
        return 1

    @property
    def of_records(self) -> bool:
        """Whether it is about records, and not about jobs."""
        return self.table.of_records

    @property
    def estimates(self) -> bool:
        """Whether its values are estimates for groups, which are assessed by the size of the group."""
        return False

    def to_assess(self) -> Self:
        """The same table with all that an assessment of it counts."""
        return self

    def aligned(self, counted: Any, answer: Cells) -> tuple[Cells, Cells]:
        """The true cells and the answer, about the same cells."""
        return counted, answer

    def listing(self, counted: Any, answer: Cells) -> Any:  # noqa: ARG002 (sparse tables have something to say)
        """What is listed and what is lost, of tables that list only some of their cells."""
        return None

    def expected_errors(self, counted: Cells) -> Floats:
        """How far its values are off on average, by the true cells: confidential."""
        return self.method.expected_error(counted)

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: what would be published without protection."""
        return counted

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:
        """The interval as it is published: by the error figures, or by the method itself, or not at all."""
        figures = self.shown_figures(answer, shown)
        # A keyed method that tells no error tells how small a count can be, which is no interval of any confidence.
        low = np.where(np.isnan(figures.error), np.nan, figures.low)
        return low, np.where(np.isnan(figures.high), np.inf, figures.high)

    @property
    def kind_of_cells(self) -> str:
        """What its cells are, in the words of the report."""
        return "cells"

    @property
    def attacked(self) -> str:
        """Whom attacks are on, in the words of the report."""
        return "establishments that have a workplace cell to themselves"

    def attacks(self, counted: Cells, answer: Cells, secret: Secret | None) -> tuple[Any, ...]:  # noqa: ARG002
        """The attacks on it that need all its cells at once."""
        return ()

    def network(self, counted: Cells, answer: Cells) -> Any:  # noqa: ARG002 (some kinds are graphs)
        """How the graph between classes that it is compares with the true one; None where it is none."""
        return None

    def strata(
        self,
        attribute: str,  # noqa: ARG002 (some kinds look at them)
        codelist: Codelist,  # noqa: ARG002
        data: Any,  # noqa: ARG002
        counted: Cells,  # noqa: ARG002
    ) -> Strata | None:
        """The class of a public attribute that every cell belongs to; None where that is not known of such a table."""
        return None

    @classmethod
    def together(cls, batch: Any, earlier: Any, change: float, releases: Any = ()) -> JointFindings | None:  # noqa: ARG003
        """What all tables of a kind tell, of some releases, and those of an earlier period: confidential."""
        return None

    def growth(self, counted: Cells, answer: Cells) -> tuple[Any, ...]:  # noqa: ARG002 (some kinds know)
        """How far growth from period to period is off, where that can be told: confidential."""
        return ()

    def cell_risks(self, counted: Cells, answer: Cells) -> dict[str, Floats]:  # noqa: ARG002 (some kinds know)
        """The probability of attacks cell by cell, where it can be computed: confidential."""
        return {}

    @classmethod
    def clipped(cls, batch: Mapping[str, Self], data: Any) -> dict[str, int]:  # noqa: ARG003 (some kinds clip)
        """How many records count with a bound instead of their value, by measure: confidential."""
        return {}

    # Facts for machines.

    def describe(self, plan: Surroundings, chunks: AnswerChunks | None = None) -> dict[str, Any]:
        """The table in the structure of a bundle; `chunks` is its answer where it is published in chunks."""
        table = self.table
        listed = self.lists_structural_zeros and chunks is None
        return {
            "name": self.name,
            "title": self.title,
            "statistic": {table.statistic: _plain(getattr(table, table.statistic))},
            "unit": self.unit(plan),
            **self._measure(plan.release.data),
            "dimensions": [*describe_time(plan), *(describe_dimension(plan, dimension) for dimension in self.by)],
            **self._flow(plan.release.data),
            **self.design(),
            "where": {name: list(codes) for name, codes in table.where.items()},
            "columns": self.column_texts(plan),
            "method": self.method.name,
            "guarantee": self.guarantee.described(),
            "structural_zeros": self.structural_zeros(plan, listed=listed),
            "additive": self.is_additive,
            "listed_once": self.is_listed_once,
            "totals": table.totals,
            "nonnegative": table.nonnegative,
            "reconciled": self.name in plan.reconciled,
            **({"weights": self._weights(plan)} if self.name in plan.reconciled else {}),
            **({"composite": rule.described()} if (rule := plan.composites.get(self.name)) else {}),
            **({"largest_from": list(finer)} if (finer := plan.finer_tables.get(self.name)) else {}),
            **({"bought_steps": steps} if (steps := bought_steps(self.method)) else {}),
            **({"largest_by": sizes} if (sizes := self._public_sizes(plan)) else {}),
            **({"not_reconciled": why} if (why := plan.not_reconciled.get(self.name)) else {}),
            "files": self._files(chunks),
        }

    def _public_sizes(self, plan: Surroundings) -> list[str]:
        """The attributes by which everyone knows how large establishments can be, where that makes errors smaller."""
        named = [*(one.name for one in self.by), *self.where] if self.counts_jobs_formally else []
        return [name for name in named if plan.most_workers(name)]

    def _weights(self, plan: Surroundings) -> dict[str, Any]:
        """What the weights are made of with which it was made to agree with others."""
        return described_weights(self, [table for table in plan.tables if table.name in plan.reconciled], plan)

    def _flow(self, data: Data) -> dict[str, Any]:
        """Which dimensions are where something comes from and where it goes to, of tables that have both."""
        names = [dimension.name for dimension in self.by]
        ends = {name: data.attributes[name].origin_of for name in names if name in data.attributes}
        return next(({"flow": {"origin": one, "destination": end}} for one, end in ends.items() if end in names), {})

    def _files(self, chunks: AnswerChunks | None) -> dict[str, str | int]:
        """Where the rows are: in one file of each kind, or in a folder of so many Parquet files."""
        if chunks is None:
            return {"parquet": f"tables/{self.name}.parquet", "csv": f"tables/{self.name}.csv"}
        return {"parquet": f"tables/{self.name}", "parts": len(chunks), "rows": chunks.rows}

    def unit(self, plan: Surroundings) -> str:
        """What the values are numbers of: the unit of the measure, or whom records with weights stand for."""
        described = plan.release.data.measures.get(self.table.measure or "")
        if described is not None and described.unit:
            return str(described.unit)
        if self.table.count == "records" and plan.release.records.records.weight is not None:
            return str(plan.release.about.population)
        return self.table.unit

    def _measure(self, data: Data) -> dict[str, Any]:
        """The measure that is added up or described, with its label, where there is one."""
        name = self.table.measure
        described = data.measures.get(name or "")
        return {} if described is None else {"measure": {"name": name, "label": described.label or name}}

    def design(self) -> dict[str, Any]:
        """What else is public of how it was made."""
        return {}

    def noise_facts(self, workplace: list[str]) -> dict[str, Any]:
        """What sums of its cells are told by: the parameters of the noise, and which dimensions are of workplaces."""
        if not isinstance(self.method, AddsUp) or not self.is_unbiased:
            return {}
        return {"noise": {"parameters": public_parameters(self.method), "workplace": workplace}}

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table never has."""
        return frozenset()

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        lacking = set(self.lacking_columns)
        if plan.release.data.joined:
            lacking.add("establishments")
        if not self.table.establishments:
            lacking |= {"establishments", "convergence_ratio"}  # jobs for each establishment tell their number
        if self.name not in plan.reconciled:
            lacking.add(MEASURED)
        if self.name not in plan.composites:
            lacking |= {COMPOSITE, COMPOSITE_ERROR}
        lacking |= set() if (steps := bought_steps(self.method)) else {SCALE}
        told = COLUMNS | ({"error": ERROR_WITHIN} if self.name in plan.finer_tables else {})
        told |= {"error": ERROR_BOUGHT} if steps else {}
        told |= {"error": ERROR_AGREED} if self.name in plan.reconciled else {}
        return {name: text for name, text in told.items() if name not in lacking}

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:  # noqa: ARG002 (some kinds look at them)
        """What is known of combinations that are not listed."""
        return "none known: every combination of codes is protected and listed"

    def made_labels(self, data: Data) -> dict[str, str]:  # noqa: ARG002 (some kinds look at them)
        """The words for dimensions that are no attributes."""
        return {}

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:  # noqa: ARG002
        """The codelists of dimensions that are no attributes, or have more codes than these."""
        return {}

    def end_attributes(self) -> dict[str, str]:
        """The attribute that each end of a pair has the codes of, by the name of its dimension."""
        return self.table.end_names()

    def as_asked_before(self, build_again: Callable[[Any], Any]) -> "PublishedTable | None":  # noqa: ARG002
        """The table as version 0.1.0 asked for it, where that was another question; `build_again` makes its method."""
        return None

    @property
    def is_additive(self) -> bool:
        """Whether a sum of its values is a number of the same things: not so of means, percentiles and indicators."""
        return True

    @property
    def is_listed_once(self) -> bool:
        """Whether it lists pairs without a direction, each once."""
        return False

    # Words for the statement.

    def what_was_done(self) -> str:
        """The table and its method, in words."""
        return f"**{self.table.title or self.name}** (`{self.name}`): {self.method.description}."

    def has_none(self, plan: Surroundings) -> str:
        """That it has no formal guarantee, where others have one."""
        if self.guarantee.bound is not None or self.guarantee == plan.guarantee:
            return ""
        return f" It has no formal guarantee: {self.guarantee.statement}."

    def expected_error(self) -> tuple[str, str]:
        """How far values are typically off, in short, in small cells and in large ones."""
        error = self.method.planned_error()
        if error.share is None:
            return "secret", "secret"
        return f"{error.in_a_small_cell} {self.counted_in}", error.in_a_large_cell

    @property
    def counted_in(self) -> str:
        """What its errors are numbers of, in short."""
        return "jobs"

    @property
    def large_from(self) -> tuple[int, str] | None:
        """From how many on, and of what, an establishment makes errors grow with it; None where none does."""
        error = self.method.planned_error()
        return (error.floor_size, "workers") if error.share and error.of == LARGEST else None


def number(value: Fraction) -> int | float:
    """A parameter as JSON writes it."""
    return int(value) if value.denominator == 1 else float(value)


def _plain(value: Any) -> Any:
    """What a section says, as JSON writes it."""
    if hasattr(value, "said"):
        return {name: _plain(part) for name, part in value.said().items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return number(value) if isinstance(value, Fraction) else value
