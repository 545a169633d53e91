"""True numbers through the whole house: what is withheld, and what later releases may not tell."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy.optimize import linprog

from sfumato.checking import check
from sfumato.cli.release import assessment_summary
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import keep_answer, run
from tests.statistics.exact.records import release_file, write_records

TURNOVER = 'turnover; total = "turnover"; by = ["place", "sector"]; totals = true'
NUMBER = 'number; count = "records"; by = ["place", "sector"]'
REGIONS = 'regions; total = "turnover"; by = ["place@region", "sector"]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path)
    return tmp_path


def rows(folder: Path, name: str, bundle: str = "release_bundle") -> dict[tuple[str, ...], int | None]:
    """The published values by their codes; None where one is withheld."""
    table = pq.read_table(folder / bundle / "tables" / f"{name}.parquet").to_pylist()
    dimensions = [key for key in table[0] if key not in ("value", "status", "low", "high", "establishments")]
    for row in table:
        assert (row.get("status", "") == "suppressed") == (row["value"] is None)
    return {tuple(row[key] for key in dimensions): row["value"] for row in table}


def interval(found: dict[tuple[str, ...], int | None], cell: tuple[str, str]) -> tuple[float, float]:
    """A reader's bounds of one cell of a table with totals, by an independent solver."""
    cells = list(found)
    place = {cell: at for at, cell in enumerate(cells)}
    sums = []
    for places, sectors in ((p, s) for p in [*"ABCD", "total"] for s in [*"123", "total"]):
        if places == "total":
            sums.append(([(p, sectors) for p in "ABCD"], (places, sectors)))
        if sectors == "total":
            sums.append(([(places, s) for s in "123"], (places, sectors)))
    matrix = np.zeros((len(sums), len(cells)))
    for number, (parts, whole) in enumerate(sums):
        matrix[number, [place[part] for part in parts]] = 1
        matrix[number, place[whole]] -= 1
    known = [(value, value) if value is not None else (0, None) for value in found.values()]
    ends = []
    for sign in (1, -1):
        cost = np.zeros(len(cells))
        cost[place[cell]] = sign
        solved = linprog(cost, A_eq=matrix, b_eq=np.zeros(len(sums)), bounds=known)
        ends.append(np.inf if solved.status == 3 else abs(solved.fun))
    return ends[0], ends[1]


def test_sensitive_cells_are_withheld_and_nothing_published_tells_them(folder: Path) -> None:
    run(load(release_file(folder, [TURNOVER])))
    found = rows(folder, "turnover")
    assert found["A", "1"] is None  # two businesses
    assert found["B", "2"] is None  # one of them has nearly all
    assert sum(value is None for value in found.values()) <= 6
    low, high = interval(found, ("A", "1"))
    assert low <= 90 - 40 * 0.15 - 1 + 1e-6 or low == 0
    assert high >= 91
    low, high = interval(found, ("B", "2"))
    assert low <= 925 - (0.15 * 900 - 15) + 1e-6
    assert high >= 925 + (0.15 * 900 - 15) - 1e-6


def test_numbers_that_are_known_to_be_no_zeros_do_not_hide_that_all_of_them_are_one(folder: Path) -> None:
    register = pq.read_table(folder / "records.parquet")
    places = [*["A"] * (len(register) - 3), "B", "C", "D"]
    changed = register.set_column(register.schema.get_field_index("place"), "place", pa.array(places))
    pq.write_table(changed, folder / "records.parquet")
    table = 'number; count = "records"; by = ["place"]; totals = true'
    run(load(release_file(folder, [table], rules='method = "suppression", minimum_units = 2')))
    found = rows(folder, "number")
    assert [found[place,] for place in "BCD"] == [None, None, None]
    assert found["A",] is None or found["total",] is None  # else three numbers, none of them zero, add up to three


def test_published_values_are_true_and_add_up(folder: Path) -> None:
    run(load(release_file(folder, [TURNOVER, NUMBER])))
    found, number = rows(folder, "turnover"), rows(folder, "number")
    assert number["C", "1"] == 5
    assert number["A", "1"] is None
    assert found["C", "1"] == sum(20 + 3 * at + ord("C") % 7 for at in range(5))


def test_levels_and_tables_by_fewer_attributes_are_one_system(folder: Path) -> None:
    plain = [TURNOVER, REGIONS, 'sectors; total = "turnover"; by = ["sector"]']
    run(load(release_file(folder, plain)))
    found, regions = rows(folder, "turnover"), rows(folder, "regions")
    for region, places in (("N", "AB"), ("S", "CD")):
        for sector in "123":
            parts = [found[place, sector] for place in places]
            if parts.count(None) == 1:  # one withheld cell and its sum would tell it
                assert regions[region, sector] is None


