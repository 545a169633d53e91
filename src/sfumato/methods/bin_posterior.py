"""What noisy counts in bins lead one to expect of the true ones, given the shape that people's earnings have."""

from math import ceil

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.methods.log_normal_fit import CONCENTRATION, LogNormalFit
from sfumato.noise.geometric import Geometric

_FAR = 12.0
"""Noise beyond this many times 1/ε has a probability below 10^−5, and is left out."""
_MOST_STEPS = 200
"""With more noise than needs so many steps, whole numbers are taken as a continuum."""
_LEAST = 1e-9


def expected_bins(noisy: Integers, noise: Geometric, fit: LogNormalFit) -> tuple[Floats, Floats]:
    """The mean and the variance of the true count in every bin, given its noisy one and the fitted shape.

    A bin is thought to have a negative binomial number of people: the fit's λ on average, with variance
    λ(1 + people/CONCENTRATION). Times the probability of the noise and normed, that is the posterior; it is summed over
    the numbers around the noisy one. The mean is never negative, leaves large bins as they are and draws small ones to
    the fit, empty ones nearly to 0.
    """
    shares = np.maximum(fit.heavy_shares, _LEAST)
    size = CONCENTRATION * shares
    chance = (fit.people / (fit.people + CONCENTRATION))[:, None]
    falls = float(np.exp(-float(noise.epsilon)))
    steps = ceil(_FAR / float(noise.epsilon))
    if steps > _MOST_STEPS:
        return _of_normal(noisy, noise, fit)
    start = np.maximum(noisy, 0).astype(np.float64)
    moments = [np.ones_like(start), np.zeros_like(start), np.zeros_like(start)]

    def add(weight: Floats, away: int) -> None:
        moments[0] += weight
        moments[1] += weight * away
        moments[2] += weight * away**2

    # Neighbouring numbers differ by a simple factor, so no logarithm or gamma function is needed.
    weight = np.ones_like(start)
    for away in range(1, steps + 1):
        n = start + away
        weight = weight * (falls * chance) * (n - 1 + size) / n
        add(weight, away)
    weight = np.ones_like(start)
    for away in range(1, steps + 1):
        n = np.maximum(start - away, -1.0)  # at −1 the factor is 0, and stays so
        weight = weight * (falls / chance) * (n + 1) / (np.maximum(n, 0.0) + size)
        add(weight, -away)
    shift = moments[1] / moments[0]
    return start + shift, np.maximum(moments[2] / moments[0] - shift**2, 0.0)


def _of_normal(noisy: Integers, noise: Geometric, fit: LogNormalFit) -> tuple[Floats, Floats]:
    """The same if counts and noise were normal."""
    fitted = fit.people[:, None] * np.maximum(fit.heavy_shares, _LEAST)
    spread = fitted * (1 + fit.people / CONCENTRATION)[:, None]
    kept = spread / (spread + noise.variance)
    return np.maximum(fitted + kept * (noisy - fitted), 0.0), kept * noise.variance
