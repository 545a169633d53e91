"""Attacks on coarsened tables find nothing that rules forbid, and what groups tell that were not made together."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cells import Cells
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.report.published import published_release
from sfumato.running import run
from sfumato.statistics.exact import coarsened
from sfumato.statistics.exact.assess_merged import SeenGroups, attacks, between_periods, merged_findings
from tests.cli.call import call
from tests.statistics.exact.records import release_file, write_records

RULES = 'method = "coarsening", minimum_units = 3'
NUMBER = 'number; count = "records"; by = ["place", "sector"]'
PLACES = 'places; count = "records"; by = ["place"]'
SECTORS = 'sectors; count = "records"; by = ["sector"]'
REST = 'rest; count = "records"; by = ["place"]; where = { sector = ["2", "3"] }'
TURNOVER = 'turnover; total = "turnover"; by = ["place"]'
EARLIER = 'earlier = ["release.toml"]'
LINEAR, EXACT, FILTERS = "linear program (bounds", "linear program (exact", "differencing between filters"
GROUPS = "differencing between coarsened releases"

Batch = dict[str, tuple[Any, Any, Cells]]


def written(folder: Path, tables: list[str], name: str = "release", rules: str = RULES, **more: str) -> Path:
    path = release_file(folder, tables, name=name, rules=rules, **more)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("sector = {", '"place@region" = {}\nsector = {', 1), encoding="utf-8")
    return path


def write_cells(folder: Path, cells: Mapping[tuple[str, str], int]) -> Path:
    """As many businesses as is said in every combination of a place and a sector."""
    folder.mkdir(exist_ok=True)
    rows = [key for key, number in cells.items() for _ in range(number)]
    ids = [str(at) for at in range(len(rows))]
    columns = {"place": [place for place, _ in rows], "sector": [sector for _, sector in rows]}
    turnover = pa.array([10] * len(rows))
    pq.write_table(pa.table({"business": ids, "turnover": turnover, **columns}), folder / "records.parquet")
    return folder


def write_corner(folder: Path) -> Path:
    """One business in A × 1, and nothing in B × 2: rows and columns of the cross together tell which it is."""
    return write_cells(folder, {("A", "1"): 1, ("A", "2"): 5, ("B", "1"): 5})


def published(path: Path) -> Batch:
    release = load(path)
    run(release)
    with published_release(release, lambda _: None) as found:
        return {one.name: (one, found.counted[one.name], found.given[one.name]) for one in found.plan.tables}


def with_cell_shown(batch: Batch, table: str, **codes: str) -> Batch:
    """The same with one cell shown beside the others; its value is read off the records."""
    one, cells, answer = batch[table]
    chosen = np.ones(len(answer), dtype=bool)
    for dimension in answer.dimensions:
        chosen &= answer.codes(dimension.name) == dimension.places[codes[dimension.name]]
    changed = answer["status"].copy()
    changed[chosen] = 0
    return {**batch, table: (one, cells, answer.with_column("status", changed))}


def successes(*releases: Batch) -> dict[str, int]:
    every = {name: one for batch in releases for name, one in batch.items()}
    return {one.attack: one.successes for one in attacks(SeenGroups.of_tables(every), releases)}


def of(found: Mapping[str, Any], begins: str) -> Any:
    return next(number for attack, number in found.items() if attack.startswith(begins))


@pytest.mark.parametrize(
    ("tables", "rules", "records"),
    [
        ([NUMBER, PLACES, SECTORS], RULES, ""),
        ([f"{NUMBER}; totals = true", TURNOVER], RULES, ""),
        ([PLACES, REST], RULES, ""),
        ([TURNOVER], 'method = "coarsening", dominance = [[1, 75]]', 'weight = "weight"'),
    ],
)
def test_intact_tables_tell_nothing_that_the_rules_forbid(
    tmp_path: Path, tables: list[str], rules: str, records: str
) -> None:
    write_records(tmp_path)
    batch = published(written(tmp_path, tables, rules=rules, records=records))
    found = merged_findings(batch, {}, 5.0)
    assert [one.successes for one in found.attacks] == [0] * (3 if REST in tables else 2)


def test_releases_made_without_knowing_of_each_other_are_subtracted(tmp_path: Path) -> None:
    one = published(written(write_corner(tmp_path / "one"), [NUMBER, SECTORS]))
    other = published(written(write_corner(tmp_path / "other"), [PLACES]))
    for alone in (one, other):
        assert set(successes(alone).values()) == {0}
    both = successes(one, other)
    assert (of(both, LINEAR), of(both, EXACT), of(both, GROUPS)) == (1, 1, 1)


def test_what_two_releases_hide_together_is_not_found(tmp_path: Path) -> None:
    """The same with businesses in the corner across: rows and columns leave the cell open."""
    cells = {("A", "1"): 1, ("A", "2"): 5, ("B", "1"): 5, ("B", "2"): 5}
    one = published(written(write_cells(tmp_path / "one", cells), [NUMBER, SECTORS]))
    other = published(written(write_cells(tmp_path / "other", cells), [PLACES]))
    found = attacks(SeenGroups.of_tables({**one, **other}), [one, other])
    assert [(one.targets, one.successes) for one in found] == [(1, 0)] * 3


@pytest.mark.parametrize("place", ["A", "B"])
def test_one_cell_of_a_merged_group_tells_the_other(tmp_path: Path, place: str) -> None:
    write_records(tmp_path)
    batch = published(written(tmp_path, [NUMBER, PLACES]))
    found = successes(with_cell_shown(batch, "number", place=place, sector="1"))
    assert (of(found, LINEAR), of(found, EXACT)) == (1, 1)
    assert of(successes(with_cell_shown(batch, "number", place=place, sector="3")), LINEAR) == 0


def test_groups_that_filtered_tables_split_tell_a_difference(tmp_path: Path) -> None:
    write_records(tmp_path)
    batch = published(written(tmp_path, [PLACES, REST]))
    broken = with_cell_shown(with_cell_shown(batch, "places", place="A"), "rest", place="A")
    found = successes(broken)
    assert (of(found, LINEAR), of(found, FILTERS)) == (1, 1)
    assert of(successes(with_cell_shown(batch, "rest", place="A")), LINEAR) == 0


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """What publishes a release as if nothing had been published before."""

    def publish(path: Path) -> None:
        knowing = coarsened.coarsened
        with monkeypatch.context() as patch:
            patch.setattr(coarsened, "coarsened", lambda batch, _known, *more: knowing(batch, {}, *more))
            run(load(path))

    return publish


def test_the_command_links_earlier_releases_and_finds_groups_that_cross(
    tmp_path: Path, apart: Callable[[Path], None]
) -> None:
    run(load(written(write_corner(tmp_path), [NUMBER, SECTORS])))
    later = written(tmp_path, [PLACES], "later", about=EARLIER)
    apart(later)
    told = json.loads(call("assess", later, "--json").stdout)
    rates = {one["attack"]: one["success_rate"] for one in told["together"]}
    assert of(rates, LINEAR) == of(rates, GROUPS) == 1
    page = (tmp_path / "later_bundle-confidential" / "report.html").read_text(encoding="utf-8")
    assert "by place, sector: what groups and filters tell apart" in page
    assert GROUPS in page


def test_a_later_release_with_the_groups_of_the_first_tells_nothing(tmp_path: Path) -> None:
    write_records(tmp_path)
    run(load(written(tmp_path, [NUMBER])))
    later = load(written(tmp_path, [REST], "later", about=EARLIER))
    run(later)
    (found,) = assess(later).together
    assert {one.successes for one in found.attacks} == {0}


def test_a_period_with_finer_groups_tells_what_another_merged(tmp_path: Path) -> None:
    cells = {(place, sector): 5 for place in "ABCD" for sector in "123"}
    few = write_cells(tmp_path / "few", cells | {("A", "1"): 2})
    first = published(written(few, [NUMBER]))
    many = write_cells(tmp_path / "many", cells)
    path = written(many, [NUMBER])
    path.write_text(path.read_text(encoding="utf-8").replace('"2025"', '"2026"', 1), encoding="utf-8")
    second = published(path)
    then, now = SeenGroups.of_tables(first), SeenGroups.of_tables(second)
    told = between_periods(now, then, 0.0)
    assert told is not None
    # B × 1 is as before, so that A × 1 was what N × 1 had more.
    assert (told.targets, told.successes, told.guessed) == (1, 1, 0)
    same = between_periods(then, then, 0.0)
    assert same is not None
    assert same.successes == 0
    found = assess(load(path), earlier=load(few / "release.toml"), change=1.0)
    (periods,) = [one for joint in found.together for one in joint.attacks if one.attack.startswith("two periods")]
    assert periods.successes == 1
