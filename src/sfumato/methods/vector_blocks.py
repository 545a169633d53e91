"""Blocks: the worker cells of one workplace cell side by side, as the vector methods see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError

Number = TypeVar("Number", bound=np.generic)

LIMIT = 2**61
"""Published values are cut here, well inside the 2^62 at which noise saturates: the sum is cut, never the noise."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The columns of Cells in rows, one row a workplace cell."""

    cells: Cells
    order: NDArray[np.intp]
    columns: Mapping[str, Integers]

    @classmethod
    def of(cls, cells: Cells, *, needs: frozenset[str], method: str, width: int, alpha: Fraction) -> "Blocks":
        """The blocks of all cells, or a MethodError, which names no count: those are confidential."""
        lacking = sorted(needs - set(cells.columns))
        if lacking or cells.worker_cells != width:
            raise MethodError(
                method,
                expected=f"the columns {', '.join(sorted(needs))}, and {width} worker cells in each workplace cell",
                found=f"no {' nor '.join(lacking)}" if lacking else f"{cells.worker_cells} worker cells",
                do="tabulate for this method; a joined table has no number of establishments, so choose another there"
                if lacking
                else "build the method with the worker_cells of the table",
            )
        order = cells.blocks()
        blocks = cls(cells=cells, order=order, columns={name: cells[name][order] for name in needs})
        blocks.check(method, alpha)
        return blocks

    def __getitem__(self, column: str) -> Integers:
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.order)

    def check(self, method: str, alpha: Fraction) -> None:
        """Refuse counts that do not fit together, or not into 64 bits after multiplication with α = p/q."""
        count, most = self["count"], 2**59 // (alpha.numerator * self.order.shape[1])
        fits = bool(np.all((count >= 0) & (count < most)))
        if "largest" in self.columns:
            fits = fits and bool(np.all((self["largest"] >= 0) & (self["largest"] <= count)))
        if "largest_employer" in self.columns:
            employer = self["largest_employer"]
            total = np.minimum(count, most).sum(axis=1, keepdims=True)
            fits = fits and bool(np.all((employer >= 0) & (employer <= total) & (employer == employer[:, :1])))
        if not fits:
            raise MethodError(
                method,
                expected=f"0 ≤ largest ≤ count < 2^59/{alpha.numerator * self.order.shape[1]} in every cell, and one "
                "largest_employer of at most the sum of its cells in every workplace cell",
                found="a cell outside these limits",
                do="check the counts; classify the table by a worker attribute instead of a `where` on it; or choose "
                "an alpha with fewer decimals",
            )

    def published(self, rows: Integers) -> Cells:
        """Protected values in the places of the cells they belong to."""
        value = np.clip(laid_back(self.order, rows), -LIMIT, LIMIT)
        return Cells(dimensions=self.cells.dimensions, positions=self.cells.positions, columns={"value": value})


def laid_back(order: NDArray[np.intp], rows: NDArray[Number]) -> NDArray[Number]:
    """Rows of blocks as one column in the order of the cells."""
    column = np.empty(order.size, dtype=rows.dtype)
    column[order.ravel()] = rows.ravel()
    return column
