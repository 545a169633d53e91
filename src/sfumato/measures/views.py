"""Views: the parts of a published table that are looked at one by one, with their true cells."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells


@dataclass(frozen=True, kw_only=True, eq=False)
class Strata:
    """Which class of a public attribute every cell belongs to."""

    attribute: str
    labels: tuple[str, ...]
    classes: Integers
    """The place of each cell among the labels."""


@dataclass(frozen=True, kw_only=True)
class View:
    """One statistic of one table: the cells that were published, true and as readers see them.

    Values are whole numbers of which `parts` make one `unit`.
    """

    planned: Any
    title: str
    indicator: str | None
    counted: Cells
    shown: Integers
    """The values of the bundle, after tables were made to agree and negative ones were raised."""
    expected: Floats
    """The errors that the method expects at the true cells, over all its chance: confidential."""
    interval: tuple[Floats, Floats] | None
    """The ends of the published intervals, NaN where there is none; None where none is published."""
    unit: str = "jobs"
    parts: int = 1
    counts: bool = True
    """Whether values are numbers of things, and not amounts such as money."""
    additive: bool = True
    """Whether the cells add up; means do not."""
    agreed: bool = False
    """Whether the values were changed so that tables agree."""
    margins: "View | None" = None
    """The totals of rows and columns that are published beside the cells."""
    reference: Integers | None = None
    """The values of the same cells under another protection, which errors are compared with."""
    strata: "tuple[Strata, ...]" = ()
    """Further classes that errors are broken down by."""
    withheld: Cells | None = None
    """The true cells that are not published."""

    @property
    def name(self) -> str:
        """The name of the table, and of its indicator if it has several."""
        return str(self.planned.table.name + (f"/{self.indicator}" if self.indicator else ""))

    def only(self, chosen: NDArray[np.bool_]) -> "View":
        """Some of its cells."""
        return replace(
            self,
            counted=only(self.counted, chosen),
            shown=self.shown[chosen],
            expected=self.expected[chosen],
            interval=None if self.interval is None else (self.interval[0][chosen], self.interval[1][chosen]),
            reference=None if self.reference is None else self.reference[chosen],
            strata=tuple(replace(found, classes=found.classes[chosen]) for found in self.strata),
        )


def only(cells: Cells, chosen: NDArray[np.bool_]) -> Cells:
    """Some cells."""
    return Cells(
        dimensions=cells.dimensions,
        positions=cells.positions[chosen],
        columns={name: column[chosen] for name, column in cells.columns.items()},
    )
