"""Readers of every kind find nothing that the rules forbid, and find what a broken pattern leaves open."""

import numpy as np

from sfumato.exact.attacks import Shown, between, bounds, found, insiders, points
from sfumato.exact.pattern import withhold
from sfumato.exact.proof import prove
from sfumato.exact.system import Table, build_system
from sfumato.exact.trees import Tree
from tests.exact.tables import cross, interval, protection, unprotected, with_totals

INNER = np.array([[20, 50, 10, 19], [8, 19, 22, 30], [17, 32, 12, 41], [25, 6, 33, 15]])


def at(row: int, column: int) -> int:
    """The cell of a 4 × 4 table with totals."""
    return row * 5 + column


def test_bounds_are_those_of_another_solver() -> None:
    system = cross(INNER)
    withheld = np.zeros(25, dtype=bool)
    withheld[[at(1, 1), at(1, 3), at(2, 1), at(2, 3), at(3, 2), at(3, 4), at(4, 2), at(4, 4), at(1, 2)]] = True
    low, high = bounds(system, withheld)
    for cell in range(25):
        assert np.allclose((low[cell], high[cell]), interval(system, withheld, cell), atol=1e-5)


def test_one_cell_alone_and_a_pattern_with_one_cell_fewer_are_found() -> None:
    system = cross(INNER)
    needs = protection(system, {at(2, 2): 3.0})
    alone = needs.sensitive.copy()
    assert found(system, alone, needs).tolist() == [at(2, 2)]
    low, high = bounds(system, alone)
    assert low[at(2, 2)] == high[at(2, 2)] == system.value[at(2, 2)]
    pattern = withhold(system, needs, tries=2)
    assert found(system, pattern.withheld, needs).tolist() == []
    for cell in np.flatnonzero(pattern.withheld & ~needs.sensitive):
        less = pattern.withheld.copy()
        less[cell] = False
        assert found(system, less, needs).tolist() == [at(2, 2)]


def test_who_contributes_alone_to_a_cell_learns_nothing_of_another() -> None:
    # Two sensitive cells of a row protect each other from everybody but the two who know one of them.
    system = cross(INNER)
    owner = {at(2, 2): 7, at(2, 3): 8, at(3, 2): 9, at(3, 3): 10}
    needs = protection(system, dict.fromkeys(owner, 3.0), owner)
    ring = needs.sensitive.copy()
    assert prove(system, ring, needs, readers=False).holds
    open_pairs = insiders(system, ring, needs)
    assert len(open_pairs) == 12  # each of the four knows the other three
    pattern = withhold(system, needs)
    assert len(insiders(system, pattern.withheld, needs, pieces=pattern.pieces)) == len(pattern.pairs) == 0
    for cell in owner:
        for other, who in owner.items():
            if other != cell:
                known = tuple(place for place, one in owner.items() if one == who)
                low, high = interval(system, pattern.withheld, cell, known)
                assert low <= system.value[cell] - 3 + 1e-5
                assert high >= system.value[cell] + 3 - 1e-5


def test_an_enterprise_that_owns_several_cells_knows_all_of_them() -> None:
    system = cross(INNER)
    owner = {at(2, 3): 7, at(3, 2): 7, at(1, 1): 7}
    needs = protection(system, {at(2, 2): 3.0}, owner)
    ring = np.zeros(25, dtype=bool)
    ring[[at(2, 2), at(2, 3), at(3, 2), at(3, 3)]] = True
    assert prove(system, ring, needs, readers=False).holds
    assert insiders(system, ring, needs).tolist() == [[at(2, 2), 7]]
    pattern = withhold(system, needs)
    low, high = interval(system, pattern.withheld, at(2, 2), tuple(owner))
    assert low <= 19 - 3 + 1e-5
    assert high >= 19 + 3 - 1e-5


def test_two_periods_tell_together_what_each_hides() -> None:
    first, second = cross(INNER), cross(INNER)
    needs = protection(first, {at(2, 2): 3.0})
    one, other = np.zeros(25, dtype=bool), np.zeros(25, dtype=bool)
    one[[at(2, 2), at(2, 3), at(3, 2), at(3, 3)]] = True
    other[[at(2, 2), at(2, 4), at(4, 2), at(4, 4)]] = True
    shown = Shown(system=first, withheld=one, protection=needs), Shown(system=second, withheld=other, protection=needs)
    everything = np.arange(25)
    assert not found(first, one, needs).tolist()
    assert not found(second, other, needs).tolist()
    assert not between(*shown, (everything[:0], everything[:0])).unprotected.any()
    assert between(*shown, (everything, everything)).unprotected.sum() == 2  # nothing changed: it is open in both
    assert between(*shown, (everything, everything), most_change=2.0).unprotected.sum() == 2
    assert not between(*shown, (everything, everything), most_change=20.0).unprotected.any()


def test_a_coarser_release_beside_a_finer_one_is_one_system() -> None:
    codes = [str(code) for code in range(4)]
    tree = Tree.of(
        "place",
        {"pair": ["a", "b"], "shifted": ["x", "y"], "place": codes},
        above=[
            ("place", "pair", dict(zip(codes, "aabb", strict=True))),
            ("place", "shifted", dict(zip(codes, "xyyy", strict=True))),
        ],
    )

    def table(level: str, wanted: list[str], counts: list[int]) -> Table:
        axis = tree.nodes(level, wanted)
        return Table(axes=((tree, axis),), positions=np.arange(len(axis)), value=np.array(counts))

    fine = {"fine": table("place", ["total", *codes], [40, 3, 7, 10, 20])}
    system = build_system(fine)
    needs = protection(system, {int(system.places["fine"][1]): 2.0})
    hidden = np.zeros(len(system), dtype=bool)
    hidden[system.places["fine"][1:3]] = True
    assert found(system, hidden, needs).tolist() == []
    both = build_system({**fine, "coarse": table("shifted", ["x", "y"], [3, 37])})
    withheld = np.zeros(len(both), dtype=bool)
    withheld[both.places["fine"][1:3]] = True
    again = protection(both, {int(both.places["fine"][1]): 2.0})
    assert found(both, withheld, again).tolist() == [int(both.places["fine"][1])]


