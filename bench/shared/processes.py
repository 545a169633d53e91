"""What is timed: work in this process, begun with nothing left over, and whole commands as a user waits for them."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
SFUMATO = Path(sys.executable).with_name("sfumato")
Tell = Callable[[str], None]
"""Told what is being measured."""
T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of some work, begun with nothing left over from before: no garbage, no unwritten files."""
    gc.collect()
    os.sync()
    begin = perf_counter()
    result = work()
    return perf_counter() - begin, result


def in_turn(turns: Mapping[str, Callable[[], T]], *, repeat: int, tell: Tell, what: str) -> dict[str, list[T]]:
    """What each gives, round after round, so that whatever else the machine does touches all of them alike.

    Each round begins with another one, so that none always follows the heaviest.
    """
    names = list(turns)
    found: dict[str, list[T]] = {name: [] for name in names}
    for number in range(repeat):
        tell(f"{what}, round {number + 1} of {repeat}")
        start = number % len(names)
        for name in names[start:] + names[:start]:
            found[name].append(turns[name]())
    return found


def make_economy(folder: Path, *, jobs: int) -> float:
    """Seconds of `sfumato economy`; its data are what everything else is measured on."""
    return seconds_of(SFUMATO, "economy", folder, "--jobs", jobs)


def seconds_of(*command: object) -> float:
    """Seconds of a command that must succeed."""
    begin = perf_counter()
    output_of(*command)
    return perf_counter() - begin


def output_of(*command: object, variables: Mapping[str, str] | None = None) -> str:
    """What a command prints; it must succeed."""
    return subprocess.run(
        [str(part) for part in command],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | (variables or {}),
    ).stdout


def module(name: str, *arguments: object) -> tuple[object, ...]:
    """The command that runs a module of the benchmark by itself."""
    return (sys.executable, "-m", f"bench.{name}", *arguments)


def told_by(name: str, *arguments: object, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What such a module tells on its last line."""
    said = output_of(*module(name, *arguments), variables=variables)
    found: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    return found
