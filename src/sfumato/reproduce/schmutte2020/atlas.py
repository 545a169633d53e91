"""The groups of a synthetic Opportunity Atlas, tabulated once: children by tract, race and gender."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.check import checked
from sfumato.economy.files import RELEASE
from sfumato.engine.question import SampleQuestion
from sfumato.errors import DataError
from sfumato.methods.mose import Mose
from sfumato.methods.registry import needs
from sfumato.methods.theil_sen import TheilSen
from sfumato.release_file import load
from sfumato.samples import Samples

RANK = 100.0
"""Ranks are stored in hundredths."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Atlas:
    """Sums and values of every group: confidential if the children were real."""

    method: Mose
    """As the release file describes it."""
    cells: Cells
    samples: Samples
    classes: tuple[str, ...]
    """The calibration classes by their number, such as `GA, F, black`."""

    @property
    def people(self) -> Integers:
        """The children of every group."""
        return self.cells["count"]

    @property
    def children(self) -> int:
        """All of them."""
        return int(self.people.sum())

    def chosen(self, groups: NDArray[np.bool_]) -> Cells:
        """The cells of some groups."""
        columns = {name: column[groups] for name, column in self.cells.columns.items()}
        return replace(self.cells, positions=self.cells.positions[groups], columns=columns)


def read_atlas(folder: Path) -> Atlas:
    """Tabulate the children of a folder that `sfumato economy opportunity` wrote."""
    with checked(load(folder / RELEASE)) as ready:
        table = ready.plan.tables[0]
        question, method = table.question, table.method
        if not isinstance(question, SampleQuestion) or not isinstance(method, Mose) or not method.at:
            raise DataError(
                f"data {folder}",
                expected="children as `sfumato economy opportunity` writes them",
                found="another kind of data",
                do="name another folder with --data, or leave --data out",
            )
        by_value = replace(table, question=replace(question, needs=needs(TheilSen.name)))
        cells, samples = (ready.count({table.name: asked})[table.name] for asked in (table, by_value))
    assert isinstance(cells, Cells)
    assert isinstance(samples, Samples)
    codes = [dimension.codes for dimension in question.classes]
    shape = tuple(map(len, codes))
    places = [np.unravel_index(number, shape) for number in range(int(np.prod(shape)))]
    names = (", ".join(of[at] for of, at in zip(codes, place, strict=True)) for place in places)
    return Atlas(method=method, cells=cells, samples=samples, classes=tuple(names))
