"""Read the tables and cubes of a bundle, with their metrics and its statement, every file checked."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.bundle.manifest import MANIFEST, published_on, read_listed, read_manifest
from sfumato.bundle.read import open_cube
from sfumato.bundle.rows import all_rows, unlisted
from sfumato.errors import BundleError
from sfumato.geography.areas import Geography
from sfumato.geography.project import Projected
from sfumato.serve.core.bundle_statement import Statement, guarantee_in_words
from sfumato.serve.core.figures import CubeFigures, CubeMetric, GroupingsOf, RememberingCube, StoredFigures
from sfumato.serve.core.labels import free_name, told_apart
from sfumato.serve.core.model import VALUE, Column, Metric, ServedDimension, ServedTable, Source
from sfumato.serve.core.published_files import PublishedFile, files_of
from sfumato.serve.core.roles import role_of
from sfumato.serve.core.status import NUMBERS
from sfumato.statistics.cube.section import COUNT, WEIGHTED
from sfumato.statistics.panel.section import ENDS
from sfumato.statistics.totals.question import TOTAL

# The metrics of a table or cube: which figures its cells have, in words, with units and digits.

Kind = Literal["value", "error", "rse", "low", "high", "other"]
_KINDS: dict[str, tuple[Kind, str]] = {
    "error": ("error", "Error, upper estimate"),
    "rse": ("rse", "Relative standard error"),
    "low": ("low", "Lower end of the 90 % interval"),
    "high": ("high", "Upper end of the 90 % interval"),
    "convergence_ratio": ("other", "Jobs for each employer"),
    "measured": ("other", "Before tables were made to agree"),
    "composite": ("other", "Composite estimate"),
    "composite_error": ("other", "Error of the composite estimate"),
    "establishments": ("other", "Establishments"),
    "threshold": ("other", "Least value that is listed"),
    "count": ("other", "Number of people"),
}
_OF_MEANS: dict[str, tuple[Kind, str]] = {"total": ("other", "Total"), "jobs": ("other", "Jobs")}
"""What means of jobs are made of; where a table has no such columns, values may have these codes."""
_OF_TRUE_NUMBERS: dict[str, tuple[Kind, str]] = {
    "low": ("low", "Lower end of the range"),
    "high": ("high", "Upper end of the range"),
}
"""The ends between which a true number lies for certain, where one was rounded or a range is published."""
_UNITS = {
    "count": "people",
    "jobs": "jobs",
    "rse": "percent",
    "convergence_ratio": "jobs for each employer",
    "establishments": "establishments",
}
_DECIMALS = {"error": 2, "rse": 1, "convergence_ratio": 2}


def table_metrics(about: Mapping[str, Any], schema: pa.Schema) -> tuple[Metric, ...]:
    """The metrics of a published table, in the order of the bundle's description: the value first."""
    decimals = {name: 2 if pa.types.is_floating(schema.field(name).type) else 0 for name in about["columns"]}
    value = _value_code(about)
    metrics = [
        Metric(
            code=value,
            label=_label(about),
            unit=about["unit"],
            decimals=decimals[VALUE],
            kind="value",
            description=_described(about),
            additive=about.get("additive", _adds_up(about)),
        )
    ]
    for name, text in about["columns"].items():
        if name in (known := _KINDS | _OF_MEANS | (_OF_TRUE_NUMBERS if "rules" in about else {})):
            kind, label = known[name]
            if name == "error" and "low" not in about["columns"]:  # an estimate of people, without an interval
                label = "Standard error of the protection"
            elif name == "error" and about.get("sparse"):
                label = "Error"  # the scale of the noise is public, so it is no estimate
            metrics.append(
                Metric(
                    code=name,
                    label=label,
                    unit=_UNITS.get(name, about["unit"]),
                    decimals=_DECIMALS.get(name, decimals[name]),
                    kind=kind,
                    about=None if kind == "other" else value,
                    description=text,
                )
            )
    return tuple(metrics)


