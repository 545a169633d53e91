"""Figures of a published table: rows of the bundle, found by their place in the product of the dimensions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Column, Figures, Places, Selection

Found = NDArray[np.bool_] | None
"""Which combinations of codes have a row; None where all do."""
Status = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Margin:
    """Another table of the release that has the protected totals over some dimensions of this one."""

    id: str
    figures: "StoredFigures"
    axes: tuple[int, ...]
    """For every axis of the margin, its place among the axes of the table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredFigures:
    """The rows of a table, in memory."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    totals: tuple[int | None, ...]
    """Of every axis the place of its protected total, if it has one."""
    positions: Places | None
    """Where the rows lie in the product, ascending; None if every combination has a row, in order."""
    columns: tuple[Column, ...] = field(repr=False)
    """For every metric the figures of all rows."""
    status: Status | None = field(repr=False)
    """The status of every row, the same for all its figures; None if the table has none."""
    mirrored: tuple[int, ...] | None = None
    """For pairs without direction, which are listed once: the axis whose code each axis takes from the other end."""
    margins: Mapping[frozenset[int], Margin] = field(default_factory=dict, repr=False)
    """By the axes that are kept."""

    def figures(self, selection: Selection) -> Figures:
        """The rows of a selection; a combination without a row is a structural zero, exactly 0."""
        chosen = [(total,) if p is None else p for p, total in zip(selection.places, self.totals, strict=True)]
        lacking = [axis for axis, places in enumerate(chosen) if places == (None,)]
        if lacking:
            return self._of_margin(selection, lacking)
        shape = tuple(len(places) for places in selection.places if places is not None)
        grids = [np.asarray(places, dtype=np.int64) for places in chosen]
        rows, found = self._rows(grids)
        status = self._status(rows, found, shape)
        return Figures(
            columns=tuple(
                self._column(self.columns[metric], rows, found, status, shape) for metric in selection.metrics
            )
        )

    def with_margins(self, margins: Mapping[frozenset[int], Margin]) -> "StoredFigures":
        """The same rows, knowing where the totals over some dimensions are."""
        return replace(self, margins=margins)

    def _of_margin(self, selection: Selection, lacking: list[int]) -> Figures:
        kept = frozenset(range(len(self.shape))) - frozenset(lacking)
        margin = self.margins.get(kept)
        if margin is None:
            names = ", ".join(f"'{self.names[axis]}'" for axis in lacking)
            raise RefusedError(
                "selection",
                expected="codes for every dimension without a protected total",
                found=f"none for {names}",
                do="choose codes, or * for all; sums of protected cells are left to you, with their errors",
            )
        places = [selection.places[axis] for axis in margin.axes]
        found = margin.figures.figures(replace(selection, places=tuple(places)))
        # The margin may have its axes in another order.
        asked = [axis for axis in margin.axes if selection.places[axis] is not None]
        order = [asked.index(axis) for axis in sorted(asked)]
        columns = tuple(_transposed(column, order) for column in found.columns)
        note = f"Totals are those of the table '{margin.id}', protected by itself; cells need not add up to them."
        return Figures(columns=columns, notes=(note, *found.notes))

    def _rows(self, grids: list[Places]) -> tuple[Places, Found]:
        """The row of every combination of some places, and which of them have one; None where all do."""
        flat = self._flat(grids)
        if self.positions is None:
            return flat, None
        rows, found = self._looked_up(flat)
        if self.mirrored is not None and not found.all():
            # The order of axes stays that of the question; only the codes change ends.
            spread = np.meshgrid(*grids, indexing="ij")
            other = self._flat_of([spread[axis].ravel() for axis in self.mirrored])
            theirs, there = self._looked_up(other)
            rows, found = np.where(found, rows, theirs), found | there
        return rows, None if found.all() else found

    def _looked_up(self, flat: Places) -> tuple[Places, NDArray[np.bool_]]:
        positions = self.positions if self.positions is not None else flat
        if not len(positions):
            return np.zeros_like(flat), np.zeros(flat.shape, dtype=np.bool_)
        rows = np.minimum(np.searchsorted(positions, flat), len(positions) - 1)
        return rows, positions[rows] == flat

    def _flat(self, grids: list[Places]) -> Places:
        """The place in the product of every combination, in order."""
        flat = np.zeros(1, dtype=np.int64)
        for grid, length in zip(grids, self.shape, strict=True):
            flat = (flat[:, None] * length + grid[None, :]).ravel()
        return flat

    def _flat_of(self, places: list[Places]) -> Places:
        flat = np.zeros(len(places[0]), dtype=np.int64)
        for place, length in zip(places, self.shape, strict=True):
            flat = flat * length + place
        return flat

    def _status(self, rows: Places, found: Found, shape: tuple[int, ...]) -> Status | None:
        if self.status is None or not len(self.status):
            return None
        status = self.status[rows]
        if found is not None:
            status = np.where(found, status, np.int8(0))
        return status.reshape(shape) if status.any() else None

    @staticmethod
    def _column(column: Column, rows: Places, found: Found, status: Status | None, shape: tuple[int, ...]) -> Column:
        if not len(column.values):
            return Column(values=np.zeros(shape, dtype=column.values.dtype))
        values = column.values[rows]
        missing = None if column.missing is None else column.missing[rows]
        if found is not None:
            values = np.where(found, values, values.dtype.type(0))
            missing = None if missing is None else missing & found
        if missing is not None:
            missing = missing.reshape(shape) if missing.any() else None
        return Column(values=values.reshape(shape), missing=missing, status=status)


def _transposed(column: Column, order: list[int]) -> Column:
    missing = None if column.missing is None else column.missing.transpose(order)
    status = None if column.status is None else column.status.transpose(order)
    return Column(values=column.values.transpose(order), missing=missing, status=status)
