"""Every pattern is proved, by others' programs too; none is much dearer than the cheapest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.exact import search
from sfumato.exact.optimum import cheapest
from sfumato.exact.pattern import Costs, repair, withhold
from sfumato.exact.proof import prove, valid
from sfumato.exact.rules import Contributions, Protection, Rules
from sfumato.exact.search import Piece
from sfumato.exact.system import System
from tests.exact.tables import cross, interval, protection, unprotected


def randomly(seed: int, shape: tuple[int, ...], share: float = 0.15) -> tuple[System, Protection]:
    """A table of sizes as they are, with few large cells, some zeros, and sensitive cells among the small ones."""
    random = np.random.default_rng(seed)
    inner = np.floor(random.lognormal(2.0, 1.3, shape)).astype(np.int64)
    system = cross(inner)
    small = system.value < np.quantile(system.value, 0.7)
    sensitive = small & (system.value > 0) & (random.random(len(system)) < share)
    return system, protection(system, np.where(sensitive, np.maximum(np.ceil(0.2 * system.value), 1.0), 0.0))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(3, 3), (4, 6), (3, 3, 3), (2, 2, 2, 2)]))
def test_every_sensitive_cell_is_protected_by_proofs_of_others_too(seed: int, shape: tuple[int, ...]) -> None:
    system, needs = randomly(seed, shape)
    pattern = withhold(system, needs)
    assert bool(np.all(pattern.withheld[needs.sensitive]))
    assert unprotected(system, pattern.withheld, needs) == pattern.unprotected.tolist()
    for cell in pattern.unprotected:  # nothing helps it: not even to withhold all that is not known
        low, high = interval(system, ~system.fixed, int(cell))
        assert low > system.value[cell] - needs.down[cell] + 1e-5 or high < system.value[cell] + needs.up[cell] - 1e-5
    proof = prove(system, pattern.withheld, needs)
    assert np.flatnonzero(proof.unprotected).tolist() == pattern.unprotected.tolist()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_the_proof_of_any_pattern_finds_what_is_open_and_nothing_else(seed: int) -> None:
    system, needs = randomly(seed, (4, 5), share=0.3)
    random = np.random.default_rng(seed)
    withheld = needs.sensitive | (random.random(len(system)) < 0.2)
    proof = prove(system, withheld, needs)
    assert np.flatnonzero(proof.unprotected).tolist() == unprotected(system, withheld, needs)


SMALL = [((4, 4), 0.2, 0), ((4, 4), 0.2, 1), ((6, 6), 0.15, 2), ((3, 3, 3), 0.06, 3)]
MORE = [((8, 8), 0.1, seed) for seed in (0, 1, 2, 3)] + [((3, 3, 3), 0.06, seed) for seed in (0, 1, 2)]


@pytest.mark.parametrize(
    ("shape", "share", "seed"), [*SMALL, *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE)]
)
def test_the_pattern_costs_hardly_more_than_the_cheapest(shape: tuple[int, ...], share: float, seed: int) -> None:
    system, needs = randomly(seed, shape, share)
    cost = Costs(value=0.1).of(system)
    best = cheapest(system, needs, cost=cost)
    assert unprotected(system, best, needs) == []
    ours = withhold(system, needs, cost=cost, tries=12)
    assert cost[ours.withheld].sum() <= 1.1 * cost[best].sum() + 1e-9


def test_a_pattern_with_one_cell_fewer_than_the_cheapest_is_found_open() -> None:
    system, needs = randomly(1, (5, 5))
    best = cheapest(system, needs, cost=np.ones(len(system)))
    others = np.flatnonzero(best & ~needs.sensitive)
    assert len(others)
    for cell in others:
        less = best.copy()
        less[cell] = False
        assert bool(prove(system, less, needs, readers=False).unprotected.any())


def test_a_piece_that_moves_published_cells_or_breaks_a_sum_or_a_bound_proves_nothing() -> None:
    system = cross(np.array([[5, 3], [2, 4]]))
    withheld = system.value < 6  # the four inner cells
    cells = np.flatnonzero(withheld)
    ring = Piece(cells=cells, by=np.array([1.0, -1.0, -1.0, 1.0]), both=True)
    assert valid(system, withheld, [ring]) == [ring]
    broken = [
        Piece(cells=cells, by=np.array([1.0, -1.0, -1.0, 2.0]), both=True),
        Piece(cells=cells, by=np.array([3.0, -3.0, -3.0, 3.0]), both=True),
        Piece(cells=np.array([0, 1, 2]), by=np.array([1.0, 1.0, 0.0]), both=True),
    ]
    assert valid(system, withheld, broken) == []
    one_way = Piece(cells=cells, by=np.array([-2.0, 2.0, 2.0, -2.0]), both=False)
    assert valid(system, withheld, [one_way]) == [one_way]


def test_a_system_that_is_looked_at_in_windows_is_protected_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"LARGEST_WINDOW": 60, "_SMALL": 30, "_FEW": 5, "_TOGETHER": 6}.items():
        monkeypatch.setattr(search, name, size)
    system, needs = randomly(6, (14, 14))
    pattern = withhold(system, needs, tries=0, readers=False)
    assert unprotected(system, pattern.withheld, needs) == pattern.unprotected.tolist() == []


def test_two_runs_give_the_same_pattern() -> None:
    system, needs = randomly(5, (8, 8))
    one, other = withhold(system, needs), withhold(system, needs)
    assert np.array_equal(one.withheld, other.withheld)


def test_a_stopped_search_is_proved_all_the_same() -> None:
    system, needs = randomly(7, (8, 8))
    stopped = withhold(system, needs, stop=lambda: True, readers=False)
    assert prove(system, stopped.withheld, needs, readers=False).holds == (not len(stopped.unprotected))
    assert unprotected(system, stopped.withheld, needs) == stopped.unprotected.tolist()


def test_what_was_withheld_before_is_withheld_again_where_it_can_be() -> None:
    system, needs = randomly(11, (8, 8))
    first = withhold(system, needs, readers=False)
    random = np.random.default_rng(0)
    inner = np.floor(system.value.reshape(9, 9)[1:, 1:] * random.uniform(0.9, 1.1, (8, 8)))
    later = cross(inner.astype(np.int64))
    after = protection(
        later, np.where(needs.sensitive & (later.value > 0), np.maximum(1.0, np.ceil(0.2 * later.value)), 0.0)
    )
    kept = withhold(later, after, cost=Costs().of(later, before=first.withheld), readers=False)
    anew = withhold(later, after, cost=Costs(value=1.0).of(later), readers=False)
    assert (kept.withheld & ~first.withheld).sum() <= (anew.withheld & ~first.withheld).sum()
    assert unprotected(later, kept.withheld, after) == []


def test_a_pattern_of_others_is_repaired_and_keeps_its_cells() -> None:
    system, needs = randomly(3, (6, 6))
    repaired = repair(system, needs.sensitive, needs)
    assert bool(np.all(repaired.withheld >= needs.sensitive))
    assert unprotected(system, repaired.withheld, needs) == repaired.unprotected.tolist()


def test_upper_bounds_that_readers_know_are_kept() -> None:
    inner = np.array([[9, 5, 6], [8, 7, 3], [4, 9, 5]])
    system = cross(inner).with_bounds(upper=np.full(16, np.inf))
    limited = system.with_bounds(upper=np.where(system.value < 10, 10.0, np.inf))
    needs = protection(limited, {5: 1.0, 10: 2.0})
    pattern = withhold(limited, needs)
    assert unprotected(limited, pattern.withheld, needs) == pattern.unprotected.tolist() == []


def test_rules_and_patterns_go_together() -> None:
    system, _ = randomly(2, (6, 6))
    largest = np.ceil(0.5 * system.value)
    made = Contributions(value=system.value, units=np.full(49, 4), largest=largest, second=np.floor(0.4 * system.value))
    needs = Protection.over(system, {"t": Rules(percent=25).protection(made)})
    pattern = withhold(system, needs, cost=Costs(value=1.0).of(system))
    assert unprotected(system, pattern.withheld, needs) == pattern.unprotected.tolist()
