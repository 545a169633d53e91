"""Noise in the bins and in groups of them, brought together by least squares."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isqrt

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.methods.cumulative_curve import Percentiles, curve_of
from sfumato.methods.log_normal_fit import LogNormalFit, inverse
from sfumato.methods.public_bins import PublicBins
from sfumato.methods.summed_curve import interpolated, nonnegative_bins, with_geometric_noise
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness

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

    @property
    def noise(self) -> Geometric:
        """Of every bin and every group."""
        return Geometric(epsilon=self.epsilon / LEVELS)

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
        groups = np.add.reduceat(counts, self.starts[:-1], axis=1)
        return with_geometric_noise(np.concatenate([counts, groups], axis=1), self.noise, randomness)

    def expected(self, counts: Floats) -> Integers:
        """The counts of both."""
        return np.rint(counts @ self._sums.T).astype(np.int64)

    def percentiles(self, measured: Integers) -> Percentiles:
        """From the least-squares bins, none of them negative; the count is their total, rounded."""
        bins = measured @ (self._sums @ self._inverse)
        return interpolated(
            curve_of(self._nonnegative(bins)),
            self.bins,
            at=self.at,
            people=np.rint(bins.sum(axis=1)).astype(np.int64),
            fit=LogNormalFit.of(bins, self.bins, variance=float(self.noise.variance * self._inverse.diagonal().mean())),
            noise=self.noise.variance * self._inverse,
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
