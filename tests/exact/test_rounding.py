"""Rounded tables add up, lie next to the truth, are the nearest that do, and tell no more than is proved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.errors import MethodError
from sfumato.exact.attacks import bounds
from sfumato.exact.intervals import prove_intervals
from sfumato.exact.rounding import (
    Rounded,
    _farther,
    controlled_rounding,
    known_after_rounding,
    plain_reach,
    plain_rounding,
    prove_rounding,
    random_rounding,
)
from sfumato.exact.rounding_search import Choice, Finest, search
from sfumato.exact.system import System, Table, build_system
from sfumato.noise.keyed import Keyed, hashes
from tests.exact.rounded_tables import flat, in_pairs, nearest_by_trying, with_totals

BASES = st.sampled_from([3, 5, 10, 100])


def counts(*shape: int) -> st.SearchStrategy[np.ndarray]:
    size = int(np.prod(shape))
    return st.lists(st.integers(0, 30), min_size=size, max_size=size).map(lambda some: np.array(some).reshape(shape))


def assert_rounded(system: System, rounded: Rounded, base: int) -> None:
    """All sums hold and every number is a multiple; and what is told of the distance is true."""
    truth = system.value.astype(np.int64)
    assert not np.any(rounded.value % base)
    assert not np.any(system.equations @ rounded.value)
    apart = np.abs(rounded.value - truth)
    assert rounded.distance == apart.sum()
    assert rounded.farthest == apart.max(initial=0)
    next_to = (rounded.value == truth // base * base) | (rounded.value == -(-truth // base) * base)
    assert np.array_equal(rounded.beyond, np.flatnonzero(~next_to))
    assert apart.max(initial=0) <= rounded.reach


@settings(max_examples=25, deadline=None)
@given(counts(4, 3), BASES)
def test_two_way_tables_always_have_a_rounding_next_to_the_truth(table: np.ndarray, base: int) -> None:
    system = with_totals(table)
    rounded = controlled_rounding(system, base)
    assert_rounded(system, rounded, base)
    assert rounded.zero_restricted
    assert rounded.nearest
    assert rounded.distance == pytest.approx(rounded.least)


@settings(max_examples=15, deadline=None)
@given(counts(2, 2), BASES)
def test_no_rounding_with_all_sums_is_nearer(table: np.ndarray, base: int) -> None:
    system = with_totals(table)
    assert controlled_rounding(system, base).distance == nearest_by_trying(system, base)


@settings(max_examples=15, deadline=None)
@given(counts(4, 3), BASES)
def test_levels_of_one_way_add_up_too(table: np.ndarray, base: int) -> None:
    system = with_totals(table, [in_pairs("a", 4), flat("b", 3)])
    rounded = controlled_rounding(system, base)
    assert_rounded(system, rounded, base)
    assert rounded.zero_restricted
    assert rounded.nearest


@settings(max_examples=10, deadline=None)
@given(counts(3, 3, 3), BASES)
def test_three_ways_add_up_and_say_what_is_farther(table: np.ndarray, base: int) -> None:
    system = with_totals(table)
    assert_rounded(system, controlled_rounding(system, base), base)


PARITY = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
"""Rounded to 2, every plane has one of its two ones up, which no choice among all four ones does for all planes."""


def test_a_table_without_a_rounding_next_to_the_truth_says_so() -> None:
    system = with_totals(PARITY)
    assert nearest_by_trying(system, 2) is None
    rounded = controlled_rounding(system, 2)
    assert_rounded(system, rounded, 2)
    assert not rounded.zero_restricted
    assert not rounded.nearest
    assert 2 <= rounded.farthest <= rounded.reach == 3
    assert len(rounded.beyond) <= 4


def test_tables_that_share_sums_without_a_table_of_all_move_as_little_as_possible() -> None:
    system = with_totals(PARITY)
    value = system.value.astype(np.int64)
    none = np.zeros(len(value), dtype=np.int64)
    steps = _farther(system, value, 2, none, np.flatnonzero(value % 2))
    rounded = (value // 2 + steps) * 2
    assert not np.any(system.equations @ rounded)
    assert rounded.min() >= 0
    assert np.abs(rounded - value).max() == 2


@settings(max_examples=10, deadline=None)
@given(counts(3, 3, 2), st.sampled_from([3, 10]))
def test_the_search_keeps_all_sums_and_never_adds_faults(table: np.ndarray, base: int) -> None:
    system = with_totals(table)
    value = system.value.astype(np.int64)
    finest = Finest.of(system.equations)
    assert finest is not None
    assert np.array_equal(finest.matrix @ value[finest.cells], value[finest.sums])
    choice = Choice.of(finest, value, base)
    start = (2 * (value % base) > base).astype(np.int64)[finest.cells]
    found = search(choice, start, rounds=60, steps=4, told=lambda _: None)
    assert not np.any(found[~choice.free])
    faults = [choice.faults((finest.matrix @ ups).astype(np.int64)).sum() for ups in (start, found)]
    assert faults[1] <= faults[0]


def test_a_larger_table_in_three_ways_is_near_the_bound_that_no_rounding_beats() -> None:
    table = np.floor(np.random.default_rng(4).lognormal(1, 1.2, (12, 12, 12))).astype(np.int64)
    system = with_totals(table)
    rounded = controlled_rounding(system, 10, steps=5)
    assert_rounded(system, rounded, 10)
    assert rounded.zero_restricted
    assert rounded.distance <= 1.1 * rounded.least


def test_the_same_table_rounds_alike() -> None:
    table = np.random.default_rng(5).integers(0, 20, (6, 6, 6))
    one, other = (controlled_rounding(with_totals(table), 5, steps=3).value for _ in range(2))
    assert np.array_equal(one, other)


def test_linked_tables_share_their_sums() -> None:
    rng = np.random.default_rng(6)
    whole = rng.integers(0, 9, (3, 4, 2))
    a, b, c = flat("a", 3), flat("b", 4), flat("c", 2)
    axis = {tree.name: (tree, np.arange(1, len(tree))) for tree in (a, b, c)}
    ab = Table(axes=(axis["a"], axis["b"]), positions=np.arange(12), value=whole.sum(axis=2).ravel())
    ac = Table(axes=(axis["a"], axis["c"]), positions=np.arange(6), value=whole.sum(axis=1).ravel())
    system = build_system({"ab": ab, "ac": ac})
    rounded = controlled_rounding(system, 5).value
    by_a = rounded[system.places["ab"]].reshape(3, 4).sum(axis=1)
    assert np.array_equal(by_a, rounded[system.places["ac"]].reshape(3, 2).sum(axis=1))


@pytest.mark.parametrize("base", [3, 5, 10])
def test_plain_rounding_is_within_its_reach(base: int) -> None:
    value = np.arange(-30, 100)
    rounded = plain_rounding(value, base)
    below, above = plain_reach(base)
    assert not np.any(rounded % base)
    assert (rounded - value).max() == below
    assert (value - rounded).max() == above


def test_random_rounding_is_right_on_average_and_alike_for_the_same_cell() -> None:
    words = Keyed(key=bytes(16)).words(hashes([str(cell) for cell in range(40_000)]), purpose="round")
    value = np.tile(np.arange(5), 8_000)
    rounded = random_rounding(value, 5, words)
    assert np.array_equal(rounded, random_rounding(value, 5, words))
    assert np.array_equal(rounded[value == 0], np.zeros(8_000))
    for rest in range(5):
        share = (rounded[value == rest] == 5).mean()
        right = rest / 5
        assert abs(share - right) <= 4 * (right * (1 - right) / 8_000) ** 0.5  # less than a tenth of any share


@pytest.mark.parametrize("base", [0, 1, -5])
def test_a_base_that_rounds_nothing_is_refused(base: int) -> None:
    with pytest.raises(MethodError, match="base ≥ 2"):
        controlled_rounding(with_totals(np.ones((2, 2))), base)


def independent_bounds(known: System, cell: int) -> tuple[float, float]:
    """The interval of a cell by another solver."""
    cost = np.zeros(len(known))
    cost[cell] = 1
    bounds = [
        (low, min(high, 1e6))  # far beyond any value here, so that every program has an end
        for low, high in zip(known.lower.tolist(), known.upper.tolist(), strict=True)
    ]
    equal = {"A_eq": known.equations.toarray(), "b_eq": np.zeros(known.equations.shape[0]), "bounds": bounds}
    found = [linprog(sign * cost, **equal) for sign in (1, -1)]
    assert all(one.status == 0 for one in found)
    return float(found[0].fun), float(-found[1].fun)


@settings(max_examples=8, deadline=None)
@given(counts(3, 3), st.sampled_from([3, 5]))
def test_intervals_are_those_of_another_solver(table: np.ndarray, base: int) -> None:
    system = with_totals(table)
    rounded = controlled_rounding(system, base)
    known = known_after_rounding(system, rounded.value, below=rounded.reach, above=rounded.reach)
    low, high = bounds(known, np.ones(len(known), dtype=bool))
    for cell in range(len(system)):
        assert (low[cell], high[cell]) == pytest.approx(independent_bounds(known, int(cell)), abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(counts(3, 4), st.sampled_from([3, 5, 10]), st.integers(0, 4))
def test_a_proof_says_of_every_cell_what_another_solver_says(table: np.ndarray, base: int, asked: int) -> None:
    system = with_totals(table)
    rounded = controlled_rounding(system, base)
    cells = np.flatnonzero((system.value > 0) & (system.value < 6))
    lower, upper = np.full(len(cells), 1.0), np.full(len(cells), float(asked))
    proof = prove_rounding(
        system, rounded.value, below=rounded.reach, above=rounded.reach, cells=cells, lower=lower, upper=upper
    )
    known = known_after_rounding(system, rounded.value, below=rounded.reach, above=rounded.reach)
    for at, cell in enumerate(cells.tolist()):
        low, high = independent_bounds(known, cell)
        truth = system.value[cell]
        assert proof.low[at] >= low - 1e-6
        assert proof.high[at] <= high + 1e-6
        possible = min(1.0, truth - system.lower[cell])
        assert proof.too_narrow[at] == (low > truth - possible + 1e-5 or high < truth + asked - 1e-5)


def test_a_cell_that_needs_more_than_its_bounds_leave_does_not_spoil_the_proof_of_others() -> None:
    system = with_totals(np.array([[0, 0, 0, 0], [0, 0, 0, 2], [0, 1, 1, 1]]))
    rounded = controlled_rounding(system, 3)
    cells = np.flatnonzero(system.value > 0)
    known = known_after_rounding(system, rounded.value, below=rounded.reach, above=rounded.reach)
    low, high = bounds(known, np.ones(len(known), dtype=bool))
    proof = prove_intervals(known, cells, np.full(len(cells), 1.0), np.full(len(cells), 2.0))
    narrow = (low > system.value - 1 + 1e-6) | (high < system.value + 2 - 1e-6)
    assert 0 < narrow[cells].sum() < len(cells)
    assert proof.too_narrow.tolist() == narrow[cells].tolist()


def test_a_total_that_gives_a_cell_away_is_found() -> None:
    """Two cells of 14, published as 10 and thus at most 14, whose sum is published as 30 and thus at least 25."""
    system = with_totals(np.array([14, 14]))
    below, above = plain_reach(10)
    cells = np.flatnonzero(system.value == 14)
    rounded = plain_rounding(system.value.astype(np.int64), 10)
    for asked, hidden in ((3.0, True), (4.0, False)):
        proof = prove_rounding(
            system, rounded, below=below, above=above, cells=cells, lower=np.full(2, asked), upper=np.zeros(2)
        )
        assert proof.too_narrow.tolist() == [not hidden] * 2
    assert proof.low.tolist() == [11, 11]


def test_cells_that_cannot_move_are_never_said_to() -> None:
    system = with_totals(np.array([[2, 0], [0, 5]]))
    cells = np.arange(len(system))
    proof = prove_intervals(system.with_bounds(upper=system.value), cells, np.ones(len(cells)), np.zeros(len(cells)))
    assert proof.too_narrow[system.value == 0].all()
