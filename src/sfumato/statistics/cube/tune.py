"""The smallest epsilon and cap that give the tables of a cube a stated accuracy, from its parameters alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import sqrt
from statistics import NormalDist

import numpy as np

from sfumato.agree.least_squares import Axes, fibre, summed
from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError, ReleaseError
from sfumato.noise.geometric import TruncatedGeometric, smallest_cap
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.cube.levels import effect_variances, measured_counts, table_variance
from sfumato.statistics.cube.section import CubeSection, table_name
from sfumato.statistics.cube.statistic import CubeStatistic
from sfumato.statistics.cube.truncated_laplace import TruncatedLaplace, cube_method
from sfumato.statistics.jobs.tune import Accuracy, Point, in_toml, meets, searched

_LONGEST = 1 << 15
"""Possible sums of noise, up to which their distribution is worked out exactly; longer ones are nearly normal."""
_LARGEST = 100
"""An epsilon beyond which there is no noise to speak of."""
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Error:
    """The noise in the cells of a table: its exact distribution, or what it is when it is normal."""

    variance: float
    chances: Floats | None = None
    """P(noise = j) for j = −n, …, n; None where it is taken as normal."""

    @classmethod
    def of(cls, noise: TruncatedGeometric, cells: int) -> "Error":
        """Of a sum of so many independent draws."""
        length = 2 * noise.cap * cells + 1
        variance = noise.variance * cells
        if length > _LONGEST:
            return cls(variance=variance)
        spectrum = np.fft.rfft(noise.probabilities, length) ** cells
        return cls(variance=variance, chances=np.maximum(np.fft.irfft(spectrum, length), 0.0))

    @property
    def mean(self) -> float:
        """The mean absolute error."""
        if self.chances is None:
            return sqrt(2 * self.variance / np.pi)
        return float(self.chances @ np.abs(np.arange(len(self.chances)) - len(self.chances) // 2))

    def within(self, tolerances: Floats) -> Floats:
        """The probability of an error of at most so much."""
        if self.chances is None:
            far = tolerances / sqrt(self.variance) if self.variance else np.full(tolerances.shape, np.inf)
            return np.array([2 * _NORMAL.cdf(float(one)) - 1 for one in far])
        middle = len(self.chances) // 2
        upto = np.cumsum(self.chances[middle:]) * 2 - self.chances[middle]
        return np.asarray(upto[np.clip(np.floor(tolerances), 0, middle).astype(np.intp)])


@dataclass(frozen=True, kw_only=True)
class TunedCube:
    """The smallest epsilon that meets the accuracy, with its cap, and the curve around it."""

    cube: CubeStatistic
    accuracy: Accuracy
    dimensions: int
    confidential: bool
    """Whether true cells were looked at."""
    epsilon: Fraction
    """Of the cells of the cube; `guarantee` has what controls spend beside it."""
    section: CubeSection
    """The section with what was found."""
    noisiest: tuple[str, ...]
    """The table with the largest errors of those with so many dimensions."""
    figure: float
    curve: tuple[Point, ...]

    @cached_property
    def guarantee(self) -> EmployerEmployee:
        """What the cube and its controls spend."""
        return _method(self.cube, self.section).spends()

    @property
    def assumption(self) -> str:
        """What the finding is about, in words."""
        table = table_name(self.noisiest)
        if self.confidential:
            return f"True cells of all tables of {self.dimensions} dimensions: what is found is confidential"
        return f"No data are read: it holds in every table of {self.dimensions} dimensions; the noisiest is {table}"

    def lines(self) -> dict[str, str]:
        """The keys of the section that use it; of controls, those with noise."""
        noisy = [control for control in self.section.controls if control.epsilon is not None]
        controls = [f"{{ by = {in_toml(one.by)}, epsilon = {in_toml(one.epsilon)} }}" for one in noisy]
        found = {"epsilon": in_toml(self.epsilon), "cap": f"{self.section.cap}"}
        return found | ({"controls": f"[{', '.join(controls)}]"} if controls else {})


def tune_cube(
    cube: CubeStatistic,
    section: CubeSection,
    *,
    accuracy: Accuracy,
    dimensions: int,
    delta: Fraction,
    counts: Integers | None = None,
) -> TunedCube:
    """Find the smallest epsilon of three digits, and the least cap, for all tables of so many dimensions.

    Controls and levels keep their share of epsilon, and `delta` is shared by the cube and all of them. A share of cells
    is that of the noisiest table, at the size that the accuracy is stated for; with `counts`, the true cube, it is that
    of all true cells that are meant, whatever the table.
    """
    _refuse(cube, dimensions, delta)
    tables = list(combinations(range(len(cube.question.by)), dimensions))
    sizes = None if counts is None else {axes: _meant(np.ravel(summed(counts, axes)), accuracy) for axes in tables}
    if sizes is not None and not sum(map(len, sizes.values())):
        raise ReleaseError(
            f"cube '{cube.name}'",
            expected=f"cells of the size that is meant: {accuracy}",
            found="none in tables with so many dimensions",
            do="state the accuracy for cells of another size, or ask for other dimensions",
        )

    def at(epsilon: Fraction) -> Point:
        if epsilon > _LARGEST:
            return Point(epsilon=epsilon, figure=None, meets=True)
        try:
            errors = _errors(cube, _scaled(section, epsilon, delta), tables)
        except MethodError:
            return Point(epsilon=epsilon, figure=None, meets=False)
        figure = _figure(errors, accuracy, sizes)
        return Point(epsilon=epsilon, figure=figure, meets=meets(figure, accuracy))

    best, curve = searched(at)
    if best.figure is None:
        raise MethodError(
            "truncated-laplace",
            expected=f"an accuracy that noise can keep: {accuracy}",
            found=f"no epsilon up to {_LARGEST} that does",
            do="ask for less, or for larger cells",
        )
    found = _scaled(section, best.epsilon, delta)
    errors = _errors(cube, found, tables)
    names = [dimension.name for dimension in cube.question.by]
    noisiest = max(errors, key=lambda axes: errors[axes].variance)
    return TunedCube(
        cube=cube,
        accuracy=accuracy,
        dimensions=dimensions,
        confidential=counts is not None,
        epsilon=best.epsilon,
        section=found,
        noisiest=tuple(names[axis] for axis in noisiest),
        figure=best.figure,
        curve=curve,
    )


def _refuse(cube: CubeStatistic, dimensions: int, delta: Fraction) -> None:
    most = len(cube.question.by)
    if not 0 < delta < 1:
        raise MethodError(
            "truncated-laplace",
            expected="0 < delta < 1: noise with a cap always leaves a δ",
            found=f"delta = {plain(delta)}",
            do="choose a delta such as 1e-6",
        )
    if not 0 <= dimensions <= most:
        raise ReleaseError(
            f"cube '{cube.name}'",
            expected=f"tables of 0 to {most} dimensions",
            found=f"{dimensions}",
            do="choose another number with --dimensions",
        )
    if cube.section.nonnegative:
        raise ReleaseError(
            f"cube '{cube.name}'",
            expected="cells that may be negative: their errors follow from the parameters",
            found="nonnegative = true: raising cells to 0 makes sums too high, by an amount that depends on the data",
            do="tune the cube without `nonnegative`, and publish it so; or look with `sfumato assess` at what it adds",
        )
    if cube.guarantee.bound is None:
        raise ReleaseError(
            f"cube '{cube.name}'",
            expected="a cube with a guarantee, whose epsilon means something",
            found='draws = "shared"',
            do="leave out `draws`",
        )


def _scaled(section: CubeSection, epsilon: Fraction, delta: Fraction) -> CubeSection:
    """The section at another epsilon: controls keep their share, and every cap is the least for its part of δ."""
    times = epsilon / section.epsilon
    noisy = sum(control.epsilon is not None for control in section.controls) + len(section.levels)
    parts = (1 + noisy) * (2 if section.sensitivity == "weight" else 1)
    controls = tuple(
        control
        if control.epsilon is None
        else control.model_copy(update={"epsilon": control.epsilon * times, "cap": None})
        for control in section.controls
    )
    own = epsilon * (1 - section.levels_share) if section.levels else epsilon
    cap = smallest_cap(epsilon=own, delta=float(delta) / parts, sensitivity=section.most_records or 1)
    return section.model_copy(update={"epsilon": epsilon, "cap": cap, "controls": controls})


def _method(cube: CubeStatistic, section: CubeSection) -> TruncatedLaplace:
    return cube_method(section.with_levels_as_controls(), alpha=cube.method.alpha, weighted=cube.weighted)


def _errors(cube: CubeStatistic, section: CubeSection, tables: Sequence[Axes]) -> dict[Axes, Error]:
    """The noise in the cells of each table; they all have the same."""
    method, shape = _method(cube, section), tuple(map(len, cube.question.by))
    names = [dimension.name for dimension in cube.question.by]
    raked = section.calibration == "raking"
    public = None if raked else [totals.by for totals in cube.totals if "count" in totals.columns]
    measured = measured_counts(names, method, public=public)
    if len(measured) == 1:
        sums = {cells: Error.of(method.counts, cells) for cells in {fibre(axes, shape) for axes in tables}}
        return {axes: sums[fibre(axes, shape)] for axes in tables}
    effects = effect_variances(shape, measured)
    return {
        axes: Error(variance=table_variance(shape, axes, effects, otherwise=method.counts.variance)) for axes in tables
    }


def _figure(errors: Mapping[Axes, Error], accuracy: Accuracy, sizes: Mapping[Axes, Integers] | None) -> float:
    """The mean error, or the share of cells within the limit: of the noisiest table, or of true cells."""
    limit = float(accuracy.limit)
    if sizes is None:
        worst = max(errors.values(), key=lambda error: error.variance)
        if accuracy.share is None:
            return worst.mean / (accuracy.jobs if accuracy.relative else 1)
        return float(worst.within(np.array([accuracy.tolerance]))[0])
    parts = []
    for axes, cells in sizes.items():
        error, size = errors[axes], cells.astype(np.float64)
        if accuracy.share is None:
            parts.append(error.mean / size if accuracy.relative else np.full(len(size), error.mean))
        else:
            limits = limit * size if accuracy.relative else np.full(len(size), limit)
            different, back = np.unique(limits, return_inverse=True)
            parts.append(error.within(different)[back])
    return float(np.concatenate(parts).mean())


def _meant(cells: Integers, accuracy: Accuracy) -> Integers:
    """The cells of the size that the accuracy is stated for, without empty ones where it is relative."""
    chosen = cells >= accuracy.jobs if accuracy.relative else cells <= accuracy.jobs
    return cells[chosen]


def find_cube(cubes: Sequence[CubeStatistic], name: str | None) -> CubeStatistic:
    """The named cube, or the only one."""
    named = {cube.name: cube for cube in cubes}
    if name is None and len(named) == 1:
        return next(iter(named.values()))
    if name not in named:
        raise ReleaseError(
            "cube",
            expected=f"one of {', '.join(named)}" if named else "a release with a cube",
            found="none" if name is None else repr(name),
            do="name the cube with --cube" if named else "see `sfumato tune --help` for tables",
        )
    return named[name]
