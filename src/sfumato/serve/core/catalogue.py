"""The catalogue: the tables and cubes of some bundles as they were when they were opened."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from sfumato.bundle.manifest import MANIFEST
from sfumato.bundle.read import bundle_folder
from sfumato.errors import BundleError, SfumatoError
from sfumato.serve.core.bundle import OpenBundle
from sfumato.serve.core.compared import BETWEEN, compared
from sfumato.serve.core.errors import not_found, said
from sfumato.serve.core.hierarchies import Hierarchies
from sfumato.serve.core.model import Grouping, Margin, ServedDimension, ServedTable
from sfumato.serve.core.selection import GroupingSection, of_dimension

Stamp = tuple[int, ...]


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


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

    def bundles(self) -> tuple["BundleSource", ...]:
        """The bundle, or where the folder is none, each bundle in it under the name of its own folder."""
        if (self.folder / MANIFEST).exists():
            return (self,)
        inside = sorted(path.parent for path in self.folder.glob(f"*/{MANIFEST}") if path.parent.name[0] != ".")
        named = [(folder, re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")) for folder in inside]
        return tuple(BundleSource(folder=folder, prefix=f"{self.prefix}{name}-") for folder, name in named) or (self,)

    def stamp(self) -> Stamp:
        """What tells a manifest from one that was published later; empty where there is none."""
        return _stamp(self.folder / MANIFEST)

    def whole_stamp(self) -> Stamp:
        """What tells all of its files from what they are later: a bundle may be copied into its place, file by file."""
        return tuple(number for path in sorted(self.folder.rglob("*")) for number in _stamp(path))


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenedBundle:
    """The tables of a bundle, and its stamp just before it was opened."""

    source: BundleSource
    stamp: Stamp
    tables: Mapping[str, ServedTable]


GONE = ()
"""What is noted of a bundle that is not in its folder any more: it may be moved aside for a moment."""
MOST_COMPARED = 100
"""Comparisons that are kept."""
_FAULTS = (SfumatoError, OSError, ValueError, KeyError)
_log = logging.getLogger("uvicorn.error")


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """Tables by their identifiers, in the order of the bundles."""

    tables: Mapping[str, ServedTable]
    sources: tuple[BundleSource, ...] = ()
    groupings: tuple[GroupingSection, ...] = ()
    opened: tuple[OpenedBundle, ...] = ()
    compared: dict[tuple[str, str], ServedTable] = field(default_factory=dict, repr=False)
    """Pairs of tables that somebody compared."""

    def opened_again(self, refused: dict[BundleSource, Stamp]) -> "Catalogue":
        """The bundles as they are now; itself where nothing changed.

        One that did not change is not opened again. One that cannot be opened is served as it was, or not yet; it is
        noted in `refused`, and tried again once any of its files changes.
        """
        before = {one.source: one for one in self.opened}
        found: dict[BundleSource, OpenedBundle] = {}
        for source in (bundle for given in self.sources for bundle in given.bundles()):
            earlier = before.get(source)
            if earlier is not None and earlier.stamp == source.stamp():
                refused.pop(source, None)
                found[source] = earlier
                continue
            newer = _opened_if_whole(source, self.groupings, refused, list(found.values()))
            if newer is not None:
                refused.pop(source, None)
                found[source] = newer
            elif earlier is not None:
                found[source] = earlier
        for source in before.keys() - found.keys():
            if refused.get(source) == GONE:
                del refused[source]
            else:
                refused[source], found[source] = GONE, before[source]
        if not found or found == before:
            return self
        return _catalogue(self.sources, self.groupings, list(found.values()))

    def __getitem__(self, name: str) -> ServedTable:
        found = self.tables.get(name) or self.tables.get(name.lower())
        if found is None and BETWEEN in name:
            return self._compared(*name.split(BETWEEN, 1))
        if found is None:
            raise not_found(
                "table",
                name,
                "choose one of the list of tables",
                said("There is no table “{name}”. It may have another name now; the list has all tables.", name=name),
            )
        return found

    def _compared(self, first: str, second: str) -> ServedTable:
        """Two tables beside each other; the same ones are compared once."""
        key = (first.lower(), second.lower())
        both = self.compared.get(key)
        if both is None:
            if BETWEEN in second:
                raise not_found(
                    "table",
                    f"{first}{BETWEEN}{second}",
                    "compare two tables, not more",
                    said("Two tables can be compared, not more."),
                )
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
    opened: list[OpenedBundle] = []
    for source in (bundle for given in sources for bundle in given.bundles()):
        opened.append(_opened(source, groupings, opened))
    return _catalogue(tuple(sources), tuple(groupings), opened)


def _catalogue(
    sources: tuple[BundleSource, ...], groupings: tuple[GroupingSection, ...], opened: Sequence[OpenedBundle]
) -> Catalogue:
    tables = {name: table for one in opened for name, table in one.tables.items()}
    return Catalogue(tables=tables, sources=sources, groupings=groupings, opened=tuple(opened))


def _opened_if_whole(
    source: BundleSource,
    groupings: Sequence[GroupingSection],
    refused: dict[BundleSource, Stamp],
    others: Sequence[OpenedBundle],
) -> OpenedBundle | None:
    """A bundle that is published by now, whole, and not replaced while it is read."""
    files = source.whole_stamp()
    if source in refused and refused[source] == files:
        return None
    try:
        found = _opened(source, groupings, others)
    except _FAULTS as error:
        if source.whole_stamp() == files:
            refused[source] = files
            _log.error("A bundle was published anew and cannot be served; an earlier one still is. %s", error)
        return None
    return found if found.stamp == source.stamp() else None  # else the next look finds it


def _opened(source: BundleSource, groupings: Sequence[GroupingSection], others: Sequence[OpenedBundle]) -> OpenedBundle:
    """Open and verify one bundle, whose tables have names that the others do not have."""
    stamp = source.stamp()
    bundle = OpenBundle.open(source.folder)
    described = bundle.structure["tables"]
    levels = Hierarchies(bundle=bundle)
    published = [bundle.table(about, prefix=source.prefix) for about in described]
    same = [repr((about["statistic"], about["unit"], about["where"])) for about in described]
    alike = [
        [other for other, kind in zip(published, same, strict=True) if other is not table and kind == own]
        for table, own in zip(published, same, strict=True)
    ]

    def groupings_of(dimension: ServedDimension, *, cube: str) -> tuple[Grouping, ...]:
        return (*of_dimension(groupings, dimension), *levels.groupings(cube, dimension))

    cubes = [
        bundle.cube(
            about, prefix=source.prefix, groupings=partial(groupings_of, cube=f"{source.prefix}{about['name']}")
        )
        for about in bundle.structure.get("cubes", ())
    ]
    taken = {name for other in others for name in other.tables}
    tables: dict[str, ServedTable] = {}
    for table in (*levels.tables(_with_margins(published, alike), alike, described), *cubes):
        if table.id in taken:
            raise BundleError(
                f"bundle {source.folder}",
                expected="tables whose names no other bundle has",
                found=f"a second '{table.id}'",
                do=f"give the bundle a name of its own: `name={source.folder}` makes it 'name-{table.id}'",
            )
        taken.add(table.id)
        tables[table.id] = table
    return OpenedBundle(source=source, stamp=stamp, tables=tables)


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
