"""Utility by cell: how far perturbation moved estimates, in percent, and what that comes to in a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Floats
from sfumato.reproduce.chipperfield2019.published_tables import EVERYONE, published_impacts

WITHIN = (1, 5)
"""Percentages; what share of the cells is moved by no more?"""
QUANTITIES = {
    "mean_absolute_impact": "mean impact, ±%",
    "median_absolute_impact": "median impact, ±%",
    **{f"share_within_{most}_percent": f"cells moved by at most {most}%" for most in WITHIN},
}
"""What a table's impacts come to, in words."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table on synthetic data, under the first key."""

    codes: dict[str, str]
    true: float
    perturbed: float | None
    """None where the cell is suppressed."""
    error: float
    """The relative standard error of its total by sampling, in percent."""

    @property
    def impact(self) -> float | None:
        """The percentage by which perturbation moved the cell."""
        return None if self.perturbed is None or self.true == 0 else 100 * (self.perturbed / self.true - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbedTable:
    """A table in the form of a published one, with some or all of its contributors protected."""

    number: int
    protected: str
    """Everyone, or those that asked."""
    labels: dict[str, dict[str, str]]
    """Of the codes of each dimension."""
    cells: tuple[Cell, ...]
    by_key: tuple[Floats, ...]
    """The impacts of all cells that are not suppressed, under one key after the other; one key is one draw."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every cell, and for every figure that the table comes to."""
        about: dict[str, Any] = {"table": self.number}
        if self.number in (6, 7):
            about["approach"] = "II" if self.protected == EVERYONE else "I/III"
        for cell in self.cells:
            yield {
                "quantity": "impact",
                **about,
                **cell.codes,
                "published": None,
                "ours": cell.impact,
                "true": cell.true,
                "perturbed": cell.perturbed,
            }
        published = absolute_figures(published_impacts(self.number, self.protected))
        for quantity in QUANTITIES:
            figures = self.figures(quantity)
            yield {
                "quantity": quantity,
                **about,
                "published": published.get(quantity),
                "ours": float(np.mean(figures)) if figures else None,
                "low": min(figures, default=None),
                "high": max(figures, default=None),
                "keys": len(self.by_key),
            }

    def figures(self, quantity: str) -> list[float]:
        """What the impacts come to under each key."""
        return [figures[quantity] for impacts in self.by_key if (figures := absolute_figures(impacts))]


def absolute_figures(impacts: Sequence[float] | Floats) -> dict[str, float]:
    """The mean and median size of impacts, and the shares of small ones; nothing where there are none.

    >>> absolute_figures([0.5, -1.0, 3.0, -7.5])["share_within_1_percent"]
    0.5
    """
    if len(impacts) == 0:
        return {}
    sizes = np.abs(np.asarray(impacts, dtype=np.float64))
    return {
        "mean_absolute_impact": float(sizes.mean()),
        "median_absolute_impact": float(np.median(sizes)),
        **{f"share_within_{most}_percent": float((sizes <= most).mean()) for most in WITHIN},
    }
