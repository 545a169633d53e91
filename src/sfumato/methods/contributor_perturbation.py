"""The perturbation of a total by its largest contributors; docs/tune-top-contributors.md says how it is chosen."""

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.factors import ONE

Numbers = NDArray[np.int64] | NDArray[np.float64]


def contributions(
    *, values: Numbers, weights: Numbers, magnitudes: Floats, directions: Integers, noise: Integers
) -> Floats:
    """What each of a cell's largest contributors adds to its total: m·d·h·y·w, the noise h being in millionths.

    All arrays are cells × contributors, or broadcast to that; a contributor that does not exist has the value 0. Every
    product is of two floats and is rounded once, in this order, so that every machine gets the same.
    """
    moved: Floats = magnitudes * (directions * noise) / ONE * values * weights
    return moved


def perturbation(
    *, values: Numbers, weights: Numbers, magnitudes: Floats, directions: Integers, noise: Integers
) -> Floats:
    """What is added to each cell's total: P* = Σ m·d·h·y·w over its largest contributors.

    >>> perturbation(
    ...     values=np.array([[72.1, 65.3, 65.3, 50.1]]),
    ...     weights=np.array([[458.2, 185.7, 752.7, 612.6]]),
    ...     magnitudes=np.array([0.6, 0.4, 0.3, 0.2]),
    ...     directions=np.array([1, -1, -1, -1]),
    ...     noise=np.array([950_000, 1_020_000, 1_540_000, 1_540_000]),
    ... ).round().tolist()
    [-18278.0]
    """
    moved = contributions(values=values, weights=weights, magnitudes=magnitudes, directions=directions, noise=noise)
    total = np.zeros(len(moved))
    for rank in range(moved.shape[1]):  # from the largest on: the order of a sum of floats matters
        total = total + moved[:, rank]
    return total


def perturbation_variance(*, values: Numbers, weights: Numbers, magnitudes: Floats, spread: float) -> Floats:
    """The variance of P*: Σ m²·(1 + b²/6)·w²·y², because Var(d·h) = E h² = 1 + b²/6.

    The paper's b²/12 is the variance of a uniform noise of half the width; a triangular one on 1 ± b has b²/6.
    """
    weighted = magnitudes * values * weights
    variance: Floats = (1 + spread**2 / 6) * (weighted * weighted).sum(axis=-1)
    return variance


def parity(contributors: Integers) -> Integers:
    """The sign q of the parity rule: +1 in cells with an odd number of contributors, −1 with an even number.

    >>> parity(np.array([3, 4])).tolist()
    [1, -1]
    """
    return ((contributors & 1) << 1) - 1