def test_a_filter_is_a_part_of_the_table_it_filters(folder: Path) -> None:
    filtered = 'north; total = "turnover"; by = ["sector"]; where = { place = ["A", "B"] }'
    run(load(release_file(folder, ['turnover; total = "turnover"; by = ["place", "sector"]', filtered])))
    found, north = rows(folder, "turnover"), rows(folder, "north")
    for sector in "123":
        if [found["A", sector], found["B", sector]].count(None) == 1:
            assert north[sector,] is None


@pytest.mark.parametrize("kept", [True, False])
def test_weights_say_whether_totals_and_which_tables_are_kept(kept: bool, folder: Path) -> None:
    few, dear = 'method = "suppression", minimum_units = 3', 100 if kept else 0.01
    alone = 'alone; count = "records"; by = ["sector"]; where = { place = "A" }; totals = true'
    run(load(release_file(folder, [alone], name="alone", rules=f"{few}, total_weight = {dear}")))
    found = rows(folder, "alone", "alone_bundle")
    assert found["1",] is None
    assert (found["total",] is not None) == kept
    folder = folder / "other"
    folder.mkdir()
    write_records(folder)
    places = f'places; count = "records"; by = ["place"]; protect = {{ {few}, weight = {dear} }}'
    run(load(release_file(folder, [NUMBER, places], rules=few)))
    assert (rows(folder, "places")["A",] is not None) == kept
    assert (list(rows(folder, "number").values()).count(None) > 1) == kept
    rules = json.loads((folder / "release_bundle/structure.json").read_text(encoding="utf-8"))["tables"][1]["rules"]
    assert rules["weight"] == dear


def test_the_same_question_gets_the_same_answer_and_costs_nothing(folder: Path) -> None:
    release = load(release_file(folder, [TURNOVER]))
    first = run(release)
    assert first.charged == ("turnover",)
    assert first.balance is None
    again = run(release)
    assert again.charged == ()
    assert again.unchanged


def test_true_numbers_that_are_not_linked_to_earlier_ones_are_refused(folder: Path) -> None:
    run(load(release_file(folder, [TURNOVER])))
    later = load(release_file(folder, [REGIONS], name="later"))
    with pytest.raises(ReleaseError, match="'turnover' of release") as caught:
        run(later)
    assert "earlier" in caught.value.do
    assert not (folder / "later_bundle").exists()
    with pytest.raises(ReleaseError, match="linked"):
        check(later)


def test_a_later_release_does_not_tell_what_an_earlier_one_withheld(folder: Path) -> None:
    run(load(release_file(folder, ['turnover; total = "turnover"; by = ["place", "sector"]'])))
    found = rows(folder, "turnover")
    run(load(release_file(folder, [REGIONS], name="later", about='earlier = ["release.toml"]')))
    regions = rows(folder, "regions", "later_bundle")
    assert rows(folder, "turnover") == found
    for region, places in (("N", "AB"), ("S", "CD")):
        for sector in "123":
            parts = [found[place, sector] for place in places]
            assert (regions[region, sector] is None) == (parts.count(None) == 1 or regions[region, sector] is None)
            if parts.count(None) == 1:
                assert regions[region, sector] is None
            if parts.count(None) == 0:  # a sum that everybody can make
                assert regions[region, sector] == sum(part or 0 for part in parts)


def test_a_table_more_in_the_same_release_leaves_what_was_published(folder: Path) -> None:
    run(load(release_file(folder, ['turnover; total = "turnover"; by = ["place", "sector"]'])))
    found = rows(folder, "turnover")
    run(load(release_file(folder, ['turnover; total = "turnover"; by = ["place", "sector"]', REGIONS])))
    assert rows(folder, "turnover") == found


def test_one_holding_under_several_businesses_counts_as_one(folder: Path) -> None:
    asked = 'number; count = "records"; by = ["place", "sector"]'
    rules = 'method = "suppression", minimum_units = 3'
    run(load(release_file(folder, [asked], rules=rules)))
    businesses = rows(folder, "number")
    other = folder / "groups"
    other.mkdir()
    write_records(other)
    run(load(release_file(other, [asked], rules=rules, records='levels = ["group"]')))
    groups = rows(other, "number")
    assert businesses["B", "2"] == 4
    assert groups["B", "2"] is None  # four businesses of two groups
    assert groups["A", "1"] is None


def test_who_did_not_ask_for_protection_makes_no_cell_sensitive(folder: Path) -> None:
    plain = check(load(release_file(folder, [TURNOVER]))).foreseen["turnover"]
    asked = check(load(release_file(folder, [TURNOVER], records='consent = "asked"'))).foreseen["turnover"]
    assert (plain.sensitive, asked.sensitive) == (2, 1)  # the large one in B × 2 did not


