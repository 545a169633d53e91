"""How far whole numbers made by box Laplace noise on logarithms are from the truth, on average."""

from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.noise.box_laplace import BoxLaplace

_DIRECT_TERMS = 64


def expected_deviation(
    noise: BoxLaplace, true: Integers, bases: Integers, *, unit: Fraction, offset: Fraction
) -> tuple[Floats, Floats]:
    """E[(V − true)⁺] and E[(true − V)⁺] of V = A·unit·e^z − offset rounded, one cell at a time.

    Their sum is the mean absolute error, their difference the bias. Both are sums of tail probabilities at half
    integers: the first terms directly, the others by the integral, which is then right to a few parts in a million.
    """
    median, n, shift = bases.astype(np.float64) * float(unit), true.astype(np.float64), float(offset)
    over, under = np.zeros(n.shape), np.zeros(n.shape)
    for j in range(_DIRECT_TERMS):
        over += _above(noise, _logs(n + shift + j + 0.5, median))
        under += 1 - _above(noise, _logs(n + shift - j - 0.5, median))
    over += median * _integral_above(noise, _logs(n + shift + _DIRECT_TERMS, median))
    under += median * _integral_below(noise, _logs(n + shift - _DIRECT_TERMS, median))
    return over, under


def relative_deviation(noise: BoxLaplace) -> float:
    """E|e^z/E[e^z] − 1|, the mean absolute error before rounding as a share of the base."""
    at = np.log(np.array(noise.growth))
    return float(_integral_above(noise, at) + _integral_below(noise, at)) / noise.growth


def _logs(level: Floats, median: Floats) -> Floats:
    """Which z brings the value to a level; for a level it never falls to, one so low that z never does."""
    return np.log(np.maximum(level / median, 1e-300))


def _above(noise: BoxLaplace, r: Floats) -> Floats:
    """P(z ≥ r)."""
    half = noise.one_cell.at(np.abs(r) / float(noise.scale)) / 2
    return np.where(r >= 0, half, 1 - half)


def _integral_above(noise: BoxLaplace, r: Floats) -> Floats:
    """∫ P(z ≥ t)·e^t dt from r on."""
    positive, negative = np.maximum(r, 0), np.minimum(r, 0)
    inside = -np.expm1(negative) - (_tilted(noise, np.zeros_like(r), -1) - _tilted(noise, -negative, -1))
    return _tilted(noise, positive, 1) + inside


def _integral_below(noise: BoxLaplace, r: Floats) -> Floats:
    """∫ P(z < t)·e^t dt up to r."""
    positive, negative = np.maximum(r, 0), np.minimum(r, 0)
    inside = np.expm1(positive) - (_tilted(noise, np.zeros_like(r), 1) - _tilted(noise, positive, 1))
    return _tilted(noise, -negative, -1) + inside


def _tilted(noise: BoxLaplace, r: Floats, sign: int) -> Floats:
    """∫ P(z ≥ t)·e^(±t) dt from r ≥ 0 on."""
    b = float(noise.scale)
    rate = 1 - sign * b
    integral: Floats = b / 2 * noise.one_cell.integral(rate).at(rate * r / b)
    return integral
