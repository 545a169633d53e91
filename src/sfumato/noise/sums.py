"""Sums of independent noise: how far they are off on average, and what they stay below, from the laws of their parts.

Published cells have noise of their own, so the noise of a sum follows from theirs: by convolution, and neither by
adding errors nor by adding squares, which need not exist. docs/errors.md says what is shown of sums.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from sfumato.arrays import Floats, Integers

_POINTS = 4096
"""Of the lattice that noise is laid out on; what lies beyond its ends counts as at the ends."""
_FINE = 100
"""Steps of the lattice in the usual size of a sum, unless whole numbers are coarser."""
_RATIO = 1.01
"""Scales are rounded up to powers of this, so that parts of one scale are laid out once: it only widens."""
_POWERS = 2**20
"""More than the powers of it that scales can have."""
_ROWS = 256
"""Sums that are made at a time."""


@dataclass(frozen=True)
class Law:
    """The law of noise in units of its scale; about zero, and of one mode, so that a larger scale only spreads it."""

    below: Callable[[Floats], Floats]
    """The probability that it is no larger than so many scales."""
    mean: float
    """Its mean magnitude, in scales."""
    slope: float = 0.0
    """By how much the scale grows with one job more: it is then known no better than the count."""


def symmetric(beyond: Callable[[Floats], Floats], mean: float, slope: float = 0.0) -> Law:
    """The law of symmetric noise whose magnitude exceeds so many scales with the probability `beyond`."""

    def below(x: Floats) -> Floats:
        half = beyond(np.abs(x)) / 2
        return np.where(x < 0, half, 1 - half)

    return Law(below, mean, slope)


@dataclass(frozen=True, kw_only=True)
class NoiseParts:
    """Independent pieces of noise that sums are made of, one entry a piece."""

    laws: tuple[Law, ...]
    law: Integers
    """Which of them each piece has."""
    sums: Integers
    """Which sum it is a part of."""
    scale: Floats
    """How large it is, as published figures suppose."""

    @classmethod
    def of_cells(cls, law: Law, sums: Integers, scale: Floats) -> "NoiseParts":
        """A piece for every cell that is in a sum, all of one law."""
        kept = sums >= 0
        return cls(laws=(law,), law=np.zeros(int(kept.sum()), dtype=np.int64), sums=sums[kept], scale=scale[kept])

    @classmethod
    def of_blocks(cls, law: Law, order: Integers, sums: Integers, scale: Floats) -> "tuple[NoiseParts, Integers]":
        """A piece for the cells of a workplace cell that are in one sum, its scale being theirs added up.

        `order` has the cells of each workplace cell in a row. Also says how many cells each piece has.
        """
        block = np.empty(len(sums), dtype=np.int64)
        block[order.ravel()] = np.repeat(np.arange(len(order)), order.shape[1])
        kept = sums >= 0
        pairs, which = np.unique(np.stack([block[kept], sums[kept]]), axis=1, return_inverse=True)
        number = np.bincount(which.ravel(), minlength=pairs.shape[1])
        total = np.bincount(which.ravel(), scale[kept], minlength=pairs.shape[1]).astype(np.float64)
        return cls(laws=(law,), law=np.zeros(len(total), dtype=np.int64), sums=pairs[1], scale=total), number

    @classmethod
    def joined(cls, some: "Iterable[NoiseParts]") -> "NoiseParts":
        """The pieces of several kinds."""
        parts = list(some)
        first = np.cumsum([0, *(len(one.laws) for one in parts[:-1])])
        return cls(
            laws=tuple(law for one in parts for law in one.laws),
            law=np.concatenate([one.law + at for one, at in zip(parts, first, strict=True)]),
            sums=np.concatenate([one.sums for one in parts]),
            scale=np.concatenate([one.scale for one in parts]),
        )


@dataclass(frozen=True, kw_only=True)
class SumSpread:
    """How far sums are off: on average, and at most with some probability on either side."""

    error: Floats
    below: Floats
    """How far the truth lies below the sum at most."""
    above: Floats
    """How far it lies above; NaN where there is no limit."""


def spread(parts: NoiseParts, sums: int, confidence: float) -> SumSpread:
    """How far so many sums are off, each side missed with half of what the confidence leaves.

    The scale of noise that follows a count is taken from the noisy count. Where a sum came out low, so did its scales:
    noise that took a sum down by q took a part of size t down by q·t²/Σt² on average, and its scale by `slope` times
    that, which is made up for above. Of one large cell that is exact.
    """
    means = np.array([law.mean for law in parts.laws])[parts.law]
    size = parts.scale * means
    squares = np.bincount(parts.sums, size**2, minlength=sums)
    step = np.maximum(np.sqrt(squares) / _FINE, 1.0)
    at = step[parts.sums]
    power = np.ceil(np.log(parts.scale / at) / np.log(_RATIO) - 1e-9).astype(np.int64)
    small = (at > 1) & (np.sqrt([_mean_square(law) for law in parts.laws])[parts.law] * parts.scale < at / _RATIO)
    keys, which = np.unique((2 * parts.law + small) * _POWERS + power + _POWERS // 2, return_inverse=True)
    kinds, powers = keys // _POWERS, keys % _POWERS - _POWERS // 2
    laid = [
        _laid_out(parts.laws[kind // 2], _RATIO ** float(at), bool(kind % 2))
        for kind, at in zip(kinds, powers, strict=True)
    ]
    shape = (len(laid), _POINTS // 2 + 1)
    logs, angles = (np.array([getattr(one, name) for one in laid]).reshape(shape) for name in ("logs", "angles"))
    numbers = csr_array((np.ones(len(which)), (parts.sums, which)), shape=(sums, len(laid)))
    found = [_quantiles(numbers[at : at + _ROWS], logs, angles, confidence) for at in range(0, max(sums, 1), _ROWS)]
    mean, least, most = (np.concatenate([one[i] for one in found]) * step for i in range(3))
    error = mean + (numbers @ np.array([one.beyond for one in laid])) * step
    slopes = np.array([law.slope for law in parts.laws])[parts.law]
    followed = np.bincount(parts.sums, slopes * means * size**3, minlength=sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = 1 - np.where(followed > 0, followed * -least / squares**2, 0.0)
        above = np.where(room > 0, -least / room, np.nan)
    return SumSpread(error=error, below=most, above=above)


@dataclass(frozen=True)
class _LaidOut:
    """The transform of a law on the lattice, as logarithms and angles, and its mean beyond the ends."""

    logs: Floats
    angles: Floats
    beyond: float


def _laid_out(law: Law, scale: float, small: bool) -> _LaidOut:
    """A law whose scale is so many steps of the lattice, each point having what rounds to it.

    What is small beside a step would round to nothing, and there may be many such: it moves by a step as often as gives
    it the mean square that it has.
    """
    if small:
        moved = _mean_square(law) * scale**2 / 2
        mass = np.zeros(_POINTS)
        mass[_POINTS // 2 - 1 : _POINTS // 2 + 2] = moved, 1 - 2 * moved, moved
    else:
        mass = _mass(law, scale)
    transform = np.fft.rfft(np.fft.ifftshift(mass))
    far: Floats = _POINTS / 2 * np.power(1.05, np.arange(400.0))
    tail = law.below(-far / scale) + 1 - law.below(far / scale)
    beyond = float(np.sum((tail[1:] + tail[:-1]) / 2 * np.diff(far)))
    return _LaidOut(np.log(np.maximum(np.abs(transform), 1e-300)), np.angle(transform), beyond)


def _mass(law: Law, scale: float) -> Floats:
    """The probability of every point of the lattice, what lies beyond its ends being at them."""
    edges: Floats = np.arange(-_POINTS / 2, _POINTS / 2 - 1) + 0.5
    return np.diff(np.concatenate([[0.0], law.below(edges / scale), [1.0]]))


def _mean_square(law: Law) -> float:
    """The mean square of a law in scales, as far as a lattice that is long and fine enough shows."""
    scale = _FINE / 2 / law.mean
    return float(_mass(law, scale) @ np.arange(-_POINTS // 2, _POINTS // 2) ** 2.0) / scale**2


def _quantiles(numbers: csr_array, logs: Floats, angles: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """The mean magnitude and both quantiles of sums of so many of each law, in steps of the lattice."""
    transform = np.exp(numbers @ logs + 1j * (numbers @ angles))
    mass = np.maximum(np.fft.fftshift(np.fft.irfft(transform, _POINTS, axis=1), axes=1), 0.0)
    mass /= mass.sum(axis=1, keepdims=True)
    at, reached = np.arange(-_POINTS // 2, _POINTS // 2), np.cumsum(mass, axis=1)
    missed = (1 - confidence) / 2
    least = at[(reached > missed * (1 + 1e-9)).argmax(axis=1)]
    most = at[(reached >= (1 - missed) * (1 - 1e-12)).argmax(axis=1)]
    mean: Floats = mass @ np.abs(at).astype(np.float64)
    return mean, least.astype(np.float64), most.astype(np.float64)
