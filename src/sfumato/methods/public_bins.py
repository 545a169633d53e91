"""Bins of money that are public: their edges come from a guess of the distribution, never from the data."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import exp, log

import numpy as np
import scipy

from sfumato.arrays import Floats
from sfumato.errors import MethodError

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
