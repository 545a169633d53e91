"""All tables of a release are one system: every distinct cell once, every sum an equation."""

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.exact.system import System, Table, build_system, joint
from sfumato.exact.trees import Tree

PLACE = Tree.of("place", {"place": ["p", "q"]})
INDUSTRY = Tree.of(
    "industry",
    {"sector": ["A", "B"], "branch": ["a1", "a2", "b1"]},
    above=[("branch", "sector", {"a1": "A", "a2": "A", "b1": "B"})],
)
TREES = {"place": PLACE, "sector": INDUSTRY, "branch": INDUSTRY}
BELOW_L = {"s": "kept", "m": "kept", "l": "rest"}
COUNTS = np.array([[5, 3, 2], [1, 0, 4]])


def table(by: dict[str, list[str]], counts: np.ndarray, **options: object) -> Table:
    dimensions = tuple(Dimension(name=name, codes=tuple(codes)) for name, codes in by.items())
    flat = np.asarray(counts, dtype=np.int64).ravel()
    cells = Cells(dimensions=dimensions, positions=np.arange(len(flat)), columns={"count": flat})
    return Table.of(cells, "count", TREES, **options)


def with_totals(counts: np.ndarray) -> np.ndarray:
    rows = np.vstack([counts.sum(axis=0), counts])
    return np.column_stack([rows.sum(axis=1), rows])


def rank(system: System) -> int:
    return int(np.linalg.matrix_rank(system.equations.toarray()))


def test_a_table_with_totals_has_an_equation_for_every_sum() -> None:
    found = build_system(
        {"t": table({"place": ["total", "p", "q"], "branch": ["total", "a1", "a2", "b1"]}, with_totals(COUNTS))}
    )
    assert len(found) == 12
    assert found.equations.shape == (7, 12)  # of 3 rows and 4 columns
    assert not found.hidden.any()
    assert np.array_equal(found.equations @ found.value, np.zeros(7))
    assert found.fixed.sum() == 1  # the zero


def test_the_same_cell_of_two_tables_is_one_variable() -> None:
    fine = table({"place": ["p", "q"], "branch": ["a1", "a2", "b1"]}, COUNTS)
    by_place = table({"place": ["p", "q"]}, COUNTS.sum(axis=1))
    with_total = table({"place": ["total", "p", "q"]}, np.array([15, 10, 5]))
    found = build_system({"fine": fine, "place": by_place, "with_total": with_total})
    assert len(found) == 6 + 3
    assert np.array_equal(found.places["place"], found.places["with_total"][1:])
    assert found.equations.shape[0] == 3  # two places, and their total


def test_a_coarser_table_is_the_sum_of_a_finer_one_of_another_level() -> None:
    fine = table({"place": ["p", "q"], "branch": ["a1", "a2", "b1"]}, COUNTS)
    coarse = table({"sector": ["A", "B"]}, np.array([9, 6]))
    found = build_system({"fine": fine, "coarse": coarse})
    # nobody publishes places, branches or sectors of places: the system has what both share, sectors, by either way
    at = found.places["coarse"]
    assert rank(found) >= 2
    null = np.linalg.svd(found.equations.toarray())[2][rank(found) :]
    fixed_fine = null[np.abs(null[:, found.places["fine"]]).max(axis=1) < 1e-9]
    assert np.abs(fixed_fine[:, at]).max(initial=0.0) < 1e-9  # whoever sees the fine table knows the coarse one


def test_tables_that_cross_share_a_hidden_margin() -> None:
    one = table({"place": ["p", "q"]}, COUNTS.sum(axis=1))
    other = table({"sector": ["A", "B"]}, np.array([9, 6]))
    found = build_system({"one": one, "other": other})
    assert found.hidden.sum() == 1
    assert found.value[found.hidden].tolist() == [15.0]
    assert found.equations.shape[0] == 2


def test_levels_that_are_skipped_are_summed_across() -> None:
    found = build_system({"t": table({"branch": ["total", "a1", "a2", "b1"]}, np.array([15, 6, 3, 6]))})
    assert found.equations.shape == (1, 4)


def test_a_filtered_table_lies_below_the_cells_that_it_is_a_part_of() -> None:
    whole = table({"place": ["p", "q"], "sector": ["A", "B"]}, np.array([[8, 2], [1, 4]]))
    inside = table({"place": ["p", "q"], "branch": ["a1", "a2"]}, COUNTS[:, :2])
    found = build_system({"whole": whole, "inside": inside})
    assert found.equations.shape[0] == 2
    apart = table({"branch": ["b1"]}, np.array([6]))
    beside = table({"branch": ["a1", "a2"]}, np.array([6, 3]))
    total = table({"sector": ["total"]}, np.array([15]))
    assert build_system({"apart": apart, "beside": beside, "total": total}).equations.shape == (1, 4)


@pytest.mark.parametrize("wider", [0, 1, 2])
def test_parts_are_summed_also_where_some_of_the_tables_have_totals_and_others_none(wider: int) -> None:
    codes = ["a1", "a2", "b1"]
    parts = {"p": COUNTS[0], "q": COUNTS[1], "total": COUNTS.sum(axis=0)}
    tables = {}
    for at, (place, counts) in enumerate(parts.items()):
        total = at == wider
        branches = ["total", *codes] if total else codes
        tables[place] = table(
            {"place": [place], "branch": branches}, np.append(counts.sum(), counts) if total else counts
        )
    found = build_system(tables, zeros_known=False)
    whole, *inner = (found.places[name][-3:] for name in ("total", "p", "q"))
    for at in range(3):
        row = np.zeros(len(found))
        row[[one[at] for one in inner]], row[whole[at]] = 1, -1
        assert any(np.array_equal(row, one) for one in found.equations.toarray())


