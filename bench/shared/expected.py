"""What the noise of every contestant does to a cell, worked out from its distribution and the true table."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import Method
from sfumato.noise.pareto import DoublePareto
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.totals.cell_keys import CellKeyTable

_DRAWS = 100
"""Draws of all factors, where the expected error has no formula."""
_HALF = 0.5 * (1 - 1e-9)  # sums of floats come as near to it as that
_DIRECT = 32
"""Terms of a sum that are added up before the rest is taken for an integral."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """What noise does to every cell: the means of the error's size and of the error, and their standard deviations."""

    size: Floats
    size_deviation: Floats
    bias: Floats
    deviation: Floats
    block: int | Integers = 1
    """So many neighbouring cells share a draw, or the label of each cell's group; their errors may go together."""
    changeable: NDArray[np.bool_] | None = None
    """Cells that the noise can change, where sizes were found by drawing, which may miss what is rare."""


def discrete_laplace(scale: float, bias: Floats) -> Expected:
    """Whole-number noise with P(k) ∝ q^|k|, q = e^(−1/scale), beside a bias that is known, such as by truncation.

    With m = |bias|, E|X − m| = m + 2q^(m+1)/(1 − q²); between whole numbers this is as good as the scale is large.
    """
    q, away = np.exp(-1 / scale), np.abs(bias)
    return _symmetric(away + 2 * q ** (away + 1) / (1 - q**2), 2 * q / (1 - q) ** 2, bias)


def laplace(scale: float, bias: Floats) -> Expected:
    """Noise of the Laplace distribution beside a known bias: E|X − m| = m + scale·e^(−m/scale)."""
    away = np.abs(bias)
    return _symmetric(away + scale * np.exp(-away / scale), 2 * scale**2, bias)


def clamped_laplace(scale: float, counts: Floats) -> Expected:
    """Discrete Laplace noise whose sum with the count is cut at zero: counts get larger by q^(n+1)/(1 − q²)."""
    q = np.exp(-1 / scale)
    cut = q ** (counts + 1) / (1 - q**2)
    square = 2 * q / (1 - q) ** 2  # before the cut, which only lowers it
    size = 2 * q / (1 - q**2) - cut
    return Expected(
        size=size,
        size_deviation=np.sqrt(square - size**2),
        bias=cut,
        deviation=np.full(len(counts), np.sqrt(square)),
    )


def smooth_pareto(method: SmoothPareto, largest: Integers) -> Expected:
    """Double Pareto noise that follows the largest establishment of a cell."""
    multiples = np.maximum(largest * method.alpha.numerator, method.alpha.denominator)
    return _pareto(method.noise, multiples, block=1)


def vector_pareto(method: VectorPareto, largest_employer: Integers) -> Expected:
    """Noise that follows the largest workforce of a workplace cell, one draw for all its worker cells."""
    multiples = np.maximum(largest_employer * method.alpha.numerator, method.alpha.denominator)
    return _pareto(method.noise.marginal, multiples, block=method.cells)


def pareto_of(method: Method, cells: Cells) -> Expected:
    """The noise of whichever of the two methods a table is protected by, from its true cells."""
    if isinstance(method, VectorPareto):
        return vector_pareto(method, cells["largest_employer"])
    assert isinstance(method, SmoothPareto)
    return smooth_pareto(method, cells["largest"])


def perturbed(counts: Integers, moves: list[dict[int, float]]) -> Expected:
    """Counts moved by a table: for each count the chance of every move, the last row serving all larger counts."""
    row = np.minimum(counts, len(moves) - 1)
    means = [
        [sum(chance * power(v) for v, chance in chances.items()) for chances in moves]
        for power in (abs, float, lambda v: v * v)
    ]
    size, bias, square = (np.array(mean)[row] for mean in means)
    return Expected(
        size=size,
        size_deviation=np.sqrt(np.maximum(square - size**2, 0)),
        bias=bias,
        deviation=np.sqrt(np.maximum(square - bias**2, 0)),
    )


def moves_of(table: CellKeyTable) -> list[dict[int, float]]:
    """The chances of a cell-key table."""
    return [
        {v: float(chance) for v, chance in zip(table.moves(count), chances, strict=True)}
        for count, chances in enumerate(table.probabilities)
    ]


def infused(cell: Integers, workers: Floats, counts: Floats, *, least: float, most: float, base: int) -> Expected:
    """Sums of establishments' workers times factors, in whole numbers: from many draws of all factors.

    With a base, sums are rounded to its multiples by chance, as sfumato does it; of whole numbers, counts of 1 and 2
    are drawn anew. With a base of 0 sums are rounded to the nearest whole number.
    """
    generator = np.random.default_rng(9)
    size, square, bias = np.zeros((3, len(counts)))
    for _ in range(_DRAWS):
        distortion = most - (most - least) * np.sqrt(generator.random(len(workers)))
        distortion *= generator.choice([-1.0, 1.0], len(workers))
        value = counts + np.bincount(cell, workers * distortion, minlength=len(counts))
        if base:
            value = base * np.floor(value / base + generator.random(len(counts)))
        if base == 1:
            value = np.where((counts >= 1) & (counts <= 2), generator.integers(1, 3, len(counts)), value)
        error = np.rint(value) - counts
        size, square, bias = size + np.abs(error) / _DRAWS, square + error**2 / _DRAWS, bias + error / _DRAWS
    # The draws themselves err, by their share of a variance.
    more = np.sqrt(1 + 1 / _DRAWS)
    return Expected(
        size=size,
        size_deviation=more * np.sqrt(np.maximum(square - size**2, 0)),
        bias=bias,
        deviation=more * np.sqrt(square),
        changeable=counts > 0 if base else most * counts > _HALF,
    )


def _symmetric(size: Floats, square: float, bias: Floats) -> Expected:
    """From E|X + bias| and E X² of noise with mean zero."""
    return Expected(
        size=size,
        size_deviation=np.sqrt(np.maximum(square + bias**2 - size**2, 0)),
        bias=bias,
        deviation=np.full(len(bias), np.sqrt(square)),
    )


def _pareto(noise: DoublePareto, multiples: Integers, *, block: int) -> Expected:
    size, square = noise.expected_magnitude(multiples), _mean_square(noise, multiples)
    return Expected(
        size=size,
        size_deviation=np.sqrt(square - size**2),
        bias=np.zeros(len(size)),
        deviation=np.sqrt(square),
        block=block,
    )


def _mean_square(noise: DoublePareto, multiples: Integers) -> Floats:
    """E J² = Σ 2(j − ½)·P(|Z| > j − ½) of the whole number J: the first terms directly, the others by the integral.

    Rounding matters: most noise of a small scale is 0, and then varies more, beside its mean, than before rounding.
    """
    tail = float(noise.tail)
    scale, where = np.unique(float(noise.unit) * multiples, return_inverse=True)
    middle = np.arange(_DIRECT) + 0.5
    direct = (2 * middle * (1 + middle / scale[:, None]) ** -tail).sum(axis=1)
    u = 1 + _DIRECT / scale
    rest = 2 * scale**2 * (u ** (2 - tail) / (tail - 2) - u ** (1 - tail) / (tail - 1))
    return (direct + rest)[where]
