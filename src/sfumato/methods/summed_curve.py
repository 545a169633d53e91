"""Cumulative sums of noisy bins: as they are, or after least squares that know how their noise hangs together."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.methods.cumulative_curve import (
    Crossings,
    Ends,
    Percentiles,
    curve_of,
    rank_variance,
    shares_of,
    unseen_variance,
)
from sfumato.methods.log_normal_fit import LogNormalFit
from sfumato.methods.public_bins import PublicBins
from sfumato.methods.small_samples import NORMAL
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness


def with_geometric_noise(counts: Integers, noise: Geometric, randomness: Randomness) -> Integers:
    """Counts plus one draw each."""
    return counts + noise.sample(counts.size, randomness).reshape(counts.shape)


def nonnegative_bins(noisy: Floats, total: Floats | None = None) -> Floats:
    """The bins nearest to noisy ones, in squares, that are not negative and add up to the same total, or a given one.

    The noise of a cumulative sum is correlated, that of its bins is not: generalised least squares on the curve, which
    must not fall, is ordinary least squares on the bins, which must not be negative. The nearest bins are the noisy
    ones less one amount for all, and 0 where that is more than there is.

    >>> nonnegative_bins(np.array([[4.0, -1.0, 2.0]])).tolist()
    [[3.5, 0.0, 1.5]]
    """
    whole = np.maximum(noisy.sum(axis=1) if total is None else total, 0.0)[:, None]
    falling = -np.sort(-noisy, axis=1)
    taken = (np.cumsum(falling, axis=1) - whole) / np.arange(1, noisy.shape[1] + 1)
    kept = np.maximum((falling > taken).sum(axis=1, keepdims=True), 1)
    return np.maximum(noisy - np.take_along_axis(taken, kept - 1, axis=1), 0.0)


@dataclass(frozen=True, kw_only=True)
class PlainCurve:
    """The cumulative sum of noisy bins, raised to its running maximum: the usual practice, for comparison."""

    bins: PublicBins
    at: tuple[Fraction, ...]
    epsilon: Fraction

    @property
    def noise(self) -> Geometric:
        """Of every bin: a person is in one, so that each may have all of ε."""
        return Geometric(epsilon=self.epsilon)

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """Noisy counts of bins."""
        return with_geometric_noise(counts, self.noise, randomness)

    def expected(self, counts: Floats) -> Integers:
        """The counts."""
        return np.rint(counts).astype(np.int64)

    def curve(self, measured: Integers) -> Floats:
        """A curve from 0 to the noisy total, or higher where it was higher before."""
        return np.maximum.accumulate(curve_of(measured.astype(np.float64)), axis=1)

    def percentiles(self, measured: Integers) -> Percentiles:
        """By interpolation between edges on the logarithmic scale."""
        curve = self.curve(measured)
        return interpolated(
            curve,
            self.bins,
            at=self.at,
            people=measured.sum(axis=1),
            fit=LogNormalFit.of(measured, self.bins, variance=self.noise.variance),
            noise=np.full(len(self.bins), self.noise.variance),
        )


@dataclass(frozen=True, kw_only=True)
class IsotonicCurve(PlainCurve):
    """The curve that does not fall, ends at the noisy total and is nearest to the noisy one by generalised squares."""

    def curve(self, measured: Integers) -> Floats:
        """The cumulative sum of bins that are not negative."""
        return curve_of(nonnegative_bins(measured.astype(np.float64)))


def interpolated(
    curve: Floats, bins: PublicBins, *, at: Sequence[Fraction], people: Integers, fit: LogNormalFit, noise: Floats
) -> Percentiles:
    """Percentiles of curves, people spread evenly over the logarithms of each bin.

    `noise` has the variances of the bins, or their covariances. The standard error is half the way between the values
    1.96 standard deviations of the rank below and above, over 1.96. How far the value is from that of a log-normal
    shape inside the bin is part of it, because people are not spread evenly.
    """
    shares = shares_of(at)
    total = curve[:, -1:]
    crossings = Crossings.of(curve, shares * total)
    held = np.diff(curve, axis=1)
    if noise.ndim == 1:
        variance = rank_variance(noise, held, crossings, shares)
    else:
        variance = _correlated_variance(noise, crossings, shares) + unseen_variance(held, crossings)
    logs = crossings.logs(bins)
    lowest, highest = (
        Crossings.of(curve, np.clip(shares * total + side * NORMAL * np.sqrt(variance), 0.0, total)) for side in (-1, 1)
    )
    apart = logs - crossings.fitted_logs(fit)
    errors = np.hypot((highest.logs(bins) - lowest.logs(bins)) / (2 * NORMAL), apart)
    return Percentiles(
        logs=logs,
        errors=errors,
        likely=errors,
        people=people,
        ends=Ends.of(bins, at=crossings.bin, lowest=lowest.bin, highest=highest.bin),
    )


def _correlated_variance(covariance: Floats, crossings: Crossings, shares: Floats) -> Floats:
    """The variance of the number of people below a crossing less its share of all, from covariances of bins."""
    edges = np.arange(len(covariance) + 1)
    counted = (np.arange(len(covariance)) < edges[:, None])[None] - shares[:, None, None]
    table = np.einsum("pej,jk,pek->pe", counted, covariance, counted)
    columns = np.arange(len(shares))
    start, end = (table[columns, crossings.bin + edge] for edge in (0, 1))
    between: Floats = start + crossings.share * (end - start)
    return between
