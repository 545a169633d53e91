"""Totals of a measure of jobs: from the release file to the bundle."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.bundle.read import select_rows
from sfumato.checking import check, checked
from sfumato.cli import app
from sfumato.errors import BudgetError, DataError, ReleaseError, SfumatoError
from sfumato.plan import Plan
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.jobs.statistic import JobCounts
from sfumato.statistics.jobs.totals import JobTotals
from sfumato.statistics.kinds import by_scan
from tests.conftest import write
from tests.tiny import TINY

RELEASE = """
[release]
title = "Pay"
period = "2025"
budget = { alpha = 0.1, epsilon = 100, totals = ["earnings"] }

[data]
engine = "duckdb"
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes]
place = { codes = ["A", "B"] }
industry = { codes = ["11", "62"] }
sex = { codes = ["F", "M"] }

[data.measures]
earnings = { unit = "dollars", cap = 55 }

"""
JOBS = '[[table]]\nname = "jobs"\ncount = "jobs"\nby = ["place"]\nprotect = { epsilon = 2 }\n\n'
PAY = '[[table]]\nname = "pay"\ntotal = "earnings"\nby = ["place", "industry"]\nprotect = { epsilon = 2 }\n\n'
BY_SEX = '[[table]]\nname = "by_sex"\ntotal = "earnings"\nby = ["place", "sex"]\nprotect = { epsilon = 3 }\n\n'
SURE = 10**5
"""An epsilon at which the noise is below half a dollar, all but surely."""


def release(folder: Path, *tables: str) -> Path:
    return changed(folder, RELEASE + "".join(tables or (JOBS, PAY, BY_SEX)))


def changed(folder: Path, text: str) -> Path:
    path = folder / "release.toml"
    path.write_text(text, encoding="utf-8")
    return path


def with_text(folder: Path, old: str, new: str, *tables: str) -> Path:
    text = RELEASE + "".join(tables or (JOBS, PAY, BY_SEX))
    assert old in text
    return changed(folder, text.replace(old, new))


def rows_of(bundle: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table in which there is an establishment; Spark makes it in parts, which list no others."""
    file = bundle / "tables" / f"{table}.parquet"
    files = [file] if file.is_file() else sorted(file.with_suffix("").glob("*.parquet"))
    return [row for part in files for row in pq.read_table(part).to_pylist() if row["establishments"]]


