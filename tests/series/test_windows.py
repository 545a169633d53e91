"""A series whose quarters may spend only so much together: what is run, refused, revised and said."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.checking import check
from sfumato.cli import app
from sfumato.errors import BudgetError
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.windows import WindowOverdraft
from sfumato.release import load
from sfumato.running import Published, run
from tests.series.office import QUARTERS, RELEASE, drop_jobs, make_office

WINDOW = "window = { periods = 4, epsilon = 7 }"
WINDOWED = RELEASE.replace("epsilon = 6 }", f"epsilon = 6, {WINDOW} }}")


def publish(file: Path, *quarters: str, revise: str | None = None) -> Published:
    return [run(load(file, quarter), revise=revise) for quarter in quarters][-1]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release file of a series with three quarters at 2 each, of which four may spend 7; tests take a copy."""
    file = make_office(tmp_path_factory.mktemp("office") / "o", WINDOWED)
    publish(file, *QUARTERS[:3])
    return file


@pytest.fixture
def copied(three: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three.parent, tmp_path / "o")) / "release.toml"


def ledger(file: Path) -> Ledger:
    return Ledger.open(file.parent / "ledger.sqlite")


def sfumato(*words: object) -> Any:
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    return json.loads(done.stdout)


def test_a_quarter_that_would_overdraw_its_window_is_refused_and_nothing_is_charged(copied: Path) -> None:
    entries = ledger(copied).history()
    with pytest.raises(WindowOverdraft, match=r"2026-Q1 to 2026-Q4 \(spent: 2026-Q1 2, 2026-Q2 2, 2026-Q3 2\)"):
        publish(copied, "2026-Q4")
    assert ledger(copied).history() == entries
    cheaper = WINDOWED.replace('"smooth-pareto", epsilon = 2', '"smooth-pareto", epsilon = 1')
    copied.write_text(cheaper, encoding="utf-8")
    [calendar] = publish(copied, "2026-Q4").calendars
    assert [one.epsilon for one in calendar.sums] == [2, 4, 6, 7]


def test_a_check_shows_the_calendar_and_what_is_left_for_the_period(copied: Path) -> None:
    found = check(load(copied, "2026-Q4"))
    assert isinstance(found.refusal, WindowOverdraft)
    [calendar] = found.calendars
    row = calendar.with_period("2026-Q4")
    assert row is not None
    assert (row.first, row.last, row.epsilon, row.remaining_epsilon) == ("2026-Q1", "2026-Q4", 6, 1)
    told = sfumato("check", copied, "--period", "2026Q4")
    [window] = told["windows"]
    assert [one["epsilon"] for one in window["sums"]] == [2, 4, 6, 6]
    assert window["least_left"]["remaining_epsilon"] == 1
    assert window["guarantee"]["epsilon"] == 7
    shown = CliRunner().invoke(app, ["check", str(copied), "--period", "2026Q4"]).stdout
    assert "2026-Q4 (checked now)" in shown
    assert "Left for 2026-Q4: 1" in " ".join(shown.split())


