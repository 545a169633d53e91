"""Fit a log-normal distribution to noisy counts in bins, for many cells at once."""

from dataclasses import dataclass, replace

import numpy as np
import scipy

from sfumato.arrays import Floats, Integers
from sfumato.methods.public_bins import PublicBins

WITHIN = 0.8
"""The spread of one cell's logarithms as a share of that of all people, which the bins are made for."""
BETWEEN = 0.6
"""The spread of the means of cells, likewise: WITHIN² + BETWEEN² = 1."""
SPREAD_OF_SPREADS = 0.4
"""How far, as a standard deviation of its logarithm, the spread of a cell is thought to be from the usual one."""
ALLOWED = 1.5
"""The spread of the means of cells as the fit supposes it: wider than BETWEEN, so that cells far from a public guess,
or all cells where the guess is poor, are hardly drawn to it."""
DOUBT = 2.0
"""Errors are told as if means and spreads of cells could be so many times further from the usual ones than the fit
supposes: in a cell that is, being drawn to the usual one is an error."""
CONCENTRATION = 60.0
"""Of how many people a log-normal shape is worth: beyond so many, what is seen in a bin counts for more."""

FROM_WIDER, WIDER = 0.1, 2.5
"""Such a share of people is thought to come from a distribution so many times as wide."""
NARROWEST, WIDEST = 0.1, 6.0
"""The spread of a cell, as a multiple of the usual one."""

_ENOUGH = 20
"""Groups of bins: more tell little about three numbers."""
_ROUNDS = 6
_FEWEST = 3.0
"""No fewer people are fitted: a cell whose noisy count is below has nothing to tell."""
_LONGEST_STEP = 0.5


