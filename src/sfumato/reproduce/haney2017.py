"""The evaluation of Haney and others (2017) on a synthetic economy; docs/reproduce.md describes it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.economy.files import RELEASE
from sfumato.economy.generate import generate
from sfumato.publish.structure import number
from sfumato.release_file import load
from sfumato.reproduce.attacked import Attacked, run_attacks
from sfumato.reproduce.economy_folder import economy_folder
from sfumato.reproduce.evaluate import Grid, Measured, Progress, evaluate
from sfumato.reproduce.finding import Finding
from sfumato.reproduce.findings import findings
from sfumato.reproduce.legacy import draw_legacy
from sfumato.reproduce.published import BASE_ALPHA, BASE_EPSILON, PUBLISHED
from sfumato.reproduce.workloads import tabulate_workloads

PAPER = "haney2017"
JOBS = 10_900_000
WHOLE = Grid(
    alphas=tuple(map(Fraction, ("0.01", "0.05", "0.1", "0.15", "0.2"))),
    epsilons=tuple(map(Fraction, ("0.25", "0.5", "0.67", "1", "2", "4"))),
    trials=20,
)
"""The settings and trials of the paper."""
QUICK = Grid(
    alphas=tuple(map(Fraction, ("0.01", "0.05", "0.1"))), epsilons=tuple(map(Fraction, ("1", "2", "4"))), trials=5
)
"""Fewer of both, on as many jobs."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was measured, and what it is compared with."""

    jobs: int
    grid: Grid
    cells: dict[int, int]
    measured: tuple[Measured, ...]
    attacked: tuple[Attacked, ...]
    findings: tuple[Finding, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        published = {figure.setting: figure for figure in PUBLISHED}
        for row in self.measured:
            figure = published.get((row.quantity, row.workload, row.method, row.alpha, row.epsilon, row.stratum))
            yield {
                "quantity": row.quantity,
                "workload": row.workload,
                "method": row.method,
                "alpha": number(row.alpha),
                "epsilon": number(row.epsilon),
                "stratum": row.stratum,
                "published": None if figure is None else figure.value,
                "ours": row.ours,
                **({} if figure is None else {"relation": figure.relation}),
                **({"reason": row.reason} if row.reason else {}),
            }
        for found in self.attacked:
            result = found.result
            attacked = None if result is None or not result.targets else result
            yield {
                "quantity": "attack_success",
                "attack": found.attack,
                "method": found.method,
                "published": None,
                "ours": None if attacked is None else attacked.success_rate,
                "targets": 0 if attacked is None else attacked.targets,
                "guess": None if attacked is None else attacked.baseline_rate,
                **({"reason": found.reason} if found.reason else {}),
            }


def reproduce(
    *,
    data: Path | None = None,
    jobs: int = JOBS,
    grid: Grid = WHOLE,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect the three workloads of an economy with every method and compare the errors with the legacy's.

    The economy is made in a temporary folder, or taken from `data`, where it is made if there is none yet.
    """

    def make(folder: Path) -> None:
        generate(folder, jobs=jobs, seed=seed, progress=partial(progress, "making jobs"))

    with economy_folder(data, make) as folder:
        progress("counting jobs", 0, 1)
        tabulated = tabulate_workloads(load(folder / RELEASE))
    progress("legacy protection", 0, 1)
    legacy = draw_legacy(tabulated, trials=grid.trials, seed=seed)
    threads = threads or min(os.cpu_count() or 1, 8)
    measured = evaluate(tabulated, legacy, grid, seed=seed, threads=threads, progress=progress)
    progress("attacks", 0, 1)
    attacked = run_attacks(tabulated, alpha=BASE_ALPHA, epsilon=BASE_EPSILON, seed=seed)
    return Reproduction(
        jobs=tabulated.jobs,
        grid=grid,
        cells={n: len(workload.cells) for n, workload in tabulated.workloads.items()},
        measured=tuple(measured),
        attacked=tuple(attacked),
        findings=tuple(findings(measured)),
    )
