"""Count people first, then only as many bins as so many people can fill, and read the noise with the shape in mind."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.statistics.people.bins import LogNormalFit, PublicBins, expected_bins
from sfumato.statistics.people.curves import (
    Crossings,
    Ends,
    Percentiles,
    curve_of,
    rank_variance,
    shares_of,
    with_geometric_noise,
)
from sfumato.statistics.people.small_samples import NORMAL

COUNT_SHARE = Fraction(1, 30)
"""Of ε, for the count that decides on the number of groups: it need not be good."""
FEWEST_GROUPS = 8
"""Fewer make interpolation the larger error at any size."""
_FINER = 1.25
"""Each number of groups that is used is about so many times the one before."""
_ROUNDS = 2
_LEAST = 1e-12
"""A variance of a rank that is none."""
_DISBELIEF = 3.0
"""Noisy sums count against the posterior where they are apart by more than the root of so many times what is usual."""
_UNSEEN = 0.3
"""Of that variance, what is told as error even where the two agree: the shape may be wrong and not be found out."""
_UNKNOWN_SHAPE = 0.3
"""Were all people of a cell in one group, its median would be off by so much of the width of the group."""
_LEAST_DENSITY = 1e-3
"""Of the fitted distribution; further out, percentiles are taken to move with it."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveCurve:
    """Neighbouring bins are joined to about √(people/variance of the noise) groups, each gets noise, and the groups are
    taken as what a fitted log-normal shape leads one to expect of them.

    With G groups the rank of a percentile is off by noise of variance G·v/4, and by about N/6G because nobody knows
    where in their group people are: the sum is least near G = √(N/v).
    """

    bins: PublicBins
    at: tuple[Fraction, ...]
    epsilon: Fraction
    largest: int = 1

    @property
    def count_noise(self) -> Geometric:
        """Of the first count."""
        return Geometric(epsilon=self.epsilon * COUNT_SHARE / self.largest)

    @property
    def noise(self) -> Geometric:
        """Of every group."""
        return Geometric(epsilon=self.epsilon * (1 - COUNT_SHARE) / self.largest)

    @cached_property
    def variance(self) -> float:
        """Of the noise of every group, in people of the largest weight."""
        return self.noise.variance / self.largest**2

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of groups that are used, ascending."""
        most = self.bins.shares
        half = most // 2  # beyond, some groups would be single bins and others twice as wide
        numbers = [FEWEST_GROUPS]
        while numbers[-1] * _FINER < half:
            numbers.append(round(numbers[-1] * _FINER))
        return sorted({min(number, most) for number in (*numbers, max(half, FEWEST_GROUPS), most)})

    def number_for(self, people: Integers) -> Integers:
        """How many groups cells of so many people get: the number nearest to the best one, as logarithms."""
        best = np.log(np.maximum(people / self.largest, 1)) / 2 - np.log(max(self.variance, 1e-300)) / 2
        between = np.log(np.array(self.numbers[:-1]) * np.array(self.numbers[1:])) / 2
        numbers: Integers = np.array(self.numbers)[np.searchsorted(between, best)]
        return numbers

    def measured(self, counts: Integers, randomness: Randomness) -> Integers:
        """The first count, and as many noisy groups as it decides on, then zeros."""
        first = with_geometric_noise(counts.sum(axis=1), self.count_noise, randomness)
        return self._measured(first, counts, lambda groups: with_geometric_noise(groups, self.noise, randomness))

    def expected(self, counts: Floats) -> Integers:
        """The number of people, and the groups."""
        people = np.rint(counts.sum(axis=1)).astype(np.int64)
        return self._measured(people, counts, np.rint)

    def percentiles(self, measured: Integers) -> Percentiles:
        """By interpolation along the fitted shape; the count is the total of the noisy groups."""
        logs, errors, likely = (np.empty((len(measured), len(self.at))) for _ in range(3))
        side, bound = (np.empty((len(measured), len(self.at)), dtype=np.int64) for _ in range(2))
        for number, cells in self._by_number(measured[:, 0]):
            groups = self.bins.grouped(number)
            found = self._of_groups(measured[cells, 1 : len(groups) + 1] / self.largest, groups)
            logs[cells], errors[cells], likely[cells] = found.logs, found.errors, found.likely
            side[cells], bound[cells] = found.ends.side, found.ends.bound
        people = measured[:, 1:].sum(axis=1)
        ends = Ends(side=side, bound=bound)
        return Percentiles(logs=logs, errors=errors, likely=likely, people=people, ends=ends)

    def _measured(
        self, first: Integers, counts: NDArray[Any], seen: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> Integers:
        """The first counts, and what is seen of the groups that they decide on."""
        measured = np.zeros((len(counts), len(self.bins) + 1), dtype=np.int64)
        measured[:, 0] = first
        for number, cells in self._by_number(first):
            starts = self.bins.starts(number)
            measured[cells, 1 : len(starts)] = seen(np.add.reduceat(counts[cells], starts[:-1], axis=1))
        return measured

    def _by_number(self, first: Integers) -> list[tuple[int, NDArray[np.intp]]]:
        """The cells that have each number of groups, by their first counts."""
        numbers = self.number_for(first)
        return [(number, np.flatnonzero(numbers == number)) for number in self.numbers]

    def _of_groups(self, noisy: Floats, groups: PublicBins) -> Percentiles:
        shares = shares_of(self.at)
        fit = LogNormalFit.of(noisy, groups, variance=self.variance)
        people, variances = expected_bins(noisy, self.noise, fit, largest=self.largest)
        curve = curve_of(people)
        targets, doubted = self._targets(noisy, curve, variances)
        crossings = Crossings.of(curve, targets)
        known = rank_variance(variances, people, crossings, shares)
        variance = known + doubted
        lowest, highest = (
            Crossings.of(curve, np.clip(targets + side * NORMAL * np.sqrt(variance), 0.0, curve[:, -1:]))
            for side in (-1, 1)
        )
        logs = crossings.fitted_logs(fit)
        by_rank = (highest.fitted_logs(fit) - lowest.fitted_logs(fit)) / (2 * NORMAL)
        a_rank = by_rank / np.sqrt(np.maximum(variance, _LEAST))
        by_fit = self._variance_of_fit(fit, variances, crossings, logs=logs, a_rank=a_rank)
        by_shape = _off_by_shape(people, crossings, groups, logs)
        errors = np.sqrt(by_rank**2 + by_fit + by_shape**2)
        return Percentiles(
            logs=logs,
            # Nothing is further off than from one end of the bins to the other, about twice this error.
            errors=np.minimum(errors, (groups.logs[-1] - groups.logs[0]) / 2),
            likely=np.sqrt(a_rank**2 * known + by_fit),
            people=np.rint(noisy.sum(axis=1)).astype(np.int64),
            ends=Ends.of(groups, at=crossings.bin, lowest=lowest.bin, highest=highest.bin),
        )

    def _targets(self, noisy: Floats, curve: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """How many people of the posterior are to be below each percentile, and a variance for doubts in its shape.

        Posterior means draw people of a tail that the fitted shape does not have to where it has them. Noisy sums do
        not: they are right on average, with a known variance. Where both are apart by more than their noise explains,
        the percentile is moved so far as that is certain (the positive part of a James-Stein estimate).
        """
        shares, total = shares_of(self.at), curve[:, -1:]
        sums, nobody = curve_of(noisy), np.zeros_like(variances)
        targets = shares * total
        usual = moved = np.zeros_like(targets)
        for _ in range(_ROUNDS):  # moving it changes what the sums say
            crossings = Crossings.of(curve, targets)
            start, end = (np.take_along_axis(sums, crossings.bin + edge, axis=1) for edge in (0, 1))
            below = start + crossings.share * (end - start) - shares * sums[:, -1:]
            apart = below - (targets - shares * total)
            both = (np.full_like(variances, self.variance), variances)
            whole, kept = (rank_variance(each, nobody, crossings, shares) for each in both)
            usual = np.maximum(whole - kept, _LEAST)
            moved = np.maximum(0.0, 1 - _DISBELIEF * usual / np.maximum(apart**2, _LEAST))
            targets = np.maximum.accumulate(np.clip(shares * total - moved * apart, 0.0, total), axis=1)
        return targets, usual * (moved + (1 - moved) * _UNSEEN)

    def _variance_of_fit(
        self, fit: LogNormalFit, variances: Floats, crossings: Crossings, *, logs: Floats, a_rank: Floats
    ) -> Floats:
        """The variance of a percentile's logarithm because the fit is uncertain, which moves it in two ways.

        Groups are drawn to the fit: one with posterior variance w·v keeps w of what was measured, and takes 1 − w of
        the fit, which moves the rank; `a_rank` is what a rank is worth. And the fit tells where in its group the
        percentile is: that matters in wide groups, above all in the open ones at either end.
        """
        slopes = fit.slopes
        taken = slopes * (1 - np.minimum(variances / self.variance, 1.0))[:, None, :]
        ranks = _below(taken, crossings) - shares_of(self.at) * taken.sum(axis=2)[:, :, None]
        moved = _moves_inside(fit, slopes, crossings, logs) - ranks * a_rank[:, None, :]
        covariance = fit.covariance(slopes, variance=self.variance)
        variance: Floats = np.einsum("nip,nij,njp->np", moved, covariance, moved)
        return variance


def _off_by_shape(people: Floats, crossings: Crossings, groups: PublicBins, logs: Floats) -> Floats:
    """How far percentiles are off, as logarithms, because the people of their group may be spread in another way.

    That is the way to where they would be were people spread evenly; and the more of all people are in one group, the
    less is known of their shape.
    """
    inside = np.take_along_axis(people, crossings.bin, axis=1) / np.maximum(people.sum(axis=1, keepdims=True), _LEAST)
    width = np.diff(groups.logs)[crossings.bin]
    unknown = _UNKNOWN_SHAPE * inside * width * 2 * np.sqrt(crossings.share * (1 - crossings.share))
    off: Floats = np.hypot(crossings.logs(groups) - logs, unknown)
    return off


def _below(of_groups: Floats, crossings: Crossings) -> Floats:
    """The sum of groups below each crossing, for several rows of groups a cell."""
    ends = np.pad(np.cumsum(of_groups, axis=2), ((0, 0), (0, 0), (1, 0)))
    start, end = (np.take_along_axis(ends, (crossings.bin + edge)[:, None, :], axis=2) for edge in (0, 1))
    below: Floats = start + crossings.share[:, None, :] * (end - start)
    return below


def _moves_inside(fit: LogNormalFit, slopes: Floats, crossings: Crossings, logs: Floats) -> Floats:
    """How the logarithm at a given share of a group's people changes with people, mean and log spread of the fit.

    At log x = mean + spread·Φ⁻¹(F) it moves with mean and spread themselves, and with F, the fitted share of people
    below, since the edges of the group stay where they are.
    """
    z = (logs - fit.mean[:, None]) / fit.spread[:, None]
    density = np.maximum(np.exp(-z * z / 2) / np.sqrt(2 * np.pi), _LEAST_DENSITY)
    moves: Floats = _below(slopes, crossings) * (fit.spread[:, None] / (fit.people[:, None] * density))[:, None, :]
    moves[:, 0] = 0.0  # more people of the same shape change no percentile
    moves[:, 1] += 1.0
    moves[:, 2] += logs - fit.mean[:, None]
    return moves
