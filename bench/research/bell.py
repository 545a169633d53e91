"""Bell noise beside Pareto noise on the economy of the published evaluation, and the least error that radial noise has.

`python -m bench.research.bell` takes a minute; `--jobs 1000000` makes a smaller economy.
"""

import argparse
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from sfumato.errors import MethodError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.statistics.jobs.bell import VectorBell
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.registry import build
from sfumato_lab.economy.files import RELEASE
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.reproduce.haney2017.evaluate import draw_legacy, tabulate_workloads

METHODS = ("vector-pareto", "vector-bell", "log-box", "sinh-box", "smooth-box", "box-bell", "auto", "auto-bell")
SETTINGS = (("0.1", "1"), ("0.1", "2"), ("0.1", "4"), ("0.05", "1"), ("0.05", "2"), ("0.05", "4"), ("0.01", "2"))
TRIALS = 3


def ratios(folder: Path) -> None:
    """Print mean L1 errors in workload 3 as ratios to the legacy protection."""
    tabulated = tabulate_workloads(load(folder / RELEASE))
    workload = tabulated.workloads[3]
    legacy = float(draw_legacy(tabulated, trials=5, seed=1).errors[3].sum())
    print("alpha epsilon", *METHODS)
    for alpha, epsilon in SETTINGS:
        row = []
        for name in METHODS:
            try:
                method = build(
                    name,
                    alpha=Fraction(alpha),
                    epsilon=Fraction(epsilon),
                    worker_cells=workload.worker_cells,
                    options={},
                )
            except MethodError:
                row.append("-")
                continue
            drawn = [method.protect(workload.cells, Seeded(i))["value"] for i in range(TRIALS)]
            error = np.mean([np.abs(values - workload.cells["count"]).sum() for values in drawn])
            row.append(f"{error / legacy:.3f}")
        print(alpha, epsilon, *row, flush=True)


def least_error(cells: int, alpha: float, epsilon: float, *, end: float, points: int) -> float:
    """The least mean error of a cell, in αX, of noise whose density is a function of ‖z‖/X that never rises.

    A linear programme in the heights h of shells: the loss is at most ε at scale ratios 1, 1+α/2 and 1+α. Heights are
    variables relative to a guess, so that those of tiny shells count too.
    """
    step = end / points
    v = (np.arange(points) + 0.5) * step  # the norm in units of αX
    volume = ((v + step / 2) ** cells - (v - step / 2) ** cells) / cells
    rows: list[tuple[int, int, float]] = [(i + 1, i, 0.0) for i in range(points - 1)]
    shift = 1 / (1 + alpha)
    for r in (1.0, 1 + alpha / 2, 1 + alpha):
        for i, at in enumerate(v):
            for other, limit in (
                (at / r + shift, epsilon - cells * np.log(r)),
                (r * (at + shift), epsilon + cells * np.log(r)),
            ):
                if (j := int(other / step)) < points:
                    rows.append((i, j, limit))
    first, second, limits = (np.array(column) for column in zip(*rows, strict=True))
    guess = -22 * np.log1p(v / 12)
    for _ in range(3):
        number = np.arange(len(rows))
        factors = -np.exp(np.clip(limits + guess[second] - guess[first], -50, 50))
        entries = (
            np.concatenate([np.ones(len(rows)), factors]),
            (np.tile(number, 2), np.concatenate([first, second])),
        )
        weight = volume * np.exp(guess - guess.max())
        weight /= weight.sum()
        found = linprog(
            weight * v / cells,
            A_ub=coo_matrix(entries, shape=(len(rows), points)).tocsr(),
            b_ub=np.zeros(len(rows)),
            A_eq=weight[None],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
        )
        guess = np.where(found.x > 1e-9, np.log(np.maximum(found.x, 1e-12)) + guess, guess)
    return float(found.fun)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_900_000)
    jobs = parser.parse_args().jobs
    print("d, alpha, epsilon: least error of radial noise, vector-bell, vector-pareto, in units of alpha·x")
    for cells, alpha, epsilon, end, points in ((1, "0.1", 2, 12.0, 600), (8, "0.1", 2, 60.0, 800)):
        least = least_error(cells, float(alpha), epsilon, end=end, points=points)
        made = [
            method(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=cells).error_in_scales
            for method in (VectorBell, VectorPareto)
        ]
        print(cells, alpha, epsilon, *(f"{error:.3f}" for error in (least, *made)), flush=True)
    with TemporaryDirectory() as folder:
        generate(Path(folder) / "economy", jobs=jobs, seed=1)
        ratios(Path(folder) / "economy")


if __name__ == "__main__":
    main()
