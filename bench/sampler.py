"""The sampler: exact draws of Smooth Pareto noise beside the inexact ones that NumPy would give."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from gate import TOLERANCE, Truth, WrongResultError

from sfumato.cells import Integers
from sfumato.methods.smooth_pareto import SmoothPareto
from sfumato.noise.double_pareto import DoublePareto
from sfumato.noise.randomness import OperatingSystem

_DRAWS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Draws a second on one core."""

    exact: float
    inexact: float


def measure_sampler(truth: Truth, *, repeat: int) -> Sampler:
    """Draw for the scales of the cells of the table, over and over until there are a million."""
    method = truth.planned.method
    assert isinstance(method, SmoothPareto)
    multiples = np.resize(np.maximum(truth.cells["largest"] * method.alpha.numerator, method.alpha.denominator), _DRAWS)
    noise, secure, generator = method.noise, OperatingSystem(), np.random.default_rng()
    expected = float(np.mean(noise.expected_magnitude(multiples)))
    return Sampler(
        exact=_draws_a_second(lambda: noise.sample(multiples, secure), expected, repeat),
        inexact=_draws_a_second(lambda: _inexact(noise, multiples, generator), expected, repeat),
    )


def _inexact(noise: DoublePareto, multiples: Integers, generator: np.random.Generator) -> Integers:
    """The textbook way: a floating-point uniform through the inverse of the distribution, rounded."""
    uniform = generator.uniform(-1.0, 1.0, len(multiples))
    magnitude = np.expm1(np.log(np.abs(uniform)) * -float(1 / noise.tail)) * (multiples * float(noise.unit))
    drawn: Integers = np.rint(np.copysign(magnitude, uniform)).astype(np.int64)
    return drawn


def _draws_a_second(draw: Callable[[], Integers], expected: float, repeat: int) -> float:
    seconds = []
    for _ in range(repeat + 1):  # the first one warms
        begin = perf_counter()
        drawn = draw()
        seconds.append(perf_counter() - begin)
        if abs(float(np.mean(np.abs(drawn))) - expected) > TOLERANCE * expected:
            raise WrongResultError("the draws are not of the size that the noise should have")
    return _DRAWS / median(seconds[1:])
