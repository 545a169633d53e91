"""Figures of a cube: any table of it, summed exactly, with the expected error of every figure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.cube.answer import STATUSES as OF_CUBES
from sfumato.cube.answer import Answer
from sfumato.cube.query import PublishedCube
from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Column, Figures, Grouping, Selection
from sfumato.serve.status import NUMBERS

MOST_GROUPS = 400
"""How many combinations of groups one question may ask for: each is a question of its own to the cube."""
_NUMBERS = np.array([NUMBERS[text] for text in OF_CUBES], dtype=np.int8)


@dataclass(frozen=True, kw_only=True)
class CubeMetric:
    """A figure of a cube: totals of a column or means of a measure, or the error of one of them."""

    statistic: Literal["total", "mean"]
    column: str
    error: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeFigures:
    """A cube of a bundle, and which of its figures are the metrics."""

    cube: PublishedCube = field(repr=False)
    metrics: tuple[CubeMetric, ...]
    groupings: Mapping[str, Grouping] = field(default_factory=dict, repr=False)
    """By their identifiers."""

    def figures(self, selection: Selection) -> Figures:
        """The table by the dimensions that are asked for, under the codes that are asked for."""
        if selection.groupings:
            return self._grouped(selection)
        dimensions = self.cube.cube.dimensions
        by = [d.name for d, places in zip(dimensions, selection.places, strict=True) if places is not None]
        where = {
            d.name: tuple(d.codes[place] for place in places)
            for d, places in zip(dimensions, selection.places, strict=True)
            if places is not None and len(places) < len(d.codes)
        }
        return self._asked(selection, by, where)

    def _asked(self, selection: Selection, by: list[str], where: Mapping[str, tuple[str, ...]]) -> Figures:
        answers: dict[tuple[str, str], Answer] = {}
        columns = []
        for metric in (self.metrics[place] for place in selection.metrics):
            asked = (metric.statistic, metric.column)
            if asked not in answers:
                answers[asked] = (
                    self.cube.totals(by, where=where, column=metric.column)
                    if metric.statistic == "total"
                    else self.cube.means(metric.column, by, where=where)
                )
            answer = answers[asked]
            columns.append(_column(answer.errors if metric.error else answer.values, _NUMBERS[answer.status]))
        return Figures(columns=tuple(columns))

    def _grouped(self, selection: Selection) -> Figures:
        """One question for every combination of groups: the error of a sum is not the sum of errors."""
        dimensions, by_axis = self.cube.cube.dimensions, dict(selection.groupings)
        members = {
            axis: [list(self.groupings[name].groups.values())[place][1] for place in selection.places[axis] or ()]
            for axis, name in by_axis.items()
        }
        combinations = list(product(*members.values()))
        if len(combinations) > MOST_GROUPS:
            raise RefusedError(
                "selection",
                expected=f"at most {MOST_GROUPS} combinations of groups",
                found=f"{len(combinations):,}",
                do="choose fewer groups",
                status=403,
            )
        kept = [axis for axis, places in enumerate(selection.places) if places is not None and axis not in by_axis]
        where = {dimensions[axis].name: _codes(dimensions[axis].codes, selection.places[axis]) for axis in kept}
        by = [dimensions[axis].name for axis in kept]
        parts = [
            self._asked(
                selection, by, where | {dimensions[axis].name: m for axis, m in zip(members, chosen, strict=True)}
            )
            for chosen in combinations
        ]
        leading = tuple(len(groups) for groups in members.values())
        order = np.argsort([*members, *kept], kind="stable").tolist()

        def together(arrays: list[NDArray[Any]]) -> NDArray[Any]:
            return np.stack(arrays).reshape(leading + arrays[0].shape).transpose(order)

        columns = []
        for at in range(len(selection.metrics)):
            values = together([part.columns[at].values for part in parts])
            status = together([_status(part.columns[at]) for part in parts]).astype(np.int8)
            columns.append(_column(values, status))
        return Figures(columns=tuple(columns))


def _codes(codes: tuple[str, ...], places: tuple[int, ...] | None) -> tuple[str, ...]:
    return codes if places is None else tuple(codes[place] for place in places)


def _column(values: NDArray[Any], status: NDArray[np.int8]) -> Column:
    """A column of decimals; what is not finite is missing."""
    missing = ~np.isfinite(values)
    return Column(
        values=values, missing=missing if missing.any() else None, status=np.asarray(status) if status.any() else None
    )


def _status(column: Column) -> NDArray[np.int8]:
    return np.zeros(column.values.shape, dtype=np.int8) if column.status is None else column.status
