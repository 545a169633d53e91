"""By how much composite estimates win on real counts, and where they mislead: docs/composite.md has the figures.

A file has one row for each establishment, or one for each workplace cell (then `--mean-size` divides it into made-up
establishments), and one column of jobs for each class of workers. Rows with the same codes in `--by` are one workplace
cell; `bgrp:5` stands for the first five characters of a column. What is in the file is taken for true, protected as a
release at alpha 0.1 would (workplace cells by class of workers, and alone), made to agree, and compared.

    python -m bench.agreement.composite lodes.csv.gz --by bgrp:5,bgrp --within 1 --workers CA01,CA02,CA03 --mean-size 20
    python -m bench.agreement.composite h1b.csv.gz --by naics2,state,city --within 1 --workers initial,continuing
"""

import argparse
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.agree.composite import HUNDREDTHS, Composite, with_composite
from sfumato.agree.published import GROWTH, USUAL_SIZE
from sfumato.agree.reconcile import Protected, reconcile, rounded
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto

ALPHA = Fraction(1, 10)
CLASSES = (5, 10, 20, 50, 100, 200, 500, 1000)
_SIZES = 1.4
"""The standard deviation of the logarithms of made-up sizes."""
_FAR = 0.01
"""The share of cells that are looked at by themselves: those furthest from what the true shares of others predict."""


@dataclass(frozen=True, kw_only=True)
class Economy:
    """True counts: workplace cells by classes of workers, and workplace cells alone."""

    workers: Cells
    places: Cells
    groups: Integers
    """The group of each workplace cell, within which workers are taken for alike."""


def read_economy(path: Path, *, by: list[str], within: int, workers: list[str], mean_size: int | None) -> Economy:
    """The file as true cells; the first `within` names of `by` make groups."""
    names = sorted({name.split(":")[0] for name in by})
    text = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=[*names, *workers])
    rows = pa.csv.read_csv(path, convert_options=text)
    jobs = np.column_stack([rows[name].fill_null(0).to_numpy().astype(np.int64) for name in workers])
    codes = []
    for name, _, length in (name.partition(":") for name in by):
        found = [(code or "")[: int(length) if length else None] for code in rows[name].to_pylist()]
        codes.append(np.unique(found, return_inverse=True)[1])
    kept = jobs.sum(axis=1) > 0
    jobs, codes = jobs[kept], [code[kept] for code in codes]
    group = _numbered(codes[:within]) if within else np.zeros(len(jobs), dtype=np.int64)
    cell = _numbered([group, *codes])
    number = int(cell.max()) + 1
    count = np.zeros((number, len(workers)), dtype=np.int64)
    np.add.at(count, cell, jobs)
    largest, establishments = np.zeros(number, dtype=np.int64), np.bincount(cell)
    np.maximum.at(largest, cell, jobs.sum(axis=1))
    groups = np.zeros(number, dtype=np.int64)
    groups[cell] = group
    if mean_size is not None:
        largest, establishments = _divided(count.sum(axis=1), mean_size)
    place = Dimension(name="place", codes=tuple(map(str, range(number))))
    worker = Dimension(name="worker", codes=tuple(workers), public=False)
    # Which group a place is in follows from the place: here it is a dimension only where shares are pooled.
    return Economy(
        workers=Cells(
            dimensions=(place, worker),
            positions=np.arange(count.size),
            columns={
                "count": count.ravel(),
                "largest_employer": np.repeat(largest, len(workers)),
                "establishments": np.repeat(establishments, len(workers)),
            },
        ),
        places=Cells(
            dimensions=(place,),
            positions=np.arange(number),
            columns={"count": count.sum(axis=1), "largest": largest, "establishments": establishments},
        ),
        groups=groups,
    )


