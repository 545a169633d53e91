"""Every cell of a table protected by a key, true beside published, with its expected error: confidential."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Cells
from sfumato.durable import write_durably
from sfumato.indicators import BEHIND, CODES
from sfumato.methods.status import STATUSES
from sfumato.plan import PlannedTable


def write_cells(planned: PlannedTable, counted: Cells, answer: Cells, path: Path) -> None:
    """Write the cells as a Parquet file that only its owner can read."""
    places = np.unravel_index(counted.positions, tuple(map(len, counted.dimensions)))
    columns: dict[str, pa.Array] = {
        dimension.name: pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
        for dimension, place in zip(counted.dimensions, places, strict=True)
    }
    columns |= {
        "true": pa.array(counted["count"]),
        "published": pa.array(answer["value"]),
        "status": pa.DictionaryArray.from_arrays(answer["status"].astype(np.int32), list(STATUSES)),
        "expected_error": pa.array(planned.method.expected_error(counted)),
    }
    if "factors" in counted.columns:
        columns |= _convergence(planned, counted)
    content = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), content, compression="zstd")
    write_durably(path, content.getvalue().to_pybytes())
    path.chmod(0o600)


def _convergence(planned: PlannedTable, counted: Cells) -> dict[str, pa.Array]:
    """The number of observations for each distinct factor in a statistic.

    Above 1, distortions average out more slowly than those of as many independent observations.
    """
    factors, observed = counted["factors"], counted["count"]
    if planned.table.indicators is not None:
        observed = observed.reshape(-1, len(CODES))[:, BEHIND].reshape(-1)
    ratio = np.divide(observed, factors, out=np.zeros(len(factors)), where=factors > 0)
    return {"distinct_factors": pa.array(factors), "convergence_ratio": pa.array(ratio, mask=factors == 0)}
