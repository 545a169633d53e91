"""Seconds of every step of one run, in a process of its own: `python steps_run.py FILE`, printed as JSON.

Beside the seconds of the clock stand those of the processors, which others on the machine disturb less.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import ibis.backends.duckdb  # noqa: F401 (loaded by `run` on first use: only so is it outside of the clock)
from peak import peak_bytes

from sfumato.release import load
from sfumato.running import run


def main() -> None:
    """Run the release file with a clock at every step."""
    marks: list[tuple[str, float, float]] = []

    def mark(step: str) -> None:
        marks.append((step, perf_counter(), process_time()))

    mark("load")
    run(load(Path(sys.argv[1])), mark)
    mark("end")
    steps = {
        step: {"seconds": after[1] - clock, "processor": after[2] - processor}
        for (step, clock, processor), after in pairwise(marks)
    }
    print(json.dumps({"steps": steps, "peak": peak_bytes()}))


if __name__ == "__main__":
    main()
