"""Quantiles of an attribute with ordered codes, from noisy sums: they rise with the share, whatever the noise is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.errors import SfumatoError

CONFIDENCE = 0.9
"""Of the interval of a quantile."""
WIDTH = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Half the width of that interval, in standard errors."""
_FINEST = 1_000_000
_LARGEST = 9.2e18
"""Just below 2^63, beyond which no 64-bit number is."""


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The numbers that codes stand for: each one all numbers from its low end to its high end."""

    low: Floats
    high: Floats

    @classmethod
    def between(cls, dimension: Dimension, edges: Sequence[float]) -> "Classes":
        """Classes side by side: one edge more than there are codes."""
        found = np.array([_number(dimension, edge) for edge in edges], dtype=np.float64)
        if len(found) != len(dimension) + 1 or not np.all(np.diff(found) > 0):
            raise _wrong(
                f"dimension {dimension.name!r}",
                f"{len(dimension) + 1} edges that rise, one more than there are codes, both ends included",
                f"{len(found)} edges" + ("" if np.all(np.diff(found) > 0) else ", which do not all rise"),
                "give every class its ends; close an open class with a number of your choice",
            )
        return cls(low=found[:-1], high=found[1:])

    @classmethod
    def around(cls, dimension: Dimension, scores: Mapping[str, float]) -> "Classes":
        """Classes that reach half-way to the scores of the neighbours, as for an interpolated median."""
        if set(scores) != set(dimension.codes):
            raise _wrong(
                f"dimension {dimension.name!r}", "one score for every code", f"{len(scores)} scores", "score every code"
            )
        found = np.array([_number(dimension, scores[code]) for code in dimension.codes], dtype=np.float64)
        half = np.diff(found) / 2
        if not np.all(half > 0):
            raise _wrong(
                f"dimension {dimension.name!r}",
                "scores that rise in the order of the codelist",
                "others",
                "a quantile needs ordered codes: change the scores, or ask for a mean",
            )
        below, above = (half[:1], half[-1:]) if len(half) else (np.zeros(1), np.zeros(1))
        return cls(low=found - np.append(below, half), high=found + np.append(half, above))

    def only(self, places: NDArray[np.intp]) -> "Classes":
        """The classes of some of the codes."""
        return Classes(low=self.low[places], high=self.high[places])


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where a share of the total is reached: in which code, and how far inside."""

    places: Integers
    inside: Floats

    def values(self, classes: Classes) -> Floats:
        """The number there, as if every class were filled evenly."""
        low, high = classes.low[self.places], classes.high[self.places]
        return np.clip(low + self.inside * (high - low), low, high)

    def upto(self, codes: int) -> Floats:
        """The weight of every code in the sum that ends there, along a last axis: 1, then a part, then 0."""
        place = np.arange(codes)
        weights: Floats = np.clip(self.inside[..., None] + self.places[..., None] - place, 0.0, 1.0)
        return weights


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Sums up to every code, made to rise: the mean of the least rising sums above them and the greatest below.

    Noise may make sums fall; then neither end of the codelist is preferred. All is twice as large as the sums, so that
    it stays whole.
    """

    doubled: Integers
    total: Integers
    """0 where noise made it negative; quantiles mean nothing there."""

    @classmethod
    def of(cls, sums: Integers) -> "Distribution":
        """The distribution over the last axis; sums may have either sign."""
        upto = np.cumsum(sums, axis=-1)
        above = np.maximum.accumulate(upto, axis=-1)
        below = np.minimum.accumulate(upto[..., ::-1], axis=-1)[..., ::-1]
        total = 2 * np.maximum(upto[..., -1], 0)
        return cls(doubled=np.clip(above + below, 0, total[..., None]), total=total)

    def at(self, share: Fraction) -> Found:
        """Where this share is reached, decided in whole numbers."""
        n, d = share.numerator, share.denominator
        # The least whole number not below total·n/d, without leaving 64 bits: d is at most a million.
        reached = self.total // d * n + -(-(self.total % d) * n // d)
        return self._found(np.asarray(reached), np.asarray(float(share) * self.total))

    def near(self, shares: Floats) -> Found:
        """Where shares are reached that differ from cell to cell; below 0 and above 1 they are taken as 0 and 1."""
        wanted: Floats = np.clip(shares, 0.0, 1.0) * self.total
        whole = np.minimum(np.ceil(wanted), _LARGEST).astype(np.int64)
        return self._found(np.minimum(whole, self.total), wanted)

    def _found(self, reached: Integers, wanted: Floats) -> Found:
        places = np.argmax(self.doubled >= np.maximum(reached, 1)[..., None], axis=-1).astype(np.int64)
        before = np.take_along_axis(self.doubled, np.maximum(places - 1, 0)[..., None], axis=-1)[..., 0]
        before = np.where(places > 0, before, 0)
        own = np.take_along_axis(self.doubled, places[..., None], axis=-1)[..., 0] - before
        inside = np.clip((wanted - before) / np.maximum(own, 1), 0.0, 1.0)
        return Found(places=places, inside=inside)


def exact_shares(shares: float | str | Fraction | Iterable[float | str | Fraction]) -> tuple[Fraction, ...]:
    """Shares as exact numbers between 0 and 1, in six decimals at most.

    >>> exact_shares([0.25, "1/3"])
    (Fraction(1, 4), Fraction(1, 3))
    """
    asked = [shares] if isinstance(shares, str | int | float | Fraction) else list(shares)
    found = tuple(map(_share, asked))
    if not found or len(set(found)) != len(found):
        raise _wrong("quantiles", "at least one share, each once", ", ".join(map(str, asked)) or "none", "correct them")
    return found


def _share(share: float | str | Fraction) -> Fraction:
    try:
        exact = Fraction(str(share))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if not 0 < exact < 1 or exact.denominator > _FINEST:
        raise _wrong(
            "quantile", "a share between 0 and 1, in six decimals at most", repr(share), "ask for 0.5 to get the median"
        )
    return exact


def _number(dimension: Dimension, number: float) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction) or not isfinite(number):
        raise _wrong(f"dimension {dimension.name!r}", "finite numbers", repr(number), "correct the number")
    return float(number)


def _wrong(where: str, expected: str, found: str, do: str) -> SfumatoError:
    return SfumatoError(where, expected=expected, found=found, do=do)
