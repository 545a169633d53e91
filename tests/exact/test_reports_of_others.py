"""Faults that users of other tools reported, made anew: our audit finds each, and our own pattern does not have it."""

import numpy as np
import pytest

from sfumato.arrays import Flags
from sfumato.exact.attacks import bounds
from sfumato.exact.pattern import Costs, withhold
from sfumato.exact.proof import Proof, prove
from sfumato.exact.rules import Contributions, Protection, Rules
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree
from tests.exact.tables import cross, interval, unprotected, with_totals


def line(codes: list[str], values: list[int], **options: float) -> System:
    """A total and its parts."""
    tree = Tree.of("line", {"code": codes})
    counts = with_totals(np.array(values))
    return build_system(
        {"t": Table(axes=((tree, np.arange(len(counts))),), positions=np.arange(len(counts)), value=counts)}, **options
    )


def counted(system: System, rules: Rules, owner: np.ndarray | None = None) -> Protection:
    """Rules for counts, of which each is so many people."""
    ones = np.minimum(system.value, 1.0)
    people = system.value.astype(np.int64)
    found = Contributions(value=system.value, units=people, largest=ones, second=ones * (people > 1), owner=owner)
    (name,) = system.places
    return Protection.over(system, {name: rules.protection(found)})


def told(proof: Proof) -> list[int]:
    return np.flatnonzero(proof.unprotected).tolist()


def safe(system: System, needs: Protection) -> Flags:
    """Our own pattern, which is safe by our proof and by programs of others."""
    pattern = withhold(system, needs, cost=Costs(value=1.0).of(system))
    assert prove(system, pattern.withheld, needs).holds
    assert unprotected(system, pattern.withheld, needs) == []
    return pattern.withheld


def test_tables_that_are_safe_one_by_one_are_open_together() -> None:
    """sdcTools/UserSupport#136: the same regions by county and by size; county 1 and "small" differ by two regions."""
    regions = ["A", "B", "I", "J", "K", "L", "M", "N"]
    values = np.array([2, 2, 8, 8, 3, 3, 3, 7])
    county = {code: "first" if code in "ABIJ" else "second" for code in regions}
    size = {code: "big" if code in "LM" else "small" for code in regions}
    tree = Tree.of(
        "region",
        {"county": ["first", "second"], "size": ["big", "small"], "region": regions},
        above=[("region", "county", county), ("region", "size", size)],
    )

    def table(level: str, lies: dict[str, str], names: list[str]) -> Table:
        sums = [values[[lies[code] == name for code in regions]].sum() for name in names]
        nodes = np.concatenate([[0], tree.nodes(level, names), tree.nodes("region", regions)])
        counts = np.concatenate([[values.sum()], sums, values])
        return Table(axes=((tree, nodes),), positions=np.arange(len(nodes)), value=counts)

    by_county, by_size = table("county", county, ["first", "second"]), table("size", size, ["big", "small"])
    for alone in (by_county, by_size):
        system = build_system({"t": alone}, zeros_known=False)
        needs = counted(system, Rules(count=4))
        assert prove(system, needs.sensitive, needs, readers=False).holds
    system = build_system({"county": by_county, "size": by_size}, zeros_known=False)
    few = (system.value > 0) & (system.value <= 3)
    low, high = bounds(system, few)
    known = few & (high - low < 1e-6)
    assert system.value[known].tolist() == [3.0]  # K: small less county 1 is K and N, and N is published
    one = np.where(few, 1.0, 0.0)
    needs = Protection(
        sensitive=few, reasons=few.astype(np.int64), down=one, up=one, owner=np.full(len(system), -1, dtype=np.int64)
    )
    assert told(prove(system, few, needs, readers=False)) == np.flatnonzero(known).tolist()
    assert (safe(system, needs) & ~few).sum() == 1  # one region more, as in sdcTable 0.33.0


def test_an_enterprise_that_has_most_of_all_that_is_withheld_is_still_disclosed() -> None:
    """sdcTools/UserSupport#160: three sensitive industries hide each other, and one enterprise has most of them."""
    system = line(["B05", "B06", "B07", "B08", "B09"], [960, 40, 30, 500, 60])
    contributions = Contributions(
        value=system.value,
        units=np.array([90, 4, 3, 3, 40, 30]),
        largest=np.array([900.0, 900, 30, 20, 40, 5]),
        second=np.array([50.0, 50, 8, 8, 30, 5]),
    )
    needs = Protection.over(system, {"t": Rules(dominance=(2, 80)).protection(contributions)})
    assert np.flatnonzero(needs.sensitive).tolist() == [1, 2, 3]
    assert told(prove(system, needs.sensitive, needs, readers=False)) == [1]
    with_small = needs.sensitive | (np.arange(6) == 5)
    assert 0.8 * system.value[with_small].sum() < 900
    assert told(prove(system, with_small, needs, readers=False)) == [1]
    assert safe(system, needs)[4]


