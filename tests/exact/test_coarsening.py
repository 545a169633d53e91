"""Cuts pass and tell as much as the best of all; releases side by side are checked; ranges hide what rules ask."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.exact.coarsening import (
    Cuts,
    Programme,
    Tells,
    best_cut,
    by_value,
    coarsen,
    each_cell,
    failing,
)
from sfumato.exact.ranges import Classes, publish_ranges
from sfumato.exact.refinement import told_together
from sfumato.exact.rules import Rules
from sfumato.exact.trees import ROOT, Tree
from tests.exact.rounded_tables import flat, in_pairs, with_totals
from tests.exact.test_rounding import independent_bounds

RULES = Rules(units=3, percent=10)


def programme(
    trees: list[Tree], nodes: list[np.ndarray], unit: np.ndarray, value: np.ndarray, tells: Tells = each_cell
) -> Programme:
    names = tuple(tree.name for tree in trees)
    return Programme(
        trees=tuple(trees),
        nodes=tuple(nodes),
        unit=unit,
        value=value.astype(np.float64),
        tables={"all": names, **({name: (name,) for name in names} if len(names) > 1 else {})},
        passes=lambda cells: ~RULES.protection(cells).sensitive,
        tells=tells,
    )


@st.composite
def records(draw: st.DrawFn, *sizes: int, tells: Tells = each_cell) -> Programme:
    """Records of some units in the finest codes of trees in pairs."""
    trees = [in_pairs(name, size) for name, size in zip("ab", sizes, strict=False)]
    number = draw(st.integers(6, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    nodes = [rng.integers(len(tree) - size, len(tree), number) for tree, size in zip(trees, sizes, strict=True)]
    return programme(trees, nodes, rng.integers(0, number, number), rng.integers(1, 9, number), tells)


def all_cuts(tree: Tree, present: set[int]) -> list[np.ndarray]:
    """Every cut through a tree, above codes that have records."""

    def below(node: int) -> list[list[int]]:
        children = [child for child in np.flatnonzero(tree.parents[0] == node).tolist() if has(child)]
        split = [[part for parts in each for part in parts] for each in product(*map(below, children))]
        return [[node], *(split if children else [])]

    def has(node: int) -> bool:
        return node in present or any(has(child) for child in np.flatnonzero(tree.parents[0] == node).tolist())

    return [np.array(sorted(cut)) for cut in below(ROOT)]


def told(of: Programme, cuts: tuple[np.ndarray, ...]) -> float:
    """What cuts tell, counted record by record."""
    above = [tree.nearest(cut)[nodes] for tree, cut, nodes in zip(of.trees, cuts, of.nodes, strict=True)]
    total = 0.0
    for by in of.tables.values():
        cells: dict[tuple[int, ...], float] = {}
        for record, value in enumerate(of.value.tolist()):
            at = tuple(int(some[record]) for tree, some in zip(of.trees, above, strict=True) if tree.name in by)
            cells[at] = cells.get(at, 0.0) + value
        sizes = np.array(list(cells.values()))
        total += len(sizes) if of.tells is each_cell else float((-sizes * np.log(sizes)).sum())
    return total


def best_of_all(of: Programme) -> float:
    every = [all_cuts(tree, set(nodes.tolist())) for tree, nodes in zip(of.trees, of.nodes, strict=True)]
    passing = [told(of, cuts) for cuts in product(*every) if not any(failing(of, cuts).values())]
    return max(passing, default=-np.inf)


@settings(max_examples=25, deadline=None)
@given(st.one_of(records(6), records(6, tells=by_value)))
def test_the_cut_of_one_tree_is_the_best_of_all(of: Programme) -> None:
    found = coarsen(of)
    best = best_of_all(of)
    assert (found.told if found else -np.inf) == pytest.approx(best)
    if found:
        assert told(of, found.nodes) == pytest.approx(found.told)


@settings(max_examples=20, deadline=None)
@given(records(4, 4))
def test_cuts_of_two_trees_pass_in_every_table_and_are_as_good_as_the_best(of: Programme) -> None:
    found, best = coarsen(of), best_of_all(of)
    assert (found is None) == np.isinf(best)
    if found:
        assert not any(failing(of, found.nodes).values())
        assert told(of, found.nodes) == pytest.approx(found.told)
        assert found.told == pytest.approx(best)


def test_cuts_that_neither_a_merge_nor_one_tree_alone_leads_to_are_found() -> None:
    rng, sizes = np.random.default_rng(1104), (6, 4)
    trees = [in_pairs(name, size) for name, size in zip("ab", sizes, strict=True)]
    number = int(rng.integers(8, 30))
    nodes = [rng.integers(len(tree) - size, len(tree), number) for tree, size in zip(trees, sizes, strict=True)]
    of = programme(trees, nodes, rng.integers(0, number, number), rng.integers(1, 9, number))
    found = coarsen(of)
    assert found is not None
    assert found.told == best_of_all(of) == 15.0  # 14 where trees take turns


def test_a_unit_in_two_codes_counts_once_when_they_are_merged() -> None:
    tree = in_pairs("a", 4)
    nodes = np.array([3, 4, 3, 4])  # the two codes of one group
    of = programme([tree], [nodes], np.array([1, 1, 2, 2]), np.array([1, 2, 3, 4]))
    known = of.contributors(np.zeros(4, dtype=np.int64), 1)
    assert (known.units[0], known.largest[0], known.second[0], known.value[0]) == (2, 7, 3, 10)
    assert coarsen(of) is None


def test_codes_of_uneven_depth_are_merged_with_all_that_lies_below() -> None:
    tree = Tree(
        name="a",
        codes=(("total", "total"), *(("code", code) for code in "ABabc")),
        parents=(np.array([-1, 0, 0, 1, 1, 3]),),  # A > a > c, A > b, and B
    )
    nodes = np.array([5] * 4 + [4] + [2] * 4)
    of = programme([tree], [nodes], np.arange(9), np.full(9, 2))
    assert coarsen(of).nodes[0].tolist() == [1, 2]  # b has one unit alone: A as a whole


def test_a_table_by_other_trees_keeps_its_own_cut() -> None:
    """Tables of either attribute pass at the finest codes; the cross only where one of them is merged."""
    trees = [in_pairs("a", 4), in_pairs("b", 4)]
    both = np.array(list(product(range(3, 7), range(3, 7))))
    of = programme(trees, [both[:, 0], both[:, 1]], np.arange(16), np.full(16, 5))
    found = coarsen(of)
    assert found is not None
    assert sorted(map(len, found.nodes)) == [1, 4] or sorted(map(len, found.nodes)) == [2, 2]
    assert found.told == best_of_all(of)
    crossed = replace(of, tables={"all": ("a", "b")}, weights={"all": 2.0})
    assert coarsen(crossed).told == pytest.approx(2 * best_of_all(crossed))


def test_best_cut_is_none_where_not_even_the_total_passes() -> None:
    of = programme([flat("a", 2)], [np.array([1, 2])], np.array([1, 2]), np.array([5, 5]))
    assert best_cut(of, [np.array([1, 2])], 0) is None


def test_two_hierarchies_over_the_same_codes_are_refused() -> None:
    tree = Tree.of(
        "a",
        {"x": ["X"], "y": ["Y"], "a": ["1", "2"]},
        above=[("a", "x", {"1": "X", "2": "X"}), ("a", "y", {"1": "Y", "2": "Y"})],
    )
    with pytest.raises(MethodError, match="one hierarchy"):
        programme([tree], [np.array([3, 4])], np.array([1, 2]), np.array([5, 5]))


def test_releases_with_other_cuts_are_told_apart_by_what_both_give_away() -> None:
    """One release by a, another by b, nothing in one corner of the cross: the corner across is a difference of both."""
    trees = [flat("a", 2), flat("b", 2)]
    cells = [((1, 1), 1), ((1, 2), 5), ((2, 1), 5)]
    nodes = np.array([at for at, number in cells for _ in range(number)])
    of = programme(trees, [nodes[:, 0], nodes[:, 1]], np.arange(len(nodes)), np.ones(len(nodes)))
    finest, root = np.array([1, 2]), np.array([ROOT])
    crossed = replace(of, tables={"all": ("a", "b")})
    by_a, by_b = (Cuts(nodes=cuts, told=0.0) for cuts in ((finest, root), (root, finest)))
    alone, _ = told_together(crossed, [by_a], RULES)
    assert not len(alone.cells)
    together, table = told_together(crossed, [by_a, by_b], RULES)
    assert together.too_narrow.tolist() == [True]
    assert (together.low.tolist(), together.high.tolist()) == ([1], [1])
    assert table.tolist() == [0]


def test_nested_cuts_of_one_tree_tell_no_more_than_the_finer() -> None:
    tree = in_pairs("a", 4)
    nodes = np.repeat(np.arange(3, 7), 5)
    of = programme([tree], [nodes], np.arange(20), np.full(20, 3))
    fine, coarse = (Cuts(nodes=(cut,), told=0.0) for cut in (np.arange(3, 7), np.array([1, 2])))
    found, _ = told_together(of, [fine, coarse], RULES)
    assert found.proved


CLASSES = Classes((1, 5, 10, 20, 50, 100))


@given(st.integers(0, 200), st.integers(0, 4), st.integers(0, 4))
def test_ranges_of_a_value_are_one_inside_the_other(value: int, one: int, other: int) -> None:
    first, second = (
        CLASSES.ranges(np.array([value]), np.array([joined])) for joined in (min(one, other), max(one, other))
    )
    assert second[0] <= first[0] <= value <= first[1] <= second[1]


@given(st.integers(1, 200), st.integers(1, 200), st.integers(0, 3), st.integers(0, 3))
def test_ranges_of_two_values_never_overlap_in_part(one: int, other: int, first: int, second: int) -> None:
    (a, b), (c, d) = (
        [float(end[0]) for end in CLASSES.ranges(np.array([v]), np.array([j]))]
        for v, j in ((one, first), (other, second))
    )
    assert b < c or d < a or (a <= c and d <= b) or (c <= a and b <= d)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=9, max_size=9), st.booleans())
def test_sums_do_not_narrow_ranges_beyond_what_is_asked(cells: list[int], everywhere: bool) -> None:
    system = with_totals(np.array(cells).reshape(3, 3))
    sensitive = np.flatnonzero((system.value > 0) & (system.value < 4))
    lower, upper = np.minimum((system.value - system.lower)[sensitive], 0.5), np.full(len(sensitive), 1.0)
    found = publish_ranges(system, CLASSES, sensitive, lower, upper, everywhere=everywhere)
    assert not found.shown[sensitive].any()
    assert np.all((found.low <= system.value) & (system.value <= found.high))
    known = system.with_bounds(lower=found.low, upper=found.high)
    for at, cell in enumerate(sensitive.tolist()):
        low, high = independent_bounds(known, cell)
        enough = low <= system.value[cell] - lower[at] + 1e-5 and high >= system.value[cell] + upper[at] - 1e-5
        assert enough == (not found.proof.too_narrow[at])
    if found.proved:
        return
    assert np.all(found.joined[sensitive[found.proof.too_narrow]] > CLASSES.widest)  # nothing was left to widen


def test_who_is_alone_in_a_cell_with_a_range_does_not_find_another_one() -> None:
    system = with_totals(np.array([48, 757, 24]))
    two, owner = np.flatnonzero(np.isin(system.value, (48, 24))), np.full(len(system), -1)
    owner[two] = (1, 2)
    asked = np.array([5.0, 5.0])
    shut = publish_ranges(system, Classes.relative(2), two, asked, asked, owner=owner)
    open_to_them = publish_ranges(system, Classes.relative(2), two, asked, asked)
    assert shut.proved
    assert shut.shown.sum() < open_to_them.shown.sum()
    for found, told in ((shut, False), (open_to_them, True)):
        exact = False
        for mine, other in (two, two[::-1]):
            low, high = found.low.copy(), found.high.copy()
            low[mine] = high[mine] = system.value[mine]
            bounds = independent_bounds(system.with_bounds(lower=low, upper=high), other)
            exact |= bounds[0] > system.value[other] - 5 + 1e-6 or bounds[1] < system.value[other] + 5 - 1e-6
        assert exact == told


def test_classes_rise_from_one() -> None:
    with pytest.raises(MethodError, match="rising bounds"):
        Classes((5, 1))
    assert Classes.relative(1.5, most=10).bounds == (1, 2, 3, 5, 8, 12)
