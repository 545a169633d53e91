"""Auto: a rule from public numbers only, and each workplace cell under the mechanism it names."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import published_figures
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.auto import Auto, ReferenceCells
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.vector import VectorPareto
from tests.statistics.methods.vector_cells import block_cells

SETTINGS = [(a, e, d) for a in ("0.01", "0.05", "0.1", "0.2") for e in ("0.5", "1", "2", "4") for d in (0, 1, 4, 8)]


def method_at(alpha: str = "0.1", epsilon: str = "4", worker_cells: int = 8, **options: int) -> Auto:
    return Auto(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=worker_cells, **options)


@pytest.mark.parametrize(("alpha", "epsilon", "worker_cells"), SETTINGS)
def test_the_rule_names_one_mechanism_for_every_number_of_establishments(
    alpha: str, epsilon: str, worker_cells: int
) -> None:
    rule = method_at(alpha, epsilon, worker_cells).rule
    assert rule[0].first == 1
    assert rule[-1].last is None
    assert all(before.last + 1 == after.first for before, after in pairwise(rule))
    assert all(before.mechanism != after.mechanism for before, after in pairwise(rule))


@pytest.mark.parametrize(("alpha", "epsilon", "worker_cells"), SETTINGS)
def test_every_mechanism_of_the_rule_spends_the_whole_epsilon_at_the_same_alpha(
    alpha: str, epsilon: str, worker_cells: int
) -> None:
    method = method_at(alpha, epsilon, worker_cells)
    for choice in method.rule:
        assert choice.mechanism.guarantee().epsilon == method.epsilon
        assert choice.mechanism.guarantee().alpha == method.alpha
    weak = any(choice.mechanism.guarantee().definition == "weak" for choice in method.rule)
    assert method.guarantee().definition == ("weak" if weak else "strong")


@pytest.mark.parametrize("establishments", [1, 2, 5, 6, 40, 10**6])
def test_no_mechanism_does_better_in_the_model_than_the_one_that_is_chosen(establishments: int) -> None:
    method = method_at()
    chosen = next(c for c in method.rule if c.first <= establishments <= (c.last or establishments))
    errors = {m.name: method.model_error(m, min(establishments, 10**5)) for m in method.mechanisms}
    assert errors[chosen.mechanism.name] <= 1.15 * min(errors.values())


def test_the_rule_is_told_in_words() -> None:
    assert method_at().describe_choice() == (
        "1 establishment: vector-pareto; 2 to 5 establishments: log-box; 6 or more establishments: smooth-box"
    )
    assert method_at().describe_choice() in method_at().description  # which every privacy statement prints


def test_where_vector_pareto_does_not_exist_log_box_serves_all() -> None:
    method = method_at(alpha="0.2", epsilon="1")
    assert method.describe_choice() == "any number of establishments: log-box"
    assert method.guarantee().definition == "weak"


def test_each_workplace_cell_is_protected_by_the_mechanism_of_its_class() -> None:
    method = method_at()
    counts = np.full((50, 8), 30)
    for choice in method.rule:
        cells = block_cells(counts, establishments=choice.first)
        assert method.protect(cells, Seeded(2)).equals(choice.mechanism.protect(cells, Seeded(2)))
        assert np.array_equal(method.expected_error(cells), choice.mechanism.expected_error(cells))


def test_a_table_of_all_classes_is_put_together_in_the_order_of_its_cells() -> None:
    method = method_at()
    establishments = np.tile([1, 3, 50], 4_000)
    counts = np.tile(np.array([[40] * 8, [2_000] * 8, [90_000] * 8]), (4_000, 1))
    cells = block_cells(counts, largest=counts // 10, largest_employer=counts[:, 0], establishments=establishments)
    answer = method.protect(cells, Seeded(3))
    error = np.abs(answer["value"] - cells["count"])
    expected = method.expected_error(cells)
    for number in (1, 3, 50):
        here = cells["establishments"] == number
        assert np.isclose(error[here].mean(), expected[here].mean(), rtol=0.05)


def test_the_choice_never_looks_at_a_count() -> None:
    method = method_at()
    drawn = {
        size: method.protect(block_cells(np.full((30, 8), size), establishments=3), Seeded(4))["value"]
        for size in (0, 4_000)
    }
    log_box = method.rule[1].mechanism
    assert isinstance(log_box, LogBox)
    for size, values in drawn.items():
        alone = log_box.protect(block_cells(np.full((30, 8), size)), Seeded(4))["value"]
        assert np.array_equal(values, alone)


def test_figures_are_those_of_the_mechanism_that_the_public_number_chose() -> None:
    method = method_at()
    cells = block_cells(np.full((6, 8), 30), establishments=[1, 1, 3, 3, 50, 50])
    answer = method.protect(cells, Seeded(5))
    public = Cells(
        dimensions=answer.dimensions,
        positions=answer.positions,
        columns={**answer.columns, "establishments": cells["establishments"]},
    )
    figures = published_figures(method, public, 0.9)
    for choice, here in zip(method.rule, np.split(np.arange(48), 3), strict=True):
        part = Cells(
            dimensions=answer.dimensions, positions=answer.positions[here], columns={"value": answer["value"][here]}
        )
        expected = published_figures(choice.mechanism, part, 0.9)
        assert np.array_equal(figures.error[here], expected.error)
        assert np.array_equal(figures.low[here], expected.low)
        assert np.array_equal(figures.high[here], expected.high, equal_nan=True)


def test_a_table_without_public_numbers_of_establishments_is_refused() -> None:
    cells = block_cells(np.full((2, 8), 30))
    columns = {name: column for name, column in cells.columns.items() if name != "establishments"}
    joined = Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)
    with pytest.raises(MethodError, match="no establishments"):
        method_at().protect(joined, Seeded(1))


@pytest.mark.parametrize("mean_size", [0, 1, 1001])
def test_a_mean_size_outside_its_range_is_refused(mean_size: int) -> None:
    with pytest.raises(MethodError, match="mean_size"):
        method_at(mean_size=mean_size)


def test_the_mean_size_is_a_public_parameter_that_moves_the_rule() -> None:
    assert method_at(mean_size=5).describe_choice() != method_at(mean_size=100).describe_choice()


def test_the_model_has_the_mean_it_is_asked_for_and_larger_maxima_in_larger_cells() -> None:
    model = ReferenceCells(mean_size=20, worker_cells=8)
    assert np.isclose(model.largest_at_least(1, share=1, least=0), 20, rtol=1e-6)
    largest = [model.largest_at_least(k, share=1, least=0) for k in (1, 3, 10, 100, 10_000)]
    assert largest == sorted(largest)
    assert largest[-1] <= 40_000


def test_with_workplace_attributes_only_the_guarantee_is_strong() -> None:
    assert method_at(worker_cells=0).guarantee().definition == "strong"
    assert isinstance(method_at(worker_cells=0, epsilon="2", alpha="0.05").rule[0].mechanism, VectorPareto)
