"""What commands print is whole: no word and no number is cut, however narrow the screen."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from io import StringIO
from pathlib import Path

import pytest
from rich import box
from rich.console import Console

import sfumato
import sfumato_lab
from sfumato.cli.screen import Table, printed_table
from tests.cli.call import SFUMATO

NAMES = ["Agriculture, forestry and fishing", "Wholesale trade", "Health"]
FIGURES = ["613,886,123", "-4,886,000", "12.75%", "1.234e+05"]


def printed(table: Table, width: int) -> list[str]:
    """The lines of a table on a screen of this width."""
    console = Console(file=StringIO(), width=width, markup=False, highlight=False)
    console.print(table)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def wide(columns: int) -> Table:
    table = printed_table("industry", *(f"estimate of {at}" for at in range(columns)), numbers=columns)
    for name in NAMES:
        table.add_row(name, *(FIGURES[at % len(FIGURES)] for at in range(columns)))
    return table


@pytest.mark.parametrize("width", [40, 80, 120, 400])
@pytest.mark.parametrize("columns", [1, 4, 9, 20])
def test_no_word_and_no_number_is_cut(width: int, columns: int) -> None:
    lines = printed(wide(columns), width)
    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    assert "…" not in text
    words = text.split()
    for at in range(columns):
        expected = sum(other % len(FIGURES) == at % len(FIGURES) for other in range(columns))
        assert words.count(FIGURES[at % len(FIGURES)]) == len(NAMES) * expected
        assert words.count(str(at)) == 1, "every heading stands once"


def test_columns_that_name_the_rows_stand_beside_all_others() -> None:
    lines = printed(wide(9), 80)
    parts = sum("industry" in line for line in lines)
    assert parts > 1
    assert sum("Health" in line for line in lines) == parts
    assert sum("industry" in line for line in printed(wide(9), 400)) == 1


def test_several_columns_may_name_the_rows() -> None:
    table = printed_table("state", "industry", *("value" for _ in range(8)), numbers=8)
    table.add_row("NSW", "Health", *(["613,886,123"] * 8))
    named = [line.split() for line in printed(table, 60) if "NSW" in line]
    assert len(named) > 1
    assert all(words[:2] == ["NSW", "Health"] for words in named)


def test_a_title_stands_once_and_rows_keep_their_style() -> None:
    table = Table(box=box.SIMPLE_HEAD, title="Errors")
    for at in range(6):
        table.add_column(f"heading{at}" * 3)
    table.add_row(*("x" for _ in range(6)), style="bold")
    assert sum("Errors" in line for line in printed(table, 80)) == 1


def test_every_table_of_a_command_is_of_this_kind() -> None:
    for package in (sfumato, sfumato_lab):
        folder = Path(next(iter(package.__path__)))
        named = [path.name for path in folder.rglob("*.py") if re.search(r"rich\.table", path.read_text())]
        assert set(named) <= {"screen.py"}


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {
    "NO_COLOR": "1",
    "TERM": "xterm",
}


def on_a_terminal(*arguments: str | Path, width: int = 80) -> str:
    """What a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    with subprocess.Popen([*SFUMATO, *map(str, arguments)], stdout=theirs, env=ENVIRONMENT) as process:
        os.close(theirs)
        found = b""
        try:
            while read := os.read(ours, 65_536):
                found += read
        except OSError:
            pass  # the other end was closed
        os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", found.decode())


def in_a_pipe(*arguments: str | Path) -> str:
    """What a command prints to another program."""
    words = [*SFUMATO, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, check=True).stdout


@pytest.mark.slow
def test_every_command_prints_whole_words_on_screens_of_any_width(release_folder: Path) -> None:
    file, key, state = release_folder / "release.toml", release_folder / "office.key", release_folder / "state"
    in_a_pipe("run", file)
    in_a_pipe("keys", "new", key)
    in_a_pipe("users", "add", "ann", "--role", "analyst", "--state", state)
    accuracy = "90% of cells of at least 100 jobs within 10%"
    for command in (
        ["check", file, "--sizes", "100,150"],
        ["run", file],
        ["assess", file],
        ["preview", file],
        ["compare", file, "--method", "rounding", "--trials", "2"],
        ["budget", "--ledger", file],
        ["query", release_folder / "bundle", "jobs_by_industry"],
        ["tune", file, "--table", "jobs_by_place", "--accuracy", accuracy],
        ["doctor", file],
        ["keys", "show", key],
        ["users", "list", "--state", state],
    ):
        piped = in_a_pipe(*command)
        assert piped
        for width in (40, 60, 80):
            shown = on_a_terminal(*command, width=width)
            assert max(map(len, shown.splitlines())) <= width, command
            assert shown.count("…") == piped.count("…"), command
            words = {word for word in piped.split() if len(word) <= width - 4 and not set(word) & set("─█▌▏")}
            # What a preview draws on trial differs, and so do the clock and the disk that the doctor looks at.
            figures = {word for word in words if re.fullmatch(r"[\d.,:%-]+", word)}
            differs = figures if command[0] in ("preview", "doctor") else set()
            assert words - differs <= set(shown.split()), command


def test_a_question_is_answered_whole_on_80_columns_and_on_one_line_where_nobody_looks(
    bundles: dict[str, Path],
) -> None:
    bundle = str(bundles["business"])
    asked = ["query", bundle, "turnover_by_state_industry", "--by", "state,industry"]
    shown = on_a_terminal(*asked)
    assert max(map(len, shown.splitlines())) <= 80
    piped = in_a_pipe(*asked)
    for text in (shown, piped):
        assert "…" not in text
    assert max(map(len, piped.splitlines())) > 80
    numbers = re.compile(r"(?<!\S)-?[\d,.]+(?!\S)")
    assert set(numbers.findall(piped)) <= set(numbers.findall(shown))
