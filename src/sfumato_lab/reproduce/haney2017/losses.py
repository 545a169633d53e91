"""The exact loss of methods between two workforces of one establishment that is alone in its cell.

Women and men are its worker cells. A method is asked for the log ratio of its densities for two workforces, over a grid
of outputs; rounding to whole jobs can only make it smaller.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto

Workforce = tuple[int, int]
"""Women and men."""
Density = Callable[[Floats, Floats], Floats]
"""The log densities of outputs, in rows of two cells, for a workforce of so many women and men."""

ALPHA, EPSILON = Fraction(1, 10), Fraction(1)
_LARGE = np.array([1e3, 1e6, 1e12])


def _vector_pareto(outputs: Floats, workforce: Floats) -> Floats:
    method = VectorPareto(alpha=ALPHA, epsilon=EPSILON, worker_cells=2)
    scale = float(method.calibration.scale) * max(float(ALPHA) * workforce.sum(), 1)
    return method.noise.log_density(outputs - workforce, scale)


def _each_cell(epsilon: Fraction) -> Density:
    """Smooth Pareto for each worker cell by itself."""
    noise = SmoothPareto(alpha=ALPHA, epsilon=epsilon).noise

    def density(outputs: Floats, workforce: Floats) -> Floats:
        multiples = np.maximum(ALPHA.numerator * workforce, ALPHA.denominator)
        found: Floats = noise.log_density(outputs - workforce, multiples).sum(axis=-1)
        return found

    return density


def _smooth_box(outputs: Floats, workforce: Floats) -> Floats:
    method, a = SmoothBox(alpha=ALPHA, epsilon=EPSILON, worker_cells=2), float(ALPHA)
    return method.noise.log_density(
        outputs - workforce, float(method.calibration.scale) * np.maximum(a * workforce, 1 + a)
    )


def _log_box(outputs: Floats, workforce: Floats) -> Floats:
    """On logarithms of counts plus 1/α, which is what the noise is added to: outputs below are not possible."""
    offset = float(1 / ALPHA)
    possible = outputs[(outputs > -offset).all(axis=-1)]
    return LogBox(alpha=ALPHA, epsilon=EPSILON, worker_cells=2).noise.log_density(
        np.log(possible + offset) - np.log(workforce + offset)
    )


PARALLEL = "scalar, each cell at the whole ε"
"""As Theorem 7.5 of the paper would have it, which sfumato never does."""
_WEAK = EmployerEmployee(definition="weak", alpha=ALPHA, epsilon=EPSILON)
METHODS: dict[str, tuple[Density, EmployerEmployee]] = {
    "vector-pareto": (_vector_pareto, VectorPareto(alpha=ALPHA, epsilon=EPSILON, worker_cells=2).guarantee()),
    "scalar": (_each_cell(EPSILON / 2), _WEAK),
    "smooth-box": (_smooth_box, SmoothBox(alpha=ALPHA, epsilon=EPSILON, worker_cells=2).guarantee()),
    "log-box": (_log_box, LogBox(alpha=ALPHA, epsilon=EPSILON, worker_cells=2).guarantee()),
}
"""The methods for all worker cells together at α = 0.1 and ε = 1, with what each promises."""
_DENSITIES = {name: density for name, (density, _) in METHODS.items()} | {PARALLEL: _each_cell(EPSILON)}


def exact_loss(name: str, one: Workforce, other: Workforce) -> float:
    """The greatest log ratio of densities over outputs at, around, between and far from two workforces."""
    before, after = np.array(one, dtype=np.float64), np.array(other, dtype=np.float64)
    reach = max(*one, *other, 10)
    line = np.unique(np.concatenate([np.linspace(-2 * reach, 3 * reach, 121), before, after, _LARGE, -_LARGE]))
    outputs = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    density = _DENSITIES[name]
    return float(np.abs(density(outputs, before) - density(outputs, after)).max())
