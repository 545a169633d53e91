"""The foundation: seconds of the floor and of every case, run in turn in one warm process."""

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from cases import Case
from floor import floor
from gate import Errors, Truth

Tell = Callable[[str], None]
"""Told what is being measured."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """Seconds of every run, by case; and the errors of the last published table."""

    seconds: dict[str, list[float]]
    errors: Errors


def measure_foundation(folder: Path, cases: Sequence[Case], truth: Truth, *, repeat: int, tell: Tell) -> Foundation:
    """Run the floor and the cases in turn, so that whatever else the machine does touches all of them alike.

    Every run is checked; the first round is thrown away: it warms imports and the page cache, and validates the
    files, first validations first.
    """
    warming = sorted(cases, key=lambda case: not case.first)
    seconds: dict[str, list[float]] = {name: [] for name in ("floor", *(case.name for case in cases))}
    for number in range(repeat + 1):
        tell(f"round {number} of {repeat}" if number else "warming up")
        taken, found = _timed(lambda: floor(folder))
        truth.check_floor(found)
        round_seconds = {"floor": taken}
        for case in cases if number else warming:
            release = case.prepare()
            round_seconds[case.name], _ = _timed(case.publish)
            errors = truth.check_published(release)
        if number:
            for name, taken in round_seconds.items():
                seconds[name].append(taken)
    return Foundation(seconds=seconds, errors=errors)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of some work, begun with nothing left over from before: no garbage, no unwritten files."""
    gc.collect()
    os.sync()
    begin = perf_counter()
    result = work()
    return perf_counter() - begin, result