def structure(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    return found


# What is published.


def test_totals_are_those_of_jobs_cut_at_the_cap(tiny: Path, engine: str) -> None:
    """With hardly any noise they are what is added up by hand: 10 + 20 + 30 on the farms of A, 40 + 50 beside them."""
    text = (RELEASE + PAY + BY_SEX).replace("{ epsilon = 2", f"{{ epsilon = {SURE}")
    text = text.replace("{ epsilon = 3", f"{{ epsilon = {SURE}").replace('"duckdb"', f'"{engine}"')
    done = run(load(changed(tiny, text.replace("epsilon = 100,", "epsilon = 300000,"))))
    pay = rows_of(done.bundle, "pay")
    values = {(row["place"], row["industry"]): row["value"] for row in pay}
    assert values == {("A", "11"): 60, ("A", "62"): 90, ("B", "62"): 3 * 55}
    assert [row["establishments"] for row in pay] == [2, 1, 1]
    assert [row["value"] for row in rows_of(done.bundle, "by_sex")] == [10 + 30 + 50, 20 + 40, 55 + 55, 55]


HUGE = {
    "binary": (pa.float64(), 1e300, 1),
    "short binary": (pa.float32(), 3e38, 1),
    "unsigned": (pa.uint64(), 2**64 - 1, 1),
    "decimals": (pa.decimal128(28, 2), 10**25, 1),
    "binary with a factor": (pa.float64(), 1.7e308, 100),
    "whole with a factor": (pa.int64(), 2**63 - 1, 100),
    "unsigned with a factor": (pa.uint64(), 2**64 - 1, 100),
    "decimals with a factor": (pa.decimal128(28, 2), 10**25, 100),
}


@pytest.mark.parametrize("name", HUGE)
def test_what_is_above_the_cap_decides_nothing_however_much_it_is(tiny: Path, engine: str, name: str) -> None:
    """Such values count with the cap, as if it stood in the file."""
    kind, huge, factor = HUGE[name]
    measure = f'earnings = {{ unit = "dollars", factor = {factor}, cap = {55 * factor} }}'
    text = (RELEASE + PAY + BY_SEX).replace('earnings = { unit = "dollars", cap = 55 }', measure)
    path, found = changed(tiny, text.replace('"duckdb"', f'"{engine}"')), []
    for above in (huge, 55):
        amounts = pa.array([10, above, 30, 40, 50, 60, above, 54], kind)
        pq.write_table(pa.table(TINY["jobs"] | {"earnings": amounts}), tiny / "jobs.parquet")
        with checked(load(path)) as ready:
            counted = ready.count({one.name: one for one in ready.plan.statistics})
        found.append([cells["count"].tolist() for cells in counted.values()])
        if above == huge and engine == "duckdb":
            shares = check(load(path)).cut["earnings"]
            assert (shares.jobs, round(shares.total, 9)) == (3 / 8, 1.0)
    assert found[0] == found[1]
    assert sum(found[0][0]) == factor * (10 + 55 + 30 + 40 + 50 + 55 + 55 + 54)


def test_a_total_has_the_columns_of_a_count_and_tells_its_cap(tiny: Path) -> None:
    done = run(load(release(tiny)))
    tables = {table["name"]: table for table in structure(done.bundle)["tables"]}
    assert tables["pay"]["measure"] == {"name": "earnings", "label": "earnings", "cap": 55}
    assert tables["pay"]["unit"] == "dollars"
    assert set(tables["pay"]["columns"]) == set(tables["jobs"]["columns"])
    assert tables["pay"]["guarantee"]["caps"] == [{"measure": "earnings", "cap": 55}]
    assert "caps" not in tables["jobs"]["guarantee"]
    assert tables["by_sex"]["method"] == "vector-pareto"
    rows = pq.read_table(done.bundle / "tables" / "pay.parquet").to_pylist()
    assert rows[2] | {"place": "", "industry": ""} == {
        "place": "",
        "industry": "",
        "value": 0,
        "error": 0.0,
        "low": 0.0,
        "high": 0.0,
        "establishments": 0,
    }


def test_the_statement_tells_the_cut_and_who_are_neighbours(tiny: Path) -> None:
    text = (run(load(release(tiny))).bundle / "statement.md").read_text(encoding="utf-8")
    assert "of each job at most 55 dollars of earnings counted, and what was above was cut off" in text
    assert "How much was cut off is confidential" in text
    assert "10 % more workers who all have earnings of 55 or more are no single step" in text
    assert "epsilon = 100; with totals of earnings (at most 55 a job)" in text
    assert "Every number of this release" in text
    assert text.count("That an establishment exists, and its attributes") == 1
    assert "If many workers more each have the most that one job counts for, that is several steps." in text


def test_a_measure_without_a_unit_is_named_once(tiny: Path) -> None:
    done = run(load(with_text(tiny, 'unit = "dollars", cap', "cap")))
    text = (done.bundle / "statement.md").read_text(encoding="utf-8")
    assert "of each job at most 55 of earnings counted" in text
    assert "rounded to whole numbers" in text
    assert "earnings of earnings" not in text
    tables = {table["name"]: table for table in structure(done.bundle)["tables"]}
    assert tables["pay"]["columns"]["value"].endswith("a job adds at most 55 of earnings")


def test_an_answer_is_drawn_once_and_another_cap_is_another_question(tiny: Path) -> None:
    path = release(tiny, PAY)
    first = run(load(path)).bundle / "tables" / "pay.csv"
    before = first.read_text(encoding="utf-8")
    assert (run(load(path)).bundle / "tables" / "pay.csv").read_text(encoding="utf-8") == before
    with pytest.raises(BudgetError, match="at most 55 a job"):
        run(load(with_text(tiny, "cap = 55", "cap = 56", PAY)))


def test_data_with_other_pay_are_other_data(tiny: Path) -> None:
    paths = release(tiny, JOBS, PAY)
    with checked(load(paths)) as ready:
        before = {charge.table: charge.question for charge in ready.identity.charges(ready.plan)}
    jobs = TINY["jobs"] | {"earnings": [11, 20, 30, 40, 50, 60, 70, 80]}
    write(tiny / "jobs.parquet", jobs)
    with checked(load(paths)) as ready:
        after = {charge.table: charge.question for charge in ready.identity.charges(ready.plan)}
    assert before["pay"] != after["pay"]


def test_a_table_in_parts_has_the_same_cells(tiny: Path) -> None:
    parts = PAY.replace("protect", "parts = 2\nprotect").replace("epsilon = 2", f"epsilon = {SURE}")
    done = run(load(with_text(tiny, "epsilon = 100,", "epsilon = 300000,", parts)))
    files = sorted((done.bundle / "tables" / "pay").glob("*.parquet"))
    assert len(files) == 2
    values = [row["value"] for file in files for row in pq.read_table(file).to_pylist()]
    assert values == [60, 90, 165]


def test_where_establishments_are_not_told_every_combination_gets_noise(tiny: Path) -> None:
    silent = PAY.replace("protect", "establishments = false\nprotect")
    done = run(load(release(tiny, silent)))
    rows = pq.read_table(done.bundle / "tables" / "pay.parquet").to_pylist()
    assert len(rows) == 4
    assert "establishments" not in rows[0]
    assert all(row["error"] > 0 for row in rows)


def test_counts_and_totals_are_made_in_one_scan_of_the_jobs(tiny: Path) -> None:
    with checked(load(release(tiny))) as ready:
        statistics = {one.name: one for one in ready.plan.statistics}
        assert {kind: set(batch) for kind, batch in by_scan(statistics).items()} == {JobCounts: set(statistics)}
        counted = ready.count(statistics)
    assert counted["pay"]["count"].tolist() == [60, 90, 165]
    assert counted["jobs"]["count"].tolist() == [5, 3]
    assert counted["by_sex"]["largest_employer"].tolist() == [90, 90, 165, 165]


def test_totals_are_left_as_they_are_where_counts_are_made_to_agree(tiny: Path) -> None:
    more = JOBS.replace('"jobs"\ncount', '"fine"\ncount').replace('["place"]', '["place", "industry"]')
    path = with_text(tiny, 'period = "2025"', 'period = "2025"\nreconcile = true', JOBS, more, PAY)
    done = run(load(path))
    assert set(done.plan.reconciled) == {"jobs", "fine"}
    assert done.plan.not_reconciled["pay"] == "it is no table of counts"
    assert "`pay` was left as it is" in (done.bundle / "statement.md").read_text(encoding="utf-8")


def test_cells_are_added_up_with_the_error_of_the_sum(tiny: Path) -> None:
    done = run(load(release(tiny, PAY)))
    rows = pq.read_table(done.bundle / "tables" / "pay.parquet").to_pylist()
    added = select_rows(done.bundle, "pay", by=["place"])
    assert added.unit == "dollars"
    found = added.rows.to_pylist()
    assert [row["value"] for row in found] == [sum(r["value"] for r in rows if r["place"] == p) for p in "AB"]
    one, other = (row["error"] for row in rows[:2])
    assert max(one, other) < found[0]["error"] < one + other
    assert found[1]["error"] == rows[3]["error"]


def test_cents_are_whole_numbers_of_the_smallest_unit(tiny: Path) -> None:
    jobs = TINY["jobs"] | {"earnings": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]}
    write(tiny / "jobs.parquet", jobs)
    path = with_text(tiny, 'unit = "dollars", cap', 'unit = "cents", factor = 100, cap', PAY)
    with checked(load(path)) as ready:
        assert ready.count({one.name: one for one in ready.plan.statistics})["pay"]["count"].tolist() == [60, 90, 165]


