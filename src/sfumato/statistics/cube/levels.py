"""Measure a cube at several levels and combine them, which levels, and how much noise is left."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import prod, sqrt

import numpy as np

from sfumato.agree.least_squares import Axes, Margin, fibre, nonnegative_change, opened, residuals, summed, within
from sfumato.agree.whole_numbers import nearest_whole, whole_margin
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.errors import MethodError
from sfumato.noise.geometric import TruncatedGeometric, least_noise
from sfumato.noise.randomness import Randomness
from sfumato.statistics.cube.truncated_laplace import TruncatedLaplace

# How much noise is left in a table of a cube, worked out from parameters alone; docs/methods/hypercube.md proves it.
#
# A cube is the sum of effects, one for every set B of its dimensions: the grand mean, main effects, interactions.
# Effects are orthogonal, and B has Π(k − 1) coordinates. A table over T holds the effects inside T and no others. A
# margin over A that was measured with variance τ in each cell measures every effect inside A with variance τ·N_A/N in
# each coordinate, N_A being the cells of the margin and N those of the cube.


@dataclass(frozen=True, kw_only=True)
class MeasuredMargin:
    """A margin and the variance of the noise in each of its cells; 0 where it is exact."""

    axes: Axes
    variance: float


def effect_variances(shape: Sequence[int], measured: Sequence[MeasuredMargin]) -> Mapping[Axes, float]:
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
    exact = effect_variances(shape, [MeasuredMargin(axes=axes, variance=0.0) for axes in controls])
    return table_variance(shape, table, exact, otherwise=1.0) / fibre(table, shape)


def coordinates(shape: Sequence[int], effect: Axes) -> int:
    """The number of coordinates of an effect."""
    return prod(shape[axis] - 1 for axis in effect)


def subsets(axes: Axes) -> Iterator[Axes]:
    """Every set of these axes, from none to all."""
    return chain.from_iterable(combinations(axes, size) for size in range(len(axes) + 1))


# Every level is a table of the cube with noise and an epsilon of its own. One record is in one cell of every level, so
# their epsilons and deltas add up. The measurements are combined by least squares, which weights each by what it is
# worth for each effect; whole numbers without negative ones follow from that at no further cost.

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
        sensitivity: int = 1,
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
                Level(axes=level, noise=least_noise(epsilon * share, part, sensitivity))
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
        change = nonnegative_change(fine, residuals(fine, targets), enough=_PARTS / 1_000)
        return nearest_whole(np.maximum(fine + change.cells, 0) / _PARTS, known, careful=True)

    @property
    def measured_levels(self) -> list[MeasuredMargin]:
        """The levels with the variances of their cells, the cube last."""
        return [MeasuredMargin(axes=level.axes, variance=level.noise.variance) for level in self.levels]

    @cached_property
    def _variances(self) -> Mapping[Axes, float]:
        return effect_variances(self.shape, self.measured_levels)

    @cached_property
    def _precise(self) -> Mapping[Axes, float]:
        """The variance with which a level alone tells an effect, in each coordinate."""
        return {level.axes: level.noise.variance / fibre(level.axes, self.shape) for level in self.levels}


# Which levels of a cube to measure, given the tables that readers ask for: the one with the least expected error.

By = tuple[str, ...]
_SHARES = tuple(Fraction(share, 20) for share in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18))
_MOST_LEVELS = 100
MOST_ASKED = 1_000
"""As many tables that are asked one by one are looked at."""
_ROUNDING = 1e-9
_FEW = (1, 2, 3)
"""Dimensions of the tables that readers ask for most."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A choice of levels and what it would cost the workload."""

    name: str
    share: Fraction
    """The share of epsilon that goes to levels above the cube, evenly to each of them."""
    design: SeveralLevels
    error: float
    """The expected root mean square error of the workload's tables, weighted as asked."""

    @property
    def is_bottom_up(self) -> bool:
        """Whether only the cube itself is measured."""
        return len(self.design.levels) == 1


