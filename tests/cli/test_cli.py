"""The command line: plain words, JSON for machines, no tracebacks."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.call import call


@pytest.mark.slow
def test_help_teaches_where_to_begin() -> None:
    text = call("--help").stdout
    assert "sfumato demo" in text
    for command in ("demo", "economy", "check", "run", "query", "assess", "tune", "reproduce", "budget", "keys"):
        assert command in text
        assert call(command, "--help").stdout


def test_the_version_is_printed() -> None:
    assert call("--version").stdout.startswith("sfumato 0")


@pytest.mark.slow
def test_check_shows_guarantee_charge_cells_and_error_and_changes_nothing(release_folder: Path) -> None:
    before = sorted(release_folder.iterdir())
    text = call("check", release_folder / "release.toml", "--no-data").stdout
    assert "epsilon = 4" in text
    assert "The data were not opened. Nothing was charged." in text
    assert sorted(release_folder.iterdir()) == before
    found = json.loads(call("check", release_folder / "release.toml", "--json").stdout)
    assert found["guarantee"] == {"definition": "strong", "alpha": 0.1, "epsilon": 4, "delta": 0}
    assert [t["charge_epsilon"] for t in found["tables"]] == [2, 1, 1]
    assert all(t["protects"]["employer_size"] == "yes" for t in found["tables"])
    assert all(t["planned_error"]["floor"] > 0 and t["cells"] > 0 for t in found["tables"])
    assert found["due_epsilon"] == 4
    assert not (release_folder / "ledger.sqlite").exists()


def test_run_budget_and_assess_follow_each_other(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    first = json.loads(call("run", file, "--json").stdout)
    assert len(first["charged"]) == 3
    assert "at no charge" in call("run", file).stdout
    assert "paid before" in call("check", file).stdout
    budget = json.loads(call("budget", "--ledger", file, "--json").stdout)
    assert budget["accounts"][0]["remaining_epsilon"] == 0
    assert [e["kind"] for e in budget["history"]] == ["budget", "charge", "charge", "charge"]
    assert "The chain of entries is whole" in call("budget", "--ledger", release_folder / "ledger.sqlite").stdout
    assert "CONFIDENTIAL" in call("assess", file).stdout
    report = release_folder / "bundle-confidential" / "report.html"
    assert "CONFIDENTIAL" in report.read_text()
    assert report.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_an_overdraft_says_what_is_left_and_the_officer_can_raise_the_budget(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    call("run", file)
    file.write_text(file.read_text().replace("epsilon = 2.0", "epsilon = 2.5"))
    refused = call("run", file, refused=True)
    assert "epsilon = 0, delta = 0" in refused.stderr
    assert "epsilon = 2.5" in refused.stderr
    account = ("--population", "jobs", "--period", "2025", "--ledger", file)
    call("budget", "set", *account, "--alpha", "0.1", "--epsilon", "6.5", "--note", "approved")
    text = call("run", file, refused=True).stderr
    assert "6.5" in text  # the release file still says 4: both must agree
    file.write_text(file.read_text().replace("epsilon = 4.0", "epsilon = 6.5"))
    assert "Charged: jobs_by_place_industry." in call("run", file).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "nowhere.toml"), "nowhere.toml"),
        (("run", "nowhere.toml"), "a release file"),
        (("assess", "nowhere.toml"), "a release file"),
        (("budget", "--ledger", "nowhere.sqlite"), "nowhere.sqlite"),
        (("economy", "out", "--jobs", "5"), "10,000"),
        (
            ("budget", "set", "--population", "p", "--period", "q", "--alpha", "much", "--epsilon", "1"),
            "a number such as",
        ),
    ],
)
def test_an_error_is_text_for_people_and_json_for_machines(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = call(*arguments, refused=True, cwd=tmp_path)
    assert said in done.stderr
    assert "expected:" in done.stderr
    error = json.loads(call(*arguments, "--json", refused=True, cwd=tmp_path).stdout)["error"]
    assert {"kind", "exit_code", "where", "expected", "found", "do"} == error.keys()
    assert error["exit_code"] == done.returncode
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_assess_before_run_says_to_publish_first(release_folder: Path) -> None:
    assert "publish the release first" in call("assess", release_folder / "release.toml", refused=True).stderr


@pytest.mark.slow
def test_economy_writes_a_release_that_runs_and_can_show_its_shape(tmp_path: Path) -> None:
    out = tmp_path / "e"
    made = json.loads(call("economy", out, "--jobs", "10000", "--shape", "--json").stdout)
    assert made["jobs"] == 10_000
    assert made["shape"]
    call("run", made["release"])
    assert "a folder without an economy" in call("economy", out, "--jobs", "10000", refused=True).stderr


@pytest.mark.slow
def test_the_demo_shows_a_chart_and_what_to_try_and_can_be_repeated(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    text = call("demo", "--out", out, "--jobs", "20000").stdout
    assert "█" in text
    assert "What to try next" in text
    assert (out / "bundle-confidential" / "report.html").exists()
    again = json.loads(call("demo", "--out", out, "--jobs", "20000", "--json").stdout)
    assert again["run"]["charged"] == []
    assert "choose another folder" in call("demo", "--out", out, "--jobs", "30000", refused=True).stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "jobs.parquet").write_text("precious")
    assert "other files" in call("demo", "--out", tmp_path / "mine", refused=True).stderr
    assert (tmp_path / "mine" / "jobs.parquet").read_text() == "precious"


def test_the_ledger_can_be_named_before_or_after_set(release_folder: Path, tmp_path: Path) -> None:
    amounts = ("--population", "p", "--period", "q", "--alpha", "0.1", "--epsilon", "1")
    call("budget", "--ledger", release_folder / "release.toml", "set", *amounts, cwd=tmp_path)
    assert (release_folder / "ledger.sqlite").exists()
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.slow
def test_a_budget_for_individuals_needs_no_alpha_and_may_allow_conditions(tmp_path: Path) -> None:
    account = ("--population", "p", "--period", "q", "--epsilon", "1", "--ledger", tmp_path / "ledger.sqlite")
    assert "--alpha" in call("budget", "set", *account, refused=True).stderr
    stated = ("--definition", "individuals", "--conditional", "--json")
    budget = json.loads(call("budget", "set", *account, *stated).stdout)["accounts"][0]["budget"]
    assert (budget["definition"], budget["alpha"], budget["epsilon"]) == ("individuals", 1, 1)
    assert "on conditions" in budget["condition"]


@pytest.mark.slow
def test_a_refused_first_run_opens_no_account(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    file.write_text(file.read_text().replace("epsilon = 4.0", "epsilon = 3.0"))
    assert "epsilon = 4" in call("run", file, refused=True).stderr
    file.write_text(file.read_text().replace("epsilon = 3.0", "epsilon = 4.0"))
    call("run", file)


BEGINS = """
import sys
from sfumato import cli
from sfumato_lab.economy.jobs import generate

write_people = generate.write_people

def begun(*given, **options):
    print("begun", flush=True)
    write_people(*given, **options)

generate.write_people = begun
sys.argv = ["sfumato", "economy", sys.argv[1], "--jobs", "20000000"]
cli.main()
"""


@pytest.mark.slow
def test_an_interrupted_command_says_so(release_folder: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", BEGINS, str(release_folder / "large")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate()
    assert child.returncode == 130
    assert "Stopped. Nothing was half-written" in said
    assert not (release_folder / "large" / "release.toml").exists()