# What the office is told.


def test_check_tells_the_office_what_the_cut_takes(tiny: Path) -> None:
    path = release(tiny)
    found = check(load(path)).cut["earnings"]
    assert np.isclose(found.total, (5 + 15 + 25) / 360)
    assert np.isclose(found.jobs, 3 / 8)
    said = CliRunner().invoke(app, ["check", str(path)])
    assert "cuts off 12.50% of the total, of 37.50% of jobs" in " ".join(said.output.split())
    assert "10 workers; or 550 dollars" in said.output
    told = json.loads(CliRunner().invoke(app, ["check", "--json", str(path)]).output)
    assert told["cut"]["earnings"]["share_of_jobs"] == 3 / 8


def test_the_share_that_is_cut_is_in_no_file_that_is_published(tiny: Path) -> None:
    done = run(load(release(tiny)))
    for file in done.bundle.rglob("*"):
        if file.suffix in (".md", ".json", ".csv"):
            text = file.read_text(encoding="utf-8")
            assert "12.5" not in text
            assert "37.5" not in text


def test_the_report_has_totals_in_their_unit(tiny: Path) -> None:
    path = release(tiny)
    run(load(path))
    said = CliRunner().invoke(app, ["assess", str(path)])
    assert said.exit_code == 0, said.output
    assert "dollars in the cell" in said.output


