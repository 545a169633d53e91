"""What tables of several levels tell beside filtered ones: sums that none of them shows, and what they have more."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import linprog

from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.statistics.exact.records import release_file

FINEST = [(place, sector, kind) for place in "ABCD" for sector in "123" for kind in "xy"]
REGION = {"A": "N", "B": "N", "C": "S", "D": "S"}
REGIONS = 'regions; total = "turnover"; by = ["place@region", "sector"]; totals = true'
SOME_SECTORS = 'some; total = "turnover"; by = ["place"]; where = { sector = ["1", "2"] }; totals = true'
ONE_KIND = 'kind; total = "turnover"; by = ["place", "sector"]; where = { kind = ["x"] }; totals = true'
PLACES_OF_A_KIND = 'places; total = "turnover"; by = ["place"]; where = { kind = ["x"] }; totals = true'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five businesses of each kind in a cell, but one large in B × 2 × x, and one alone of the kind y in the north."""
    rows = [("B", "2", "x", 900), ("A", "1", "y", 70)]
    for place, sector, kind in FINEST:
        if (place, sector, kind) != ("B", "2", "x") and (REGION[place], kind) != ("N", "y"):
            rows += [(place, sector, kind, 20 + 3 * at + ord(place) % 7) for at in range(5)]
    columns = dict(zip(("place", "sector", "kind", "turnover"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(
        pa.table({"business": [f"b{at}" for at in range(len(rows))], **columns}), tmp_path / "records.parquet"
    )
    return tmp_path


def published(folder: Path, tables: Sequence[str]) -> Path:
    """The release file of some tables, which is run."""
    file = release_file(folder, tables, rules='method = "suppression", p = 15')
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("sector = {", 'kind = { codes = ["x", "y"] }\nsector = {'), encoding="utf-8")
    run(load(file))
    return file


def cells(folder: Path, name: str, where: dict[str, Sequence[str]]) -> list[tuple[np.ndarray, int | None]]:
    """Every published cell as the finest cells that are in it, and its value."""
    found = []
    for row in pq.read_table(folder / "release_bundle" / "tables" / f"{name}.parquet").to_pylist():
        kept = []
        for place, sector, kind in FINEST:
            own = {"place": place, "place_region": REGION[place], "sector": sector, "kind": kind}
            fits = all(own[key] in (row[key], own[key] if row[key] == "total" else "") for key in own.keys() & row)
            kept.append(float(fits and all(own[key] in codes for key, codes in where.items())))
        found.append((np.array(kept), row["value"]))
    return found


def bounds(told: Sequence[tuple[np.ndarray, int | None]], cell: np.ndarray) -> tuple[float, float]:
    """A reader's bounds of a sum of finest cells: none is below zero, and those that are withheld are 1 at least."""
    shown = [(parts, value) for parts, value in told if value is not None]
    hidden = [parts for parts, value in told if value is None]
    ends = []
    for sign in (1, -1):
        solved = linprog(
            sign * cell,
            A_eq=np.array([parts for parts, _ in shown]),
            b_eq=np.array([value for _, value in shown]),
            A_ub=-np.array(hidden) if hidden else None,
            b_ub=-np.ones(len(hidden)) if hidden else None,
        )
        assert solved.status == 0, solved.message
        ends.append(sign * solved.fun)
    return ends[0], ends[1]


def inside(place: str, sectors: str, kinds: str) -> np.ndarray:
    """The finest cells of some places, sectors and kinds."""
    return np.array([float(p in place and s in sectors and k in kinds) for p, s, k in FINEST])


def test_a_sum_of_coarse_cells_that_a_filtered_table_by_finer_ones_shares_is_linked(folder: Path) -> None:
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    next(row for row in rows if row["place"] == "D")["turnover"] = 1900  # as sensitive, so that both are withheld
    pq.write_table(pa.Table.from_pylist(rows), folder / "records.parquet")
    published(folder, [REGIONS, SOME_SECTORS])
    told = cells(folder, "regions", {}) + cells(folder, "some", {"sector": "12"})
    low, high = bounds(told, inside("B", "12", "xy"))
    own = sorted(row["turnover"] for row in rows if row["place"] == "B" and row["sector"] in "12")
    true, need = sum(own), 0.15 * own[-1] - sum(own[:-2])
    assert need > 0
    assert low <= true - need + 1e-6
    assert high >= true + need - 1e-6


def test_a_coarser_table_less_a_filtered_finer_one_is_judged_too(folder: Path) -> None:
    file = published(folder, [REGIONS, ONE_KIND])
    told = cells(folder, "regions", {}) + cells(folder, "kind", {"kind": "x"})
    low, high = bounds(told, inside("AB", "1", "y"))  # one business alone, which no table shows
    assert low <= 70 * 0.85
    assert high >= 70 * 1.15
    (together,) = assess(load(file)).together
    attacks = {one.attack: one for one in together.attacks}
    differences = next(one for words, one in attacks.items() if "between filters" in words)
    assert differences.targets
    assert all(not one.successes for words, one in attacks.items() if "rules allow" in words)


def test_filters_of_which_neither_holds_the_other_make_no_difference(folder: Path) -> None:
    published(folder, [SOME_SECTORS, PLACES_OF_A_KIND])
    assert len(cells(folder, "places", {"kind": "x"})) == len("ABCD") + 1


def test_the_part_of_a_table_that_lies_within_the_filter_of_a_wider_one_is_linked(folder: Path) -> None:
    published(folder, [SOME_SECTORS, ONE_KIND])
    told = cells(folder, "some", {"sector": "12"}) + cells(folder, "kind", {"kind": "x"})
    low, high = bounds(told, inside("A", "12", "y"))  # what a table of two sectors has beyond those of one kind
    assert low <= 70 * 0.85
    assert high >= 70 * 1.15
