"""Read the tables and cubes of a bundle, every file checked against the manifest as it is read."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.cube.query import open_cube
from sfumato.engine.question import AT, TOTAL
from sfumato.errors import BundleError
from sfumato.manifest import MANIFEST, read_listed, read_manifest
from sfumato.publish.rows import all_rows
from sfumato.serve.cube_figures import CubeFigures
from sfumato.serve.groupings import GroupingSection, of_dimension
from sfumato.serve.metrics import cube_metrics, table_metrics
from sfumato.serve.model import VALUE, Column, Metric, ServedDimension, ServedTable
from sfumato.serve.remembering_cube import RememberingCube
from sfumato.serve.roles import role_of
from sfumato.serve.statement import Statement, guarantee_in_words
from sfumato.serve.status import NUMBERS
from sfumato.serve.stored_figures import StoredFigures
from sfumato.table import ENDS

_FIRST, _SECOND = (f"{end}_" for end in ENDS[False])
_LARGE = 1_000_000  # cells of a cube that are summed in about a millisecond
_ONCE = "each once"
_IMPLIED = "implied"


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenBundle:
    """A verified bundle: its description, and where to read the rest."""

    folder: Path
    structure: Mapping[str, Any]
    statement: Statement
    updated: datetime
    digest: str

    @classmethod
    def open(cls, folder: Path) -> "OpenBundle":
        """Check every file of a bundle against its manifest and read what it says of itself."""
        read_manifest(folder)
        manifest = folder / MANIFEST
        return cls(
            folder=folder,
            structure=json.loads(read_listed(folder, "structure.json")),
            statement=Statement.read(read_listed(folder, "statement.md").decode()),
            # Bundles hold no clock, so that the same release gives the same bytes; the file system has one.
            updated=datetime.fromtimestamp(int(manifest.stat().st_mtime), tz=UTC),
            digest=sha256(manifest.read_bytes()).hexdigest(),
        )

    def table(self, about: Mapping[str, Any], *, prefix: str) -> ServedTable:
        """One published table."""
        return self.of_rows(about, all_rows(self.folder, about), prefix=prefix)

    def of_rows(self, about: Mapping[str, Any], rows: pa.Table, *, prefix: str) -> ServedTable:
        """A table with its rows, as the bundle describes it."""
        dimensions = tuple(self._dimension(d, about, rows) for d in about["dimensions"])
        metrics = table_metrics(about, rows.schema)
        notes = (
            *self.statement.changes(about["name"]),
            *self.statement.errors,
            *(["Each pair is listed once and shown at both ends: add up one half only."] if _is_once(about) else []),
            *self.statement.not_protected,
        )
        source = _stored(about, dimensions, metrics, rows)
        marks = source.status is not None
        return self._served(
            about, source, prefix=prefix, dimensions=dimensions, metrics=metrics, notes=notes, marks=marks
        )

    def cube(self, about: Mapping[str, Any], *, prefix: str, groupings: Sequence[GroupingSection]) -> ServedTable:
        """One cube; every table of it can be asked for."""
        opened = open_cube(self.folder, about["name"])
        cube = replace(opened, cube=RememberingCube.of(opened.cube))
        dimensions = []
        for described, dimension in zip(about["dimensions"], cube.cube.dimensions, strict=True):
            labels = self.labels(described["codelist"])
            served = ServedDimension(
                name=dimension.name,
                label=described["label"],
                codes=dimension.codes,
                labels=tuple(labels.get(code, code) for code in dimension.codes),
                eliminable=True,
                role=role_of(dimension.name, dimension.codes),
            )
            dimensions.append(replace(served, groupings=of_dimension(groupings, served)))
        measures, population = cube.measures, self.structure["population"]
        sampled = cube.figures.sampling is not None
        metrics, figures = cube_metrics(measures, population=population, weighted=cube.is_weighted, sampled=sampled)
        known = {grouping.id: grouping for dimension in dimensions for grouping in dimension.groupings}
        notes = (*self.statement.changes(about["name"]), *self.statement.errors, *self.statement.not_protected)
        source = CubeFigures(cube=cube, metrics=figures, groupings=known)
        # A mean may not be defined, whatever the rules are.
        marks = bool(cube.rules.least_count or cube.rules.largest_cv or measures)
        return self._served(
            about, source, prefix=prefix, dimensions=tuple(dimensions), metrics=metrics, notes=notes, marks=marks
        )

    def _served(
        self,
        about: Mapping[str, Any],
        source: StoredFigures | CubeFigures,
        *,
        prefix: str,
        dimensions: tuple[ServedDimension, ...],
        metrics: tuple[Metric, ...],
        notes: tuple[str, ...],
        marks: bool,
    ) -> ServedTable:
        return ServedTable(
            id=f"{prefix}{about['name']}",
            title=about["title"],
            release=self.structure["title"],
            population=self.structure["population"],
            period=self.structure["period"],
            updated=self.updated,
            dimensions=_labelled_apart(dimensions),
            metrics=metrics,
            method=about["method"],
            guarantee=guarantee_in_words(self.statement, about["guarantee"]),
            notes=notes,
            digest=self.digest,
            marks=marks,
            heavy=isinstance(source, CubeFigures) and len(source.cube.cube) > _LARGE,
            kind="cube" if isinstance(source, CubeFigures) else "table",
            source=source,
        )

    def _dimension(self, described: Mapping[str, Any], about: Mapping[str, Any], rows: pa.Table) -> ServedDimension:
        name = described["name"]
        labels = self.labels(described["codelist"])
        found = set(rows[name].unique().to_pylist())
        codes = tuple(labels)
        if name in about["where"]:
            codes = tuple(code for code in codes if code in about["where"][name])
        if name == "indicator":
            codes = tuple(code for code in codes if code in about["units"])
        if name == AT and len(codes) != described["codes"]:  # one file for all tables of people, of which this has some
            codes = tuple(code for code in codes if code in found)
        totalled = TOTAL in found and _of_records(about)
        codes = (*(code for code in codes if code != TOTAL or not totalled), *([TOTAL] if totalled else []))
        if not found <= set(codes):
            raise _odd(self.folder, about["name"], f"codes of {name} that its codelist does not have")
        return ServedDimension(
            name=name,
            label=described["label"],
            codes=codes,
            labels=tuple(labels.get(code, "Total") for code in codes),
            eliminable=totalled,
            total=TOTAL if totalled else None,
            role=role_of(name, codes[: len(codes) - totalled]),
        )

    def labels(self, codelist: str) -> dict[str, str]:
        """The label of every code of a codelist, in order."""
        lines = io.StringIO(read_listed(self.folder, codelist).decode(), newline="")
        return {row["code"]: row["label"] for row in csv.DictReader(lines)}


def _stored(
    about: Mapping[str, Any], dimensions: tuple[ServedDimension, ...], metrics: tuple[Metric, ...], rows: pa.Table
) -> StoredFigures:
    shape = tuple(map(len, dimensions))
    flat = np.zeros(len(rows), dtype=np.int64)
    for dimension in dimensions:
        coded = rows[dimension.name].combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        places = np.array([dimension.places[code] for code in coded.dictionary.to_pylist()], dtype=np.int64)
        flat = flat * len(dimension) + (places[coded.indices.to_numpy()] if len(places) else 0)
    order = np.argsort(flat, kind="stable")
    dense = len(rows) == prod(shape) and bool((flat[order] == np.arange(len(rows))).all())
    if not dense and not (about["structural_zeros"].startswith(_IMPLIED) or _is_once(about)):
        raise _odd(Path(about["files"]["parquet"]), about["name"], "combinations of codes without a row")
    status = None
    if "status" in rows.column_names:
        words = rows["status"].cast(pa.string()).to_pylist()
        status = np.array([NUMBERS[word or ""] for word in words], dtype=np.int8)[order]
    return StoredFigures(
        names=tuple(dimension.name for dimension in dimensions),
        shape=shape,
        totals=tuple(None if d.total is None else d.places[d.total] for d in dimensions),
        positions=None if dense else flat[order],
        columns=tuple(_column(rows[VALUE if metric.kind == "value" else metric.code], order) for metric in metrics),
        status=status,
        mirrored=_mirrored(dimensions) if _is_once(about) else None,
    )


def _column(column: pa.ChunkedArray, order: Any) -> Column:
    missing = column.is_null().to_numpy()[order]
    values = column.fill_null(0).to_numpy()[order]
    return Column(values=values, missing=missing if missing.any() else None)


def _of_records(about: Mapping[str, Any]) -> bool:
    """Whether it is a table of records, in which the code "total" names the protected sum of all others."""
    return not {"total", "mean"}.isdisjoint(about["statistic"]) or about["statistic"].get("count") == "records"


def _is_once(about: Mapping[str, Any]) -> bool:
    """Whether pairs have no direction and are listed once."""
    return bool(about["structural_zeros"].endswith(_ONCE))


def _mirrored(dimensions: tuple[ServedDimension, ...]) -> tuple[int, ...]:
    names = [dimension.name for dimension in dimensions]

    def other(name: str) -> str:
        for here, there in ((_FIRST, _SECOND), (_SECOND, _FIRST)):
            if name.startswith(here) and there + name.removeprefix(here) in names:
                return there + name.removeprefix(here)
        return name

    return tuple(names.index(other(name)) for name in names)


def _labelled_apart(dimensions: tuple[ServedDimension, ...]) -> tuple[ServedDimension, ...]:
    """The dimensions with labels that differ: clients use them as names of columns."""
    labels = [dimension.label for dimension in dimensions]
    return tuple(replace(d, label=f"{d.label} ({d.name})") if labels.count(d.label) > 1 else d for d in dimensions)


def _odd(where: Path, name: str, found: str) -> BundleError:
    return BundleError(
        f"{where}, table '{name}'",
        expected="rows that agree with the structure of the bundle",
        found=found,
        do="publish the bundle again with this version of sfumato",
    )
