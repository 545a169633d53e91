"""How wide an interval of MOSE is, when all that may be used is the noisy number of people."""

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.noise.geometric import Geometric

UNCOVERED = 0.05
"""How often the interval misses the statistic."""
_DOUBLINGS = 60
_LEAST = 6


def least_count(noise: Geometric) -> int:
    """The least noisy number of people that tells an error: below 6/ε it may be twice the true one, or half."""
    return int(np.ceil(_LEAST / float(noise.epsilon)))


def half_widths(scale: Floats, count: Integers, noise: Geometric) -> Floats:
    """Half the width of an interval of 95 %, for Laplace noise of a scale that is `scale`·count/n for n people.

    Only the noisy count n + K is known. With every n equally likely beforehand, n is count + K, and noise goes beyond h
    with the probability E exp(−t·(count + K)), t = h/(scale·count): the moments of geometric noise give it in closed
    form, and t is found by halving. It is 3.0 scales for a large count and more for a small one.

    >>> from fractions import Fraction
    >>> half_widths(np.array([1.0, 1.0]), np.array([1_000, 10]), Geometric(epsilon=Fraction(1))).round(2).tolist()
    [3.0, 3.09]
    """
    step = float(noise.epsilon)
    ratio = np.exp(-step)

    def uncovered(t: Floats) -> Floats:
        spread: Floats = 2 * np.log1p(-ratio) - np.log1p(-np.exp(t - step)) - np.log1p(-np.exp(-t - step))
        return spread - t * count

    # It falls from 1 at t = 0, and later rises again: the first crossing is wanted, which for all counts that tell an
    # error is below 0.8 of the step, and the function falls until there.
    low, high = np.zeros(len(count)), np.full(len(count), 0.8 * step)
    for _ in range(_DOUBLINGS):
        middle = (low + high) / 2
        beyond = uncovered(middle) > np.log(UNCOVERED)
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    widths: Floats = high * scale * count
    return widths
