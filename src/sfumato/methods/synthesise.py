"""Fill the cells of a table of pairs that are too small to publish, with draws from a model of the others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_ROUNDS = 500
_CLOSE = 1e-9
_BEYOND = 600.0
"""A cell that is fitted so far above the minimum is drawn as if it were so far: closer, probabilities vanish."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLayout:
    """Where the cells of a table of pairs stand: the class of both ends, and the place in all further dimensions."""

    first: Integers
    second: Integers
    other: Integers
    classes: int
    others: int
    directed: bool

    @classmethod
    def of(cls, positions: Integers, *, classes: int, others: int, directed: bool) -> "PairLayout":
        """The layout of cells at these positions of the product of first end, second end and further dimensions."""
        ends, other = np.divmod(positions, others)
        first, second = np.divmod(ends, classes)
        return cls(first=first, second=second, other=other, classes=classes, others=others, directed=directed)


def kept(values: Integers, *, minimum: int) -> Flags:
    """Which protected values are published as they are: those that reach the minimum. True values play no part."""
    reach: Flags = values >= minimum
    return reach


def synthesised(
    values: Integers, *, keep: Flags, below: Flags, layout: PairLayout, minimum: int, words: NDArray[np.uint64]
) -> Integers:
    """The values, with every cell `below` the minimum drawn from what the cells to `keep` lead one to expect.

    The cells are Poisson with means fitted by `fitted`, given that they are below the minimum. One uniform word a cell
    of the table decides the draw. Nothing but published values and the minimum enters, so that the draws tell no more
    than suppressed cells would.
    """
    if len(words) != len(values):
        raise ValueError("every cell needs a word")
    if bool(np.any(keep & below)):
        raise ValueError("a cell is kept or below the minimum, not both")
    filled = values.copy()
    means = fitted(values, keep=keep, below=below, layout=layout, minimum=minimum)
    filled[below] = _drawn(means[below], words[below], minimum)
    return filled


def fitted(values: Integers, *, keep: Flags, below: Flags, layout: PairLayout, minimum: int) -> Floats:
    """The mean of every cell under quasi-independence: an effect of the first end times one of the second.

    The effects, apart in every place of the further dimensions, fit the cells to keep, and the others as far as these
    are known to be below the minimum: each counts as what it is expected to be, over and over (EM with proportional
    fitting). Undirected pairs have one effect for both ends. Pairs within one class, which are far more frequent than
    between two, are not fitted. A class none of whose pairs with another is kept is expected to have none.
    """
    size = layout.classes * layout.others
    used = (keep | below) & (layout.first != layout.second)
    one = (layout.first * layout.others + layout.other)[used]
    two = (layout.second * layout.others + layout.other)[used]
    known, value = keep[used], values[used].astype(np.float64)
    if not layout.directed:
        one, two = np.append(one, two), np.append(two, one)
        known, value = np.tile(known, 2), np.tile(value, 2)

    def by_row(weights: Floats) -> Floats:
        return np.bincount(one, weights=weights, minlength=size).astype(np.float64)

    def by_column(weights: Floats) -> Floats:
        return np.bincount(two, weights=weights, minlength=size).astype(np.float64)

    rows, columns = (by(known * value).astype(np.bool_).astype(np.float64) for by in (by_row, by_column))
    mean = rows[one] * columns[two]
    for _ in range(_ROUNDS):
        before, full = mean, np.where(known, value, _mean_below(mean, minimum))
        rows *= _ratio(by_row(full), by_row(mean))
        mean = rows[one] * columns[two]
        columns *= _ratio(by_column(full), by_column(mean))
        mean = rows[one] * columns[two]
        if bool(np.all(np.abs(mean - before) <= _CLOSE * np.maximum(mean, 1.0))):
            break
    first, second = (end * layout.others + layout.other for end in (layout.first, layout.second))
    means: Floats = rows[first] * columns[second]
    # Of n members of a class, n²/2 pairs are within it when a pair has no direction.
    return means if layout.directed else np.where(layout.first == layout.second, means / 2, means)


def _mean_below(mean: Floats, minimum: int) -> Floats:
    """The mean of a Poisson variable that is known to be below the minimum."""
    mean = np.minimum(mean, minimum + _BEYOND)
    expected: Floats = mean * pdtr(minimum - 2, mean) / pdtr(minimum - 1, mean) if minimum > 1 else np.zeros_like(mean)
    return expected


def _drawn(mean: Floats, words: NDArray[np.uint64], minimum: int) -> Integers:
    """Poisson variables below the minimum, by inverting their distribution function: the least k beyond the word."""
    mean = np.minimum(mean, minimum + _BEYOND)
    share = (words >> np.uint64(11)) * 2.0**-53 * pdtr(minimum - 1, mean)
    low, high = np.zeros(len(mean), dtype=np.int64), np.full(len(mean), minimum - 1, dtype=np.int64)
    while bool(np.any(low < high)):
        middle = (low + high) // 2
        enough = pdtr(middle, mean) > share
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return low


def _ratio(wanted: Floats, had: Floats) -> Floats:
    return np.divide(wanted, had, out=np.zeros_like(wanted), where=had > 0)
