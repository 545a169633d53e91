"""What runs in a process of its own, and tells what it found as JSON on its last line, with the peak of its memory.

`python -m bench.shared.child release FILE` runs a release file with a clock at every step; `live FILE` opens one and
answers one question. Other children are beside what they measure. Each imports only what its run needs.
"""

import json
import resource
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any


def peak_bytes() -> int:
    """The most memory that this process ever held.

    Linux lets a child begin with its parent's `ru_maxrss`, so there the high-water mark of the process itself is read.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def say(**found: Any) -> None:
    """Print what was found, with the peak of memory unless it was read before."""
    print(json.dumps({"peak_bytes": peak_bytes(), **found}))


def main() -> None:
    """Make the one run."""
    what, file = sys.argv[1], Path(sys.argv[2])
    if what == "live":
        _live(file)
        say()
    else:
        say(steps=_release(file))


def _release(file: Path) -> dict[str, dict[str, float]]:
    """Seconds of every step by the clock, and by the processors, which others on the machine disturb less."""
    import duckdb  # noqa: F401 (loaded by `run` on first use: only so is it outside of the clock)

    from sfumato.release import load
    from sfumato.running import run

    marks: list[tuple[str, float, float]] = []

    def mark(step: str) -> None:
        marks.append((step, perf_counter(), process_time()))

    mark("load")
    run(load(file), mark)
    mark("end")
    return {
        step: {"seconds": after[1] - clock, "processor": after[2] - processor}
        for (step, clock, processor), after in pairwise(marks)
    }


def _live(file: Path) -> None:
    from sfumato.live import open_guarded
    from sfumato.release import load

    release = load(file)
    with open_guarded(release) as live:
        live.ask(total=release.tables[0].total, by=release.tables[0].by)


if __name__ == "__main__":
    main()
