"""How much noise is left in a table of a cube, worked out from parameters alone; docs/methods/hypercube.md proves it.

A cube is the sum of effects, one for every set B of its dimensions: the grand mean, main effects, interactions. Effects
are orthogonal, and B has Π(k − 1) coordinates. A table over T holds the effects inside T and no others. A margin over A
that was measured with variance τ in each cell measures every effect inside A with variance τ·N_A/N in each
coordinate, N_A being the cells of the margin and N those of the cube.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod

from sfumato.cube.margins import Axes, fibre


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A margin and the variance of the noise in each of its cells; 0 where it is exact."""

    axes: Axes
    variance: float


def effect_variances(shape: Sequence[int], measured: Sequence[Measured]) -> Mapping[Axes, float]:
    """The variance of every effect in each coordinate, all measurements of it combined in the best way."""
    cells = prod(shape)
    information: dict[Axes, float] = {}
    for margin in measured:
        own = prod(shape[axis] for axis in margin.axes)
        told = cells / (margin.variance * own) if margin.variance else float("inf")
        for effect in subsets(margin.axes):
            information[effect] = information.get(effect, 0.0) + told
    return {effect: 1 / told for effect, told in information.items()}


def table_variance(shape: Sequence[int], table: Axes, effects: Mapping[Axes, float], *, otherwise: float) -> float:
    """The variance of the noise in a cell of a table, on average over its cells.

    `effects` are the variances of effects in each coordinate, and `otherwise` that of all others: the variance of a
    cell of the cube, when nothing else tells about them.
    """
    total = sum(coordinates(shape, effect) * effects.get(effect, otherwise) for effect in subsets(table))
    return fibre(table, shape) * total / prod(shape[axis] for axis in table)


def query_variance(
    shape: Sequence[int], selected: Sequence[int], effects: Mapping[Axes, float], *, otherwise: float
) -> float:
    """The variance of the noise in one sum over the cube that takes so many codes of every dimension.

    A cell of a table takes one code of its dimensions and all of the others; a filter takes those it keeps.

    >>> query_variance((2, 3), (1, 3), {}, otherwise=0.5)
    1.5
    """
    return query_covariance(shape, selected, selected, selected, effects, otherwise=otherwise)


def query_covariance(
    shape: Sequence[int],
    first: Sequence[int],
    second: Sequence[int],
    both: Sequence[int],
    effects: Mapping[Axes, float],
    *,
    otherwise: float,
) -> float:
    """The covariance of the noise in two such sums that share the codes `both` of every dimension.

    >>> query_covariance((2, 3), (1, 3), (1, 3), (0, 3), {}, otherwise=0.5)
    0.0
    """
    total = otherwise * prod(both)
    outside = [one * other / length for one, other, length in zip(first, second, shape, strict=True)]
    inside = [shared - part for shared, part in zip(both, outside, strict=True)]
    for effect, variance in effects.items():
        factors = outside.copy()
        for axis in effect:
            factors[axis] = inside[axis]
        total += (variance - otherwise) * prod(factors)
    return total


def remaining_share(shape: Sequence[int], table: Axes, controls: Sequence[Axes]) -> float:
    """The share of the noise variance that calibration to exact controls leaves in a table.

    With all one-way controls it is 1 − (1 + Σ(k − 1))/Πk over the cardinalities k of the table.

    >>> round(remaining_share((2, 3), (0, 1), [(0,), (1,)]), 4)
    0.3333
    """
    exact = effect_variances(shape, [Measured(axes=axes, variance=0.0) for axes in controls])
    return table_variance(shape, table, exact, otherwise=1.0) / fibre(table, shape)


def coordinates(shape: Sequence[int], effect: Axes) -> int:
    """The number of coordinates of an effect."""
    return prod(shape[axis] - 1 for axis in effect)


def subsets(axes: Axes) -> Iterator[Axes]:
    """Every set of these axes, from none to all."""
    return chain.from_iterable(combinations(axes, size) for size in range(len(axes) + 1))
