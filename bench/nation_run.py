"""One run at the size of a nation, in a process of its own: `python nation_run.py WHAT FOLDER OPTION…`.

`economy FOLDER JOBS ESTABLISHMENTS` makes the data. `floor FOLDER RELEASE MEMORY` is DuckDB alone with so many GB of
memory, writing what it finds for the gate. `release FOLDER RELEASE` runs a release file. Prints seconds without imports
and the peak of memory, as JSON.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

from nation_releases import RELEASES, floor_query
from peak import peak_bytes


def main() -> None:
    """Make the one run, importing only what it needs."""
    what, folder, option = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    if what == "floor":
        seconds = _floor(folder, option, memory=int(sys.argv[4]))
    elif what == "economy":
        seconds = _economy(folder, jobs=int(option), establishments=int(sys.argv[4]))
    else:
        seconds = _release(folder, option)
    print(json.dumps({"seconds": seconds, "peak": peak_bytes()}))


def _floor(folder: Path, release: str, *, memory: int) -> float:
    """Every query of a release, one after the other, as a user without a release file would ask them."""
    import duckdb
    import pyarrow.parquet as pq

    seconds = 0.0
    for name, by in RELEASES[release].items():
        query = floor_query(by)
        files = {
            name: str(folder / f"{name}.parquet") for name in ("jobs", "workplaces", "workers") if f"${name}" in query
        }
        begin = perf_counter()
        settings = {"memory_limit": f"{memory}GB", "temp_directory": str(folder / "spill")}
        with duckdb.connect(config=settings) as connection:
            found = connection.execute(query, files).to_arrow_table()
        seconds += perf_counter() - begin
        pq.write_table(found, folder / f"{name}.true.parquet")
    return seconds


def _economy(folder: Path, *, jobs: int, establishments: int) -> float:
    from sfumato_lab.economy.jobs.generate import generate

    begin = perf_counter()
    generate(folder, jobs=jobs, establishments=establishments)
    return perf_counter() - begin


def _release(folder: Path, release: str) -> float:
    import ibis.backends.duckdb  # noqa: F401 (loaded by `run` on first use: only so is it outside of the clock)

    from sfumato.release import load
    from sfumato.running import run

    begin = perf_counter()
    run(load(folder / f"{release}.toml"))
    return perf_counter() - begin


if __name__ == "__main__":
    main()
