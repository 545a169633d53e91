"""The benchmark: sfumato beside DuckDB alone, on the same files, in one run on this machine.

`make bench` runs it at full size. Results go to a folder; the page docs/benchmarks.md and its chart are rewritten
whenever that is the committed one, so that they always show what is committed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from cases import write_cases
from chart import draw_chart
from claims import JOBS, Results, claims
from foundation import Tell, measure_foundation
from gate import Truth, WrongResultError
from machine import Machine
from processes import command_seconds, demo_seconds, import_seconds, make_economy, peak_memory
from report import print_report, update_page
from rich.console import Console
from sampler import measure_sampler

from sfumato.errors import SfumatoError

_ROOT = Path(__file__).resolve().parent.parent
_COMMITTED = _ROOT / "bench" / "results"


def main() -> int:
    """Measure, check and report; with anything wrong no figure is shown."""
    asked = _arguments()
    console = Console()
    try:
        with console.status("starting") as status:
            results = measure(asked.out, jobs=asked.jobs, repeat=asked.repeat, tell=status.update)
    except (WrongResultError, SfumatoError, subprocess.CalledProcessError) as error:
        console.print(f"No figures: {error}", style="bold red", markup=False)
        if isinstance(error, subprocess.CalledProcessError):
            console.print(error.stderr, markup=False)
        return 1
    lines = claims(results)
    print_report(console, results, lines)
    (asked.out / "foundation.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if asked.out.resolve() == _COMMITTED:
        draw_chart(_ROOT / "docs" / "images" / "foundation.svg", results)
        update_page(_ROOT / "docs" / "benchmarks.md", results, lines)
    return 0


def measure(out: Path, *, jobs: int, repeat: int, tell: Tell) -> Results:
    """Make an economy, measure everything on it, and delete it."""
    machine = Machine.now()
    data = out / "data"
    data.mkdir(parents=True, exist_ok=True)
    try:
        # Beside the results rather than in a temporary folder, which may be memory where writing costs nothing.
        with tempfile.TemporaryDirectory(dir=data) as temporary:
            folder = Path(temporary)
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
    finally:
        with suppress(OSError):  # not empty: somebody else's
            data.rmdir()
    tell("the sampler")
    sampler = measure_sampler(truth, repeat=repeat)
    tell("imports")
    imports = import_seconds()
    tell("the demo")
    return {
        "jobs": jobs,
        "cells": len(truth.cells),
        "about": str(machine),
        "machine": asdict(machine),
        "labels": {"floor": "DuckDB alone (the floor)", **{case.name: case.label for case in cases}},
        "seconds": foundation.seconds,
        "mean_error": asdict(foundation.errors),
        "command_seconds": commands,
        "peak_bytes": peak,
        "economy_seconds": economy_seconds,
        "demo_seconds": demo_seconds(),
        "import_seconds": imports,
        "draws_a_second": asdict(sampler),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS, help="size of the economy (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=7, help="rounds that count (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=_COMMITTED, help="folder for the results (default: bench/results)")
    asked = parser.parse_args()
    if asked.repeat < 1:
        parser.error("--repeat must be 1 or more")
    return asked


if __name__ == "__main__":
    sys.exit(main())
