"""Levels of attributes: asked for in `by`, published by name, and what adds up in a hierarchy adds up in the bundle."""

import csv
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from sfumato.checking import check, checked
from sfumato.errors import DataError, MethodError, ReleaseError
from sfumato.frame.codelists import CodelistFile
from sfumato.live.charged import open_charged
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.jobs import statistic as jobs

PLACES = [
    (state, f"{state}{county}", f"{state}{county}{place}") for state in "12" for county in "ab" for place in "xyz"
]
HEAD = """\
[release]
title = "Levels"
period = "2025"
reconcile = true
budget = {{ alpha = 0.1, epsilon = 30, definition = "individuals" }}

[data]
jobs = {{ path = "jobs.csv", workplace = "workplace", worker = "worker" }}
workplaces = {{ path = "workplaces.csv", key = "workplace" }}
workers = {{ path = "workers.csv", key = "worker" }}
public = ["place", "industry", "region"]

[data.attributes]
place = {{ codelist = {{ file = "places.csv", level = "place" }} }}
region = {{ codes = ["north", "south"] }}
{attributes}

[data.attributes.industry]
codes = ["01", "10", "62", "85"]
levels = {{ sector = {{ goods = ["01", "10"], services = ["62", "85"] }} }}

[data.attributes.age]
classes = {{ "0-29" = 0, "30-49" = 30, "50+" = 50 }}
empty = "unknown"
levels = {{ broad = {{ "0-49" = ["0-29", "30-49"], "50+" = ["50+"] }} }}
"""
LEVELS = """
[[table]]
name = "jobs"
count = "jobs"
by = ["place", "industry"]
levels = { place = ["state", "county", "place"], industry = ["total", "sector", "industry"] }
protect = { method = "laplace", epsilon = 9 }
"""
AGES = """
[[table]]
name = "ages"
count = "jobs"
by = ["place@county", "age"]
protect = { method = "laplace", epsilon = 1 }

[[table]]
name = "broad_ages"
count = "jobs"
by = ["region", "age@broad"]
protect = { method = "laplace", epsilon = 1 }
"""
PLAIN = """
[[table]]
name = "plain"
count = "jobs"
by = ["place", "industry"]
protect = { method = "laplace", epsilon = 1 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A register of 60 establishments, whose region follows from their place, and 300 jobs."""
    chance = Random(4)
    codes = dict.fromkeys((code, label, above) for path in PLACES for code, label, above in _listed(path))
    lines = [f"{code},Area {code},{above},{level}" for code, level, above in codes]
    _written(tmp_path / "places.csv", ["code,label,parent,level", *lines])
    region = {place: "north" if county.endswith("a") else "south" for _, county, place in PLACES}
    places = [chance.choice(PLACES)[2] for _ in range(60)]
    rows = [f"{n},{place},{chance.choice(['01', '10', '62', '85'])},{region[place]}" for n, place in enumerate(places)]
    _written(tmp_path / "workplaces.csv", ["workplace,place,industry,region", *rows])
    _written(tmp_path / "workers.csv", ["worker,age", *(f"{n},{chance.choice([17, 35, 61, ''])}" for n in range(300))])
    _written(tmp_path / "jobs.csv", ["worker,workplace", *(f"{n},{chance.randrange(60)}" for n in range(300))])
    return tmp_path


def _listed(path: tuple[str, str, str]) -> Iterator[tuple[str, str, str]]:
    yield from zip(path, ("state", "county", "place"), ("", *path), strict=False)


