"""The mean absolute errors that docs/methods/smooth-pareto.md prints, in units of S = max(αx, 1)."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from sfumato.statistics.jobs.smooth import SmoothPareto

SMOOTH_PARETO = [
    ("0.1", "1", "1.17"),
    ("0.1", "2", "0.525"),
    ("0.05", "2", "0.513"),
    ("0.2", "2", "0.552"),
    ("0.1", "4", "0.250"),
]
SMOOTH_GAMMA_AND_LAPLACE = [(1, "11.31", "2.00"), (2, "5.66", "1.00"), (4, "2.83", "0.50")]


def printed_like(figure: str, value: float) -> str:
    return f"{value:.{len(figure.partition('.')[2])}f}"


@pytest.mark.parametrize(("alpha", "epsilon", "figure"), SMOOTH_PARETO)
def test_error_of_smooth_pareto_is_the_printed_one(alpha: str, epsilon: str, figure: str) -> None:
    method = SmoothPareto(alpha=Fraction(alpha), epsilon=Fraction(epsilon))
    assert printed_like(figure, method.planned_error().share / float(method.alpha)) == figure


@pytest.mark.parametrize(("alpha", "epsilon", "figure"), SMOOTH_PARETO)
def test_a_large_cell_has_the_printed_error(alpha: str, epsilon: str, figure: str) -> None:
    method = SmoothPareto(alpha=Fraction(alpha), epsilon=Fraction(epsilon))
    multiples = np.array([1_000 * method.alpha.denominator])  # S = 1,000
    assert printed_like(figure, method.noise.expected_magnitude(multiples)[0] / 1_000) == figure


@pytest.mark.parametrize(("epsilon", "gamma", "laplace"), SMOOTH_GAMMA_AND_LAPLACE)
def test_errors_of_the_published_mechanisms_are_the_printed_ones(epsilon: int, gamma: str, laplace: str) -> None:
    assert printed_like(gamma, 16 / epsilon / sqrt(2)) == gamma
    assert printed_like(laplace, 2 / epsilon) == laplace
