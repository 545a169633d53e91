"""One model for everything that is served: a table with dimensions, metrics and notes, and its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from math import prod
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.geography.project import Projected
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.labels import free_name
from sfumato.serve.core.published_files import PublishedFile
from sfumato.serve.core.status import BOUNDING, CAUTION, HAS_NONE, IS_BEYOND, RELIABILITY, STATUSES, SYMBOLS, UNRELIABLE

CONTENTS = "contents"
"""The name of the metric dimension, which every table has, last."""
VALUE = "value"
"""The column of a bundle that has the value; clients may ask for it by this name, whatever its code is."""
_NO_GROUPS = (
    "groups are for cubes, whose sums are exact, and for dimensions with levels above them; figures that were "
    "protected one by one would be off by an unknown amount when added up"
)
_NONE_HERE = (
    "“{variable}” has no groups here: sums of figures that were protected one by one are off by an unknown amount."
)
_OTHER_GROUPS = "“{variable}” has no groups “{name}”. It has: {known}."
Places = NDArray[np.int64]
Marks = NDArray[np.int8]
HIDING = np.array([status.hides for status in STATUSES])
"""By the number of a status, whether there is no figure."""


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """Groups of the codes of a dimension that may be asked for in their place."""

    id: str
    label: str
    groups: Mapping[str, tuple[str, tuple[str, ...]]]
    """By the code of the group its label and its members."""
    path: tuple[str, ...] = ()
    """Where groups are the codes of a level: the dimensions on the way up to it, the nearest first, itself last."""
    summed: bool = True
    """Whether groups have figures; otherwise they only tell which single codes are meant."""


@dataclass(frozen=True, kw_only=True)
class ServedDimension:
    """A dimension: its codes in order, each with a label."""

    name: str
    label: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    eliminable: bool = False
    """Whether it may be left out of a question."""
    total: str | None = None
    """The code of the protected total, where there is one: leaving the dimension out asks for it."""
    role: Literal["time", "geo", "metric"] | None = None
    translations: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)
    """Labels in other languages, by the code of the language; those of the codes that have none are empty."""
    groupings: tuple[Grouping, ...] = ()
    grouping: str = ""
    """Whose groups the codes are, where they are not single codes."""
    also: tuple[tuple[str, int], ...] = ()
    """Further names of codes that clients may ask by, each with the place of its code."""
    geography: Projected | None = field(default=None, repr=False, compare=False)
    """The map that its codes are on; two dimensions on one map are the ends of flows."""
    destination: str = ""
    """Of where something comes from, the dimension that says where it goes to."""

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of every code, by each of its names."""
        return dict(self.also) | {code: place for place, code in enumerate(self.codes)}

    @cached_property
    def longest(self) -> int:
        """The length of the longest code."""
        return max(map(len, self.codes), default=0)

    def members(self, place: int) -> tuple[str, ...]:
        """The single codes that the code at a place stands for: its members, if it is a group."""
        code = self.codes[place]
        return next((one.groups[code][1] for one in self.groupings if one.id == self.grouping), (code,))

    @cached_property
    def above(self) -> Grouping | None:
        """The nearest level that its codes lie in."""
        return next((one for one in self.groupings if len(one.path) == 1 and not self.grouping), None)

    def only(self, places: Sequence[int]) -> "ServedDimension":
        """The same dimension with some of its codes."""
        if len(places) == len(self.codes):
            return self
        codes, labels = (tuple(texts[place] for place in places) for texts in (self.codes, self.labels))
        others = {name: tuple(texts[place] for place in places) for name, texts in self.translations.items()}
        return replace(self, codes=codes, labels=labels, translations=others, also=())

    def in_language(self, code: str) -> "ServedDimension":
        """The same dimension with its labels in a language, as far as the code list has them."""
        others = self.translations.get(code)
        if others is None:
            return self
        labels = tuple(other or label for other, label in zip(others, self.labels, strict=True))
        return replace(self, labels=labels)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A kind of figure that every cell has: a value, its error, an end of its interval, a public number."""

    code: str
    label: str
    unit: str
    decimals: int
    """How many digits after the point are worth showing; figures are served in full."""
    kind: Literal["value", "error", "rse", "low", "high", "other"]
    about: str | None = None
    """The metric that an error or an interval belongs to."""
    description: str = ""
    additive: bool = True
    """Whether figures are parts of a whole, as counts and totals are and means are not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """The figures of one metric: arrays over the dimensions of an answer, whole numbers or decimals."""

    values: NDArray[Any]
    missing: Flags | None = None
    """Which figures there are not; None if there are all."""
    status: NDArray[np.int8] | None = None
    """The number of each figure's status in `status.STATUSES`; None if there is nothing to say of any."""
    marks: Marks | None = None
    """The place of each value's reliability in `status.RELIABILITY`; None if no error is large."""

    def transposed(self, order: Sequence[int]) -> "Column":
        """The same figures with their axes in another order."""
        missing = None if self.missing is None else self.missing.transpose(order)
        status = None if self.status is None else self.status.transpose(order)
        return Column(values=self.values.transpose(order), missing=missing, status=status)

    def listed(self) -> list[Any]:
        """The figures in order, as Python numbers; None where missing."""
        flat = self.values.ravel()
        listed: list[Any] = flat.tolist()
        if self.missing is not None:
            for place in np.flatnonzero(self.missing.ravel()).tolist():
                listed[place] = None
        return listed


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A question in one spelling: of every dimension the places of the codes, ascending; None where it is left out."""

    places: tuple[tuple[int, ...] | None, ...]
    metrics: tuple[int, ...]
    groupings: tuple[tuple[int, str], ...] = ()
    """Dimensions, by their place, whose codes are groups of this grouping."""

    @property
    def cells(self) -> int:
        """How many figures the answer has."""
        return prod(len(places) for places in self.places if places is not None) * len(self.metrics)


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """What a source finds for a selection: a column for every metric that was asked for."""

    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()


class Source(Protocol):
    """Where figures come from; `StoredFigures` and `CubeFigures` are two of them."""

    def figures(self, selection: Selection) -> Figures:
        """The figures of a selection; dimensions that are left out are absent from their axes."""
        ...

    def is_quick(self, selection: Selection) -> bool:
        """Whether the figures of a selection are found in a few milliseconds."""
        ...


class GroupedSource(Source, Protocol):
    """A source whose figures can be summed exactly."""

    def with_grouping(self, grouping: Grouping) -> "GroupedSource":
        """The same source, which has the figures of these groups too."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Margin:
    """Another table of the release that has the protected totals over some dimensions of this one."""

    id: str
    source: Source
    axes: tuple[int, ...]
    """For every axis of the margin, its place among the axes of the table."""
    said: str = "Totals"
    """What its figures are to those who ask the table."""

    def figures(self, selection: Selection) -> Figures:
        """The totals that a selection of the table asks for."""
        places = [selection.places[axis] for axis in self.axes]
        found = self.source.figures(replace(selection, places=tuple(places)))
        # The margin may have its axes in another order.
        asked = [axis for axis in self.axes if selection.places[axis] is not None]
        order = [asked.index(axis) for axis in sorted(asked)]
        note = f"{self.said} are those of the table '{self.id}', protected by itself; cells need not add up to them."
        return Figures(columns=tuple(one.transposed(order) for one in found.columns), notes=(note, *found.notes))


