"""Figures of a cube: any table of it, summed exactly, with the expected error of every figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.cube.answer import STATUSES as OF_CUBES
from sfumato.cube.asked import Asked, Places, kept_places
from sfumato.cube.margins import Axes
from sfumato.cube.query import PublishedCube
from sfumato.serve.cache import BoundedCache
from sfumato.serve.errors import RefusedError
from sfumato.serve.model import HIDING, Column, Figures, Grouping, Selection
from sfumato.serve.status import NUMBERS

MOST_GROUPS = 400
"""How many combinations of groups one question may ask for: each is a question of its own to the cube."""
WHOLE_CELLS = 100_000
"""Tables of up to so many cells are worked out as a whole, and then only picked from."""
QUICK_CELLS = 10_000
"""A table of up to so many cells is worked out in a few milliseconds."""
KEPT_BYTES = 64 << 20
"""How much memory such tables of one cube take at the most."""
Statistic = Literal["total", "mean"]
_NUMBERS = np.array([NUMBERS[text] for text in OF_CUBES], dtype=np.int8)


@dataclass(frozen=True, kw_only=True)
class CubeMetric:
    """A figure of a cube: totals of a column or means of a measure, or the error of one of them."""

    statistic: Statistic
    column: str
    error: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeFigures:
    """A cube of a bundle, and which of its figures are the metrics."""

    cube: PublishedCube = field(repr=False)
    metrics: tuple[CubeMetric, ...]
    groupings: Mapping[str, Grouping] = field(default_factory=dict, repr=False)
    """By their identifiers."""
    _kept: BoundedCache["_Worked"] = field(default_factory=lambda: BoundedCache(KEPT_BYTES), repr=False)

    def figures(self, selection: Selection) -> Figures:
        """The table by the dimensions that are asked for, under the codes that are asked for."""
        if selection.groupings:
            return self._grouped(selection)
        axes = _axes(selection)
        kept = self._filtered(selection, axes)
        if self._cells(axes) > WHOLE_CELLS:
            return self._asked(selection, axes, kept)
        # A figure by some dimensions does not depend on which codes of them are asked for beside its own.
        picks = [(np.array(places, dtype=np.intp), axes.index(axis)) for axis, places in kept.items()]
        return self._columns(selection, lambda statistic, column: self._whole(statistic, column, axes).only(picks))

    def is_quick(self, selection: Selection) -> bool:
        """Whether the figures are only picked or summed from few cells; the first of a large table have to wait."""
        if selection.groupings:
            return False
        axes = _axes(selection)
        cells = self._cells(axes)
        if cells <= QUICK_CELLS:
            return True
        if cells > WHOLE_CELLS:  # by all dimensions nothing is summed
            return len(axes) == len(selection.places)
        asked = {(self.metrics[place].statistic, self.metrics[place].column) for place in selection.metrics}
        return all(self._kept.get((*one, axes)) is not None for one in asked)

    def _cells(self, axes: Axes) -> int:
        """How many cells the table by some dimensions has."""
        return prod(self.cube.cube.shape[axis] for axis in axes)

    def _filtered(self, selection: Selection, axes: Axes) -> dict[int, Places]:
        """The places that are kept of dimensions some of whose codes are not."""
        lengths, chosen = self.cube.cube.shape, selection.places
        return {axis: found for axis in axes if (found := chosen[axis]) is not None and len(found) < lengths[axis]}

    def _asked(self, selection: Selection, axes: Axes, kept: Mapping[int, Places]) -> Figures:
        """The figures of one question, worked out for its own cells."""
        question = Asked.at(self.cube.cube, axes, kept)
        return self._columns(selection, lambda statistic, column: self._worked(statistic, column, question))

    def _columns(self, selection: Selection, worked: Callable[[Statistic, str], "_Worked"]) -> Figures:
        """A column for every metric; a figure and its error are worked out together."""
        known: dict[tuple[Statistic, str], _Worked] = {}
        columns = []
        for metric in (self.metrics[place] for place in selection.metrics):
            asked = (metric.statistic, metric.column)
            if asked not in known:
                known[asked] = worked(*asked)
            found = known[asked]
            columns.append(_column(found.errors if metric.error else found.values, found.status))
        return Figures(columns=tuple(columns))

    def _whole(self, statistic: Statistic, column: str, axes: Axes) -> "_Worked":
        """The figures of all cells by some dimensions, kept from the first question on."""
        key = (statistic, column, axes)
        found = self._kept.get(key)
        if found is None:
            found = self._worked(statistic, column, Asked.at(self.cube.cube, axes, {}))
            self._kept.put(key, found, size=found.values.nbytes + found.errors.nbytes + found.status.nbytes)
        return found

    def _worked(self, statistic: Statistic, column: str, question: Asked) -> "_Worked":
        asked = self.cube.totals_of if statistic == "total" else self.cube.means_of
        answer = asked(question, column)
        return _Worked(values=answer.values, errors=answer.errors, status=np.asarray(_NUMBERS[answer.status]))

    def _grouped(self, selection: Selection) -> Figures:
        """One question for every combination of groups: the error of a sum is not the sum of errors."""
        dimensions, by_axis = self.cube.cube.dimensions, dict(selection.groupings)
        members = {}
        for axis, name in by_axis.items():
            groups = tuple(codes for _, codes in self.groupings[name].groups.values())
            members[axis] = [kept_places(dimensions[axis], groups[place]) for place in selection.places[axis] or ()]
        combinations = list(product(*members.values()))
        if len(combinations) > MOST_GROUPS:
            raise RefusedError(
                "selection",
                expected=f"at most {MOST_GROUPS} combinations of groups",
                found=f"{len(combinations):,}",
                do="choose fewer groups",
                status=403,
            )
        axes = tuple(axis for axis, places in enumerate(selection.places) if places is not None and axis not in by_axis)
        kept = self._filtered(selection, axes)
        parts = [
            self._asked(selection, axes, kept | dict(zip(members, chosen, strict=True))) for chosen in combinations
        ]
        leading = tuple(len(groups) for groups in members.values())
        order = np.argsort([*members, *axes], kind="stable").tolist()

        def together(arrays: list[NDArray[Any]]) -> NDArray[Any]:
            return np.stack(arrays).reshape(leading + arrays[0].shape).transpose(order)

        columns = []
        for at in range(len(selection.metrics)):
            values = together([part.columns[at].values for part in parts])
            status = together([_status(part.columns[at]) for part in parts]).astype(np.int8)
            columns.append(_column(values, status))
        return Figures(columns=tuple(columns))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Worked:
    """Figures with their errors and status, in arrays over some dimensions."""

    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    status: NDArray[np.int8]

    def only(self, picks: Sequence[tuple[NDArray[np.intp], int]]) -> "_Worked":
        """Those at some places of some axes."""
        values, errors, status = self.values, self.errors, self.status
        for places, axis in picks:
            values, errors = values.take(places, axis=axis), errors.take(places, axis=axis)
            status = status.take(places, axis=axis)
        return _Worked(values=values, errors=errors, status=status)


def _axes(selection: Selection) -> Axes:
    """The dimensions that are asked for."""
    return tuple(axis for axis, places in enumerate(selection.places) if places is not None)


def _column(values: NDArray[Any], status: NDArray[np.int8]) -> Column:
    """A column of decimals; what is not finite is missing, and so is what has a status that says so."""
    missing, said = ~np.isfinite(values), bool(np.count_nonzero(status))
    if said:
        missing |= HIDING[status]
    return Column(
        values=values,
        missing=missing if np.count_nonzero(missing) else None,
        status=status if said else None,
    )


def _status(column: Column) -> NDArray[np.int8]:
    return np.zeros(column.values.shape, dtype=np.int8) if column.status is None else column.status
