"""What is told beside the numbers of a cube, so that errors can be worked out: scales and sampling."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes, summed
from sfumato.arrays import Floats, Integers
from sfumato.statistics.cube.cube import Cube, ratio_to_positive

# How much one unit of noise is in a column of a cube: an average weight, overall or within the codes of a stratum.

DIGITS = 3
"""Averages are rounded to so many digits: they are told to readers, for error figures."""
FEWEST = 30
"""Strata with fewer records take the average of all: the average of a few would tell their weights."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What one unit of noise is in the parts of a column."""

    overall: int
    axis: int | None = None
    """The dimension that makes the strata."""
    by_code: tuple[int, ...] = ()

    def laid(self, axes: Axes) -> Integers | int:
        """The scale over a table with these axes, ready to be multiplied with its noise."""
        if self.axis is None or self.axis not in axes:
            return self.overall
        return np.array(self.by_code, dtype=np.int64).reshape([-1 if axis == self.axis else 1 for axis in axes])

    def mean_square(self, axes: Axes) -> float:
        """The square of the scale, on average over the cells of a table with these axes."""
        if self.axis is None or self.axis not in axes:
            return float(self.overall) ** 2
        return float(np.mean(np.array(self.by_code, dtype=np.float64) ** 2))

    def products(self, other: "Scale", selected: Sequence[NDArray[np.intp]], *, by: Axes, over: Axes) -> Floats:
        """The mean product with a scale of the same strata, in the sums of a table by some axes.

        They are laid over a table with the axes `over`, which hold those of `by`. A sum that takes several codes of the
        stratum has the mean over the codes selected.
        """
        if self.axis is None or other.axis is None:
            return np.asarray(float(self.overall) * float(other.overall))
        ours, theirs = (np.array(scale.by_code, dtype=np.float64) for scale in (self, other))
        chosen = (ours * theirs)[selected[self.axis]]
        if self.axis not in by:
            return np.asarray(chosen.mean())
        return chosen.reshape([-1 if axis == self.axis else 1 for axis in over])


def average_scale(true: Cube, column: str, stratum: str | None) -> Scale:
    """The average of a column over records, at least one part, in a few digits."""
    counts, sums = true.total("count"), true.total(column)
    overall = in_few_digits(sums / counts) if counts else true.parts[column]
    if stratum is None:
        return Scale(overall=overall)
    axis = true.names.index(stratum)
    n, total = summed(true["count"], (axis,)), summed(true[column], (axis,))
    by_code = tuple(in_few_digits(int(t) / int(k)) if k >= FEWEST else overall for k, t in zip(n, total, strict=True))
    return Scale(overall=overall, axis=axis, by_code=by_code)


def in_few_digits(average: float) -> int:
    """A positive number in three digits, a whole one.

    >>> in_few_digits(2_181_642_107.3), in_few_digits(0.2)
    (2180000000, 1)
    """
    return max(int(float(f"{average:.{DIGITS}g}")), 1)


# The sampling variance of any figure of a cube, from a few published parameters: a generalised variance function.
#
# Replicate estimates of every cell are not published. Their mean is the true weighted count, whatever noise the cube
# has, and with 80 of them a cube would be 80 times as large. What is published is how the variance of a weighted total
# depends on the total, fitted to the replicate variances of one-way tables and controls; docs/methods/hypercube.md
# explains it.

_DIGITS = 3
_ROUNDS = 25


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The variance of a weighted total θ is square·θ² + linear·θ, and of a proportion p of B linear·p(1 − p)/B."""

    square: float
    linear: float
    means: Mapping[str, float] = field(default_factory=dict)
    """For each measure c: the variance of its mean over a weighted total B is c/B."""

    def of_totals(self, totals: Floats) -> Floats:
        """The sampling variance of weighted totals; where noise made one negative, that of 0."""
        above = np.maximum(totals, 0.0)
        variances: Floats = self.square * above**2 + self.linear * above
        return variances

    def of_means(self, spread: Floats | float, totals: Floats) -> Floats:
        """The sampling variance of means, given the variance within the whole and the weighted totals."""
        return ratio_to_positive(self.linear * np.maximum(spread, 0.0), totals)

    def of_sums(self, measure: str, sums: Floats, totals: Floats) -> Floats:
        """The sampling variance of weighted sums of a measure: a mean times a total, taken as uncorrelated."""
        variances = ratio_to_positive(sums, totals) ** 2 * self.of_totals(totals) + totals**2 * self.of_measure(
            measure, totals
        )
        return np.where(totals > 0, variances, 0.0)

    def of_measure(self, measure: str, totals: Floats) -> Floats:
        """The sampling variance of the mean of a measure over weighted totals."""
        return ratio_to_positive(np.asarray(self.means[measure]), totals)


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Weighted totals of some tables with their replicate variances, and the same for means of measures."""

    totals: Floats
    variances: Floats
    means: Mapping[str, Floats] = field(default_factory=dict)
    """For each measure the variance of its mean in every cell, NaN where there is none."""