def _written(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def release_of(folder: Path, tables: str, attributes: str = "", name: str = "release") -> Path:
    path = folder / f"{name}.toml"
    text = HEAD.format(attributes=attributes).replace(
        "[data]", f'bundle = "{name}"\nledger = "{name}.sqlite"\n\n[data]', 1
    )
    path.write_text(text + tables, encoding="utf-8")
    return path


class Published:
    """A bundle, by its files alone."""

    def __init__(self, bundle: Path) -> None:
        self.structure = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
        self.dimensions = {
            table["name"]: [dimension["name"] for dimension in table["dimensions"]]
            for table in self.structure["tables"]
        }
        self.rows = {name: _rows(bundle / "tables" / f"{name}.csv") for name in self.dimensions}
        self.parents: dict[str, dict[str, Mapping[str, str]]] = {}
        for told in self.structure["hierarchies"]:
            self.parents.setdefault(told["dimension"], {})[told["above"]] = told["parents"]

    def above(self, dimension: str, code: str) -> dict[str, str]:
        """The code of every dimension that a code of one lies in, by the hierarchies of the bundle."""
        found = {dimension: code}
        for upper, parents in self.parents.get(dimension, {}).items():
            found |= self.above(upper, parents[code])
        return found

    def parents_that_add_up(self) -> int:
        """Compare all values with the sums of every finer table; how many there were."""
        compared = 0
        for finer, coarser in permutations(self.rows, 2):
            sums: dict[tuple[str, ...], int] = {}
            for row in self.rows[finer]:
                known: dict[str, str] = {}
                for dimension in self.dimensions[finer]:
                    known |= self.above(dimension, row[dimension])
                if not known.keys() >= set(self.dimensions[coarser]):
                    break
                cell = tuple(known[dimension] for dimension in self.dimensions[coarser])
                sums[cell] = sums.get(cell, 0) + int(row["value"])
            else:
                for row in self.rows[coarser]:
                    cell = tuple(row[dimension] for dimension in self.dimensions[coarser])
                    assert sums.get(cell, 0) == int(row["value"]), (finer, coarser, cell)
                    compared += 1
        return compared


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_parent_is_the_sum_of_its_parts_in_all_tables_of_a_release(folder: Path) -> None:
    """Of three levels of places and three of industries, of workers too, and of a region that the register tells."""
    bundle = run(load(release_of(folder, LEVELS + AGES))).bundle
    found = Published(bundle)
    assert found.dimensions.keys() == {
        *(f"jobs_by_{name}" for name in ("place_state", "place_county", "place")),
        *(
            f"jobs_by_{name}_industry{end}"
            for name in ("place_state", "place_county", "place")
            for end in ("", "_sector")
        ),
        "ages",
        "broad_ages",
    }
    assert found.parents_that_add_up() > 150
    told = {(one["dimension"], one["above"]): one["told_by"] for one in found.structure["hierarchies"]}
    assert told == {
        ("place", "place_county"): "release",
        ("place_county", "place_state"): "release",
        ("industry", "industry_sector"): "release",
        ("age", "age_broad"): "release",
        ("place_county", "region"): "register",
    }
    measured = [(row["value"], row["measured"]) for rows in found.rows.values() for row in rows]
    assert any(value != before for value, before in measured)  # noise alone does not add up
    assert "`place` in `place_county`" in (bundle / "statement.md").read_text(encoding="utf-8")
    levels = {d["name"]: d.get("level") for table in found.structure["tables"] for d in table["dimensions"]}
    assert levels["place_county"] == {"of": "place", "name": "county"}
    assert levels["place"] is None


def test_levels_count_what_their_attribute_counts(folder: Path) -> None:
    with checked(load(release_of(folder, LEVELS + AGES))) as ready:
        true = ready.count({table.name: table for table in ready.plan.tables})
    by_place, by_county, ages, broad = (
        true[n] for n in ("jobs_by_place", "jobs_by_place_county", "ages", "broad_ages")
    )
    for place, code in enumerate(by_county.dimensions[0].codes):
        inside = [at for at, own in enumerate(by_place.dimensions[0].codes) if own.startswith(code)]
        counted = by_place["count"][[at in inside for at in by_place.codes("place")]].sum()
        assert counted == by_county["count"][by_county.codes("place_county") == place].sum()
    assert broad.dimensions[1].codes == ("0-49", "50+", "unknown")
    assert not broad.dimensions[1].public
    for code, parts in {"0-49": ("0-29", "30-49"), "unknown": ("unknown",)}.items():
        counted = sum(ages.only("age", part)["count"].sum() for part in parts)
        assert broad.only("age_broad", code)["count"].sum() == counted > 0


def test_a_question_keeps_its_name_beside_levels_and_is_not_charged_again(folder: Path) -> None:
    path = release_of(folder, PLAIN)
    before = run(load(path)).plan.tables[0]
    release_of(folder, PLAIN + LEVELS.replace("epsilon = 9", "epsilon = 18"))
    found = check(load(path))
    assert found.paid == {"plain"}
    assert found.plan.tables[0].digest("data") == before.digest("data")


def test_tables_of_levels_share_an_epsilon_or_have_their_own(folder: Path) -> None:
    asked = LEVELS.replace('["state", "county", "place"]', '["state", "place"]').replace(
        '["total", "sector", "industry"]', '["sector"]'
    )
    (one, other) = load(release_of(folder, asked)).tables
    assert (one.protect.epsilon, other.protect.epsilon) == (9 / 2, 9 / 2)
    own = asked.replace("epsilon = 9", "epsilon = { place_state_industry_sector = 1, place_industry_sector = 2 }")
    (one, other) = load(release_of(folder, own)).tables
    assert (one.protect.epsilon, other.protect.epsilon) == (1, 2)
    assert not other.protect.by_period
    with pytest.raises(
        ReleaseError, match="what each table spends: place_state_industry_sector, place_industry_sector"
    ):
        load(release_of(folder, own.replace("place_state_industry_sector", "state")))


def test_what_scales_cost_is_shared_by_tables_of_levels_too_or_is_their_own(folder: Path) -> None:
    asked = LEVELS.replace('["state", "county", "place"]', '["state", "place"]').replace(
        '"laplace", epsilon = 9', '"smooth-pareto", epsilon = 6, error_epsilon = 0.6'
    )
    plan = check(load(release_of(folder, asked)), data=False).plan
    assert [one.table.protect.options for one in plan.tables] == [{"error_epsilon": Fraction("0.1")}] * 6
    assert plan.epsilon() == Fraction("6.6")
    each = dict.fromkeys((one.name.removeprefix("jobs_by_") for one in plan.tables), "0") | {"place": "0.3"}
    own = asked.replace("0.6", "{ " + ", ".join(f"{name} = {epsilon}" for name, epsilon in each.items()) + " }")
    plan = check(load(release_of(folder, own)), data=False).plan
    assert {one.name: one.table.protect.options for one in plan.tables if one.table.protect.options} == {
        "jobs_by_place": {"error_epsilon": Fraction("0.3")}
    }
    assert plan.epsilon() == Fraction("6.3")
    with pytest.raises(ReleaseError, match=r"`error_epsilon` is one number, or has .* of each table costs, 0 where"):
        load(release_of(folder, own.replace("place = 0.3", "places = 0.3")))
    alone = PLAIN.replace('"laplace", epsilon = 1', '"smooth-pareto", epsilon = 1, error_epsilon = { place = 0.1 }')
    with pytest.raises(ReleaseError, match=r"'error_epsilon'\n  expected: a number\n  found:    values by name"):
        check(load(release_of(folder, alone)), data=False)


def test_tables_of_levels_that_cannot_buy_a_scale_are_named(folder: Path) -> None:
    asked = """
[[table]]
name = "jobs"
count = "jobs"
by = ["region", "age", "industry"]
levels = { age = ["total", "broad", "age"], industry = ["total", "industry"] }
protect = { method = "smooth-gamma", epsilon = 60, error_epsilon = 0.6 }
"""
    unable = "jobs_by_region_age_broad, jobs_by_region_age_broad_industry, jobs_by_region_age, jobs_by_region_age_indus"
    with pytest.raises(MethodError, match=unable):
        check(load(release_of(folder, asked)), data=False)


def test_levels_may_be_written_with_their_attribute(folder: Path) -> None:
    written = LEVELS.replace('"sector"', '"industry@sector"').replace('"county"', '"place@county"')
    assert load(release_of(folder, written)).tables == load(release_of(folder, LEVELS)).tables


@pytest.mark.parametrize(
    ("tables", "attributes", "says"),
    [
        (LEVELS.replace('"county"', '"parish"'), "", "whose levels are state, county, place"),
        (
            LEVELS.replace('"sector"', '"branch"'),
            "",
            r"line \d+: table 'jobs', levels\n.* a level of 'industry': sector\n.* 'indu",
        ),
        (PLAIN + 'levels = { region = ["total"] }', "", "and 'region' is not"),
        (LEVELS.replace('"total", "sector"', '"sector", "Sector"'), "", "each once"),
        (LEVELS.replace('"total", "sector"', '"sector", "industry@sector"'), "", "each once"),
        (LEVELS.replace('"sector"', '"place@county"'), "", "lists levels of 'industry', and 'place@county' is none"),
        (LEVELS.replace('"jobs"', '"' + 50 * "j" + '"', 1), "", "more than 64 characters: shorten `name`"),
        (PLAIN.replace('"industry"', '"industrie@sector"'), "", "did you mean 'industry'"),
        (PLAIN + 'where = { "industry@sector" = "goods", industry_sector = "goods" }', "", "named twice"),
        (PLAIN.replace('"industry"', '"industry@"'), "", "write industry@sector"),
        (
            PLAIN.replace('"industry"', '"region@country"'),
            "",
            r"line \d+: table 'plain', by\n.*'region' has none",
        ),
        (PLAIN.replace('"industry"', '"industry@sector"'), 'industry_sector = { codes = ["a"] }', "another attribute"),
        (PLAIN, '"industry@sector" = { digits = 1 }', "leave out `digits`"),
        (
            PLAIN,
            '"industrie@sector" = {}',
            r"line \d+: data.attributes\n.* a level of an attribute: .*\n.* 'industrie@sector'\n.* mean 'industry'",
        ),
        (PLAIN, 'kind = { codes = ["a", "b"], levels = { all = { c = ["a"] } } }', "lacks 'b'"),
        (PLAIN, 'kind = { codes = ["a"], levels = { all = { c = ["a", "b"] } } }', "'b', which is no code"),
        (PLAIN, 'kind = { codes = ["a"], level_of = ["place", "x"] }', "follows from its level"),
    ],
)
def test_levels_that_do_not_exist_are_refused(folder: Path, tables: str, attributes: str, says: str) -> None:
    with pytest.raises(ReleaseError, match=says):
        check(load(release_of(folder, tables, attributes)), data=False)


def test_a_level_may_have_words_of_its_own_and_is_public_as_its_attribute_is(folder: Path) -> None:
    words = '"industry@sector" = { label = "Sector", codes = { services = "Services", goods = "Goods" } }'
    release = load(release_of(folder, PLAIN.replace('"industry"', '"industry@sector"'), words))
    plan = check(release).plan
    assert plan.label("industry_sector") == "Sector"
    assert plan.tables[0].by[1].codes == ("services", "goods")
    assert release.data.is_public("industry_sector")
    assert "industry_sector" not in release.data.public  # which the name of every question has in it


def test_rows_with_codes_that_are_in_none_of_a_level_are_refused(folder: Path) -> None:
    asked = PLAIN.replace('"industry"', '"industry@sector"')
    path = release_of(folder, asked)
    check(load(path))
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('["01", "10", "62", "85"]', '["01", "10", "62"]').replace(', "85"]', "]"), encoding="utf-8"
    )
    with pytest.raises(DataError, match="industry"):
        check(load(path))