def all_tables(dimensions: Sequence[Dimension], *sizes: int) -> dict[By, float]:
    """A workload of all tables with so many dimensions; every number of dimensions counts the same.

    >>> sex, size = Dimension(name="sex", codes=("F", "M")), Dimension(name="size", codes=("s", "m", "l"))
    >>> all_tables([sex, size], 1, 2)
    {('sex',): 0.25, ('size',): 0.25, ('sex', 'size'): 0.5}
    """
    names = [dimension.name for dimension in dimensions]
    workload: dict[By, float] = {}
    for size in sizes:
        tables = list(combinations(names, size))
        workload.update({by: 1 / len(sizes) / len(tables) for by in tables})
    return workload


def recommended(
    dimensions: tuple[Dimension, ...],
    workload: Mapping[By, float],
    *,
    epsilon: Fraction,
    delta: float,
    sensitivity: int = 1,
) -> list[Candidate]:
    """Candidates from the best to the worst, the best share of each; bottom-up is always among them.

    Errors are expected ones, worked out from the parameters: nothing is spent by asking.
    """
    if not workload or any(weight < 0 for weight in workload.values()) or not sum(workload.values()):
        raise MethodError(
            "workload",
            expected="tables with weights from 0 on, not all 0",
            found=f"{len(workload)} tables",
            do="name the tables that readers ask for",
        )
    best = []
    for name, levels in _families(dimensions, workload).items():
        tried = []
        for share in _SHARES if levels else (Fraction(0),):
            each = {by: share / len(levels) for by in levels}
            design = SeveralLevels.split(dimensions, levels=each, epsilon=epsilon, delta=delta, sensitivity=sensitivity)
            tried.append(Candidate(name=name, share=share, design=design, error=_error(design, workload)))
        best.append(min(tried, key=lambda candidate: candidate.error))
    return sorted(best, key=lambda candidate: candidate.error)