def test_random_points_agree_with_all_that_is_published_and_move_every_sensitive_cell() -> None:
    system = cross(INNER)
    needs = protection(system, {at(2, 2): 3.0, at(1, 4): 4.0})
    pattern = withhold(system, needs)
    proof = prove(system, pattern.withheld, needs, pieces=pattern.pieces)
    walk = points(system, proof.pieces, steps=400, uniform=np.random.default_rng(1).random)
    assert np.abs(system.equations @ walk.T).max() < 1e-6
    assert walk.min() > -1e-6
    assert np.allclose(walk[:, ~pattern.withheld], system.value[~pattern.withheld])
    low, high = bounds(system, pattern.withheld)
    assert (walk >= low - 1e-5).all()
    assert (walk <= high + 1e-5).all()
    assert walk[:, needs.sensitive].std(axis=0).min() > 1.0


def test_linked_tables_with_a_common_cell_are_protected_together() -> None:
    # A margin of two tables: each pattern alone is safe, and together they told the cell in other tools.
    rows = Tree.of("row", {"row": ["a", "b", "c"]})
    columns = Tree.of("column", {"column": ["x", "y", "z"]})
    sexes = Tree.of("sex", {"sex": ["f", "m"]})
    cube = np.random.default_rng(4).integers(1, 30, (3, 3, 2))
    first, second = with_totals(cube.sum(axis=2)), with_totals(cube.sum(axis=1))
    tables = {
        "one": Table(
            axes=((rows, np.arange(4)), (columns, np.arange(4))), positions=np.arange(16), value=first.ravel()
        ),
        "two": Table(axes=((rows, np.arange(4)), (sexes, np.arange(3))), positions=np.arange(12), value=second.ravel()),
    }
    system = build_system(tables)
    assert len(system) == 16 + 12 - 4
    needs = protection(system, {int(system.places["one"][5]): 2.0, int(system.places["two"][4]): 2.0})
    pattern = withhold(system, needs)
    assert unprotected(system, pattern.withheld, needs) == pattern.unprotected.tolist() == []


def test_a_dominant_firm_is_not_told_by_the_margin() -> None:
    inner = np.array([[900, 1, 2], [3, 0, 1], [0, 2, 0]])  # zeros and ones around a giant
    system = cross(inner)
    giant = np.flatnonzero(system.value >= 900)  # its cell, both margins and the grand total
    assert len(giant) == 4
    needs = protection(system, {int(giant[-1]): 90.0})
    pattern = withhold(system, needs)
    assert bool(pattern.withheld[giant].all())  # nothing else is large enough to hide it
    assert unprotected(system, pattern.withheld, needs) == []
    for margin in giant[:-1]:
        shown = ~system.fixed
        shown[margin] = False  # all is withheld but one margin
        assert found(system, shown, needs).tolist() == [giant[-1]]
    total = np.where(system.value == system.value.max(), system.value, np.nan)
    below = system.with_bounds(lower=np.nan_to_num(total, nan=0.0), upper=np.nan_to_num(total, nan=np.inf))
    known = protection(below, {int(giant[-1]): 90.0})  # everybody knows the grand total
    hopeless = withhold(below, known)
    assert hopeless.unprotected.tolist() == [giant[-1]]  # that is said, and not passed over
    assert not prove(below, hopeless.withheld, known).holds


def test_zeros_that_readers_do_not_know_can_hide_a_cell_and_be_hidden() -> None:
    inner = np.array([[0, 4, 3], [5, 0, 2], [1, 6, 0]])
    known, unknown = cross(inner), cross(inner, zeros_known=False)
    zero = int(np.flatnonzero(unknown.value == 0)[0])
    needs = protection(unknown, {zero: 0.5})
    assert needs.down[zero] == 0.0
    pattern = withhold(unknown, needs)
    assert unprotected(unknown, pattern.withheld, needs) == []
    assert known.fixed.sum() == 3


def test_five_dimensions_are_protected() -> None:
    system = cross(np.random.default_rng(3).integers(1, 9, (2, 2, 2, 2, 2)))
    ones = np.flatnonzero(system.value == 1)
    needs = protection(system, {int(cell): 1.0 for cell in ones})
    pattern = withhold(system, needs, tries=0)
    proof = prove(system, pattern.withheld, needs)
    assert np.flatnonzero(proof.unprotected).tolist() == pattern.unprotected.tolist()


def test_who_sees_where_zeros_are_knows_that_a_sum_of_two_cells_is_no_one() -> None:
    # A sensitive sum of two ones can be more than two, and everybody sees that it is not less.
    system = cross(np.array([[1, 1, 0], [9, 4, 7], [3, 8, 5]]))
    row = int(np.flatnonzero(system.value == 2)[0])
    assert system.lower[row] == 2
    needs = protection(system, {row: 1.0})
    assert (needs.down[row], needs.up[row]) == (0, 1)
    pattern = withhold(system, needs)
    assert unprotected(system, pattern.withheld, needs) == pattern.unprotected.tolist() == []
    low, _ = interval(system, pattern.withheld, row)
    assert low >= 2 - 1e-6
