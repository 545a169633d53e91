"""The sampling variance of any figure of a cube, from a few published parameters: a generalised variance function.

Replicate estimates of every cell are not published. Their mean is the true weighted count, whatever noise the cube has,
and with 80 of them a cube would be 80 times as large. What is published is how the variance of a weighted total depends
on the total, fitted to the replicate variances of one-way tables and controls; docs/methods/hypercube.md explains it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.arrays import Floats

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
        return _ratio(self.linear * np.maximum(spread, 0.0), totals)

    def of_sums(self, measure: str, sums: Floats, totals: Floats) -> Floats:
        """The sampling variance of weighted sums of a measure: a mean times a total, taken as uncorrelated."""
        variances = _ratio(sums, totals) ** 2 * self.of_totals(totals) + totals**2 * self.of_measure(measure, totals)
        return np.where(totals > 0, variances, 0.0)

    def of_measure(self, measure: str, totals: Floats) -> Floats:
        """The sampling variance of the mean of a measure over weighted totals."""
        return _ratio(np.asarray(self.means[measure]), totals)


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
    ss, tt, st, sv, tv = (float(x @ y) for x, y in ((s, s), (t, t), (s, t), (s, v), (t, v)))
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


def _ratio(above: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
    return ratio
