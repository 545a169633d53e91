"""Public bins of money, and the distribution that their noisy counts lead one to expect."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, exp, log

import numpy as np
import scipy

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.noise.geometric import Geometric

# Bins of money that are public: their edges come from a guess of the distribution, never from the data.

_LARGEST = 2**53
"""Edges up to here are exact in floating point, too."""
_FAR_OUT = 5.0
_USUAL_SPREAD = 0.8
"""σ of logarithms where two bins do not tell it."""
_REACH = 30.0
"""Bins of a guess reach so many times the median, and down to the median divided by it, or five deviations if that is
more."""
_STEP, _GROWTH = 0.25, 0.05
"""The width of a bin in a tail, as a logarithm: so many deviations, and so much of the way that it is out."""
_JOINED = ((10, 6), (16, 4), (24, 3), (32, 2))
"""With fewer groups of equal mass than the first number, bins of a tail are joined by the second."""


@dataclass(frozen=True, kw_only=True)
class PublicBins:
    """Bins [edge, next edge) in the smallest unit; the last one holds its upper edge, too.

    Each bin is thought to hold the same share of all people, which is what is known before any data are read; the first
    and the last one may be divided further (`tails`), so that people far from the guess are told apart.

    >>> bins = PublicBins.equal_mass(median=4_500_000, sigma=Fraction("0.8"), number=4, minimum=0, maximum=10**8)
    >>> bins.edges
    (0, 2623438, 4500000, 7718879, 100000000)
    """

    edges: tuple[int, ...]
    tails: tuple[int, int] = (1, 1)
    """How many bins make up the first bin of equal mass, and how many the last one."""

    def __post_init__(self) -> None:
        if len(self.edges) < 3:
            raise _refused("at least two bins", f"{max(len(self.edges) - 1, 0)}", "give three edges or more")
        if not all(isinstance(edge, int) for edge in self.edges):
            raise _refused("edges in whole numbers of the smallest unit", "other numbers", "give 2000000, not 20000.00")
        if not (self.edges[0] >= 0 and self.edges[-1] <= _LARGEST):
            raise _refused(
                "edges from 0 to 2^53: percentiles are found on a logarithmic scale",
                f"edges from {self.edges[0]} to {self.edges[-1]}",
                "give the measure a minimum of 0 or more, and a maximum",
            )
        for low, high in pairwise(self.edges):
            if high <= low:
                raise _refused(
                    "edges that increase strictly",
                    f"{high} after {low}",
                    "use fewer bins, a larger sigma or a finer unit, and bounds outside all other edges",
                )

    @classmethod
    def of_guess(
        cls,
        *,
        median: Fraction | int,
        sigma: Fraction,
        number: int,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> "PublicBins":
        """Bins of equal mass of which the first and the last are divided, out to 30 times the median and a thirtieth.

        A guess of the median that is off by a factor of three, or of sigma by two, then does little harm.

        >>> bins = PublicBins.of_guess(median=45_000, sigma=Fraction("0.7"), number=8, minimum=0)
        >>> len(bins), bins.tails, bins.edges[1], bins.edges[-2]
        (30, (12, 12), 1674, 1209661)
        """
        reach = max(_FAR_OUT * float(sigma), log(_REACH)) if sigma > 0 else 0.0
        low, high = (round(float(median) * exp(side * reach)) for side in (-1, 1))
        minimum, maximum = low if minimum is None else minimum, high if maximum is None else maximum
        middle = cls.equal_mass(median=median, sigma=sigma, number=number, minimum=minimum, maximum=maximum)
        inner = middle.edges[1:-1]
        guess = {"median": float(median), "sigma": float(sigma)}
        below = [edge for edge in _outwards(inner[0], reach=-reach, **guess) if edge > middle.edges[0]]
        above = [edge for edge in _outwards(inner[-1], reach=reach, **guess) if edge < middle.edges[-1]]
        return cls(
            edges=(middle.edges[0], *reversed(below), *inner, *above, middle.edges[-1]),
            tails=(len(below) + 1, len(above) + 1),
        )

    @classmethod
    def equal_mass(
        cls,
        *,
        median: Fraction | int,
        sigma: Fraction,
        number: int,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> "PublicBins":
        """Bins that share a log-normal distribution equally, the first and the last one up to the declared bounds.

        Where no bound is declared, it is five standard deviations out.
        """
        if not (median > 0 and sigma > 0):
            raise _refused("median and sigma above 0", f"median = {median}, sigma = {sigma}", "correct the guess")
        if number < 2:
            raise _refused("at least two bins", f"{number}", "give a number such as 20")
        low, high = (round(float(median) * exp(side * _FAR_OUT * float(sigma))) for side in (-1, 1))
        minimum, maximum = low if minimum is None else minimum, high if maximum is None else maximum
        if not minimum < median < maximum:
            raise _refused(
                "minimum < median < maximum",
                f"minimum = {minimum}, median = {median}, maximum = {maximum}",
                "correct the bounds of the measure, or the guess",
            )
        inner = np.exp(np.log(float(median)) + float(sigma) * scipy.special.ndtri(np.arange(1, number) / number))
        if not (inner[0] > minimum and inner[-1] < maximum):
            raise _refused(
                f"bounds outside the edges of {number} bins of equal mass",
                f"minimum = {minimum}, maximum = {maximum}",
                "widen the bounds of the measure, use fewer bins or a smaller sigma",
            )
        return cls(edges=(minimum, *(round(edge) for edge in inner.tolist()), maximum))

    def between_multiples(self, step: int) -> "PublicBins":
        """The bins with edges halfway between multiples of a step, so that a multiple is in the middle of its people.

        >>> PublicBins(edges=(0, 95, 240, 260, 900)).between_multiples(100).edges
        (0, 50, 250, 900)
        """
        first, last = self.edges[0], self.edges[-1]
        moved = [edge // step * step + (step + 1) // 2 for edge in self.edges[1:-1]]
        inner = sorted({edge for edge in moved if first < edge < last})
        low, high = moved[self.tails[0] - 1], moved[-self.tails[1]]
        below, above = sum(edge < low for edge in inner), sum(edge > high for edge in inner)
        return PublicBins(edges=(first, *inner, last), tails=(below + 1, above + 1))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def logs(self) -> Floats:
        """The logarithms of the edges, the first and the last one no further than five deviations out.

        Nobody is expected beyond, and a minimum of 0 has no logarithm.
        """
        logs = np.log(np.maximum(np.array(self.edges, dtype=np.float64), 1.0))
        mean, spread = self.guess
        logs[0] = max(logs[0], min(mean - _FAR_OUT * spread, logs[1] - spread))
        logs[-1] = min(logs[-1], max(mean + _FAR_OUT * spread, logs[-2] + spread))
        return logs

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The edges between bins of equal mass."""
        return self.edges[self.tails[0] : len(self.edges) - self.tails[1]]

    @property
    def even(self) -> "PublicBins":
        """The bins of equal mass, the first and the last one not divided."""
        return PublicBins(edges=(self.edges[0], *self.inner, self.edges[-1]))

    @property
    def shares(self) -> int:
        """How many bins of equal mass there would be, were the first and the last one not divided."""
        return len(self.inner) + 1

    @cached_property
    def guess(self) -> tuple[float, float]:
        """μ and σ of the log-normal distribution whose bins of equal mass these are, or nearly so."""
        inner = np.log(np.array(self.inner, dtype=np.float64))
        z = scipy.special.ndtri(np.arange(1, len(inner) + 1) / (len(inner) + 1))
        if len(inner) == 1:
            return float(inner[0]), _USUAL_SPREAD
        slope = float(z @ inner) / float(z @ z)  # z is symmetric about 0
        return float(inner.mean()), slope

    @cached_property
    def middles(self) -> Floats:
        """The logarithm at which the guess has half of each bin's people on either side."""
        mean, spread = self.guess
        below = scipy.special.ndtr((self.logs[1:-1] - mean) / spread)
        ends = np.concatenate([[0.0], below, [1.0]])
        places: Floats = mean + spread * scipy.special.ndtri((ends[:-1] + ends[1:]) / 2)
        return np.clip(places, self.logs[:-1], self.logs[1:])

    def grouped(self, number: int) -> "PublicBins":
        """Neighbouring bins joined to so many groups of equal mass, the first and the last of them divided."""
        starts, middle = self.starts(number), self._middle(number)
        return PublicBins(
            edges=tuple(self.edges[start] for start in starts),
            tails=(starts.index(middle[0]), len(starts) - 1 - starts.index(middle[-1])),
        )

    def starts(self, number: int) -> list[int]:
        """The edges at which groups begin, so many of equal mass and those of the tails, and the last edge."""
        low, high = self.tails[0], len(self) - self.tails[1]
        step = next((joined for fewer, joined in _JOINED if number < fewer), 1)
        tails = [*range(low, 0, -step), *range(high, len(self), step)] if len(self) > self.shares else []
        return sorted({0, *tails, *self._middle(number), len(self)})

    def _middle(self, number: int) -> list[int]:
        """The edges between so many groups of equal mass."""
        return [round(Fraction(group * self.shares, number)) + self.tails[0] - 1 for group in range(1, number)]


