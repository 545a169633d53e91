"""One run at the size of a nation, in a process of its own: `python -m bench.nation.child WHAT FOLDER OPTION…`.

`economy FOLDER JOBS ESTABLISHMENTS` makes the data. `floor FOLDER RELEASE` is DuckDB alone, writing what it finds for
the gate. Tells seconds without imports and the peak of memory.
"""

import sys
from pathlib import Path
from time import perf_counter

from bench.shared.child import say


def main() -> None:
    """Make the one run, importing only what it needs."""
    what, folder, option = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if what == "floor":
        say(seconds=_floor(folder, option))
    else:
        say(seconds=_economy(folder, jobs=int(option), establishments=int(sys.argv[4])))


def _floor(folder: Path, release: str) -> float:
    """Every query of a release, one after the other, as a user without a release file would ask them."""
    import pyarrow.parquet as pq

    from bench.jobs.floor import floor
    from bench.nation.releases import MEMORY, RELEASES

    settings = {"memory_limit": f"{MEMORY}GB", "temp_directory": str(folder / "spill")}
    seconds = 0.0
    for name, by in RELEASES[release].items():
        begin = perf_counter()
        found = floor(folder, by, settings)
        seconds += perf_counter() - begin
        pq.write_table(found, folder / f"{name}.true.parquet")
    return seconds


def _economy(folder: Path, *, jobs: int, establishments: int) -> float:
    from sfumato_lab.economy.jobs.generate import generate

    begin = perf_counter()
    generate(folder, jobs=jobs, establishments=establishments)
    return perf_counter() - begin


if __name__ == "__main__":
    main()
