"""How many neighbour steps lie between two sizes, and reach every neighbour at a wider α, counted on whole workers."""

from fractions import Fraction
from functools import lru_cache
from math import log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_CHUNK, _LARGEST_CHUNK = 1 << 10, 1 << 16
_INT64_SAFE = 1 << 62


def steps_between(*, alpha: Fraction, smaller: int, larger: int, floor: int = 1) -> int:
    """The least number of neighbour steps from one size of an establishment to a larger one, on whole workers.

    One step takes x workers to at most max(⌊(1+α)x⌋, x+1). That never decreases with x, so always taking the largest
    step is optimal; a run of equal steps is counted by one division. Values of units go up by the `floor` at least.

    >>> steps_between(alpha=Fraction(1, 10), smaller=14, larger=21)
    7
    >>> steps_between(alpha=Fraction(1, 10), smaller=0, larger=100_000, floor=5_000)
    18
    """
    if not 0 <= smaller <= larger:
        raise ValueError("sizes must not be negative, and the smaller comes first")
    p, q = alpha.numerator, alpha.denominator
    size, steps = smaller, 0
    while size < larger:
        gain = max(size * p // q, floor)
        change = -(-(gain + 1) * q // p)  # the first size from which a step adds more than `gain`
        run = -(-(min(change, larger) - size) // gain)
        size, steps = size + run * gain, steps + run
    return steps


@lru_cache(maxsize=256)
def neighbour_steps(alpha: Fraction, wider: Fraction) -> int:
    """The least k such that k strong steps at `alpha` reach every strong neighbour at `wider`.

    Workers are whole, so steps are rounded down and more are needed than ln(1+wider)/ln(1+alpha) says. From
    14 to 21 workers the steps go over 15, 16, 17, 18, 19 and 20, seven where the logarithms say five:

    >>> neighbour_steps(Fraction(1, 10), Fraction(1, 2))
    7

    One step takes x workers to at most f(x) = max(⌊(1+α)x⌋, x+1), and the farthest neighbour to reach has
    t(x) = max(⌊(1+wider)x⌋, x+1). f never decreases, so always taking the largest step is optimal, and the
    answer is the maximum over x ≥ 0 of the least k with f^k(x) ≥ t(x). Beyond `_enough_from(k)` k steps
    always suffice; hence the search climbs from x = 0 and stops where the worst count met so far is known to
    suffice for all that remain.
    """
    if alpha <= 0:
        raise ValueError(f"alpha must be positive, not {alpha}")
    if alpha >= wider:
        return 1
    worst = _unrounded_steps(alpha, wider)
    if alpha.denominator == 1:  # whole multiples are never rounded
        return worst
    start, chunk = 0, _FIRST_CHUNK
    end = _enough_from(alpha, wider, worst)
    while end is None or start < end:
        stop = start + chunk if end is None else min(start + chunk, end)
        met = int(_steps_from(alpha, wider, start, stop).max())
        if met > worst:
            worst, end = met, _enough_from(alpha, wider, met)
        start, chunk = stop, min(2 * chunk, _LARGEST_CHUNK)
    return worst


def _unrounded_steps(alpha: Fraction, wider: Fraction) -> int:
    """The least k with (1+α)^k ≥ 1+wider; floating point only guesses, integers decide."""
    k = max(1, round(log1p(wider) / log1p(alpha)) - 1)
    while k > 1 and (1 + alpha) ** (k - 1) >= 1 + wider:
        k -= 1
    while (1 + alpha) ** k < 1 + wider:
        k += 1
    return k


def _enough_from(alpha: Fraction, wider: Fraction, k: int) -> int | None:
    """An x from which k steps always suffice, or None when (1+α)^k only just equals 1+wider.

    With r = 1+α each step loses less than 1 to rounding, so f^k(x) > r^k·x − S with S = 1 + r + … + r^(k−1).
    k steps suffice when f^k(x) > (1+wider)x − 1, both being whole numbers; hence from x = (S−1)/(r^k −
    (1+wider)) on.

    None does not stop the search from ending. It happens only for the first k, with k ≥ 2 because wider > α.
    Write r = a/q in lowest terms with q > 1 and look at two steps from x: let a·x leave remainder s = q−1
    when divided by q, y = (a·x − s)/q be the size after the first step, and let a·y leave remainder 1. Both
    can be had at once, and infinitely often, since x modulo q² decides them and a is invertible. Then r²x =
    r·y + a·s/q², where the fractional part of r·y is 1/q and a·s/q² ≥ (q+1)(q−1)/q² = 1 − 1/q², more than 1
    together: ⌊r²x⌋ is missed by two rounded steps. For k > 2 start from q^(k−2)·z, whose first k−2 steps are
    not rounded, and choose z such that a^(k−2)·z is such an x. So sizes that need k+1 steps exist, and k+1
    leaves a gap.
    """
    power = (1 + alpha) ** k
    gap = power - (1 + wider)
    if gap == 0:
        return None
    lost = (power - 1) / alpha - 1
    return -(-lost // gap)


def _steps_from(alpha: Fraction, wider: Fraction, start: int, stop: int) -> NDArray[np.int64]:
    """For every x from `start` up to `stop` the number of largest steps that reach its farthest neighbour.

    As long as ⌊αy⌋ stays the same every step adds the same number of workers, so a run of equal steps is
    counted by one division.
    """
    p, q = alpha.numerator, alpha.denominator
    n, d = (1 + wider).numerator, (1 + wider).denominator
    # Python's integers, slower but without limit, where a product could leave 64 bits.
    largest = (stop * n // d + 1) * (max(p, n) + 1) + q * (stop * n * p // (d * q) + 2)
    exact: Any = np.int64 if largest < _INT64_SAFE else object
    size = np.arange(start, stop).astype(exact)
    target = np.maximum(size * n // d, size + 1)
    steps = np.zeros(len(size), dtype=np.int64)
    going = np.arange(len(size))
    while len(going):
        here, there = size[going], target[going]
        gain = np.maximum(here * p // q, 1)
        change = -(-(gain + 1) * q // p)  # the first size from which a step adds more than `gain`
        run = -(-(np.minimum(change, there) - here) // gain)
        size[going] = here + run * gain
        steps[going] += run.astype(np.int64)
        going = going[(size[going] < there).astype(bool)]
    return steps
