"""Words that are not understood get an error that says which would be, and exit codes say what went wrong."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato import errors
from sfumato.cli import command, known_commands
from sfumato.cli.usage import EXIT_CODES
from tests.cli.call import SFUMATO, call


def leaves(found: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    below = getattr(found, "commands", {})
    for word, inner in below.items():
        yield from leaves(inner, f"{name} {word}")
    if not below or found.invoke_without_command:
        yield name, found


LEAVES = {name: found for word in known_commands() for name, found in leaves(command(word), word)}


PROTOCOLS = {"mcp"}
"""Commands whose standard output is JSON messages and nothing else, whatever they are asked."""


@pytest.mark.parametrize("name", [name for name in LEAVES if name not in PROTOCOLS])
def test_every_command_speaks_json(name: str) -> None:
    assert "--json" in {flag for parameter in LEAVES[name].params for flag in parameter.opts}


@pytest.mark.parametrize("kind", [kind for kind in vars(errors).values() if isinstance(kind, type)])
def test_every_error_has_an_exit_code_that_is_documented(kind: type) -> None:
    if issubclass(kind, errors.SfumatoError):
        assert kind.exit_code in EXIT_CODES
        assert kind.exit_code > 1, "1 is for what nobody foresaw"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "the_same"),
    [
        (["-h"], ["--help"]),
        (["help"], ["--help"]),
        (["help", "run"], ["run", "--help"]),
        (["run", "-h"], ["run", "--help"]),
        (["help", "budget", "set"], ["budget", "set", "--help"]),
        (["budget", "help"], ["budget", "--help"]),
        (["tune", "help"], ["tune", "--help"]),
        (["-V"], ["--version"]),
        (["version"], ["--version"]),
    ],
)
def test_help_and_version_are_found_however_they_are_asked_for(words: list[str], the_same: list[str]) -> None:
    assert call(*words).stdout == call(*the_same).stdout


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80])
def test_help_fits_the_screen_and_cuts_no_word(width: int) -> None:
    for name in ("", *LEAVES):
        narrow, wide = (call(*name.split(), "-h", COLUMNS=str(columns)).stdout for columns in (width, 400))
        assert max(map(len, narrow.splitlines())) <= width
        assert narrow.count("…") == wide.count("…"), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("rnu", "did you mean `run`?"),
        ("chekc release.toml", "did you mean `check`?"),
        ("budget ste", "did you mean `set`?"),
        ("keys shwo office.key", "did you mean `show`?"),
        ("tune tabel release.toml", "did you mean `table`?"),
        ("economy job", "did you mean `jobs`?"),
        ("run --jsn release.toml", "did you mean `--json`?"),
        ("run", "FILE: The release file"),
        ("tune release.toml", "--accuracy"),
        ("run one.toml two.toml", "two.toml"),
        ("serve bundle --port many", "--port"),
        ("budget set --json --epsilon", "a value after --epsilon"),
        ("budget set --population p --period q --epsilon 1 --definition strnog", "strong"),
        ("nonsense", "`sfumato --help` says what each does"),
    ],
)
def test_what_is_not_understood_is_answered_with_what_would_be(words: str, meant: str, tmp_path: Path) -> None:
    done = call(*words.split(), *([] if "--json" in words else ["--json"]), code=2, cwd=tmp_path)
    assert meant in done.stderr
    assert "expected:" in done.stderr
    assert json.loads(done.stdout)["error"]["exit_code"] == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_no_word_at_all_prints_help_and_is_no_success() -> None:
    done = call(code=2)
    assert "Commands" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_reader_who_has_enough_is_no_error_and_a_full_disk_is_one(bundles: dict[str, Path]) -> None:
    asked = [*SFUMATO, "query", str(bundles["business"]), "turnover_by_state_industry", "--json"]
    ours, theirs = os.pipe()
    os.close(ours)
    gone = subprocess.run(asked, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert gone.returncode == 1
    assert gone.stderr == ""
    for words in (asked, asked[:-1]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == errors.DiskError.exit_code
        assert "free space" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