def _value_code(about: Mapping[str, Any]) -> str:
    """The code of the value, made from the statistic: jobs, turnover, mean_earnings.

    It is never "value" itself: PxWeb 2 takes an object with a key of that name for a single figure and shows nothing.
    """
    ((statistic, asked),) = about["statistic"].items()
    words = {"total": f"{asked}", "mean": f"mean {asked}", "indicators": "indicators"}.get(statistic, about["unit"])
    words = _label(about) if statistic == "growth" else words
    code = re.sub(r"\W+", "_", words.lower()).strip("_") or statistic
    dimensions = [dimension["name"] for dimension in about["dimensions"]]
    return free_name(code, [VALUE, *_KINDS, "status", "reliability", *about["columns"], *dimensions])


def _label(about: Mapping[str, Any]) -> str:
    ((statistic, asked),) = about["statistic"].items()
    measured = about.get("measure", {}).get("label", "")  # bundles of earlier versions do not say it
    if statistic in ("total", "mean"):
        return f"{measured or str(asked).replace('_', ' ').capitalize()}, {statistic}"
    if statistic == "growth":
        return f"Growth of {measured or str(asked['of']).replace('_', ' ')}"
    if not measured and isinstance(asked, dict) and (outcome := asked.get("outcome")):
        return str(outcome).replace("_", " ").capitalize()  # a unit, such as 0.01 percentiles, is no name
    return str(measured or ("Value" if statistic == "indicators" else str(about["unit"]).capitalize()))


def _described(about: Mapping[str, Any]) -> str:
    units = ", ".join(f"{code}: {unit}" for code, unit in about.get("units", {}).items())
    return f"{about['columns'][VALUE]}; {units}" if units else str(about["columns"][VALUE])


def cube_metrics(
    measures: Sequence[str], *, population: str, weighted: bool, sampled: bool
) -> tuple[tuple[Metric, ...], tuple[CubeMetric, ...]]:
    """The metrics of a cube and where each comes from: totals and means, each followed by its standard error."""
    total, mean = ("Weighted total", "Weighted mean") if weighted else ("Total", "Mean")
    noise = "noise alone"
    both = "sampling and noise" if sampled else noise

    def pairs() -> Iterator[tuple[Metric, CubeMetric]]:
        if weighted:
            label = f"Weighted number of {population}"
            yield from _pair(WEIGHTED, "total", WEIGHTED, label=label, unit=population, of=both)
        yield from _pair(COUNT, "total", COUNT, label="Records", unit="records", of=noise)
        for name in measures:
            words = name.replace("_", " ")
            yield from _pair(name, "total", name, label=f"{total} of {words}", unit=words, of=noise)
            yield from _pair(f"mean_{name}", "mean", name, label=f"{mean} of {words}", unit=words, of=both)

    found = list(pairs())
    return tuple(metric for metric, _ in found), tuple(figure for _, figure in found)


def _pair(
    code: str, statistic: Literal["total", "mean"], column: str, *, label: str, unit: str, of: str
) -> Iterator[tuple[Metric, CubeMetric]]:
    decimals = 2 if statistic == "mean" else 1
    yield (
        Metric(
            code=code,
            label=label,
            unit=unit,
            decimals=decimals,
            kind="value",
            description=label,
            additive=statistic == "total",
        ),
        CubeMetric(statistic=statistic, column=column, error=False),
    )
    yield (
        Metric(
            code=f"{code}_error",
            label=f"{label}, standard error",
            unit=unit,
            decimals=decimals,
            kind="error",
            about=code,
            description=f"expected standard error of {of}",
        ),
        CubeMetric(statistic=statistic, column=column, error=True),
    )


# The privacy statement of a bundle, taken apart: what holds for all its tables, and what was done to each.


