"""Noise as a textbook draws it: NumPy's fast generator through floating point. Quick, and not safe to publish."""

from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.noise.box_laplace import BoxLaplace
from sfumato.noise.box_pareto import BoxPareto
from sfumato.noise.choice import WeightedChoice
from sfumato.noise.factors import Factors
from sfumato.noise.geometric import Geometric, TruncatedGeometric
from sfumato.noise.laplace import LogLaplace, RoundedLaplace
from sfumato.noise.pareto import DoublePareto, SimplexPareto
from sfumato.noise.quartic import Quartic

Generator = np.random.Generator


def double_pareto(noise: DoublePareto, multiples: Integers, generator: Generator) -> Integers:
    """A uniform number through the inverse of the distribution."""
    uniform = generator.uniform(-1.0, 1.0, len(multiples))
    magnitude = np.expm1(np.log(np.abs(uniform)) * -float(1 / noise.tail)) * (multiples * float(noise.unit))
    return _whole(np.copysign(magnitude, uniform))


def laplace(noise: RoundedLaplace, multiples: Integers, generator: Generator) -> Integers:
    """NumPy's own."""
    return _whole(generator.laplace(scale=multiples * float(noise.unit)))


def log_laplace(noise: LogLaplace, multiples: Integers, generator: Generator) -> Integers:
    """NumPy's Laplace noise as an exponent."""
    factor = np.exp(generator.laplace(scale=float(noise.spread), size=len(multiples)))
    return _whole(multiples * float(noise.unit) * factor - float(noise.offset))


def quartic(noise: Quartic, multiples: Integers, generator: Generator) -> Integers:
    """By rejection, as the exact one; a Cauchy variable is the proposal."""
    drawn, waiting = np.empty(len(multiples)), np.arange(len(multiples))
    while len(waiting):
        z = generator.standard_cauchy(len(waiting))
        # The ratio (1 + z²)/(1 + z⁴) of the densities never exceeds (1 + √2)/2.
        kept = generator.uniform(0, (1 + np.sqrt(2)) / 2, len(waiting)) * (1 + z**4) < 1 + z**2
        drawn[waiting[kept]] = z[kept]
        waiting = waiting[~kept]
    return _whole(drawn * (multiples * float(noise.unit)))


def geometric(noise: Geometric | TruncatedGeometric, n: int, generator: Generator) -> Integers:
    """A uniform number through the inverse of the distribution."""
    uniform = generator.uniform(-1.0, 1.0, n)
    magnitude = np.abs(uniform)
    if isinstance(noise, TruncatedGeometric):
        beyond = 2 * np.cumsum(noise.probabilities[: noise.cap])
        found = noise.cap - np.searchsorted(beyond, magnitude)
    else:
        step = float(noise.epsilon)
        found = np.floor(-(np.log(magnitude) + np.log1p(np.expm1(-step) / 2)) / step)
    return _whole(np.copysign(found, uniform))


def simplex_pareto(noise: SimplexPareto, rows: Integers, generator: Generator) -> Integers:
    """Each magnitude given those before it."""
    uniform = generator.uniform(-1.0, 1.0, rows.shape)
    shares = 1 / (float(noise.tail) + np.arange(noise.cells))
    reach = np.cumprod(np.abs(uniform) ** -shares, axis=1)
    return _whole(np.copysign(np.diff(reach, axis=1, prepend=1.0), uniform) * (rows * float(noise.unit)))


def box_pareto(noise: BoxPareto, rows: Integers, generator: Generator) -> Integers:
    """A radius times a point of the hull."""
    shares = 1 / (float(noise.tail) + np.arange(noise.cells + 1))
    radius = np.prod(generator.random((len(rows), noise.cells + 1)) ** -shares, axis=1) - 1
    return _whole(radius[:, None] * _points(rows, generator) * (rows * float(noise.unit)))


def box_laplace(
    noise: BoxLaplace, rows: Integers, generator: Generator, *, unit: Fraction, offset: Fraction
) -> Integers:
    """A radius times a point of the hull as exponents."""
    radius = generator.gamma(noise.cells + 1, float(noise.scale), len(rows))
    return _whole(rows * float(unit) * np.exp(radius[:, None] * _points(rows, generator)) - float(offset))


def chosen(choice: WeightedChoice, costs: Integers, generator: Generator) -> Integers:
    """The largest of weights with Gumbel noise."""
    found: Integers = (generator.gumbel(size=costs.shape) - float(choice.rate) * costs).argmax(axis=1)
    return found


def ramp(factors: Factors, n: int, generator: Generator) -> Floats:
    """How far factors are from one, of the same distribution without a key."""
    least, most = float(factors.least), float(factors.most)
    return np.copysign(most - (most - least) * np.sqrt(generator.random(n)), generator.uniform(-1, 1, n))


def _points(rows: Integers, generator: Generator) -> Floats:
    uniform = generator.random((rows.shape[0], rows.shape[1] + 1))
    uniform[np.arange(len(rows)), generator.integers(0, rows.shape[1] + 1, len(rows))] = 0
    return uniform[:, 1:] - uniform[:, :1]


def _whole(values: Floats) -> Integers:
    return np.rint(np.clip(values, -(2.0**62), 2.0**62)).astype(np.int64)