def test_ad_hoc_questions_take_levels_that_the_release_has(folder: Path) -> None:
    path = release_of(folder, PLAIN.replace('"industry"', '"industry@sector"'))
    with open_charged(load(path), epsilon=Fraction(2)) as live:
        asked = live.plan(by=("industry@sector",), where={"place": ["1ax"]}, method="laplace", epsilon=1)
        again = live.plan(by=("industry_sector",), where={"place": ["1ax"]}, method="laplace", epsilon=1)
        assert asked.digest("data") == again.digest("data")
        for by, says in (("place@county", "industry_sector"), ("industry@", "write industry@sector")):
            with pytest.raises(ReleaseError, match=says):
                live.plan(by=(by,), method="laplace", epsilon=1)


def test_where_takes_a_level(folder: Path) -> None:
    chosen = PLAIN.replace("protect", 'where = { "industry@sector" = "goods" }\nprotect')
    with checked(load(release_of(folder, chosen + PLAIN.replace("plain", "all")))) as ready:
        goods, everything = ready.count({table.name: table for table in ready.plan.tables}).values()
    some = sum(everything.only("industry", code)["count"].sum() for code in ("01", "10"))
    assert goods["count"].sum() == some < everything["count"].sum()


@pytest.mark.parametrize(
    ("zips", "industries", "rows"),
    [(10_000, 20_000, 2_000), pytest.param(40_000, 80_000, 8_000, marks=pytest.mark.slow)],
)
def test_only_combinations_that_exist_are_made(tmp_path: Path, zips: int, industries: int, rows: int) -> None:
    """Of 200 million combinations, or 3.2 billion, few have an establishment: these are published, and agree."""
    chance = Random(1)
    for name, number in (("zips", zips), ("industries", industries)):
        codes = (f"{name}{code},{name},{name}-{code % 40}" for code in range(number))
        _written(
            tmp_path / f"{name}.csv", ["code,label,parent", *(f"{name}-{top},{name}," for top in range(40)), *codes]
        )
    drawn = {(chance.randrange(zips), chance.randrange(industries)) for _ in range(rows)}
    lines = [f"{n},zips{at},industries{kind},{n % 9 + 1}" for n, (at, kind) in enumerate(sorted(drawn))]
    _written(tmp_path / "register.csv", ["id,zip,industry,employees", *lines])
    path = tmp_path / "release.toml"
    path.write_text(
        """\
[release]
title = "Jobs"
period = "2025"
reconcile = true
budget = { alpha = 0.1, epsilon = 8 }

[data]
jobs = { path = "register.csv", workplace = "id", employees = "employees" }
public = ["zip", "industry"]

[data.attributes]
zip = { codelist = { file = "zips.csv", level = 2 } }
industry = { codelist = { file = "industries.csv", level = 2 } }

[[table]]
name = "jobs"
count = "jobs"
by = ["zip", "industry"]
levels = { zip = [1, "zip"], industry = ["industry"] }
protect = { method = "log-box", epsilon = 8 }
""",
        encoding="utf-8",
    )
    run_of = run(load(path))
    assert run_of.plan.tables[1].cells == zips * industries
    fine, coarse = (_rows(run_of.bundle / "tables" / f"jobs_by_{name}industry.csv") for name in ("zip_", "zip_1_"))
    assert len(fine) == len(drawn)
    sums: dict[tuple[str, str], int] = {}
    for row in fine:
        cell = f"zips-{int(row['zip'].removeprefix('zips')) % 40}", row["industry"]
        sums[cell] = sums.get(cell, 0) + int(row["value"])
    assert sums == {(row["zip_1"], row["industry"]): int(row["value"]) for row in coarse}


