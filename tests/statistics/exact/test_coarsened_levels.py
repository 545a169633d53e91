"""Groups of codes beside levels: of attributes, which tables may be by, and of units, which rules look at."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import SfumatoError
from sfumato.release import load
from sfumato.running import run

RECORDS = """
[release]
title = "Businesses"
population = "businesses"
period = "2025"
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
records = { path = "records.parquet", unit = "business" }

[data.attributes]
place = { codes = ["A", "B", "C", "D", "E", "F"], levels = { region = { N = ["A", "B", "C"], S = ["D", "E", "F"] } } }
sector = { codes = ["1", "2"], levels = { branch = { x = ["1"], y = ["2"] } } }
"place@region" = {}
"sector@branch" = {}

"""
FINE, COARSE = '["place", "sector"]', '["place@region", "sector@branch"]'


def of_records(folder: Path, *tables: str) -> Path:
    """One business in A × 1 and in D × 1, and five in a cell of every place."""
    cells = {("A", "1"): 1, ("A", "2"): 5, ("D", "1"): 1, ("D", "2"): 5} | {(place, "1"): 5 for place in "BCEF"}
    rows = [key for key, number in cells.items() for _ in range(number)]
    columns = {"place": [place for place, _ in rows], "sector": [sector for _, sector in rows]}
    pq.write_table(pa.table({"business": [str(at) for at in range(len(rows))], **columns}), folder / "records.parquet")
    protect = 'protect = { method = "coarsening", minimum_units = 3 }'
    text = RECORDS
    for at, by in enumerate(tables):
        text += f'[[table]]\nname = "t{at}"\ncount = "records"\nby = {by}\n{protect}\n'
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return folder / "release.toml"


def shown(folder: Path, name: str) -> dict[tuple[str, ...], int]:
    rows = pq.read_table(folder / f"bundle/tables/{name}.parquet").to_pylist()
    keys = [key for key in rows[0] if key not in ("value", "status")]
    return {tuple(row[key] for key in keys): row["value"] for row in rows if row["value"] is not None}


def test_groups_of_two_levels_that_can_be_subtracted_are_refused(tmp_path: Path) -> None:
    """Places of all sectors beside regions by branch: N × x, less B and C, which have nothing in y, is A × x."""
    (tmp_path / "alone").mkdir()
    run(load(of_records(tmp_path / "alone", FINE)))
    places = shown(tmp_path / "alone", "t0")
    (tmp_path / "regions").mkdir()
    run(load(of_records(tmp_path / "regions", COARSE)))
    regions = shown(tmp_path / "regions", "t0")
    assert regions["N", "x"] - places["B", "total"] - places["C", "total"] == 1
    for tables in ((FINE, COARSE), (COARSE, FINE)):
        with pytest.raises(SfumatoError, match="groups of two could be subtracted"):
            run(load(of_records(tmp_path, *tables)))
    assert not (tmp_path / "bundle").exists()


def test_a_coarser_table_beside_the_same_other_attributes_is_published(tmp_path: Path) -> None:
    run(load(of_records(tmp_path, FINE, '["place@region", "sector"]')))
    assert {sector for _, sector in shown(tmp_path, "t0")} == {sector for _, sector in shown(tmp_path, "t1")}


JOBS = """
[release]
title = "Jobs"
period = "2025"
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
public = ["place", "enterprise", "owner"]

[data.attributes]
place = { codes = ["p", "q", "r"], levels = { region = { N = ["p", "q"], S = ["r"] } } }
"place@region" = {}

"""


def of_jobs(folder: Path, *levels: str) -> Path:
    """Three enterprises with an establishment in each of three places; all establishments of p have one owner."""
    names = [f"{place}{at}" for place in "pqr" for at in range(3)]
    columns = {"workplace": names, "place": [name[0] for name in names], "enterprise": [name[1] for name in names]}
    columns["owner"] = ["P" if name[0] == "p" else name for name in names]
    pq.write_table(pa.table(columns), folder / "workplaces.parquet")
    jobs = [(name, f"{name}{at}") for name in names for at in range(2)]
    pq.write_table(
        pa.table({"workplace": [n for n, _ in jobs], "worker": [w for _, w in jobs]}), folder / "jobs.parquet"
    )
    text = JOBS
    for at, one in enumerate(levels):
        protect = f'protect = {{ method = "coarsening", minimum_units = 2, levels = {one} }}'
        text += f'[[table]]\nname = "t{at}"\ncount = "jobs"\nby = ["place"]\n{protect}\n'
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return folder / "release.toml"


def test_groups_are_judged_by_larger_units(tmp_path: Path) -> None:
    run(load(of_jobs(tmp_path, '["owner"]')))
    assert shown(tmp_path, "t0") == {("N",): 12, ("r",): 6}


def test_larger_units_that_cross_are_refused_where_codes_are_merged(tmp_path: Path) -> None:
    """Place p has three enterprises and one owner: judged by enterprises, of which there are fewest, it would pass."""
    with pytest.raises(SfumatoError, match="each lies in one of the largest"):
        run(load(of_jobs(tmp_path, '["enterprise", "owner"]')))
    assert not (tmp_path / "bundle").exists()


def test_tables_of_other_levels_are_refused_whichever_comes_first(tmp_path: Path) -> None:
    for levels in (("[]", '["owner"]'), ('["owner"]', "[]")):
        with pytest.raises(SfumatoError, match="the same `levels`"):
            run(load(of_jobs(tmp_path, *levels)))
    assert not (tmp_path / "bundle").exists()
