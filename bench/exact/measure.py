"""Withheld cells, their value and seconds beside GaussSuppression and sdcTable in R, on the same tables; and a million.

`python -m bench.exact.measure --out FOLDER` writes `exact.json` there, and tells every claim beside its target;
`--register FILE` adds tables of a real register. Where R or a package is missing, its patterns are left out, and the
report says so.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from rich.console import Console

from bench.exact.claims import exact_section
from bench.exact.others import OTHERS, asked_of
from bench.exact.real import registers
from bench.exact.register import LARGEST, SIZES, Register, Size, make
from bench.shared.gate import WrongResultError
from bench.shared.machine import Machine
from bench.shared.processes import Tell, told_by
from bench.shared.report import Results, print_report
from sfumato.arrays import Flags
from sfumato.exact.pattern import Costs, withhold
from sfumato.exact.proof import prove
from sfumato.exact.rules import Protection, Rules
from sfumato.exact.system import System

RULES = Rules(dominance=(1, 75))
COSTS = Costs(value=1.0)
EXACTLY, RULE, LONE = "not exactly", "by the rule", "single contributors"
PROMISES = {
    EXACTLY: ((EXACTLY, False),),
    f"{EXACTLY}, {LONE}": ((EXACTLY, True),),
    RULE: ((RULE, False),),
    f"{RULE}; {EXACTLY}, {LONE}": ((RULE, False), (EXACTLY, True)),
    f"{RULE}, {LONE}": ((RULE, True),),
}
"""What our patterns are asked for: questions, each of all readers, or of single contributors too."""
_LIMIT = 10.0
"""Processor seconds of one audit; what it has not shown by then counts as open, and the report says so."""


def measure_exact(folder: Path, *, tell: Tell, register: Path | None = None) -> Results:
    """All sizes by all tools, each pattern audited by our proof; then the largest by ours alone."""
    tables = {name: make(size) for name, size in SIZES.items()}
    if register is not None:
        tables |= registers(register)
    found: Results = {"tables": {}}
    for name, one in tables.items():
        found["tables"][name] = _beside(one, folder, lambda words, name=name: tell(f"{name}: {words}"))
    tell("a million cells")
    found["largest"] = _largest(LARGEST, folder)
    return found


def _beside(register: Register, folder: Path, tell: Tell) -> dict[str, Any]:
    system, needs = _needs(register)
    asked = questions(system, needs)
    patterns: dict[str, dict[str, Any]] = {}
    for promise in PROMISES:
        tell(f"ours, {promise}")
        told, pattern = _ours(register, promise)
        patterns[f"ours, {promise}"] = told | _told(system, pattern) | _audited(system, pattern, asked, tell)
    for other in OTHERS:
        tell(other.name)
        told, theirs, sensitive = asked_of(other, register, folder)
        if theirs is not None:
            if not np.array_equal(sensitive, needs.sensitive):
                raise WrongResultError(f"other cells are sensitive to {other.name}: the patterns cannot be compared")
            told |= _told(system, theirs) | _audited(system, theirs, asked, tell)
            told["repaired"] = _told(system, _repaired(system, theirs, asked, other.promise))
        patterns[other.name] = told
    return {
        "cells": len(register.names()),
        "listed": len(system),
        "sensitive": int(needs.sensitive.sum()),
        "patterns": patterns,
    }


def _needs(register: Register) -> tuple[System, Protection]:
    system, contributions = register.tables()
    return system, Protection.over(system, {"table": RULES.protection(contributions)})


def questions(system: System, needs: Protection) -> dict[str, Protection]:
    """What a pattern may be asked for: that no cell is told exactly, or bounds as far off as the rule says."""
    down, up = (np.where(needs.sensitive, np.minimum(1.0, room), 0.0) for room in system.freedom)
    return {EXACTLY: replace(needs, down=down, up=up, either=True), RULE: needs}


def _ours(register: Register, promise: str) -> tuple[dict[str, Any], Flags]:
    """From records to a pattern, and its proof, for which every shift that came with the pattern is checked."""
    began, clock = process_time(), perf_counter()
    system, needs = _needs(register)
    asked, pattern, pieces, cost = questions(system, needs), None, [], COSTS.of(system)
    for question, readers in PROMISES[promise]:
        found = withhold(system, asked[question], cost=cost, start=pattern, readers=readers)
        pattern = found.withheld
        pieces += found.pieces
    made = process_time()
    for question, readers in PROMISES[promise]:
        proof = prove(system, found.withheld, asked[question], pieces=pieces, readers=readers)
    proved, ended = process_time(), perf_counter()
    if set(np.flatnonzero(proof.unprotected)) != set(found.unprotected):
        raise WrongResultError("the proof of a pattern and the pattern itself disagree")
    told = {"seconds": made - began, "proof_seconds": proved - made, "elapsed": ended - clock}
    return told | {"left": len(found.unprotected)}, found.withheld


def _audited(system: System, pattern: Flags, asked: dict[str, Protection], tell: Tell) -> dict[str, Any]:
    """How many sensitive cells a pattern leaves open by our proof, which is told nothing but the pattern."""
    found: dict[str, Any] = {"audit_seconds": 0.0}
    for question, protection in asked.items():
        tell(f"audit, {question}")
        began, stop = process_time(), _deadline(_LIMIT)
        proof = prove(system, pattern, protection, stop=stop)
        ended = stop()
        found["audit_seconds"] += process_time() - began
        found[question] = {
            "unprotected": int(proof.unprotected.sum()),
            "pairs": len(np.unique(proof.pairs[:, 0])),
            "stopped": ended,
        }
    return found


def _repaired(system: System, pattern: Flags, asked: dict[str, Protection], promise: str) -> Flags:
    """A pattern of others with further cells, until it keeps what one of ours promises."""
    for question, readers in PROMISES[promise]:
        pattern = withhold(system, asked[question], cost=COSTS.of(system), start=pattern, readers=readers).withheld
    return pattern


def _deadline(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds of the processor are over."""
    ends = process_time() + seconds
    return lambda: process_time() > ends


def _told(system: System, withheld: Flags) -> dict[str, Any]:
    return {"withheld": int(withheld.sum()), "value": int(system.value[withheld].sum())}


def _largest(size: Size, folder: Path) -> dict[str, Any]:
    """In a process of its own, whose memory is its alone."""
    asked = folder / "largest.json"
    asked.write_text(json.dumps(asdict(size)), encoding="utf-8")
    return told_by("exact.child", asked)


def alone(size: Size) -> dict[str, Any]:
    """Our pattern of one register with its proof."""
    register = make(size)
    told, withheld = _ours(register, EXACTLY)
    system, _ = register.tables()
    return told | _told(system, withheld) | {"cells": len(register.names()), "listed": len(system)}


def main() -> None:
    """Measure, report, and write the figures to a folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.exact.measure")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    parser.add_argument("--register", type=Path, help="a real register, as bench/exact/real.py describes it")
    asked, console = parser.parse_args(), Console()
    asked.out.mkdir(parents=True, exist_ok=True)
    machine = Machine.now()
    with tempfile.TemporaryDirectory() as folder, console.status("starting") as status:
        results = measure_exact(Path(folder), tell=status.update, register=asked.register)
    results = {"about": str(machine), "machine": asdict(machine), **results}
    (asked.out / "exact.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print_report(console, exact_section(results))


if __name__ == "__main__":
    main()
