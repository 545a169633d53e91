"""Ranges through the whole house: classes instead of sensitive numbers, alike in all tables and releases."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.report.published import published_release
from sfumato.running import run
from sfumato.statistics.exact.assess import Seen, attacks
from tests.statistics.exact.records import release_file, write_records

NUMBER = 'number; count = "records"; by = ["place", "sector"]; totals = true'
REGIONS = 'regions; count = "records"; by = ["place@region", "sector"]; totals = true'
TOO = 'again; count = "records"; by = ["place", "sector"]'
TURNOVER = 'turnover; total = "turnover"; by = ["place", "sector"]; totals = true'
CLASSES = "classes = [1, 5, 10, 20, 50]"
RULES = f'method = "ranges", {CLASSES}, minimum_units = 3'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path)
    return tmp_path


def rows(folder: Path, name: str, release: str = "release") -> dict[tuple[str, str], dict[str, Any]]:
    table = pq.read_table(folder / f"{release}_bundle/tables/{name}.parquet").to_pylist()
    first, second = list(table[0])[:2]
    return {(row[first], row[second]): row for row in table}


def ends(found: dict[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int | None]]:
    return {codes: (row["low"], row["high"]) for codes, row in found.items()}


def test_sensitive_cells_and_some_beside_them_are_ranges_that_hold_the_truth(folder: Path) -> None:
    release = load(release_file(folder, [NUMBER], rules=RULES))
    with_numbers = {("C", "2"): 5, ("total", "total"): 56}
    run(release)
    found = rows(folder, "number")
    assert (found["A", "1"]["low"], found["A", "1"]["high"]) == (1, 4)
    ranges = {codes for codes, row in found.items() if row["value"] is None}
    assert ("A", "1") in ranges
    assert 4 <= len(ranges) < len(found) / 2  # a sum tells a single range
    assert {row["status"] for codes, row in found.items() if codes in ranges} == {"suppressed"}
    for codes, value in with_numbers.items():
        assert found[codes]["low"] <= value
        assert found[codes]["high"] is None or value <= found[codes]["high"]
        if codes not in ranges:
            assert found[codes]["value"] == found[codes]["low"] == found[codes]["high"] == value


def test_the_same_cell_has_the_same_range_in_all_tables(folder: Path) -> None:
    run(load(release_file(folder, [NUMBER, REGIONS], rules=RULES)))
    number, regions = ends(rows(folder, "number")), ends(rows(folder, "regions"))
    for sector in ("1", "2", "3", "total"):
        assert number["total", sector] == regions["total", sector]


def test_check_foresees_what_a_run_publishes(folder: Path) -> None:
    release = load(release_file(folder, [NUMBER], rules=RULES))
    foreseen = check(release).foreseen["number"]
    assert "shown as ranges" in foreseen.in_words()
    run(release)
    assert foreseen.sensitive == 1
    assert foreseen.withheld == sum(row["value"] is None for row in rows(folder, "number").values())


def test_attacks_find_nothing_and_find_a_range_that_is_narrowed(folder: Path) -> None:
    release = load(release_file(folder, [NUMBER, TURNOVER], rules=RULES))
    run(release)
    assert assess(release).report.exists()
    with published_release(release, lambda _: None) as found:
        tables = {one.name: one for one in found.plan.tables}
        batch = {name: (one, found.counted[name], found.given[name]) for name, one in tables.items()}
    assert [one.successes for one in attacks(Seen.of(batch))[:2]] == [0, 0]
    table, cells, answer = batch["number"]
    # One of the cells beside it is shown: the sums of its row and column tell the sensitive one.
    shown = answer["low"].copy(), answer["high"].copy(), answer["status"].copy()
    hidden = np.flatnonzero(answer["status"] == 1)
    sensitive = hidden[np.argmin(cells["count"][hidden])]
    for at in hidden[hidden != sensitive]:
        for end in shown[:2]:
            end[at] = cells["count"][at]
        shown[2][at] = 0
    broken = answer
    for column, values in zip(("low", "high", "status"), shown, strict=True):
        broken = broken.with_column(column, values)
    assert [one.successes for one in attacks(Seen.of({"number": (table, cells, broken)}))[:2]] == [1, 1]


def test_a_later_release_keeps_ranges_and_an_unlinked_one_is_refused(folder: Path) -> None:
    run(load(release_file(folder, [NUMBER], rules=RULES)))
    with pytest.raises(ReleaseError, match="earlier"):
        run(load(release_file(folder, [REGIONS], rules=RULES, name="unlinked")))
    run(load(release_file(folder, [REGIONS], rules=RULES, name="later", about='earlier = ["release.toml"]')))
    before, after = ends(rows(folder, "number")), ends(rows(folder, "regions", "later"))
    for sector in ("1", "2", "3", "total"):
        assert before["total", sector] == after["total", sector]
    both, other = '["release.toml", "later.toml"]', 'method = "ranges", classes = [1, 4, 10], minimum_units = 3'
    with pytest.raises(SfumatoError, match="same classes"):
        run(load(release_file(folder, [REGIONS], rules=other, name="crossed", about=f"earlier = {both}")))


def test_ranges_of_a_value_in_two_periods_are_the_same_apart_or_nested(folder: Path) -> None:
    found = []
    for period, rules in (("2025", RULES), ("2026", RULES.replace("= 3", "= 6"))):
        path = release_file(folder, [NUMBER], rules=rules, name=f"of{period}")
        path.write_text(path.read_text(encoding="utf-8").replace('"2025"', f'"{period}"'), encoding="utf-8")
        records = pq.read_table(folder / "records.parquet")
        pq.write_table(records.slice(0, len(records) - len(found)), folder / "records.parquet")
        run(load(path))
        found.append(ends(rows(folder, "number", f"of{period}")))
    assert found[0] != found[1]
    for codes, one in found[0].items():
        (low, high), (other, end) = one, found[1][codes]
        last, until = (float("inf") if at is None else at for at in (high, end))
        assert last < other or until < low or (low <= other and until <= last) or (other <= low and last <= until)


def test_everywhere_shows_no_number_but_zeros(folder: Path) -> None:
    rules = f'method = "ranges", {CLASSES}, everywhere = true'
    run(load(release_file(folder, [NUMBER], rules=rules)))
    found = rows(folder, "number")
    assert all(row["value"] is None for row in found.values())
    assert found["total", "total"]["high"] is None  # the last class has no end
    assert found["total", "total"]["low"] == 50


def test_width_makes_classes_and_weights_are_rounded_into_them(folder: Path) -> None:
    rules = 'method = "ranges", width = 2, minimum_count = 3, dominance = [[1, 75]]'
    run(load(release_file(folder, [NUMBER, TURNOVER], rules=rules, records='weight = "weight"')))
    number, turnover = rows(folder, "number"), rows(folder, "turnover")
    assert number["A", "1"]["value"] is None  # two records, whatever they stand for
    assert number["A", "1"]["low"] <= 2 <= number["A", "1"]["high"]
    low, high = turnover["B", "2"]["low"], turnover["B", "2"]["high"] + 1
    assert low <= 1155 < high
    assert low & (low - 1) == high & (high - 1) == 0  # classes are from one power of two to the next


def test_protected_zeros_lie_in_the_first_class(folder: Path) -> None:
    rules = 'method = "ranges", classes = [0, 5, 10, 100], zeros = "protected", minimum_units = 3'
    table = 'number; count = "records"; by = ["place", "sector"]; where = { sector = ["1", "2"] }'
    records = pq.read_table(folder / "records.parquet")
    kept = [row for row in records.to_pylist() if (row["place"], row["sector"]) != ("D", "2")]
    pq.write_table(pa.Table.from_pylist(kept), folder / "records.parquet")
    run(load(release_file(folder, [table], rules=rules)))
    assert ends(rows(folder, "number"))["D", "2"] == (0, 4)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ('method = "ranges", classes = [1, 5]', "everywhere"),
        ('method = "ranges", minimum_units = 3', "classes or width"),
        ('method = "ranges", classes = [2, 5], minimum_units = 3', "rising bounds"),
        ('method = "ranges", width = 1, minimum_units = 3', "width from"),
    ],
)
def test_options_that_make_no_ranges_are_refused(rules: str, words: str, folder: Path) -> None:
    with pytest.raises(SfumatoError, match=words):
        run(load(release_file(folder, [NUMBER], rules=rules)))


def test_what_cannot_be_proved_is_refused_before_anything_is_written(folder: Path) -> None:
    run(load(release_file(folder, [NUMBER], rules=RULES)))
    # The earlier range ends at 9, and the stricter rule asks for 20.
    stricter = RULES.replace("minimum_units = 3", "minimum_count = 20")
    with pytest.raises(SfumatoError, match="tell closer"):
        run(load(release_file(folder, [TOO], rules=stricter, name="later", about='earlier = ["release.toml"]')))
    assert not (folder / "later_bundle").exists()


def test_the_bundle_says_what_was_done(folder: Path) -> None:
    published = run(load(release_file(folder, [NUMBER], rules=RULES)))
    (table,) = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert table["rules"]["classes"] == [1, 5, 10, 20, 50]
    assert {"value", "status", "low", "high"} <= table["columns"].keys()
    statement = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert "the narrower one is all that both together tell" in statement
    with (published.bundle / "tables/number.csv").open(encoding="utf-8") as file:
        assert next(iter(csv.DictReader(file))).keys() >= {"low", "high", "status"}