def test_a_window_is_checked_before_there_is_a_ledger(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o", WINDOWED.replace("epsilon = 7", "epsilon = 1"))
    found = check(load(file, "2026-Q1"))
    assert isinstance(found.refusal, WindowOverdraft)
    assert [one.window.periods for one in found.calendars] == [4]
    assert not (file.parent / "ledger.sqlite").exists()


def test_a_revision_is_charged_to_its_window_and_what_is_stored_costs_nothing(copied: Path) -> None:
    copied.write_text(WINDOWED.replace(WINDOW, "window = { periods = 4, epsilon = 9 }"), encoding="utf-8")
    with pytest.raises(BudgetError, match="the window in the ledger"):
        publish(copied, "2026-Q4")
    ledger(copied).set_window("jobs", load(copied, "2026-Q1").window)  # type: ignore[arg-type]
    drop_jobs(copied.parent / "jobs_2026-Q2.csv")
    [calendar] = publish(copied, "2026-Q2", revise="late reports").calendars
    assert {cost.period: cost.epsilon for cost in calendar.costs} == {"2026-Q1": 2, "2026-Q2": 4, "2026-Q3": 2}
    with pytest.raises(WindowOverdraft, match="2026-Q2 4"):
        publish(copied, "2026-Q4")
    entries = ledger(copied).history()
    assert publish(copied, *QUARTERS[:3]).unchanged
    assert ledger(copied).history() == entries


def test_statement_and_structure_tell_what_a_unit_in_all_periods_of_a_window_loses(three: Path) -> None:
    for folder in (three.parent / "bundle", three.parent / "bundle/periods/2026-Q3-v1"):
        said = (folder / "statement.md").read_text(encoding="utf-8")
        for words in (
            "any 4 consecutive quarters",
            "A job that is held for 4 quarters in a row, and an establishment that exists in all of them",
            "strong, alpha = 0.1, epsilon = 7",
            "can be at most 99.91 % sure afterwards",
            "spent: 2026-Q1 2, 2026-Q2 2, 2026-Q3 2",
        ):
            assert words in said, words
        facts = json.loads((folder / "structure.json").read_text(encoding="utf-8"))
        [window] = facts["over_periods"]["windows"]
        assert (window["periods"], window["length"], window["guarantee"]["epsilon"]) == (4, "quarter", 7)
        assert window["most_spent"]["epsilon"] == 6
        about = {(one["about"], one["epsilon"], one["periods"]) for one in window["comparisons"]}
        assert {("job", 7, 4), ("description of a job", 14, 4), ("size", 7, 4)} <= about
        assert any("4 quarters in a row" in text for text in facts["statement"]["promises"])


def test_the_first_quarter_already_tells_what_four_may_lose(three: Path) -> None:
    said = (three.parent / "bundle/periods/2026-Q1-v1/statement.md").read_text(encoding="utf-8")
    short = said.partition("## What it means")[0]
    assert "The tables of 4 quarters in a row tell more" in short
    assert "epsilon = 7" in said


def test_a_series_that_was_published_without_a_window_goes_on_with_one(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    publish(file, *QUARTERS[:2])
    before = ledger(file).history()
    file.write_text(WINDOWED, encoding="utf-8")
    assert publish(file, "2026-Q1").unchanged
    assert ledger(file).history() == before, "what is stored is given again, and nothing is written"
    publish(file, "2026-Q3")
    with pytest.raises(WindowOverdraft):
        publish(file, "2026-Q4")
    assert ledger(file).history()[: len(before)] == before


def test_releases_of_one_period_each_share_the_window_of_their_population(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    alone = RELEASE.replace('[series]\nfirst = "2026-Q1"\n', "")
    for quarter, window in (("2026-Q1", ", window = { periods = 4, epsilon = 3 }"), ("2026-Q2", "")):
        named = alone.replace("{period}", quarter).replace("[release]", f'[release]\nperiod = "{quarter}"')
        own = named.replace("epsilon = 6 }", f"epsilon = 6{window} }}")
        (file.parent / f"{quarter}.toml").write_text(own, encoding="utf-8")
    run(load(file.parent / "2026-Q1.toml"))
    with pytest.raises(WindowOverdraft, match="spent: 2026-Q1 2"):
        run(load(file.parent / "2026-Q2.toml"), replace=True)


def test_the_budget_command_sets_changes_shows_and_lifts_a_window(copied: Path, tmp_path: Path) -> None:
    at = ("--ledger", copied, "--population", "jobs", "--length", "quarter")
    told = sfumato("budget", "--ledger", copied, "--chart", tmp_path / "b.svg")
    [window] = told["populations"][0]["windows"]
    assert [one["remaining_epsilon"] for one in window["sums"]] == [5, 3, 1]
    drawn = (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "most that a window may spend" in drawn
    shown = " ".join(CliRunner().invoke(app, ["budget", "--ledger", str(copied)]).stdout.split())
    assert "Spent of 7 for any 4 consecutive quarters" in shown
    told = sfumato("budget", "window", *at, "--periods", 2, "--epsilon", 4, "--alpha", 0.1, "--note", "less")
    [window] = told["populations"][0]["windows"]
    assert [one["epsilon"] for one in window["sums"]] == [2, 4, 4]
    assert told["history"][-1]["window"]["periods"] == 2
    refused = CliRunner().invoke(
        app, list(map(str, ["budget", "window", *at, "--periods", 2, "--epsilon", 3, "--alpha", 0.1]))
    )
    assert refused.exit_code != 0
    told = sfumato("budget", "window", *at, "--lift", "--note", "by the board")
    assert "windows" not in told["populations"][0]
    assert told["history"][-1]["note"] == "by the board"


CHILD = """
import sys
from sfumato.release import load
from sfumato.running import run
run(load(sys.argv[1], sys.argv[2]), progress=lambda step: print(step, flush=True))
"""


@pytest.mark.parametrize("step", ["charge", "tabulate", "publish"])
def test_a_run_that_is_killed_leaves_its_window_within_its_limit_and_the_next_finishes_it(
    three: Path, tmp_path: Path, step: str
) -> None:
    folder = Path(shutil.copytree(three.parent, tmp_path / "o"))
    file = folder / "release.toml"
    file.write_text(WINDOWED.replace('"smooth-pareto", epsilon = 2', '"smooth-pareto", epsilon = 1'), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(file), "2026-Q4"], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        while child.stdout.readline().strip() not in (step, ""):
            pass
        child.kill()
    [calendar] = ledger(file).calendars("jobs", "2026-Q4")
    assert calendar.sums[-1].epsilon in (6, 7)
    publish(file, "2026-Q4")
    [calendar] = ledger(file).calendars("jobs")
    assert calendar.sums[-1].epsilon == 7
    assert publish(file, "2026-Q4").unchanged
