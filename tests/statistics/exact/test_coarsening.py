"""Coarsening through the whole house: codes are merged until no cell is sensitive, alike in all tables."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.statistics.exact.records import release_file, write_records

RULES = 'method = "coarsening", minimum_units = 3'
NUMBER = 'number; count = "records"; by = ["place", "sector"]'
TURNOVER = 'turnover; total = "turnover"; by = ["place"]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path)
    return tmp_path


def written(folder: Path, tables: list[str], rules: str = RULES) -> Path:
    path = release_file(folder, tables, rules=rules)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("sector = {", '"place@region" = {}\nsector = {', 1), encoding="utf-8")
    return path


def rows(folder: Path, name: str) -> dict[tuple[str, ...], int]:
    table = pq.read_table(folder / f"release_bundle/tables/{name}.parquet").to_pylist()
    keys = [key for key in table[0] if key not in ("value", "status")]
    assert all((row["status"] == "not available") == (row["value"] is None) for row in table)
    return {tuple(row[key] for key in keys): row["value"] for row in table if row["value"] is not None}


def test_places_with_a_sensitive_cell_become_their_region_and_others_stay(folder: Path) -> None:
    run(load(written(folder, [NUMBER])))
    found = rows(folder, "number")
    # A × 1 has two businesses: A and B are shown as N, C and D by themselves.
    assert {place for place, _ in found} == {"N", "C", "D"}
    assert found["N", "1"] == 7
    assert found["C", "1"] == 5
    assert sum(found.values()) == 56


def test_the_same_groups_serve_all_tables_and_codelists_name_them(folder: Path) -> None:
    published = run(load(written(folder, [NUMBER, 'places; count = "records"; by = ["place"]'])))
    assert {place for place, _ in rows(folder, "number")} == {place for (place,) in rows(folder, "places")}
    codes = (published.bundle / "codelists/place.csv").read_text(encoding="utf-8")
    assert "\nN," in codes
    assert "\nA," in codes


def test_dominance_merges_totals(folder: Path) -> None:
    run(load(written(folder, [TURNOVER], rules='method = "coarsening", dominance = [[1, 60]]')))
    assert set(rows(folder, "turnover")) == {("N",), ("C",), ("D",)} or len(rows(folder, "turnover")) < 4


def test_rules_that_nothing_meets_are_refused_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(SfumatoError, match="not even all together"):
        run(load(written(folder, [NUMBER], rules='method = "coarsening", minimum_units = 100')))
    assert not (folder / "release_bundle").exists()


def test_filters_are_refused(folder: Path) -> None:
    with pytest.raises(ReleaseError, match="all records"):
        run(load(written(folder, [NUMBER + '; where = { sector = ["1"] }'])))


def test_it_can_be_run_again_and_assessed(folder: Path) -> None:
    release = load(written(folder, [NUMBER]))
    run(release)
    assert run(release).unchanged
    assert assess(release).report.exists()