def test_two_hierarchies_over_the_same_codes_both_give_sums() -> None:
    tree = Tree.of(
        "size",
        {"coarse": ["s", "l"], "legal": ["x", "y"], "fine": ["1", "2", "3"]},
        above=[("fine", "coarse", {"1": "s", "2": "s", "3": "l"}), ("fine", "legal", {"1": "x", "2": "y", "3": "y"})],
    )
    columns = {"n": np.array([1, 2, 3])}
    fine = Cells(dimensions=(Dimension(name="fine", codes=("1", "2", "3")),), positions=np.arange(3), columns=columns)
    tables = {"fine": Table.of(fine, "n", {"fine": tree})}
    for level, codes, counts in (("coarse", ("s", "l"), [3, 3]), ("legal", ("x", "y"), [1, 5])):
        cells = Cells(
            dimensions=(Dimension(name=level, codes=codes),), positions=np.arange(2), columns={"n": np.array(counts)}
        )
        tables[level] = Table.of(cells, "n", {level: tree})
    found = build_system(tables)
    assert len(found) == 7 + found.hidden.sum()
    assert rank(found) >= 4


def test_tables_of_other_records_are_not_linked_and_those_of_the_same_must_add_up() -> None:
    one = table({"place": ["p", "q"]}, np.array([1, 2]))
    with pytest.raises(MethodError, match="two values"):
        build_system({"one": one, "other": table({"place": ["p", "q"]}, np.array([1, 3]))})
    with pytest.raises(MethodError, match="differs from its parts"):
        build_system({"one": table({"place": ["total", "p", "q"]}, np.array([4, 1, 2]))})
    apart = build_system({"one": one, "other": table({"place": ["p", "q"]}, np.array([1, 3]), about="2024")})
    assert len(apart) == 4
    assert apart.equations.shape[0] == 0


def test_a_table_that_lists_only_some_cells_gives_only_whole_sums() -> None:
    part = table({"place": ["p"], "branch": ["a1", "a2"]}, np.array([[5, 3]]), complete=False)
    both = table({"place": ["p"], "sector": ["A", "B"]}, np.array([[8, 2]]))
    assert build_system({"part": part, "both": both}).equations.shape[0] == 1
    some = table({"place": ["p"], "branch": ["a1"]}, np.array([[5]]), complete=False)
    assert build_system({"some": some, "both": both}).equations.shape[0] == 0


def test_two_periods_are_one_system_for_a_reader_who_knows_how_much_changed() -> None:
    first = build_system({"t": table({"place": ["total", "p", "q"]}, np.array([3, 1, 2]))})
    second = build_system({"t": table({"place": ["total", "p", "q"]}, np.array([4, 2, 2]))})
    both = joint(first, second, (np.array([2]), np.array([2])), most_change=0.0)
    assert len(both) == 7
    assert np.abs(both.equations @ both.value).max() == 0
    assert both.places["second t"].tolist() == [3, 4, 5]


def test_five_dimensions_and_a_hundred_thousand_cells_are_quick_to_link() -> None:
    sizes = (12, 9, 10, 9, 10)
    trees = [Tree.of(f"d{at}", {f"d{at}": [str(code) for code in range(size)]}) for at, size in enumerate(sizes)]
    counts = np.arange(np.prod(sizes)).reshape(sizes) % 7
    for axis in range(5):
        counts = np.concatenate([counts.sum(axis=axis, keepdims=True), counts], axis=axis)
    one = Table(
        axes=tuple((tree, np.arange(len(tree))) for tree in trees),
        positions=np.arange(counts.size),
        value=counts.ravel().astype(np.int64),
    )
    found = build_system({"t": one})
    assert len(found) == counts.size == 13 * 10 * 11 * 10 * 11
    assert found.equations.shape[0] == sum(counts.size // (size + 1) for size in sizes)


def test_codes_of_a_part_are_shared_by_tables_of_other_levels_of_another_attribute() -> None:
    size = Tree.of("size", {"size": ["s", "m", "l"], "below": ["kept", "rest"]}, above=[("size", "below", BELOW_L)])
    small = np.array([[[5, 3, 1], [2, 4, 6]], [[1, 2, 3], [4, 5, 6]]]).sum(axis=0)  # branches a1 and a2 by size
    fine = Table(
        axes=((INDUSTRY, INDUSTRY.nodes("branch", ["a1", "a2", "b1"])), (size, size.nodes("below", ["kept"]))),
        positions=np.arange(3),
        value=np.append(small[:, :2].sum(axis=1), 7),
    )
    coarse = Table(
        axes=((INDUSTRY, INDUSTRY.nodes("sector", ["A", "B"])), (size, size.nodes("size", ["s", "m", "l"]))),
        positions=np.arange(6),
        value=np.concatenate([small.sum(axis=0), [3, 4, 9]]),
    )
    found = build_system({"fine": fine, "coarse": coarse})
    assert int(found.hidden.sum()) == 2  # small and middle of either sector: no table has them
    assert found.equations.shape[0] == 4
    assert np.array_equal(found.equations @ found.value, np.zeros(4))
