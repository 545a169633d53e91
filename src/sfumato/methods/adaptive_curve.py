"""Count people first, then only as many bins as so many people can fill, and read the noise with the shape in mind."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.bin_posterior import expected_bins
from sfumato.methods.cumulative_curve import Crossings, Percentiles, curve_of, rank_variance, shares_of
from sfumato.methods.log_normal_fit import LogNormalFit
from sfumato.methods.public_bins import PublicBins
from sfumato.methods.summed_curve import with_geometric_noise
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

COUNT_SHARE = Fraction(1, 30)
"""Of ε, for the count that decides on the number of groups: it need not be good."""
FEWEST_GROUPS = 8
"""Fewer make interpolation the larger error at any size."""
_FINER = 1.25
"""Each number of groups that is used is about so many times the one before."""


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

    @property
    def count_noise(self) -> Geometric:
        """Of the first count."""
        return Geometric(epsilon=self.epsilon * COUNT_SHARE)

    @property
    def noise(self) -> Geometric:
        """Of every group."""
        return Geometric(epsilon=self.epsilon * (1 - COUNT_SHARE))

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of groups that are used, ascending."""
        half = len(self.bins) // 2  # beyond, some groups would be single bins and others twice as wide
        numbers = [FEWEST_GROUPS]
        while numbers[-1] * _FINER < half:
            numbers.append(round(numbers[-1] * _FINER))
        return sorted({min(number, len(self.bins)) for number in (*numbers, max(half, FEWEST_GROUPS), len(self.bins))})

    def number_for(self, people: Integers) -> Integers:
        """How many groups cells of so many people get: the number nearest to the best one, as logarithms."""
        best = np.log(np.maximum(people, 1)) / 2 - np.log(max(self.noise.variance, 1e-300)) / 2
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
        logs, errors = (np.empty((len(measured), len(self.at))) for _ in range(2))
        for number, cells in self._by_number(measured[:, 0]):
            found = self._of_groups(measured[cells, 1 : number + 1], self.bins.grouped(number))
            logs[cells], errors[cells] = found
        return Percentiles(logs=logs, errors=errors, people=measured[:, 1:].sum(axis=1))

    def _measured(
        self, first: Integers, counts: NDArray[Any], seen: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> Integers:
        """The first counts, and what is seen of the groups that they decide on."""
        measured = np.zeros((len(counts), len(self.bins) + 1), dtype=np.int64)
        measured[:, 0] = first
        for number, cells in self._by_number(first):
            groups = np.add.reduceat(counts[cells], self.bins.starts(number)[:-1], axis=1)
            measured[cells, 1 : number + 1] = seen(groups)
        return measured

    def _by_number(self, first: Integers) -> list[tuple[int, NDArray[np.intp]]]:
        """The cells that have each number of groups, by their first counts."""
        numbers = self.number_for(first)
        return [(number, np.flatnonzero(numbers == number)) for number in self.numbers]

    def _of_groups(self, noisy: Integers, groups: PublicBins) -> tuple[Floats, Floats]:
        shares = shares_of(self.at)
        fit = LogNormalFit.of(noisy, groups, variance=self.noise.variance)
        people, variances = expected_bins(noisy, self.noise, fit)
        curve = curve_of(people)
        total = curve[:, -1:]
        crossings = Crossings.of(curve, shares * total)
        variance = rank_variance(variances, people, crossings, shares)
        variance += self._variance_of_fit(fit, variances, crossings, shares)
        below, above = (
            Crossings.of(curve, np.clip(shares * total + side * np.sqrt(variance), 0.0, total)).fitted_logs(fit)
            for side in (-1, 1)
        )
        return crossings.fitted_logs(fit), (above - below) / 2

    def _variance_of_fit(self, fit: LogNormalFit, variances: Floats, crossings: Crossings, shares: Floats) -> Floats:
        """The variance of a rank because groups are drawn to a fit that is itself uncertain.

        A group with posterior variance w·v keeps w of what was measured, and takes 1 − w of the fit.
        """
        slopes = fit.slopes
        taken = slopes * (1 - np.minimum(variances / self.noise.variance, 1.0))[:, None, :]
        ends = np.pad(np.cumsum(taken, axis=2), ((0, 0), (0, 0), (1, 0)))
        start, end = (np.take_along_axis(ends, (crossings.bin + edge)[:, None, :], axis=2) for edge in (0, 1))
        moved = start + crossings.share[:, None, :] * (end - start) - shares * ends[:, :, -1:]
        covariance = fit.covariance(slopes, variance=self.noise.variance)
        variance: Floats = np.einsum("nip,nij,njp->np", moved, covariance, moved)
        return variance
