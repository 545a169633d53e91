"""The versions of a series: which periods a bundle has, when and why each was published, what a revision changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Flags, Floats
from sfumato.bundle.manifest import MANIFEST, read_listed, read_manifest
from sfumato.bundle.rows import MOST_ROWS, all_rows
from sfumato.errors import BundleError
from sfumato.frame.periods import Period
from sfumato.plan import Plan
from sfumato.privacy.book import OverPeriods, PeriodSpent
from sfumato.privacy.guarantee import EmployerEmployee, read_described

LARGEST_MOVES = 5
"""How many cells are named whose values a revision moved most."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One period of a series as it was published: a bundle of its own inside that of the series, never changed."""

    period: str
    number: int
    """From 1 on; each revision of the period has the next."""
    published: str
    """The day, by the clock of the machine (UTC)."""
    reason: str = ""
    """Why the period was revised; empty for its first version."""
    changes: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)
    """What the revision changed, table by table, from published numbers alone."""

    @property
    def name(self) -> str:
        """Its name, such as 2026-Q2-v1."""
        return f"{self.period}-v{self.number}"

    @property
    def folder(self) -> str:
        """Where its bundle is in that of the series."""
        return f"periods/{self.name}"

    @property
    def place(self) -> int:
        """Where its period comes in time."""
        return Period.read(self.period).number

    def described(self) -> dict[str, Any]:
        """The version as fields."""
        revised = {"reason": self.reason, "changes": list(self.changes)} if self.number > 1 else {}
        about = {"period": self.period, "version": self.number, "published": self.published}
        return {"name": self.name, **about, "folder": self.folder, **revised}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> "Version":
        """The version that a manifest describes."""
        return cls(
            period=described["period"],
            number=described["version"],
            published=described["published"],
            reason=described.get("reason", ""),
            changes=tuple(described.get("changes", ())),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesBundle:
    """What the bundle of a series has; nothing, where nothing was published yet."""

    folder: Path
    dimension: str = ""
    versions: tuple[Version, ...] = ()
    """In the order in which they were published."""

    @classmethod
    def open(cls, folder: Path) -> "SeriesBundle":
        """Read the versions of a series; a bundle of another kind is refused, and so is one that is not whole."""
        if not (folder / MANIFEST).is_file():
            return cls(folder=folder)
        try:
            series = read_manifest(folder).get("series")
        except BundleError as error:
            raise BundleError(
                error.where,
                expected=error.expected,
                found=error.found,
                do="restore the folder from a backup: it has periods that this run does not make again",
            ) from error
        if series is None:
            raise BundleError(
                f"bundle folder {folder}",
                expected="the bundle of a series, or a free name",
                found="a bundle of one period",
                do="choose another folder: `bundle = …` in the release file",
            )
        versions = tuple(map(Version.read, series["versions"]))
        return cls(folder=folder, dimension=series["dimension"], versions=versions)

    @property
    def current(self) -> tuple[Version, ...]:
        """The newest version of every period, in the order of time."""
        newest = {version.period: version for version in sorted(self.versions, key=lambda one: one.number)}
        return tuple(sorted(newest.values(), key=lambda one: one.place))

    def newest(self, period: str) -> Version | None:
        """The newest version of a period, if it was published."""
        return next((version for version in self.current if version.period == period), None)

    def structure(self, version: Version) -> dict[str, Any]:
        """What the bundle of a version says of itself."""
        return self._structures[version.name]

    @cached_property
    def _structures(self) -> dict[str, dict[str, Any]]:
        return {one.name: json.loads(read_listed(self.folder / one.folder, "structure.json")) for one in self.versions}

    def charges(self, version: Version) -> dict[str, str]:
        """The identifiers of the charges that paid for a version, by the name of the table."""
        manifest = json.loads((self.folder / version.folder / MANIFEST).read_text(encoding="utf-8"))
        return dict(manifest["charges"])

    def table(self, version: Version, name: str) -> dict[str, Any] | None:
        """A table of a version as its bundle describes it."""
        return next((about for about in self.structure(version)["tables"] if about["name"] == name), None)

    def spent(self, names: Sequence[str] | None = None) -> OverPeriods:
        """What all versions of each period cost together, of some tables or of all; an answer repeated costs once."""
        found = []
        for period in dict.fromkeys(version.period for version in sorted(self.versions, key=lambda one: one.place)):
            paid: dict[str, EmployerEmployee | None] = {}
            for version in self.versions:
                if version.period == period:
                    structure, charges = self.structure(version), self.charges(version)
                    for about in (*structure["tables"], *structure.get("cubes", ())):
                        if names is None or about["name"] in names:
                            paid[charges[about["name"]]] = read_described(about["guarantee"])
            bounds = [bound for bound in paid.values() if bound is not None]
            each = OverPeriods(
                population="", periods=tuple(PeriodSpent(period=period, guarantee=bound) for bound in bounds)
            )
            sum_of_all = each.together()  # none, too, where deltas add up to 1
            unbounded = len(paid) - (len(bounds) if sum_of_all is not None else 0)
            found.append(PeriodSpent(period=period, guarantee=sum_of_all, unbounded=unbounded))
        return OverPeriods(population="", periods=tuple(found))

    def same_as_published(self, version: Version, plan: Plan, charges: Mapping[str, str]) -> bool:
        """Whether a plan, paid for by these charges, publishes what a version has."""
        return self.charges(version) == dict(charges) and _shapes(described(plan)) == _shapes(self.structure(version))

    def refuse_unlike(self, plan: Plan) -> None:
        """Refuse a table that was published under the same name as something else: one name, one series."""
        series = plan.release.series
        if series is not None and self.versions and series.name != self.dimension:
            raise BundleError(
                f"bundle folder {self.folder}",
                expected=f"the time dimension of this series, '{self.dimension}'",
                found=f"'{series.name}'",
                do=f'write dimension = "{self.dimension}" under [series], or choose another folder',
            )
        asked = {about["name"]: about for about in described(plan)["tables"]}
        for version in self.current:
            for name, about in asked.items():
                before = self.table(version, name)
                if version.period != plan.release.about.period and before is not None and _kind(before) != _kind(about):
                    raise BundleError(
                        f"table '{name}'",
                        expected=f"the same table as in {version.period}: {_in_words(before)}",
                        found=_in_words(about),
                        do="give the other table another name: a name stands for one series of numbers",
                    )


def described(plan: Plan) -> dict[str, Any]:
    """What a plan would publish, as the structure of a bundle has it."""
    found: dict[str, Any] = {"tables": [], "cubes": []}
    for one in plan.statistics:
        found[one.folder].append(one.describe(plan))
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def _kind(about: Mapping[str, Any]) -> tuple[Any, ...]:
    names = [dimension["name"] for dimension in about["dimensions"]]
    return about["statistic"], about["unit"], names, about["where"]


def _in_words(about: Mapping[str, Any]) -> str:
    by = ", ".join(dimension["name"] for dimension in about["dimensions"])
    where = "".join(f", {name} = {' or '.join(codes)}" for name, codes in about["where"].items())
    return f"{about['unit']} by {by}{where}"


def _shapes(structure: Mapping[str, Any]) -> list[Any]:
    """What decides the published numbers beside the answers themselves."""
    keys = ("name", "totals", "nonnegative", "reconciled")
    return [
        *([*(about[key] for key in keys), _kind(about)] for about in structure["tables"]),
        *(about["name"] for about in structure.get("cubes", ())),
    ]


# What a revision changed, from published numbers alone.


def revision(before: Path, after: Path, unchanged: frozenset[str]) -> tuple[dict[str, Any], ...]:
    """What differs between two versions, table by table; `unchanged` are those that repeat the stored answer."""
    one, other = (json.loads(read_listed(folder, "structure.json")) for folder in (before, after))
    tables = [{about["name"]: about for about in structure["tables"]} for structure in (one, other)]
    found = []
    for name in dict.fromkeys([*tables[0], *tables[1]]):
        if name not in tables[0] or name not in tables[1]:
            found.append({"table": name, "what": "added" if name in tables[1] else "left out"})
        elif name in unchanged:
            found.append({"table": name, "what": "unchanged"})
        else:
            found.append({"table": name, **_moves((before, tables[0][name]), (after, tables[1][name]))})
    cubes = [about["name"] for about in other.get("cubes", ())]
    return (*found, *({"cube": n, "what": "unchanged" if n in unchanged else "changed"} for n in cubes))


def _moves(one: tuple[Path, Mapping[str, Any]], other: tuple[Path, Mapping[str, Any]]) -> dict[str, Any]:
    if any(about["files"].get("rows", 0) > MOST_ROWS for _, about in (one, other)):
        return {"what": "changed"}  # too large to be compared in memory
    by = [dimension["name"] for dimension in one[1]["dimensions"]]
    rows = [_plain(all_rows(*each)) for each in (one, other)]
    both = rows[0].join(rows[1], keys=by, join_type="inner", right_suffix=" after")
    before, after = (_numbers(both, name) for name in ("value", "value after"))
    change = np.nan_to_num(after - before)
    moved, beyond = change != 0, _beyond(both, change)
    order = np.lexsort((np.arange(len(both)), -np.abs(change)))[:LARGEST_MOVES]
    largest = [
        {
            **{name: both[name][at].as_py() for name in by},
            "before": both["value"][at].as_py(),
            "after": both["value after"][at].as_py(),
        }
        for at in map(int, order)
        if moved[at]
    ]
    return {
        "what": "changed",
        "cells": len(both),
        "moved": int(moved.sum()),
        "beyond_error": int(beyond.sum()),
        "largest": largest,
    }


def _beyond(both: pa.Table, change: Floats) -> Flags:
    """Which cells moved by more than the errors of both versions: their intervals do not meet."""
    names = both.column_names
    if {"low", "high"} <= set(names) and {"low after", "high after"} <= set(names):
        low, high, least, most = (
            np.nan_to_num(_numbers(both, name), nan=missing)
            for name, missing in (("low", -np.inf), ("high", np.inf), ("low after", -np.inf), ("high after", np.inf))
        )
        found: Flags = (change != 0) & ((least > high) | (low > most))
        return found
    if {"error", "error after"} <= set(names):
        width = _numbers(both, "error") + _numbers(both, "error after")
        return np.asarray(np.abs(change) > np.nan_to_num(width, nan=np.inf))
    return np.asarray(change != 0)


def _plain(rows: pa.Table) -> pa.Table:
    texts = {
        n: c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c
        for n, c in zip(rows.column_names, rows.columns, strict=True)
    }
    return pa.table(texts)


def _numbers(rows: pa.Table, column: str) -> Floats:
    numbers: Floats = pc.cast(rows[column], pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def revision_in_words(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a revision changed, a sentence for each table."""
    words = []
    for change in changes:
        name = change.get("table") or change.get("cube")
        if "moved" not in change:
            words.append(f"{name}: {change['what']}.")
            continue
        text = (
            f"{name}: {change['moved']:,} of {change['cells']:,} cells have another value, {change['beyond_error']:,} "
            "moved by more than their error."
        )
        for cell in change["largest"][:1]:
            codes = ", ".join(str(code) for key, code in cell.items() if key not in ("before", "after"))
            text += f" The largest move: {codes}, from {cell['before']:,} to {cell['after']:,}."
        words.append(text)
    return words