def inverse(matrices: Floats) -> Floats:
    """The inverse of every matrix."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _first_look(noisy: Integers | Floats, bins: PublicBins) -> tuple[Floats, Floats]:
    """Where the middle of the people of each cell is, and how far they spread, roughly: where the fit begins.

    It begins near the people and not at the guess, which may be far off. What is hardly more than noise counts little.
    """
    seen = np.maximum(noisy, 0.0)
    weights = seen**2 / (seen + 2.0)
    curve = np.pad(np.cumsum(weights, axis=1), ((0, 0), (1, 0)))
    low, middle, high = (_log_at(curve, bins, share) for share in (0.2, 0.5, 0.8))
    usual = WITHIN * bins.guess[1]
    spread = np.clip((high - low) / (2 * scipy.special.ndtri(0.8)), NARROWEST * usual, WIDEST * usual)
    return middle, np.log(spread)


def _log_at(curve: Floats, bins: PublicBins, share: float) -> Floats:
    """The logarithm where a curve reaches a share of its end, the people of a bin spread evenly."""
    target = share * curve[:, -1:]
    at = np.minimum((curve[:, 1:] < target).sum(axis=1, keepdims=True), len(bins) - 1)
    start, end = (np.take_along_axis(curve, at + edge, axis=1) for edge in (0, 1))
    inside = np.divide(target - start, end - start, out=np.full_like(target, 0.5), where=end > start)
    logs: Floats = (bins.logs[at] + inside * (bins.logs[at + 1] - bins.logs[at]))[:, 0]
    return logs


@dataclass(frozen=True, kw_only=True, eq=False)
class LogNormalFit:
    """A log-normal distribution for every cell: how many people, and mean and spread of their logarithms."""

    bins: PublicBins
    people: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, noisy: Integers | Floats, bins: PublicBins, *, variance: float) -> "LogNormalFit":
        """The fit to noisy counts whose noise has this variance, drawn to what is usual where they tell little.

        Weighted least squares: a bin of λ people deviates by λ(1 + people/CONCENTRATION), because people differ and
        because no cell is exactly log-normal, and by the variance of the noise. Steps are Gauss-Newton's.
        """
        if bins.shares > _ENOUGH:
            starts = bins.starts(_ENOUGH)
            groups = np.add.reduceat(noisy, starts[:-1], axis=1)
            fit = cls.of(groups, bins.grouped(_ENOUGH), variance=variance * len(bins) / (len(starts) - 1))
            return replace(fit, bins=bins)
        usual, all_people = bins.guess
        usual_spread = WITHIN * all_people
        people = np.maximum(noisy.sum(axis=1).astype(np.float64), _FEWEST)
        mean, log_spread = _first_look(noisy, bins)
        for _ in range(_ROUNDS):
            fit = cls(bins=bins, people=people, mean=mean, spread=np.exp(log_spread))
            slopes = fit.slopes
            weights = fit._weights(slopes, variance)
            wanted = np.matmul(slopes * weights[:, None, :], (noisy - people[:, None] * slopes[:, 0])[:, :, None])[
                ..., 0
            ]
            wanted[:, 1] -= (mean - usual) / (ALLOWED * all_people) ** 2
            wanted[:, 2] -= (log_spread - np.log(usual_spread)) / SPREAD_OF_SPREADS**2
            step = np.linalg.solve(fit._information(slopes, weights), wanted[:, :, None])[:, :, 0]
            people = np.maximum(people + step[:, 0], _FEWEST)
            mean = mean + np.clip(step[:, 1], -_LONGEST_STEP * all_people, _LONGEST_STEP * all_people)
            log_spread = log_spread + np.clip(step[:, 2], -_LONGEST_STEP, _LONGEST_STEP)
            log_spread = np.clip(log_spread, np.log(NARROWEST * usual_spread), np.log(WIDEST * usual_spread))
        return cls(bins=bins, people=people, mean=mean, spread=np.exp(log_spread))

    @property
    def below(self) -> Floats:
        """The share of people below every edge: one row a cell."""
        return self._at_edges(
            scipy.special.ndtr((self.bins.logs[1:-1] - self.mean[:, None]) / self.spread[:, None]), last=1.0
        )

    @property
    def shares(self) -> Floats:
        """The share of people in every bin."""
        return np.diff(self.below, axis=1)

    @property
    def heavy_shares(self) -> Floats:
        """The shares if some people came from a wider distribution: tails are heavier than those of any log-normal."""
        wider = replace(self, spread=WIDER * self.spread)
        return (1 - FROM_WIDER) * self.shares + FROM_WIDER * wider.shares

    def logs_at(self, share: Floats) -> Floats:
        """The logarithm below which a share of the people is; infinite at 0 and 1."""
        logs: Floats = self.mean[:, None] + self.spread[:, None] * scipy.special.ndtri(share)
        return logs

    @property
    def slopes(self) -> Floats:
        """How the expected counts of bins change with people, mean and log spread: a row of bins for each.

        The first row are the shares of the bins.
        """
        z = (self.bins.logs[1:-1] - self.mean[:, None]) / self.spread[:, None]
        density = np.exp(-z * z / 2) * (self.people / np.sqrt(2 * np.pi))[:, None]
        slopes = np.empty((len(z), 3, len(self.bins)))
        slopes[:, 0] = np.diff(self._at_edges(scipy.special.ndtr(z), last=1.0), axis=1)
        slopes[:, 1] = np.diff(self._at_edges(density / -self.spread[:, None]), axis=1)
        slopes[:, 2] = np.diff(self._at_edges(density * -z), axis=1)
        return slopes

    def covariance(self, slopes: Floats, *, variance: float) -> Floats:
        """How people, mean and log spread are off together, when the noise of bins has this variance.

        What is thought to be usual counts for less than in the fit (DOUBT).
        """
        return inverse(self._information(slopes, self._weights(slopes, variance), doubt=DOUBT))

    def _weights(self, slopes: Floats, variance: float) -> Floats:
        dispersion = (self.people * (1 + self.people / CONCENTRATION))[:, None]
        weights: Floats = 1 / (slopes[:, 0] * dispersion + variance)
        return weights

    def _information(self, slopes: Floats, weights: Floats, *, doubt: float = 1.0) -> Floats:
        information: Floats = np.matmul(slopes * weights[:, None, :], slopes.transpose(0, 2, 1))
        information[:, 1, 1] += (doubt * ALLOWED * self.bins.guess[1]) ** -2
        information[:, 2, 2] += (doubt * SPREAD_OF_SPREADS) ** -2
        return information

    def _at_edges(self, inner: Floats, last: float = 0.0) -> Floats:
        return np.pad(inner, ((0, 0), (1, 1)), constant_values=((0, 0), (0.0, last)))
