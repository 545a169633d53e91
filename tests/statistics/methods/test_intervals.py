"""Errors and intervals of counts never contradict the values beside them, and hold small counts, too."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import MethodError
from sfumato.method import PublishedFigures
from sfumato.noise.geometric import TruncatedGeometric
from tests.statistics.methods.intervals import CONFIDENCE, FORMAL, SMALL, method_at, page_row, protected

PAGE = Path(__file__).parents[3] / "docs" / "bundle.md"
DRAWS, GRID_DRAWS, PAGE_DRAWS = 10_000, 20_000, 100_000


def allowed(draws: int) -> float:
    """The least share of draws that a coverage of just the confidence gives."""
    return CONFIDENCE - 4 * float(np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / draws))


@pytest.mark.parametrize("name", FORMAL)
def test_small_counts_lie_in_their_intervals_and_no_figure_contradicts_its_value(name: str) -> None:
    method = method_at(name)
    found = [protected(method, count, draws=DRAWS) for count in SMALL]
    assert [part.contradictions for part in found] == [0] * len(SMALL)
    assert min(part.covered for part in found) >= allowed(DRAWS)
    assert (found[0].values < 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.25", "0.5", "1", "2", "4", "16"])
@pytest.mark.parametrize("alpha", ["0.01", "0.1", "0.5"])
@pytest.mark.parametrize("name", FORMAL)
def test_it_is_so_at_every_parameter_and_size(name: str, alpha: str, epsilon: str) -> None:
    try:
        method = method_at(name, alpha=alpha, epsilon=epsilon)
    except MethodError:
        pytest.skip("the method does not exist there")
    for count in (*SMALL, 30, 100, 1_000, 100_000):
        found = protected(method, count, draws=GRID_DRAWS, seed=count + 1)
        assert found.contradictions == 0
        assert found.covered >= allowed(GRID_DRAWS)


def beside(value: int, *, error: float = 3.0, low: float = 0.0, high: float = 6.0) -> tuple[float, float, float]:
    figures = PublishedFigures(error=np.array([error]), low=np.array([low]), high=np.array([high]))
    found = figures.beside(np.array([value]))
    return float(found.error[0]), float(found.low[0]), float(found.high[0])


def test_figures_that_agree_with_their_value_stay_as_they_are() -> None:
    assert beside(4) == (3, 0, 6)
    assert beside(0) == (3, 0, 6)
    assert beside(-2) == (3, 0, 6)


def test_the_error_is_at_least_the_way_to_the_nearest_plausible_count_and_the_interval_grows_to_the_value() -> None:
    assert beside(-1_883, error=12.84) == (1_883, 0, 1_883)
    assert beside(20) == (14, 0, 20)
    assert beside(2, low=8, high=30) == (6, 2, 30)


def test_an_interval_of_one_count_is_widened_by_one_job_on_either_side() -> None:
    assert beside(0, error=0.1, high=0.0) == (0.1, 0, 1)
    assert beside(5, error=0.1, low=5.0, high=5.0) == (0.1, 4, 6)


def test_an_interval_without_an_upper_end_stays_without_one() -> None:
    error, low, high = beside(-7, low=0.0, high=float("nan"))
    assert (error, low) == (7, 0)
    assert np.isnan(high)


@pytest.mark.parametrize("cells", [1, 4, 16, 64])
@pytest.mark.parametrize("epsilon", ["0.25", "0.5", "1", "2", "4"])
def test_records_of_a_cube_lie_within_1_645_errors_and_half_a_record(epsilon: str, cells: int) -> None:
    noise = TruncatedGeometric(epsilon=Fraction(epsilon), cap=round(20 / float(epsilon)) + 5)
    chances = np.array([1.0])
    for _ in range(cells):
        chances = np.convolve(chances, noise.probabilities)
    off = np.arange(len(chances)) - len(chances) // 2
    assert chances[np.abs(off) <= 1.645 * np.sqrt(cells * noise.variance) + 0.5].sum() >= CONFIDENCE


@pytest.mark.slow
def test_the_page_shows_what_a_run_finds() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith(tuple(f"| {name} | " for name in FORMAL))]
    rows = []
    for name in FORMAL:
        for epsilon in ("2", "0.5"):
            try:
                rows.append(page_row(name, epsilon, draws=PAGE_DRAWS))
            except MethodError:
                continue
    assert shown == rows
