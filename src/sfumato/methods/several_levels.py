"""Measure a cube at several levels and combine them, instead of the cube alone; docs/methods/hypercube.md proves it.

Every level is a table of the cube with noise and an epsilon of its own. One record is in one cell of every level, so
their epsilons and deltas add up. The measurements are combined by least squares, which weights each by what it is
worth for each effect; whole numbers without negative ones follow from that at no further cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.cube.agreeing import whole_margin
from sfumato.cube.bounded import bounded_change
from sfumato.cube.effects import Measured, effect_variances, subsets, table_variance
from sfumato.cube.margins import Axes, Margin, fibre, opened, residuals, summed, within
from sfumato.cube.whole_numbers import nearest_whole
from sfumato.errors import MethodError
from sfumato.noise.randomness import Randomness
from sfumato.noise.truncated_geometric import TruncatedGeometric, smallest_cap

_PARTS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Level:
    """A table of the cube that is measured, and its noise."""

    axes: Axes
    noise: TruncatedGeometric


@dataclass(frozen=True, kw_only=True)
class SeveralLevels:
    """A cube that is measured at several levels; with no level but the cube itself it is the bottom-up method.

    >>> sex, size = Dimension(name="sex", codes=("F", "M")), Dimension(name="size", codes=("s", "m", "l"))
    >>> one = SeveralLevels.split((sex, size), levels={(): Fraction(1, 2)}, epsilon=Fraction(1), delta=1e-6)
    >>> one.epsilon, one.delta <= 1e-6
    (Fraction(1, 1), True)
    """

    dimensions: tuple[Dimension, ...]
    levels: tuple[Level, ...]
    """The last one is the cube itself."""

    def __post_init__(self) -> None:
        everything = tuple(range(len(self.dimensions)))
        if not self.levels or self.levels[-1].axes != everything:
            raise ValueError("the last level is the cube itself")
        if len({level.axes for level in self.levels}) != len(self.levels):
            raise ValueError("every level once")

    @classmethod
    def split(
        cls,
        dimensions: tuple[Dimension, ...],
        *,
        levels: Mapping[tuple[str, ...], Fraction],
        epsilon: Fraction,
        delta: float,
    ) -> "SeveralLevels":
        """Levels by the names of their dimensions with the share of epsilon for each; the cube gets the rest.

        Delta is divided evenly; each cap is the least that keeps its part.
        """
        names = [dimension.name for dimension in dimensions]
        rest = 1 - sum(levels.values(), Fraction(0))
        if rest <= 0 or any(share <= 0 for share in levels.values()):
            raise MethodError(
                "levels",
                expected="positive shares of epsilon that leave something for the cube",
                found=f"shares that add up to {float(1 - rest):g}",
                do="lower the shares",
            )
        unknown = sorted({name for by in levels for name in by} - set(names))
        if unknown:
            raise MethodError(
                "levels",
                expected=f"dimensions of the cube: {', '.join(names)}",
                found=", ".join(map(repr, unknown)),
                do="correct the names",
            )
        axes = {tuple(sorted(names.index(name) for name in by)): share for by, share in levels.items()}
        axes[tuple(range(len(dimensions)))] = rest
        part = delta / len(axes)
        return cls(
            dimensions=dimensions,
            levels=tuple(
                Level(
                    axes=level,
                    noise=TruncatedGeometric(
                        epsilon=epsilon * share, cap=smallest_cap(epsilon=epsilon * share, delta=part)
                    ),
                )
                for level, share in axes.items()
            ),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of every dimension."""
        return tuple(map(len, self.dimensions))

    @property
    def epsilon(self) -> Fraction:
        """What all levels reveal together about one record."""
        return sum((level.noise.epsilon for level in self.levels), Fraction(0))

    @property
    def delta(self) -> float:
        """The probability beside it."""
        return sum(level.noise.delta() for level in self.levels)

    def expected_variance(self, *by: str) -> float:
        """The variance in a cell of a table, on average over its cells, before negative numbers are removed."""
        names = [dimension.name for dimension in self.dimensions]
        table = tuple(sorted(names.index(name) for name in by))
        return table_variance(self.shape, table, self._variances, otherwise=self.levels[-1].noise.variance)

    def measure(self, counts: Integers, randomness: Randomness) -> list[Margin]:
        """Every level with its noise; this is the only step that sees the data."""
        if counts.shape != self.shape or counts.dtype != np.int64:
            raise ValueError("one 64-bit integer for each cell of the product")
        measured = []
        for level in self.levels:
            true = np.asarray(summed(counts, level.axes))
            noise = level.noise.sample(true.size, randomness).reshape(true.shape)
            measured.append(Margin(axes=level.axes, values=np.asarray(true + noise)))
        return measured

    def combined(self, measured: Sequence[Margin]) -> Floats:
        """The cube that fits all measurements best, by weighted least squares: unbiased, with fractions.

        Effects are orthogonal, so each is the mean of what the levels that hold it tell, weighted by their precision.
        """
        cube = measured[-1].values.astype(np.float64)
        shape = self.shape
        lacking = residuals(measured[-1].values, measured[:-1])
        combined = cube.copy()
        for effect in {effect for level in self.levels[:-1] for effect in subsets(level.axes)}:
            told = np.zeros([shape[axis] for axis in effect])
            for level, gap in zip(self.levels[:-1], lacking, strict=True):
                if set(effect) <= set(level.axes):
                    weight = self._variances[effect] / self._precise[level.axes]
                    told = told + weight * summed(gap.values.astype(np.float64), within(effect, level.axes))
            for axis in range(len(effect)):  # the effect itself: what its own margins do not tell
                told = told - told.mean(axis=axis, keepdims=True)
            combined += opened(told / fibre(effect, shape), effect, len(shape))
        return combined

    def consistent(self, measured: Sequence[Margin]) -> Integers:
        """The combined cube in whole numbers, none negative: every table summed from it agrees with every other.

        Levels are rounded first, from coarse to fine, each within those before; then the cube is fitted to them.
        """
        best = self.combined(measured)
        known: list[Margin] = []
        for level in sorted(self.levels[:-1], key=lambda level: len(level.axes)):
            table = np.asarray(summed(best, level.axes))
            known.append(whole_margin(level.axes, table, known, nonnegative=True))
        if not known:
            return np.maximum(np.rint(best).astype(np.int64), 0)
        fine = np.rint(best * _PARTS).astype(np.int64)
        targets = [Margin(axes=margin.axes, values=margin.values * _PARTS) for margin in known]
        change = bounded_change(fine, residuals(fine, targets), enough=_PARTS / 1_000)
        return nearest_whole(np.maximum(fine + change.cells, 0) / _PARTS, known, careful=True)

    @property
    def measured_levels(self) -> list[Measured]:
        """The levels with the variances of their cells, the cube last."""
        return [Measured(axes=level.axes, variance=level.noise.variance) for level in self.levels]

    @cached_property
    def _variances(self) -> Mapping[Axes, float]:
        return effect_variances(self.shape, self.measured_levels)

    @cached_property
    def _precise(self) -> Mapping[Axes, float]:
        """The variance with which a level alone tells an effect, in each coordinate."""
        return {level.axes: level.noise.variance / fibre(level.axes, self.shape) for level in self.levels}
