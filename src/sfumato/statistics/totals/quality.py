"""What totals, means and counts of records are published with: errors that tell little of who was perturbed."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import MOSTLY_PERTURBATION, PlannedError, check_confidence, rounded_up
from sfumato.noise.factors import ONE

UNKNOWN = np.iinfo(np.int64).min
"""Stands for a limit that is not told."""
MOSTLY = 0.5
"""A cell is marked when perturbation makes up more than this share of its variance."""


class KeyedFigures(ABC):
    """What methods have in common that perturb figures of records by a key: their parameters and errors are secrets."""

    keyed: ClassVar[bool] = True
    """It takes its chance from a key file and costs no budget: it has no formal guarantee."""
    unbiased: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"records"})
    spread: Fraction

    @abstractmethod
    def true_value(self, cells: Cells) -> Floats:
        """The figure without perturbation, in the unit of what is published: confidential."""

    @abstractmethod
    def _value(self, cells: Cells) -> Floats:
        """The figure as it is published, before it is rounded."""

    @property
    def spread_of_noise(self) -> float:
        """The b of the noise on 1 ± b."""
        return float(self.spread)

    def planned_error(self) -> PlannedError:
        """It depends on magnitudes, which are secret."""
        return PlannedError(floor=0.0, floor_size=0, share=None, of="its total")

    def expected_bias(self, cells: Cells) -> Floats:
        """What the key does to each cell, the same in every release: confidential."""
        bias: Floats = self._value(cells) - self.true_value(cells)
        return bias

    def published_error(self, values: Integers) -> Floats:
        """Nothing may be told but what `protect` publishes."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """Nothing may be told but what `protect` publishes."""
        check_confidence(confidence)
        return np.full(len(values), -np.inf), np.full(len(values), np.nan)


def as_changed(error: Floats, true: Floats, value: Floats) -> Floats:
    """The error by sampling of what was perturbed: the same share of it, so that it does not tell how it was moved."""
    size = np.abs(true)
    return np.divide(error * np.abs(value), size, out=error.astype(np.float64), where=size > 0)


def published_cells(
    cells: Cells,
    *,
    value: Floats,
    by_shares: bool,
    sampling: Floats,
    deviation: Floats,
    width: Floats,
    blurred: Floats,
    hidden: Integers,
) -> Cells:
    """The answer: values, their status, and errors on a coarse scale, raised by a secret of the largest contributor.

    `sampling` and `deviation` are the standard errors by sampling and by perturbation, `width` is half of the interval,
    and `hidden` the status of cells of which nothing is told. Errors are made of contributors after perturbation, and
    are shares of the published figure: so errors tell of true contributors no more than perturbed ones do, whichever
    cells are compared. `low` and `high` follow from the value and the told share alone, and enclose a figure that was
    moved by shares of itself, or by amounts.
    """
    shown, seen = np.abs(value), (hidden == 0) & (value != 0)
    whole = np.sqrt(sampling**2 + deviation**2)
    mostly = deviation**2 > MOSTLY * whole**2
    rse, apart = (rounded_up(_relative(blurred * error, shown)) for error in (whole, width))
    known = seen & (apart < 1 if by_shares else np.isfinite(apart))
    share = np.where(known, apart, 0.0)
    low, high = interval_before(value, share) if by_shares else (value - share * shown, value + share * shown)
    columns = {
        "value": np.where(seen, value, 0),
        "status": np.where(seen & mostly, MOSTLY_PERTURBATION, hidden),
        "rse": np.rint(1000 * np.where(np.isfinite(rse) & seen, rse, -0.001)),
        "low": np.where(known, np.floor(low), UNKNOWN),
        "high": np.where(known, np.ceil(high), UNKNOWN),
    }
    return Cells(
        dimensions=cells.dimensions,
        positions=cells.positions,
        columns={name: column.astype(np.int64) for name, column in columns.items()},
    )


def interval_before(value: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Where the figure before perturbation lies if the published one is off by no more than a share q < 1 of it.

    Moved by up to q of itself, a figure v was between v/(1 + q) and v/(1 − q); with an error by sampling of up to q of
    the estimate, between v·(1 − q) and v·(1 + q). From v·(1 − q) to v/(1 − q) is both, whichever it is.

    >>> [end.tolist() for end in interval_before(np.array([100.0, -100.0]), np.array([0.5, 0.5]))]
    [[50.0, -200.0], [200.0, -50.0]]
    """
    ends = value * (1 - share), value / (1 - share)
    return np.minimum(*ends), np.maximum(*ends)


def blur(cells: Cells) -> Floats:
    """By how much published errors of each cell are raised: a secret of its largest contributor, from 1 to 1.5.

    The relative error of a cell tells the size of its leader up to the scale. A reader who asks about many cells with
    the same leader would narrow that down; what comes out is the product with this number, which never changes for a
    unit.
    """
    words = cells["unit_word_0_1"].view(np.uint64)
    raised: Floats = 1 + 0.5 * (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return raised


def _relative(error: Floats, value: Floats) -> Floats:
    """An error as a share of its value; infinite where that is 0."""
    share: Floats = np.divide(error, value, out=np.full(len(value), np.inf), where=value > 0)
    return share


def whole(cells: Cells, name: str, rank: int | None = None) -> Floats:
    """A sum kept in whole units and millionths, as a number; of the contributor of a rank, where one is named."""
    sums, parts = (f"{name}", f"{name}_part")
    if rank is not None:
        stem, level = name.rsplit("_", 1)
        sums, parts = f"{stem}_{level}_{rank}", f"{stem}_part_{level}_{rank}"
    joined: Floats = cells[sums] + cells[parts] / ONE
    return joined
