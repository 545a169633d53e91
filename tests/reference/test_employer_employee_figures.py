"""Figures of the paper on employer-employee privacy, with its errata."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from sfumato.errors import MethodError
from sfumato.statistics.jobs.logarithms import LogLaplace
from sfumato.statistics.jobs.smooth import SmoothGamma, SmoothLaplace, smallest_epsilon
from sfumato_lab.reproduce.haney2017.losses import EPSILON, PARALLEL, exact_loss

# Table 2. The paper heads the first block δ = .05 (it is .005) and prints 2.13 for the last entry.
SMALLEST_EPSILON = [
    ("0.005", "0.01", "0.105"),
    ("0.005", "0.1", "1.010"),
    ("0.005", "0.2", "1.932"),
    ("0.0005", "0.01", "0.151"),
    ("0.0005", "0.1", "1.449"),
    ("0.0005", "0.2", "2.772"),
]


@pytest.mark.parametrize(("delta", "alpha", "figure"), SMALLEST_EPSILON)
def test_smallest_epsilon_of_smooth_laplace_is_the_printed_one(delta: str, alpha: str, figure: str) -> None:
    assert f"{smallest_epsilon(alpha=Fraction(alpha), delta=Fraction(delta)):.3f}" == figure


@pytest.mark.parametrize(("delta", "alpha", "figure"), SMALLEST_EPSILON)
def test_smooth_laplace_exists_from_there_on(delta: str, alpha: str, figure: str) -> None:
    above, below = Fraction(figure) + Fraction(1, 1000), Fraction(figure) - Fraction(1, 1000)
    SmoothLaplace(alpha=Fraction(alpha), delta=Fraction(delta), epsilon=above)
    with pytest.raises(MethodError):
        SmoothLaplace(alpha=Fraction(alpha), delta=Fraction(delta), epsilon=below)


def test_the_heading_and_the_last_entry_of_the_table_in_the_paper_are_misprints() -> None:
    assert f"{smallest_epsilon(alpha=Fraction('0.01'), delta=Fraction('0.05')):.3f}" == "0.060"
    assert f"{smallest_epsilon(alpha=Fraction('0.2'), delta=Fraction('0.0005')):.2f}" != "2.13"


@pytest.mark.parametrize(
    ("epsilon", "gamma", "laplace"), [(1, "11.31", "2.00"), (2, "5.66", "1.00"), (4, "2.83", "0.50")]
)
def test_errors_in_units_of_s_are_the_printed_ones(epsilon: int, gamma: str, laplace: str) -> None:
    alpha = Fraction("0.1")
    assert f"{SmoothGamma(alpha=alpha, epsilon=Fraction(epsilon)).error_in_scales:.2f}" == gamma
    delta = Fraction("0.05") if epsilon == 1 else Fraction("0.0005")
    assert f"{SmoothLaplace(alpha=alpha, epsilon=Fraction(epsilon), delta=delta).error_in_scales:.2f}" == laplace


@pytest.mark.parametrize(
    ("alpha", "epsilon", "published", "tight"),
    [
        ("0.1", "1", "11.31", "1.91"),
        ("0.1", "2", "5.66", "0.81"),
        ("0.05", "2", "5.66", "0.78"),
        ("0.1", "4", "2.83", "0.33"),
    ],
)
def test_errors_of_tight_smooth_gamma_are_those_of_its_page(
    alpha: str, epsilon: str, published: str, tight: str
) -> None:
    at = {"alpha": Fraction(alpha), "epsilon": Fraction(epsilon)}
    assert f"{SmoothGamma(**at).error_in_scales:.2f}" == published
    assert f"{SmoothGamma(**at, tight=True).error_in_scales:.2f}" == tight


def test_worker_cells_that_each_get_the_whole_epsilon_lose_more_than_that_in_one_strong_step() -> None:
    """Theorem 7.5: 100 workers, one of them male, and ten more males, which is one step at α = 0.1."""
    assert exact_loss(PARALLEL, (99, 1), (99, 11)) > 2 * EPSILON
    assert exact_loss("vector-pareto", (99, 1), (99, 11)) <= EPSILON + Fraction(1, 10**9)


def test_the_mean_magnitude_of_the_quartic_density_is_one_over_the_root_of_two() -> None:
    method = SmoothGamma(alpha=Fraction("0.1"), epsilon=Fraction(16))
    assert np.isclose(method.noise.expected_magnitude(np.array([10**7]))[0] / 10**6, 1 / sqrt(2))


def test_the_spread_of_log_laplace_is_twice_the_logarithm_of_a_step_over_epsilon() -> None:
    at = {"alpha": Fraction("0.1"), "epsilon": Fraction(2)}
    assert np.isclose(float(LogLaplace(**at).spread), np.log(1.1))
    assert np.isclose(float(LogLaplace(**at, tight=True).spread), np.log(1.1) / 2)
