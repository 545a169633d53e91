"""Measure what `sfumato plan` promises: noise is drawn over the true cells, tables are made to agree, errors are taken.

Beside the plan stand an even split, the finest table alone, and what the release file says, at the same total. Nothing
is charged or published; what it prints is confidential, unless the economy is synthetic.
"""

import argparse
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import sfumato
from sfumato.agree.published import levels_known, usual_error
from sfumato.agree.reconcile import Above, Protected, reconcile, unrelated
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.checking import checked
from sfumato.errors import SfumatoError
from sfumato.noise.randomness import Repeatable
from sfumato.release import Release
from sfumato.wishes.allocation import Allocation
from sfumato.wishes.planner import Planner

DRAWS = 20
Split = Mapping[str, float]
"""The epsilon of every table; 0 where it is not measured."""


def true_cells(release: Release) -> dict[str, Cells]:
    """The true cells of every table: confidential."""
    return counted(release)[0]


def counted(release: Release) -> tuple[dict[str, Cells], Above]:
    """The true cells of every table, and which dimensions lie in others by the release file and the register."""
    with checked(release) as ready:
        found: dict[str, Cells] = ready.count({one.name: one for one in ready.plan.tables})
        return found, levels_known(ready.plan.tables, ready.plan)


def splits(planner: Planner, found: Allocation) -> dict[str, Split]:
    """The plan, and other ways to spend as much."""
    names = [one.name for one in found.tables]
    total = float(found.total)
    finest = max(found.tables, key=lambda one: one.cells).name
    written = {one.name: one.written for one in planner.tables}
    inside = {one.name: {dimension.name for dimension in one.statistic.by} for one in planner.tables}
    whole = all(names <= inside[finest] for names in inside.values())
    return {
        "plan": {one.name: float(one.epsilon) for one in found.tables},
        "even split": dict.fromkeys(names, total / len(names)),
        "as in the file": {name: written[name] * total / sum(written.values()) for name in names},
    } | ({"finest only": {name: total * (name == finest) for name in names}} if whole else {})


def mean_errors(
    planner: Planner, truth: Mapping[str, Cells], split: Split, draws: int = DRAWS, above: Above = unrelated
) -> dict[str, float]:
    """The mean error of every table after tables were made to agree, each as its wish is stated.

    `above` tells which dimensions lie in others, beside those of the same name.
    """
    measured_tables = [one for one in planner.tables if split[one.name]]
    methods: dict[str, Any] = {one.name: one.build(Fraction(f"{split[one.name]:.6g}")) for one in measured_tables}
    found = dict.fromkeys(truth, 0.0)
    for draw in range(draws):
        measured = {
            name: Protected(
                cells=method.protect(truth[name], Repeatable(draw, name)),
                errors=usual_error(method.planned_error(), truth[name]["establishments"].astype(np.float64)),
            )
            for name, method in methods.items()
        }
        agreed = reconcile(measured, above)
        for name, cells in truth.items():
            parts = {n: (truth[n], v) for n, v in agreed.items()}
            values = agreed[name] if name in agreed else added_up(cells, parts, above)
            found[name] += float(np.abs(values - cells["count"]).mean()) / draws
    relative = {one.name for one in planner.tables if one.wish is None or one.wish.relative}
    return {name: error / (truth[name]["count"].mean() if name in relative else 1) for name, error in found.items()}


def added_up(cells: Cells, agreed: Mapping[str, tuple[Cells, Floats]], above: Above = unrelated) -> Floats:
    """The values of a table that is not measured: sums of the measured one with the fewest cells that is finer."""
    able = []
    for finer, values in agreed.values():
        found = [_codes_in(finer, dimension, above) for dimension in cells.dimensions]
        known = [codes for codes in found if codes is not None]
        if len(known) == len(found):
            able.append((known, values))
    if not able:
        raise SfumatoError(
            f"table by {', '.join(dimension.name for dimension in cells.dimensions)}",
            expected="a measured table whose cells add up to its own",
            found="none",
            do="wish something of a finer table, or compare at another epsilon",
        )
    codes, values = min(able, key=lambda one: len(one[1]))
    position = np.zeros(len(values), dtype=np.int64)
    for dimension, column in zip(cells.dimensions, codes, strict=True):
        position = position * len(dimension) + column
    sums = np.bincount(np.searchsorted(cells.positions, position), weights=values, minlength=len(cells))
    return sums.astype(np.float64)


def _codes_in(finer: Cells, dimension: Dimension, above: Above) -> Integers | None:
    """The number of the code of a dimension that each cell of a table has, or lies in; None where none follows."""
    for own in finer.dimensions:
        if own.name == dimension.name:
            return finer.codes(own.name)
        if (parents := above(own, dimension)) is not None:
            place = {code: at for at, code in enumerate(dimension.codes)}
            return np.array([place[parents[code]] for code in own.codes], dtype=np.int64)[finer.codes(own.name)]
    return None


def measure(
    file: Path, wishes: Mapping[str, str], epsilon: Fraction | None, workers: float, draws: int
) -> dict[str, Any]:
    """Predicted and measured errors over their wishes, of the plan and of other splits."""
    release = sfumato.load(file)
    # Agreement is what is measured, and tables are whole for it.
    release = release.model_copy(update={"about": release.about.model_copy(update={"reconcile": True})})
    planner = Planner.of(release, wishes, workers)
    found = planner.least() if epsilon is None else planner.at(epsilon)
    truth, above = counted(release)
    limits = {one.name: one.wish.limit for one in found.tables if one.wish is not None}
    rows = {}
    for words, split in splits(planner, found).items():
        predicted = planner.errors(np.array([split[one.name] for one in planner.tables]))
        errors = mean_errors(planner, truth, split, draws, above)
        expected = {one.name: float(error) for one, error in zip(planner.tables, predicted, strict=True)}
        rows[words] = {
            "epsilon": dict(split),
            "predicted": {name: expected[name] / limit for name, limit in limits.items()},
            "measured": {name: errors[name] / limit for name, limit in limits.items()},
        }
    return {"total": float(found.total), "draws": draws, "splits": rows}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("wishes", nargs="*", help="TABLE=WISH")
    parser.add_argument("--epsilon", type=Fraction)
    parser.add_argument("--workers", type=float, default=20.0)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    wishes = dict(text.split("=", 1) for text in options.wishes)
    found = measure(options.file, wishes, options.epsilon, options.workers, options.draws)
    print(f"total epsilon {found['total']:g}, {found['draws']} draws: errors over their wishes, predicted → measured")
    for words, row in found["splits"].items():
        worst = [max(row[kind].values()) for kind in ("predicted", "measured")]
        print(f"{words}: worst {worst[0]:.2f} → {worst[1]:.2f}")
        for name, value in row["measured"].items():
            print(f"    {name}: epsilon {row['epsilon'][name]:g}, {row['predicted'][name]:.2f} → {value:.2f}")


if __name__ == "__main__":
    main()
