"""Indicators and moves of a panel with a guarantee, from the release file to the published rows."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.errors import SfumatoError
from sfumato.privacy.guarantee import Loss
from sfumato.privacy.meaning import odds
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.selection import everything
from sfumato.statistics.jobs.tune import read_accuracy, tune_table
from tests.engine.test_indicators import at_random
from tests.serve.test_model import cells

HEAD = """
[release]
title = "Histories"
period = "2022-2023"
budget = {{ {budget} }}

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "employer", period = "quarter", first = "2022-Q1", \
last = "2023-Q4", earnings = "earnings" }}
workplaces = {{ path = "employers.parquet", key = "employer" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["state", "agency"]

[data.attributes]
state = {{ codes = ["A", "B"] }}
agency = {{ codes = ["X", "Y", "Z"] }}
sex = {{ codes = ["F", "M"] }}
grade = {{ codes = ["a", "b"] }}

[data.measures]
{measures}

"""
STRONG, PEOPLE = 'alpha = 0.1, epsilon = 100, totals = ["earnings"]', 'epsilon = 100, definition = "individuals"'
CAPPED = 'earnings = { unit = "dollars", cap = 40000 }'


def written(folder: Path, *tables: dict[str, str], budget: str = STRONG, measures: str = CAPPED) -> Path:
    """A panel with a release of some tables, keys of each as they are written."""
    panel = at_random(seed=2, workers=300, largest=50_000)
    panel.write(folder)
    text = HEAD.format(budget=budget, measures=measures)
    for number, table in enumerate(tables):
        keys = {"name": f'"t{number}"', "by": '["state", "quarter"]', **table}
        text += "[[table]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items()) + "\n\n"
    (folder / "release.toml").write_text(text, encoding="utf-8")
    return folder / "release.toml"


def rows(bundle: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(bundle / f"tables/{table}.parquet").to_pylist()
    return found


ALL = {"indicators": '"all"', "protect": '{ method = "smooth-pareto", epsilon = 32 }'}
BY_SEX = {
    "indicators": '"all"',
    "by": '["sex", "agency", "quarter"]',
    "where": '{ quarter = ["2023-Q1"] }',
    "protect": "{ epsilon = 6 }",
}
MOVES = {
    "flow": '{ attribute = "state" }',
    "by": '["quarter", "sex"]',
    "protect": '{ method = "laplace", epsilon = 4 }',
}


def test_identities_hold_in_published_rows_and_sums_and_figures_stand_beside(tmp_path: Path) -> None:
    done = run(load(written(tmp_path, ALL, BY_SEX)))
    for name, keys in (("t0", ("state", "quarter")), ("t1", ("sex", "agency", "quarter"))):
        cells: dict[Any, dict[str, Any]] = {}
        for row in rows(done.bundle, name):
            cells.setdefault(tuple(row[key] for key in keys), {})[row["indicator"]] = row
        some = 0
        for cell in cells.values():
            value = {code: row["value"] for code, row in cell.items()}
            for code, row in cell.items():
                assert (row["value"] is None) == (row["status"] == "not available")
                assert (row["error"] is None) == (row["value"] is None)
                if row["value"] is not None and row["establishments"]:
                    assert row["low"] <= max(row["value"], 0) <= (row["high"] or row["value"])
                    assert row["error"] > 0, code
            if value["recalls"] is None or value["full_quarter"] is None:
                continue
            some += 1
            assert value["beginning"] + value["accessions"] - value["separations"] == value["end"]
            assert value["new_hires"] + value["recalls"] == value["accessions"]
            assert value["job_creation"] - value["job_destruction"] == value["end"] - value["beginning"]
            assert value["beginning"] + value["accessions"] == value["employment"]
        assert some


def test_a_plan_states_the_sum_over_periods_and_caps_and_facts_are_fields(tmp_path: Path) -> None:
    done = run(load(written(tmp_path, ALL, BY_SEX)))
    first, second = done.plan.tables
    assert (float(first.guarantee.epsilon), float(second.guarantee.epsilon)) == (32, 6)
    assert first.guarantee.caps == (("earnings", 40_000),)
    structure = json.loads((done.bundle / "structure.json").read_text(encoding="utf-8"))
    spent = structure["tables"][0]["spent_on"]
    assert len(spent) == 8
    assert all(sum(parts.values()) == pytest.approx(4) for parts in spent.values())
    assert set(spent["2022-Q1"]) == {"counts", "payroll"}  # nothing is known of the quarter before
    statement = (done.bundle / "statement.md").read_text(encoding="utf-8")
    assert "one held in 4 periods at most 16" in statement
    assert "an establishment that is there in all of them, 32" in statement
    assert [one["name"] for one in structure["tables"][0]["dimensions"]] == ["state", "quarter", "indicator"]


def test_what_is_said_of_a_record_adds_up_over_counts_indicators_and_moves(tmp_path: Path) -> None:
    quarter = '{ quarter = ["2022-Q3"] }'
    jobs = {"count": '"jobs"', "where": quarter, "protect": '{ method = "laplace", epsilon = 1 }'}
    moves = MOVES | {"where": quarter, "protect": '{ method = "laplace", epsilon = 2 }'}
    indicators = {"indicators": '["employment", "end"]', "where": quarter, "protect": "{ epsilon = 3 }"}
    done = run(load(written(tmp_path, jobs, moves, indicators, budget=f"alpha = 0.1, {PEOPLE}")))
    statement = (done.bundle / "statement.md").read_text(encoding="utf-8")
    assert "The tables are about: 2022-Q3, epsilon = 6." in statement
    # A record of the quarter before: one job less at the beginning, other moves, and another kind of job, two steps.
    most = odds(Loss(steps=1, epsilon=Fraction(1 + 2 + 2 * 3), delta=Fraction(0)))
    assert f"by all tables of this release together the odds change by {most}" in statement
    assert "no row is exactly 0" in statement


def test_only_what_is_asked_for_is_published_and_periods_may_spend_their_own(tmp_path: Path) -> None:
    asked = {
        "indicators": '["accessions", "payroll"]',
        "where": '{ quarter = ["2022-Q1", "2022-Q2"] }',
        "protect": '{ epsilon = { "2022-Q1" = 2, "2022-Q2" = 3 } }',
    }
    done = run(load(written(tmp_path, asked)))
    found = rows(done.bundle, "t0")
    assert {row["indicator"] for row in found} == {"accessions", "payroll"}
    assert float(done.plan.tables[0].guarantee.epsilon) == 5
    known = {(row["quarter"], row["indicator"]) for row in found if row["value"] is not None}
    assert known == {("2022-Q1", "payroll"), ("2022-Q2", "payroll"), ("2022-Q2", "accessions")}


def test_without_the_number_of_establishments_every_cell_is_protected(tmp_path: Path) -> None:
    asked = {
        "indicators": '["employment"]',
        "by": '["agency", "quarter"]',
        "establishments": "false",
        "protect": "{ epsilon = 8 }",
    }
    done = run(load(written(tmp_path, asked)))
    found = rows(done.bundle, "t0")
    assert len(found) == 3 * 8  # agency Z has no establishment
    assert any(row["value"] for row in found if row["agency"] == "Z")
    assert "establishments" not in found[0]


def test_moves_are_published_with_errors_and_are_unknown_at_both_ends(tmp_path: Path) -> None:
    done = run(load(written(tmp_path, MOVES, budget=PEOPLE)))
    found = rows(done.bundle, "t0")
    assert len(found) == 2 * 2 * 8 * 2
    assert {row["quarter"] for row in found if row["value"] is None} == {"2022-Q1", "2023-Q4"}
    # No job begins or ends in more than four of six quarters, so that each has a noise of epsilon = 1.
    assert {row["error"] for row in found if row["value"] is not None and row["value"] >= 0} == {1.92}
    assert done.plan.tables[0].guarantee.definition == "individuals"


def test_the_office_is_told_what_the_cap_takes_off_and_reports_compare(tmp_path: Path) -> None:
    file = written(tmp_path, ALL)
    cut = check(load(file)).cut["earnings"]
    assert 0 < cut.total < cut.jobs < 1
    run(load(file))
    found = assess(load(file), tmp_path / "report")
    assert (tmp_path / "report").exists()
    assert found is not None


def test_tuning_says_where_errors_by_epsilon_are_told(tmp_path: Path) -> None:
    release = load(written(tmp_path, ALL))
    with pytest.raises(SfumatoError, match="formal-indicators"):
        tune_table(release, "t0", accuracy=read_accuracy("mean error below 5%"))


def test_the_server_shows_errors_beside_values_and_what_is_not_available(tmp_path: Path) -> None:
    done = run(load(written(tmp_path, ALL)))
    table = open_catalogue([BundleSource(folder=done.bundle)])["t0"]
    served = cells(table.answer(everything(table)))
    by = [dimension.name for dimension in table.dimensions]
    for row in rows(done.bundle, "t0"):
        assert served[tuple(row.pop(name) for name in by)] == row


@pytest.mark.parametrize(
    ("table", "budget", "measures", "words"),
    [
        ({**ALL, "protect": "{ epsilon = 4 }"}, STRONG, CAPPED, "choose fewer periods"),
        ({**ALL, "protect": '{ method = "laplace", epsilon = 4 }'}, STRONG, CAPPED, "noise-infusion, which has no"),
        ({**ALL, "protect": '{ method = "smooth-laplace", epsilon = 4 }'}, STRONG, CAPPED, "smooth-pareto"),
        ({**ALL, "where": '{ sex = "F" }'}, STRONG, CAPPED, "into `by` instead"),
        ({**ALL, "by": '["state"]'}, STRONG, CAPPED, "add 'quarter' to `by`"),
        (ALL, "alpha = 0.1, epsilon = 100", "", "name indicators without payrolls"),
        (ALL, "alpha = 0.1, epsilon = 100", "earnings = { unit = 'dollars' }", "name indicators without payrolls"),
        (ALL, "alpha = 0.1, epsilon = 100", CAPPED, "totals"),
        (
            {**ALL, "protect": "{ epsilon = 40, shares = { counts = 1 } }"},
            STRONG,
            CAPPED,
            "counts, changes and payroll",
        ),
        ({**ALL, "protect": "{ epsilon = 40, delta = 0.1 }"}, STRONG, CAPPED, "leave it out"),
        ({**ALL, "protect": '{ epsilon = { "2022-Q1" = 40 } }'}, STRONG, CAPPED, "an epsilon for each period"),
        (
            {"indicators": '["recalls"]', "where": '{ quarter = ["2022-Q1"] }', "protect": "{ epsilon = 2 }"},
            STRONG,
            CAPPED,
            "choose other indicators or periods",
        ),
        (MOVES, STRONG, CAPPED, 'definition = "individuals"'),
        ({**MOVES, "protect": '{ method = "smooth-pareto", epsilon = 4 }'}, STRONG, CAPPED, "does not hide it in all"),
        ({**MOVES, "flow": '{ attribute = "state", weight = "earnings" }'}, PEOPLE, CAPPED, "leave `weight` out"),
        ({**MOVES, "flow": '{ attribute = "state", weight = "edges" }'}, PEOPLE, CAPPED, "leave `weight` out"),
        ({**MOVES, "by": '["quarter", "grade"]'}, PEOPLE, CAPPED, "a column of the table of workers"),
        (
            {"graph": '{ attribute = "state" }', "by": '["quarter"]', "protect": '{ method = "laplace", epsilon = 1 }'},
            PEOPLE,
            CAPPED,
            "may link its employer with any number of others",
        ),
    ],
)
def test_what_cannot_be_protected_is_refused_before_anything_is_charged(
    tmp_path: Path, table: dict[str, str], budget: str, measures: str, words: str
) -> None:
    file = written(tmp_path, table, budget=budget, measures=measures)
    with pytest.raises(SfumatoError) as refused:
        run(load(file))
    assert words in str(refused.value)
    assert not list(tmp_path.glob("*.sqlite"))
