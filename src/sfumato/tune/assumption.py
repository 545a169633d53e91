"""The public assumption behind a tuned epsilon: one cell that stands for all it is meant for."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.methods.method import Method
from sfumato.methods.node_laplace import NodeLaplace
from sfumato.privacy.guarantee import plain


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """A cell of so many jobs, in which the largest establishment has this share.

    With worker attributes all worker cells of the workplace cell are taken to be alike, and the largest establishment
    to have the same share in each. A share of 1 is the worst case: one establishment has all jobs.
    """

    jobs: int
    largest_share: Fraction = Fraction(1)
    worker_cells: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.largest_share <= 1:
            raise MethodError(
                "largest share",
                expected="a share above 0 and at most 1",
                found=plain(self.largest_share),
                do="give the share of the largest establishment of a cell; 1 is the worst case",
            )

    def __str__(self) -> str:
        words = f"a cell of {self.jobs:,} jobs in which the largest establishment has {self.largest:,}"
        if self.worker_cells > 1:
            words += f", as in each of the {self.worker_cells} worker cells of its workplace cell"
        return words

    @property
    def consequence(self) -> str:
        """What the assumption means for cells that are otherwise."""
        if self.worker_cells > 1:
            return (
                "A cell beside others that hold more jobs of its largest establishment may come out worse, where the "
                "method protects all worker cells together."
            )
        return "A cell in which the largest establishment has a smaller share comes out no worse."

    @property
    def largest(self) -> int:
        """The jobs of the largest establishment in the cell, rounded up."""
        return ceil(self.jobs * self.largest_share)

    def cells(self, method: Method, copies: int) -> Cells:
        """So many workplace cells as assumed, with every column the method needs."""
        inside = max(self.worker_cells, 1)
        number = copies * inside
        values = {
            "count": self.jobs,
            "largest": self.largest,
            "largest_employer": self.largest * inside,
            # As few as there can be: what depends on their number is then chosen for the case that is assumed.
            "establishments": ceil(1 / self.largest_share),
        }
        if isinstance(method, NodeLaplace):
            values["count_below_threshold"] = self.jobs if self.largest * inside < method.threshold else 0
        lacking = method.needs - values.keys()
        if lacking:
            raise cannot_tell(method, f"it needs {', '.join(sorted(lacking))}, which only the data can tell")
        dimensions = [Dimension(name="copy", codes=tuple(map(str, range(copies))))]
        if self.worker_cells > 1:
            codes = tuple(map(str, range(self.worker_cells)))
            dimensions.append(Dimension(name="workers", codes=codes, public=False))
        columns = {name: np.full(number, value, dtype=np.int64) for name, value in values.items()}
        return Cells(dimensions=tuple(dimensions), positions=np.arange(number, dtype=np.int64), columns=columns)


def cannot_tell(method: Method, why: str) -> MethodError:
    """The refusal of a method whose accuracy cannot be known before the data are."""
    return MethodError(
        method.name,
        expected="a method whose error is known without the data",
        found=f"{method.name}: {why}",
        do="choose another method, or state the accuracy for cells of at most so many jobs",
    )
