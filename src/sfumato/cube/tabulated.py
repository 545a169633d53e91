"""A cube from records that come in chunks: memory holds the cube and one chunk, however many records there are."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Dimension
from sfumato.cube.cube import MILLION, Cube
from sfumato.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some records: for each its cell, counted through the product with the last dimension fastest, and its weight."""

    positions: Integers
    weights: Integers
    """In whole millionths."""


def tabulated(dimensions: tuple[Dimension, ...], chunks: Iterable[Chunk]) -> Cube:
    """The cube of the records: `count`, and `weighted` in millionths, 0 in empty cells."""
    size = prod(map(len, dimensions))
    count, weighted = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for chunk in chunks:
        _check(chunk, size)
        # Whole numbers are added as whole numbers; a histogram with weights would go through floating point.
        np.add.at(count, chunk.positions, 1)
        np.add.at(weighted, chunk.positions, chunk.weights)
    shape = tuple(map(len, dimensions))
    return Cube(
        dimensions=dimensions,
        columns={"count": count.reshape(shape), "weighted": weighted.reshape(shape)},
        parts={"weighted": MILLION},
    )


def millionths(weights: NDArray[np.float64]) -> Integers:
    """Weights in whole millionths, rounded; refused where one is missing or not positive."""
    with np.errstate(invalid="ignore"):
        wrong = int((~(weights > 0) | ~np.isfinite(weights)).sum())
    if wrong:
        raise DataError(
            "weights",
            expected="a positive weight for every record",
            found=f"{wrong:,} missing, zero, negative or infinite",
            do="give these records a weight, or leave them out",
        )
    rounded: Integers = np.rint(weights * MILLION).astype(np.int64)
    if len(rounded) and int(rounded.min()) < 1:
        raise DataError(
            "weights",
            expected="weights of at least a millionth",
            found="smaller ones, which would vanish",
            do="multiply all weights by the same number",
        )
    return rounded


def _check(chunk: Chunk, size: int) -> None:
    if chunk.positions.shape != chunk.weights.shape:
        raise ValueError("one weight for every record")
    if len(chunk.positions) and (int(chunk.positions.min()) < 0 or int(chunk.positions.max()) >= size):
        raise ValueError("every record lies in a cell of the product")
    if len(chunk.weights) and int(chunk.weights.min()) < 1:
        raise DataError(
            "weights",
            expected="positive weights",
            found=f"{int((chunk.weights < 1).sum()):,} that are not",
            do="give these records a weight, or leave them out",
        )
