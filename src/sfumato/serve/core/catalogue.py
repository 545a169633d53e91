"""The catalogue: the tables and cubes of some bundles as they were when they were opened."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from sfumato.bundle.manifest import MANIFEST
from sfumato.bundle.read import bundle_folder
from sfumato.errors import BundleError
from sfumato.serve.core.bundle import OpenBundle
from sfumato.serve.core.compared import BETWEEN, compared
from sfumato.serve.core.errors import not_found
from sfumato.serve.core.hierarchies import Hierarchies
from sfumato.serve.core.model import Grouping, Margin, ServedDimension, ServedTable
from sfumato.serve.core.selection import GroupingSection, of_dimension


@dataclass(frozen=True, kw_only=True)
class BundleSource:
    """A folder to serve, and what its tables are called beside their names."""

    folder: Path
    prefix: str = ""

    @classmethod
    def read(cls, text: str) -> "BundleSource":
        """Read `FOLDER`, or `NAME=FOLDER` to tell apart bundles with tables of the same name.

        A release file stands for the bundle that it names.

        >>> BundleSource.read("y2024=old/bundle")
        BundleSource(folder=PosixPath('old/bundle'), prefix='y2024-')
        """
        named = re.fullmatch(r"([a-z0-9][a-z0-9_]*)=(.+)", text)
        folder = bundle_folder(Path(named[2] if named else text))
        return cls(folder=folder, prefix=f"{named[1]}-" if named else "")

    def stamp(self) -> tuple[int, ...]:
        """What tells a manifest from one that was published later; empty where there is none."""
        try:
            found = (self.folder / MANIFEST).stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


Stamps = tuple[tuple[int, ...], ...]
MOST_COMPARED = 100
"""Comparisons that are kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """Tables by their identifiers, in the order of the bundles."""

    tables: Mapping[str, ServedTable]
    sources: tuple[BundleSource, ...] = ()
    groupings: tuple[GroupingSection, ...] = ()
    stamps: Stamps = ()
    """Of the bundles, just before they were opened."""
    compared: dict[tuple[str, str], ServedTable] = field(default_factory=dict, repr=False)
    """Pairs of tables that somebody compared."""

    def stamps_now(self) -> Stamps:
        """Of the bundles as they are now: others where one was published anew."""
        return tuple(source.stamp() for source in self.sources)

    def opened_again(self) -> "Catalogue":
        """The same bundles as they are now."""
        return open_catalogue(self.sources, groupings=self.groupings)

    def __getitem__(self, name: str) -> ServedTable:
        found = self.tables.get(name) or self.tables.get(name.lower())
        if found is None and BETWEEN in name:
            return self._compared(*name.split(BETWEEN, 1))
        if found is None:
            raise not_found("table", name, "choose one of the list of tables")
        return found

    def _compared(self, first: str, second: str) -> ServedTable:
        """Two tables beside each other; the same ones are compared once."""
        key = (first.lower(), second.lower())
        both = self.compared.get(key)
        if both is None:
            if BETWEEN in second:
                raise not_found("table", f"{first}{BETWEEN}{second}", "compare two tables, not more")
            both = compared(self[first], self[second])
            if len(self.compared) >= MOST_COMPARED:
                self.compared.clear()
            self.compared[key] = both
        return both

    def __iter__(self) -> Iterator[ServedTable]:
        return iter(self.tables.values())

    def __len__(self) -> int:
        return len(self.tables)


def open_catalogue(sources: Sequence[BundleSource], *, groupings: Sequence[GroupingSection] = ()) -> Catalogue:
    """Open and verify bundles; `groupings` are groups of codes that cubes may be asked for."""
    tables: dict[str, ServedTable] = {}
    stamps = tuple(source.stamp() for source in sources)
    for source in sources:
        bundle = OpenBundle.open(source.folder)
        described = bundle.structure["tables"]
        levels = Hierarchies(bundle=bundle)
        published = [bundle.table(about, prefix=source.prefix) for about in described]
        same = [repr((about["statistic"], about["unit"], about["where"])) for about in described]
        alike = [
            [other for other, kind in zip(published, same, strict=True) if other is not table and kind == own]
            for table, own in zip(published, same, strict=True)
        ]

        def groupings_of(
            dimension: ServedDimension, *, cube: str, levels: Hierarchies = levels
        ) -> tuple[Grouping, ...]:
            return (*of_dimension(groupings, dimension), *levels.groupings(cube, dimension))

        cubes = [
            bundle.cube(
                about, prefix=source.prefix, groupings=partial(groupings_of, cube=f"{source.prefix}{about['name']}")
            )
            for about in bundle.structure.get("cubes", ())
        ]
        for table in (*levels.tables(_with_margins(published, alike), alike, described), *cubes):
            if table.id in tables:
                raise BundleError(
                    f"bundle {source.folder}",
                    expected="tables whose names no other bundle has",
                    found=f"a second '{table.id}'",
                    do=f"give the bundle a name of its own: `name={source.folder}` makes it 'name-{table.id}'",
                )
            tables[table.id] = table
    return Catalogue(tables=tables, sources=tuple(sources), groupings=tuple(groupings), stamps=stamps)


def _with_margins(tables: Sequence[ServedTable], alike: Sequence[Sequence[ServedTable]]) -> list[ServedTable]:
    """The tables, each knowing which others of the release have the protected totals over some of its dimensions."""
    found = []
    for table, others in zip(tables, alike, strict=True):
        margins: dict[frozenset[int], Margin] = {}
        for other in others:
            axes = _axes_within(table, other)
            if axes is not None:
                margins.setdefault(frozenset(axes), Margin(id=other.id, source=other.source, axes=axes))
        found.append(_with_eliminable(table, margins) if margins else table)
    return found


def _axes_within(table: ServedTable, other: ServedTable) -> tuple[int, ...] | None:
    """Where the dimensions of another table are in this one, if all of them are and its figures are the same kind."""
    if len(other.dimensions) >= len(table.dimensions) or _kinds(table) != _kinds(other):
        return None
    own = {(dimension.name, dimension.codes): axis for axis, dimension in enumerate(table.dimensions)}
    axes = [own.get((dimension.name, dimension.codes)) for dimension in other.dimensions]
    return None if None in axes else tuple(axis for axis in axes if axis is not None)


def _kinds(table: ServedTable) -> list[str]:
    return [metric.code for metric in table.metrics]


def _with_eliminable(table: ServedTable, margins: Mapping[frozenset[int], Margin]) -> ServedTable:
    """The table with its margins; a dimension is said to be eliminable where leaving it out always has an answer."""
    every = frozenset(range(len(table.dimensions)))
    free: tuple[int, ...] = ()
    for axis in sorted(every):
        more = (*free, axis)
        left_out = (frozenset(some) for size in range(1, len(more) + 1) for some in combinations(more, size))
        if all(every - some in margins for some in left_out):
            free = more
    dimensions = tuple(
        replace(dimension, eliminable=dimension.eliminable or axis in free)
        for axis, dimension in enumerate(table.dimensions)
    )
    return replace(table, dimensions=dimensions, margins=margins)
