"""Contributions: the jobs of every establishment in every cell, for what is done to establishments before summing."""

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.engine.connect import Tables
from sfumato.engine.establishment_groups import establishment_groups, located, place_in
from sfumato.engine.question import Question
from sfumato.engine.text import text
from sfumato.frame import Frame


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """Who contributes how much to which cell: confidential, and many times larger than the cells.

    Row i says that establishment `unit[i]` has `jobs[i]` jobs in cell `cell[i]`. Establishments are numbered from 0,
    `units` holds their names; an establishment without jobs has no row.
    """

    units: tuple[str, ...]
    unit: Integers
    cell: Integers
    jobs: Integers
    cells: int
    """The number of cells, also those without any row."""

    @property
    def sizes(self) -> Integers:
        """The jobs of every establishment in all cells together."""
        return np.bincount(self.unit, weights=self.jobs, minlength=len(self.units)).astype(np.int64)

    def sums(self, factors: Integers) -> Integers:
        """The cells, when the jobs of every establishment are multiplied by its whole factor.

        Sums below 2^53 are exact.
        """
        weighted = np.bincount(self.cell, weights=factors[self.unit] * self.jobs, minlength=self.cells)
        return weighted.astype(np.int64)


def contributions(frame: Frame, tables: Tables, question: Question, cells: Cells) -> Contributions:
    """The jobs of every establishment in the cells that tabulation found for a question without `where`."""
    if question.where or tables.workplaces is None or frame.workplaces is None:
        raise ValueError("contributions are counted for whole populations with a table of workplaces")
    register = tables.workplaces
    public = {dimension.name: dimension.codes for dimension in question.by if frame.is_public(dimension.name)}
    named = register.select(
        _workplace=register[frame.workplaces.key], **{name: text(register[name], name) for name in public}
    )
    with establishment_groups(frame, tables, {"": Question(by=question.by)}, None) as counted:
        placed = counted.groups.inner_join(located(tables, named, public), "_workplace")
        found = placed.select(
            "_jobs", _position=place_in(question.by, placed), _unit=text(placed["_workplace"], "_unit")
        ).to_pyarrow()
    encoded = found["_unit"].combine_chunks().dictionary_encode()
    return Contributions(
        units=tuple(encoded.dictionary.to_pylist()),
        unit=encoded.indices.to_numpy().astype(np.int64),
        cell=np.searchsorted(cells.positions, found["_position"].to_numpy()),
        jobs=found["_jobs"].to_numpy().astype(np.int64),
        cells=len(cells),
    )
