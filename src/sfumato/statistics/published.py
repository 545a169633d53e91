"""What is published of a table: its rows, with error figures made from published numbers only, and its description."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.agree.reconcile import nonnegative
from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, places
from sfumato.frame import Codelist, Data
from sfumato.keys import Secret
from sfumato.measures.views import Strata
from sfumato.method import (
    HIDDEN,
    NOT_AVAILABLE,
    STATUSES,
    SUPPRESSED,
    Biased,
    PlannedError,
    PublishedFigures,
    published_figures,
)
from sfumato.privacy.answers import AnswerChunks
from sfumato.statistic import Surroundings, TableStatistic, describe_dimension
from sfumato.statistics.panel.indicators import NAME
from sfumato.statistics.table import LISTED_CELLS, Table

CONFIDENCE = 0.9
"""How often the published interval holds the true value, at the least."""
COLUMNS = {
    "value": "protected value",
    "error": "upper estimate of the error: its mean absolute value if all jobs of the cell were in one establishment; "
    "of a negative value at least the value without its sign",
    "low": f"least true value the published one is consistent with, {CONFIDENCE:.0%} confidence",
    "high": f"greatest true value the published one is consistent with, {CONFIDENCE:.0%} confidence; empty: no limit",
    "rse": "relative standard error in percent, of sampling and perturbation together, rounded up to a coarse scale; "
    "empty: above the scale",
    "status": f"empty, or why a value is missing, made up or a bound: {', '.join(filter(None, STATUSES))}",
    "convergence_ratio": "published jobs behind the value for each employer of the cell in the register; above 1 the "
    "distortions of employers average out more slowly than with as many independent observations",
    "establishments": "number of establishments, which is public; 0 means that value is exactly 0",
}
"""What the columns of tables say."""
NOISED = ("error", "low", "high")
"""The error figures of tables with noise."""
ESTABLISHMENTS_KNOWN = {
    (True, True): "listed: a row with establishments = 0 has the value 0, exactly",
    (True, False): "implied: a combination of codes without a row has no establishment and the value 0, exactly",
    (False, True): "listed: a combination without any establishment is a row like others with the value 0",
    (False, False): "implied: a combination of codes without a row has the value 0, with or without an establishment",
}
"""What is known of combinations without an establishment: by whether their number is told, and whether listed."""
Columns = dict[str, NDArray[Any]]
_PIECE = 100_000
"""Rows of text that are written at a time."""
_THE_CELLS = "the cell's"


@dataclass(frozen=True, kw_only=True)
class PublishedTable(TableStatistic):
    """A table as readers get it; each kind says which columns it has."""

    section: Table
    sparse: ClassVar[bool] = False
    """Whether only cells with something to list are made, so that there may be very many others."""

    @property
    def is_unbiased(self) -> bool:
        """Whether sums of its published values are right on average."""
        return not isinstance(self.method, Biased) or self.method.unbiased

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

    # Rows.

    def rows(self, answer: Cells, agreed: Cells | None = None, *, listed: bool | None = None) -> pa.Table:
        """Lay out a stored answer as the table that readers get.

        The true noise scale depends on the largest establishment and is confidential; `error`, `low` and `high` are
        functions of the protected value and the public parameters. `agreed` has the values after tables were made to
        agree; the figures stay those of the answer, whose noise is the only one that is known, but are widened where
        they would contradict the value that is shown. `listed` says whether combinations without any establishment are
        rows, as the plan has it when not given.
        """
        listed = self.lists_structural_zeros if listed is None else listed
        if listed and not self.table.establishments and len(answer) < answer.domain:
            return self.rows(self._alike(answer), None if agreed is None else self._alike(agreed), listed=True)
        columns = self.columns_of(answer, agreed if agreed is not None else answer)
        if "establishments" in answer.columns and self.table.establishments:
            columns["establishments"] = answer["establishments"]
        positions = answer.positions
        if listed and len(answer) < answer.domain:
            # Nobody can work where no establishment is: these rows are exact, and their zeros cost nothing.
            positions = np.arange(answer.domain, dtype=np.int64)
            columns = {name: _laid_out(column, answer) for name, column in columns.items()}
        elif not listed and "establishments" in answer.columns and not self.table.establishments:
            kept = self._with_something(answer, columns)
            positions, columns = positions[kept], {name: column[kept] for name, column in columns.items()}
        chosen = self.chosen_rows(positions)
        if chosen is not None:
            positions, columns = positions[chosen], {name: column[chosen] for name, column in columns.items()}
        return _arrow(answer, positions, columns)

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
        figures = published_figures(self.method, answer, CONFIDENCE)
        return figures.beside(answer["value"]).beside(self.shown_values(shown))

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

    def files(self, answer: Cells, agreed: Cells | None = None) -> dict[str, list[Callable[[], Any]]]:
        """The files of the published table, each in pieces that can be made side by side."""
        table = self.rows(answer, agreed)
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
    def attacks_together(cls, batch: Mapping[str, tuple[Self, Cells, Cells]]) -> tuple[Any, ...]:  # noqa: ARG003
        """The attacks that need all tables of a kind, each with its true cells and its answer."""
        return ()

    def growth(self, counted: Cells, answer: Cells) -> Any:  # noqa: ARG002 (some kinds know)
        """How far growth from period to period is off, where that can be told: confidential."""
        return None

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
            "unit": self.unit(plan.release.data),
            "dimensions": [describe_dimension(plan, dimension) for dimension in self.by],
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
            **({"not_reconciled": why} if (why := plan.not_reconciled.get(self.name)) else {}),
            "files": self._files(chunks),
        }

    def _flow(self, data: Data) -> dict[str, Any]:
        """Which dimensions are where something comes from and where it goes to, of tables that have both."""
        names = [dimension.name for dimension in self.by]
        ends = {name: data.attributes[name].origin_of for name in names if name in data.attributes}
        found = [{"origin": name, "destination": end} for name, end in ends.items() if end in names]
        return {"flow": found[0]} if found else {}

    def _files(self, chunks: AnswerChunks | None) -> dict[str, str | int]:
        """Where the rows are: in one file of each kind, or in a folder of so many Parquet files."""
        if chunks is None:
            return {"parquet": f"tables/{self.name}.parquet", "csv": f"tables/{self.name}.csv"}
        return {"parquet": f"tables/{self.name}", "parts": len(chunks), "rows": chunks.rows}

    def unit(self, data: Data) -> str:
        """What the values are numbers of, in the words of the measure where there is one."""
        described = data.measures.get(self.table.measure or "")
        return self.table.unit if described is None or not described.unit else described.unit

    def design(self) -> dict[str, Any]:
        """What else is public of how it was made."""
        return {}

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
        return {name: text for name, text in COLUMNS.items() if name not in lacking}

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
        return f"{error.in_a_small_cell} jobs", error.in_a_large_cell


def parquet(table: pa.Table) -> pa.Buffer:
    """A published table as the content of a file."""
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def csv_text(table: pa.Table, *, header: bool = True) -> pa.Buffer:
    """The rows of a table as CSV: codes as they are, quoted only where they must be."""
    plain = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    content = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=header, quoting_style="needed", batch_size=1 << 16)
    pyarrow.csv.write_csv(pa.table(plain), content, options)
    return content.getvalue()


def typical(error: PlannedError) -> str:
    """How far a number is typically off, in words."""
    if error.share is None:
        return "How far a number is typically off is confidential."
    if not error.share:
        return f"The noise is typically {error.in_a_small_cell} jobs."
    return (
        f"Where no establishment of a cell has more than {error.floor_size:,} workers the noise is typically "
        f"{error.in_a_small_cell} jobs; otherwise it is typically {100 * error.share:.3g} % of "
        f"{error.of.replace('its', _THE_CELLS, 1)}."
    )


def number_left_out(tables: Iterable[PublishedTable]) -> str:
    """What is said of tables without the number of establishments whose zeros are not made by noise."""
    names = [f"`{table.name}`" for table in tables if not table.table.establishments and table.tells_establishments]
    if not names:
        return ""
    return (
        f" The number is left out of {', '.join(names)}: a 0 there does not mean that there is no establishment, but a "
        "value above 0 still means that there is one."
    )


def number(value: Fraction) -> int | float:
    """A parameter as JSON writes it."""
    return int(value) if value.denominator == 1 else float(value)


def is_hidden(status: NDArray[Any]) -> Flags:
    """Which cells have no published value."""
    return np.isin(status, HIDDEN)


def _plain(value: Any) -> Any:
    """What a section says, as JSON writes it."""
    if hasattr(value, "said"):
        return {name: _plain(part) for name, part in value.said().items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return number(value) if isinstance(value, Fraction) else value


def _arrow(answer: Cells, positions: Integers, columns: Columns) -> pa.Table:
    arrays: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places(positions, answer.dimensions), strict=True):
        arrays[dimension.name] = pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
    for name, column in columns.items():
        if name == "status":
            arrays[name] = pa.DictionaryArray.from_arrays(column.astype(np.int32), list(STATUSES))
            continue
        hidden = is_hidden(columns["status"]) if name == "value" and "status" in columns else np.isnan(column)
        decimal = name in ("error", "convergence_ratio", "rse") or (
            name != "count" and columns["value"].dtype.kind == "f"
        )
        kind = pa.float64() if decimal else pa.int64()
        arrays[name] = pa.array(column, kind, mask=hidden, safe=False)
    return pa.table(arrays)


def _laid_out(column: NDArray[Any], answer: Cells) -> NDArray[Any]:
    """Spread a column over the whole domain, zero where nothing is listed."""
    whole = np.zeros(answer.domain, dtype=column.dtype)
    whole[answer.positions] = column
    return whole
