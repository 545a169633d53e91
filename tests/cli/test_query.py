"""`sfumato query`: any table of a cube and rows of a table, with errors and marks, and words for whoever mistypes."""

import csv
import json
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.bundle.read import open_cube
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.federal.generate import generate_federal
from sfumato_lab.economy.jobs.generate import Economy
from tests.cli.call import call
from tests.release.federal import copied
from tests.running.same_draws import same_draws
from tests.statistics.cube.survey import release


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    with same_draws():
        return run(load(release(folder, ("cap = 7", "cap = 7\nleast_count = 10\nlargest_cv = 0.3")))).bundle


@pytest.fixture(scope="module")
def tables(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(economy.folder, tmp_path_factory.mktemp("jobs") / "economy"))
    return run(load(folder / "release.toml")).bundle


def asked(*words: str | Path) -> dict[str, Any]:
    """The JSON of a query; numbers that JSON does not have are refused."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found: dict[str, Any] = json.loads(call("query", *words, "--json").stdout, parse_constant=refuse)
    return found


def test_help_teaches_with_an_example() -> None:
    text = call("query", "--help").stdout
    assert "sfumato query bundle requirements --by education" in text
    assert "nothing is charged" in text


@pytest.mark.slow
def test_without_a_name_it_lists_what_there_is(cube: Path, tables: Path) -> None:
    text = call("query", cube).stdout
    assert "People by region, job and level" in text
    assert "region (4), job (3), level (2); means of pay" in text
    assert f"sfumato query {cube} people --by region" in text
    for bundle in (cube, tables):
        (hint,) = [line for line in call("query", bundle).stdout.splitlines() if line.startswith("Ask for one: ")]
        proposed = shlex.split(hint.removeprefix("Ask for one: "))
        assert proposed[0] == "sfumato"
        assert asked(*proposed[2:])["rows"], "the proposed command is answered"
    listed = asked(tables)
    assert [table["name"] for table in listed["tables"]] == [
        "jobs_by_place_industry",
        "jobs_by_industry",
        "jobs_by_place",
    ]
    assert listed["cubes"] == []
    assert asked(cube.parent / "release.toml")["cubes"][0]["measures"] == ["pay"], "a release file names its bundle"


@pytest.mark.slow
def test_figures_come_with_errors_and_marks(cube: Path) -> None:
    text = call("query", cube, "people", "--by", "region,job", "--where", "level=2").stdout
    assert "weighted totals by region, job, level = 2" in text
    for heading in ("region", "job", "value", "records", "std. error", "CV", "mark"):
        assert heading in text
    assert "Do not publish figures with a mark" in text
    rows = asked(cube, "people", "--by", "region,job", "--where", "level=2")["rows"]
    expected = open_cube(cube, "people").totals(["region", "job"], where={"level": "2"})
    assert [row["value"] for row in rows] == expected.values.ravel().tolist()
    assert [row["error"] for row in rows] == expected.errors.ravel().tolist()
    assert any(row["status"] == "too few records" for row in rows)
    assert [(row["region"], row["job"]) for row in rows][:4] == [("N", "a"), ("N", "b"), ("N", "c"), ("E", "a")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "question"),
    [
        (("--column", "count"), lambda c: c.totals(column="count")),
        (("--column", "pay"), lambda c: c.totals(column="pay")),
        (("--by", "job", "--proportion"), lambda c: c.proportions("job")),
        (
            ("--by", "job,level", "--proportion-within", "job"),
            lambda c: c.proportions(["job", "level"], within="job"),
        ),
        (("--by", "level", "--mean", "pay"), lambda c: c.means("pay", "level")),
        (
            ("--by", "level", "--mean", "job", "--scores", "a=1,b=2,c=5"),
            lambda c: c.mean_scores("job", {"a": 1, "b": 2, "c": 5}, "level"),
        ),
        (
            ("--by", "level", "--quantile", "job=0.25,0.9", "--edges", "0,1,2.5,10"),
            lambda c: c.quantiles("job", [0.25, 0.9], "level", edges=[0, 1, 2.5, 10]),
        ),
        (
            ("--quantile", "job", "--scores", "a=1,b=2.5,c=5", "--where", "region=N", "--where", "region=S"),
            lambda c: c.quantiles("job", 0.5, where={"region": ["N", "S"]}, scores={"a": 1, "b": 2.5, "c": 5}),
        ),
    ],
)
def test_every_kind_of_figure_can_be_asked_for(cube: Path, words: tuple[str, ...], question: Any) -> None:
    expected = question(open_cube(cube, "people"))
    rows = asked(cube, "people", *words)["rows"]
    assert [row["value"] for row in rows] == expected.values.ravel().tolist()
    assert [row["error"] for row in rows] == expected.errors.ravel().tolist()


@pytest.mark.slow
def test_quantiles_in_codes_have_an_interval_in_codes(cube: Path) -> None:
    rows = asked(cube, "people", "--by", "region", "--quantile", "job=0.5")["rows"]
    assert {row["value"] for row in rows} <= {"a", "b", "c"}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert "confidence of 90%" in call("query", cube, "people", "--quantile", "job").stdout


@pytest.mark.slow
def test_two_dimensions_in_one_filter_are_told_how_to_be_written(cube: Path) -> None:
    said = call("query", cube, "people", "--by", "job", "--where", "region=N,S,level=2", refused=True).stderr
    assert "--where region=N,S --where level=2" in " ".join(said.split())


@pytest.mark.slow
def test_long_answers_are_cut_on_the_screen_and_whole_in_a_file(tables: Path, cube: Path, tmp_path: Path) -> None:
    rows = pq.read_table(tables / "tables/jobs_by_place_industry.parquet").num_rows
    assert (
        f"These are 40 of {rows:,} rows. --csv FILE writes all"
        in call("query", tables, "jobs_by_place_industry").stdout
    )
    file = tmp_path / "rows.csv"
    done = asked(tables, "jobs_by_place_industry", "--csv", file)
    assert done["written"] == rows
    with file.open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == rows
    call("query", cube, "people", "--by", "region", "--csv", file)
    with file.open(encoding="utf-8", newline="") as lines:
        written = list(csv.DictReader(lines))
    answer = open_cube(cube, "people").totals("region")
    assert [float(row["value"]) for row in written] == answer.values.tolist()
    read_manifest(cube)
    assert "outside of the bundle" in call("query", cube, "people", "--csv", cube / "rows.csv", refused=True).stderr
    read_manifest(cube)


@pytest.mark.slow
def test_rows_of_a_table_are_chosen_by_their_codes_in_any_order(tables: Path) -> None:
    published = pq.read_table(tables / "tables/jobs_by_place_industry.parquet").to_pylist()
    one = published[0]
    words = [f"{name}={one[name]}" for name in ("place", "industry", "ownership")]
    found = asked(tables, "jobs_by_place_industry", *(word for w in words for word in ("--where", w)))
    assert found["rows"] == [one]
    turned = asked(tables, "jobs_by_place_industry", "--by", "ownership,industry", "--where", words[0])["rows"]
    expected = {(r["ownership"], r["industry"]): r["value"] for r in published if r["place"] == one["place"]}
    assert {(row["ownership"], row["industry"]): row["value"] for row in turned} == expected
    assert list(turned[0])[:3] == ["ownership", "industry", "value"]


def test_counts_are_added_up_over_what_is_left_out(tables: Path) -> None:
    rows = asked(tables, "jobs_by_place_industry", "--by", "industry")
    assert rows["summed_over"] == ["place", "ownership"]
    assert {"industry", "value", "error", "low", "high", "establishments"} == rows["rows"][0].keys()


@pytest.mark.slow
def test_indicators_are_added_up_where_they_add_up_and_it_says_so(tmp_path: Path) -> None:
    made = generate_federal(tmp_path / "workforce", persons=5_000, quarters=8)
    bundle = run(load(copied(made.folder, tmp_path / "copy"))).bundle
    published = pq.read_table(bundle / "tables/indicators.parquet").to_pylist()
    quarter = sorted({row["quarter"] for row in published})[4]
    chosen = [r for r in published if r["quarter"] == quarter and r["indicator"] == "employment" and r["status"] == ""]
    state = Counter(row["state"] for row in chosen).most_common(1)[0][0]
    shown = [row for row in chosen if row["state"] == state]
    assert len(shown) > 1
    agencies = ",".join(r["agency"] for r in shown)
    words = ("--where", f"quarter={quarter}", "--where", f"agency={agencies}", "--where", f"state={state}")
    found = asked(bundle, "indicators", "--by", "state", *words, "--where", "indicator=employment")
    assert found["rows"] == [{"state": state, "value": sum(r["value"] for r in shown)}]
    assert found["summed_over"] == ["agency"]
    text = call("query", bundle, "indicators", "--by", "state", *words, "--where", "indicator=employment").stdout
    assert "added up over agency: with noise-infusion-sums parts add up" in text
    for other, reason in (
        (("--where", "indicator=job_creation"), "do not add up"),
        (("--where", "indicator=employment,payroll"), "do not add up"),
    ):
        assert reason in call("query", bundle, "indicators", "--by", "state", *words, *other, refused=True).stderr
    over_time = ("--by", "state,agency", "--where", "indicator=employment")
    assert "a sum over periods" in call("query", bundle, "indicators", *over_time, refused=True).stderr
    links = ("links_between_states", "--by", "first_state")
    assert "protects every cell by itself" in call("query", bundle, *links, refused=True).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("peple",), "did you mean 'people'"),
        (("people", "--by", "regon"), "did you mean 'region'"),
        (("people", "--by", "region,region"), "each dimension once"),
        (("people", "--where", "region"), "write --where region=CODE"),
        (("people", "--where", "region="), "at least one code"),
        (("people", "--where", "region=X"), "N, E, S, W"),
        (("people", "--where", "regio=N"), "did you mean 'region'"),
        (("people", "--column", "cuont"), "did you mean 'count'"),
        (("people", "--mean", "play"), "did you mean 'pay'"),
        (("people", "--mean", "job"), "--scores a=1"),
        (("people", "--mean", "job", "--scores", "a"), "a number for each code"),
        (("people", "--mean", "job", "--scores", "a=x"), "a number such as"),
        (("people", "--mean", "pay", "--scores", "a=1"), "--scores for the mean or a quantile"),
        (("people", "--quantile", "job=2"), "between 0 and 1"),
        (("people", "--quantile", "job", "--edges", "1,2"), "4 edges"),
        (("people", "--mean", "pay", "--proportion"), "one kind of figure"),
        (("--by", "region"), "a cube or table to ask"),
        (("people", "--by", "job", "--proportion-within", "region"), "`within` among job"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_a_question_that_makes_no_sense_is_refused_with_what_would(
    cube: Path, words: tuple[str, ...], said: str
) -> None:
    done = call("query", cube, *words, "--json", refused=True)
    assert said in " ".join(done.stderr.split())
    assert {"kind", "exit_code", "where", "expected", "found", "do"} == json.loads(done.stdout)["error"].keys()


@pytest.mark.slow
def test_figures_of_cubes_are_refused_for_tables_and_a_folder_that_is_no_bundle(tables: Path, tmp_path: Path) -> None:
    assert "is not a cube" in call("query", tables, "jobs_by_place", "--mean", "pay", refused=True).stderr
    assert "a bundle whose files match" in call("query", tmp_path, refused=True).stderr
    call("query", code=2)
