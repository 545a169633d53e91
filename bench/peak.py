"""Peak memory of one run, told by the process that made it: `python peak.py WHAT PATH`.

WHAT is `floor` or `aggregate`, which are DuckDB alone; `release`, which runs a release file; or `live`, which opens one
and answers one question.
"""

import resource
import sys
from pathlib import Path


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


def main() -> None:
    """Make the one run, importing only what it needs."""
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "floor":
        from floor import floor

        floor(path)
    elif what == "aggregate":
        from contributor_floor import SAME, Floor

        Floor(path).answer(SAME)
    elif what == "live":
        from sfumato.live import open_guarded
        from sfumato.release import load

        release = load(path)
        with open_guarded(release) as live:
            live.ask(total=release.tables[0].total, by=release.tables[0].by)
    else:
        from sfumato.release import load
        from sfumato.running import run

        run(load(path))
    print(peak_bytes())


if __name__ == "__main__":
    main()