def test_weighted_totals_are_published_in_whole_units_and_linked(folder: Path) -> None:
    run(load(release_file(folder, [TURNOVER], records='weight = "weight"')))
    found = rows(folder, "turnover")
    for place in "ABCD":
        parts = [found[place, sector] for sector in "123"]
        whole = found[place, "total"]
        if None not in parts and whole is not None:
            assert abs(sum(part or 0 for part in parts) - whole) <= 2


def test_weighted_values_that_are_no_zeros_are_known_to_be_one_at_least(folder: Path) -> None:
    rows_of = [("A", 1, 2.0), ("B", 4, 1.0), *[("C", 10, 3.0), ("D", 10, 2.0)] * 9]
    names = ("place", "turnover", "weight")
    columns = {name: [row[at] for row in rows_of] for at, name in enumerate(names)}
    columns |= {"business": [f"b{at}" for at in range(len(rows_of))], "sector": ["1"] * len(rows_of)}
    pq.write_table(pa.table(columns), folder / "records.parquet")
    table = 'turnover; total = "turnover"; by = ["place"]; totals = true'
    rules = 'method = "suppression", dominance = [[1, 75]]'
    run(load(release_file(folder, [table], rules=rules, records='weight = "weight"')))
    found = rows(folder, "turnover")
    assert found["B",] is None  # 4, of which one business has 4: up to 5.33
    assert found["A",] == 2  # which cannot hide that, as it is no less than 1
    assert [found["C",], found["D",]].count(None) == 1


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ('method = "suppression"', "a rule"),
        ('method = "suppression", p = 120', "p ≤ 100"),
        ('method = "suppression", dominance = [[1]]', r"\[n, k\]"),
        ('method = "suppression", dominance = [[1.5, 60]]', "whole n"),
        ('method = "suppression", pq = [20, 10]', "p < q"),
        ('method = "suppression", p = 10, epsilon = 1', "neither alpha nor epsilon"),
        ('method = "suppression", p = 10, cost = "time"', "cells"),
        ('method = "suppression", p = 10, weight = 0', "weight from 0.001"),
        ('method = "suppression", p = 10, total_weight = 1001', "total_weight from 0.001 to 1,000"),
        ('method = "suppression", p = 10, minimum = 3', "an option of the method"),
    ],
)
def test_rules_that_make_no_sense_are_refused_before_anything_is_written(folder: Path, rules: str, words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        run(load(release_file(folder, [TURNOVER], rules=rules)))
    assert not (folder / "release_bundle").exists()


@pytest.mark.parametrize("more", ["", "; totals = true"])
def test_a_code_that_is_called_like_the_sum_of_all_is_refused(folder: Path, more: str) -> None:
    path = release_file(folder, [f'number; count = "records"; by = ["sector"]{more}'])
    path.write_text(
        path.read_text(encoding="utf-8").replace('codes = ["1", "2",', 'codes = ["total", "2",'), encoding="utf-8"
    )
    with pytest.raises(ReleaseError, match="names the sum of the others"):
        run(load(path))


def test_what_does_not_add_up_has_no_true_numbers(folder: Path) -> None:
    with pytest.raises(ReleaseError, match="add up"):
        run(load(release_file(folder, ['mean; mean = "turnover"; by = ["place"]'])))


def test_check_tells_how_much_would_be_withheld_and_writes_nothing(folder: Path) -> None:
    found = check(load(release_file(folder, [TURNOVER]))).foreseen["turnover"]
    assert found.sensitive == 2
    assert found.withheld >= 4
    assert not (folder / "release_bundle").exists()
    assert not (folder / "ledger.sqlite").exists()


def test_the_report_finds_nothing_that_the_rules_forbid_and_lists_why(folder: Path) -> None:
    release = load(release_file(folder, [TURNOVER, NUMBER]))
    run(release)
    assessment = assess(release)
    (together,) = assessment.together
    forbidden = [found for found in together.attacks if "closer than the rules allow" in found.attack]
    assert len(forbidden) == 2
    assert all(found.targets > 0 and found.successes == 0 for found in forbidden)
    cells = pq.read_table(assessment.report.with_name("turnover.parquet")).to_pylist()
    (one,) = (row for row in cells if (row["place"], row["sector"]) == ("A", "1"))
    assert "fewer units" in one["sensitive"]
    assert one["reader_low"] < one["true"] < one["reader_high"]
    assert any("fewer units" in why and int(cells) >= 1 for _, why, cells in together.reasons)


def test_the_report_says_what_is_withheld_and_draws_no_errors_of_true_numbers(folder: Path) -> None:
    release = load(release_file(folder, [TURNOVER]))
    run(release)
    assessment = assess(release)
    (usable,) = assessment.usability
    withheld = sum(value is None for cell, value in rows(folder, "turnover").items() if "total" not in cell)
    assert (usable.all.cells, usable.all.withheld) == (12, withheld)
    page = assessment.report.read_text(encoding="utf-8")
    assert f"{12 - withheld} of 12 cells that are not zero are published, with their true values" in page
    assert f"with {usable.all.value_withheld:.1%} of the dollars" in page
    assert "by chance" not in page, "true numbers are true on purpose"
    assert "Error by" not in page
    lines, told = assessment_summary(assessment)
    shown = Console(width=200, file=StringIO(), record=True)
    shown.print(lines)
    text = shown.export_text()
    assert f"{withheld} are withheld" in text
    assert "None forbids" in text
    assert [one["why"] for one in told["sensitive"]] == [why for _, why, _ in assessment.together[0].reasons]


def test_the_bundle_says_the_rules_in_fields_and_what_was_proved(folder: Path) -> None:
    published = run(load(release_file(folder, [TURNOVER])))
    structure = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))
    (table,) = structure["tables"]
    assert table["method"] == "suppression"
    assert table["guarantee"]["definition"] == "none"
    assert "fewer than 3 units contribute" in table["rules"]["sensitive"]
    statement = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert "no formal guarantee" in statement
    assert "linear programs" in statement
    for text in published.bundle.rglob("*.csv"):
        assert "sensitive" not in text.read_text(encoding="utf-8")


