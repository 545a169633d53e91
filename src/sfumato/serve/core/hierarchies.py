"""Levels of dimensions: what a bundle says lies in what, as groups of codes, with figures where there are any."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.bundle.levels import Levels
from sfumato.bundle.manifest import MANIFEST
from sfumato.bundle.sums import PublishedCells, adds_up
from sfumato.serve.core.bundle import OpenBundle
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.figures import KEPT_BYTES, BoundedCache, StoredFigures
from sfumato.serve.core.labels import told_apart
from sfumato.serve.core.model import (
    VALUE,
    Column,
    Figures,
    Grouping,
    Margin,
    Selection,
    ServedDimension,
    ServedTable,
    grouped,
)

MOST_SUMMED = 2_000_000
"""Rows of a table that are added up while somebody waits: a few seconds."""
_SUMS = "Figures of the levels above are sums of the cells of this table, which is not published by them."
_SAID = "Figures of the levels above"


@dataclass(frozen=True, kw_only=True, eq=False)
class Hierarchies:
    """What lies in what, in one bundle."""

    bundle: OpenBundle

    @cached_property
    def levels(self) -> Levels:
        """What the structure of the bundle says of it."""
        return Levels(structure=self.bundle.structure)

    def paths(self, dimension: str) -> Mapping[str, tuple[str, ...]]:
        """The shortest way up to every level above a dimension, by that level; nearer ones come first."""
        return self.levels.paths(dimension)

    def groupings(self, table: str, dimension: ServedDimension) -> tuple[Grouping, ...]:
        """The levels above a dimension of a table, as groups of the codes it has."""
        return tuple(
            Grouping(
                id=f"agg_{table}_{dimension.name}_{level}",
                label=self.levels.described[level]["label"],
                groups=groups,
                path=path,
            )
            for level, path in self.paths(dimension.name).items()
            if (groups := self._groups(dimension, path))
        )

    def _groups(self, dimension: ServedDimension, path: Sequence[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
        members: dict[str, list[str]] = {}
        for code, above in self.levels.parents_along(dimension.name, path, dimension.codes).items():
            members.setdefault(above, []).append(code)
        labels = self.bundle.labels(self.levels.described[path[-1]]["codelist"])
        codes = [code for code in labels if code in members]
        own = told_apart(codes, [labels[code] for code in codes])
        return {code: (label, tuple(members[code])) for code, label in zip(codes, own, strict=True)}

    def tables(
        self, tables: Sequence[ServedTable], alike: Sequence[Sequence[ServedTable]], described: Sequence[Any]
    ) -> Iterator[ServedTable]:
        """The published tables with the levels above their dimensions; `alike` has others with the same figures."""
        for table, others, about in zip(tables, alike, described, strict=True):
            dimensions = tuple(
                replace(one, groupings=() if one.role == "time" else self.groupings(table.id, one))
                for one in table.dimensions
            )
            found = replace(table, dimensions=dimensions)
            if any(dimension.groupings for dimension in dimensions):
                bundle = self.bundle
                sums = LevelSums(folder=bundle.folder, digest=bundle.digest, about=about) if _sums_of(about) else None
                source = LevelFigures(table=found, others=tuple(others), sums=sums)
                found = replace(source.marked(), levels=source)
            near = [other for other in others if self._other_levels(table, other)]
            yield replace(found, other_levels=tuple((other.id, _by(other)) for other in near))

    def _other_levels(self, table: ServedTable, other: ServedTable) -> bool:
        """Whether a table has the same dimensions, some of them by other levels."""
        left = [dimension.name for dimension in other.dimensions]
        names = [dimension.name for dimension in table.dimensions]
        shared = [name for name in names if name in left]
        left = [name for name in left if name not in shared]
        for name in (name for name in names if name not in shared):
            found = next((one for one in left if one in self.paths(name) or name in self.paths(one)), None)
            if found is None:
                return False
            left.remove(found)
        return not left and len(shared) < len(names)


def _sums_of(about: Mapping[str, Any]) -> bool:
    """Whether the noise of sums over places, industries and the like is known, the same in all periods."""
    return adds_up(about) and not about.get("absent")


def _by(table: ServedTable) -> str:
    return " × ".join(dimension.label for dimension in table.dimensions)


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelSums:
    """The cells of a table added up by levels above its dimensions, with the errors of the sums."""

    folder: Path
    digest: str
    about: Mapping[str, Any] = field(repr=False)

    def figures(self, table: ServedTable, axes: Sequence[ServedDimension]) -> tuple[StoredFigures, tuple[str, ...]]:
        """All sums by some dimensions of a table, each with its own codes or with groups of them."""
        self._refuse_changed()
        codes = {dimension.name: dimension.codes for dimension in table.dimensions}
        cells = PublishedCells.read(self.folder, self.about, codes, {})
        self._refuse_changed()
        if len(cells.value) > MOST_SUMMED:
            raise RefusedError(
                f"table '{table.id}'",
                expected=f"a table of at most {MOST_SUMMED:,} cells to add up",
                found=f"{len(cells.value):,}",
                do="ask for single codes",
                status=403,
                said=said("This table is too large to be added up to groups. Choose single codes."),
            )
        whole = {dimension.name: dimension for dimension in table.dimensions}
        own = np.zeros(len(cells.value), dtype=np.int64)
        for axis in axes:
            into = np.full(len(whole[axis.name]), -1, dtype=np.int64)
            for place in range(len(axis)):
                into[[whole[axis.name].places[code] for code in axis.members(place)]] = place
            chosen = into[cells.places[axis.name]]
            own = np.where((own < 0) | (chosen < 0), -1, own * len(axis) + chosen)
        found, columns = cells.summed(own)
        shape = tuple(map(len, axes))
        stored = StoredFigures(
            names=tuple(axis.name for axis in axes),
            shape=shape,
            totals=(None,) * len(axes),
            positions=None if len(found) == prod(shape) else found,
            columns=tuple(
                _column(columns.get(VALUE if metric.kind == "value" else metric.code), len(found))
                for metric in table.metrics
            ),
            status=None,
        )
        return stored, (_SUMS, *cells.notes)

    def _refuse_changed(self) -> None:
        """Refuse to read a bundle that is no longer the one that is served: the server is about to open it."""
        if sha256((self.folder / MANIFEST).read_bytes()).hexdigest() != self.digest:
            raise RefusedError(
                "table",
                expected="the bundle that is served",
                found="one that was published since",
                do="ask again in a few seconds",
                status=503,
                said=said("The tables were published anew in the meantime. Load the page again."),
            )


def _column(figures: pa.Array | None, rows: int) -> Column:
    """The figures of a metric; sums have none of some."""
    if figures is None:
        return Column(values=np.zeros(rows), missing=np.ones(rows, dtype=np.bool_))
    missing = figures.is_null().to_numpy(zero_copy_only=False)
    return Column(values=figures.fill_null(0).to_numpy(), missing=missing if missing.any() else None)


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelFigures:
    """The figures of a table by levels above its dimensions: those of the table that has them, or else sums."""

    table: ServedTable
    others: tuple[ServedTable, ...] = field(repr=False)
    """Tables of the bundle with the same figures by other dimensions."""
    sums: LevelSums | None
    _kept: BoundedCache[tuple[StoredFigures, tuple[str, ...]]] = field(
        default_factory=lambda: BoundedCache(KEPT_BYTES), repr=False
    )

    def figures(self, selection: Selection) -> Figures:
        """The figures of a selection with groups; a combination without a row is 0."""
        axes = self._axes(selection)
        published = next(filter(None, (self._published(axes, other) for other in self.others)), None)
        if published is not None:
            margin, into = published
            places = tuple(
                some if some is None or at not in into else tuple(into[at][place] for place in some)
                for at, some in enumerate(selection.places)
            )
            return margin.figures(replace(selection, places=places, groupings=()))
        lacking = [
            dimension.name
            for at, dimension in enumerate(self.table.dimensions)
            if at not in axes and not dimension.eliminable
        ]
        if self.sums is None or lacking:
            raise RefusedError(
                f"table '{self.table.id}'",
                expected="a level that a table of the release has, or cells whose sums have a known error",
                found=", ".join(lacking) + " left out" if lacking else "neither",
                do="choose codes, or * for all" if lacking else "ask for the single codes: outputValues[name]=single",
                said=said("By these groups there are no figures whose errors are known. Choose single codes."),
            )
        key = (selection.groupings, tuple(axes))
        kept = self._kept.get(key)
        if kept is None:
            kept = self.sums.figures(self.table, list(axes.values()))
            self._kept.put(key, kept, size=sum(column.values.nbytes for column in kept[0].columns))
        stored, notes = kept
        asked = replace(selection, places=tuple(selection.places[at] for at in axes), groupings=())
        return replace(stored.figures(asked), notes=notes)

    def is_quick(self, _selection: Selection) -> bool:
        """Cells may have to be added up."""
        return False

    def marked(self) -> ServedTable:
        """The table, whose groupings say whether groups have figures."""
        every = tuple(tuple(range(len(dimension))) for dimension in self.table.dimensions)

        def has_figures(at: int, grouping: Grouping) -> bool:
            axes = self._axes(Selection(places=every, metrics=(), groupings=((at, grouping.id),)))
            return self.sums is not None or any(self._published(axes, other) for other in self.others)

        return replace(
            self.table,
            dimensions=tuple(
                replace(
                    dimension,
                    groupings=tuple(replace(one, summed=has_figures(at, one)) for one in dimension.groupings),
                )
                for at, dimension in enumerate(self.table.dimensions)
            ),
        )

    def _axes(self, selection: Selection) -> dict[int, ServedDimension]:
        """The dimensions that are asked for, with groups in place of codes where these are wanted."""
        lists = dict(selection.groupings)
        return {
            at: grouped(dimension, lists[at]) if at in lists else dimension
            for at, (dimension, places) in enumerate(zip(self.table.dimensions, selection.places, strict=True))
            if places is not None or dimension.total is not None
        }

    def _published(
        self, axes: Mapping[int, ServedDimension], other: ServedTable
    ) -> tuple[Margin, dict[int, list[int]]] | None:
        """Another table as one that has these figures, with where it has the groups; None if it has not."""
        if [one.code for one in other.metrics] != [one.code for one in self.table.metrics]:
            return None
        names = {_level(axis): at for at, axis in axes.items()}
        found = tuple(names[one.name] for one in other.dimensions if one.name in names)
        if len(names) != len(axes) or len(found) != len(other.dimensions) or len(found) != len(axes):
            return None
        into: dict[int, list[int]] = {}
        for at, dimension in zip(found, other.dimensions, strict=True):
            if axes[at].grouping:
                if not set(axes[at].codes) <= dimension.places.keys():
                    return None
                into[at] = [dimension.places[code] for code in axes[at].codes]
            elif axes[at].codes != dimension.codes:
                return None
        return Margin(id=other.id, source=other.source, axes=found, said=_SAID), into


def _level(axis: ServedDimension) -> str:
    """The dimension whose codes an axis has: a level above its own where it is grouped."""
    return next((one.path[-1] for one in axis.groupings if one.id == axis.grouping), axis.name)
