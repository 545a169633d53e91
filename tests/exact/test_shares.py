"""What single readers know of sums beforehand is what programs find of tables of which nothing is published."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from sfumato.exact.pattern import withhold
from sfumato.exact.proof import prove
from sfumato.exact.rules import Protection
from sfumato.exact.shares import NO_SHARES, Shares
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree
from tests.exact.tables import cross, protection


def share(cell: int, reader: int, *amounts: float) -> Shares:
    """What a reader has in a cell, which may be told once for every table that it is in."""
    several = np.ones(len(amounts), dtype=np.int64)
    return Shares(cell=cell * several, reader=reader * several, amount=np.array(amounts))


def least(system: System, needs: Protection, cell: int, of: Shares) -> float:
    """The least that a cell can be for a reader who knows single cells and own parts, by scipy."""
    reader = int(of.reader[0])
    low, high = system.lower.copy(), system.upper.copy()
    np.maximum.at(low, of.cell, of.amount)
    own = needs.owner == reader
    low[own] = high[own] = system.value[own]
    cost = np.zeros(len(system))
    cost[cell] = 1.0
    equations = {"A_eq": system.equations, "b_eq": np.zeros(system.equations.shape[0])}
    return float(linprog(cost, **equations, bounds=np.stack([low, high], axis=1)).fun)


@pytest.fixture
def crossing() -> tuple[System, Protection]:
    """One sum of two kinds (422 and 1) and of two sectors (1 and 422), of which reader 7 is alone in the last two."""
    kind, sector = Tree.of("kind", {"kind": ["x", "y"]}), Tree.of("sector", {"sector": ["1", "2"]})
    tables = {
        tree.name: Table(axes=((tree, tree.nodes(tree.name, codes)),), positions=np.arange(2), value=np.array(value))
        for tree, codes, value in ((kind, ["x", "y"], [422, 1]), (sector, ["1", "2"], [1, 422]))
    }
    system = build_system(tables)
    (x, y), (_, second) = system.places["kind"].tolist(), system.places["sector"].tolist()
    return system, protection(system, {x: 100.0}, {y: 7, second: 7})


def test_a_share_that_several_tables_tell_counts_once() -> None:
    system = cross(np.array([[60, 3, 4], [7, 6, 5], [4, 4, 7]]))
    needs = protection(system, {0: 30.0}, {5: 7})
    once, twice = (share(0, 7, *amounts).with_sums(system, needs) for amounts in ((60.0,), (60.0, 60.0)))
    assert once.amount[once.cell == 0].tolist() == twice.amount[twice.cell == 0].tolist()
    assert twice.amount.max() <= least(system, needs, 0, share(0, 7, 60.0)) < system.value[0]


def test_a_reader_whose_share_several_tables_tell_is_held_off_all_the_same() -> None:
    system = cross(np.array([[6, 3, 4], [7, 6, 5], [4, 4, 7]]), zeros_known=False)
    needs = protection(system, {5: 4.0}, {6: 7, 10: 7})
    withheld = np.zeros(16, dtype=bool)
    withheld[[5, 6, 7, 9, 10, 11]] = True
    narrow = system.with_bounds(upper=np.where(np.arange(16) == 7, 6.0, np.inf))  # the ring moves by 2 at most, down
    assert prove(narrow, withheld, needs, shares=share(5, 7, 3.0, 3.0)).pairs.tolist() == [[5, 7]]


def test_one_table_less_another_is_no_sum_of_the_first() -> None:
    value = np.array([100.0, 60.0, 40.0])  # a table, one of some of its records, and the rest that nobody shows
    system = System(
        value=value,
        equations=sparse.csr_matrix(np.array([[1.0, -1.0, -1.0]])),
        lower=np.ones(3),
        upper=np.full(3, np.inf),
        places={},
        hidden=np.array([False, False, True]),
    )
    needs = protection(system, {0: 30.0, 1: 20.0, 2: 10.0})
    known = share(0, 7, 50.0).with_sums(system, needs)
    assert known.cell[known.amount > 1].tolist() == [0]
    known = share(1, 7, 50.0).with_sums(system, needs)
    assert dict(zip(known.cell.tolist(), known.amount.tolist(), strict=True)) == {0: 51.0, 1: 50.0}


def test_sums_that_cross_tell_more_than_one_after_the_other(crossing: tuple[System, Protection]) -> None:
    system, needs = crossing
    x = int(system.places["kind"][0])
    of = share(x, 7, 421.0)
    known = of.with_sums(system, needs)
    assert known.amount[known.cell == x].max() == 421
    more = known.with_programs(system, needs, np.array([[x, 7]]))
    assert more.amount[more.cell == x].max() == least(system, needs, x, of) == 422
    assert len(more.with_programs(system, needs, np.array([[x, 7]]))) == len(more)


def test_nobody_is_refused_for_what_readers_know_before_anything_is_published(
    crossing: tuple[System, Protection],
) -> None:
    system, needs = crossing
    x = int(system.places["kind"][0])
    shares = share(x, 7, 421.0)
    pattern = withhold(system, needs, shares=shares)
    assert not len(pattern.pairs)
    assert prove(system, pattern.withheld, needs, pieces=pattern.pieces, shares=shares).holds
    shown = pattern.withheld.copy()
    shown[system.places["sector"][0]] = False
    assert not prove(system, shown, needs, shares=shares).holds


def test_no_shares_know_nothing() -> None:
    system = cross(np.array([[5, 3], [2, 6]]))
    needs = protection(system, {4: 1.0})
    assert not len(NO_SHARES.with_sums(system, needs))
    assert len(replace(NO_SHARES)) == 0
