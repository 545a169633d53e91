"""What every method in the registry keeps, whatever it does."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.method import Biased, Method
from sfumato.noise.randomness import OperatingSystem, Seeded
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee
from sfumato.statistics.jobs.sparse_laplace import SparseLaplace
from sfumato.statistics.people.laplace_sums import LaplaceMean
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import NoisyRegression
from sfumato.statistics.people.percentiles import NoisyQuantiles
from sfumato.statistics.people.sensitivity import GlobalSensitivity, LocalSensitivity
from sfumato.statistics.people.theil_sen import TheilSen
from sfumato.statistics.registry import METHODS, build, is_exact
from sfumato.statistics.totals.top_contributors import TopContributors
from sfumato.statistics.totals.values import PerturbedValues

DRAWS = 40_000
COUNTS = {"an empty cell": (0, 0), "one worker": (1, 1), "a mixed cell": (250, 60), "one giant": (30_000, 29_000)}


# The chance of methods for totals is in the keys of the records, not in the randomness that methods are handed.
# Predictions, means and percentiles are several values of a group with errors of their own, tested in
# tests/statistics/methods. Sparse tables are made of workforces, and not of cells one by one; tested there too.
ESTIMATED = {
    method.name
    for method in (Mose, NoisyRegression, TheilSen, NoisyQuantiles, GlobalSensitivity, LocalSensitivity, LaplaceMean)
}
# True numbers are decided for all tables together, and draw nothing; tested in tests/statistics/exact.
EXACT = {name for name in METHODS if is_exact(name)}
DRAWN = sorted(METHODS.keys() - {TopContributors.name, PerturbedValues.name, SparseLaplace.name} - ESTIMATED - EXACT)
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {"delta": Fraction(1, 2000)} if name == "smooth-laplace" else {}) for name in DRAWN},
    "log-laplace, tight": ("log-laplace", {"tight": True}),
    "log-laplace, debiased": ("log-laplace", {"debias": True}),
    "smooth-gamma, tight": ("smooth-gamma", {"tight": True}),
}


@pytest.fixture(params=sorted(VARIANTS))
def method(request: pytest.FixtureRequest) -> Method:
    name, options = VARIANTS[request.param]
    return build(name, alpha=Fraction(1, 10), epsilon=Fraction(2), options=options)


def cells_for(method: Method, count: int, largest: int, n: int = DRAWS) -> Cells:
    """The same cell many times over, with the columns the method declared and no others."""
    supply = {
        "count": count,
        "sum_y": count,
        "largest": largest,
        "largest_employer": largest,
        "establishments": 1 if largest == count else 5,
        "count_below_threshold": count - largest if largest >= 100 else count,
        "distorted": 1_180_000 * count // 1_000_000,
        "remainder": 1_180_000 * count % 1_000_000,
        "factors": 1,
        "deviation": 180_000 * count,
        "available": 1,
    }
    columns = {name: np.full(n, supply[name], dtype=np.int64) for name in method.needs}
    place = Dimension(name="place", codes=tuple(map(str, range(2 * n))))
    return Cells(dimensions=(place,), positions=np.arange(0, 2 * n, 2), columns=columns)


def test_protected_cells_keep_their_places_and_hold_whole_numbers(method: Method) -> None:
    cells = cells_for(method, 250, 60, n=100)
    protected = method.protect(cells, OperatingSystem())
    assert protected.dimensions == cells.dimensions
    assert np.array_equal(protected.positions, cells.positions)
    assert set(protected.columns) in ({"value"}, {"value", "status"})
    assert protected["value"].dtype == np.int64


def test_a_table_without_cells_stays_without_cells(method: Method) -> None:
    empty = cells_for(method, 0, 0, n=0)
    assert len(method.protect(empty, Seeded(1))) == 0
    assert len(method.expected_error(empty)) == 0


def test_the_same_randomness_gives_the_same_values_and_another_does_not(method: Method) -> None:
    cells = cells_for(method, 1, 1, n=1_000)
    assert method.protect(cells, Seeded(1)).equals(method.protect(cells, Seeded(1)))
    assert not method.protect(cells, Seeded(1)).equals(method.protect(cells, Seeded(2)))


def is_formal(method: Method) -> bool:
    return isinstance(method.guarantee(), EmployerEmployee)


@pytest.mark.parametrize(("count", "largest"), COUNTS.values(), ids=list(COUNTS))
def test_published_values_are_off_on_average_only_by_the_bias_the_method_states(
    method: Method, count: int, largest: int
) -> None:
    cells = cells_for(method, count, largest)
    error = method.protect(cells, Seeded(11))["value"] - count
    bias = method.expected_bias(cells)[0] if isinstance(method, Biased) else 0.0
    assert abs(error.mean() - bias) <= 4 * error.std() / np.sqrt(DRAWS) + 1e-9


def test_a_method_that_says_it_is_unbiased_has_no_bias_but_that_of_rounding(method: Method) -> None:
    if isinstance(method, Biased) and method.unbiased:
        for count, largest in COUNTS.values():
            assert abs(method.expected_bias(cells_for(method, count, largest, n=1))[0]) < 0.5


@pytest.mark.parametrize(("count", "largest"), COUNTS.values(), ids=list(COUNTS))
def test_observed_error_is_the_expected_error(method: Method, count: int, largest: int) -> None:
    cells = cells_for(method, count, largest)
    error = np.abs(method.protect(cells, Seeded(12))["value"] - count)
    expected = method.expected_error(cells)
    assert np.all(expected == expected[0])
    assert abs(error.mean() - expected[0]) <= 4 * error.std() / np.sqrt(DRAWS) + 1e-9
    assert expected[0] > 0 or not is_formal(method)


def test_zeros_get_noise_and_nothing_is_cut_at_zero_unless_there_is_no_guarantee(method: Method) -> None:
    values = method.protect(cells_for(method, 0, 0), Seeded(13))["value"]
    assert (values > 0).any() == is_formal(method)
    assert (values < 0).any() == is_formal(method)


def test_a_method_says_in_words_what_it_does(method: Method) -> None:
    assert method.description[0].islower()
    assert not method.description.endswith(".")


def test_planned_error_is_what_an_empty_cell_has(method: Method) -> None:
    planned = method.planned_error()
    assert np.isclose(method.expected_error(cells_for(method, 0, 0, n=1))[0], planned.floor)


def test_published_figures_depend_on_the_published_values_only(method: Method) -> None:
    values = np.array([-40, 0, 7, 300, 10**6])
    before = method.published_error(values), *method.published_interval(values, 0.9)
    method.protect(cells_for(method, 30_000, 29_000, n=10), Seeded(1))
    method.expected_error(cells_for(method, 30_000, 29_000, n=10))
    after = method.published_error(values), *method.published_interval(values, 0.9)
    one_by_one = [method.published_error(values[i : i + 1])[0] for i in range(len(values))]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True))
    assert np.array_equal(before[0], one_by_one, equal_nan=True)


def test_published_interval_holds_the_true_value_as_often_as_stated(method: Method) -> None:
    for count, largest in COUNTS.values():
        values = method.protect(cells_for(method, count, largest), Seeded(14))["value"]
        low, high = method.published_interval(values, 0.9)
        covered = (low <= count) & (np.isnan(high) | (high >= count))
        assert covered.mean() > 0.9 - 4 * np.sqrt(0.09 / DRAWS)


def test_the_guarantee_follows_from_the_parameters_alone(method: Method) -> None:
    again = replace(method)
    assert again == method
    assert again.guarantee() == method.guarantee()
    assert isinstance(method.guarantee(), EmployerEmployee | NoFormalGuarantee)


def test_a_method_cannot_be_changed_after_it_was_checked(method: Method) -> None:
    with pytest.raises(AttributeError):
        method.epsilon = Fraction(100)


@pytest.mark.parametrize("confidence", [-0.1, 0, 1, 1.5])
def test_an_interval_that_covers_nothing_or_everything_is_refused(method: Method, confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        method.published_interval(np.array([10]), confidence)
