"""Coarsening through the whole house: codes are merged until no cell is sensitive, alike in all tables."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.statistics.exact.records import release_file, write_records

RULES = 'method = "coarsening", minimum_units = 3'
NUMBER = 'number; count = "records"; by = ["place", "sector"]'
PLACES = 'places; count = "records"; by = ["place"]'
TURNOVER = 'turnover; total = "turnover"; by = ["place"]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path)
    return tmp_path


def written(folder: Path, tables: list[str], rules: str = RULES, **more: str) -> Path:
    path = release_file(folder, tables, rules=rules, **more)
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


def test_codes_without_records_are_zeros_and_not_merged(folder: Path) -> None:
    path = written(folder, [NUMBER])
    text = path.read_text(encoding="utf-8")
    assert '"C", "D"]' in text
    path.write_text(text.replace('"C", "D"]', '"C", "D", "E"]'), encoding="utf-8")
    run(load(path))
    found = rows(folder, "number")
    assert {place for place, _ in found} == {"N", "C", "D", "E"}
    assert [found["E", sector] for sector in "12"] == [0, 0]


def test_check_foretells_how_coarse_tables_will_be(folder: Path) -> None:
    found = check(load(written(folder, [f"{NUMBER}; totals = true"]))).foreseen["number"]
    # A and B are merged, and no sector is; with totals, these are four times four cells.
    assert found.figures() == {
        "cells": 16,
        "by": {"place": {"codes": 4, "alone": 2, "groups": 3}, "sector": {"codes": 3, "alone": 3, "groups": 3}},
    }
    assert "place 3 (2 of 4 codes alone)" in found.in_words()
    assert not (folder / "release_bundle").exists()


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


def test_tables_with_the_same_groups_have_one_cost(folder: Path) -> None:
    by_value = f'{PLACES}; protect = {{ {RULES}, cost = "value" }}'
    with pytest.raises(SfumatoError, match="the same `cost`"):
        check(load(written(folder, [NUMBER, by_value])))


def test_a_filter_by_what_a_table_is_by_is_refused(folder: Path) -> None:
    for where in ('sector = ["1"]', '"place@region" = ["N"]'):
        with pytest.raises(ReleaseError, match="a group of codes is shown as a whole"):
            run(load(written(folder, [f"{NUMBER}; where = {{ {where} }}"])))


def test_a_filtered_table_has_groups_at_which_it_and_the_rest_pass(folder: Path) -> None:
    # By place all have at least three. Of sector 1, A has two: A and B are merged in both tables.
    run(load(written(folder, [PLACES, 'of_one; count = "records"; by = ["place"]; where = { sector = ["1"] }'])))
    assert rows(folder, "of_one") == {("N",): 7, ("C",): 5, ("D",): 5}
    assert {place for (place,) in rows(folder, "places")} == {"N", "C", "D"}


def test_places_by_themselves_pass(folder: Path) -> None:
    run(load(written(folder, [PLACES])))
    assert {place for (place,) in rows(folder, "places")} == set("ABCD")


def test_what_is_left_beside_a_filter_is_no_less_safe(folder: Path) -> None:
    # All places have many in sectors 2 and 3 together; all of A less these are the two of sector 1.
    run(load(written(folder, [PLACES, 'rest; count = "records"; by = ["place"]; where = { sector = ["2", "3"] }'])))
    found, rest = rows(folder, "places"), rows(folder, "rest")
    assert found.keys() == rest.keys() == {("N",), ("C",), ("D",)}
    assert all(found[place] - rest[place] >= 3 for place in found)


def test_what_three_tables_tell_together_is_no_less_safe(folder: Path) -> None:
    records = pq.read_table(folder / "records.parquet").to_pylist()
    last = [at for at, row in enumerate(records) if (row["place"], row["sector"]) == ("D", "3")]
    kept = [row for at, row in enumerate(records) if at not in last[2:] and row["place"] in "CD"]
    pq.write_table(pa.Table.from_pylist(kept), folder / "records.parquet")
    filtered = [f'of_{at}; count = "records"; by = ["place"]; where = {{ sector = ["{at}"] }}' for at in "12"]
    none = {("A",): 0, ("B",): 0}
    # D less its sectors 1 and 2 are the two of sector 3, which no two of the tables tell.
    for at, some in enumerate(filtered):
        (folder / str(at)).mkdir()
        pq.write_table(pa.Table.from_pylist(kept), folder / str(at) / "records.parquet")
        run(load(written(folder / str(at), [PLACES, some])))
        assert rows(folder / str(at), "places") == {**none, ("C",): 15, ("D",): 12}
    run(load(written(folder, [PLACES, *filtered])))
    places, *others = (rows(folder, name) for name in ("places", "of_1", "of_2"))
    assert places == {**none, ("S",): 27}
    assert [found["S",] for found in others] == [10, 10]


def test_cells_that_are_known_not_to_be_empty_have_one_at_least(folder: Path) -> None:
    # Of three sectors that one table adds up, A has one business each: nobody who knows that none is empty is misled.
    cells = {("A", "1"): 1, ("A", "2"): 1, ("A", "3"): 1, ("A", "4"): 5, ("A", "5"): 5} | {("B", s): 5 for s in "12345"}
    some = [{"place": place, "sector": sector} for (place, sector), number in cells.items() for _ in range(number)]
    records = [{"business": str(at), "turnover": 10, **row} for at, row in enumerate(some)]
    pq.write_table(pa.Table.from_pylist(records), folder / "records.parquet")
    sums = ('["1", "2", "3"]', '["1", "4"]', '["2", "5"]')
    tables = [f'of_{at}; count = "records"; by = ["place"]; where = {{ sector = {of} }}' for at, of in enumerate(sums)]
    path = written(folder, tables)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('codes = ["1", "2", "3"]', 'codes = ["1", "2", "3", "4", "5"]'), encoding="utf-8")
    run(load(path))
    assert rows(folder, "of_0") == {("N",): 18, ("C",): 0, ("D",): 0}


def test_totals_are_published_of_groups_and_add_up(folder: Path) -> None:
    run(load(written(folder, [f"{NUMBER}; totals = true"])))
    found = rows(folder, "number")
    places = {place for place, _ in found}
    assert places == {"N", "C", "D", "total"}
    assert found["total", "total"] == 56
    for place in places:
        assert found[place, "total"] == sum(found[place, sector] for sector in "123")
    for sector in "123":
        assert found["total", sector] == sum(found[place, sector] for place in ("N", "C", "D"))


def test_weighted_groups_are_judged_by_true_contributions(folder: Path) -> None:
    rules = 'method = "coarsening", dominance = [[1, 75]]'
    run(load(written(folder, [TURNOVER], rules=rules, records='weight = "weight"')))
    found, weighted = rows(folder, "turnover"), {}
    for row in pq.read_table(folder / "records.parquet").to_pylist():
        weighted[row["place"]] = weighted.get(row["place"], 0) + row["turnover"] * row["weight"]
    for (place,), value in found.items():
        assert value == int(sum(weighted[code] for code in {"N": "AB", "S": "CD"}.get(place, place)) + 0.5)
    with pytest.raises(ReleaseError, match="minimum_units"):
        run(load(written(folder, [NUMBER], 'method = "coarsening", minimum_count = 3', records='weight = "weight"')))


def test_it_can_be_run_again_and_assessed(folder: Path) -> None:
    release = load(written(folder, [NUMBER]))
    run(release)
    assert run(release).unchanged
    page = assess(release).report.read_text(encoding="utf-8")
    assert "9 of 9 cells of groups of codes that are not zero are published" in page
