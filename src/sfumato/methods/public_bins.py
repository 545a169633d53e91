"""Bins of money that are public: their edges come from a guess of the distribution, never from the data."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import exp

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.errors import MethodError

Floats = NDArray[np.float64]

_LARGEST = 2**53
"""Edges up to here are exact in floating point, too."""
_FAR_OUT = 5.0
_USUAL_SPREAD = 0.8
"""σ of logarithms where two bins do not tell it."""


@dataclass(frozen=True, kw_only=True)
class PublicBins:
    """Bins [edge, next edge) in the smallest unit; the last one holds its upper edge, too.

    Each bin is thought to hold the same share of all people, which is what is known before any data are read.

    >>> bins = PublicBins.equal_mass(median=4_500_000, sigma=Fraction("0.8"), number=4, minimum=0, maximum=10**8)
    >>> bins.edges
    (0, 2623438, 4500000, 7718879, 100000000)
    """

    edges: tuple[int, ...]

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
    def guess(self) -> tuple[float, float]:
        """μ and σ of the log-normal distribution that gives every bin the same mass, or nearly so."""
        inner, z = (
            np.log(np.array(self.edges[1:-1], dtype=np.float64)),
            scipy.special.ndtri(np.arange(1, len(self)) / len(self)),
        )
        if len(inner) == 1:
            return float(inner[0]), _USUAL_SPREAD
        slope = float(z @ inner) / float(z @ z)  # z is symmetric about 0
        return float(inner.mean()), slope

    @cached_property
    def middles(self) -> Floats:
        """The logarithm at which the guess has half of each bin's people on either side."""
        mean, spread = self.guess
        places: Floats = mean + spread * scipy.special.ndtri((np.arange(len(self)) + 0.5) / len(self))
        return np.clip(places, self.logs[:-1], self.logs[1:])

    def grouped(self, number: int) -> "PublicBins":
        """Neighbouring bins joined to so many groups, as even as they can be."""
        return PublicBins(edges=tuple(self.edges[start] for start in self.starts(number)))

    def starts(self, number: int) -> list[int]:
        """The edges at which so many even groups begin, and the last edge."""
        return [round(Fraction(group * len(self), number)) for group in range(number + 1)]


def log_normal_edges(
    *, median: Fraction | int, sigma: Fraction, number: int, minimum: int | None = None, maximum: int | None = None
) -> tuple[int, ...]:
    """The edges of so many bins of equal mass."""
    bins = PublicBins.equal_mass(median=median, sigma=sigma, number=number, minimum=minimum, maximum=maximum)
    return bins.edges


def _refused(expected: str, found: str, do: str) -> MethodError:
    return MethodError("bins of percentiles", expected=expected, found=found, do=do)
