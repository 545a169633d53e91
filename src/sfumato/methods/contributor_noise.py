"""How the noise of several contributors adds up: its whole distribution by a Fourier series, without simulation."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, pi

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats

ACCURACY = 0.00002
"""No probability is farther off than this."""
_TERMS, _LEAST_TERMS = 60, 200  # the former divided by the spread, or the latter: enough for that
_AT_ONCE = 1 << 20  # numbers in one array: 8 MB


@dataclass(frozen=True, kw_only=True)
class NoiseSum:
    """Sums S = Σ d·(own·h + other·h′), one in each row, with a contributor in each column.

    The directions d are ±1 with equal probability, h and h′ triangular on 1 ± spread, and all of them independent. S is
    symmetric and bounded, so on an interval that holds all its values it is a Fourier series whose coefficients are its
    characteristic function Π cos((own + other)t)·sinc²(own·spread·t/2)·sinc²(other·spread·t/2).
    """

    own: Floats
    other: Floats
    spread: float

    def __post_init__(self) -> None:
        if self.own.shape != self.other.shape or self.own.ndim != 2:
            raise ValueError("own and other must be rows × contributors, both alike")
        if not 0 < self.spread < 1:
            raise ValueError("the spread must be above 0 and below 1")

    @property
    def reach(self) -> Floats:
        """The largest value each sum can take, or a little more."""
        own, other = self.own, self.other
        reach: Floats = (np.abs(own + other) + self.spread * (np.abs(own) + np.abs(other))).sum(axis=1)
        return reach

    def probability(self, low: float, high: float) -> Floats:
        """The probability that each sum lies between two numbers."""
        reach = self.reach
        found = np.full(len(reach), float(low <= 0 <= high))  # of a sum that is always nothing
        for rows, frequencies, coefficients in self._series(reach):
            ends = [np.clip(end, -reach[rows], reach[rows])[:, None] / reach[rows, None] for end in (low, high)]
            waves = (np.sin(frequencies * ends[1]) - np.sin(frequencies * ends[0])) / frequencies
            whole = (ends[1] - ends[0])[:, 0] + 2 * (coefficients * waves).sum(axis=1)
            found[rows] = np.clip(whole / 2, 0, 1)
        return found

    def mean_magnitude(self) -> Floats:
        """E|S| of each sum, from the series of |x|."""
        reach = self.reach
        found = np.zeros(len(reach))
        for rows, frequencies, coefficients in self._series(reach):
            odd = coefficients[:, ::2] / frequencies[::2] ** 2
            found[rows] = reach[rows] * (0.5 - 4 * odd.sum(axis=1))
        return found

    def _series(self, reach: Floats) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
        """Some rows at a time, in multiples of their reach: frequencies πk and the characteristic function there."""
        frequencies: Floats = pi * np.arange(1.0, max(ceil(_TERMS / self.spread), _LEAST_TERMS) + 1)
        moving = np.flatnonzero(reach > 0)
        size = max(_AT_ONCE // len(frequencies), 1)
        for start in range(0, len(moving), size):
            rows = moving[start : start + size]
            coefficients = np.ones((len(rows), len(frequencies)))
            for terms in zip(self.own[rows].T, self.other[rows].T, strict=True):
                own, other = (scale[:, None] / reach[rows, None] for scale in terms)
                coefficients *= np.cos((own + other) * frequencies)
                for scale in (own, other):
                    if scale.any():
                        coefficients *= np.sinc(scale * self.spread / (2 * pi) * frequencies) ** 2
            yield rows, frequencies, coefficients
