"""Cumulative curves over public bins, from which percentiles are read, and the bin of a percentile."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Protocol, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.choice import WeightedChoice
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.statistics.people.bins import WITHIN, LogNormalFit, PublicBins, inverse
from sfumato.statistics.people.small_samples import NORMAL

Number = TypeVar("Number", bound=np.generic)

# Percentiles from a cumulative curve over public bins, and how far off they are expected to be.


@dataclass(frozen=True, kw_only=True, eq=False)
class Percentiles:
    """The percentiles of many cells on the logarithmic scale: one row a cell, one column a percentile."""

    logs: Floats
    errors: Floats
    """Standard errors of the logarithms, worked out from published quantities; they allow for people being spread in
    another way than is thought."""
    likely: Floats
    """The same if people are spread as is thought: for plans."""
    people: Integers
    """The noisy number of people in each cell."""
    ends: "Ends"
    """Which of them are in the first or the last bin, where nothing tells them from one another or their error."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ends:
    """Which percentiles are beyond the inner edges of the bins: one row a cell, one column a percentile."""

    side: Integers
    """−1 in the first bin, 1 in the last one, else 0."""
    bound: Integers
    """The edge that such a percentile is below or above, with the noise allowed for; else 0."""

    @classmethod
    def of(
        cls, bins: PublicBins, *, at: NDArray[np.intp], lowest: NDArray[np.intp], highest: NDArray[np.intp]
    ) -> "Ends":
        """From the bins that hold the percentiles, and those that could hold them within the noise."""
        side = np.where(at == 0, -1, np.where(at == len(bins) - 1, 1, 0))
        edges = np.array(bins.edges, dtype=np.int64)
        bound = np.where(side < 0, edges[highest + 1], np.where(side > 0, edges[lowest], 0))
        return cls(side=side.astype(np.int64), bound=bound.astype(np.int64))