def _numbered(codes: list[Integers]) -> Integers:
    return np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _divided(jobs: Integers, mean_size: int) -> tuple[Integers, Integers]:
    """The largest of so many establishments of made-up sizes that their mean is about the one given, and how many."""
    chance = np.random.default_rng(1)
    number = np.minimum(1 + chance.poisson(jobs / mean_size), jobs)
    shares = [(sizes := np.exp(_SIZES * chance.standard_normal(some))).max() / sizes.sum() for some in number]
    return np.clip(np.rint(jobs * shares), -(-jobs // number), jobs).astype(np.int64), number.astype(np.int64)


def estimates(true: Economy, epsilon: Fraction, seed: int) -> Cells:
    """The agreed cells by class of workers with their composite estimates, of one draw of the noise."""
    vector = VectorPareto(alpha=ALPHA, epsilon=epsilon, worker_cells=true.workers.worker_cells)
    scalar = SmoothPareto(alpha=ALPHA, epsilon=epsilon)
    if vector.variance is None or scalar.variance is None:
        raise SystemExit("The noise of this epsilon has no fourth moment: choose a larger one.")
    answers, protected = {}, {}
    for name, method, cells in (("workers", vector, true.workers), ("places", scalar, true.places)):
        number, planned = cells["establishments"], method.planned_error()
        answers[name] = method.protect(cells, Seeded(2 * seed + len(answers))).with_column("establishments", number)
        usual = np.maximum(planned.floor, (planned.share or 0) * USUAL_SIZE * number ** float(GROWTH))
        protected[name] = Protected(cells=answers[name], errors=usual)
    agreed = answers["workers"].with_column("value", rounded(protected, reconcile(protected))["workers"])
    rule = Composite(
        within=("group",),
        alpha=float(ALPHA),
        variance=vector.variance + 1 / 12,
        totals={"places": scalar.variance + 1 / 12},
    )
    measured = {name: _in_groups(cells, true) for name, cells in answers.items()}
    return with_composite(rule, "workers", _in_groups(agreed, true), measured)


def _in_groups(cells: Cells, true: Economy) -> Cells:
    """The same cells with the group as a dimension; cells are in the order of places, which is that of groups."""
    group = Dimension(name="group", codes=tuple(map(str, range(int(true.groups.max()) + 1))))
    size = cells.domain
    positions = np.repeat(true.groups, len(cells) // len(true.groups)) * size + cells.positions
    return Cells(dimensions=(group, *cells.dimensions), positions=positions, columns=cells.columns)


def predictions(count: Floats, groups: Integers) -> Floats:
    """What the shares in the rest of its group and its total predict for each cell."""
    sums = np.zeros((int(groups.max()) + 1, count.shape[1]))
    np.add.at(sums, groups, count)
    rest = np.maximum(sums[groups] - count, 0.0)
    found: Floats = count.sum(axis=1, keepdims=True) * rest / np.maximum(rest.sum(axis=1, keepdims=True), 1.0)
    return found


def main() -> None:
    """Read the file, draw, and print a line for every class of cells."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("file", type=Path)
    asked.add_argument("--by", required=True, help="columns that make workplace cells, NAME or NAME:CHARACTERS")
    asked.add_argument("--within", type=int, default=0, help="how many of them, from the first on, make groups")
    asked.add_argument("--workers", required=True, help="columns with the jobs of each class of workers")
    asked.add_argument("--mean-size", type=int, help="divide rows into made-up establishments of this mean size")
    asked.add_argument("--epsilon", type=Fraction, default=Fraction(1), help="of either table")
    asked.add_argument("--draws", type=int, default=10)
    said = asked.parse_args()
    by, workers = said.by.split(","), said.workers.split(",")
    true = read_economy(said.file, by=by, within=said.within, workers=workers, mean_size=said.mean_size)
    shape = (-1, len(workers))
    count = true.workers["count"].reshape(shape).astype(np.float64)
    expected = predictions(count, true.groups)
    classes = np.searchsorted(CLASSES, expected, side="right")
    # The spread of drawing workers as the measure of far; tiny cells are never far.
    far = np.abs(count - expected) / np.sqrt(expected + 1.0)
    far_ones = far >= np.quantile(far, 1 - _FAR)
    errors = {name: np.zeros((said.draws, *count.shape)) for name in ("value", "composite", "composite_error")}
    for draw in range(said.draws):
        found = estimates(true, said.epsilon, draw)
        for name in ("value", "composite"):
            errors[name][draw] = found[name].reshape(shape) - count
        errors["composite_error"][draw] = found["composite_error"].reshape(shape) / HUNDREDTHS

    def line(words: str, some: Floats) -> None:
        value, composite, told = (errors[name][:, some] for name in ("value", "composite", "composite_error"))
        root, root_of = float(np.sqrt(np.square(value).mean())), float(np.sqrt(np.square(composite).mean()))
        mean, mean_of = np.abs(value).mean(), np.abs(composite).mean()
        honest = np.square(told).mean() / np.square(composite).mean()
        towards = (np.sign(expected - count)[some] * composite.mean(axis=0)).mean()
        print(
            f"{words:>20} {int(some.sum()):>7,} {root:>9.1f} {root_of:>9.1f} {1 - root_of / root:>6.0%} "
            f"{mean:>8.1f} {mean_of:>8.1f} {honest:>8.2f} {towards:>8.1f}"
        )

    print(f"{len(count):,} workplace cells × {len(workers)}, epsilon {float(said.epsilon):g}, {said.draws} draws")
    print("      predicted jobs   cells  rms.value  rms.comp  won   abs.val abs.comp told/true  towards")
    for at, high in enumerate((*CLASSES, np.inf)):
        if (classes == at).any():
            line(f"below {high:g}" if high < np.inf else "more", classes == at)
    line("all", np.ones(count.shape, dtype=bool))
    line(f"the {_FAR:.0%} most unlike", far_ones)


if __name__ == "__main__":
    main()
