"""Commands with kinds below them, and what was typed before there were kinds: both are understood."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.cli import known_commands
from tests.cli.call import call


def test_economy_lists_its_kinds_and_teaches_the_default() -> None:
    text = " ".join(call("economy", "--help").stdout.split())
    assert "jobs" in text
    assert "sfumato economy FOLDER --jobs 100000 is short for sfumato economy jobs FOLDER" in text
    assert "Number of jobs" in call("economy", "jobs", "--help").stdout
    assert "Number of jobs" in call("economy", "folder", "--help").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("here", "--jobs", "10000", "--json"),
        ("--jobs", "10000", "here", "--json"),
        ("--json", "here", "--jobs=10000"),
        ("jobs", "here", "--jobs", "10000", "--json"),
        ("jobs", "--json", "--jobs", "10000", "here"),
        ("./jobs", "--json", "--jobs", "10000"),
    ],
)
def test_an_economy_without_a_kind_is_one_of_jobs(words: tuple[str, ...], tmp_path: Path) -> None:
    made = json.loads(call("economy", *words, cwd=tmp_path).stdout)
    assert made["jobs"] == 10_000
    folder = tmp_path / ("jobs" if "./jobs" in words else "here")
    assert (folder / "release.toml").exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


@pytest.mark.parametrize("words", [("economy",), ("economy", "--jobs", "10000"), ("economy", "here", "--nonsense")])
def test_an_economy_that_is_not_understood_writes_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    call(*words, code=2, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_reproduce_lists_its_papers_and_refuses_others() -> None:
    assert "haney2017" in call("reproduce", "--help").stdout
    assert "--quick" in call("reproduce", "haney2017", "--help").stdout
    assert "nobody1999" in call("reproduce", "nobody1999", code=2).stderr


def test_a_paper_is_reproduced_with_its_options_in_any_order(tmp_path: Path) -> None:
    done = call("reproduce", "haney2017", "--json", "--jobs", "5", "--quick", "--seed", "2", refused=True, cwd=tmp_path)
    assert "10,000" in json.loads(done.stdout)["error"]["expected"]


@pytest.mark.parametrize("group", ["economy", "reproduce", "budget", "keys"])
def test_a_mistyped_option_of_a_group_is_a_usage_error(group: str) -> None:
    assert "--nonsense" in call(group, "--nonsense", code=2).stderr


def test_commands_are_listed_in_the_order_in_which_someone_new_meets_them() -> None:
    text = call("--help").stdout
    names = ["demo", "economy", "check", "run", "query", "assess", "tune", "reproduce", "budget", "keys"]
    places = [text.index(f"│ {name} ") for name in names]
    assert places == sorted(places)


def test_help_lists_every_command_and_imports_none_of_them_nor_anything_heavy() -> None:
    start = "import sys, sfumato.cli; sys.argv = ['sfumato', '--help']"
    code = f"{start}\ntry: sfumato.cli.main()\nfinally: print(*sys.modules)"
    *text, loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"}
    ).stdout.splitlines()
    heavy = {"duckdb", "pyspark", "pyarrow", "numpy", "pandas", "sqlalchemy", "pydantic", "fastapi"}
    assert not heavy & set(loaded.split())
    ours = {word for word in loaded.split() if word.startswith(("sfumato.", "sfumato_lab."))}
    needed = {"sfumato.cli", "sfumato.cli.log", "sfumato.cli.screen", "sfumato.cli.usage", "sfumato.errors"}
    assert ours == {*needed, "sfumato_lab.commands"}
    for name, (_, line) in known_commands().items():
        assert any(name in row and line in row for row in text), f"help says what {name} is for"
        assert len(line) <= 80, "on one line"