_FIRST, _SECOND = (f"{end}_" for end in ENDS[False])
_ONCE = "each once"
_IN_LANGUAGE = "label_"
"""What the name of a column begins with that has labels in another language."""
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
        updated = published_on(folder, read_manifest(folder))
        structure = json.loads(read_listed(folder, "structure.json"))
        earlier = "statement" not in structure
        return cls(
            folder=folder,
            structure=structure,
            statement=Statement.read(read_listed(folder, "statement.md").decode(), structure)
            if earlier
            else Statement.of(structure),
            updated=updated,
            digest=sha256((folder / MANIFEST).read_bytes()).hexdigest(),
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

    def cube(self, about: Mapping[str, Any], *, prefix: str, groupings: GroupingsOf) -> ServedTable:
        """One cube; every table of it can be asked for, by groups of its codes too."""
        opened = open_cube(self.folder, about["name"])
        cube = replace(opened, cube=RememberingCube.of(opened.cube))
        dimensions = []
        for described, dimension in zip(about["dimensions"], cube.cube.dimensions, strict=True):
            labels = self.labels(described["codelist"])
            served = ServedDimension(
                name=dimension.name,
                label=described["label"],
                codes=dimension.codes,
                labels=told_apart(dimension.codes, [labels.get(code, code) for code in dimension.codes]),
                translations=self.translations(described["codelist"], dimension.codes),
                eliminable=True,
                role=described.get("role") or role_of(dimension.name, dimension.codes),
                geography=self.geography(described),
            )
            dimensions.append(replace(served, groupings=groupings(served)))
        measures, population = cube.measures, self.structure["population"]
        sampled = cube.figures.sampling is not None
        metrics, figures = cube_metrics(measures, population=population, weighted=cube.is_weighted, sampled=sampled)
        known = {grouping.id: grouping for dimension in dimensions for grouping in dimension.groupings}
        notes = (*self.statement.changes(about["name"]), *self.statement.errors, *self.statement.not_protected)
        source = CubeFigures(cube=cube, metrics=figures, groupings=known)
        # A mean may not be defined, whatever the rules are.
        marks = cube.rules.some or bool(measures)
        table = self._served(
            about, source, prefix=prefix, dimensions=tuple(dimensions), metrics=metrics, notes=notes, marks=marks
        )
        return replace(table, kind="cube")

    def _served(
        self,
        about: Mapping[str, Any],
        source: Source,
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
            source=source,
            files=self.files(about),
        )

    def files(self, _about: Mapping[str, Any]) -> tuple[PublishedFile, ...]:
        """The files that have all of a table or cube."""
        return files_of(self.folder, _about)

    def _dimension(self, described: Mapping[str, Any], about: Mapping[str, Any], rows: pa.Table) -> ServedDimension:
        name = described["name"]
        labels = self.labels(described["codelist"])
        found = set(rows[name].unique().to_pylist())
        codes = tuple(labels)
        if name in about["where"]:
            codes = tuple(code for code in codes if code in about["where"][name])
        if name == "indicator":
            codes = tuple(code for code in codes if code in about["units"])
        # One file for all tables: others may have more percentiles, more periods to compare with, or a total.
        if len(codes) > described["codes"]:
            codes = tuple(code for code in codes if code in found)
        totalled = TOTAL in found and _has_totals(about)
        codes = (*(code for code in codes if code != TOTAL or not totalled), *([TOTAL] if totalled else []))
        if not found <= set(codes):
            raise _odd(self.folder, about["name"], f"codes of {name} that its codelist does not have")
        return ServedDimension(
            name=name,
            label=described["label"],
            codes=codes,
            labels=told_apart(codes, [labels.get(code, "Total") for code in codes]),
            translations=self.translations(described["codelist"], codes),
            eliminable=totalled,
            total=TOTAL if totalled else None,
            role=described.get("role") or role_of(name, codes[: len(codes) - totalled]),
            geography=self.geography(described),
            destination=_destination(name, about),
        )

    def geography(self, described: Mapping[str, Any]) -> Projected | None:
        """The map of a dimension, one object for all that are on it; bundles of earlier versions have none."""
        return self._maps[described["map"]] if "map" in described else None

    @cached_property
    def _maps(self) -> dict[str, Projected]:
        every = (*self.structure["tables"], *self.structure.get("cubes", ()))
        files = dict.fromkeys(d["map"] for about in every for d in about["dimensions"] if "map" in d)
        return {file: Projected.of(Geography.published(read_listed(self.folder, file))) for file in files}

    def labels(self, codelist: str) -> dict[str, str]:
        """The label of every code of a codelist, in order."""
        lines = io.StringIO(read_listed(self.folder, codelist).decode(), newline="")
        return {row["code"]: row["label"] for row in csv.DictReader(lines)}

    def translations(self, codelist: str, codes: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Labels of some codes in other languages, by the code of the language."""
        lines = io.StringIO(read_listed(self.folder, codelist).decode(), newline="")
        rows = {row["code"]: row for row in csv.DictReader(lines)}

        def texts(name: str) -> list[str]:
            return [rows.get(code, {}).get(name) or "" for code in codes]

        named = [name for name in next(iter(rows.values()), {}) if name.startswith(_IN_LANGUAGE)]
        return {name.removeprefix(_IN_LANGUAGE): told_apart(codes, texts(name)) for name in named}


def _stored(
    about: Mapping[str, Any], dimensions: tuple[ServedDimension, ...], metrics: tuple[Metric, ...], rows: pa.Table
) -> StoredFigures:
    shape = tuple(map(len, dimensions))
    flat = np.zeros(len(rows), dtype=np.int64)
    for dimension in dimensions:
        coded = rows[dimension.name].combine_chunks().dictionary_encode()  # may name codes that no row has
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        places = np.array([dimension.places.get(code, -1) for code in coded.dictionary.to_pylist()], dtype=np.int64)
        flat = flat * len(dimension) + (places[coded.indices.to_numpy()] if len(places) else 0)
    order = np.argsort(flat, kind="stable")
    dense = len(rows) == prod(shape) and bool((flat[order] == np.arange(len(rows))).all())
    if not dense and not (about["structural_zeros"].startswith(_IMPLIED) or _is_once(about)):
        raise _odd(Path("tables"), about["name"], "combinations of codes without a row")
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
        unlisted=_unlisted(about, dimensions, metrics, rows) if about.get("sparse") else None,
        additive=any(metric.additive for metric in metrics if metric.kind == "value"),
    )


def _unlisted(
    about: Mapping[str, Any], dimensions: tuple[ServedDimension, ...], metrics: tuple[Metric, ...], rows: pa.Table
) -> StoredFigures:
    """The figures of cells that are not listed, by workplace cell; where there is no establishment there are none."""
    found = unlisted(about, rows)
    workplace = tuple(dimension for dimension in dimensions if dimension.name in about["workplace"])
    return _stored({**about, "sparse": False}, workplace, metrics, found)


def _column(column: pa.ChunkedArray, order: Any) -> Column:
    missing = column.is_null().to_numpy()[order]
    values = column.fill_null(0).to_numpy()[order]
    return Column(values=values, missing=missing if missing.any() else None)


def _adds_up(about: Mapping[str, Any]) -> bool:
    """Whether values add up, of bundles of earlier versions, which did not say it."""
    return not {"mean", "indicators", "predict", "quantiles"} & about["statistic"].keys()


def _has_totals(about: Mapping[str, Any]) -> bool:
    """Whether the code "total" names the published sum of all others; early bundles of records do not say it."""
    if "totals" in about:
        return bool(about["totals"])
    asked = about["statistic"]
    if _of_jobs(about):
        return False
    return not {"total", "mean", "growth"}.isdisjoint(asked) or asked.get("count") == "records"


def _of_jobs(about: Mapping[str, Any]) -> bool:
    """Whether it is a total or a mean of jobs, of which one counts for no more than a cap."""
    return "cap" in about.get("measure", {})


def _is_once(about: Mapping[str, Any]) -> bool:
    """Whether pairs have no direction and are listed once."""
    return bool(about.get("listed_once", about["structural_zeros"].endswith(_ONCE)))


def _destination(name: str, about: Mapping[str, Any]) -> str:
    """The other end, if a dimension is where something comes from: as described, or of a flow by its name."""
    flow = about.get("flow") or {}
    origin, destination = (f"{end}_" for end in ENDS[True])
    found = destination + name.removeprefix(origin) if name.startswith(origin) else ""
    return str(flow["destination"]) if flow.get("origin") == name else found


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
