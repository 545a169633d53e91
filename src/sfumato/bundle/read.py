"""What a reader finds in a bundle: its cubes and tables, and the rows of a table."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.bundle.levels import Ascent, Levels
from sfumato.bundle.manifest import read_listed, read_manifest
from sfumato.bundle.rows import (
    MOST_ROWS,
    codes_of,
    each_rows,
    places_of,
    together,
    unlisted,
    with_codes,
    workplace_of,
)
from sfumato.bundle.sums import Better, adds_up, better_table, summed_rows, time_of
from sfumato.errors import SfumatoError
from sfumato.frame.levels import published_name
from sfumato.release import load_any_period
from sfumato.statistics.cube.cube_query import (
    By,
    Rules,
    Where,
    kept_codes,
    listed_once,
    unknown,
)
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.section import COUNT, WEIGHTED
from sfumato.statistics.cube.stored import read_stored
from sfumato.statistics.panel.indicators import INDICATORS, NAME
from sfumato.statistics.totals.question import TOTAL

if TYPE_CHECKING:  # only a name for types
    from sfumato.statistics.panel.network import PathLengths


def bundle_folder(path: Path) -> Path:
    """The bundle itself; a release file knows where its bundle is."""
    return load_any_period(path).bundle if path.suffix == ".toml" else path


_ADDITIVE = "noise-infusion-sums"
"""The method whose cells are sums of distorted contributions; naming its class would import much for one word."""
_OF_VALUES = "perturbed-values"
"""The method whose cells are sums of values that were changed one by one."""
_PERIOD = re.compile(r"\d{4}(-?Q[1-4]|-\d\d)?")
_NET_OF_EMPLOYERS = ("job_creation", "job_destruction")
"""What an employer gains in one part and loses in another cancels out in the whole."""
_ADDS_UP = frozenset(i.code for i in INDICATORS if i.additive and i.code not in _NET_OF_EMPLOYERS)


@dataclass(frozen=True, kw_only=True)
class BundleItem:
    """A cube or a table of a bundle."""

    kind: str
    name: str
    title: str
    dimensions: Mapping[str, int]
    """How many codes each has."""
    method: str
    measures: tuple[str, ...] = ()
    """Those of a cube."""


@dataclass(frozen=True, kw_only=True)
class Selected:
    """Rows of a published table."""

    title: str
    unit: str
    rows: pa.Table
    summed: tuple[str, ...]
    """The dimensions over which values were added up."""
    notes: tuple[str, ...] = ()
    """What is to be said of sums, and of combinations without a row in a table of values from a threshold on."""
    better: Better | None = None
    """Another table that has the same sums with smaller errors."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """The dimensions that were added up by the codes of one above them, with the name of that."""


def contents(bundle: Path) -> tuple[BundleItem, ...]:
    """The cubes and tables of a bundle."""
    described = _structure(bundle)
    return tuple(
        BundleItem(
            kind=kind,
            name=part["name"],
            title=part["title"],
            dimensions={dimension["name"]: dimension["codes"] for dimension in part["dimensions"]},
            method=part["method"],
            measures=tuple(name for name in part["columns"] if name not in (COUNT, WEIGHTED)) if kind == "cube" else (),
        )
        for kind in ("cube", "table")
        for part in described.get(f"{kind}s", ())
    )


def select_rows(bundle: Path, name: str, by: By | None = None, *, where: Where | None = None) -> Selected:
    """The rows of a table with these codes, by all of its dimensions or some of them.

    A dimension that is left out has one code, or its cells are added up. A dimension above one of the table, by its
    name or as in place@county, has the sums of the codes that lie in its own. That is done where the method lets them,
    or published numbers tell how far sums are off: then these have errors and intervals of their own.
    """
    described = _structure(bundle)
    tables, levels = {table["name"]: table for table in described["tables"]}, Levels(structure=described)
    if name not in tables:
        raise unknown(f"bundle {bundle}", "one of its tables", name, tuple(tables))
    about = tables[name]
    names = tuple(dimension["name"] for dimension in about["dimensions"])
    codes = {dimension: codes_of(bundle, dimension) for dimension in names}
    asked, ascents = _asked(levels, name, names if by is None else listed_once(by), codes)
    codes |= {level: codes_of(bundle, level) for level in ascents}
    kept = {dimension: kept_codes(dimension, codes) for dimension, codes in (where or {}).items()}
    for dimension in kept:
        if dimension not in names:
            raise unknown(f"table '{name}'", "one of its dimensions", dimension, names)
    for dimension, wanted in kept.items():
        for code in wanted:
            if code not in codes[dimension]:
                raise unknown(f"dimension {dimension!r}", "codes of its codelist", code, codes[dimension])
    climbed = {way.dimension: level for level, way in ascents.items()}
    summed = _summed(about, (*asked, *climbed), {name: codes[name] for name in names}, kept)
    added = (*summed, *climbed)
    if added and adds_up(about):
        _refuse_noisy_sums(about, added)
        rows, notes, whole = summed_rows(bundle, about, asked, _own_codes(about, codes), kept, ascents=ascents)
        others = {
            other["name"]: found
            for other in tables.values()
            if other is not about
            and (found := _same_figures(bundle, other, about, asked, kept, levels=levels)) is not None
        }
        better = better_table(rows, asked, others) if whole else None
    else:
        table = together(with_codes(rows, kept) for rows in each_rows(bundle, about))
        if added:
            _refuse_sums(about, table, added, {**codes, **kept})
        sparse = about.get("sparse")
        notes = _without_row(bundle, about, table.num_rows, {**codes, **kept}) if sparse else ()
        for way in ascents.values():
            table, lost = _climbed(table, way)
            notes = (*notes, *lost)
        rows, better = _sums(table, asked, codes) if added else _in_order(table, asked, names, codes), None
    return Selected(
        title=about["title"],
        unit=about["unit"],
        rows=rows,
        summed=summed,
        notes=notes,
        better=better,
        levels=climbed,
    )


def _asked(
    levels: Levels, table: str, by: Sequence[str], codes: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], dict[str, Ascent]]:
    """The dimensions that are asked for under their published names, and how those above the table's are reached."""
    asked, ascents = [], {}
    for text in by:
        way = levels.ascent(table, tuple(codes), text, codes)
        asked.append(way.level if way is not None else text if text in codes else published_name(text))
        if way is not None:
            ascents[way.level] = way
    own = [name if name not in ascents else ascents[name].dimension for name in asked]
    if twice := sorted({name for name in own if own.count(name) > 1}):
        raise SfumatoError(
            f"table '{table}'",
            expected="every dimension at one level",
            found=f"{twice[0]} as {' and as '.join(a for a, o in zip(asked, own, strict=True) if o == twice[0])}",
            do="name one of them",
        )
    return tuple(asked), ascents


