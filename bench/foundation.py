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

    Each round begins with another one, so that none always follows the heaviest. Every run is checked. A first round
    is thrown away: it warms imports and the page cache, and validates the files before a case relies on that.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ("floor", *(case.name for case in cases))}
    tell("warming up")
    for case in (None, *sorted(cases, key=lambda case: not case.first)):
        _, errors = _checked_run(folder, case, truth)
    for number in range(repeat):
        tell(f"round {number + 1} of {repeat}")
        turns: list[Case | None] = [None, *cases]
        start = number % len(turns)
        for case in turns[start:] + turns[:start]:
            taken, found = _checked_run(folder, case, truth)
            seconds[case.name if case else "floor"].append(taken)
            errors = found or errors
    assert errors is not None  # there is a case among the turns
    return Foundation(seconds=seconds, errors=errors)


def _checked_run(folder: Path, case: Case | None, truth: Truth) -> tuple[float, Errors | None]:
    """Seconds of one run whose result is right; without a case, of the floor."""
    if case is None:
        taken, table = timed(lambda: floor(folder))
        truth.check_floor(table)
        return taken, None
    release = case.prepare()
    taken, _ = timed(case.publish)
    return taken, truth.check_published(release)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of some work, begun with nothing left over from before: no garbage, no unwritten files."""
    gc.collect()
    os.sync()
    begin = perf_counter()
    result = work()
    return perf_counter() - begin, result
