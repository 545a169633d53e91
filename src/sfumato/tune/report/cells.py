"""The cells that an employee report is tuned for: assumed, declared in a file, or the true ones if that is told."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.check import checked
from sfumato.errors import DataError, SfumatoError
from sfumato.frame import exact
from sfumato.methods.mose import Mose
from sfumato.plan import PlannedTable
from sfumato.release import Release

PEOPLE, MEAN = "people", "mean"
"""The columns of a file of declared cells."""
_MOST = 2**40


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportCells:
    """Cells with people in them, each as frequent as the next, and their mean of the outcome where it matters."""

    people: Integers
    mean: Floats | None
    """In the unit of the measure; None where no table is of means."""
    source: str
    """Where they come from, in words."""
    confidential: bool = False

    def __post_init__(self) -> None:
        if not len(self.people) or int(self.people.min()) < 1 or int(self.people.max()) > _MOST:
            raise _refused("one cell or more, with at least one person in each")
        if self.mean is not None and not bool((np.isfinite(self.mean) & (self.mean > 0)).all()):
            raise _refused("means above 0: differences are measured as a share of them")

    def __len__(self) -> int:
        return len(self.people)


def assumed_cells(people: Sequence[int], mean: Fraction | None) -> ReportCells:
    """Cells of these sizes, all with the same mean: an assumption that anybody may know."""
    sizes = ", ".join(f"{number:,}" for number in people)
    words = f"cells of {sizes} people{', each as frequent as the next' if len(people) > 1 else ''}"
    if mean is not None:
        words += f", with a mean of {float(mean):,g}"
    return ReportCells(
        people=np.array(people, dtype=np.int64),
        mean=None if mean is None else np.full(len(people), float(mean)),
        source=f"Assumed, not read off any data: {words}",
    )


def declared_cells(path: Path, mean: Fraction | None) -> ReportCells:
    """Cells of a CSV file with a column `people` and, unless all have one mean, `mean`: such as an earlier report."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        people = [int(row[PEOPLE]) for row in rows]
        means = [float(exact(row[MEAN])) for row in rows] if rows and MEAN in rows[0] else None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"cells {path}",
            expected=f"a CSV file with a whole number {PEOPLE!r} in every line, and perhaps a number {MEAN!r}",
            found=f"another file ({type(error).__name__})",
            do="correct the file",
        ) from error
    found = None if means is None else np.array(means)
    if found is None and mean is not None:
        found = np.full(len(people), float(mean))
    return ReportCells(
        people=np.array(people, dtype=np.int64),
        mean=found,
        source=f"Declared in {path.name}, which must be public: {len(people):,} cells",
    )


def true_cells(release: Release, tables: Sequence[PlannedTable]) -> ReportCells:
    """The true cells of a report, of its means where it has some: confidential, as is whatever is found from them."""
    asked = max(tables, key=lambda table: isinstance(table.method, Mose))
    with checked(release) as ready:
        cells = ready.count({asked.name: asked})[asked.name]
    if not isinstance(cells, Cells):
        raise TypeError("counts and means are made of cells")
    of_means = isinstance(asked.method, Mose)
    filled = (cells["count"] > 0) & ((cells["sum_y"] > 0) if of_means else True)
    people = cells["count"][filled]
    return ReportCells(
        people=people,
        mean=cells["sum_y"][filled] / people if of_means else None,
        source=f"CONFIDENTIAL, from the true data: {len(people):,} cells with people",
        confidential=True,
    )


def _refused(expected: str) -> SfumatoError:
    return SfumatoError(
        "cells of the report", expected=expected, found="another number", do="correct --people, --mean or the file"
    )