def test_true_numbers_and_permanent_factors_are_not_published_side_by_side(folder: Path) -> None:
    new_key(folder / "sfumato.key")
    tables = [TURNOVER, 'other; total = "turnover"; by = ["place"]; protect = { method = "top-contributors" }']
    with pytest.raises(ReleaseError, match="permanent factors"):
        run(load(release_file(folder, tables, about='key = "sfumato.key"')))


def test_what_was_withheld_in_another_period_is_withheld_again_where_it_serves(folder: Path) -> None:
    first = load(release_file(folder, [TURNOVER]))
    run(first)
    before = {cell for cell, value in rows(folder, "turnover").items() if value is None}
    table = pq.read_table(folder / "records.parquet").to_pydict()
    table["turnover"] = [value + at % 3 for at, value in enumerate(table["turnover"])]
    pq.write_table(pa.table(table), folder / "records.parquet")
    path = release_file(folder, [TURNOVER], name="next")
    path.write_text(path.read_text(encoding="utf-8").replace('period = "2025"', 'period = "2026"'), encoding="utf-8")
    run(load(path))
    after = {cell for cell, value in rows(folder, "turnover", "next_bundle").items() if value is None}
    assert after == before


@pytest.mark.parametrize(
    "rules", ['method = "suppression", minimum_units = 3, p = 15', 'method = "rounding", base = 7']
)
def test_a_run_that_is_killed_between_two_tables_is_finished_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rules: str
) -> None:
    release, kept = load(release_file(folder, [TURNOVER, REGIONS], rules=rules)), []

    def killed(*given: object, **named: object) -> str:
        if kept:
            raise KeyboardInterrupt
        kept.append(named["table"])
        return keep_answer(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.running.keep_answer", killed)
        with pytest.raises(KeyboardInterrupt):
            run(release)
    assert kept == ["turnover"]
    assert run(release).finished == ("regions",)
    whole, regions = rows(folder, "turnover"), rows(folder, "regions")
    for region, places in (("N", "AB"), ("S", "CD")):
        for sector in "123":
            parts = [whole[place, sector] for place in places]
            if None not in (*parts, regions[region, sector]):
                assert sum(part or 0 for part in parts) == regions[region, sector]
            assert [*parts, regions[region, sector]].count(None) != 1


def test_permanent_factors_are_not_told_by_true_numbers_of_another_release(folder: Path) -> None:
    new_key(folder / "sfumato.key")
    moved = 'moved; total = "turnover"; by = ["place"]; protect = { method = "top-contributors" }'
    run(load(release_file(folder, [TURNOVER])))
    with pytest.raises(ReleaseError, match="permanent factors"):
        run(load(release_file(folder, [moved], name="later", about='key = "sfumato.key"')))
    other = folder / "other"
    other.mkdir()
    write_records(other)
    new_key(other / "sfumato.key")
    run(load(release_file(other, [moved], about='key = "sfumato.key"')))
    with pytest.raises(ReleaseError, match="permanent factors"):
        run(load(release_file(other, [TURNOVER], name="later")))


def test_records_with_weights_are_counted_for_the_minimum_as_they_are(folder: Path) -> None:
    rules = 'method = "suppression", minimum_count = 3'
    run(load(release_file(folder, [NUMBER], rules=rules, records='weight = "weight"')))
    assert rows(folder, "number")["A", "1"] is None  # two records, which stand for more
