"""A year of an office: four quarters from CSV files, a revision, and what is published of them as one."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from sfumato.bundle.manifest import read_manifest
from sfumato.bundle.read import open_bundle
from sfumato.bundle.rows import all_rows
from sfumato.checking import check
from sfumato.errors import BudgetError, BundleError, DataError
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import Published, run
from tests.series.office import QUARTERS, RELEASE, drop_jobs, make_office, read_csv, write_csv

pytestmark = pytest.mark.slow


def publish(file: Path, *quarters: str, revise: str | None = None) -> Published:
    return [run(load(file, quarter), revise=revise) for quarter in quarters][-1]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release file of a series whose four quarters are published; tests that change it take a copy."""
    file = make_office(tmp_path_factory.mktemp("office") / "o")
    publish(file, *QUARTERS)
    return file


@pytest.fixture
def copied(year: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(year.parent, tmp_path / "o")) / "release.toml"


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def spent(file: Path) -> dict[str, Any]:
    over = Ledger.open(file.parent / "ledger.sqlite").over_periods("jobs")
    return {each.period: each.guarantee and each.guarantee.epsilon for each in over.periods}


def structure(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((file.parent / "bundle/structure.json").read_text(encoding="utf-8"))
    return found


def test_tables_have_one_time_dimension_over_all_periods(year: Path) -> None:
    bundle = sfumato.open_bundle(year.parent / "bundle")
    rows = bundle.rows("jobs_by_place")
    assert rows.column_names[:3] == ["quarter", "place", "value"]
    assert rows["quarter"].to_pylist() == [quarter for quarter in QUARTERS for _ in "ABC"]
    about = bundle.structure["tables"][0]
    assert about["dimensions"][0] == {
        "name": "quarter",
        "label": "Quarter",
        "codes": 4,
        "codelist": "codelists/quarter.csv",
        "role": "time",
    }


def test_every_version_is_a_bundle_by_itself_with_the_same_numbers(year: Path) -> None:
    whole = sfumato.open_bundle(year.parent / "bundle")
    for name in whole.versions:
        alone = open_bundle(year.parent / "bundle/periods" / name)
        quarter = name.removesuffix("-v1")
        assert alone.structure["period"] == quarter
        assert alone.rows("jobs_by_place").equals(
            whole.rows("jobs_by_place", where={"quarter": (quarter,)}).cast(alone.rows("jobs_by_place").schema)
        )


def test_a_new_period_adds_files_and_leaves_all_others_as_they_are(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    seen: dict[str, str] = {}
    for quarter in QUARTERS[:3]:
        publish(file, quarter)
        now = {name: digest for name, digest in digests(file.parent / "bundle").items() if name.startswith("periods")}
        assert seen.items() <= now.items(), "a file of an earlier period was changed"
        assert {name.split("/")[1] for name in now.keys() - seen.keys()} == {f"{quarter}-v1"}
        read_manifest(file.parent / "bundle")
        seen = now


def test_every_period_is_charged_to_its_own_account_and_statements_give_the_sum(year: Path) -> None:
    assert spent(year) == dict.fromkeys(QUARTERS, 2)
    said = (year.parent / "bundle/statement.md").read_text(encoding="utf-8")
    assert "To whoever is in all 4: strong, alpha = 0.1, epsilon = 8" in said
    facts = structure(year)
    assert facts["guarantee"] == facts["tables"][0]["guarantee"]
    assert facts["guarantee"]["epsilon"] == 8


def test_the_same_data_again_charge_nothing_and_write_nothing(year: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (year.parent / "bundle").rglob("*")}
    entries = Ledger.open(year.parent / "ledger.sqlite").history()
    for quarter in QUARTERS:
        assert run(load(year, quarter)).unchanged
    assert {path: path.stat().st_mtime_ns for path in (year.parent / "bundle").rglob("*")} == before
    assert Ledger.open(year.parent / "ledger.sqlite").history() == entries


def test_changed_data_are_published_only_as_a_revision_with_a_reason(copied: Path) -> None:
    before, entries = digests(copied.parent / "bundle"), Ledger.open(copied.parent / "ledger.sqlite").history()
    drop_jobs(copied.parent / "jobs_2026-Q2.csv")
    found = sfumato.check(load(copied, "2026-Q2"))
    assert found.edition is not None
    assert found.edition.is_revision
    assert found.edition.cost == 2
    with pytest.raises(BundleError, match="it costs epsilon = 2 again"):
        publish(copied, "2026-Q2")
    assert digests(copied.parent / "bundle") == before
    assert Ledger.open(copied.parent / "ledger.sqlite").history() == entries


def test_a_revision_is_a_new_version_and_both_are_kept(copied: Path) -> None:
    bundle = copied.parent / "bundle"
    before = {name: digest for name, digest in digests(bundle).items() if name.startswith("periods")}
    first = open_bundle(bundle).version("2026-Q2-v1").rows("jobs_by_place")
    drop_jobs(copied.parent / "jobs_2026-Q2.csv", share=0.7)
    version = publish(copied, "2026-Q2", revise="late reports").version
    assert version is not None
    assert (version.number, version.reason) == (2, "late reports")
    assert before.items() <= digests(bundle).items()
    after = sfumato.open_bundle(bundle)
    assert after.version("2026-Q2-v1").rows("jobs_by_place").equals(first)
    assert after.rows("jobs_by_place", where={"quarter": ("2026-Q2",)})["value"].to_pylist() == (
        after.version("2026-Q2-v2").rows("jobs_by_place")["value"].to_pylist()
    )
    assert spent(copied) == {**dict.fromkeys(QUARTERS, 2), "2026-Q2": 4}
    assert structure(copied)["guarantee"]["epsilon"] == 10
    (change,) = version.changes
    values = [rows["value"].to_pylist() for rows in (first, after.version("2026-Q2-v2").rows("jobs_by_place"))]
    moves = [abs(other - one) for one, other in zip(*values, strict=True)]
    assert change["moved"] == sum(move != 0 for move in moves)
    assert change["beyond_error"] == 3, "seven of ten jobs less are more than any error"
    assert abs(change["largest"][0]["after"] - change["largest"][0]["before"]) == max(moves)
    assert "late reports" in (bundle / "statement.md").read_text(encoding="utf-8")
    assert run(load(copied, "2026-Q2")).unchanged


def test_going_back_to_earlier_data_is_a_revision_that_costs_nothing(copied: Path) -> None:
    data = copied.parent / "jobs_2026-Q2.csv"
    kept = data.read_bytes()
    drop_jobs(data)
    publish(copied, "2026-Q2", revise="late reports")
    data.write_bytes(kept)
    back = publish(copied, "2026-Q2", revise="they were right before")
    assert back.charged == ()
    assert back.version is not None
    assert back.version.number == 3
    bundle = sfumato.open_bundle(copied.parent / "bundle")
    one, three = (bundle.version(f"2026-Q2-v{number}").rows("jobs_by_place") for number in (1, 3))
    assert one.equals(three)
    assert structure(copied)["guarantee"]["epsilon"] == 10, "an answer that is given again is counted once"


def test_a_period_whose_budget_is_spent_is_revised_once_the_officer_has_raised_it(copied: Path) -> None:
    data, bundle = copied.parent / "jobs_2026-Q2.csv", copied.parent / "bundle"
    for reason in ("first", "second"):
        drop_jobs(data)
        publish(copied, "2026-Q2", revise=reason)
    drop_jobs(data)
    before = digests(bundle)
    with pytest.raises(BudgetError, match="at most what remains"):
        publish(copied, "2026-Q2", revise="third")
    assert digests(bundle) == before
    raised = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(8))
    Ledger.open(copied.parent / "ledger.sqlite").set_budget(load(copied, "2026-Q2").account, raised)
    more = '[series.budgets."2026-Q2"]\nalpha = 0.1\nepsilon = 8\n\n[data]\n'
    copied.write_text(RELEASE.replace("[data]\n", more), encoding="utf-8")
    done = publish(copied, "2026-Q2", revise="third")
    assert done.version is not None
    assert done.version.number == 4
    assert run(load(copied, "2026-Q3")).unchanged, "other periods keep the budget of the release"


def test_a_reason_where_nothing_is_revised_is_refused(copied: Path) -> None:
    with pytest.raises(BundleError, match="what is published already"):
        publish(copied, "2026-Q2", revise="late reports")


def test_the_same_revision_again_changes_nothing(copied: Path) -> None:
    drop_jobs(copied.parent / "jobs_2026-Q2.csv")
    assert not publish(copied, "2026-Q2", revise="late reports").unchanged
    assert publish(copied, "2026-Q2", revise="late reports").unchanged, "it may be scheduled"
    with pytest.raises(BundleError, match="what is published already"):
        publish(copied, "2026-Q2", revise="another reason")
    named = {entry.release for entry in Ledger.open(copied.parent / "ledger.sqlite").history()}
    assert "Jobs, 2026-Q2; revised: late reports" in named


def test_data_of_another_period_are_refused(copied: Path) -> None:
    shutil.copy(copied.parent / "jobs_2026-Q4.csv", copied.parent / "jobs_2027-Q1.csv")
    with pytest.raises(BudgetError, match="'2026-Q4'"):
        publish(copied, "2027-Q1")


def test_a_table_that_is_added_later_has_only_its_own_periods(copied: Path) -> None:
    more = """
[[table]]
name = "jobs_by_sex"
count = "jobs"
by = ["sex"]
protect = { method = "laplace", epsilon = 1 }
"""
    text = RELEASE.replace("epsilon = 6 }", 'epsilon = 6, definition = "individuals" }') + more
    copied.write_text(text, encoding="utf-8")
    for path in (copied.parent / "ledger.sqlite", copied.parent / "bundle"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(copied.parent / "ledger.store")
    copied.write_text(text.replace(more, ""), encoding="utf-8")
    publish(copied, "2026-Q1", "2026-Q2")
    copied.write_text(text, encoding="utf-8")
    publish(copied, "2026-Q3", "2026-Q4")
    bundle = sfumato.open_bundle(copied.parent / "bundle")
    rows = bundle.rows("jobs_by_sex")
    assert set(rows["quarter"].to_pylist()) == {"2026-Q3", "2026-Q4"}
    about = next(table for table in bundle.structure["tables"] if table["name"] == "jobs_by_sex")
    assert about["dimensions"][0]["codes"] == 2
    assert about["guarantee"]["epsilon"] == 2
    assert bundle.structure["guarantee"]["epsilon"] == 10


def with_codes(file: Path, codes: Mapping[str, str]) -> None:
    listed = ", ".join(f'{code} = "{label}"' for code, label in codes.items())
    text = RELEASE.replace('A = "Ahausen", B = "Bedorf", C = "Cestadt"', listed)
    file.write_text(text, encoding="utf-8")


def test_cells_of_codes_that_a_period_did_not_know_are_absent_and_not_zero(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    publish(file, "2026-Q1", "2026-Q2")
    places = read_csv(file.parent / "workplaces.csv")
    moved = [(name, "D" if place == "C" else place) for name, place in places]
    write_csv(file.parent / "workplaces.csv", ("workplace", "place"), moved)
    with_codes(file, {"A": "Ahausen an der Aa", "B": "Bedorf", "D": "Deberg"})
    publish(file, "2026-Q3")
    bundle = sfumato.open_bundle(file.parent / "bundle")
    assert bundle.codes("place") == ("A", "B", "D", "C")
    codelist = (file.parent / "bundle/codelists/place.csv").read_text(encoding="utf-8")
    assert "Ahausen an der Aa" in codelist, "labels are those of the newest period"
    rows = all_rows(file.parent / "bundle", bundle.structure["tables"][0])
    assert len(rows) == 3 * 4
    absent = [row for row in rows.to_pylist() if row["status"] == "not available"]
    assert {(row["quarter"], row["place"]) for row in absent} == {
        ("2026-Q1", "D"),
        ("2026-Q2", "D"),
        ("2026-Q3", "C"),
    }
    assert all(row["value"] is None for row in absent)


def test_a_name_stands_for_one_table_in_all_periods(copied: Path) -> None:
    copied.write_text(
        RELEASE.replace('by = ["place"]', 'by = ["sex"]')
        .replace("smooth-pareto", "laplace")
        .replace("epsilon = 6 }", 'epsilon = 6, definition = "individuals" }'),
        encoding="utf-8",
    )
    drop_jobs(copied.parent / "jobs_2026-Q4.csv")
    shutil.copy(copied.parent / "jobs_2026-Q4.csv", copied.parent / "jobs_2027-Q1.csv")
    with pytest.raises(BundleError, match="jobs by quarter, place"):
        publish(copied, "2027-Q1")


def test_a_series_is_not_replaced_by_one_period_nor_the_other_way_round(copied: Path, tmp_path: Path) -> None:
    one = RELEASE.replace('[series]\nfirst = "2026-Q1"', "").replace("{period}", "2026-Q1")
    one = one.replace('population = "jobs"', 'population = "jobs"\nperiod = "2026-Q1"')
    copied.write_text(one, encoding="utf-8")
    with pytest.raises(BundleError, match="the bundle of a series"):
        run(load(copied))
    file = make_office(tmp_path / "other", one)
    run(load(file))
    file.write_text(RELEASE, encoding="utf-8")
    with pytest.raises(BundleError, match="a bundle of one period"):
        publish(file, "2026-Q2")


def test_a_period_that_was_changed_by_hand_stops_the_series(copied: Path) -> None:
    table = copied.parent / "bundle/periods/2026-Q1-v1/tables/jobs_by_place.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("2026-Q1", "2025-Q1"), encoding="utf-8")
    drop_jobs(copied.parent / "jobs_2026-Q4.csv")
    with pytest.raises(BundleError, match="restore the folder from a backup"):
        publish(copied, "2026-Q4", revise="late reports")


ONE_FILE = RELEASE.replace('path = "jobs_{period}.csv"', 'path = "jobs.csv"').replace(
    'first = "2026-Q1"', 'first = "2026-Q1"\ncolumn = "when"'
)


def test_rows_of_one_period_are_read_from_a_file_with_all(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o", ONE_FILE)
    written = {"2026-Q1": "2026Q1", "2026-Q2": "2026-Q2", "2026-Q3": "2026Q3", "2026-Q4": "2026Q4"}
    rows = [[*row, written[q]] for q in QUARTERS for row in read_csv(file.parent / f"jobs_{q}.csv")]
    write_csv(file.parent / "jobs.csv", ("worker", "workplace", "sex", "when"), rows)
    for quarter in QUARTERS:
        done = publish(file, quarter)
        assert done.totals.jobs == len(read_csv(file.parent / f"jobs_{quarter}.csv"))
    with pytest.raises(DataError, match="2027-Q1"):
        publish(file, "2027-Q1")
    write_csv(file.parent / "jobs.csv", ("worker", "workplace", "sex", "when"), [*rows, ["x", "w1", "F", "2027Q1"]])
    assert run(load(file, "2026-Q2")).unchanged, "new rows of other periods change nothing"


@pytest.mark.parametrize("written", ["csv", "day", "instant"])
@pytest.mark.parametrize(
    ("first", "period", "rows"), [("2026-Q1", "2026-Q1", 3), ("2026", "2026", 5), ("2026-01", "2026-03", 2)]
)
def test_a_day_counts_for_the_period_it_falls_in(
    tmp_path: Path, written: str, first: str, period: str, rows: int
) -> None:
    file = make_office(tmp_path / "o", ONE_FILE.replace("2026-Q1", first))
    days = ["2025-12-31", "2026-01-01", "2026-03-01", "2026-03-31", "2026-04-01", "2026-12-31", "2027-01-01"]
    columns = {"worker": [f"p{n}" for n in range(7)], "workplace": ["w1"] * 7, "sex": ["F"] * 7}
    if written == "csv":
        turned = [".".join(reversed(day.split("-"))) for day in days]
        write_csv(file.parent / "jobs.csv", (*columns, "when"), list(zip(*columns.values(), turned, strict=True)))
    else:
        kind = pa.date32() if written == "day" else pa.timestamp("ns")
        table = pa.table(columns | {"when": pa.array([date.fromisoformat(day) for day in days]).cast(kind)})
        pq.write_table(table, file.parent / "jobs.parquet")
        file.write_text(file.read_text().replace("jobs.csv", "jobs.parquet"))
    assert check(load(file, period)).totals.jobs == rows


def test_an_instant_in_a_time_zone_falls_in_no_period(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o", ONE_FILE.replace("jobs.csv", "jobs.parquet"))
    when = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="Europe/Berlin"))
    table = pa.table({"worker": ["p1"], "workplace": ["w1"], "sex": ["F"], "when": when})
    pq.write_table(table, file.parent / "jobs.parquet")
    with pytest.raises(DataError, match="timestamps without a time zone"):
        check(load(file, "2026-Q1"))


def test_a_column_that_is_not_there_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o", ONE_FILE)
    shutil.copy(file.parent / "jobs_2026-Q1.csv", file.parent / "jobs.csv")
    with pytest.raises(DataError, match="the column 'when'"):
        publish(file, "2026-Q1")
    assert not (file.parent / "ledger.sqlite").exists()


def test_rows_that_say_no_period_are_refused_and_not_left_out(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o", ONE_FILE)
    rows = [[f"p{n}", "w1", "F", when] for n, when in enumerate(["2026-Q1", "2026Q1", "2026-01", "Q1/2026", ""])]
    write_csv(file.parent / "jobs.csv", ("worker", "workplace", "sex", "when"), rows)
    with pytest.raises(DataError, match="3 rows with none, or with something else"):
        check(load(file, "2026-Q1"))


@pytest.mark.parametrize("written", ["csv", "day", "quarter"])
def test_a_year_that_nobody_means_is_refused_and_not_left_out(tmp_path: Path, written: str) -> None:
    file = make_office(tmp_path / "o", ONE_FILE)
    days = ["2026-03-31", "0206-03-31", "2026-02-28"]
    whens = [f"{day[:4]}-Q1" for day in days] if written == "quarter" else days
    columns = {"worker": ["p1", "p2", "p3"], "workplace": ["w1"] * 3, "sex": ["F"] * 3}
    if written == "day":
        table = pa.table(columns | {"when": [date.fromisoformat(day) for day in days]})
        pq.write_table(table, file.parent / "jobs.parquet")
        file.write_text(file.read_text().replace("jobs.csv", "jobs.parquet"))
    else:
        write_csv(file.parent / "jobs.csv", (*columns, "when"), list(zip(*columns.values(), whens, strict=True)))
    with pytest.raises(
        DataError, match="row 2 below the heading" if written == "csv" else "1 rows with none"
    ) as refused:
        check(load(file, "2026-Q1"))
    assert "from 1800 to 2200" in refused.value.expected
