"""The benchmark: sfumato beside DuckDB alone and beside other tools, on the same data, in one run on this machine.

`make bench` runs all parts at full size; a part can be named to run it alone. Results go to a folder; the page
docs/benchmarks.md and its chart are rewritten whenever that is the committed one, so that they always show what is
committed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cases import write_cases
from chart import draw_chart
from claims import FEWEST_ROUNDS, JOBS, Results, Section, foundation_section
from contributor_claims import contributors_section
from contributors import measure_contributors
from cube import measure_cube
from cube_claims import cube_section
from foundation import Tell, measure_foundation
from gate import Truth, WrongResultError
from infusion import PERSONS, measure_infusion
from infusion_claims import infusion_section
from large import measure_large
from large_claims import large_section
from large_data import CELLS
from machine import Machine
from nation import SIZES, measure_nation
from nation_chart import draw_nation
from nation_claims import nation_section
from peer_chart import draw_peers
from peer_claims import peers_section
from peer_measure import measure_peers
from processes import command_seconds, demo_seconds, import_seconds, make_economy, peak_memory
from records import RECORDS
from report import print_report, update_page
from rich.console import Console
from samplers import measure_samplers
from samplers_claims import samplers_section
from server import measure_server
from server_claims import server_section
from steps import measure_steps, steps_section
from survey import QUOTES

from sfumato.errors import SfumatoError

_ROOT = Path(__file__).resolve().parent.parent
_COMMITTED = _ROOT / "bench" / "results"
_SECTIONS: dict[str, Callable[[Results], Section]] = {
    "foundation": foundation_section,
    "contributors": contributors_section,
    "infusion": infusion_section,
    "cube": cube_section,
    "server": server_section,
    "samplers": samplers_section,
    "large": large_section,
    "nation": nation_section,
    "steps": steps_section,
    "peers": peers_section,
}
_CHARTS: dict[str, Callable[[Path, Results], None]] = {
    "foundation": draw_chart,
    "nation": draw_nation,
    "peers": draw_peers,
}


def main() -> int:
    """Measure, check and report, one part after the other; with anything wrong no figure of a part is shown."""
    asked = _arguments()
    console = Console()
    for part in asked.parts or _SECTIONS:
        try:
            with console.status("starting") as status, _data_folder(asked.out) as folder:
                machine = Machine.now()
                results = _measure(part, folder, asked, status.update)
        except (WrongResultError, SfumatoError, subprocess.CalledProcessError) as error:
            console.print(f"No figures: {error}", style="bold red", markup=False)
            if isinstance(error, subprocess.CalledProcessError):
                console.print(error.stderr, markup=False)
            return 1
        results = {"about": str(machine), "machine": asdict(machine), **results}
        section = _SECTIONS[part](results)
        print_report(console, section)
        (asked.out / f"{part}.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        if asked.out.resolve() == _COMMITTED:
            update_page(_ROOT / "docs" / "benchmarks.md", section)
            if part in _CHARTS:
                _CHARTS[part](_ROOT / "docs" / "images" / f"{part}.svg", results)
    return 0


def _measure(part: str, folder: Path, asked: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "foundation": lambda: _foundation(folder, jobs=asked.jobs, repeat=asked.repeat, tell=tell),
        "contributors": lambda: measure_contributors(folder, records=asked.records, repeat=asked.repeat, tell=tell),
        "infusion": lambda: measure_infusion(folder, persons=asked.persons, tell=tell),
        "cube": lambda: measure_cube(folder, records=asked.quotes, tell=tell),
        "server": lambda: measure_server(folder, records=asked.records, repeat=asked.repeat, tell=tell),
        "samplers": lambda: measure_samplers(folder, repeat=asked.repeat, tell=tell),
        "large": lambda: measure_large(folder, jobs=asked.jobs, cells=asked.cells, tell=tell),
        "nation": lambda: measure_nation(folder, sizes=asked.sizes, repeat=asked.repeat, tell=tell),
        "steps": lambda: measure_steps(folder, jobs=asked.jobs, before=asked.before, repeat=asked.repeat, tell=tell),
        "peers": lambda: measure_peers(folder, jobs=asked.jobs, repeat=asked.repeat, tell=tell),
    }
    return measures[part]()


def _foundation(folder: Path, *, jobs: int, repeat: int, tell: Tell) -> dict[str, Any]:
    """Make an economy and measure everything about counts of jobs on it."""
    tell("making an economy")
    economy_seconds = make_economy(folder, jobs=jobs)
    cases = write_cases(folder)
    plain = cases[:2]
    tell("the true table")
    truth = Truth.of(plain[0].file, jobs=jobs)
    foundation = measure_foundation(folder, cases, truth, repeat=repeat, tell=tell)
    commands = command_seconds(folder, plain, truth, repeat=repeat, tell=tell)
    tell("peak memory")
    peak = peak_memory(folder, [case for case in cases if case.first], truth)
    tell("imports")
    imports = import_seconds()
    tell("the demo")
    return {
        "jobs": jobs,
        "cells": len(truth.cells),
        "labels": {"floor": "DuckDB alone (the floor)", **{case.name: case.label for case in cases}},
        "seconds": foundation.seconds,
        "mean_error": asdict(foundation.errors),
        "command_seconds": commands,
        "peak_bytes": peak,
        "economy_seconds": economy_seconds,
        "demo_seconds": demo_seconds(),
        "import_seconds": imports,
    }


@contextmanager
def _data_folder(out: Path) -> Iterator[Path]:
    """A folder for data, deleted afterwards.

    It is beside the results rather than in a temporary folder, which may be memory where writing costs nothing.
    """
    data = out / "data"
    data.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=data) as temporary:
            yield Path(temporary)
    finally:
        with suppress(OSError):  # not empty: somebody else's
            data.rmdir()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"one or more of {', '.join(_SECTIONS)} (default: all of them)"
    )
    parser.add_argument("--jobs", type=int, default=JOBS, help="size of the economy (default: %(default)s)")
    parser.add_argument("--records", type=int, default=RECORDS, help="records to perturb (default: %(default)s)")
    parser.add_argument("--persons", type=int, default=PERSONS, help="size of the workforce (default: %(default)s)")
    parser.add_argument("--quotes", type=int, default=QUOTES, help="records of the cube (default: %(default)s)")
    parser.add_argument("--cells", type=int, default=CELLS, help="cells of a table in parts (default: %(default)s)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="jobs of the nations (default: %(default)s)"
    )
    parser.add_argument("--before", type=Path, help="an earlier checkout, whose steps are measured beside these")
    parser.add_argument("--repeat", type=int, default=7, help="rounds that count (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=_COMMITTED, help="folder for the results (default: bench/results)")
    asked = parser.parse_args()
    if asked.repeat < 1:
        parser.error("--repeat must be 1 or more")
    if asked.repeat < FEWEST_ROUNDS and asked.out.resolve() == _COMMITTED:
        parser.error(f"figures of fewer than {FEWEST_ROUNDS} rounds are not for bench/results: choose another --out")
    if unknown := [part for part in asked.parts if part not in _SECTIONS]:
        parser.error(f"there is no part {unknown[0]}: choose from {', '.join(_SECTIONS)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