def _climbed(rows: pa.Table, way: Ascent) -> tuple[pa.Table, list[str]]:
    """Rows with the codes above those of a dimension in their place, and what is to be said of codes without any."""
    codes = rows[way.dimension].cast(pa.string()).to_pylist()
    above = pa.array([way.parents.get(code) for code in codes], pa.string())
    place = rows.column_names.index(way.dimension)
    found = rows.set_column(place, way.level, above)
    return found.filter(pc.is_valid(found[way.level])), way.note(dict.fromkeys(codes))


def _own_codes(about: Mapping[str, Any], codes: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The codes that a table has, which are those that its own filter keeps."""
    kept = about["where"]
    return {name: tuple(code for code in some if code in kept.get(name, some)) for name, some in codes.items()}


def _summed(
    about: Mapping[str, Any],
    asked: Sequence[str],
    codes: Mapping[str, Sequence[str]],
    kept: Mapping[str, Sequence[str]],
) -> tuple[str, ...]:
    """The dimensions that are left out and have several codes."""
    own = _own_codes(about, codes)
    return tuple(name for name in codes if name not in asked and len(set(kept.get(name, own[name]))) > 1)


def _same_figures(
    bundle: Path,
    about: Mapping[str, Any],
    asking: Mapping[str, Any],
    asked: Sequence[str],
    kept: Mapping[str, Sequence[str]],
    *,
    levels: Levels,
) -> pa.Table | None:
    """What a table says of a question to another one about the same things; None where it has no such figures."""
    names = tuple(dimension["name"] for dimension in about["dimensions"])
    same = all(about[fact] == asking[fact] for fact in ("statistic", "unit", "where"))
    if not (same and adds_up(about) and {*kept} <= {*names}) or about["files"].get("rows", 0) > MOST_ROWS:
        return None
    codes = {dimension: codes_of(bundle, dimension) for dimension in names}
    try:
        asked, ascents = _asked(levels, about["name"], asked, codes)
    except SfumatoError:  # it has no such dimension or level
        return None
    climbed = [way.dimension for way in ascents.values()]
    summed = (*_summed(about, (*asked, *climbed), codes, kept), *climbed)
    codes |= {level: codes_of(bundle, level) for level in ascents}
    if summed:
        if time_of(about).intersection(summed):
            return None
        rows, _, whole = summed_rows(bundle, about, asked, _own_codes(about, codes), kept, ascents=ascents)
        return rows if whole else None
    return _in_order(together(with_codes(rows, kept) for rows in each_rows(bundle, about)), asked, names, codes)


def _without_row(
    bundle: Path, about: Mapping[str, Any], listed: int, asked: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """How many combinations of a sparse table have no row: below the threshold of the workplace cell, or exactly 0."""
    inside = 1
    workplaces: dict[str, tuple[str, ...]] = dict.fromkeys(workplace_of(about), ())
    for name, wanted in asked.items():
        chosen = set(wanted).intersection(about["where"].get(name, wanted))
        if name in workplaces:
            workplaces[name] = tuple(chosen)
        else:
            inside *= len(chosen)
    cells = unlisted(about, together(with_codes(rows, workplaces) for rows in each_rows(bundle, about)))
    below = len(cells) * inside - listed
    nowhere = (prod(map(len, workplaces.values())) - len(cells)) * inside
    notes = []
    if below:
        ends = pc.min_max(cells["threshold"]).as_py()
        threshold = " to ".join(f"{end:,}" for end in dict.fromkeys((ends["min"], ends["max"])))
        notes.append(
            f"Without a row, and published as 0: {below:,} below the threshold of the workplace cell ({threshold}), "
            "where the true value need not be 0."
        )
    if nowhere:
        notes.append(f"Without a row, and exactly 0: {nowhere:,} in workplace cells without any establishment.")
    return tuple(notes)


def published_network(bundle: Path, name: str, *, where: Where | None = None) -> "tuple[pa.Table, PathLengths]":
    """The centralities of the classes of a published flow or graph, and how many steps apart they are.

    Dimensions beside those of the ends need one code in `where`.
    """
    from sfumato.statistics.panel.network import ClassNetwork  # noqa: PLC0415 (other questions need no graphs)

    about: dict[str, Any] = next((table for table in _structure(bundle)["tables"] if table["name"] == name), {})
    asked = about.get("statistic", {}).get("flow") or about.get("statistic", {}).get("graph")
    if not asked:
        raise SfumatoError(
            f"table '{name}'",
            expected="a table of a flow or graph, whose classes make a network",
            found="another table, or none of this name",
            do="name one of the flows and graphs of the bundle",
        )
    names = [dimension["name"] for dimension in about["dimensions"]]
    ends = len(asked["attribute"])
    found = select_rows(bundle, name, tuple(names[: 2 * ends]), where=where).rows
    codes = {end: codes_of(bundle, end) for end in names[: 2 * ends]}
    sizes = tuple(len(codes[end]) for end in names[:ends])
    places = places_of(found, names[: 2 * ends], codes)
    first, second = (np.ravel_multi_index(places[at : at + ends], sizes) for at in (0, ends))
    values = found["value"].fill_null(0).to_numpy()
    directed = names[0].startswith("origin_")
    network = ClassNetwork.between(first, second, values, classes=prod(sizes), directed=directed)
    kept = np.unique(np.append(first, second))
    at = np.unravel_index(kept, sizes)
    columns = {
        attribute: pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), pa.array(codes[end], pa.string()))
        for attribute, end, place in zip(asked["attribute"], names, at, strict=False)
    }
    figures = {measure: pa.array(column[kept]) for measure, column in network.measures().items()}
    return pa.table({**columns, **figures}), network.paths()


def _structure(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_listed(bundle, "structure.json"))
    return found


def _refuse_noisy_sums(about: Mapping[str, Any], summed: Sequence[str]) -> None:
    """Refuse sums over time, of more rows than memory holds, and of periods that have other groups of workers."""
    public = {*about["noise"]["workplace"], *time_of(about)}
    changed = {name for unknown_codes in about.get("absent", {}).values() for name in unknown_codes} - public
    if over_time := sorted(time_of(about).intersection(summed)):
        raise _not_added(about, summed, _OVER_TIME.format(", ".join(over_time)))
    if about["files"].get("rows", 0) > MOST_ROWS:
        raise _not_added(about, summed, f"{about['files']['rows']:,} rows, more than the {MOST_ROWS:,} that are held")
    if changed:
        found = f"periods that do not all have the same codes of {', '.join(sorted(changed))}"
        raise _not_added(about, summed, found, "; or ask a version of one period for the sum (--version)")


def _refuse_sums(
    about: Mapping[str, Any], table: pa.Table, summed: Sequence[str], codes: Mapping[str, Sequence[str]]
) -> None:
    """Refuse to add up cells whose sum is not what the method would have published, or of which no error is known."""
    more = ""
    if about["method"] == _OF_VALUES and about["additive"]:
        # Values were changed one by one. A total is not added to its parts.
        if not any(TOTAL in codes[name] for name in summed):
            return
        found = f"a sum over {', '.join(summed)} that counts totals beside their parts"
    elif "noise" in about:
        found, more = _NOISE_CHANGED, "; or ask a version of one period for the sum (--version)"
    elif about["method"] != _ADDITIVE or "indicators" not in about["statistic"]:
        found = f"a sum over {', '.join(summed)}, and the method {about['method']} protects every cell by itself"
        if "count" in about["statistic"] and about["guarantee"]["definition"] != "none":
            found += "; the bundle does not tell what noise its sums have"
            more = "; a bundle of an earlier version tells it once it is published again, unless values are biased"
    elif NAME in summed or not _ADDS_UP.issuperset(codes[NAME]):
        found = "indicators that do not add up: averages, gains and losses of employers, or different indicators"
    elif over_time := [name for name in summed if all(_PERIOD.fullmatch(code) for code in codes[name])]:
        found = _OVER_TIME.format(", ".join(over_time))
    elif pc.any(pc.not_equal(table["status"].cast(pa.string()), "")).as_py():
        found = "cells that are suppressed or made up"
    else:
        return
    raise _not_added(about, summed, found, more)


_OVER_TIME = "a sum over periods ({}), in which the same job or person counts several times"
_NOISE_CHANGED = "noise that is not the same in all periods"


def _not_added(about: Mapping[str, Any], summed: Sequence[str], found: str, more: str = "") -> SfumatoError:
    return SfumatoError(
        f"table '{about['name']}'",
        expected="every dimension in `by`, or one code for each of the others: its cells are not added up",
        found=found,
        do=f"name {', '.join(summed)} in `by`, or choose one code in `where`; cubes can be asked for any sum{more}",
    )


def _in_order(table: pa.Table, by: Sequence[str], names: Sequence[str], codes: Mapping[str, Sequence[str]]) -> pa.Table:
    """The rows by these dimensions, in the order of their codelists, with all figures."""
    figures = [column for column in table.column_names if column not in names]
    places = places_of(table, by, codes)
    order = np.lexsort(places[::-1]) if places else np.arange(table.num_rows)
    return table.select([*by, *figures]).take(order)


def _sums(table: pa.Table, by: Sequence[str], codes: Mapping[str, Sequence[str]]) -> pa.Table:
    """Values added up by these dimensions; whole numbers, in the order of their codelists."""
    places = places_of(table, by, codes)
    lengths = tuple(len(codes[name]) for name in by)
    cells = np.ravel_multi_index(places, lengths) if places else np.zeros(table.num_rows, dtype=np.int64)
    found, group = np.unique(cells, return_inverse=True)
    values = np.zeros(len(found), dtype=np.int64)
    np.add.at(values, group, table["value"].to_numpy())
    at = np.unravel_index(found, lengths) if lengths else ()
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), pa.array(codes[name], pa.string()))
        for name, place in zip(by, at, strict=True)
    }
    return pa.table({**columns, "value": pa.array(values)})


def open_cube(bundle: str | Path, name: str) -> PublishedCube:
    """Open a cube of a bundle, once its file agrees with the manifest."""
    folder = Path(bundle)
    structure: dict[str, Any] = json.loads(read_listed(folder, "structure.json"))
    described = {cube["name"]: cube for cube in structure.get("cubes", ())}
    if name not in described:
        raise unknown(f"bundle {folder}", "one of its cubes", name, tuple(described))
    about = described[name]
    cube, figures = read_stored(read_listed(folder, about["file"]))
    return PublishedCube(
        name=name, title=about["title"], cube=cube, figures=figures, rules=Rules(**about["publication_rules"])
    )


def versions_of(bundle: Path) -> tuple[str, ...]:
    """The versions of the periods of a series, in the order in which they were published; none of other bundles."""
    return tuple(version["name"] for version in _structure(bundle).get("series", {}).get("versions", ()))


def version_folder(bundle: Path, name: str) -> Path:
    """The bundle of one version inside that of a series."""
    known = versions_of(bundle)
    if name not in known:
        raise unknown(f"bundle {bundle}", "one of its versions", name, known)
    return bundle / "periods" / name


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A published bundle: what it has, its statement, rows and figures; every file is checked as it is read."""

    folder: Path

    @property
    def contents(self) -> tuple[BundleItem, ...]:
        """Its cubes and tables."""
        return contents(self.folder)

    @property
    def statement(self) -> str:
        """The privacy statement, as Markdown."""
        return read_listed(self.folder, "statement.md").decode()

    @property
    def structure(self) -> dict[str, Any]:
        """Every fact that the bundle states for machines."""
        return _structure(self.folder)

    @property
    def versions(self) -> tuple[str, ...]:
        """Of a series: the versions of its periods, in the order in which they were published."""
        return versions_of(self.folder)

    def version(self, name: str) -> "Bundle":
        """One version of one period of a series, such as 2026-Q2-v1: a bundle by itself."""
        return Bundle(folder=version_folder(self.folder, name))

    def codes(self, dimension: str) -> tuple[str, ...]:
        """The codes of a dimension, in order."""
        return codes_of(self.folder, dimension)

    def rows(self, table: str, by: By | None = None, *, where: Where | None = None) -> pa.Table:
        """The rows of a table with these codes, by all of its dimensions or some of them."""
        return select_rows(self.folder, table, by, where=where).rows

    def select(self, table: str, by: By | None = None, *, where: Where | None = None) -> Selected:
        """The same rows with what is to be said of them: notes, and a table that has the same sums more exactly."""
        return select_rows(self.folder, table, by, where=where)

    def cube(self, name: str) -> PublishedCube:
        """A cube, ready to be asked for any table of it."""
        return open_cube(self.folder, name)


def open_bundle(folder: str | Path) -> Bundle:
    """Open a published bundle; one that is not whole is refused."""
    read_manifest(Path(folder))
    return Bundle(folder=Path(folder))