def test_the_budget_is_set_by_the_officer_with_its_totals(tiny: Path) -> None:
    path = release(tiny)
    common = ["--population", "jobs", "--period", "2025", "--epsilon", "100", "--alpha", "0.1", "--ledger"]
    ledger = str(tiny / "ledger.sqlite")
    assert CliRunner().invoke(app, ["budget", "set", *common, ledger]).exit_code == 0
    with pytest.raises(SfumatoError, match="with totals of earnings"):
        run(load(path))
    assert CliRunner().invoke(app, ["budget", "set", *common, ledger, "--totals", "earnings=55"]).exit_code == 0
    assert run(load(path)).bundle.is_dir()
    wrong = CliRunner().invoke(app, ["budget", "set", *common, ledger, "--totals", "earnings"])
    assert wrong.exit_code != 0


def test_the_officer_names_what_a_cap_is_about(tiny: Path) -> None:
    """As messages print it, in any order; two caps of one measure are for windows."""
    write(tiny / "jobs.parquet", TINY["jobs"] | {"pay2": TINY["jobs"]["earnings"]})
    path = with_text(tiny, "cap = 55", 'cap = 55, column = "pay2", factor = 100')
    typed = ["--population", "jobs", "--epsilon", "100", "--alpha", "0.1", "--ledger", str(tiny / "ledger.sqlite")]
    period = ["budget", "set", "--period", "2025", *typed]
    assert CliRunner().invoke(app, [*period, "--totals", "earnings=55"]).exit_code == 0
    with pytest.raises(BudgetError) as refusal:
        run(load(path))
    assert "--totals 'earnings[column=pay2, factor=100]=55'" in refusal.value.do
    assert CliRunner().invoke(app, [*period, "--totals", "earnings[factor=100,column=pay2]=55"]).exit_code == 0
    assert run(load(path)).bundle.is_dir()
    for wrong in ("earnings[unit=euros]=55", "earnings[factor=0]=55", "[factor=2]=55", "earnings[factor=2=55"):
        said = CliRunner().invoke(app, [*period, "--totals", wrong])
        assert isinstance(said.exception, SfumatoError) or said.exit_code != 0
    several = ["--totals", "earnings=10", "--totals", "earnings=20"]
    assert CliRunner().invoke(app, [*period, *several]).exit_code != 0
    window = ["budget", "window", "--length", "year", "--periods", "2", *typed, *several]
    allowed = CliRunner().invoke(app, [*window, "--totals", "earnings[column=pay2, factor=100]=55"])
    assert allowed.exit_code == 0, allowed.output


# What is refused, before anything is charged.


@pytest.mark.parametrize("rule", ['column = "pay2"', "factor = 100"])
def test_another_meaning_of_a_measure_is_another_definition(tiny: Path, rule: str) -> None:
    write(tiny / "jobs.parquet", TINY["jobs"] | {"pay2": TINY["jobs"]["earnings"]})
    run(load(release(tiny, PAY)))
    before = [entry.identifier for entry in Ledger.open(tiny / "ledger.sqlite").history()]
    path = with_text(tiny, "cap = 55", f"cap = 55, {rule}", PAY)
    with pytest.raises(BudgetError) as refusal:
        run(load(path))
    named = f"earnings[{rule.replace(' ', '').replace(chr(34), '')}] (at most 55 a job)"
    assert named in refusal.value.found
    assert named not in refusal.value.expected
    assert "column and factor" in refusal.value.do
    assert [entry.identifier for entry in Ledger.open(tiny / "ledger.sqlite").history()] == before


