"""Where the rows of an engine's answer stand in the product of the dimensions."""

from collections.abc import Sequence
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.cells import Dimension


def strides(by: Sequence[Dimension]) -> dict[str, int]:
    """How far apart in the product of all dimensions two neighbouring codes of each dimension are."""
    return {d.name: prod(map(len, by[i + 1 :])) for i, d in enumerate(by)}


def positions_of(found: pa.Table, dimensions: Sequence[Dimension], by: Sequence[Dimension]) -> Integers:
    """Where the rows of an answer stand in the product of all dimensions."""
    step = strides(by)
    positions = np.zeros(found.num_rows, dtype=np.int64)
    for dimension in dimensions:
        codes = pc.index_in(found[dimension.name], value_set=pa.array(dimension.codes, pa.string()))
        if codes.null_count:
            raise ValueError(f"a value of {dimension.name!r} is not in its codelist")
        positions += codes.to_numpy().astype(np.int64) * step[dimension.name]
    return positions
