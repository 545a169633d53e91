"""The job that a contestant gets: what to publish, from which files, and where to put it.

Every script in this folder runs in an environment of its own, so this file needs nothing but Python.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any


class Job:
    """What was asked for, and the clock of the work without imports."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.data = Path(asked["data"])
        self.by: list[str] = asked["by"]
        self.epsilon: float = asked["epsilon"]
        self.out = Path(asked["out"])
        self.begin()

    def file(self, name: str) -> str:
        """One of the Parquet files of the data."""
        return str(self.data / f"{name}.parquet")

    @property
    def keys(self) -> str:
        """The cells that are to be published, as a Parquet file: they are public."""
        return str(self.asked["keys"])

    @property
    def of_workplaces(self) -> list[str]:
        """The attributes that are the workplaces'."""
        return [name for name in self.by if name not in self.of_workers]

    @property
    def of_workers(self) -> list[str]:
        """The attributes that are the workers'; none when workers need not be joined."""
        return [name for name in self.by if name in {"sex", "education"}]

    def begin(self) -> None:
        """Start the clock, or start it again when a session had to be opened first."""
        self.begun, self.ended = perf_counter(), 0.0

    def end(self) -> None:
        """Stop the clock, if it still runs."""
        self.ended = self.ended or perf_counter()


def work(do: Callable[[Job], None]) -> None:
    """Do the job that the command line names, and tell how long it took."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    job = Job(asked)
    do(job)
    job.end()
    Path(asked["told"]).write_text(json.dumps({"seconds": job.ended - job.begun}), encoding="utf-8")
