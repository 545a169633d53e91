"""Permanent factors: one secret multiplier for every unit, the same in every release, on every machine."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

ONE = 1_000_000
"""Factors are whole millionths, so that sums of factors times counts are exact on every engine."""

_KEY_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Factors from the ramp distribution on [1 − most, 1 − least] ∪ [1 + least, 1 + most], by a secret key.

    The density is greatest at the inner ends and falls evenly to nothing at the outer ones; both sides have half of it,
    so the mean is one. A factor is a function of key, unit and purpose alone: it need not be stored and can always be
    computed again. The key and both ends are secrets, kept out of the text of the object and of every error.

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
        if len(self.key) != _KEY_BYTES:
            raise ValueError(f"the key must have {_KEY_BYTES} bytes")
        if not 0 < self.least < self.most < 1 or any((end * ONE).denominator != 1 for end in (self.least, self.most)):
            raise ValueError("0 < least < most < 1 is needed, both in whole millionths")

    def of(self, units: Hashes, *, purpose: str = "factor") -> Integers:
        """The factor of every unit in millionths; another purpose gives factors that have nothing to do with these.

        With w uniform the distortion is most − (most − least)·√w, rounded outward to millionths. Square root and
        product of floats are correctly rounded everywhere, so that every machine gets the same.
        """
        words = self.words(units, purpose=purpose)
        least, most = int(self.least * ONE), int(self.most * ONE)
        uniform = (words >> np.uint64(11)) * 2.0**-53
        distortion = most - (np.sqrt(uniform) * (most - least)).astype(np.int64)
        signs = 1 - ((words & np.uint64(1)).view(np.int64) << 1)
        factors: Integers = ONE + signs * distortion
        return factors

    def words(self, units: Hashes, *, purpose: str) -> NDArray[np.uint64]:
        """A pseudo-random 64-bit word for every unit: AES of its hash beside the purpose."""
        blocks = np.empty((len(units), 2), dtype="<u8")
        blocks[:, 0] = units
        blocks[:, 1] = int.from_bytes(blake2b(purpose.encode(), digest_size=8).digest(), "little")
        # Each block is enciphered by itself on purpose: the cipher serves as a keyed function of unit and purpose.
        encryptor = Cipher(AES(self.key), ECB()).encryptor()  # noqa: S305
        enciphered = np.frombuffer(encryptor.update(blocks.tobytes()), dtype="<u8")
        return np.ascontiguousarray(enciphered[::2]).astype(np.uint64, copy=False)


def hashes(units: Iterable[str]) -> Hashes:
    """The 64-bit hash of every unit's name as text, which is the same on every engine."""
    digests = b"".join(blake2b(unit.encode(), digest_size=8).digest() for unit in units)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