def errors_by_dimension(
    dimensions: Sequence[Dimension], measured: Sequence[MeasuredMargin], *sizes: int
) -> dict[int, float]:
    """The expected root mean square error of all tables with so many dimensions; the cube itself is measured last."""
    shape = [len(dimension) for dimension in dimensions]
    effects = effect_variances(shape, measured)
    found = {}
    for size in sizes:
        tables = list(combinations(range(len(shape)), size))
        variances = (table_variance(shape, table, effects, otherwise=measured[-1].variance) for table in tables)
        found[size] = sqrt(sum(variances) / len(tables))
    return found


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Expected root mean square errors by the dimension of a table, all at the same epsilon and delta."""

    planned: Mapping[int, float]
    """As the release has it; tables without noise cost nothing here, and have no error."""
    bottom_up: Mapping[int, float]
    """With all of it spent on the cube."""
    several_levels: Mapping[int, float]
    by_themselves: Mapping[int, int | None]
    """Up to how many tables of each dimension are better asked one by one, at the same budget in all, than as planned.

    That is the interactive approach: a table has noise in its own cells only, and a part of the budget. Of records with
    weights only weighted counts can be asked so; None where it is not known how heavy a record may be.
    """
    levels: Candidate
    """Of all that measure several levels the best for tables of few dimensions."""

    @property
    def recommended(self) -> Mapping[int, str]:
        """By the dimension of the tables that are asked for: what has the smaller error."""
        return {
            size: "bottom-up" if error <= self.several_levels[size] else "several-levels"
            for size, error in self.bottom_up.items()
        }


def compared(
    dimensions: tuple[Dimension, ...],
    method: TruncatedLaplace,
    *,
    public: Sequence[By] = (),
    calibrated: bool = True,
    most: float | None = 1.0,
) -> Comparison:
    """What the counts of a cube are expected to be off by, beside both approaches at the same budget; without any data.

    `public` are tables that are known anyway. Where controls are used in a way of which the effect on errors is not
    known, it is not `calibrated`, and they are not counted on. Records weigh up to `most` averages.
    """
    names = [dimension.name for dimension in dimensions]
    measured = measured_counts(names, method, public=public if calibrated else None)
    spent = [method.counts, *(control.counts for control in method.controls if control.counts is not None)]
    few = [size for size in _FEW if size < len(names)] or [len(names)]
    sizes = tuple(dict.fromkeys([*few, len(names)]))
    epsilon, delta = sum((noise.epsilon for noise in spent), Fraction(0)), sum(noise.delta() for noise in spent)
    q, few_tables = method.counts.sensitivity, all_tables(dimensions, *few)
    candidates = recommended(dimensions, few_tables, epsilon=epsilon, delta=delta, sensitivity=q)
    alone = next(candidate for candidate in candidates if candidate.is_bottom_up)
    levels = next(candidate for candidate in candidates if not candidate.is_bottom_up)
    planned = errors_by_dimension(dimensions, measured, *sizes)
    return Comparison(
        planned=planned,
        by_themselves={
            size: better_by_themselves(epsilon, delta, error, q) if most == 1 else better_weighted(epsilon, error, most)
            for size, error in planned.items()
        },
        bottom_up=errors_by_dimension(dimensions, alone.design.measured_levels, *sizes),
        several_levels=errors_by_dimension(dimensions, levels.design.measured_levels, *sizes),
        levels=levels,
    )


def noise_of_one(epsilon: Fraction, delta: float, tables: int, sensitivity: int = 1) -> TruncatedGeometric:
    """The noise of each of so many tables that are asked one by one and share a budget evenly."""
    return least_noise(epsilon / tables, delta / tables, sensitivity)


def better_by_themselves(epsilon: Fraction, delta: float, error: float, sensitivity: int = 1) -> int:
    """The largest number of tables, below MOST_ASKED, whose noise is not above this error when they share a budget.

    >>> better_by_themselves(Fraction(2), 1e-6, 10.0)
    14
    """
    enough = error**2 * (1 + _ROUNDING)  # the cube itself is one table
    low, high = 0, 1
    while high < MOST_ASKED and noise_of_one(epsilon, delta, high, sensitivity).variance <= enough:
        low, high = high, min(2 * high, MOST_ASKED)
    while high - low > 1:
        middle = (low + high) // 2
        fits = noise_of_one(epsilon, delta, middle, sensitivity).variance <= enough
        low, high = (middle, high) if fits else (low, middle)
    return low


def better_weighted(epsilon: Fraction, error: float, heaviest: float | None) -> int | None:
    """The same for weighted counts: `error` is in average weights, and the noise hides a record of so many of them."""
    return None if heaviest is None else min(int(error * float(epsilon) / (sqrt(2) * heaviest)), MOST_ASKED - 1)


def measured_counts(
    names: Sequence[str], method: TruncatedLaplace, *, public: Sequence[By] | None
) -> list[MeasuredMargin]:
    """All that is known of the counts of a cube: its controls, `public` tables and, last, its own cells.

    None for `public` leaves out controls, too, where it is not known what they do to the noise.
    """
    told = {control.by: control.counts.variance for control in method.controls if control.counts is not None}
    told |= dict.fromkeys([control.by for control in method.exact_controls] + list(public or ()), 0.0)
    measured = [
        MeasuredMargin(axes=tuple(sorted(names.index(name) for name in by)), variance=variance)
        for by, variance in told.items()
        if public is not None
    ]
    return [*measured, MeasuredMargin(axes=tuple(range(len(names))), variance=method.counts.variance)]


def _families(dimensions: Sequence[Dimension], workload: Mapping[By, float]) -> dict[str, list[By]]:
    names = tuple(dimension.name for dimension in dimensions)
    asked = {tuple(name for name in names if name in by) for by, weight in workload.items() if weight > 0}
    families: dict[str, list[By]] = {
        "bottom-up": [],
        "the grand total": [()],
        "one-way tables": list(combinations(names, 1)),
        "two-way tables": list(combinations(names, 2)),
        "the tables asked for": sorted(asked - {names}),
        "the largest tables asked for": sorted(
            by for by in asked - {names} if not any(set(by) < set(other) for other in asked - {names})
        ),
    }
    kept: dict[str, list[By]] = {}
    for name, levels in families.items():
        proper = [by for by in levels if len(by) < len(names)]
        repeats = any(set(proper) == set(other) for other in kept.values())
        if not repeats and len(proper) <= _MOST_LEVELS and (proper or name == "bottom-up"):
            kept[name] = proper
    return kept


def _error(design: SeveralLevels, workload: Mapping[By, float]) -> float:
    total = sum(workload.values())
    return sum(w / total * sqrt(design.expected_variance(*by)) for by, w in workload.items() if w > 0)
