"""Controlled rounding with its proof, and coarsening, of tables of up to a million cells: CPU seconds and distances.

    python -m bench.exact.rounding --out rounding.json
    python -m bench.exact.rounding --cells 100000

No part of `run.py`: nobody else rounds linked tables of this size in Python, so that there is nothing beside it.
"""

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np

from bench.exact.register import LARGEST, SIZES, Register, Size, make
from bench.shared.child import peak_bytes
from bench.shared.report import Results
from sfumato.exact.coarsening import Programme, coarsen, failing
from sfumato.exact.rounding import controlled_rounding, plain_rounding, prove_rounding
from sfumato.exact.rules import Rules
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree

BASE = 10
WAYS = {
    "three ways, 10,000 cells": (20, 20, 23),
    "three ways, 50,000 cells": (36, 36, 36),
    "three ways, a million": (99,) * 3,
}
_RULES = Rules(units=3, percent=10)
_PROVED = 100_000
"""Cells of tables up to which the proof is timed as well."""


def measure(most: int) -> Results:
    """Every table of at most so many cells."""
    sizes: dict[str, Size] = {**SIZES, "a million cells": LARGEST}
    found: Results = {"rounding": {}, "coarsening": {}}
    for name, size in sizes.items():
        register = make(size)
        system, _ = register.tables()
        if len(system) > most:
            continue
        found["rounding"][name] = _rounded(system)
        found["coarsening"][name] = _coarsened(register)
        print(name, found["rounding"][name], found["coarsening"][name], flush=True)
    for name, shape in WAYS.items():
        if np.prod([n + 1 for n in shape]) <= most:
            found["rounding"][name] = _rounded(_three_ways(shape))
            print(name, found["rounding"][name], flush=True)
    return found


def _rounded(system: System) -> Results:
    truth = system.value.astype(np.int64)
    start = process_time()
    rounded = controlled_rounding(system, BASE)
    seconds = process_time() - start
    plain = plain_rounding(truth, BASE)
    found: Results = {
        "cells": len(system),
        "seconds": round(seconds, 1),
        "distance": rounded.distance,
        "least": None if np.isinf(rounded.least) else round(rounded.least),
        "plain": int(np.abs(plain - truth).sum()),
        "plain sums that fail": int(np.count_nonzero(system.equations @ plain)),
        "beyond": len(rounded.beyond),
        "farthest": rounded.farthest,
        "memory": peak_bytes(),
    }
    if len(system) <= _PROVED:
        cells = np.flatnonzero((truth > 0) & (truth < 3))
        start, one = process_time(), np.ones(len(cells))
        proof = prove_rounding(
            system, rounded.value, below=rounded.reach, above=rounded.reach, cells=cells, lower=one, upper=one
        )
        found |= {
            "proof seconds": round(process_time() - start, 1),
            "small": len(cells),
            "too narrow": int(proof.too_narrow.sum()),
        }
    return found


def _coarsened(register: Register) -> Results:
    programme = Programme(
        trees=(register.place, register.industry),
        nodes=(register.at, register.of),
        unit=np.arange(len(register.amount)),
        value=register.amount.astype(np.float64),
        tables={"both": ("place", "industry"), "place": ("place",), "industry": ("industry",)},
        passes=lambda cells: ~_RULES.protection(cells).sensitive,
    )
    start = process_time()
    cuts = coarsen(programme, tries=10)
    seconds = process_time() - start
    if cuts is None:
        return {"seconds": round(seconds, 1), "told": None}
    every = [np.unique(nodes) for nodes in programme.nodes]
    return {
        "seconds": round(seconds, 1),
        "told": cuts.told,
        "cut": [len(cut) for cut in cuts.nodes],
        "of": [len(cut) for cut in every],
        "failing at the finest": failing(programme, every),
    }


def _three_ways(shape: tuple[int, ...]) -> System:
    """Counts in three ways with all totals, most of them small."""
    counts = np.floor(np.random.default_rng(1).lognormal(np.log(3), 1.2, shape)).astype(np.int64)
    for axis in range(len(shape)):
        counts = np.concatenate([counts.sum(axis=axis, keepdims=True), counts], axis=axis)
    trees = [Tree.of(f"way {at}", {f"way {at}": [str(code) for code in range(n)]}) for at, n in enumerate(shape)]
    axes = tuple((tree, np.arange(len(tree))) for tree in trees)
    return build_system({"counts": Table(axes=axes, positions=np.arange(counts.size), value=counts.ravel())})


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.exact.rounding")
    parser.add_argument("--cells", type=int, default=10**7, help="leave out tables of more cells")
    parser.add_argument("--out", type=Path, help="write results to a file")
    asked = parser.parse_args()
    found = measure(asked.cells)
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
