"""Attacks on true numbers find nothing that rules forbid, and what a pattern with one cell fewer leaves open."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.report.published import published_release
from sfumato.running import run
from sfumato.statistics.exact.assess import Seen, attacks, between_periods

HEAD = """
[release]
title = "{name}"
population = "businesses"
period = "{period}"
ledger = "{name}.sqlite"
bundle = "{name}"

[data]
records = {{ path = "{name}.parquet", unit = "business", levels = ["group"] }}

[data.attributes]
place = {{ codes = ["A", "B", "C", "D"] }}
sector = {{ codes = ["1", "2", "3"] }}
kind = {{ codes = ["x", "y", "z"] }}

[data.measures]
turnover = {{ unit = "dollars" }}

"""
SUPPRESSION = 'method = "suppression", minimum_units = 3, p = 15'
ROUNDING = 'method = "rounding", base = 10, minimum_units = 3'
RANGES = 'method = "ranges", classes = [1, 5, 10, 20, 50], minimum_units = 3'
NUMBER = 'count = "records"\nby = ["place", "sector"]\ntotals = true'
BY_PLACE = 'total = "turnover"\nby = ["place"]\ntotals = true'
ONLY_X = BY_PLACE + '\nwhere = { kind = ["x"] }'
LINEAR, EXACT, ALONE, FILTERS = "linear program (bounds", "linear program (exact", "lone contributor", "differencing"

Row = tuple[str, str, str, int]


def businesses() -> list[Row]:
    """Many in every cell, but two in A × 1, and in place A one alone that is not of kind x."""
    cells = [(place, sector) for place in "ABCD" for sector in "123"]
    rows = [(p, s, "x", 20 + 3 * at + ord(p) % 7) for p, s in cells for at in range(2 if (p, s) == ("A", "1") else 5)]
    rows += [(p, s, "yz"[at % 2], 10 + at) for p, s in cells if p != "A" for at in range(4)]
    return [*rows, ("A", "2", "y", 777)]


def publish(
    folder: Path,
    tables: Mapping[str, str],
    rules: str,
    *,
    rows: Iterable[Row] = (),
    name: str = "r",
    period: str = "2025",
) -> Any:
    """Write a small register and a release file, and run it."""
    folder = folder / name
    folder.mkdir()
    listed = list(rows) or businesses()
    columns = {key: [row[at] for row in listed] for at, key in enumerate(("place", "sector", "kind", "turnover"))}
    ids = {"business": [f"b{at}" for at in range(len(listed))], "group": [f"g{at}" for at in range(len(listed))]}
    pq.write_table(pa.table({**ids, **columns}), folder / f"{name}.parquet")
    text = HEAD.format(name=name, period=period)
    for table, keys in tables.items():
        text += f'[[table]]\nname = "{table}"\n{keys}\nprotect = {{ {rules} }}\n\n'
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    release = load(folder / f"{name}.toml")
    run(release)
    return release


def batch_of(release: Any) -> dict[str, tuple[Any, Any, Cells]]:
    with published_release(release, lambda _: None) as found:
        return {one.name: (one, found.counted[one.name], found.given[one.name]) for one in found.plan.tables}


def with_cell_shown(one: tuple[Any, Any, Cells], at: int) -> tuple[Any, Any, Cells]:
    """The same table with the true number of one cell."""
    table, cells, answer = one
    for column, value in (("status", 0), *((name, cells["count"][at]) for name in ("value", "low", "high"))):
        if column in answer.columns:
            changed = answer[column].copy()
            changed[at] = value
            answer = answer.with_column(column, changed)
    return table, cells, answer


def successes(batch: Mapping[str, Any]) -> dict[str, int]:
    return {one.attack: one.successes for one in attacks(Seen.of(batch))}


def of(found: Mapping[str, int], begins: str) -> int:
    return next(number for attack, number in found.items() if attack.startswith(begins))


@pytest.mark.parametrize("rules", [SUPPRESSION, ROUNDING, RANGES])
def test_intact_tables_tell_nothing_that_the_rules_forbid(tmp_path: Path, rules: str) -> None:
    more = {} if rules == ROUNDING else {"total": BY_PLACE, "only": ONLY_X}
    found = successes(batch_of(publish(tmp_path, {"number": NUMBER, **more}, rules)))
    forbidden = {attack: number for attack, number in found.items() if "closer than the rules allow" in attack}
    assert len(forbidden) == 1 + len(more) // 2 + (rules != ROUNDING)
    assert set(forbidden.values()) == {0}


def test_rounded_numbers_whose_difference_tells_one_business_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match="1 sensitive cells that are told closer"):
        publish(tmp_path, {"total": BY_PLACE, "only": ONLY_X}, ROUNDING)


@pytest.mark.parametrize("rules", [SUPPRESSION, RANGES])
def test_every_cell_of_a_ring_that_is_shown_opens_the_sensitive_one(tmp_path: Path, rules: str) -> None:
    release = publish(tmp_path, {"number": NUMBER}, rules)
    batch = batch_of(release)
    _, cells, answer = batch["number"]
    hidden = np.flatnonzero(answer["status"])
    assert len(hidden) == (4 if rules == SUPPRESSION else 6)
    for at in hidden:
        broken = successes({"number": with_cell_shown(batch["number"], int(at))})
        others = hidden[hidden != at]
        if rules == SUPPRESSION:  # what is left of the ring follows
            assert (of(broken, LINEAR), of(broken, EXACT)) == (1, len(others))
        elif cells["count"][at] < 3:
            assert of(broken, LINEAR) == 1


def test_a_rounded_number_beside_true_ones_is_found(tmp_path: Path) -> None:
    release = publish(tmp_path, {"number": NUMBER}, ROUNDING)
    one = batch_of(release)["number"]
    sensitive = int(np.flatnonzero((one[1]["count"] > 0) & (one[1]["count"] < 3))[0])
    for at in range(len(one[1])):
        if at != sensitive:
            one = with_cell_shown(one, at)
    assert of(successes({"number": one}), LINEAR) == 1


def published(folder: Path, table: str, name: str = "r") -> dict[str, int | None]:
    """What readers get, by place."""
    path = next((folder / name / name).rglob(f"{table}.parquet"))
    rows = pq.read_table(path).to_pylist()
    return {row["place"]: row["value"] for row in rows}


def test_no_difference_of_a_filtered_table_and_a_wider_one_tells_a_single_business(tmp_path: Path) -> None:
    # All businesses of A less those of kind x is one business with 777.
    release = publish(tmp_path, {"whole": BY_PLACE, "only": ONLY_X}, SUPPRESSION)
    whole, only = published(tmp_path, "whole"), published(tmp_path, "only")
    assert None in (whole["A"], only["A"])
    assert all(None not in (whole[place], only[place]) for place in "D")
    batch = batch_of(release)
    assert of(successes(batch), FILTERS) == 0
    for table, one in batch.items():
        for at in np.flatnonzero(one[2]["status"]):
            batch[table] = with_cell_shown(batch[table], int(at))
    broken = successes(batch)
    assert of(broken, LINEAR) == 0, "no cell of a table is sensitive"
    assert of(broken, FILTERS) >= 1


def test_filters_by_another_attribute_are_subtracted_too_and_weights_of_units_are_kept(tmp_path: Path) -> None:
    # Two steps of filters: y and z together are all but x, and z is what the narrower one leaves out.
    two = BY_PLACE + '\nwhere = { kind = ["x", "y"] }'
    release = publish(tmp_path, {"whole": BY_PLACE, "two": two, "only": ONLY_X}, SUPPRESSION)
    with published_release(release, lambda _: None) as found:
        cells = found.counted
    assert set(cells["only"].beyond) == {"whole", "two"}  # type: ignore[attr-defined]
    rest = cells["only"].beyond["whole"]  # type: ignore[attr-defined]
    assert rest["exact"][0] == 777
    assert rest["units_0"][0] == rest["units_1"][0] == 1
    assert rest["exact"][-1] == cells["whole"]["exact"][-1] - cells["only"]["exact"][-1]


def test_a_filter_of_an_attribute_of_the_table_has_a_total_of_what_it_keeps(tmp_path: Path) -> None:
    some = BY_PLACE + '\nwhere = { place = ["A", "B"] }'
    one = BY_PLACE + '\nwhere = { place = ["C"] }'
    publish(tmp_path, {"whole": BY_PLACE, "some": some, "one": one}, SUPPRESSION)
    assert published(tmp_path, "one")["total"] == published(tmp_path, "one")["C"]
    whole, part = published(tmp_path, "whole"), published(tmp_path, "some")
    assert (part["A"], part["B"]) == (whole["A"], whole["B"])
    if None not in (part["A"], part["B"]):
        assert part["total"] == part["A"] + part["B"]


def test_two_periods_in_which_little_changed_tell_together_what_each_hides(tmp_path: Path) -> None:
    rows = businesses()
    first = publish(tmp_path, {"number": NUMBER}, SUPPRESSION, name="first", period="2024")
    then, now = Seen.of(batch_of(first)), batch_of(first)
    (same,) = between_periods(Seen.of(now), then, 0.0)
    assert (same.targets, same.successes) == (2, 0), "the same pattern over nothing new"
    _, cells, answer = now["number"]
    hidden = np.flatnonzero(answer["status"])
    other = hidden[cells["count"][hidden] > 2]
    now["number"] = with_cell_shown(now["number"], int(other[0]))
    (told,) = between_periods(Seen.of(now), then, 0.0)
    assert (told.targets, told.successes, told.guessed) == (2, 2, 1), "one is told by its own period, one by the other"
    more = [*rows, *(("A", "1", "x", 30) for _ in range(4))]  # nothing is sensitive any more, and all is shown
    second = publish(tmp_path, {"number": NUMBER}, SUPPRESSION, rows=more, name="second", period="2025")
    assert assess(second, earlier=first).report.exists()
    (changed,) = between_periods(Seen.of(batch_of(second)), then, 10.0)
    assert changed.targets == 1


def test_the_report_has_all_attacks_with_the_reasons_in_words(tmp_path: Path) -> None:
    first = publish(tmp_path, {"number": NUMBER}, SUPPRESSION, name="first", period="2024")
    second = publish(tmp_path, {"number": NUMBER, "total": BY_PLACE, "only": ONLY_X}, SUPPRESSION, name="second")
    found = assess(second, earlier=first, change=5.0)
    page = found.report.read_text(encoding="utf-8")
    for words in (LINEAR, ALONE, "differencing between filters", "two periods", "All true numbers together"):
        assert words in page
    written = pq.read_table(found.report.with_name("number.parquet")).to_pylist()
    why = {(row["place"], row["sector"]): row["sensitive"] for row in written}
    for unit in ("business", "group"):
        assert f"fewer units than the minimum ({unit})" in why["A", "1"]
        assert f"fewer units than the minimum ({unit})" in page
    assert "total without only: a difference that no table shows" in page
    assert why["B", "1"] == ""
