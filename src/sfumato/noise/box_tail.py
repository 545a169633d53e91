"""Tails of the form e^(−x)·polynomial(x): how far one cell, or the sum of a block, strays from zero."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import comb, factorial, fsum, inf, lgamma, log

import numpy as np

from sfumato.arrays import Floats

# Quantiles are moved outward by this share, more than floating point can err.
_OUTWARD = 1 + 1e-12


@dataclass(frozen=True, kw_only=True)
class Tail:
    """A function T(x) = e^(−x)·Σ c_j x^j of x ≥ 0 with every c_j ≥ 0, given by the logarithms of the c_j.

    Such is the probability that a magnitude exceeds x. Divided by an independent gamma variable G of some shape, the
    magnitude exceeds x with probability E[T(xG)], which has a closed form too.

    >>> laplace = Tail(logs=(0.0,))
    >>> round(float(laplace.mixed(np.array(1.0), 3.0)), 9)  # (1 + x)^−3
    0.125
    """

    logs: tuple[float, ...]

    def at(self, x: Floats) -> Floats:
        """T(x)."""
        return _series(self.logs, np.asarray(x, dtype=np.float64), -np.asarray(x, dtype=np.float64))

    def mixed(self, x: Floats, shape: float) -> Floats:
        """E[T(xG)] with G gamma of shape m: (1+x)^(−m)·Σ c_j·m(m+1)…(m+j−1)·(x/(1+x))^j."""
        x = np.asarray(x, dtype=np.float64)
        logs = [c + lgamma(shape + j) - lgamma(shape) for j, c in enumerate(self.logs)]
        return _series(logs, x / (1 + x), -shape * np.log1p(x))

    def integral(self, rate: float = 1.0) -> "Tail":
        """The tail I with I(rate·x) = ∫ T(u)·e^((1−rate)·u) du from x on; with rate 1 the plain integral of T."""
        found = [
            _log_sum(c + lgamma(j + 1) - lgamma(i + 1) - (j + 1) * log(rate) for j, c in enumerate(self.logs) if j >= i)
            for i in range(len(self.logs))
        ]
        return Tail(logs=tuple(found))

    def quantile(self, probability: float) -> float:
        """A value exceeded with a probability of at most 1 − probability, and hardly less."""
        return _quantile(self.at, probability)

    def mixed_quantile(self, probability: float, shape: float) -> float:
        """The same of the magnitude divided by a gamma variable of this shape."""
        return _quantile(lambda x: self.mixed(x, shape), probability)


@cache
def hull_tail(cells: int) -> Tail:
    """P(|R·W_c| > x) with R gamma of shape d+1, and W uniform in the hull of a box and its negative.

    c_j = (1 − j/d)(1 − j/(d+1))/j! for j < d; docs/methods/vector.md derives it.
    """
    d = cells
    return Tail(logs=tuple(log((1 - j / d) * (1 - j / (d + 1))) - lgamma(j + 1) for j in range(d)))


@cache
def sum_tail(cells: int) -> Tail:
    """P(L > x) with L the sum of d independent Laplace variables of scale 1: one side only.

    With k of them positive L is the difference of two gamma variables of shapes k and l = d − k, and P(L > x) is
    e^(−x)·Σ x^j/j!·C(l+n−1, n)·2^(−l−n) over j + n < k.
    """
    d = cells
    found = [Fraction(0)] * d
    for k in range(1, d + 1):
        rest = d - k
        inner = [Fraction(comb(rest + n - 1, n), 2 ** (rest + n)) if rest else Fraction(n == 0) for n in range(k)]
        for j, within in enumerate(reversed(list(accumulate(inner)))):
            found[j] += Fraction(comb(d, k), 2**d) * within
    return Tail(logs=tuple(log(c / factorial(j)) for j, c in enumerate(found)))


def _series(logs: Iterable[float], x: Floats, log_factor: Floats) -> Floats:
    """e^log_factor·Σ e^logs_j·x^j, term by term in logarithms so that nothing overflows."""
    with np.errstate(divide="ignore"):
        log_x = np.log(x)
    total = np.zeros(x.shape)
    for j, c in enumerate(logs):
        total += np.exp(c + log_factor + (j * log_x if j else 0.0))
    return total


def _log_sum(logs: Iterable[float]) -> float:
    logs = list(logs)
    top = max(logs)
    return top + log(fsum(np.exp(np.array(logs) - top)))


def _quantile(tail: Callable[[Floats], Floats], probability: float) -> float:
    if not 0 <= probability < 1:
        raise ValueError(f"probability must be in [0, 1), not {probability}")
    beyond = 1 - probability
    if tail(np.array(0.0)) <= beyond:
        return 0.0
    low, high = 0.0, 1.0
    while tail(np.array(high)) > beyond:
        low, high = high, 2 * high
        if high == inf:
            return inf
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if tail(np.array(middle)) <= beyond else (middle, high)
    return high * _OUTWARD