def test_too_many_establishments_for_one_piece_are_refused_before_anything_is_charged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = release_of(folder, PLAIN)
    monkeypatch.setattr(jobs, "MOST_CELLS", 10)
    with pytest.raises(ReleaseError, match="at most 10 cells in which there is an establishment"):
        run(load(path))
    assert not load(path).ledger.exists()


def test_a_series_tells_hierarchies_by_its_newest_periods(tmp_path: Path) -> None:
    """A town that changed its region lies where it lies now; one that is gone, where it was."""
    towns = {"2026-Q1": {"a": "N", "b": "N", "c": "S"}, "2026-Q2": {"a": "S", "b": "N"}}
    for period, regions in towns.items():
        listed = ["code,label,parent", "N,North,", "S,South,", *(f"{town},Town,{of}" for town, of in regions.items())]
        _written(tmp_path / f"places-{period}.csv", listed)
        rows = [f"{n},{town},{n + 2}" for n, town in enumerate(2 * list(regions))]
        _written(tmp_path / f"register-{period}.csv", ["id,place,employees", *rows])
    path = tmp_path / "release.toml"
    path.write_text(
        """\
[series]
first = "2026-Q1"

[release]
title = "Jobs"
budget = { alpha = 0.1, epsilon = 4 }

[data]
jobs = { path = "register-{period}.csv", workplace = "id", employees = "employees" }
public = ["place"]

[data.attributes]
place = { codelist = { file = "places-{period}.csv", level = 2 } }

[[table]]
name = "jobs"
count = "jobs"
by = ["place"]
levels = { place = [1, "place"] }
protect = { method = "log-box", epsilon = 4 }
""",
        encoding="utf-8",
    )
    bundle = [run(load(path, period)).bundle for period in towns][-1]
    structure = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    assert structure["hierarchies"] == [
        {"dimension": "place", "above": "place_1", "told_by": "release", "parents": {"a": "S", "b": "N", "c": "S"}}
    ]


def test_a_codelist_is_read_anew_when_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    _written(path, ["code,label", "a,A"])
    described = CodelistFile.model_validate(path)
    assert described.read(tmp_path).codes == ("a",)
    assert described.read(tmp_path) is described.read(tmp_path)
    _written(path, ["code,label", "a,A", "b,B"])
    assert described.read(tmp_path).codes == ("a", "b")
