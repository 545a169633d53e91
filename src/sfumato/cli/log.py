"""One line for every step, with its time, for logs; and silence where cron would mail what is printed."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import IO, Annotated, Any

import typer

from sfumato import __version__

_CRON = frozenset({"cron", "crond", "anacron", "atd", "fcron"})


class Log:
    """Where steps are told: in a file, on standard error, in both, or nowhere.

    Only names of steps, seconds and published figures are written, so that a log may be read by whoever keeps the
    machine. What an error found in the data is not: it counts records.
    """

    def __init__(self) -> None:
        self._files: list[IO[str]] = []
        self._began = self._step_began = monotonic()
        self._step = ""
        self._figures: dict[str, object] = {}

    def open(self, file: IO[str]) -> None:
        """Tell everything from now on in this file too."""
        told, self._files = self._files, [file]
        self._write("begins", {"sfumato": __version__})
        self._files += told

    def step(self, name: str) -> None:
        """Another step begins, and the one before it ends; without a name there is none."""
        if name == self._step:
            return
        if self._step:
            self._write(self._step, {"seconds": f"{monotonic() - self._step_began:.2f}"})
        self._step, self._step_began = name, monotonic()

    def note(self, **figures: object) -> None:
        """Figures for the last line: published ones, or those of the ledger."""
        self._figures |= {name: value for name, value in figures.items() if value is not None}

    def end(self, code: int) -> None:
        """The command ends."""
        self.step("")
        self._write("ends", {"exit": code, "seconds": f"{monotonic() - self._began:.2f}", **self._figures})

    def _write(self, what: str, figures: dict[str, object]) -> None:
        words = " ".join(f"{name}={value}" for name, value in figures.items())
        command = " ".join([*sys.argv[1:3], *_period(sys.argv)])
        time = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        for file in self._files:
            try:
                file.write(f"{time} sfumato[{os.getpid()}] {command}: {what} {words}\n")
                file.flush()
            except OSError:  # a full disk stops no run on account of its log
                continue


def _period(words: Sequence[str]) -> list[str]:
    """The period that a command names, as it is typed: runs of a series differ in nothing else.

    >>> _period(["sfumato", "run", "release.toml", "--period", "2026Q1"]), _period(["sfumato", "--period=2026"])
    (['2026Q1'], ['2026'])
    """
    named = [after for word, after in pairwise(words) if word == "--period"]
    return named[-1:] or [word.partition("=")[2] for word in words if word.startswith("--period=")][-1:]


log = Log()
"""The log of this command."""


def _to_file(path: Path | None) -> Path | None:
    if path is not None:
        from sfumato.paths import refuse_other

        log.open(refuse_other(path, "--log", "log", b"20").open("a", encoding="utf-8"))
    return path


def _to_standard_error(wanted: bool) -> bool:
    if wanted:
        log.open(sys.stderr)
    return wanted


LogFile = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Add a line for every step to a file.", callback=_to_file),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print a line for every step to standard error.", callback=_to_standard_error),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing unless something needs attention; the default under cron."),
]


def under_cron() -> bool:
    """Whether cron started this process, and would mail what is printed; only Linux tells."""
    process: Any = os.getppid()
    while process and not sys.stdout.isatty():
        try:
            text = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            break
        name, rest = text[text.index("(") + 1 :].rsplit(")", 1)  # a name may have blanks and brackets
        if name in _CRON:
            return True
        process = int(rest.split()[1])
    return False
