"""Rounding through the whole house: multiples of a base, whose sums hold in all tables of a release."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.errors import SfumatoError
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.statistics.exact.records import release_file, write_records

NUMBER = 'number; count = "records"; by = ["place", "sector"]; totals = true'
REGIONS = 'regions; count = "records"; by = ["place@region", "sector"]'
CONTROLLED = 'method = "rounding", base = 3'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path)
    return tmp_path


def rows(folder: Path, name: str) -> dict[tuple[str, str], dict[str, int]]:
    table = pq.read_table(folder / f"release_bundle/tables/{name}.parquet").to_pylist()
    first, second = list(table[0])[:2]
    return {(row[first], row[second]): row for row in table}


def test_controlled_rounding_is_next_to_the_truth_and_adds_up_in_all_tables(folder: Path) -> None:
    run(load(release_file(folder, [NUMBER, REGIONS], rules=CONTROLLED)))
    number, regions = rows(folder, "number"), rows(folder, "regions")
    for place in "ABCD":
        assert sum(number[place, sector]["value"] for sector in "123") == number[place, "total"]["value"]
    for sector in "123":
        for region, places in (("N", "AB"), ("S", "CD")):
            assert sum(number[place, sector]["value"] for place in places) == regions[region, sector]["value"]
    for row in number.values():
        assert row["value"] % 3 == 0
    assert number["C", "1"]["value"] in (3, 6)
    assert number["A", "1"]["value"] in (0, 3)
    assert number["C", "1"]["low"] <= 5 <= number["C", "1"]["high"]


def test_plain_rounding_takes_the_nearest(folder: Path) -> None:
    run(load(release_file(folder, [NUMBER], rules='method = "rounding", base = 3, form = "plain"')))
    number = rows(folder, "number")
    assert (number["C", "1"]["value"], number["C", "1"]["low"], number["C", "1"]["high"]) == (6, 5, 7)
    assert number["A", "1"]["value"] == 3


def test_random_rounding_needs_a_key_and_is_the_same_in_every_run(folder: Path) -> None:
    rules = 'method = "rounding", base = 5, form = "random"'
    with pytest.raises(SfumatoError, match="key file"):
        load(release_file(folder, [NUMBER], rules=rules))
    new_key(folder / "sfumato.key")
    release = load(release_file(folder, [NUMBER], rules=rules, about='key = "sfumato.key"'))
    assert run(release).charged == ("number",)
    assert run(release).unchanged
    assert all(row["value"] % 5 == 0 for row in rows(folder, "number").values())


def test_rules_are_proved_or_the_release_is_refused(folder: Path) -> None:
    with pytest.raises(SfumatoError, match="told closer"):
        run(load(release_file(folder, [NUMBER], rules='method = "rounding", base = 2, minimum_count = 6')))
    assert not (folder / "release_bundle").exists()
    run(load(release_file(folder, [NUMBER], rules='method = "rounding", base = 10, minimum_units = 3')))


def test_two_bases_for_one_measure_are_refused(folder: Path) -> None:
    other = 'regions; count = "records"; by = ["place@region"]; protect = { method = "rounding", base = 5 }'
    with pytest.raises(SfumatoError, match="one base"):
        run(load(release_file(folder, [NUMBER, other], rules=CONTROLLED)))


def test_weighted_totals_are_rounded_in_whole_units(folder: Path) -> None:
    total = 'turnover; total = "turnover"; by = ["place", "sector"]; totals = true'
    run(load(release_file(folder, [total], rules='method = "rounding", base = 10', records='weight = "weight"')))
    found = rows(folder, "turnover")
    for place in "ABCD":
        assert sum(found[place, sector]["value"] for sector in "123") == found[place, "total"]["value"]


def test_the_bundle_says_what_was_done_and_the_report_is_made(folder: Path) -> None:
    release = load(release_file(folder, [NUMBER], rules=CONTROLLED))
    published = run(release)
    (table,) = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert table["rules"]["base"] == 3
    assert "multiple of 3" in table["columns"]["value"]
    assert assess(release).report.exists()
