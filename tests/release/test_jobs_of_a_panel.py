"""Counts, totals and means of a panel in a release file: which periods, what they cost, what is said, and a series."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sfumato import open_bundle
from sfumato.checking import check
from sfumato.errors import BudgetError, ReleaseError
from sfumato.keys import new_key
from sfumato.live.charged import open_charged
from sfumato.plan import Plan
from sfumato.privacy.guarantee import Loss
from sfumato.privacy.meaning import odds
from sfumato.privacy.over_time import record_losses
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.jobs.at_periods import moved_by_record
from sfumato.statistics.jobs.question import Question
from tests.engine.panels import by_hand

RELEASE = """
[release]
title = "Jobs"
period = "2024-2025"
budget = {{ alpha = 0.1, epsilon = 20{budget} }}
{more}

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "employer", period = "quarter", {span}\
earnings = "earnings"{jobs} }}
workplaces = {{ path = "employers.parquet", key = "employer" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["state", "agency"]

[data.attributes]
state = {{ codes = ["A", "B"] }}
agency = {{ codes = ["X", "Y"] }}
sex = {{ codes = ["F", "M"] }}

[data.measures]
earnings = {{ unit = "dollars", cap = 45 }}

"""
SPAN = 'first = "2024-Q1", last = "2025-Q2", '
TWO = 'where = { quarter = ["2024-Q3", "2024-Q4"] }\n'
COUNT = 'count = "jobs"\n'


def table(by: str, more: str = "", *, name: str = "jobs", asked: str = COUNT, protect: str = "epsilon = 4") -> str:
    listed = ", ".join(f'"{attribute}"' for attribute in by.split())
    return f'[[table]]\nname = "{name}"\n{asked}by = [{listed}]\n{more}protect = {{ {protect} }}\n\n'


def written(folder: Path, tables: str, *, budget: str = "", more: str = "", jobs: str = "", span: str = SPAN) -> Path:
    """A release of the panel that is typed by hand, written beside its files."""
    by_hand().write(folder)
    path = folder / "release.toml"
    text = RELEASE.format(budget=budget, more=more, jobs=jobs, span=span)
    if "[series]" in more:
        text = text.replace('period = "2024-2025"\n', "")
    path.write_text(text + tables, encoding="utf-8")
    return path


def plan_of(folder: Path, tables: str, **options: Any) -> Plan:
    return check(load(written(folder, tables, **options))).plan


# Which periods.


@pytest.mark.parametrize(
    ("tables", "options", "said"),
    [
        (table("state"), {}, ["one 'quarter' in `where`", 'where = { quarter = ["2025-Q2"] }']),
        (table("state", TWO), {}, ["several of them in `where`", 'add "quarter" to `by`']),
        (table("state quarter"), {}, ["can be had of 2024-Q2 to 2025-Q2", "2024-Q1"]),
        (
            table("state", 'where = { quarter = "2025-Q2" }\n'),
            {"jobs": ', population = "full_quarter"'},
            ["the period before and the one after it", "can be had of 2024-Q2 to 2025-Q1"],
        ),
        (table("state", 'where = { quarter = "2029-Q2" }\n'), {}, ["codes of quarter", "2029-Q2"]),
        (
            table("state", 'where = { quarter = "2025-Q2" }\n', protect='method = "noise-infusion"'),
            {"more": 'key = "sfumato.key"'},
            ['indicators = ["employment"]'],
        ),
        (
            table("state quarter", TWO, protect='epsilon = { "2024-Q3" = 1 }'),
            {},
            ["an epsilon for each of its periods: 2024-Q3, 2024-Q4"],
        ),
        (
            table("state quarter", TWO, protect='epsilon = { "2024-Q3" = 1, "2024-Q4" = 2 }, error_epsilon = 0.1'),
            {},
            ["one number beside error_epsilon"],
        ),
        (
            table(
                "state quarter", TWO, protect='epsilon = { "2024-Q3" = 1, "2024-Q4" = 2 }', asked='mean = "earnings"\n'
            ),
            {"budget": ', totals = ["earnings"]'},
            ["one number"],
        ),
        (table("state quarter", TWO), {"budget": ', populations = ["end"]'}, ['"beginning" among them']),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(
    tables: str, options: dict[str, str], said: list[str], tmp_path: Path
) -> None:
    if "key" in options.get("more", ""):
        new_key(tmp_path / "sfumato.key")
    with pytest.raises(ReleaseError) as error:
        plan_of(tmp_path, tables, **options)
    for words in said:
        assert words in str(error.value)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_mean_of_several_periods_needs_the_epsilon_that_its_refusal_names(tmp_path: Path) -> None:
    def means(epsilon: str) -> Plan:
        asked = table("quarter sex state", TWO, protect=f"epsilon = {epsilon}", asked='mean = "earnings"\n')
        return plan_of(tmp_path, asked, budget=', totals = ["earnings"]')

    with pytest.raises(ReleaseError, match="in each period") as error:
        means("3")
    named = re.findall(r"or epsilon = ([\d.]+)", str(error.value))
    assert means(named[0]).guarantee.epsilon == Fraction(named[0])


def test_a_population_is_of_a_panel_alone(tmp_path: Path) -> None:
    path = written(tmp_path, table("state"), jobs=', population = "end"')
    text = path.read_text(encoding="utf-8").replace(
        'period = "quarter", ' + SPAN + 'earnings = "earnings"', 'workplace = "employer"'
    )
    path.write_text(text.replace('workplace = "employer", workplace', "workplace"), encoding="utf-8")
    with pytest.raises(ReleaseError, match="`population` chooses jobs of a panel"):
        load(path)


# What it costs.


def test_periods_share_epsilon_and_their_guarantees_add_up(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        table("state quarter", TWO)
        + table("state quarter", TWO, name="each", protect='epsilon = { "2024-Q3" = 1, "2024-Q4" = 2 }')
        + table("state", 'where = { quarter = "2024-Q4" }\n', name="one", protect="epsilon = 2"),
    )
    shared, each, one = plan.tables
    assert (shared.method.epsilon, one.method.epsilon) == (2, 2)
    assert [table.guarantee.epsilon for table in plan.tables] == [4, 3, 2]
    assert each.spent_at == {"2024-Q3": Fraction(1), "2024-Q4": Fraction(2)}
    assert shared.spent_at == {"2024-Q3": Fraction(2), "2024-Q4": Fraction(2)}
    assert plan.guarantee.epsilon == 9  # one establishment is in all periods
    assert plan.guarantee.caps == (("jobs[population=beginning]", 1),)


def test_the_same_epsilon_in_each_period_is_the_question_with_their_sum(tmp_path: Path) -> None:
    each = 'epsilon = { "2024-Q3" = 2, "2024-Q4" = 2 }'
    plan = plan_of(tmp_path, table("state quarter", TWO) + table("state quarter", TWO, name="each", protect=each))
    assert len({one.digest("") for one in plan.statistics}) == 1


def test_delta_is_shared_too(tmp_path: Path) -> None:
    protect = 'method = "smooth-laplace", epsilon = 4, delta = 0.02'
    (found,) = plan_of(tmp_path, table("state quarter", TWO, protect=protect), budget=", delta = 0.02").tables
    assert (found.guarantee.delta, found.method.guarantee().delta) == (Fraction("0.02"), Fraction("0.01"))


def test_a_population_of_all_jobs_limits_nothing_more(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, table("state quarter"), jobs=', population = "any"')
    assert plan.guarantee.caps == ()
    assert len(plan.tables[0].spent_at) == 6


def test_populations_share_a_budget_that_lists_them(tmp_path: Path) -> None:
    both = ', populations = ["beginning", "end"], totals = ["earnings"]'
    pay = table("state quarter", TWO, name="pay", asked='total = "earnings"\n')
    for population in ("beginning", "end"):
        folder = tmp_path / population
        folder.mkdir()
        options = {"jobs": f', population = "{population}"', "more": 'ledger = "../one.sqlite"'}
        done = run(load(written(folder, table("state quarter", TWO) + pay, budget=both, **options)))
        assert done.balance is not None
    assert done.balance.spent_epsilon == 16
    assert [cap for cap, _ in done.balance.budget.caps] == [
        *("earnings[population=beginning]", "earnings[population=end]"),
        *("jobs[population=beginning]", "jobs[population=end]"),
    ]
    with pytest.raises(BudgetError, match="the budget in the ledger"):
        run(load(written(tmp_path / "end", table("state quarter", TWO), **{**options, "jobs": ', population = "any"'})))


# What is published and said.


def test_a_run_publishes_counts_totals_and_means_and_tells_what_a_job_and_a_record_lose(tmp_path: Path) -> None:
    tables = (
        table("state quarter", TWO)
        + table("state quarter", TWO, name="pay", asked='total = "earnings"\n')
        + table("state", 'where = { quarter = "2024-Q4" }\n', name="mean", asked='mean = "earnings"\n')
    )
    release = load(written(tmp_path, tables, budget=', totals = ["earnings"]'))
    done = run(release)
    rows = {name: pq.read_table(done.bundle / "tables" / f"{name}.parquet") for name in ("jobs", "pay", "mean")}
    assert rows["jobs"].column_names[:3] == ["state", "quarter", "value"]
    assert [len(found) for found in rows.values()] == [4, 4, 2]
    statement = (done.bundle / "statement.md").read_text(encoding="utf-8")
    assert "The tables are about: 2024-Q3, epsilon = 4; 2024-Q4, epsilon = 8." in statement
    record = odds(Loss(steps=1, epsilon=Fraction(12), delta=Fraction(0)))  # it decides about both quarters
    assert f"by all tables of this release together the odds change by {record}" in statement
    assert "the number of jobs at the beginning of a period is larger by at most 10 % or by one" in statement
    described = json.loads((done.bundle / "structure.json").read_text(encoding="utf-8"))
    assert [one["role"] for one in described["tables"][0]["dimensions"]] == [None, "time"]
    assert assess(release).report.exists()
    assert run(release).charged == ()


@pytest.mark.parametrize(
    ("population", "most"),
    [("any", 4), ("beginning", 6), ("end", 6), ("full_quarter", 7)],
)
def test_a_record_loses_what_the_periods_that_look_at_it_spend(population: str, most: int) -> None:
    spent = {"b": Fraction(1), "c": Fraction(4), "d": Fraction(2)}
    asked = Question(by=(), periods=tuple(spent), population=population)
    assert max(record_losses(spent, "abcde", moved_by_record(asked)).values()) == most


def test_tables_of_one_period_agree(tmp_path: Path) -> None:
    tables = table("state agency quarter", TWO) + table("state quarter", TWO, name="states")
    each = table("agency quarter", TWO, name="each", protect='epsilon = { "2024-Q3" = 1, "2024-Q4" = 2 }')
    done = run(load(written(tmp_path, tables + each, more="reconcile = true")))
    fine, coarse = (
        pq.read_table(done.bundle / "tables" / f"{name}.parquet").to_pylist() for name in ("jobs", "states")
    )
    for row in coarse:
        parts = [r["value"] for r in fine if (r["state"], r["quarter"]) == (row["state"], row["quarter"])]
        assert sum(parts) == row["value"]
    assert "spend different epsilons" in done.plan.not_reconciled["each"]


def test_a_table_in_parts_is_the_same_table(tmp_path: Path) -> None:
    each = 'epsilon = { "2024-Q3" = 1, "2024-Q4" = 2 }'
    tables = table("state quarter sex", TWO + "parts = 2\n") + table(
        "quarter state", TWO + "parts = 2\n", name="each", protect=each
    )
    done = run(load(written(tmp_path, tables)))
    assert [open_bundle(done.bundle).rows(name).num_rows for name in ("jobs", "each")] == [8, 4]


def test_releases_of_another_population_are_no_earlier_ones(tmp_path: Path) -> None:
    first = written(tmp_path, table("state quarter", TWO), jobs=', population = "end"')
    first.rename(tmp_path / "first.toml")
    with pytest.raises(ReleaseError, match="other jobs of the panel"):
        check(load(written(tmp_path, table("agency quarter", TWO), more='earlier = ["first.toml"]')))


# A series.

SERIES = '[series]\nfirst = "2024-Q2"\n'
IN_WINDOW = ", window = { periods = 4, epsilon = 9 }"


def test_a_series_is_about_one_period_of_the_panel_and_keeps_to_the_window(tmp_path: Path) -> None:
    path = written(tmp_path, table("state"), more=SERIES, span="", budget=IN_WINDOW)
    one, other = (run(load(path, period=period)) for period in ("2024-Q3", "2024-Q4"))
    assert one.plan.tables[0].spent_at == {"2024-Q3": Fraction(4)}
    assert other.balance is not None
    assert (other.balance.account.period, other.balance.spent_epsilon) == ("2024-Q4", 4)
    with pytest.raises(BudgetError, match="4 consecutive quarters"):
        run(load(path, period="2025-Q1"))
    assert run(load(path, period="2024-Q3")).unchanged


@pytest.mark.parametrize("population", ["beginning", "end", "any"])
def test_a_period_of_a_panel_opens_no_second_budget_under_another_name(tmp_path: Path, population: str) -> None:
    path = written(tmp_path, table("state"), more=SERIES, span="")
    run(load(path, period="2024-Q3"))
    text = path.read_text(encoding="utf-8").replace("[release]", '[release]\npopulation = "others"\nbundle = "others"')
    other = tmp_path / "other.toml"
    meant = f'earnings = "earnings", population = "{population}", accept = "one job each"'
    other.write_text(text.replace('earnings = "earnings"', meant), encoding="utf-8")
    with pytest.raises(BudgetError, match="whose budget would protect the same people and employers once more"):
        run(load(other, period="2024-Q3"))
    whole = table("state", more='where = { quarter = ["2024-Q3"] }\n')
    with pytest.raises(BudgetError, match="whose budget would protect"):
        run(load(written(tmp_path, whole, more='population = "third"\nbundle = "third"\n')))


def test_another_period_of_a_panel_has_a_budget_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, table("state"), more=SERIES, span="")
    run(load(path, period="2024-Q3"))
    other = tmp_path / "other.toml"
    text = path.read_text(encoding="utf-8")
    other.write_text(text.replace("[release]", '[release]\npopulation = "others"\nbundle = "others"'), encoding="utf-8")
    assert run(load(other, period="2024-Q4")).charged == ("jobs",)


def test_other_quarters_change_nothing_in_a_published_one(tmp_path: Path) -> None:
    path = written(tmp_path, table("state sex"), more=SERIES, span="")
    run(load(path, period="2024-Q3"))
    jobs = pq.read_table(tmp_path / "jobs.parquet").to_pylist()
    far = [row for row in jobs if row["quarter"] in ("2024-Q2", "2024-Q3")]
    pq.write_table(pq.read_table(tmp_path / "jobs.parquet").slice(0, 0).from_pylist(far), tmp_path / "jobs.parquet")
    assert run(load(path, period="2024-Q3")).unchanged


@pytest.mark.parametrize(
    ("tables", "options", "period", "said"),
    [
        (table("state quarter"), {"span": ""}, "2024-Q3", "a table of a series is about the period that is run"),
        (table("state"), {}, "2024-Q1", "a quarter of this series"),
        (table("state"), {"jobs": ', population = "end"'}, "2025-Q2", "a quarter that the panel has"),
        (
            '[[table]]\nname = "i"\nindicators = "all"\nby = ["quarter"]\nprotect = { method = "noise-infusion" }\n',
            {"more": 'key = "sfumato.key"\n' + SERIES},
            "2024-Q3",
            "counts, totals and means of jobs with a guarantee",
        ),
        (table("state"), {"more": SERIES + 'column = "quarter"\n'}, "2024-Q3", "leave out `column`"),
    ],
)
def test_what_is_no_series_of_a_panel_is_refused(
    tables: str, options: dict[str, str], period: str, said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, tables, **{"more": SERIES, **options})
    with pytest.raises(ReleaseError, match=said):
        check(load(path, period=period))


def test_ad_hoc_questions_are_about_the_period_of_a_series(tmp_path: Path) -> None:
    path = written(tmp_path, table("state"), more=SERIES + "\n[live]\nbudget = 4\n", span="")
    with open_charged(load(path, period="2024-Q3")) as live:
        asked = live.plan(by=("state",), epsilon=Fraction(2))
        assert asked.spent_at == {"2024-Q3": Fraction(2)}
        assert len(live.answer(asked)) == 2
    whole = load(written(tmp_path, table("state quarter", TWO), more="[live]\nbudget = 4\n"))
    with pytest.raises(ReleaseError, match="a panel with all its periods"), open_charged(whole):
        pass
