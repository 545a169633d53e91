"""The perturbation of totals and the magnitudes of cells: plain arithmetic, cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.noise.factors import ONE, directions, triangular
from sfumato.noise.randomness import Seeded
from sfumato.statistics.totals.perturbation import (
    Optima,
    contributions,
    interpolated_magnitudes,
    parity,
    perturbation,
    perturbation_variance,
)

OPTIMA = Optima(
    shapes=np.array([[90.0, 5, 5, 0], [60, 40, 0, 0], [40, 30, 30, 0], [25, 25, 25, 25]]),
    magnitudes=np.array([[0.15, 0.1, 0.1], [0.25, 0.15, np.nan], [0.3, 0.2, 0.1], [0.5, 0.4, 0.3]]),
)
SIZES = arrays(np.float64, (7, 4), elements=st.floats(0, 1e9, allow_subnormal=False)).map(
    lambda sizes: -np.sort(-sizes, axis=1)
)


def drawn(cells: int, top: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    words = Seeded(4).words(2 * cells * top).reshape(2, cells, top)
    return {
        "values": rng.integers(-1000, 1000, (cells, top)),
        "weights": rng.integers(1, 50, (cells, top)),
        "magnitudes": rng.random((cells, top)),
        "directions": directions(words[0]),
        "noise": triangular(words[1], spread=300_000),
    }


def test_a_cell_is_perturbed_by_itself_and_not_by_its_company() -> None:
    inputs = drawn(500, 3)
    whole = perturbation(**inputs)
    alone = perturbation(**{name: values[17:18] for name, values in inputs.items()})
    assert alone[0] == whole[17]


def test_a_contributor_is_moved_by_its_magnitude_in_its_direction_and_a_loss_the_other_way() -> None:
    inputs = drawn(500, 3)
    moved = contributions(**inputs)
    expected = inputs["values"] * inputs["weights"] * inputs["magnitudes"] * inputs["noise"] / ONE
    assert np.allclose(moved, inputs["directions"] * expected)
    turned = contributions(**(inputs | {"values": -inputs["values"]}))
    assert np.array_equal(turned, -moved)


def test_a_contributor_that_does_not_exist_moves_nothing() -> None:
    inputs = drawn(500, 3)
    inputs["values"][:, 2] = 0
    fewer = perturbation(**{name: values[:, :2] for name, values in inputs.items()})
    assert np.array_equal(perturbation(**inputs), fewer)


def test_the_stated_variance_is_that_of_what_is_drawn() -> None:
    n = 400_000
    inputs = drawn(n, 3) | {
        "values": np.array([[700, -200, 100]]),
        "weights": np.array([[1, 3, 5]]),
        "magnitudes": np.array([[0.4, 0.3, 0.2]]),
    }
    squares = perturbation(**inputs) ** 2
    three = {name: inputs[name] for name in ("values", "weights", "magnitudes")}
    stated = perturbation_variance(**three, spread=0.3)
    error = squares.std() / np.sqrt(n)
    assert abs(squares.mean() - stated[0]) < 4 * error
    # The published factor, 1 + b²/12, is told apart.
    assert abs(squares.mean() - stated[0] / (1 + 0.3**2 / 6) * (1 + 0.3**2 / 12)) > 4 * error


def test_two_cells_that_differ_by_one_contributor_have_opposite_parity() -> None:
    signs = parity(np.arange(1, 100))
    assert signs[0] == 1
    assert np.array_equal(signs[1:], -signs[:-1])


def test_a_cell_of_a_known_shape_has_its_magnitudes_in_any_unit() -> None:
    for unit in (1e-6, 1.0, 12345.0):
        found = interpolated_magnitudes(OPTIMA.shapes * unit, OPTIMA)
        known = ~np.isnan(OPTIMA.magnitudes)
        assert np.allclose(found[known], OPTIMA.magnitudes[known], rtol=1e-9)
        assert not np.isnan(found).any()


@given(SIZES)
def test_magnitudes_lie_between_the_least_and_the_largest_of_the_optima(sizes: np.ndarray) -> None:
    found = interpolated_magnitudes(sizes, OPTIMA)
    assert np.all(found >= np.nanmin(OPTIMA.magnitudes, axis=0) - 1e-9)
    assert np.all(found <= np.nanmax(OPTIMA.magnitudes, axis=0) + 1e-9)


@given(SIZES)
def test_the_magnitudes_of_a_cell_do_not_depend_on_other_cells(sizes: np.ndarray) -> None:
    found = interpolated_magnitudes(sizes, OPTIMA)
    assert np.allclose(interpolated_magnitudes(sizes[3:4], OPTIMA), found[3:4], rtol=1e-12)


def test_a_small_change_of_shape_changes_magnitudes_little() -> None:
    along = np.linspace(0, 1, 2_001)[:, None]
    path = along * OPTIMA.shapes[0] + (1 - along) * OPTIMA.shapes[3]
    steps = np.abs(np.diff(interpolated_magnitudes(path, OPTIMA), axis=0))
    assert steps.max() < 0.005


def test_magnitudes_grow_from_a_dominated_to_an_even_cell() -> None:
    along = np.linspace(0, 1, 50)[:, None]
    path = (1 - along) * OPTIMA.shapes[0] + along * OPTIMA.shapes[3]
    first = interpolated_magnitudes(path, OPTIMA)[:, 0]
    assert np.all(np.diff(first) >= 0)


def test_cells_and_shapes_must_have_as_many_contributors() -> None:
    with pytest.raises(ValueError, match="4 contributors"):
        interpolated_magnitudes(np.ones((2, 3)), OPTIMA)


@pytest.mark.parametrize(
    ("shapes", "magnitudes"),
    [
        (np.ones((2, 3)), np.ones((3, 2))),
        (np.empty((0, 3)), np.empty((0, 2))),
        (-np.ones((1, 3)), np.ones((1, 2))),
        (np.ones((1, 3)), -np.ones((1, 2))),
        (np.ones((1, 3)), np.array([[0.1, np.nan]])),
    ],
)
def test_a_table_of_optima_that_makes_no_sense_is_refused(shapes: np.ndarray, magnitudes: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"shapes|sizes|magnitudes"):
        Optima(shapes=shapes, magnitudes=magnitudes)


def test_contributors_that_move_upward_raise_a_total_by_all_they_add() -> None:
    added = {"magnitudes": np.array([0.5, 0.2]), "directions": np.array([1, 1]), "noise": np.array([ONE, ONE])}
    assert perturbation(values=np.array([[10.0, 5.0]]), weights=np.array([[1.0, 2.0]]), **added).tolist() == [7.0]
