"""Percentiles from a cumulative curve over public bins, and how far off they are expected to be."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.methods.log_normal_fit import LogNormalFit
from sfumato.methods.public_bins import PublicBins
from sfumato.noise.randomness import Randomness


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
    """A way from the counts in bins to percentiles; `sfumato.methods.percentile_curves` lists those that exist.

    Only `measured` sees the data, and whatever it returns may be published; `percentiles` is post-processing.
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