def test_a_measure_that_says_what_holds_anyway_is_the_same(tiny: Path) -> None:
    run(load(release(tiny, PAY)))
    run(load(with_text(tiny, "cap = 55", 'cap = 55, column = "earnings", factor = 1, maximum = 900', PAY)))


REFUSED = {
    "no cap": ("cap = 55", 'label = "Pay"', "a cap: the most that one job counts for"),
    "negative values": ("cap = 55", "cap = 55, minimum = -10", "make two measures of it"),
    "clipped values": ("cap = 55", 'cap = 55, maximum = 100, outside = "clip"', "a measure with a cap alone"),
    "an unknown measure": ('total = "earnings"', 'total = "earning"', "did you mean 'earnings'"),
    "another method": ("{ epsilon = 2 }", '{ method = "smooth-gamma", epsilon = 2 }', "smooth-pareto or vector-pareto"),
    "a filter on workers": ("protect", 'where = { sex = "F" }\nprotect', "put the attribute into `by`"),
    "margins": ("protect", "totals = true\nprotect", "for tables of records"),
    "nonnegative": ("protect", "nonnegative = true\nprotect", "counts of jobs"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_total_without_a_proof_is_refused(tiny: Path, name: str) -> None:
    old, new, words = REFUSED[name]
    text = (RELEASE + PAY).replace(old, new, 1)
    text = text.replace(', totals = ["earnings"]', "") if name == "no cap" else text
    with pytest.raises(ReleaseError) as refusal:
        check(load(changed(tiny, text)), data=False)
    assert words in str(refusal.value)


def test_worker_cells_one_by_one_are_refused(tiny: Path) -> None:
    path = changed(tiny, RELEASE + BY_SEX.replace("epsilon = 3", 'epsilon = 3, form = "scalar"'))
    with pytest.raises(ReleaseError, match="worker cells are protected together"):
        check(load(path), data=False)


def test_a_budget_that_does_not_name_the_total_is_refused(tiny: Path) -> None:
    with pytest.raises(BudgetError, match="a total of earnings") as refusal:
        check(load(with_text(tiny, ', totals = ["earnings"]', "")), data=False)
    assert 'totals = ["earnings"]' in refusal.value.do
    with pytest.raises(ReleaseError, match="no measure of this name"):
        load(with_text(tiny, 'totals = ["earnings"]', 'totals = ["pay"]', JOBS))
    with pytest.raises(ReleaseError, match="without a `cap`"):
        load(with_text(tiny, ", cap = 55", "", JOBS))


def test_a_negative_amount_is_refused_before_anything_is_charged(tiny: Path) -> None:
    write(tiny / "jobs.parquet", TINY["jobs"] | {"earnings": [-10, 20, 30, 40, 50, 60, 70, 80]})
    with pytest.raises(DataError, match="below 0"):
        run(load(release(tiny)))
    assert not (tiny / "ledger.sqlite").exists()


def test_a_table_of_records_has_no_establishments_to_leave_out(tmp_path: Path) -> None:
    text = """
[release]
title = "Businesses"
period = "2025"
key = "sfumato.key"
[data]
records = { path = "records.parquet", unit = "business" }
[data.attributes]
state = { codes = ["A", "B"] }
[data.measures]
profit = { unit = "dollars" }
[[table]]
name = "total"
total = "profit"
by = ["state"]
establishments = false
protect = { method = "top-contributors" }
"""
    assert CliRunner().invoke(app, ["keys", "new", str(tmp_path / "sfumato.key")]).exit_code == 0
    with pytest.raises(ReleaseError, match="establishments"):
        check(load(changed(tmp_path, text)), data=False)


def test_totals_and_counts_of_one_release_have_one_guarantee(tiny: Path) -> None:
    plan: Plan = check(load(release(tiny)), data=False).plan
    assert plan.guarantee.bound is not None
    assert plan.guarantee.bound == replace(plan.statistics[1].guarantee, epsilon=plan.guarantee.bound.epsilon)
    assert plan.guarantee.bound.epsilon == 2 + 2 + 3
    assert {type(one) for one in plan.statistics} == {JobCounts, JobTotals}
