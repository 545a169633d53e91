"""Two tables compared: for every combination of codes that both have, both figures and their difference."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sfumato.arrays import Flags
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.model import Column, Figures, Marks, Metric, Selection, ServedDimension, ServedTable

BETWEEN = "~"
"""Stands between the names of two tables that are compared; no table has it in its own."""
_NOTE = (
    "The error of a difference takes both errors for independent of each other. Where both tables were protected with "
    "the same permanent factors it is smaller."
)


def compared(first: ServedTable, second: ServedTable) -> ServedTable:
    """The table of both and their difference, or the reason why there is none."""
    value, other = (_first_value(table) for table in (first, second))
    if first.id == second.id or not comparable(first, second):
        raise RefusedError(
            "comparison",
            expected="two tables of the same kind of figure by the same variables",
            found=f"{first.id} and {second.id}",
            do="choose another table to compare with: its page lists those that fit",
            said=said(
                "These two tables cannot be compared: they have other variables, or another kind of figure. "
                "The page of each table lists those that fit."
            ),
        )
    axes = tuple(second.by_name[dimension.name.lower()] for dimension in first.dimensions)
    dimensions = tuple(_common(own, second.dimensions[axis]) for own, axis in zip(first.dimensions, axes, strict=True))
    names = _names(first, second)
    ends = tuple(_Side.of(table, dimensions) for table in (first, second))
    rated = all(side.error is not None for side in ends)
    metrics = tuple(_metrics(value, other, names, rated=rated))
    return ServedTable(
        id=f"{first.id}{BETWEEN}{second.id}",
        title=f"{first.title}: {names[0]} and {names[1]}",
        release=first.release,
        population=first.population,
        period=first.period if first.period == second.period else f"{first.period}, {second.period}",
        updated=max(first.updated, second.updated),
        dimensions=dimensions,
        metrics=metrics,
        method=first.method if first.method == second.method else f"{first.method}, {second.method}",
        guarantee=tuple(dict.fromkeys((*first.guarantee, *second.guarantee))),
        notes=(*([_NOTE] if rated else []), *dict.fromkeys((*first.notes, *second.notes))),
        digest=first.digest[:8] + second.digest[:8],
        marks=True,
        opened=tuple(metric.code for metric in metrics if metric.kind == "value" or metric.about == "difference"),
        source=ComparedFigures(sides=ends, rated=rated),
    )


def comparable(first: ServedTable, second: ServedTable) -> bool:
    """Whether two tables have the same variables, some codes of each in common, and the same kind of figure."""
    own, other = (_first_value(table) for table in (first, second))
    axes = {dimension.name.lower(): dimension for dimension in second.dimensions}
    return (
        (own.label, own.unit, own.additive) == (other.label, other.unit, other.additive)
        and axes.keys() == {dimension.name.lower() for dimension in first.dimensions}
        and all(not set(one.codes).isdisjoint(axes[one.name.lower()].codes) for one in first.dimensions)
    )


def others_to_compare(table: ServedTable, tables: Iterable[ServedTable]) -> tuple[ServedTable, ...]:
    """The tables that one can be compared with."""
    return tuple(one for one in tables if one.id != table.id and comparable(table, one))


def _first_value(table: ServedTable) -> Metric:
    return next(metric for metric in table.metrics if metric.kind == "value")


def _common(own: ServedDimension, other: ServedDimension) -> ServedDimension:
    both = own.only([place for place, code in enumerate(own.codes) if code in other.places])
    total = own.total if own.total == other.total and own.total in both.codes else None
    return replace(both, eliminable=own.eliminable and other.eliminable, total=total, groupings=())


def _names(first: ServedTable, second: ServedTable) -> tuple[str, str]:
    """What tells the tables apart; of identifiers the name of the bundle, where all else in them is the same."""
    bundles, rests = zip(
        *(table.id.split("-", 1) if "-" in table.id else (table.id, "") for table in (first, second)), strict=True
    )
    ids = bundles if rests[0] == rests[1] else (first.id, second.id)
    ways = ((t.period, t.title, t.release, name) for t, name in zip((first, second), ids, strict=True))
    return next((one, other) for one, other in zip(*ways, strict=True) if one != other)


def _metrics(value: Metric, other: Metric, names: tuple[str, str], *, rated: bool) -> Iterable[Metric]:
    difference = replace(value, code="difference", label="Difference", additive=False)
    sides = (replace(value, code="first", label=names[0]), replace(other, code="second", label=names[1]), difference)
    for metric in sides:
        yield metric
        if rated:
            yield Metric(
                code=f"{metric.code}_error",
                label=f"{metric.label}, standard error",
                unit=value.unit,
                decimals=max(value.decimals, 1),
                kind="error",
                about=metric.code,
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Side:
    """One of the tables: where its codes are, and which of its figures are compared."""

    table: ServedTable = field(repr=False)
    axes: tuple[int, ...]
    """Of every dimension of the comparison its place in this table."""
    places: tuple[tuple[int, ...], ...]
    """Of every code of the comparison its place in this table."""
    value: int
    error: int | None
    relative: bool

    @classmethod
    def of(cls, table: ServedTable, dimensions: Sequence[ServedDimension]) -> "_Side":
        axes = tuple(table.by_name[dimension.name.lower()] for dimension in dimensions)
        places = tuple(
            tuple(table.dimensions[axis].places[code] for code in dimension.codes)
            for dimension, axis in zip(dimensions, axes, strict=True)
        )
        value = next(at for at, metric in enumerate(table.metrics) if metric.kind == "value")
        kinds = {
            metric.kind: at for at, metric in enumerate(table.metrics) if metric.about == table.metrics[value].code
        }
        error = kinds.get("error", kinds.get("rse"))
        return cls(table=table, axes=axes, places=places, value=value, error=error, relative="error" not in kinds)

    def columns(self, selection: Selection, *, rated: bool) -> tuple[Column, Column | None]:
        """The figures that a selection of the comparison asks for, with their errors in the unit of the figure."""
        asked: list[tuple[int, ...] | None] = [None] * len(self.axes)
        for axis, own, chosen in zip(self.axes, self.places, selection.places, strict=True):
            asked[axis] = None if chosen is None else tuple(sorted(own[place] for place in chosen))
        error = self.error if rated else None
        wanted = (self.value,) if error is None else (self.value, error)
        found = self.table.answer(Selection(places=tuple(asked), metrics=wanted)).columns
        columns = [self._in_order(column, selection, asked) for column in found]
        if error is None:
            return columns[0], None
        errors = columns[1].values * (np.abs(columns[0].values) / 100 if self.relative else 1)
        return columns[0], Column(values=errors, missing=columns[1].missing)

    def _in_order(self, column: Column, selection: Selection, asked: Sequence[tuple[int, ...] | None]) -> Column:
        """The figures with axes and codes as the comparison has them."""
        kept = [axis for axis, places in enumerate(asked) if places is not None]
        order = [kept.index(axis) for axis in self.axes if axis in kept]
        found = column.transposed(order)
        shown = [
            np.argsort(np.argsort([own[place] for place in chosen], kind="stable"), kind="stable")
            for own, chosen in zip(self.places, selection.places, strict=True)
            if chosen is not None
        ]
        picked = np.ix_(*shown) if shown else ()
        return Column(
            values=found.values[picked],
            missing=None if found.missing is None else found.missing[picked],
            status=None if found.status is None else found.status[picked],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedFigures:
    """The figures of two tables and their differences."""

    sides: tuple[_Side, ...]
    rated: bool

    def figures(self, selection: Selection) -> Figures:
        """Both figures of every combination, and by how much the second is larger."""
        (first, low), (second, high) = (side.columns(selection, rated=self.rated) for side in self.sides)
        difference = Column(
            values=second.values.astype(np.float64) - first.values,
            missing=_either(first.missing, second.missing),
            status=first.status if second.status is None else _worse(first, second),
        )
        columns = [first, second, difference]
        if self.rated and low is not None and high is not None:
            error = Column(values=np.hypot(low.values, high.values), missing=_either(low.missing, high.missing))
            columns = [first, low, second, high, difference, error]
        return Figures(columns=tuple(columns[place] for place in selection.metrics))

    def is_quick(self, _selection: Selection) -> bool:
        """Two tables are asked: others need not wait for that."""
        return False


def _either(one: Flags | None, other: Flags | None) -> Flags | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _worse(first: Column, second: Column) -> Marks:
    """The status of the figure that there is not, or else of whichever has one."""
    assert second.status is not None
    if first.status is None:
        return second.status
    hidden = np.zeros(second.status.shape, dtype=np.bool_) if second.missing is None else second.missing
    return np.where(hidden | (first.status == 0), second.status, first.status)
