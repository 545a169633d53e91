"""Permanent factors: one secret multiplier for every unit, the same in every release, on every machine."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

import numpy as np

from sfumato.arrays import Integers
from sfumato.noise.keyed import Hashes, Keyed

ONE = 1_000_000
"""Factors are whole millionths, so that sums of factors times counts are exact on every engine."""


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Factors from the ramp distribution on [1 − most, 1 − least] ∪ [1 + least, 1 + most], by a secret key.

    The density is greatest at the inner ends and falls evenly to nothing at the outer ones; both sides have half of it,
    so the mean is one. A factor is a function of key, unit and purpose alone: it need not be stored and can always be
    computed again. The key and both ends are secrets, kept out of the text of the object and of every error.

    >>> from sfumato.noise.keyed import hashes
    >>> factors = Factors(key=bytes(16), least=Fraction("0.15"), most=Fraction("0.25"))
    >>> factors
    Factors()
    >>> bool(factors.of(hashes(["17"]))[0] == factors.of(hashes(["17"]))[0])
    True
    """

    key: bytes = field(repr=False)
    least: Fraction = field(repr=False)
    most: Fraction = field(repr=False)

    def __post_init__(self) -> None:
        Keyed(key=self.key)  # refuses a key of another length
        if not 0 < self.least < self.most < 1 or any((end * ONE).denominator != 1 for end in (self.least, self.most)):
            raise ValueError("0 < least < most < 1 is needed, both in whole millionths")

    def of(self, units: Hashes, *, purpose: str = "factor") -> Integers:
        """The factor of every unit in millionths; another purpose gives factors that have nothing to do with these.

        With w uniform the distortion is most − (most − least)·√w, rounded outward to millionths. Square root and
        product of floats are correctly rounded everywhere, so that every machine gets the same.
        """
        words = Keyed(key=self.key).words(units, purpose=purpose)
        least, most = int(self.least * ONE), int(self.most * ONE)
        uniform = (words >> np.uint64(11)) * 2.0**-53
        distortion = most - (np.sqrt(uniform) * (most - least)).astype(np.int64)
        signs = 1 - ((words & np.uint64(1)).view(np.int64) << 1)
        factors: Integers = ONE + signs * distortion
        return factors

    @property
    def mean_distortion(self) -> float:
        """How far a factor is from one on average, before rounding to millionths: confidential, as the ends are."""
        return float(self.least + (self.most - self.least) / 3)

    @property
    def deviation(self) -> float:
        """The standard deviation of a factor before rounding to millionths: confidential, as the ends are."""
        # The mean is one, so the variance is the mean square of most − (most − least)·√w, with w uniform.
        width = self.most - self.least
        return sqrt(self.most**2 - self.most * width * Fraction(4, 3) + width**2 / 2)
