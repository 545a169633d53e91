"""Means of a measure of jobs: from the release file to the bundle."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.checking import check
from sfumato.cli import app
from sfumato.errors import ReleaseError
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from tests.release.test_job_totals import PAY, RELEASE, SURE, changed

MEAN = '[[table]]\nname = "mean"\nmean = "earnings"\nby = ["place", "industry"]\nprotect = { epsilon = 4 }\n\n'
BY_SEX = '[[table]]\nname = "by_sex"\nmean = "earnings"\nby = ["place", "sex"]\nprotect = { epsilon = 4 }\n\n'


def sure(folder: Path, *tables: str) -> Path:
    text = (RELEASE + "".join(tables)).replace("{ epsilon = 4", f"{{ epsilon = {SURE}")
    return changed(folder, text.replace("epsilon = 100,", "epsilon = 900000,"))


def test_a_mean_is_the_total_over_the_jobs_and_both_are_published(tiny: Path, engine: str) -> None:
    path = sure(tiny, MEAN, BY_SEX)
    done = run(load(changed(tiny, path.read_text(encoding="utf-8").replace('"duckdb"', f'"{engine}"'))))
    rows = pq.read_table(done.bundle / "tables" / "mean.parquet").to_pylist()
    assert [(row["total"], row["jobs"], row["value"]) for row in rows] == [
        (60, 3, 20.0),
        (90, 2, 45.0),
        (0, 0, None),
        (165, 3, 55.0),
    ]
    assert [row["establishments"] for row in rows] == [2, 1, 0, 1]
    assert [row["status"] for row in rows] == ["", "", "not available", ""]
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows if row["value"] is not None)
    sexes = pq.read_table(done.bundle / "tables" / "by_sex.parquet").to_pylist()
    assert [row["value"] for row in sexes] == [30.0, 30.0, 55.0, 55.0]


def test_a_mean_is_charged_for_both_and_the_shares_can_be_chosen(tiny: Path) -> None:
    path = changed(tiny, RELEASE + MEAN.replace("epsilon = 4", "epsilon = 4, count_share = 0.25"))
    plan = check(load(path)).plan
    (mean,) = plan.statistics
    assert mean.guarantee.epsilon == 4
    assert mean.guarantee.caps == (("earnings", 55),)
    assert (mean.method.total.epsilon, mean.method.jobs.epsilon) == (3, 1)
    described = json.loads((run(load(path)).bundle / "structure.json").read_text(encoding="utf-8"))["tables"][0]
    assert described["spent_on"] == {"total": 3.0, "jobs": 1.0}
    assert not described["additive"]


def test_the_statement_tells_what_a_mean_is_made_of(tiny: Path) -> None:
    text = (run(load(changed(tiny, RELEASE + MEAN + PAY))).bundle / "statement.md").read_text(encoding="utf-8")
    assert "Means are quotients of the two, which are published beside them and spend epsilon = 2 and 2" in text
    assert "Fieller" in text
    assert "with a certainty of 99.9%: means are of 5 published jobs or more." in text
    assert text.count("That an establishment exists, and its attributes") == 1


def test_few_jobs_have_no_mean(tiny: Path) -> None:
    rows = pq.read_table(
        run(load(changed(tiny, RELEASE + MEAN.replace("epsilon = 4", "epsilon = 0.5")))).bundle / "tables/mean.parquet"
    ).to_pylist()
    assert all((row["value"] is None) == (row["status"] == "not available") for row in rows)
    assert all(row["low"] is None for row in rows if row["value"] is None)


def test_the_same_question_is_answered_once_in_any_number_of_decimals(tiny: Path) -> None:
    first = run(load(changed(tiny, RELEASE + MEAN)))
    again = run(load(changed(tiny, RELEASE + MEAN.replace("protect", "decimals = 0\nprotect"))))
    assert again.charged == ()
    whole = pq.read_table(again.bundle / "tables" / "mean.parquet").to_pylist()
    assert first.bundle == again.bundle
    assert all(row["value"] is None or row["value"] == round(row["value"]) for row in whole)


def test_the_report_compares_means_with_true_ones(tiny: Path) -> None:
    path = sure(tiny, MEAN, BY_SEX)
    run(load(path))
    said = CliRunner().invoke(app, ["assess", str(path)])
    assert said.exit_code == 0, said.output
    assert "mean: mean error by true size of the cell" in said.output


def test_a_server_shows_totals_and_means_in_their_units(tiny: Path) -> None:
    done = run(load(changed(tiny, RELEASE + PAY + MEAN)))
    tables = {table.id: table for table in open_catalogue([BundleSource(folder=done.bundle)]).tables.values()}
    shown = {name: {m.code: (m.label, m.unit) for m in table.metrics} for name, table in tables.items()}
    assert shown["pay"]["earnings"] == ("earnings, total", "dollars")
    assert shown["mean"]["mean_earnings"] == ("earnings, mean", "dollars")
    assert shown["mean"]["error"] == ("Error, upper estimate", "dollars")
    assert shown["mean"]["total"] == ("Total", "dollars")
    assert shown["mean"]["jobs"] == ("Jobs", "jobs")


def test_parameters_that_forbid_every_mean_are_refused_with_those_that_work(tiny: Path) -> None:
    """Nothing could be published, whatever the data are, and yet it would be charged."""
    few = BY_SEX.replace("epsilon = 4", "epsilon = 2")
    with pytest.raises(ReleaseError) as refusal:
        check(load(changed(tiny, RELEASE + few)), data=False)
    assert "write count_share = 0.56, or epsilon = 2.24" in refusal.value.do
    for works in ("epsilon = 2, count_share = 0.56", "epsilon = 2.24"):
        check(load(changed(tiny, RELEASE + few.replace("epsilon = 2", works))), data=False)
    with pytest.raises(ReleaseError, match="no cell can have a mean"):
        check(load(changed(tiny, RELEASE + few.replace("epsilon = 2", "epsilon = 2.22"))), data=False)


REFUSED = {
    "parts": ("protect", "parts = 2\nprotect", "its total and its count"),
    "implied zeros": ("protect", 'structural_zeros = "implied"\nprotect', "a row without a mean"),
    "a share": ("epsilon = 4", "epsilon = 4, count_share = 1", "between 0 and 1"),
    "a filter on workers": ("protect", 'where = { sex = "F" }\nprotect', "put the attribute into `by`"),
    "unknown errors": ("protect", 'unknown_errors = "published"\nprotect', "all have an error"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mean_that_cannot_be_made_is_refused(tiny: Path, name: str) -> None:
    old, new, words = REFUSED[name]
    with pytest.raises(ReleaseError) as refusal:
        check(load(changed(tiny, RELEASE + MEAN.replace(old, new, 1))), data=False)
    assert words in str(refusal.value)