def fitted(estimates: Sequence[Estimates]) -> Sampling:
    """The two parameters that follow the replicate variances most closely, in relative terms, rounded to three digits.

    Neither is negative. A cell counts by its variance as fitted, so that large cells do not decide alone.
    """
    totals = np.concatenate([e.totals for e in estimates]) if estimates else np.empty(0)
    variances = np.concatenate([e.variances for e in estimates]) if estimates else np.empty(0)
    seen = (totals > 0) & np.isfinite(variances)
    square, linear = _two_parameters(totals[seen], variances[seen])
    means = {}
    for name in estimates[0].means if estimates else ():
        found = np.concatenate([e.means[name] for e in estimates])
        known = seen & np.isfinite(found)
        # c minimises the relative errors of c/B; every cell is an estimate of it.
        means[name] = _short(float(np.mean(found[known] * totals[known]))) if known.any() else 0.0
    return Sampling(square=_short(square), linear=_short(linear), means=means)


def _two_parameters(totals: Floats, variances: Floats) -> tuple[float, float]:
    if not len(totals):
        return 0.0, 0.0
    square, linear = 0.0, float(variances.sum() / totals.sum())
    for _ in range(_ROUNDS):
        expected = square * totals**2 + linear * totals
        if not bool(np.all(expected > 0)):
            break
        s, t, v = totals**2 / expected, totals / expected, variances / expected
        square, linear = _nonnegative(s, t, v)
    return square, linear


def _nonnegative(s: Floats, t: Floats, v: Floats) -> tuple[float, float]:
    """The least-squares coefficients of s and t, neither below 0."""
    # Not x @ y, whose last digits depend on the processor: a fit without residuals would tell them.
    ss, tt, st, sv, tv = (float(np.sum(x * y)) for x, y in ((s, s), (t, t), (s, t), (s, v), (t, v)))
    determinant = ss * tt - st * st
    if determinant > 1e-12 * ss * tt:
        square, linear = (sv * tt - tv * st) / determinant, (tv * ss - sv * st) / determinant
        if square >= 0 and linear >= 0:
            return square, linear
        if square < 0:
            return 0.0, tv / tt
        return sv / ss, 0.0
    return 0.0, tv / tt


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


@dataclass(frozen=True, kw_only=True)
class ColumnNoise:
    """The noise of one column: its variance in units of noise, and what one unit is in parts of the column."""

    variance: float
    """Of a cell of the cube."""
    controls: Mapping[Axes, float]
    """Of a cell of each control, by its axes; 0 where it is exact."""
    scale: Scale
    rounding: float = 0.0
    """The variance of rounding to whole units in a cell with records."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How the cube was made to add up to its controls."""

    method: str
    converged: bool
    largest_gap: int
    """The largest difference between a sum and its control, in parts of the column, over all columns."""
    cycles: int
    gaps: Mapping[str, int] = field(default_factory=dict)
    """The same for each column, where that is known."""

    def only(self, columns: Collection[str]) -> "Calibration":
        """How some of the columns were made to; where it is not known of each column, as it is told of all."""
        if not self.gaps:
            return self
        gaps = {name: gap for name, gap in self.gaps.items() if name in columns}
        largest = max(gaps.values(), default=0)
        return replace(self, converged=self.converged or not largest, largest_gap=largest, gaps=gaps)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Error figures of a cube, made from parameters and a few averages."""

    noise: Mapping[str, ColumnNoise]
    sampling: Sampling | None = None
    """None where the data have no replicate weights."""
    calibration: Calibration | None = None

    def only(self, columns: Collection[str]) -> "Figures":
        """The figures of some of the columns."""
        noise = {name: of for name, of in self.noise.items() if name in columns}
        calibration = None if self.calibration is None else self.calibration.only(columns)
        return replace(self, noise=noise, calibration=calibration)

    def described(self) -> dict[str, Any]:
        """The figures as plain numbers and words, for JSON."""
        return {
            "noise": {
                name: {
                    "variance": noise.variance,
                    "rounding": noise.rounding,
                    "controls": [[list(axes), variance] for axes, variance in noise.controls.items()],
                    "scale": {
                        "overall": noise.scale.overall,
                        "axis": noise.scale.axis,
                        "by_code": list(noise.scale.by_code),
                    },
                }
                for name, noise in self.noise.items()
            },
            "sampling": None
            if self.sampling is None
            else {
                "square": self.sampling.square,
                "linear": self.sampling.linear,
                "means": dict(self.sampling.means),
            },
            "calibration": None if self.calibration is None else vars(self.calibration),
        }

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> "Figures":
        """The figures that were described."""
        noise = {
            name: ColumnNoise(
                variance=found["variance"],
                rounding=found["rounding"],
                controls={tuple(axes): variance for axes, variance in found["controls"]},
                scale=Scale(
                    overall=found["scale"]["overall"],
                    axis=found["scale"]["axis"],
                    by_code=tuple(found["scale"]["by_code"]),
                ),
            )
            for name, found in described["noise"].items()
        }
        sampling, calibration = described["sampling"], described["calibration"]
        return cls(
            noise=noise,
            sampling=None if sampling is None else Sampling(**sampling),
            calibration=None if calibration is None else Calibration(**calibration),
        )
