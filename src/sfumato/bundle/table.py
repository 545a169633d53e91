"""A published table: codes, protected values, and error figures made from published numbers only."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from sfumato.agree.reconcile import nonnegative
from sfumato.cells import Cells, places
from sfumato.method import HIDDEN, NOT_AVAILABLE, STATUSES, SUPPRESSED
from sfumato.plan import PlannedTable
from sfumato.statistics.jobs.vector import PublishedFigures, published_figures
from sfumato.statistics.panel.indicators import BEHIND, CODES, NAME
from sfumato.statistics.panel.question import IndicatorQuestion
from sfumato.statistics.people.describe import shown_estimates
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.small_samples import NO_ERROR
from sfumato.statistics.totals.top_contributors import UNKNOWN

# A table as text: codes as they are, quoted only where they must be.


def csv_text(table: pa.Table, *, header: bool = True) -> pa.Buffer:
    """The rows of a table as CSV."""
    plain = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    content = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=header, quoting_style="needed", batch_size=1 << 16)
    pyarrow.csv.write_csv(pa.table(plain), content, options)
    return content.getvalue()


CONFIDENCE = 0.9
"""How often the published interval holds the true value, at the least."""

Columns = dict[str, NDArray[Any]]


def published_table(
    planned: PlannedTable, answer: Cells, agreed: Cells | None = None, *, listed: bool | None = None
) -> pa.Table:
    """Lay out a stored answer as the table that readers get.

    The true noise scale depends on the largest establishment and is confidential; `error`, `low` and `high` are
    functions of the protected value and the public parameters. `agreed` has the values after tables were made to agree;
    the figures stay those of the answer, whose noise is the only one that is known, but are widened where they would
    contradict the value that is shown. `listed` says whether combinations
    without any establishment are rows, as the plan has it when not given.
    """
    listed = planned.lists_structural_zeros if listed is None else listed
    shown = agreed if agreed is not None else answer
    if "rse" in answer.columns:
        columns = _perturbed(planned, answer)
    elif isinstance(planned.question, SampleQuestion) and planned.question.at:
        columns = _estimated(planned, answer)
    else:
        columns = _infused(planned, shown) if "status" in answer.columns else _noised(planned, answer, shown)
    if "establishments" in answer.columns and planned.table.establishments:
        columns["establishments"] = answer["establishments"]
    positions = answer.positions
    if listed and len(answer) < answer.domain:
        # Nobody can work where no establishment is: these rows are exact, and their zeros cost nothing.
        positions = np.arange(answer.domain, dtype=np.int64)
        columns = {name: _laid_out(column, answer) for name, column in columns.items()}
        if not planned.table.establishments and "status" in columns:
            columns["status"] = _alike(planned, answer, columns["status"])
    elif not (listed or planned.table.establishments):
        kept = _with_something(planned, answer, columns)
        positions, columns = positions[kept], {name: column[kept] for name, column in columns.items()}
    if isinstance(planned.question, IndicatorQuestion) and planned.table.indicators != CODES:
        chosen = np.isin(positions % len(CODES), [CODES.index(code) for code in planned.table.indicators or ()])
        positions, columns = positions[chosen], {name: column[chosen] for name, column in columns.items()}
    return _arrow(answer, positions, columns)


def shown_values(planned: PlannedTable, shown: Cells) -> NDArray[np.int64]:
    """The values as readers get them: raised to 0 where the table asks for it."""
    return nonnegative(shown)["value"] if planned.table.nonnegative else shown["value"]


def _alike(planned: PlannedTable, answer: Cells, status: NDArray[Any]) -> NDArray[Any]:
    """The status of all combinations: those without an establishment are as little available as the others."""
    sizes = tuple(map(len, answer.dimensions))
    lasting = [at for at, d in enumerate(answer.dimensions) if d.name not in (planned.period, NAME)]
    missing = (answer["status"] == NOT_AVAILABLE).astype(np.int64)
    kind = np.zeros(answer.domain, dtype=np.int64)
    kind[answer.positions] = 1 + missing
    most = kind.reshape(sizes)
    # A period and an indicator that no cell has are available nowhere.
    known = np.any(most == 1, axis=tuple(lasting), keepdims=True)
    nowhere = np.broadcast_to(~known, sizes).reshape(-1)
    return np.where(nowhere, NOT_AVAILABLE, status)


def _with_something(planned: PlannedTable, answer: Cells, columns: Columns) -> NDArray[np.bool_]:
    """Which rows are of workplace cells of which something is published or suppressed; others may have no employer."""
    block = np.zeros(len(answer), dtype=np.int64)
    for dimension in answer.dimensions:
        if dimension.public and dimension.name not in (planned.period, NAME):
            block = block * len(dimension) + answer.codes(dimension.name)
    some = columns["value"] != 0
    if "status" in columns:
        some |= columns["status"] == SUPPRESSED
    return np.isin(block, np.unique(block[some]))


def shown_figures(planned: PlannedTable, answer: Cells, shown: Cells) -> PublishedFigures:
    """The error figures of the answer as they stand beside the values that are shown."""
    figures = published_figures(planned.method, answer, CONFIDENCE)
    return figures.beside(answer["value"]).beside(shown_values(planned, shown))


def _noised(planned: PlannedTable, answer: Cells, shown: Cells) -> Columns:
    figures = shown_figures(planned, answer, shown)
    return {
        "value": shown_values(planned, shown),
        "error": np.round(figures.error, 2),
        "low": figures.low,
        "high": figures.high,
    }


def _infused(planned: PlannedTable, answer: Cells) -> Columns:
    """Values with their status; error figures would tell how far factors are from one."""
    columns: Columns = {"value": answer["value"], "status": answer["status"]}
    if isinstance(planned.question, IndicatorQuestion) and planned.table.establishments:
        columns["convergence_ratio"] = _convergence_ratio(answer)
    return columns


def _perturbed(planned: PlannedTable, answer: Cells) -> Columns:
    """Values with the quality that the method itself published; means have digits after the point."""
    unit = 10 ** (planned.table.decimals if planned.table.statistic == "mean" else 0)
    columns: Columns = {"value": answer["value"] / unit, "status": answer["status"]}
    columns["rse"] = np.where(answer["rse"] < 0, np.nan, answer["rse"] / 10)
    for end in ("low", "high"):
        columns[end] = np.where(answer[end] == UNKNOWN, np.nan, answer[end] / unit)
    return columns if planned.table.statistic == "mean" else {**columns, "value": answer["value"]}


def _estimated(planned: PlannedTable, answer: Cells) -> Columns:
    """Estimates of groups of people with the noisy number of people, in the unit of the measure."""
    answer = shown_estimates(planned, answer)
    unit, hidden = 10**planned.table.decimals, _is_hidden(answer["status"])
    error = np.where(hidden | (answer["error"] == NO_ERROR), np.nan, answer["error"] / unit)
    value = answer["value"] / unit if planned.table.decimals else answer["value"]
    return {"value": value, "count": answer["count"], "error": error, "status": answer["status"]}


def _convergence_ratio(answer: Cells) -> NDArray[np.float64]:
    """The published number of jobs behind each value, for each employer of the cell in the register."""
    jobs = answer["value"].reshape(-1, len(CODES)).astype(np.float64)
    jobs[_is_hidden(answer["status"]).reshape(jobs.shape)] = np.nan
    ratio: NDArray[np.float64] = np.round(jobs[:, BEHIND].reshape(-1) / answer["establishments"], 2)
    return ratio


def _is_hidden(status: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(status, HIDDEN)


def _arrow(answer: Cells, positions: NDArray[np.int64], columns: Columns) -> pa.Table:
    arrays: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places(positions, answer.dimensions), strict=True):
        arrays[dimension.name] = pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
    for name, column in columns.items():
        if name == "status":
            arrays[name] = pa.DictionaryArray.from_arrays(column.astype(np.int32), list(STATUSES))
            continue
        hidden = _is_hidden(columns["status"]) if name == "value" and "status" in columns else np.isnan(column)
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
