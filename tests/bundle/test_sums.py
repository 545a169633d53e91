"""Published tables added up: values are sums, errors and intervals follow from the noise of all cells."""

import json
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.bundle.manifest import MANIFEST
from sfumato.bundle.read import Bundle, select_rows
from sfumato.bundle.sums import PublishedCells, sum_figures
from sfumato.checking import checked
from sfumato.errors import SfumatoError
from sfumato.release import load
from sfumato.report.published import on_trial
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import Economy, generate
from tests.cli.call import call
from tests.conftest import write
from tests.golden.cases import FROZEN
from tests.release import people
from tests.running.same_draws import same_draws
from tests.series.office import QUARTERS, make_office

PARETO = '{ method = "smooth-pareto", epsilon = %s }'
HEAD = """
[release]
title = "Jobs"
period = "2025"
budget = { alpha = 0.1, epsilon = 20 }
%s

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes]
place = { codes = ["A", "B", "C"] }
industry = { codes = ["11", "62", "72"] }
sex = { codes = ["F", "M"] }
"""


def table(name: str, by: str, protect: str = PARETO % 2, more: str = "") -> str:
    return f'[[table]]\nname = "{name}"\ncount = "jobs"\nby = {by}\nprotect = {protect}\n{more}\n'


def published(folder: Path, *tables: str, head: str = "") -> Bundle:
    """A release of nine workplace cells of which one has no establishment."""
    folder.mkdir(exist_ok=True)
    cells = [(place, industry) for place in "ABC" for industry in ("11", "62", "72")][:8]
    sizes = [40, 3, 250, 12, 1, 90, 30, 7]
    write(
        folder / "workplaces.parquet",
        {
            "workplace": list(range(8)),
            "place": [place for place, _ in cells],
            "industry": [industry for _, industry in cells],
        },
    )
    workplaces = [number for number, size in enumerate(sizes) for _ in range(size)]
    write(folder / "jobs.parquet", {"worker": list(range(len(workplaces))), "workplace": workplaces})
    sexes = ["F" if worker % 3 else "M" for worker in range(len(workplaces))]
    write(folder / "workers.parquet", {"worker": list(range(len(workplaces))), "sex": sexes})
    (folder / "release.toml").write_text(HEAD % head + "\n".join(tables), encoding="utf-8")
    return sfumato.open_bundle(run(load(folder / "release.toml")).bundle)


BOTH = table("both", '["place", "industry"]')
BY_SEX = table("by_sex", '["place", "industry", "sex"]')


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return published(tmp_path_factory.mktemp("sums") / "release", BOTH, BY_SEX)