class Curve(Protocol):
    """A way from the counts in bins to percentiles; `sfumato.statistics.people.percentiles` lists those that exist.

    Only `measured` sees the data, and whatever it returns may be published; `percentiles` is post-processing. Counts
    may be of people with weights: noise then hides one of the `largest` weight, and what is measured is read as if it
    were people who all weigh that much. There are more, and lighter ones, so that errors are told too large rather than
    too small.
    """

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """All that is asked of the data: one row a cell."""
        ...

    def expected(self, counts: Floats) -> Integers:
        """What would be measured without noise, rounded: for planning, from counts that are thought up."""
        ...

    def percentiles(self, measured: Integers) -> Percentiles:
        """The percentiles, from nothing but what was measured and public parameters."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossings:
    """Where curves reach the percentiles: in which bin, and after which share of its people."""

    bin: NDArray[np.intp]
    share: Floats

    @classmethod
    def of(cls, curve: Floats, targets: Floats) -> "Crossings":
        """Where curves that begin at 0 and never fall reach the targets: one row a cell, one column a target."""
        last = curve.shape[1] - 2
        bins = np.minimum((curve[:, None, 1:] < targets[:, :, None]).sum(axis=2), last)
        start, end = (np.take_along_axis(curve, bins + edge, axis=1) for edge in (0, 1))
        inside = np.divide(targets - start, end - start, out=np.full_like(targets, 0.5), where=end > start)
        return cls(bin=bins, share=np.clip(inside, 0.0, 1.0))

    def logs(self, bins: PublicBins) -> Floats:
        """The values there when the people of a bin are spread evenly over the logarithms."""
        start, end = bins.logs[self.bin], bins.logs[self.bin + 1]
        logs: Floats = start + self.share * (end - start)
        return logs

    def fitted_logs(self, fit: LogNormalFit) -> Floats:
        """The values there when the people of a bin are spread like those of the fitted distribution."""
        below = fit.below
        start, end = (np.take_along_axis(below, self.bin + edge, axis=1) for edge in (0, 1))
        # Far from the fitted distribution a bin has no share of it, and the value goes to the nearer edge.
        logs = fit.logs_at(start + self.share * (end - start))
        return np.clip(logs, fit.bins.logs[self.bin], fit.bins.logs[self.bin + 1])


def curve_of(bins: Floats) -> Floats:
    """The number of people below every edge."""
    return np.pad(np.cumsum(bins, axis=1), ((0, 0), (1, 0)))


def shares_of(at: Sequence[Fraction]) -> Floats:
    """Percentiles as shares."""
    return np.array([float(place / 100) for place in at])


def rank_variance(variances: Floats, people: Floats, crossings: Crossings, shares: Floats) -> Floats:
    """The variance of the number of people below a crossing less its share of all, when errors of bins are independent.

    A bin below counts with 1 − p, one above with −p. Of the people of the bin itself, the share that is below is only
    expected: each of them is there or not.
    """
    ends = curve_of(np.broadcast_to(variances, people.shape))
    below = np.take_along_axis(ends, crossings.bin, axis=1)
    own = np.take_along_axis(ends, crossings.bin + 1, axis=1) - below
    above = ends[:, -1:] - below - own
    spread = below * (1 - shares) ** 2 + own * (crossings.share - shares) ** 2 + above * shares**2
    return spread + unseen_variance(people, crossings)


def unseen_variance(people: Floats, crossings: Crossings) -> Floats:
    """The variance of the number of people below a point inside a bin, of whom only the bin is known."""
    own = np.maximum(np.take_along_axis(people, crossings.bin, axis=1), 0.0)
    return own * crossings.share * (1 - crossings.share)


# Cumulative sums of noisy bins: as they are, or after least squares that know how their noise hangs together.


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
    largest: int = 1

    @property
    def noise(self) -> Geometric:
        """Of every bin: a person is in one, so that each may have all of ε."""
        return Geometric(epsilon=self.epsilon / self.largest)

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """Noisy counts of bins."""
        return with_geometric_noise(counts, self.noise, randomness)

    def expected(self, counts: Floats) -> Integers:
        """The counts."""
        return np.rint(counts).astype(np.int64)

    def curve(self, people: Floats) -> Floats:
        """A curve from 0 to the noisy total, or higher where it was higher before."""
        return np.maximum.accumulate(curve_of(people), axis=1)

    def percentiles(self, measured: Integers) -> Percentiles:
        """By interpolation between edges on the logarithmic scale."""
        people, variance = measured / self.largest, self.noise.variance / self.largest**2
        return interpolated(
            self.curve(people),
            self.bins,
            at=self.at,
            people=measured.sum(axis=1),
            fit=LogNormalFit.of(people, self.bins, variance=variance),
            noise=np.full(len(self.bins), variance),
        )


@dataclass(frozen=True, kw_only=True)
class IsotonicCurve(PlainCurve):
    """The curve that does not fall, ends at the noisy total and is nearest to the noisy one by generalised squares."""

    def curve(self, people: Floats) -> Floats:
        """The cumulative sum of bins that are not negative."""
        return curve_of(nonnegative_bins(people))


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


# Noise in the bins and in groups of them, brought together by least squares.

_DIGITS = 9
"""Of least-squares bins, after the point: far more than noise in whole people leaves."""
LEVELS = 2
"""Bins, and √K groups of √K bins: more levels share ε among more, which pays only beyond a thousand bins."""


@dataclass(frozen=True, kw_only=True)
class TreeCurve:
    """Both levels get half of ε, and the bins are those that fit both best.

    A person is in one bin and in one group. A cumulative sum is then whole groups and a few bins, instead of many bins.
    """

    bins: PublicBins
    at: tuple[Fraction, ...]
    epsilon: Fraction
    largest: int = 1

    @property
    def noise(self) -> Geometric:
        """Of every bin and every group."""
        return Geometric(epsilon=self.epsilon / LEVELS / self.largest)

    @cached_property
    def starts(self) -> list[int]:
        """The first bin of each group, and the number of bins."""
        return self.bins.starts(isqrt(len(self.bins)))

    @cached_property
    def _sums(self) -> Floats:
        """Which bins are added up: one row for each bin, then one for each group."""
        bins = np.arange(len(self.bins))
        groups = [(bins >= low) & (bins < high) for low, high in pairwise(self.starts)]
        return np.concatenate([np.eye(len(self.bins)), np.array(groups, dtype=np.float64)])

    @cached_property
    def _inverse(self) -> Floats:
        """(HᵀH)⁻¹ of the sums H: all have the same noise, so that least squares need no weights."""
        return inverse(self._sums.T @ self._sums)

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """Noisy counts of all bins, then of all groups."""
        return with_geometric_noise(self._both(counts), self.noise, randomness)

    def expected(self, counts: Floats) -> Integers:
        """The counts of both."""
        return np.rint(self._both(counts)).astype(np.int64)

    def _both(self, counts: NDArray[Number]) -> NDArray[Number]:
        """Bins, then groups, added up in one order on every machine: expected counts may be halves, which round."""
        return np.concatenate([counts, np.add.reduceat(counts, self.starts[:-1], axis=1)], axis=1)

    def percentiles(self, measured: Integers) -> Percentiles:
        """From the least-squares bins, none of them negative; the count is their total, rounded."""
        # A bin that nobody is in is 0 on every processor, and no hair above or below it: the curve is flat there.
        weighed = np.round(measured @ (self._sums @ self._inverse), _DIGITS)
        bins, variance = weighed / self.largest, self.noise.variance / self.largest**2
        return interpolated(
            curve_of(self._nonnegative(bins)),
            self.bins,
            at=self.at,
            people=np.rint(weighed.sum(axis=1)).astype(np.int64),
            fit=LogNormalFit.of(bins, self.bins, variance=float(variance * self._inverse.diagonal().mean())),
            noise=variance * self._inverse,
        )

    def _nonnegative(self, bins: Floats) -> Floats:
        """First groups that are not negative, then bins that add up to their group.

        Groups are known better than bins. To raise all bins to 0 at once would move people from group to group, which
        nearly doubled the error in cells of 30 to 100 people.
        """
        held = np.empty_like(bins)
        groups = nonnegative_bins(np.add.reduceat(bins, self.starts[:-1], axis=1))
        for group, (low, high) in enumerate(pairwise(self.starts)):
            held[:, low:high] = nonnegative_bins(bins[:, low:high], groups[:, group])
        return held


# The bin that holds a percentile, chosen by the exponential mechanism.


@dataclass(frozen=True, kw_only=True)
class ChosenBins:
    """Each percentile is a bin, chosen with a probability that falls with the number of people it is off by.

    ε is divided evenly over the percentiles and the count. The error does not grow with the number of bins, but nothing
    is known of where in its bin a percentile is.
    """

    bins: PublicBins
    at: tuple[Fraction, ...]
    epsilon: Fraction
    largest: int = 1

    @property
    def noise(self) -> Geometric:
        """Of the count."""
        return Geometric(epsilon=self.epsilon / (len(self.at) + 1) / self.largest)

    def choice(self, place: Fraction) -> WeightedChoice:
        """How one percentile's bin is chosen: one person more moves no cost by more than the larger of a and b − a.

        One with a weight moves it by as many times that.
        """
        share = place / 100
        moved = max(share.numerator, share.denominator - share.numerator) * self.largest
        return WeightedChoice(rate=self.epsilon / (len(self.at) + 1) / (2 * moved))

    def costs(self, counts: Integers, place: Fraction) -> Integers:
        """By how many people, times b, every bin misses the percentile a/b: 0 for the bin that holds it."""
        share = place / 100
        ends = np.cumsum(counts, axis=1)
        wanted = share.numerator * ends[:, -1:]
        too_high = share.denominator * (ends - counts) - wanted
        too_low = wanted - share.denominator * ends
        costs: Integers = np.maximum(np.maximum(too_high, too_low), 0)
        return costs

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """The noisy count, and a bin for each percentile."""
        people = with_geometric_noise(counts.sum(axis=1), self.noise, randomness)
        chosen = [self.choice(place).sample(self.costs(counts, place), randomness) for place in self.at]
        return np.stack([people, *chosen], axis=1)

    def expected(self, counts: Floats) -> Integers:
        """The number of people, and the bins that hold the percentiles."""
        whole = np.rint(counts).astype(np.int64)
        bins = [self.costs(whole, place).argmin(axis=1) for place in self.at]
        return np.stack([whole.sum(axis=1), *bins], axis=1)

    def percentiles(self, measured: Integers) -> Percentiles:
        """The middles of the chosen bins, in order."""
        people, chosen = measured[:, 0], np.sort(measured[:, 1:], axis=1)
        logs = self.bins.middles[chosen]
        errors = self._errors(people / self.largest, logs)
        lowest, highest = (
            np.searchsorted(self.bins.logs[1:-1], logs + side * NORMAL * errors, side="right") for side in (-1, 1)
        )
        ends = Ends.of(self.bins, at=chosen, lowest=lowest, highest=highest)
        return Percentiles(logs=logs, errors=errors, likely=errors, people=people, ends=ends)

    def _errors(self, people: Floats, logs: Floats) -> Floats:
        """What choosing would do to a log-normal cell with these percentiles, which may be anywhere in their bins."""
        shares = shares_of(self.at)
        z = scipy.special.ndtri(shares)
        usual = WITHIN * self.bins.guess[1]
        away = z - z.mean()
        spread = np.full(len(logs), usual)
        if len(shares) > 1:
            spread = np.clip((logs @ away) / (away @ away), 0.2 * usual, 2 * usual)
        fit = LogNormalFit(
            bins=self.bins,
            people=np.maximum(people, 1.0),
            mean=logs.mean(axis=1) - spread * z.mean(),
            spread=spread,
        )
        counts = np.rint(self.largest * fit.people[:, None] * np.diff(fit.below, axis=1)).astype(np.int64)
        errors = np.empty_like(logs)
        for column, place in enumerate(self.at):
            chances = self.choice(place).probabilities(self.costs(counts, place))
            holds = chances.argmax(axis=1)
            missed = np.sum(chances * (self.bins.middles - self.bins.middles[holds, None]) ** 2, axis=1)
            errors[:, column] = np.sqrt(missed + np.diff(self.bins.logs)[holds] ** 2 / 12)
        return errors