def _outwards(start: int, *, median: float, sigma: float, reach: float) -> list[int]:
    """Edges beyond those of equal mass, ever further apart, up to `reach` from the median as a logarithm."""
    side, begin, edges = (1 if reach > 0 else -1), log(start), [start]
    at = begin
    while True:
        at += side * (_STEP * sigma + _GROWTH * abs(at - begin))
        edge = round(exp(at))
        if abs(at - log(median)) > abs(reach) or edge < 1:
            return edges[1:]
        if edge != edges[-1]:
            edges.append(edge)


def _refused(expected: str, found: str, do: str) -> MethodError:
    return MethodError("bins of percentiles", expected=expected, found=found, do=do)


# Fit a log-normal distribution to noisy counts in bins, for many cells at once.

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


# What noisy counts in bins lead one to expect of the true ones, given the shape that people's earnings have.

_FAR = 12.0
"""Noise beyond this many times 1/ε has a probability below 10^−5, and is left out."""
_MOST_STEPS = 200
"""With more noise than needs so many steps, whole numbers are taken as a continuum."""
_LEAST = 1e-9


def expected_bins(
    noisy: Integers | Floats, noise: Geometric, fit: LogNormalFit, *, largest: int = 1
) -> tuple[Floats, Floats]:
    """The mean and the variance of the true count in every bin, given its noisy one and the fitted shape.

    A bin is thought to have a negative binomial number of people: the fit's λ on average, with variance
    λ(1 + people/CONCENTRATION). Times the probability of the noise and normed, that is the posterior; it is summed over
    the numbers around the noisy one. The mean is never negative, leaves large bins as they are and draws small ones to
    the fit, empty ones nearly to 0.

    Noisy counts may be in people of the `largest` weight, `noise` being that of whole weights. They are then no whole
    numbers, and the sum goes over parts of a person that are finer than the noise.
    """
    a_person = float(noise.epsilon) * largest
    parts = 1 if largest == 1 else min(largest, ceil(2 * a_person))
    a_part = float(noise.epsilon) if largest == 1 else a_person / parts
    steps = ceil(_FAR / a_part)
    if steps > _MOST_STEPS:
        return _of_normal(noisy, noise.variance / largest**2, fit)
    shares = np.maximum(fit.heavy_shares, _LEAST)
    crowded = (fit.people / CONCENTRATION)[:, None]
    # Of parts of people, whole people are there or not: the variance is `parts` times that of as many people.
    size = CONCENTRATION * shares if parts == 1 else shares * fit.people[:, None] * parts / (parts * (1 + crowded) - 1)
    chance = (fit.people / (fit.people + CONCENTRATION))[:, None] if parts == 1 else 1 - 1 / (parts * (1 + crowded))
    falls = float(np.exp(-a_part))
    start = np.maximum(np.rint(noisy * parts), 0.0)
    beyond = np.clip(noisy * parts - start, -0.5, 0.5)
    moments = [np.ones_like(start), np.zeros_like(start), np.zeros_like(start)]

    def add(weight: Floats, away: int) -> None:
        moments[0] += weight
        moments[1] += weight * away
        moments[2] += weight * away**2

    # Neighbouring numbers differ by a simple factor, so no logarithm or gamma function is needed. A noisy number
    # between two whole ones is nearer to the next one on its side.
    weight = np.exp(a_part * (np.abs(beyond) + beyond))
    for away in range(1, steps + 1):
        n = start + away
        weight = weight * (falls * chance) * (n - 1 + size) / n
        add(weight, away)
    weight = np.exp(a_part * (np.abs(beyond) - beyond))
    for away in range(1, steps + 1):
        n = np.maximum(start - away, -1.0)  # at −1 the factor is 0, and stays so
        weight = weight * (falls / chance) * (n + 1) / (np.maximum(n, 0.0) + size)
        add(weight, -away)
    shift = moments[1] / moments[0]
    return (start + shift) / parts, np.maximum(moments[2] / moments[0] - shift**2, 0.0) / parts**2


def _of_normal(noisy: Integers | Floats, variance: float, fit: LogNormalFit) -> tuple[Floats, Floats]:
    """The same if counts and noise, of this variance, were normal."""
    fitted = fit.people[:, None] * np.maximum(fit.heavy_shares, _LEAST)
    spread = fitted * (1 + fit.people / CONCENTRATION)[:, None]
    kept = spread / (spread + variance)
    return np.maximum(fitted + kept * (noisy - fitted), 0.0), kept * variance