def rows_of(found: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_values_and_establishments_are_added_up(bundle: Bundle) -> None:
    cells = rows_of(bundle.rows("both"))
    found = bundle.select("both", ["place"])
    assert found.summed == ("industry",)
    assert found.rows.column_names == ["place", "value", "error", "low", "high", "establishments"]
    for row in rows_of(found.rows):
        inside = [cell for cell in cells if cell["place"] == row["place"]]
        assert row["value"] == sum(cell["value"] for cell in inside)
        assert row["establishments"] == sum(cell["establishments"] for cell in inside)
        assert max(cell["error"] for cell in inside) < row["error"] < sum(cell["error"] for cell in inside)
        assert row["low"] <= max(row["value"], 0) <= row["high"]
    (total,) = rows_of(bundle.rows("both", ()))
    assert total["value"] == sum(cell["value"] for cell in cells)
    assert total["establishments"] == 8


def test_a_sum_with_the_noise_of_one_cell_has_its_figures_and_one_without_any_is_exact(bundle: Bundle) -> None:
    (one,) = rows_of(bundle.rows("both", ["place"], where={"place": ["C"], "industry": ["62", "72"]}))
    (cell,) = rows_of(bundle.rows("both", where={"place": ["C"], "industry": ["62"]}))
    assert one == {name: number for name, number in cell.items() if name != "industry"}
    (empty,) = rows_of(bundle.rows("by_sex", ["place"], where={"place": ["C"], "industry": ["72"]}))
    assert empty == {"place": "C", "value": 0, "error": 0, "low": 0, "high": 0, "establishments": 0}


def test_noise_of_a_workplace_cell_is_known_from_all_its_cells_whatever_is_asked_for(bundle: Bundle) -> None:
    """The scale follows the whole workforce, which a filter on workers must not hide."""
    women = rows_of(bundle.rows("by_sex", ["place"], where={"sex": ["F"]}))
    every = {row["place"]: row for row in rows_of(bundle.rows("by_sex", ["place"]))}
    cells = rows_of(bundle.rows("by_sex"))
    for row in women:
        inside = [cell for cell in cells if cell["place"] == row["place"] and cell["sex"] == "F"]
        assert row["value"] == sum(cell["value"] for cell in inside)
        assert max(cell["error"] for cell in inside) <= row["error"] < every[row["place"]]["error"]
        assert row["establishments"] == every[row["place"]]["establishments"]


def test_a_table_that_has_the_same_figures_more_exactly_is_named(tmp_path: Path) -> None:
    better = published(
        tmp_path / "a", table("both", '["place", "industry"]', PARETO % 0.6), table("places", '["place"]', PARETO % 6)
    )
    found = better.select("both", ["place"])
    assert found.better is not None
    assert found.better.table == "places"
    mean = np.mean([row["error"] for row in rows_of(better.rows("places"))])
    assert found.better.error == pytest.approx(mean)
    assert found.better.error < found.better.instead_of
    text = call("query", better.folder, "both", "--by", "place").stdout
    assert "Table 'places' has the same figures with smaller errors" in " ".join(text.split())
    assert better.select("both", ["industry"]).better is None
    assert better.select("both", ["place"], where={"industry": ["11", "62"]}).better is None, "it has no such filter"
    worse = published(
        tmp_path / "b", table("both", '["place", "industry"]', PARETO % 6), table("places", '["place"]', PARETO % 0.6)
    )
    assert worse.select("both", ["place"]).better is None


def test_sums_of_agreed_values_agree_and_have_errors_of_what_was_measured(tmp_path: Path) -> None:
    found = published(
        tmp_path / "a",
        table("both", '["place", "industry"]', PARETO % 4),
        table("places", '["place"]', PARETO % 1),
        head="reconcile = true",
    )
    sums, places = rows_of(found.rows("both", ["place"])), rows_of(found.rows("places"))
    assert [row["value"] for row in sums] == [row["value"] for row in places]
    cells = rows_of(found.rows("both"))
    for row in sums:
        inside = [cell for cell in cells if cell["place"] == row["place"]]
        assert row["error"] < sum(cell["error"] for cell in inside)
        assert row["low"] <= max(row["value"], 0) <= row["high"]


def test_sums_of_values_that_were_raised_to_zero_say_so(tmp_path: Path) -> None:
    found = published(
        tmp_path / "a", table("both", '["place", "industry"]', PARETO % 0.5, "nonnegative = true")
    ).select("both", ["place"])
    assert any("come out too high" in note for note in found.notes)
    agreed = published(
        tmp_path / "b",
        table("both", '["place", "industry"]', PARETO % 0.5, "nonnegative = true"),
        table("places", '["place"]', PARETO % 4),
        head="reconcile = true",
    )
    said = [*agreed.select("both", ["place"]).notes, agreed.statement]
    assert sum("too high or too low" in text for text in said) == 2
    assert not any("come out too high, and by" in text or "come out too high:" in text for text in said)
    assert {row["low"] for row in rows_of(found.rows)} == {0}


def test_tables_that_tell_nothing_of_establishments_are_added_up(tmp_path: Path) -> None:
    found = published(tmp_path / "a", table("both", '["place", "industry"]', more="establishments = false"))
    rows = rows_of(found.rows("both", ["place"]))
    assert "establishments" not in rows[0]
    assert all(row["error"] > 0 for row in rows)


@pytest.mark.parametrize(
    "protect", ['{ method = "node-laplace", epsilon = 2 }', '{ method = "log-laplace", epsilon = 2 }']
)
def test_values_that_are_not_right_on_average_are_not_added_up(tmp_path: Path, protect: str) -> None:
    found = published(tmp_path / "a", table("both", '["place", "industry"]', protect))
    assert "noise" not in found.structure["tables"][0]
    with pytest.raises(SfumatoError, match="protects every cell by itself"):
        found.rows("both", ["place"])


def test_a_bundle_of_an_earlier_version_says_how_it_can_be_added_up() -> None:
    earlier = FROZEN / "earlier/folder/jobs_bundle"
    assert "noise" not in next(t for t in sfumato.open_bundle(earlier).structure["tables"] if t["name"] == "formal")
    with pytest.raises(SfumatoError, match="published again"):
        select_rows(earlier, "formal", ())


def test_the_command_gives_sums_as_a_screen_as_json_and_as_a_file(bundle: Bundle, tmp_path: Path) -> None:
    text = " ".join(call("query", bundle.folder, "both", "--by", "industry").stdout.split())
    assert "Values were added up over place. Every cell has noise of its own" in text
    file = tmp_path / "sums.csv"
    call("query", bundle.folder, "both", "--by", "industry", "--where", "place=A,B", "--csv", file)
    assert (
        file.read_text(encoding="utf-8").splitlines()[0] == '"industry","value","error","low","high","establishments"'
    )


@pytest.mark.slow
def test_periods_are_not_added_up_and_each_has_its_sums(tmp_path: Path) -> None:
    release = make_office(tmp_path)
    for quarter in QUARTERS[:2]:
        run(load(release, quarter))
    made = sfumato.open_bundle(load(release, QUARTERS[0]).bundle)
    about = next(one for one in made.structure["tables"] if one.get("noise") and len(one["dimensions"]) > 1)
    time, other = (dimension["name"] for dimension in about["dimensions"][:2])
    with pytest.raises(SfumatoError, match="a sum over periods"):
        made.rows(about["name"], [other])
    sums = made.rows(about["name"], [time])
    cells = made.rows(about["name"])
    for row in rows_of(sums):
        assert row["value"] == sum(cell["value"] for cell in rows_of(cells) if cell[time] == row[time])
        (alone,) = rows_of(made.version(f"{row[time]}-v1").rows(about["name"], [time]))
        assert alone == row


@pytest.mark.slow
def test_counts_of_people_are_added_up_and_other_figures_are_not(tmp_path: Path) -> None:
    made = sfumato.open_bundle(run(load(people.written(tmp_path))).bundle)
    cells = rows_of(made.rows("employment"))
    noise = next(one for one in made.structure["tables"] if one["name"] == "employment")["noise"]
    for row in rows_of(made.rows("employment", ["year", "title"])):
        inside = [cell for cell in cells if (cell["year"], cell["title"]) == (row["year"], row["title"])]
        assert row["value"] == sum(cell["value"] for cell in inside)
        assert inside[0]["error"] < row["error"] < sum(cell["error"] for cell in inside)
    assert noise["parameters"]["periods"] == 2
    with pytest.raises(SfumatoError, match="a sum over periods"):
        made.rows("employment", ["title"])
    for name in ("earnings", "scores", "percentiles"):
        with pytest.raises(SfumatoError, match="protects every cell by itself"):
            made.rows(name, ["title"], where={"at": made.rows(name)["at"].to_pylist()[:1]})


@pytest.mark.slow
def test_a_table_in_parts_is_added_up_as_in_one_piece(tmp_path: Path) -> None:
    found = published(tmp_path / "a", table("both", '["place", "industry", "sex"]', more="parts = 3"))
    cells = rows_of(found.rows("both"))
    for row in rows_of(found.rows("both", ["sex"], where={"place": ["A", "B"]})):
        inside = [cell for cell in cells if cell["sex"] == row["sex"] and cell["place"] != "C"]
        assert row["value"] == sum(cell["value"] for cell in inside)
        assert row["low"] <= max(row["value"], 0) <= row["high"]
    assert found.rows("both", ["place"], where={"place": ["C"], "industry": ["72"]}).num_rows == 0


# Whole economies, drawn many times.


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Economy:
    return generate(tmp_path_factory.mktemp("sums") / "economy", jobs=100_000)


@pytest.mark.slow
def test_intervals_of_sums_hold_in_an_economy_also_where_finer_tables_narrowed_errors(town: Economy) -> None:
    held: dict[tuple[str, str], list[np.ndarray]] = {}
    ratios: dict[tuple[str, str], list[np.ndarray]] = {}
    with checked(load(town.release)) as ready, same_draws():
        counted: list[Any] = []
        for _ in range(20):
            drawn = on_trial(ready, counted)
            for one in drawn.plan.tables:
                true, answer, shown = (of[one.name] for of in (drawn.counted, drawn.given, drawn.shown))
                figures = one.shown_figures(answer, shown)
                for dimension in (None, *(d.name for d in one.by)):
                    which = np.zeros(len(answer), dtype=np.int64) if dimension is None else answer.codes(dimension)
                    number = int(which.max()) + 1
                    cells = PublishedCells(
                        method=one.method,
                        cells=answer,
                        noisy=np.ones(len(answer), dtype=bool),
                        value=answer["value"],
                        agreed=False,
                        figures=figures,
                        places={},
                        chosen=np.ones(len(answer), dtype=bool),
                        establishments=None,
                        raised=False,
                        confidence=0.92 if one.name in drawn.plan.finer_tables else 0.9,
                    )
                    value, found = sum_figures(cells, which, number)
                    truth = np.bincount(which, true["count"], minlength=number)
                    inside = (found.low <= truth) & ((truth <= found.high) | np.isnan(found.high))
                    key = one.name, dimension or ""
                    held.setdefault(key, []).append(inside)
                    ratios.setdefault(key, []).append(np.abs(value - truth).sum() / found.error.sum())
    for where, draws in held.items():
        cover = np.concatenate(draws)
        assert cover.mean() >= 0.9 - 4 * np.sqrt(0.09 / len(cover)), where
        assert np.mean(ratios[where]) <= 1.25, where


# Up a level.

WITH_SECTORS = HEAD.replace(
    'industry = { codes = ["11", "62", "72"] }',
    'industry = { codes = ["11", "62", "72"], levels = { sector = { goods = ["11"], services = ["62", "72"] } } }',
)
SECTOR = {"11": "goods", "62": "services", "72": "services"}
SECTORS = table("sectors", '["industry@sector"]', PARETO % 8)


@pytest.fixture(scope="module")
def levelled(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("levels") / "release"
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "HEAD", WITH_SECTORS)
        return published(folder, BOTH, BY_SEX, SECTORS)


@pytest.mark.parametrize("level", ["industry@sector", "industry_sector", "sector", "industry@Sector"])
def test_a_level_above_a_dimension_has_the_sums_of_its_codes(levelled: Bundle, level: str) -> None:
    cells = rows_of(levelled.rows("both"))
    found = levelled.select("both", ["place", level])
    assert (found.summed, found.levels) == ((), {"industry": "industry_sector"})
    assert found.rows.column_names[:2] == ["place", "industry_sector"]
    assert len(found.rows) == 6
    for row in rows_of(found.rows):
        inside = [
            one for one in cells if (one["place"], SECTOR[one["industry"]]) == (row["place"], row["industry_sector"])
        ]
        assert row["value"] == sum(cell["value"] for cell in inside)
        assert row["establishments"] == sum(cell["establishments"] for cell in inside)
        assert max(cell["error"] for cell in inside) <= row["error"] <= sum(cell["error"] for cell in inside)
        if len(inside) == 1:
            assert row["high"] == inside[0]["high"], "the figures of the only cell"


def test_sums_up_a_level_are_those_of_the_codes_that_lie_in_it(levelled: Bundle) -> None:
    for kept in ({}, {"sex": ["F"]}, {"place": ["A", "B"]}):
        found = rows_of(levelled.rows("by_sex", ["sector"], where=kept))
        for row in found:
            level = row.pop("industry_sector")
            codes = [code for code, sector in SECTOR.items() if sector == level]
            (alone,) = rows_of(levelled.rows("by_sex", (), where={**kept, "industry": codes}))
            assert row == alone


def test_a_table_at_the_level_is_named_where_it_is_better(levelled: Bundle) -> None:
    found = levelled.select("both", ["industry@sector"])
    assert (found.summed, found.levels) == (("place",), {"industry": "industry_sector"})
    assert found.better is not None
    assert found.better.table == "sectors"
    shown = call("query", levelled.folder, "both", "--by", "industry@sector").stdout
    assert "Values were added up over place and from industry into industry_sector." in " ".join(shown.split())
    assert "Table 'sectors' has the same figures with smaller errors" in " ".join(shown.split())
    own = levelled.select("sectors", ["industry@sector"])
    assert (own.levels, own.rows.equals(levelled.rows("sectors"))) == ({}, True)


def test_codes_without_one_above_them_are_named_and_in_no_sum(levelled: Bundle, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    copytree(levelled.folder, folder)
    told = json.loads((folder / "structure.json").read_text())
    del told["hierarchies"][0]["parents"]["72"]
    (folder / "structure.json").write_text(json.dumps(told))
    listed = json.loads((folder / MANIFEST).read_text())
    content = (folder / "structure.json").read_bytes()
    listed["files"]["structure.json"] = {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    (folder / MANIFEST).write_text(json.dumps(listed))
    found = sfumato.open_bundle(folder).select("both", ["sector"])
    assert "In no sum, because the bundle has no code of industry_sector above them: industry 72." in found.notes
    services = next(row for row in rows_of(found.rows) if row["industry_sector"] == "services")
    (only,) = rows_of(levelled.rows("both", ["industry"], where={"industry": ["62"]}))
    assert services["value"] == only["value"]
    assert found.better is None, "the table of sectors has other figures"
    without = sfumato.open_bundle(folder).select("both", ["sector"], where={"industry": ["11", "62"]})
    assert not any("In no sum" in note for note in without.notes)


@pytest.mark.parametrize(
    ("by", "says"),
    [
        (["region"], "a level above one"),
        (["place@sector"], "a level above one"),
        (["industry", "sector"], "every dimension at one level"),
    ],
)
def test_levels_that_a_table_does_not_have_are_refused(levelled: Bundle, by: list[str], says: str) -> None:
    with pytest.raises(SfumatoError, match=says):
        levelled.select("both", by)
