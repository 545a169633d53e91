"""What the vector mechanisms cost beside the legacy protection, on establishments of the published sizes.

The workers of each establishment are spread over sex and education; a table of workplace cells by these has d = 8. The
legacy multiplies each establishment by a factor 10% to 25% away from one, nearer values more likely, and redraws true
counts of 1 and 2 from {1, 2}.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.cells import Cells
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto
from sfumato.statistics.registry import build
from sfumato_lab.economy.jobs.draws import draw_establishments, draw_places
from tests.statistics.methods.vector_cells import block_cells

SHARES = np.outer([0.49, 0.51], [0.12, 0.26, 0.30, 0.32]).ravel()
TRIALS = 5


@dataclass(frozen=True, kw_only=True)
class Economy:
    cells: Cells
    legacy: NDArray[np.float64]

    def ratio(self, method: str, alpha: str, epsilon: str) -> float:
        built = build(method, alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=8)
        return float(built.expected_error(self.cells).mean() / self.legacy.mean())

    def smooth_laplace(self, alpha: str, epsilon: str) -> float:
        """The paper's way: every cell at ε/8, with an expected error of max(αx, 1)·2·8/ε."""
        error = np.maximum(float(alpha) * self.cells["largest"], 1) * 16 / float(epsilon)
        return float(error.mean() / self.legacy.mean())


@pytest.fixture(scope="module")
def economy() -> Economy:
    jobs, rng = 10_900_000, np.random.default_rng(1)
    places = draw_places(jobs=jobs, seed=1)
    establishments = draw_establishments(places, jobs=jobs, seed=1)
    _, start, number = np.unique(establishments.cell, return_index=True, return_counts=True)
    workers = rng.multinomial(establishments.size, SHARES)
    count = np.add.reduceat(workers, start)
    legacy = np.zeros(count.shape)
    for _ in range(TRIALS):
        away = (0.25 - 0.15 * np.sqrt(rng.random(len(workers)))) * rng.choice([-1, 1], len(workers))
        legacy += np.abs(np.add.reduceat(away[:, None] * workers, start)) / TRIALS
    legacy[(count > 0) & (count < 2.5)] = 0.5
    cells = block_cells(
        count,
        largest=np.maximum.reduceat(workers, start),
        largest_employer=np.maximum.reduceat(establishments.size, start),
        establishments=number,
    )
    return Economy(cells=cells, legacy=legacy.ravel())


@pytest.mark.parametrize(
    ("method", "alpha", "epsilon", "most"),
    [
        ("vector-pareto", "0.05", "2", 2.2),
        ("vector-pareto", "0.01", "2", 0.6),
        ("vector-pareto", "0.05", "4", 0.9),
        ("auto", "0.1", "2", 3.0),
        ("auto", "0.1", "4", 1.2),
        ("auto", "0.05", "2", 1.6),
    ],
)
def test_the_error_is_at_most_this_multiple_of_the_legacys_and_well_below_the_papers(
    economy: Economy, method: str, alpha: str, epsilon: str, most: float
) -> None:
    found = economy.ratio(method, alpha, epsilon)
    assert found < most
    assert found < 0.45 * economy.smooth_laplace(alpha, epsilon)


@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "2"), ("0.1", "4"), ("0.05", "2"), ("0.05", "1")])
def test_choosing_by_the_number_of_establishments_beats_every_single_mechanism(
    economy: Economy, alpha: str, epsilon: str
) -> None:
    single = [economy.ratio(method, alpha, epsilon) for method in ("vector-pareto", "log-box", "smooth-box")]
    assert economy.ratio("auto", alpha, epsilon) < min(single)


@pytest.mark.parametrize(
    ("alpha", "epsilon", "vector", "box"),
    [
        ("0.1", "2", 1.043, 4.030),
        ("0.1", "4", 0.332, 1.140),
        ("0.05", "2", 0.713, 2.462),
        ("0.05", "4", 0.287, 0.965),
        ("0.05", "1", 2.259, 8.831),
        ("0.01", "2", 0.536, 1.790),
    ],
)
def test_errors_in_scales_are_the_published_ones(alpha: str, epsilon: str, vector: float, box: float) -> None:
    parameters = {"alpha": Fraction(alpha), "epsilon": Fraction(epsilon), "worker_cells": 8}
    assert VectorPareto(**parameters).error_in_scales == pytest.approx(vector, abs=6e-4)
    assert SmoothBox(**parameters).error_in_scales == pytest.approx(box, abs=6e-4)
