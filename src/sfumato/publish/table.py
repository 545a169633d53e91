"""A published table: codes, protected values, and error figures made from published numbers only."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.adjust.nonnegative import nonnegative
from sfumato.cells import Cells
from sfumato.methods.vector_figures import published_figures
from sfumato.plan import PlannedTable

CONFIDENCE = 0.9
"""How often the published interval holds the true value, at the least."""


def published_table(planned: PlannedTable, answer: Cells, agreed: Cells | None = None) -> pa.Table:
    """Lay out a stored answer as the table that readers get.

    The true noise scale depends on the largest establishment and is confidential; `error`, `low` and `high` are
    functions of the protected value and the public parameters. `agreed` has the values after tables were made to agree;
    the figures stay those of the answer, whose noise is the only one that is known.
    """
    figures = published_figures(planned.method, answer, CONFIDENCE)
    shown = agreed if agreed is not None else answer
    columns: dict[str, NDArray[Any]] = {
        "value": nonnegative(shown)["value"] if planned.table.nonnegative else shown["value"],
        "error": np.round(figures.error, 2),
        "low": figures.low,
        "high": figures.high,
    }
    if "establishments" in answer.columns:
        columns["establishments"] = answer["establishments"]
    positions = answer.positions
    if planned.lists_structural_zeros and len(answer) < answer.domain:
        # Nobody can work where no establishment is: these rows are exact, and their zeros cost nothing.
        positions = np.arange(answer.domain, dtype=np.int64)
        columns = {name: _laid_out(column, answer) for name, column in columns.items()}
    places = np.unravel_index(positions, tuple(map(len, answer.dimensions)))
    arrays: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places, strict=True):
        arrays[dimension.name] = pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
    for name, column in columns.items():
        whole = name != "error"
        arrays[name] = pa.array(column, pa.int64() if whole else pa.float64(), mask=np.isnan(column), safe=False)
    return pa.table(arrays)


def _laid_out(column: NDArray[Any], answer: Cells) -> NDArray[Any]:
    """Spread a column over the whole domain, zero where nothing is listed."""
    whole = np.zeros(answer.domain, dtype=column.dtype)
    whole[answer.positions] = column
    return whole