def test_three_people_alone_in_their_cells_are_no_cover_for_each_other() -> None:
    """sdcTools/UserSupport#135: zeros are published, so three withheld cells that add up to three are ones."""
    table = np.array([[1, 1, 7, 1, 0], [1, 0, 0, 2, 8]])
    counts = with_totals(table).ravel()
    trees = [Tree.of(name, {name: [str(code) for code in range(n)]}) for name, n in (("one", 2), ("other", 5))]
    axes = tuple((tree, np.arange(len(tree))) for tree in trees)
    one = Table(axes=axes, positions=np.arange(len(counts)), value=counts)
    system = build_system({"t": one}, least=1.0)  # what is withheld is no zero
    needs = counted(system, Rules(count=3))
    theirs = needs.sensitive.reshape(3, 6).copy()
    theirs[0, 4:] = theirs[2, 5] = True
    three = np.array([7, 8, 10])
    assert system.value[three].tolist() == [1.0, 1.0, 1.0]
    proof = prove(system, theirs.ravel(), needs, readers=False)
    assert bool(proof.unprotected[three].all())
    low, high = bounds(system, theirs.ravel())
    assert low[three].tolist() == high[three].tolist() == [1.0, 1.0, 1.0]
    pattern = withhold(system, needs)
    assert pattern.unprotected.tolist() == unprotected(system, pattern.withheld, needs) == []
    assert needs.down[1] == 0  # the sum of two ones, each known to be one at least: nothing hides that it is not less
    assert bool(np.all(bounds(system, pattern.withheld)[1][three] >= 3))


def test_zeros_do_not_hide_zeros() -> None:
    """sdcTools/UserSupport#194: of 15 = 10 + 5 + 0 + 0 the zeros are withheld, and nothing else."""
    system = line(["a", "b", "c", "d"], [10, 5, 0, 0], zeros_known=False)
    sensitive = np.arange(5) == 3
    needs = Protection(
        sensitive=sensitive,
        reasons=sensitive.astype(np.int64),
        down=np.zeros(5),
        up=sensitive.astype(float),
        owner=np.full(5, -1, dtype=np.int64),
    )
    zeros = np.isin(np.arange(5), [3, 4])
    assert told(prove(system, zeros, needs, readers=False)) == [3]
    assert safe(system, needs)[[0, 1, 2]].any()


def test_ones_do_not_hide_ones_where_zeros_are_published() -> None:
    """sdcTools/UserSupport#194: of 15 = 10 + 3 + 1 + 1 the ones are withheld, and no withheld count is a zero."""
    system = line(["a", "b", "c", "d"], [10, 3, 1, 1], least=1.0)
    needs = counted(system, Rules(count=2))
    ones = np.isin(np.arange(5), [3, 4])
    assert np.array_equal(needs.sensitive, ones)
    assert told(prove(system, ones, needs, readers=False)) == [3, 4]
    assert interval(system, ones, 3) == (1.0, 1.0)
    assert safe(system, needs)[[0, 1, 2]].any()


def test_two_establishments_of_one_enterprise_do_not_hide_each_other_from_a_third() -> None:
    """The need of sdcTools/UserSupport#180, rules at the level of holdings: who owns two cells knows both."""
    system = cross(np.array([[20, 30, 25, 90], [80, 70, 60, 75], [55, 65, 85, 95]]))
    owners = {6: 1, 7: 1, 8: 2}  # the first two are establishments of one enterprise

    def needs(of: dict[int, int]) -> Protection:
        owner = np.full(len(system), -1, dtype=np.int64)
        for cell, who in of.items():
            owner[cell] = who
        units = np.where(owner >= 0, 1, 9)
        contributions = Contributions(
            value=system.value,
            units=units,
            largest=np.where(owner >= 0, system.value, system.value / 4),
            second=np.where(owner >= 0, 0.0, system.value / 5),
            owner=owner,
        )
        return Protection.over(system, {"t": Rules(units=3).protection(contributions)})

    by_establishment, by_enterprise = needs({cell: cell for cell in owners}), needs(owners)
    columns = np.zeros((4, 5), dtype=bool)
    columns[1:3, 1:4] = True  # three cells in a row, with three below them: nobody alone knows two
    withheld = columns.ravel()
    assert prove(system, withheld, by_establishment).holds
    proof = prove(system, withheld, by_enterprise)
    assert proof.pairs.tolist() == [[8, 1]]
    assert interval(system, withheld, 8, known=(6, 7)) == (25.0, 25.0)
    pattern = withhold(system, by_enterprise)
    assert prove(system, pattern.withheld, by_enterprise).holds
    low, high = interval(system, pattern.withheld, 8, known=(6, 7))
    assert low <= 25 - by_enterprise.down[8]
    assert high >= 25 + by_enterprise.up[8]


@pytest.mark.parametrize("seed", [0, 1])
def test_five_dimensions_are_protected_like_two(seed: int) -> None:
    """sdcTools/UserSupport#52: more than four dimensions ended in an error, and then were refused."""
    random = np.random.default_rng(seed)
    system = cross(np.floor(random.lognormal(2.5, 1.0, (2, 2, 2, 2, 2))).astype(np.int64))
    needs = counted(system, Rules(count=4))
    alone = prove(system, needs.sensitive, needs, readers=False)
    assert told(alone) == unprotected(system, needs.sensitive, needs) != []
    assert safe(system, needs).sum() < len(system)
