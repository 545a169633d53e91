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
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from bench.agreement.claims import agreement_section
from bench.agreement.measure import DRAWS, measure_agreement
from bench.cube.claims import cube_section
from bench.cube.measure import measure_cube
from bench.cube.survey import QUOTES
from bench.exact.claims import exact_section
from bench.exact.measure import measure_exact
from bench.files.claims import files_section
from bench.files.measure import measure_files
from bench.jobs.cases import JOBS
from bench.jobs.claims import draw_foundation, foundation_section
from bench.jobs.measure import measure_foundation
from bench.large.claims import large_section
from bench.large.data import CELLS
from bench.large.measure import measure_large
from bench.nation.claims import draw_nation, nation_section
from bench.nation.measure import SIZES, measure_nation
from bench.nation.steps import measure_steps, steps_section
from bench.noise.claims import samplers_section
from bench.noise.measure import measure_samplers
from bench.panel.claims import infusion_section
from bench.panel.indicators import indicators_section, measure_indicators
from bench.panel.measure import PERSONS, measure_infusion
from bench.peers.claims import draw_peers, peers_section
from bench.peers.measure import measure_peers
from bench.registers.claims import registers_section
from bench.registers.data import ESTABLISHMENTS
from bench.registers.measure import measure_registers
from bench.serve.claims import server_section
from bench.serve.measure import measure_server
from bench.shared.gate import WrongResultError
from bench.shared.machine import Machine
from bench.shared.processes import ROOT
from bench.shared.report import FEWEST_ROUNDS, Results, Section, print_report, update_page
from bench.totals.claims import contributors_section
from bench.totals.measure import measure_contributors
from bench.totals.records import RECORDS
from sfumato.errors import SfumatoError

_COMMITTED = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Part:
    """How a part is measured, with which options of the command line, and how its results are told."""

    measure: Callable[..., Results]
    options: tuple[str, ...]
    claims: Callable[[Results], Section]
    draw: Callable[[Results], str] | None = None

    def section(self, results: Results) -> Section:
        """The claims, and what they were measured on."""
        section = self.claims(results)
        return replace(section, notes=(*section.notes, f"Measured {results['about']}"))


PARTS = {
    "foundation": Part(measure_foundation, ("jobs", "repeat"), foundation_section, draw_foundation),
    "files": Part(measure_files, ("jobs", "repeat"), files_section),
    "registers": Part(measure_registers, ("establishments", "repeat"), registers_section),
    "contributors": Part(measure_contributors, ("records", "repeat"), contributors_section),
    "infusion": Part(measure_infusion, ("persons",), infusion_section),
    "indicators": Part(measure_indicators, ("persons",), indicators_section),
    "cube": Part(measure_cube, ("quotes",), cube_section),
    "server": Part(measure_server, ("records", "repeat"), server_section),
    "samplers": Part(measure_samplers, ("repeat",), samplers_section),
    "large": Part(measure_large, ("jobs", "cells"), large_section),
    "nation": Part(measure_nation, ("sizes", "repeat"), nation_section, draw_nation),
    "steps": Part(measure_steps, ("jobs", "before", "repeat"), steps_section),
    "agreement": Part(measure_agreement, ("draws", "release"), agreement_section),
    "exact": Part(measure_exact, ("register",), exact_section),
    "peers": Part(measure_peers, ("jobs", "repeat"), peers_section, draw_peers),
}


def main() -> int:
    """Measure, check and report, one part after the other; with anything wrong no figure of a part is shown."""
    asked = _arguments()
    console = Console()
    for name in asked.parts or PARTS:
        part = PARTS[name]
        try:
            with console.status("starting") as status, _data_folder(asked.out) as folder:
                machine = Machine.now()
                options = {option: getattr(asked, option) for option in part.options}
                results = part.measure(folder, tell=status.update, **options)
        except (WrongResultError, SfumatoError, subprocess.CalledProcessError) as error:
            console.print(f"No figures: {error}", style="bold red", markup=False)
            if isinstance(error, subprocess.CalledProcessError):
                console.print(error.stderr, markup=False)
            return 1
        results = {"about": str(machine), "machine": asdict(machine), **results}
        section = part.section(results)
        print_report(console, section)
        (asked.out / f"{name}.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        if asked.out == _COMMITTED:
            update_page(ROOT / "docs" / "benchmarks.md", section)
            if part.draw is not None:
                chart = ROOT / "docs" / "images" / f"{name}.svg"
                chart.write_text(part.draw(results), encoding="utf-8")
    return 0


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
    parser = argparse.ArgumentParser(
        prog="python -m bench.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"one or more of {', '.join(PARTS)} (default: all of them)"
    )
    parser.add_argument("--jobs", type=int, default=JOBS, help="size of the economy (default: %(default)s)")
    parser.add_argument(
        "--establishments", type=int, default=ESTABLISHMENTS, help="size of the register (default: %(default)s)"
    )
    parser.add_argument("--records", type=int, default=RECORDS, help="records to perturb (default: %(default)s)")
    parser.add_argument("--persons", type=int, default=PERSONS, help="size of the workforce (default: %(default)s)")
    parser.add_argument("--quotes", type=int, default=QUOTES, help="records of the cube (default: %(default)s)")
    parser.add_argument("--cells", type=int, default=CELLS, help="cells of a table in parts (default: %(default)s)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="jobs of the nations (default: %(default)s)"
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of every table (default: %(default)s)")
    parser.add_argument("--release", type=_whole_path, help="a release whose tables are drawn as well, never published")
    parser.add_argument("--register", type=_whole_path, help="a real register, whose cells are withheld as well")
    parser.add_argument("--before", type=_whole_path, help="an earlier checkout, whose steps are measured beside these")
    parser.add_argument("--repeat", type=int, default=7, help="rounds that count (default: %(default)s)")
    parser.add_argument(
        "--out", type=_whole_path, default=_COMMITTED, help="folder for the results (default: bench/results)"
    )
    asked = parser.parse_args()
    if asked.repeat < 1:
        parser.error("--repeat must be 1 or more")
    if asked.repeat < FEWEST_ROUNDS and asked.out == _COMMITTED:
        parser.error(f"figures of fewer than {FEWEST_ROUNDS} rounds are not for bench/results: choose another --out")
    if unknown := [part for part in asked.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]}: choose from {', '.join(PARTS)}")
    return asked


def _whole_path(text: str) -> Path:
    """Commands run in the folder of the checkout, wherever they are started from."""
    return Path(text).resolve()


if __name__ == "__main__":
    sys.exit(main())
