"""Bell noise as a method: where it exists, what it says of errors, and how Auto Bell chooses."""

from fractions import Fraction
from math import log

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.auto import Auto
from sfumato.statistics.jobs.bell import BoxBell, VectorBell, smallest_workforce
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.sinh_box import AutoBell, SinhBox
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto

TENTH, TWO = Fraction("0.1"), Fraction(2)
COMMON = {"alpha": TENTH, "epsilon": TWO, "worker_cells": 8}


def block(counts: list[int], largest: int, *, blocks: int = 1, establishments: int = 1) -> Cells:
    """The same workplace cell so many times."""
    width, rows = len(counts), np.tile(counts, blocks)
    place = Dimension(name="place", codes=tuple(map(str, range(blocks))))
    kind = Dimension(name="kind", codes=tuple(map(str, range(width))), public=False)
    columns = {
        "count": rows,
        "largest": np.minimum(rows, largest),
        "largest_employer": np.full(len(rows), largest),
        "establishments": np.full(len(rows), establishments),
    }
    return Cells(dimensions=(place, kind), positions=np.arange(len(rows)), columns=columns)


@pytest.mark.parametrize(
    ("bell", "earlier", "alpha", "epsilon", "at_most"),
    [
        (VectorBell, VectorPareto, "0.1", "2", 0.52),
        (VectorBell, VectorPareto, "0.1", "1", 0.17),
        (VectorBell, VectorPareto, "0.05", "2", 0.73),
        (BoxBell, SmoothBox, "0.1", "2", 0.66),
        (BoxBell, SmoothBox, "0.05", "2", 0.84),
    ],
)
def test_errors_are_a_share_of_those_of_pareto_noise(
    bell: type[VectorBell | BoxBell], earlier: type[VectorPareto | SmoothBox], alpha: str, epsilon: str, at_most: float
) -> None:
    parameters = {"alpha": Fraction(alpha), "epsilon": Fraction(epsilon), "worker_cells": 8}
    assert bell(**parameters).error_in_scales <= at_most * earlier(**parameters).error_in_scales


def test_the_page_has_the_errors_that_the_methods_have() -> None:
    assert round(VectorBell(**COMMON).error_in_scales, 3) == 0.536
    assert round(BoxBell(**COMMON).error_in_scales, 2) == 2.63
    assert round(VectorBell(alpha=TENTH, epsilon=TWO, worker_cells=20).error_in_scales, 2) == 0.59


def test_the_error_of_sinh_box_is_below_that_of_log_box_but_for_nearly_empty_cells() -> None:
    counts = np.array([2, 5, 10, 30, 100, 10**5])
    cells = block([*counts.tolist(), 0, 0], 10**5)
    own, other = (method(**COMMON).expected_error(cells)[:6] for method in (SinhBox, LogBox))
    assert np.all(own < other)
    assert own[2] < 0.75 * other[2]


@pytest.mark.parametrize(
    ("method", "definition"), [(VectorBell, "strong"), (BoxBell, "weak"), (SinhBox, "weak"), (AutoBell, "weak")]
)
def test_guarantees_are_those_of_the_methods_they_replace(method: type, definition: str) -> None:
    assert method(**COMMON).guarantee().definition == definition
    assert method(**COMMON).guarantee().epsilon == 2
    assert method(alpha=TENTH, epsilon=TWO).guarantee().definition == "strong"


@pytest.mark.parametrize("method", [VectorBell, BoxBell])
def test_below_d_steps_of_alpha_there_is_no_bell_noise_and_the_error_says_what_there_is(method: type) -> None:
    with pytest.raises(MethodError, match=r"epsilon > 8 · ln(.|\n)*at most 5 worker cells") as refused:
        method(alpha=TENTH, epsilon=Fraction("0.5"), worker_cells=8)
    assert method.name in str(refused.value)
    method(alpha=TENTH, epsilon=Fraction("0.77"), worker_cells=8)


def test_totals_are_refused_and_the_error_names_a_method_for_them() -> None:
    with pytest.raises(MethodError, match="vector-pareto"):
        VectorBell(**COMMON, floor=250_000)


def test_the_smallest_workforce_is_on_the_safe_side_and_hardly_above() -> None:
    for alpha in ("0.001", "0.05", "0.1", "0.5", "1", "10"):
        exact, found = 1 / log(1 + float(alpha)), float(smallest_workforce(Fraction(alpha)))
        assert exact <= found <= exact + 1 / 64


def test_a_workplace_cell_of_small_establishments_has_half_a_job_of_error() -> None:
    method = VectorBell(**COMMON)
    values = method.protect(block([1, 0, 2, 0, 0, 1, 0, 0], 4, blocks=4_000), Seeded(3))["value"].reshape(-1, 8)
    error = np.abs(values - [1, 0, 2, 0, 0, 1, 0, 0])
    assert np.isclose(error.mean(), method.planned_error().floor, rtol=0.03)
    assert method.planned_error().floor < 0.55


def test_the_largest_establishment_and_not_the_count_decides_the_noise() -> None:
    method = VectorBell(**COMMON)
    few, many = (method.expected_error(block([1_000] * 8, largest))[0] for largest in (100, 8_000))
    assert np.isclose(many / few, 80, rtol=0.02)


def test_auto_bell_chooses_by_the_number_of_establishments_alone() -> None:
    method = AutoBell(**COMMON)
    names = {choice.first: choice.mechanism.name for choice in method.rule}
    assert names == {1: "vector-bell", 2: "sinh-box", 20: "box-bell"}
    for establishments, mechanism in ((1, VectorBell), (10, SinhBox), (50, BoxBell)):
        cells = block([40, 3, 0, 7, 11, 2, 90, 1], 60, establishments=establishments)
        own = method.protect(cells, Seeded(5))
        needed = mechanism(**COMMON)
        columns = {name: cells[name] for name in needed.needs}
        alone = Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)
        assert own.equals(needed.protect(alone, Seeded(5)))


def test_auto_bell_exists_wherever_auto_does() -> None:
    few = {"alpha": Fraction("0.2"), "epsilon": Fraction("0.5"), "worker_cells": 8}
    assert [choice.mechanism.name for choice in Auto(**few).rule] == ["log-box"]
    assert [choice.mechanism.name for choice in AutoBell(**few).rule] == ["sinh-box"]
    assert [choice.mechanism.name for choice in AutoBell(alpha=TENTH, epsilon=TWO).rule] == ["vector-bell"]
