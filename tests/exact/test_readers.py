"""Single contributors to other cells learn nothing they must not, by scipy's programs, one for every pair and bound."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.arrays import Flags
from sfumato.exact import readers, readers_search
from sfumato.exact.pattern import withhold
from sfumato.exact.proof import prove
from sfumato.exact.readers import Readers
from sfumato.exact.rules import Protection
from sfumato.exact.search import Piece, Search
from sfumato.exact.shares import Shares
from sfumato.exact.system import System
from tests.exact.tables import cross, interval, protection

SHAPES = [((5, 5), 0), ((4, 6), 1), ((3, 3, 3), 2), ((6, 6), 3)]


def with_owners(seed: int, shape: tuple[int, ...], share: float = 0.5) -> tuple[System, Protection]:
    """Small cells that are sensitive and known to their only contributor; some contributors have several."""
    random = np.random.default_rng(seed)
    system = cross(np.floor(random.lognormal(1.5, 1.0, shape)).astype(np.int64))
    small = np.flatnonzero((system.value > 0) & (system.value < np.quantile(system.value, 0.6)))
    chosen = small[random.random(len(small)) < share]
    owner = {int(cell): int(random.integers(0, len(chosen))) + 100 for cell in chosen}
    return system, protection(system, {int(cell): 1.0 for cell in chosen}, owner)


def audit(system: System, withheld: Flags, needs: Protection) -> list[tuple[int, int]]:
    """Sensitive cells that a single reader knows better than allowed, and nobody else does."""
    found = []
    owners = {int(who) for who in needs.owner[withheld & (needs.owner >= 0)]}
    for cell in np.flatnonzero(needs.sensitive).tolist():
        if _told(system, withheld, needs, cell, ()):
            continue  # by everybody
        others = [(cell, who) for who in owners - {int(needs.owner[cell])}]
        found += [pair for pair in others if _told(system, withheld, needs, cell, _cells(needs, pair[1]))]
    return sorted(found)


def _cells(needs: Protection, who: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(needs.owner == who).tolist())


def _told(system: System, withheld: Flags, needs: Protection, cell: int, known: tuple[int, ...]) -> bool:
    low, high = interval(system, withheld, cell, known)
    value, down, up = system.value[cell], needs.down[cell], needs.up[cell]
    near = [end for end, asked in ((low > value - down + 1e-5, down), (high < value + up - 1e-5, up)) if asked > 0]
    return bool(near) and (all(near) if needs.either else any(near))


@pytest.mark.parametrize("either", [False, True])
@pytest.mark.parametrize(("shape", "seed"), SHAPES)
def test_patterns_hold_against_every_single_reader(shape: tuple[int, ...], seed: int, either: bool) -> None:
    system, needs = with_owners(seed, shape)
    needs = replace(needs, either=either)
    pattern = withhold(system, needs)
    assert audit(system, pattern.withheld, needs) == [tuple(pair) for pair in pattern.pairs.tolist()]
    proof = prove(system, pattern.withheld, needs, pieces=pattern.pieces)
    assert proof.pairs.tolist() == pattern.pairs.tolist()


@pytest.mark.parametrize("either", [False, True])
@pytest.mark.parametrize(("shape", "seed"), SHAPES)
def test_the_proof_finds_the_open_pairs_of_any_pattern_and_no_others(
    shape: tuple[int, ...], seed: int, either: bool
) -> None:
    system, needs = with_owners(seed, shape, share=0.4)
    needs = replace(needs, either=either)
    pattern = withhold(system, needs, readers=False)
    open_pairs = audit(system, pattern.withheld, needs)
    assert open_pairs
    assert [tuple(pair) for pair in prove(system, pattern.withheld, needs).pairs.tolist()] == open_pairs
    given = prove(system, pattern.withheld, needs, pieces=pattern.pieces)
    assert [tuple(pair) for pair in given.pairs.tolist()] == open_pairs


def test_a_pattern_with_one_cell_fewer_is_found_open() -> None:
    system, needs = with_owners(0, (5, 5))
    pattern = withhold(system, needs)
    missed = 0
    for cell in np.flatnonzero(pattern.withheld & ~needs.sensitive):
        less = pattern.withheld.copy()
        less[cell] = False
        proof = prove(system, less, needs, pieces=pattern.pieces)
        assert [tuple(pair) for pair in proof.pairs.tolist()] == audit(system, less, needs)
        missed += proof.holds
    assert missed < (pattern.withheld & ~needs.sensitive).sum()


def test_where_one_side_is_enough_fewer_cells_are_withheld_and_none_is_told_exactly() -> None:
    both, either = 0, 0
    for seed in range(4):
        system, needs = with_owners(seed, (5, 5), share=0.6)
        one = replace(needs, either=True)
        pattern = withhold(system, one)
        assert audit(system, pattern.withheld, one) == [tuple(pair) for pair in pattern.pairs.tolist()]
        either += pattern.cells
        both += withhold(system, needs).cells
    assert either < both


def rings() -> tuple[Search, Readers]:
    """One sensitive cell in the middle, and a cell beside it that somebody knows; all inner cells are withheld."""
    system = cross(np.full((3, 3), 5))
    needs = protection(system, {5: 2.0}, {6: 7})
    withheld = (np.arange(16) % 4 > 0) & (np.arange(16) > 3)
    search = Search(system, needs, np.ones(16), withheld)
    search.cover(lambda: False)
    return search, Readers(search, (np.array([6]), np.array([7])))


def ring(rows: tuple[int, int], columns: tuple[int, int], size: float = 2.0) -> Piece:
    cells = np.array([4 * row + column for row in rows for column in columns])
    return Piece(cells=cells, by=size * np.array([1.0, -1.0, -1.0, 1.0]), both=True)


def test_pieces_that_move_a_known_cell_in_opposite_ways_hold_its_reader_off() -> None:
    _, readers = rings()
    assert bool(readers.open.all())
    beside = ring((1, 2), (1, 2))
    readers.absorb([beside])
    assert readers.unsettled().tolist() == [[5, 7]]
    assert not readers.absorb([beside]).any()  # the same once more says nothing
    around = Piece(  # the sensitive cell and the one that is known go up together
        cells=np.array([5, 6, 7, 9, 10, 11]), by=np.array([2.0, 1.0, -3.0, -2.0, -1.0, 3.0]), both=True
    )
    assert readers.absorb([around]).all()
    assert not readers.open.any()


def test_a_piece_that_leaves_the_known_cell_in_place_holds_its_reader_off() -> None:
    _, readers = rings()
    readers.absorb([ring((1, 2), (1, 2))])
    readers.absorb([ring((1, 2), (1, 3), size=1.0)])  # too small to count
    assert readers.open.any()
    readers.absorb([ring((1, 2), (1, 3))])
    assert not readers.open.any()


def test_who_knows_two_cells_is_held_off_by_no_mixture() -> None:
    system = cross(np.full((3, 3), 5))
    needs = protection(system, {5: 2.0}, {6: 7, 9: 7})
    search = Search(system, needs, np.ones(16), (np.arange(16) % 4 > 0) & (np.arange(16) > 3))
    search.cover(lambda: False)
    readers = Readers(search, (np.array([6, 9]), np.array([7, 7])))
    both_ways = [np.array([2.0, -2.0, -2.0, 2.0]), np.array([2.0, 2.0, 2.0, 2.0])]
    for by in both_ways:
        readers.absorb([Piece(cells=np.array([5, 6, 9, 10]), by=by, both=True)])
    assert readers.unsettled().tolist() == [[5, 7]]


def test_tables_in_parts_and_with_many_readers_hold_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, size in ((readers_search, "_WINDOW", 40), (readers, "_WIDE", 3), (readers, "_LONGEST", 5)):
        monkeypatch.setattr(module, name, size)
    system, needs = with_owners(4, (8, 8))
    pattern = withhold(system, needs, tries=0)
    assert audit(system, pattern.withheld, needs) == [tuple(pair) for pair in pattern.pairs.tolist()]
    assert prove(system, pattern.withheld, needs).pairs.tolist() == pattern.pairs.tolist()


def test_a_search_that_is_stopped_says_which_pairs_are_open() -> None:
    system, needs = with_owners(0, (5, 5))
    stopped = withhold(system, needs, stop=lambda: True)
    told = {tuple(pair) for pair in stopped.pairs.tolist()}
    assert told
    for cell, who in audit(system, stopped.withheld, needs):
        assert {(cell, who), (cell, -1)} & told  # -1 is anybody
    assert not prove(system, stopped.withheld, needs, stop=lambda: True).holds


def test_two_runs_give_the_same_pattern_and_pieces() -> None:
    system, needs = with_owners(3, (6, 6))
    one, other = withhold(system, needs), withhold(system, needs)
    assert np.array_equal(one.withheld, other.withheld)
    assert all(np.array_equal(mine.by, theirs.by) for mine, theirs in zip(one.pieces, other.pieces, strict=True))


def test_a_sum_with_one_withheld_part_is_known_to_who_knows_the_part() -> None:
    system = cross(np.array([[5, 3, 4], [2, 6, 5], [4, 4, 7]]))
    needs = protection(system, {4: 1.0, 8: 1.0}, {5: 7})  # two sums, and one part of the first
    withheld = np.zeros(16, dtype=bool)
    withheld[[4, 5, 8, 9]] = True
    proof = prove(system, withheld, needs)
    assert not proof.unprotected.any()
    assert proof.pairs.tolist() == [[4, 7], [8, 7]]
    assert audit(system, withheld, needs) == [(4, 7), (8, 7)]


def test_who_has_a_share_in_a_cell_is_held_off_the_rest_of_it() -> None:
    system = cross(np.array([[6, 3, 4], [7, 6, 5], [4, 4, 7]]), zeros_known=False)
    needs = protection(system, {5: 4.0}, {6: 7, 10: 7})
    withheld = np.zeros(16, dtype=bool)
    withheld[[5, 6, 7, 9, 10, 11]] = True  # without the two cells of the reader, one ring is left: it moves by 4
    assert prove(system, withheld, needs).holds
    share = Shares(cell=np.array([5]), reader=np.array([7]), amount=np.array([4.0]))
    narrow = system.with_bounds(upper=np.where(np.arange(16) == 7, 6.0, np.inf))  # the ring moves by 2 at most, down
    assert prove(narrow, withheld, needs).pairs.tolist() == [[5, 7]]
    assert prove(narrow, withheld, needs, shares=share).holds
    assert prove(narrow, withheld, needs, shares=replace(share, amount=np.array([3.0]))).pairs.tolist() == [[5, 7]]
    assert prove(narrow, withheld, needs, shares=replace(share, reader=np.array([8]))).pairs.tolist() == [[5, 7]]


def test_progress_of_search_and_proof_grows_to_the_end() -> None:
    system, needs = with_owners(3, (6, 6))
    told: dict[str, list[float]] = {}
    pattern = withhold(system, needs, progress=lambda words, share: told.setdefault(words, []).append(share))
    shares: list[float] = []
    prove(system, pattern.withheld, needs, progress=shares.append)
    for found in (*told.values(), shares):
        assert found == sorted(found)
    assert told["single readers"][-1] == shares[-1] == 1.0
    assert len(shares) > 2
    assert len(set(told["improving"])) > 2, "a minute at 0 % looks as if nothing were done"
