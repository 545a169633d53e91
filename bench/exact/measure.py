"""Withheld cells, their value and CPU seconds beside GaussSuppression in R, on the same tables; and a million cells.

`python -m bench.exact.measure --out FOLDER` writes `exact.json` there, and tells every claim beside its target. Where R
or its package is missing, the comparison is left out, and the report says so.
"""

import argparse
import csv
import json
import resource
import shutil
import subprocess
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console

from bench.exact.claims import exact_section
from bench.exact.register import LARGEST, SIZES, Register, Size, make
from bench.peers.environments import reason_of
from bench.shared.gate import WrongResultError
from bench.shared.machine import Machine
from bench.shared.processes import Tell
from bench.shared.report import Results, print_report
from sfumato.arrays import Flags
from sfumato.exact.pattern import Costs, withhold
from sfumato.exact.proof import prove
from sfumato.exact.rules import Protection, Rules
from sfumato.exact.system import System

RULES = Rules(dominance=(1, 75))
_COSTS = Costs(value=0.1)
_LIMIT = 3_600
_SCRIPT = Path(__file__).with_name("gauss.R")


def measure_exact(folder: Path, *, tell: Tell) -> Results:
    """Both sizes by both tools, each pattern audited by our proof; then the largest by ours alone."""
    found: Results = {"tables": {}}
    for name, size in SIZES.items():
        found["tables"][name] = _beside(make(size), folder, tell, name)
    tell("a million cells")
    found["largest"] = _largest(LARGEST)
    return found


def _beside(register: Register, folder: Path, tell: Tell, name: str) -> dict[str, Any]:
    file = folder / "register.csv"
    register.write(file)
    tell(f"{name}: GaussSuppression")
    theirs, pattern = _gauss(file, folder / "pattern.csv", register)
    system, needs = _needs(register)
    found: dict[str, Any] = {
        "cells": len(register.names()),
        "listed": len(system),
        "sensitive": int(needs.sensitive.sum()),
        "gauss": theirs,
    }
    for asked, protection in _asked(system, needs).items():
        tell(f"{name}: ours, {asked}")
        found[asked] = _ours(register, asked)
        if pattern is not None:
            shown = prove(system, pattern, protection)
            repaired = withhold(system, protection, cost=_COSTS.of(system), start=pattern)
            theirs |= {f"unprotected, {asked}": int(shown.unprotected.sum()), f"pairs, {asked}": len(shown.pairs)}
            theirs |= {f"repaired, {asked}": _told(system, repaired.withheld)}
    if pattern is not None:
        theirs |= _told(system, pattern)
    return found


def _needs(register: Register) -> tuple[System, Protection]:
    system, contributions = register.tables()
    return system, Protection.over(system, {"table": RULES.protection(contributions)})


def _asked(system: System, needs: Protection) -> dict[str, Protection]:
    """That no cell is told exactly, to nobody or to nobody who contributes alone to another; and by the rule.

    The other tool promises the second of them.
    """
    one = np.where(needs.sensitive, np.minimum(1.0, system.value), 0.0)
    exact = replace(needs, down=one, up=one)
    nobody = np.full(len(system), -1, dtype=np.int64)
    rule = replace(needs, owner=nobody)
    return {"not exactly": replace(exact, owner=nobody), "single contributors": exact, "by the rule": rule}


def _ours(register: Register, asked: str) -> dict[str, Any]:
    """From records to a pattern, and its proof, for which every shift that came with the pattern is checked."""
    began = process_time()
    system, needs = _needs(register)
    protection = _asked(system, needs)[asked]
    found = withhold(system, protection, cost=_COSTS.of(system), tries=0)
    made = process_time()
    proof = prove(system, found.withheld, protection, pieces=found.pieces)
    proved = process_time()
    if set(np.flatnonzero(proof.unprotected)) != set(found.unprotected):
        raise WrongResultError("the proof of a pattern and the pattern itself disagree")
    told = {"seconds": made - began, "proof_seconds": proved - made, "unprotected": int(proof.unprotected.sum())}
    told["pairs"] = len(proof.pairs)
    return told | _told(system, found.withheld)


def _told(system: System, withheld: Flags) -> dict[str, Any]:
    return {"withheld": int(withheld.sum()), "value": int(system.value[withheld].sum())}


def _gauss(file: Path, out: Path, register: Register) -> tuple[dict[str, Any], Flags | None]:
    """What GaussSuppression does with the same file, or why it does not."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return {"reason": "R is not installed"}, None
    try:
        done = subprocess.run([rscript, _SCRIPT, file, out], check=True, capture_output=True, text=True, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return {"reason": f"not finished within {_LIMIT} s"}, None
    except subprocess.CalledProcessError as error:
        return {"reason": reason_of(error.stderr)}, None
    version, seconds, elapsed = done.stdout.split()
    with out.open(encoding="utf-8", newline="") as rows:
        hidden = {f"{row['place']}|{row['industry']}" for row in csv.DictReader(rows) if row["suppressed"] == "TRUE"}
    flags = np.array([name in hidden for name in register.names()], dtype=bool)
    system, _ = register.tables()
    listed = flags[_listed(register)]
    if listed.sum() != len(hidden) or len(listed) != len(system):
        raise WrongResultError("GaussSuppression withheld cells that are not in the table")
    return {"version": version, "seconds": float(seconds), "elapsed": float(elapsed)}, listed


def _listed(register: Register) -> np.ndarray:
    """The positions of cells that anybody is in."""
    keys = []
    for rows in _up(register, 0):
        keys += [np.unique(rows * len(register.industry) + columns) for columns in _up(register, 1)]
    return np.unique(np.concatenate(keys))


def _up(register: Register, which: int) -> list[np.ndarray]:
    nodes, found = (register.at, register.of)[which], []
    while bool(np.any(nodes > 0)):
        found.append(nodes)
        nodes = register.trees[which].parents[0][nodes]
    return [*found, nodes]


def _largest(size: Size) -> dict[str, Any]:
    register = make(size)
    told = _ours(register, "not exactly")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return told | {"cells": len(register.names()), "megabytes": round(memory)}


def main() -> None:
    """Measure, report, and write the figures to a folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.exact.measure")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    out, console = parser.parse_args().out, Console()
    out.mkdir(parents=True, exist_ok=True)
    machine = Machine.now()
    with tempfile.TemporaryDirectory() as folder, console.status("starting") as status:
        results = measure_exact(Path(folder), tell=status.update)
    results = {"about": str(machine), "machine": asdict(machine), **results}
    (out / "exact.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print_report(console, exact_section(results))


if __name__ == "__main__":
    main()