@dataclass(frozen=True, kw_only=True, eq=False)
class ServedTable:
    """A table or cube as every interface shows it."""

    id: str
    title: str
    release: str
    """The title of the release it belongs to."""
    population: str
    period: str
    updated: datetime
    dimensions: tuple[ServedDimension, ...]
    metrics: tuple[Metric, ...]
    method: str
    guarantee: tuple[str, ...]
    """What the protection promises, in plain words, a paragraph each."""
    notes: tuple[str, ...]
    """What was done to the numbers, and how to read them."""
    digest: str
    """Changes when the bundle does."""
    marks: bool = False
    """Whether cells may have a status in the bundle."""
    kind: Literal["table", "cube", "live"] = "table"
    source: Source = field(repr=False)
    margins: Mapping[frozenset[int], Margin] = field(default_factory=dict, repr=False)
    """Totals over some dimensions, by the axes that are kept."""
    levels: Source | None = field(default=None, repr=False)
    """The figures of groups, where these are levels above its dimensions; a cube has its own."""
    opened: tuple[str, ...] = ()
    """The figures that are shown first; the first value with its error where nothing is said."""
    files: tuple[PublishedFile, ...] = field(default=(), repr=False)
    """Files that have all of it, whatever its size is."""
    other_levels: tuple[tuple[str, str], ...] = ()
    """Tables of the same figures by levels above or below: the identifier of each, and its dimensions in words."""

    @cached_property
    def contents(self) -> ServedDimension:
        """The metrics as a dimension."""
        values = [at for at, metric in enumerate(self.metrics) if metric.kind == "value"]
        return ServedDimension(
            name=free_name(CONTENTS, [d.name for d in self.dimensions]),
            label=free_name("Contents", [d.label for d in self.dimensions]),
            codes=tuple(metric.code for metric in self.metrics),
            labels=tuple(metric.label for metric in self.metrics),
            role="metric",
            also=((VALUE, values[0]),) if len(values) == 1 else (),
        )

    @cached_property
    def axes(self) -> tuple[ServedDimension, ...]:
        """All dimensions, the metrics last."""
        return (*self.dimensions, self.contents)

    @cached_property
    def _spoken(self) -> dict[str, "ServedTable"]:
        return {}

    def in_language(self, code: str) -> "ServedTable":
        """The same table with labels of a language; the same object whenever it is asked for."""
        if not any(code in dimension.translations for dimension in self.dimensions):
            return self
        if code not in self._spoken:
            spoken = tuple(dimension.in_language(code) for dimension in self.dimensions)
            self._spoken[code] = replace(self, dimensions=spoken)
        return self._spoken[code]

    @cached_property
    def made(self) -> dict[str, Any]:
        """What interfaces make of it once, by their names: it goes when the table does."""
        return {}

    @property
    def counted(self) -> str:
        """What is counted or measured, in short: its value, or of several kinds of value whom they are about."""
        values = [metric.label for metric in self.metrics if metric.kind == "value"]
        return values[0] if len(values) == 1 else self.population[:1].upper() + self.population[1:]

    @property
    def adds_up(self) -> bool:
        """Whether any of its values are parts of a whole."""
        return any(metric.additive for metric in self.metrics if metric.kind == "value")

    @cached_property
    def by_name(self) -> Mapping[str, int]:
        """The place of every axis, by its name in lower case: names do not mind the case."""
        return {axis.name.lower(): place for place, axis in enumerate(self.axes)}

    @property
    def time(self) -> ServedDimension | None:
        """The dimension of time, if there is one."""
        return next((dimension for dimension in self.dimensions if dimension.role == "time"), None)

    def answer(self, selection: Selection) -> "TableAnswer":
        """The figures of a selection, with codes and labels; marked for errors whether these were asked for or not."""
        dimensions = tuple(
            _chosen(dimension, places, dict(selection.groupings).get(axis))
            for axis, (dimension, places) in enumerate(zip(self.dimensions, selection.places, strict=True))
            if places is not None
        )
        metrics = selection.metrics
        rated = [place for place in metrics if self.rating[place]]
        behind = {of for place in rated for of in self.rating[place].values()}.difference(metrics)
        asked = replace(selection, metrics=(*metrics, *behind)) if behind else selection
        found = self._figures(asked)
        columns = dict(zip(asked.metrics, found.columns, strict=True))
        for place in rated:
            marks = marks_of(columns[place], {kind: columns[of] for kind, of in self.rating[place].items()})
            if marks is not None:
                columns[place] = replace(columns[place], marks=marks)
        return TableAnswer(
            table=self,
            selection=selection,
            dimensions=dimensions,
            metrics=tuple([self.metrics[place] for place in metrics]),
            columns=tuple([columns[place] for place in metrics]),
            notes=found.notes,
        )

    def _figures(self, selection: Selection) -> Figures:
        """The figures of the table itself, or of the one that has the totals over what is left out."""
        own = zip(self.dimensions, selection.places, strict=True)
        kept = frozenset(at for at, (axis, places) in enumerate(own) if places is not None or axis.total is not None)
        source = self.source_of(selection)
        return (source if selection.groupings else self.margins.get(kept, source)).figures(selection)

    def source_of(self, selection: Selection) -> Source:
        """Where the figures of a selection come from, if not from another table."""
        return self.levels if selection.groupings and self.levels is not None else self.source

    @cached_property
    def rating(self) -> tuple[Mapping[str, int], ...]:
        """Of every metric the places of those that tell how far it can be relied on, by their kind."""
        return tuple(rating(self.metrics, metric.code) for metric in self.metrics)

    @property
    def has_status(self) -> bool:
        """Whether there may be something to say of a figure."""
        return self.marks or any(self.rating)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableAnswer:
    """The answer to a selection: arrays with one axis for each of its dimensions, in their order."""

    table: ServedTable
    selection: Selection
    dimensions: tuple[ServedDimension, ...]
    """Those that were asked for, with the codes that were asked for."""
    metrics: tuple[Metric, ...]
    columns: tuple[Column, ...]
    """One for each metric."""
    notes: tuple[str, ...] = ()
    """What is to be said of this answer beside the notes of the table."""

    @property
    def contents(self) -> ServedDimension:
        """The metrics that were asked for, as a dimension."""
        return self.table.contents.only(self.selection.metrics)

    @property
    def axes(self) -> tuple[ServedDimension, ...]:
        """The dimensions of the answer, the metrics last."""
        return (*self.dimensions, self.contents)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes every dimension has."""
        return tuple(map(len, self.dimensions))

    def values(self) -> list[Any]:
        """All figures, the metric changing fastest; None where there is none."""
        if len(self.columns) == 1:
            return self.columns[0].listed()
        return [figure for cell in zip(*(column.listed() for column in self.columns), strict=True) for figure in cell]

    def remarks(self) -> Marks:
        """The number in `status.REMARKS` of every figure, in the order of the dimensions and the metrics."""
        found = np.zeros((*self.shape, len(self.metrics)), dtype=np.int8)
        for at, (metric, column) in enumerate(zip(self.metrics, self.columns, strict=True)):
            # An error or an end of an interval is marked only where there is none: its value has the mark.
            if metric.kind == "value":
                if column.status is not None:
                    found[..., at] = column.status
                if column.marks is not None:
                    found[..., at] += column.marks * np.int8(len(STATUSES))
            if column.missing is not None:
                status = np.int8(0) if column.status is None else column.status
                none = (metric.kind in ("value", "other")) | BOUNDING[status]  # not even one beyond the scale
                reason = np.where(HIDING[status], status, np.where(none, np.int8(HAS_NONE), np.int8(IS_BEYOND)))
                found[..., at] = np.where(column.missing, reason, found[..., at])
        return found

    def symbols(self) -> dict[int, str]:
        """By the place of a figure in `values`, the symbols of what is said of it, where there is something to say."""
        said = self.remarks().ravel()
        places = np.flatnonzero(said)
        return dict(zip(places.tolist(), [SYMBOLS[number] for number in said[places].tolist()], strict=True))

    def status(self) -> NDArray[np.int8]:
        """Of every cell the number of its status in `status.STATUSES`: the first that one of its figures has."""
        found = np.zeros(self.shape, dtype=np.int8)
        for column in self.columns:
            if column.status is not None:
                found = np.where(found == 0, column.status, found)
        return found

    def texts(self) -> list[str]:
        """The status of every cell in the words of the bundle, in order."""
        words = [status.text for status in STATUSES]
        return [words[number] for number in self.status().ravel().tolist()]


def _chosen(dimension: ServedDimension, places: Sequence[int], grouping: str | None) -> ServedDimension:
    return dimension.only(places) if grouping is None else grouped(dimension, grouping).only(places)


def grouped(dimension: ServedDimension, name: str) -> ServedDimension:
    """The dimension whose codes are the groups of one of its groupings."""
    for grouping in dimension.groupings:
        if grouping.id == name:
            codes, labels = tuple(grouping.groups), tuple(label for label, _ in grouping.groups.values())
            return replace(dimension, codes=codes, labels=labels, translations={}, total=None, grouping=name)
    known = ", ".join(grouping.id for grouping in dimension.groupings)
    raise RefusedError(
        f"code list of '{dimension.name}'",
        expected=f"one of {known}" if known else f"single codes: {_NO_GROUPS}",
        found=name,
        do="choose one of them" if known else "leave it out",
        said=said(_OTHER_GROUPS if known else _NONE_HERE, variable=dimension.label, name=name, known=known),
    )


# How far values can be relied on: marks where the error is large beside the figure, or cannot be told.

_BEYOND = np.int8(len(RELIABILITY) - 1)


def rating(metrics: Sequence["Metric"], value: str) -> dict[str, int]:
    """The places of the metrics that tell how far a value can be relied on, by their kind.

    Of a relative error and one in the unit of the figure the former counts: it may be rounded.
    """
    kinds: dict[str, int] = {m.kind: at for at, m in enumerate(metrics) if m.about == value}
    if "rse" in kinds:
        kinds.pop("error", None)
    return kinds


def marks_of(value: "Column", errors: Mapping[str, "Column"]) -> Marks | None:
    """The places in `status.RELIABILITY` of values with these errors and ends of intervals; None if none has a mark."""
    marks: Marks | None = None
    if "rse" in errors:
        relative = errors["rse"].values
        marks = np.asarray((relative >= CAUTION).view(np.int8) + (relative >= UNRELIABLE))
    elif "error" in errors:
        error, size = 100.0 * errors["error"].values, np.abs(value.values)
        # Compared without dividing: a figure of 0 with an error is as uncertain as can be.
        marks = np.asarray((error >= CAUTION * size).view(np.int8) + (error >= UNRELIABLE * size))
        if not size.all():
            marks[error == 0] = 0
    for column in errors.values():
        if column.missing is not None:
            marks = np.zeros(value.values.shape, np.int8) if marks is None else marks
            marks[column.missing] = _BEYOND
    if marks is None or not marks.any():
        return None
    if value.missing is not None:
        marks[value.missing] = 0
    if value.status is not None:
        marks[BOUNDING[value.status]] = 0  # a bound has no error that could be large
    return marks
