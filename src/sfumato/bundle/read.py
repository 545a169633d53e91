"""What a reader finds in a bundle: its cubes and tables, and the rows of a table."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.bundle.manifest import each_listed, read_listed, read_manifest
from sfumato.chunks import name_of
from sfumato.errors import BundleError, SfumatoError
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

# The rows of a published table, from one file or from the files of its parts, one after the other.

MOST_ROWS = 20_000_000
"""Tables in parts with more rows than this are not read as a whole."""


def each_rows(bundle: Path, about: Mapping[str, Any]) -> Iterator[pa.Table]:
    """The rows of a table that a bundle describes, file after file, once each is what the manifest says.

    `about` is its description in the structure. One thread reads the files: whoever asks may be one of many, and a
    command that ends while threads of a reader wake up may abort.
    """
    files = about["files"]
    names = [f"{files['parquet']}/{name_of(part)}" for part in range(files["parts"])] if "parts" in files else None
    for content in each_listed(bundle, names or [files["parquet"]]):
        yield pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


def all_rows(bundle: Path, about: Mapping[str, Any]) -> pa.Table:
    """All rows of a table; one that is too large for that is refused."""
    files = about["files"]
    if files.get("rows", 0) > MOST_ROWS:
        raise BundleError(
            f"bundle {bundle}, table '{about['name']}'",
            expected=f"a table of at most {MOST_ROWS:,} rows, to be held in memory",
            found=f"{files['rows']:,} rows, in {files['parts']} Parquet files",
            do=f"read the files in {bundle / files['parquet']} as docs/large-tables.md shows; serve the other tables "
            "from a release of their own",
        )
    return pa.concat_tables(each_rows(bundle, about))


def unlisted(about: Mapping[str, Any], rows: pa.Table) -> pa.Table:
    """A row for every workplace cell of a sparse table: the figures of its worker cells that are not listed.

    They are those of a value of 0. The upper end of an interval is as far above the value in all rows of a workplace
    cell, and above the greatest value that is not listed where there is none.
    """
    names = _workplace(about)
    codes = {name: rows[name].unique().cast(pa.string()).to_pylist() for name in names}
    cells = np.zeros(len(rows), dtype=np.int64)
    for name, place in zip(names, _places(rows, names, codes), strict=True):
        cells = cells * len(codes[name]) + place
    rows = rows.take(np.unique(cells, return_index=True)[1])
    value, threshold, high = rows["value"], rows["threshold"], rows["high"]
    beyond = pc.subtract(high, pc.if_else(pc.equal(value, 0), pc.subtract(threshold, 1), value))
    made = {
        "value": pc.multiply(value, 0),
        "error": threshold.cast(rows["error"].type),
        "low": pc.multiply(value, 0),
        "high": pc.add(pc.subtract(threshold, 1), beyond),
    }
    kept = [*names, *(name for name in about["columns"] if name in rows.column_names)]
    return pa.table({name: made.get(name, rows[name]) for name in kept})


def _workplace(about: Mapping[str, Any]) -> list[str]:
    """The dimensions of a sparse table that are of workplaces."""
    if "workplace" not in about:
        raise BundleError(
            f"table '{about['name']}'",
            expected="a sparse table that says which of its dimensions are of workplaces",
            found="one that does not",
            do="publish the bundle again with this version of sfumato",
        )
    found: list[str] = about["workplace"]
    return found


Places = NDArray[np.int64]

_ADDITIVE = "noise-infusion-sums"
"""The method whose cells are sums of distorted contributions; naming its class would import much for one word."""
_OF_VALUES = "perturbed-values"
"""The method whose cells are sums of values that were changed one by one."""
_PERIOD = re.compile(r"\d{4}(-?Q[1-4])?")
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
    """What is known of combinations that have no row, in a table that lists values from a threshold on."""


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


def codes_of(bundle: Path, dimension: str) -> tuple[str, ...]:
    """The codes of a dimension, in order."""
    rows = csv.reader(io.StringIO(read_listed(bundle, f"codelists/{dimension}.csv").decode()))
    return tuple(row[0] for row in rows)[1:]


def select_rows(bundle: Path, name: str, by: By | None = None, *, where: Where | None = None) -> Selected:
    """The rows of a table with these codes, by all of its dimensions or some of them.

    A dimension that is left out must have one code. Cells are added up only where the method lets them: elsewhere each
    has noise of its own, and their sum is not the protected total.
    """
    tables = {table["name"]: table for table in _structure(bundle)["tables"]}
    if name not in tables:
        raise unknown(f"bundle {bundle}", "one of its tables", name, tuple(tables))
    about = tables[name]
    names = tuple(dimension["name"] for dimension in about["dimensions"])
    asked = names if by is None else listed_once(by)
    kept = {dimension: kept_codes(dimension, codes) for dimension, codes in (where or {}).items()}
    for dimension in (*asked, *kept):
        if dimension not in names:
            raise unknown(f"table '{name}'", "one of its dimensions", dimension, names)
    codes = {dimension: codes_of(bundle, dimension) for dimension in names}
    for dimension, wanted in kept.items():
        for code in wanted:
            if code not in codes[dimension]:
                raise unknown(f"dimension {dimension!r}", "codes of its codelist", code, codes[dimension])
    table = pa.concat_tables(_with_codes(rows, kept) for rows in each_rows(bundle, about))
    summed = tuple(d for d in names if d not in asked and len(set(kept.get(d, codes[d]))) > 1)
    if summed:
        _refuse_sums(about, table, summed, {**codes, **kept})
    return Selected(
        title=about["title"],
        unit=about["unit"],
        rows=_sums(table, asked, codes) if summed else _in_order(table, asked, names, codes),
        summed=summed,
        notes=_without_row(bundle, about, table.num_rows, {**codes, **kept}) if about.get("sparse") else (),
    )


def _without_row(
    bundle: Path, about: Mapping[str, Any], listed: int, asked: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """How many combinations of a sparse table have no row: below the threshold of the workplace cell, or exactly 0."""
    inside = 1
    workplaces: dict[str, tuple[str, ...]] = dict.fromkeys(_workplace(about), ())
    for name, wanted in asked.items():
        chosen = set(wanted).intersection(about["where"].get(name, wanted))
        if name in workplaces:
            workplaces[name] = tuple(chosen)
        else:
            inside *= len(chosen)
    cells = unlisted(about, pa.concat_tables(_with_codes(rows, workplaces) for rows in each_rows(bundle, about)))
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
    places = _places(found, names[: 2 * ends], codes)
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


def _with_codes(rows: pa.Table, kept: Mapping[str, Sequence[str]]) -> pa.Table:
    for dimension, wanted in kept.items():
        rows = rows.filter(pc.is_in(rows[dimension].cast(pa.string()), value_set=pa.array(wanted, pa.string())))
    return rows


def _structure(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_listed(bundle, "structure.json"))
    return found


def _refuse_sums(
    about: Mapping[str, Any], table: pa.Table, summed: Sequence[str], codes: Mapping[str, Sequence[str]]
) -> None:
    """Refuse to add up cells whose sum is not what the method would have published."""
    if about["method"] == _OF_VALUES and about["additive"]:
        # Values were changed one by one. A total is not added to its parts.
        if not any(TOTAL in codes[name] for name in summed):
            return
        found = f"a sum over {', '.join(summed)} that counts totals beside their parts"
    elif about["method"] != _ADDITIVE or "indicators" not in about["statistic"]:
        found = f"a sum over {', '.join(summed)}, and the method {about['method']} protects every cell by itself"
    elif NAME in summed or not _ADDS_UP.issuperset(codes[NAME]):
        found = "indicators that do not add up: averages, gains and losses of employers, or different indicators"
    elif over_time := [name for name in summed if all(_PERIOD.fullmatch(code) for code in codes[name])]:
        found = f"a sum over periods ({', '.join(over_time)}), in which the same job counts several times"
    elif pc.any(pc.not_equal(table["status"].cast(pa.string()), "")).as_py():
        found = "cells that are suppressed or made up"
    else:
        return
    raise SfumatoError(
        f"table '{about['name']}'",
        expected="every dimension in `by`, or one code for each of the others: its cells are not added up",
        found=found,
        do=f"name {', '.join(summed)} in `by`, or choose one code in `where`; cubes can be asked for any sum",
    )


def _in_order(table: pa.Table, by: Sequence[str], names: Sequence[str], codes: Mapping[str, Sequence[str]]) -> pa.Table:
    """The rows by these dimensions, in the order of their codelists, with all figures."""
    figures = [column for column in table.column_names if column not in names]
    places = _places(table, by, codes)
    order = np.lexsort(places[::-1]) if places else np.arange(table.num_rows)
    return table.select([*by, *figures]).take(order)


def _sums(table: pa.Table, by: Sequence[str], codes: Mapping[str, Sequence[str]]) -> pa.Table:
    """Values added up by these dimensions; whole numbers, in the order of their codelists."""
    places = _places(table, by, codes)
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


def _places(table: pa.Table, by: Sequence[str], codes: Mapping[str, Sequence[str]]) -> tuple[Places, ...]:
    return tuple(
        pc.index_in(table[name].cast(pa.string()), value_set=pa.array(codes[name], pa.string()))
        .to_numpy()
        .astype(np.int64)
        for name in by
    )


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

    def codes(self, dimension: str) -> tuple[str, ...]:
        """The codes of a dimension, in order."""
        return codes_of(self.folder, dimension)

    def rows(self, table: str, by: By | None = None, *, where: Where | None = None) -> pa.Table:
        """The rows of a table with these codes, by all of its dimensions or some of them."""
        return select_rows(self.folder, table, by, where=where).rows

    def cube(self, name: str) -> PublishedCube:
        """A cube, ready to be asked for any table of it."""
        return open_cube(self.folder, name)


def open_bundle(folder: str | Path) -> Bundle:
    """Open a published bundle; one that is not whole is refused."""
    read_manifest(Path(folder))
    return Bundle(folder=Path(folder))
