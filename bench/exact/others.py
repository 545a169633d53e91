"""Patterns of other tools for the same file: GaussSuppression and sdcTable, in R.

Each runs in a process of its own with a limit. R finds packages that are not in its own library by `R_LIBS`. Where R, a
package, or an answer in time is missing, the reason is told instead.
"""

import csv
import resource
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.exact.register import Register
from bench.peers.environments import reason_of
from bench.shared.gate import WrongResultError
from sfumato.arrays import Flags

_HERE = Path(__file__).parent
_PATIENCE = 5
"""How much longer than its limit a tool may take by the clock, on a machine with others on it."""


@dataclass(frozen=True, kw_only=True)
class Other:
    """A tool as it is asked for a pattern."""

    name: str
    script: str
    way: str
    """Handed to the script."""
    most: int
    """Cells of the largest table that it is tried with."""
    limit: int = 900
    """Processor seconds."""
    promise: str = "not exactly, single contributors"
    """What is asked of our pattern that is compared with it: it promises no less."""


GAUSS, INTERVALS = "GaussSuppression", "GaussSuppression, intervals"
OTHERS = (
    Other(name=GAUSS, script="gauss.R", way="exact", most=60_000),
    Other(
        name=INTERVALS,
        script="gauss.R",
        way="intervals",
        most=60_000,
        limit=60,
        promise="by the rule; not exactly, single contributors",
    ),
    Other(name="sdcTable, HITAS", script="sdctable.R", way="HITAS", most=2_000, limit=60),
    Other(name="sdcTable, heuristic", script="sdctable.R", way="SIMPLEHEURISTIC", most=20_000, limit=60),
    Other(name="sdcTable, old heuristic", script="sdctable.R", way="SIMPLEHEURISTIC_OLD", most=20_000, limit=60),
)


def asked_of(other: Other, register: Register, folder: Path) -> tuple[dict[str, Any], Flags | None, Flags | None]:
    """What a tool tells, with its pattern and the cells that are sensitive to it, or why there is none."""
    cells = len(register.names())
    if cells > other.most:
        return {"reason": f"not tried with more than {other.most:,} cells"}, None, None
    rscript = shutil.which("Rscript")
    if rscript is None:
        return {"reason": "R is not installed"}, None, None
    file, out = folder / "register.csv", folder / "pattern.csv"
    register.write(file)
    command = [rscript, str(_HERE / other.script), str(file), str(out), other.way]
    try:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=_PATIENCE * other.limit,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (other.limit, other.limit)),
        )
    except subprocess.TimeoutExpired:
        return {"reason": f"not finished within {_PATIENCE * other.limit} s"}, None, None
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            return {"reason": f"not finished within {other.limit} s of a processor"}, None, None
        return {"reason": reason_of(error.stderr)}, None, None
    version, seconds, elapsed = done.stdout.splitlines()[-1].split()
    with out.open(encoding="utf-8", newline="") as rows:
        found = {f"{row['place']}|{row['industry']}": row for row in csv.DictReader(rows)}
    names = register.names()
    listed = register.listed()
    inside = {names[at] for at in listed}
    hidden = {name for name, row in found.items() if row["suppressed"] == "TRUE"}
    if hidden - set(names):
        raise WrongResultError(f"{other.name} withheld cells that are not in the table")
    told = {"version": version, "seconds": float(seconds), "elapsed": float(elapsed), "empty": len(hidden - inside)}
    chosen = [found.get(names[at], {}) for at in listed]
    pattern, primary = (np.array([row.get(key) == "TRUE" for row in chosen]) for key in ("suppressed", "primary"))
    return told, pattern, primary
