"""Rounding through the whole house: multiples of a base, whose sums hold in all tables of a release."""

import json
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.arrays import Integers, Words
from sfumato.checking import check
from sfumato.errors import SfumatoError
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.exact import rounded
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


@pytest.mark.parametrize("first", [0, 1])
def test_rules_are_proved_whichever_table_states_them(folder: Path, first: int) -> None:
    tables = [f"{table}; protect = {{ {CONTROLLED} }}" for table in (NUMBER, REGIONS)]
    tables[first] = tables[first].replace("base = 3", "base = 3, minimum_units = 60")
    with pytest.raises(SfumatoError, match="told closer"):
        run(load(release_file(folder, tables)))
    assert not (folder / "release_bundle").exists()


@pytest.mark.parametrize("down", [0, 1])
def test_a_cell_that_two_tables_round_by_chance_is_what_both_numbers_leave(
    folder: Path, down: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = count()

    def drawn(value: Integers, base: int, words: Words) -> Integers:  # noqa: ARG001 (chance is played here)
        found = value // base * base + base * (value % base > 0)
        found[-1] -= base * (next(turns) == down)  # the total of all, which both tables have
        return found

    monkeypatch.setattr(rounded, "random_rounding", drawn)
    new_key(folder / "sfumato.key")
    rules = 'method = "rounding", base = 16, form = "random", minimum_units = 16'
    tables = [f'{name}; count = "records"; by = ["{name}"]; totals = true' for name in ("place", "sector")]
    register = pq.read_table(folder / "records.parquet").slice(0, 15)  # from 1 to 31 by 16, and up to 15 by 0
    register = register.set_column(2, "place", pa.array(["A"] * 15)).set_column(3, "sector", pa.array(["1"] * 15))
    pq.write_table(register, folder / "records.parquet")
    with pytest.raises(SfumatoError, match="told closer"):
        run(load(release_file(folder, tables, rules=rules, about='key = "sfumato.key"')))
    drawn_alike = release_file(folder, tables, rules=rules, about='key = "sfumato.key"')
    assert run(load(drawn_alike)).charged == ("place", "sector")  # both up


@pytest.mark.parametrize("form", ["plain", "random"])
def test_rules_are_proved_beside_numbers_that_were_published_before(folder: Path, form: str) -> None:
    new_key(folder / "sfumato.key")
    rules = f'method = "rounding", base = 20, form = "{form}", minimum_units = 3'
    key = 'key = "sfumato.key"'
    places = 'places; count = "records"; by = ["place"]; totals = true'
    run(load(release_file(folder, [places], rules=rules, about=key)))
    sectors = ['sectors; count = "records"; by = ["sector"]; totals = true']
    later = release_file(folder, sectors, name="later", rules=rules, about=f'{key}\nearlier = ["release.toml"]')
    assert run(load(later)).charged == ("sectors",)


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


def test_a_weighted_number_is_no_farther_from_the_truth_than_is_told(folder: Path) -> None:
    cells = [(place, sector) for place in "ABCD" for sector in "123"]
    columns = {"business": [f"b{at}" for at in range(12)], "weight": [4.55] * 12}  # 54.6 in all: 11 cells go up
    columns |= {"place": [place for place, _ in cells], "sector": [sector for _, sector in cells]}
    pq.write_table(pa.table(columns), folder / "records.parquet")
    path = release_file(folder, [NUMBER], rules='method = "rounding", base = 5', records='weight = "weight"')
    path.write_text(path.read_text(encoding="utf-8").replace('[data.measures]\nturnover = { unit = "dollars" }', ""))
    published = run(load(path))
    found = [row for (place, sector), row in rows(folder, "number").items() if "total" not in (place, sector)]
    assert [row["value"] for row in found].count(0) == 1
    assert all(row["low"] <= 4.55 <= row["high"] for row in found)
    (table,) = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert table["rounding"] == {"zero_restricted": True, "at_most": 5, "beyond": 0}
    assert assess(load(path)).report.exists()


@pytest.mark.parametrize("form", ["plain", "controlled"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rules_are_proved_of_halves_that_went_up_and_of_parts_of_units(form: str, weighted: bool, folder: Path) -> None:
    records = 'weight = "weight"' if weighted else ""
    rules = f'method = "rounding", base = 10, form = "{form}", minimum_units = 3'
    run(load(release_file(folder, [NUMBER], rules=rules, records=records)))
    number = rows(folder, "number")["C", "1"]  # 5 records: halfway
    assert number["value"] in (0, 10)
    if form == "plain" and not weighted:
        assert (number["low"], number["value"], number["high"]) == (5, 10, 14)


def test_the_bundle_says_what_was_done_and_the_report_is_made(folder: Path) -> None:
    release = load(release_file(folder, [NUMBER], rules=CONTROLLED))
    published = run(release)
    (table,) = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert table["rules"]["base"] == 3
    assert "multiple of 3" in table["columns"]["value"]
    assert assess(release).report.exists()


def test_where_no_rounding_is_next_to_the_truth_the_bundle_says_how_many_are_not_and_how_far(tmp_path: Path) -> None:
    # Rounded to 2, every plane has one of its two ones up, which no choice among all four ones does for all planes.
    ones = [("a", "c", "e"), ("a", "d", "f"), ("b", "c", "f"), ("b", "d", "e")]
    columns = {name: [one[at] for one in ones] for at, name in enumerate(("first", "second", "third"))}
    pq.write_table(pa.table({"business": list("1234"), **columns}), tmp_path / "records.parquet")
    by = '["first", "second", "third"]'
    path = release_file(
        tmp_path, [f'number; count = "records"; by = {by}; totals = true'], rules='method = "rounding", base = 2'
    )
    text = path.read_text(encoding="utf-8")
    begin, end = text.index("[data.attributes]"), text.index("[[table]]")
    codes = "".join(f"{name} = {{ codes = {sorted(set(column))} }}\n" for name, column in columns.items())
    path.write_text(f"{text[:begin]}[data.attributes]\n{codes}\n{text[end:]}", encoding="utf-8")
    foretold = check(load(path)).foreseen["number"]
    published = run(load(path))
    true = {}
    for one in ones:
        for kept in range(8):
            cell = tuple(code if kept >> at & 1 else "total" for at, code in enumerate(one))
            true[cell] = true.get(cell, 0) + 1
    table = pq.read_table(tmp_path / "release_bundle/tables/number.parquet").to_pylist()
    off = [abs(row["value"] - true.get((row["first"], row["second"], row["third"]), 0)) for row in table]
    even = [true.get((row["first"], row["second"], row["third"]), 0) % 2 == 0 for row in table]
    beyond = sum(distance >= 2 or (exact and distance > 0) for distance, exact in zip(off, even, strict=True))
    assert beyond > 0
    (about,) = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    assert about["rounding"] == {"zero_restricted": False, "at_most": 3, "beyond": beyond}
    assert foretold.figures() == {"cells": 27, "beyond": beyond, "at_most": 3}
    assert f"{beyond} of 27 numbers would not be next to the true ones" in foretold.in_words()
    assert all(row["low"] <= row["value"] <= row["low"] + 3 <= row["high"] + 3 for row in table)
    words = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert f"{beyond} of 27 numbers of this table are farther away, none by more than 3" in words
    run(load(path), replace=True)
    assert (published.bundle / "statement.md").read_text(encoding="utf-8") == words
