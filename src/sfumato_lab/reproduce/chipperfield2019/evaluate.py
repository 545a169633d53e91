"""Tables 1, 3, 4, 6 and 7 in form: the worked example, and a synthetic survey."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.checking import Checked, checked
from sfumato.engine.data import OpenRecords
from sfumato.errors import DataError
from sfumato.keys import new_key
from sfumato.method import SUPPRESSED
from sfumato.noise.factors import ONE
from sfumato.noise.randomness import OperatingSystem, Repeatable
from sfumato.release import load
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.totals.perturbation import contributions, perturbation
from sfumato.statistics.totals.question import TOTAL
from sfumato.statistics.totals.statistic import Totals
from sfumato_lab.economy.business.generate import BUSINESSES, EMPLOYEES, generate_business
from sfumato_lab.economy.files import RELEASE
from sfumato_lab.reproduce.chipperfield2019.published import (
    APPROACHES,
    ASKED,
    ASKED_CELLS,
    EVERYONE,
    SPREAD,
    TABLE_1,
    TABLE_1_PERTURBATION,
    TABLE_1_RELEASED,
    TABLE_1_TOTAL,
    TABLE_6_VALUES,
    published_impacts,
)
from sfumato_lab.reproduce.page import economy_folder

# Table 1: the perturbation of one total, contributor by contributor.


@dataclass(frozen=True, kw_only=True)
class Moved:
    """One number of the table in whole dollars, beside ours."""

    what: str
    published: int
    ours: int


def worked_example() -> Iterator[Moved]:
    """Every number that the method gives in Table 1."""
    values, weights = (np.array([[getattr(line, name) for line in TABLE_1]]) for name in ("value", "weight"))
    inputs = {
        "values": values,
        "weights": weights,
        "magnitudes": np.array([[line.magnitude for line in TABLE_1]]),
        "directions": np.array([[line.direction for line in TABLE_1]]),
        "noise": np.array([[line.noise for line in TABLE_1]]),
    }
    for number, (line, moved) in enumerate(zip(TABLE_1, contributions(**inputs)[0], strict=True), 1):
        if line.magnitude:
            yield Moved(what=f"contributor {number}", published=line.moved, ours=round(moved))
    total, added = round(float((values * weights).sum())), round(float(perturbation(**inputs)[0]))
    yield Moved(what="perturbation", published=TABLE_1_PERTURBATION, ours=added)
    yield Moved(what="total", published=TABLE_1_TOTAL, ours=total)
    # The table adds what it prints, whole dollars; unrounded it is two thirds of a dollar more.
    yield Moved(what="released total", published=TABLE_1_RELEASED, ours=total + added)


def noises_out_of_range() -> list[float]:
    """The values of h in the table that a noise on 1 ± b cannot take."""
    return [line.noise / ONE for line in TABLE_1 if abs(line.noise / ONE - 1) > SPREAD]


# Utility by cell: how far perturbation moved estimates, in percent, and what that comes to in a table.

WITHIN = (1, 5)
"""Percentages; what share of the cells is moved by no more?"""
QUANTITIES = {
    "mean_absolute_impact": "mean impact, ±%",
    "median_absolute_impact": "median impact, ±%",
    **{f"share_within_{most}_percent": f"cells moved by at most {most}%" for most in WITHIN},
}
"""What a table's impacts come to, in words."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table on synthetic data, under the first key."""

    codes: dict[str, str]
    true: float
    perturbed: float | None
    """None where the cell is suppressed."""
    error: float
    """The relative standard error of its total by sampling, in percent."""

    @property
    def impact(self) -> float | None:
        """The percentage by which perturbation moved the cell."""
        return None if self.perturbed is None or self.true == 0 else 100 * (self.perturbed / self.true - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbedTable:
    """A table in the form of a published one, with some or all of its contributors protected."""

    number: int
    protected: str
    """Everyone, or those that asked."""
    labels: dict[str, dict[str, str]]
    """Of the codes of each dimension."""
    cells: tuple[Cell, ...]
    by_key: tuple[Floats, ...]
    """The impacts of all cells that are not suppressed, under one key after the other; one key is one draw."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every cell, and for every figure that the table comes to."""
        about: dict[str, Any] = {"table": self.number}
        if self.number in (6, 7):
            about["approach"] = APPROACHES[self.protected]
        for cell in self.cells:
            yield {
                "quantity": "impact",
                **about,
                **cell.codes,
                "published": None,
                "ours": cell.impact,
                "true": cell.true,
                "perturbed": cell.perturbed,
            }
        published = absolute_figures(published_impacts(self.number, self.protected))
        for quantity in QUANTITIES:
            figures = self.figures(quantity)
            yield {
                "quantity": quantity,
                **about,
                "published": published.get(quantity),
                "ours": float(np.mean(figures)) if figures else None,
                "low": min(figures, default=None),
                "high": max(figures, default=None),
                "keys": len(self.by_key),
            }
        if self.number == 6:
            printed = TABLE_6_VALUES.get(self.protected)
            gap = None if printed is None else printed[-1] - sum(printed[:-1])
            yield {"quantity": "gap_of_total", **about, "published": gap, "ours": self.gap}

    @property
    def gap(self) -> float | None:
        """The published total less the sum of published cells, of a table by one attribute; None if some are hidden."""
        values = [cell.perturbed for cell in self.cells]
        known = [value for value in values if value is not None]
        return known[-1] - sum(known[:-1]) if len(known) == len(values) else None

    def figures(self, quantity: str) -> list[float]:
        """What the impacts come to under each key."""
        return [figures[quantity] for impacts in self.by_key if (figures := absolute_figures(impacts))]


def absolute_figures(impacts: Sequence[float] | Floats) -> dict[str, float]:
    """The mean and median size of impacts, and the shares of small ones; nothing where there are none.

    >>> absolute_figures([0.5, -1.0, 3.0, -7.5])["share_within_1_percent"]
    0.5
    """
    if len(impacts) == 0:
        return {}
    sizes = np.abs(np.asarray(impacts, dtype=np.float64))
    return {
        "mean_absolute_impact": float(sizes.mean()),
        "median_absolute_impact": float(np.median(sizes)),
        **{f"share_within_{most}_percent": float((sizes <= most).mean()) for most in WITHIN},
    }


# Tables 3, 4, 6 and 7 in form: a synthetic survey of businesses, protected by releases under several keys.

Progress = Callable[[str, int, int], None]

_RELEASE = """\
[release]
title = "Tables in the form of Chipperfield and others (2019)"
period = "2025"
key = "sfumato.key"

[data]
records = {{ path = {records}, {columns} }}

[data.attributes]
{attributes}

[data.measures]
{measure} = {{ unit = "dollars", minimum = 0 }}

{tables}
"""
# The magnitudes of section 4.1 are the method's own.
_TABLE = """\
[[table]]
name = "{number}"
{statistic} = "{measure}"
by = {by}
totals = true
decimals = 1
protect = {{ method = "{method}" }}
"""


@dataclass(frozen=True, kw_only=True)
class _Form:
    """Which tables to make from which records."""

    protected: str
    records: str
    columns: str
    measure: str
    statistic: str
    tables: Mapping[int, tuple[str, ...]]
    method: str = "top-contributors"


@dataclass(frozen=True, kw_only=True)
class SurveyTables:
    """All tables on a survey of so many businesses and employees."""

    businesses: int
    employees: int
    keys: int
    tables: tuple[PerturbedTable, ...]

    def table(self, number: int, protected: str = EVERYONE) -> PerturbedTable:
        """One of them, by its number in the paper and who is protected."""
        return next(table for table in self.tables if (table.number, table.protected) == (number, protected))


def survey_tables(
    *, data: Path | None, businesses: int, keys: int, seed: int, progress: Progress = lambda *_: None
) -> SurveyTables:
    """Make the survey, or take the one in `data`, and protect its tables under so many keys."""
    with _survey(data, businesses, seed, progress) as folder, TemporaryDirectory() as aside:
        new_key(Path(aside) / "sfumato.key")
        forms = _forms(folder)
        tables: list[PerturbedTable] = []
        for place, form in enumerate(forms):
            file = Path(aside) / f"release-{place}.toml"
            file.write_text(_release_text(form, folder), encoding="utf-8")
            with checked(load(file)) as ready:
                tables += _protected(
                    ready,
                    form,
                    keys=keys,
                    seed=seed,
                    tell=lambda key, place=place: progress(  # type: ignore[misc]
                        "protecting tables", place * keys + key, len(forms) * keys
                    ),
                )
        counted = [pq.read_metadata(folder / name).num_rows for name in (BUSINESSES, EMPLOYEES)]
    return SurveyTables(businesses=counted[0], employees=counted[1], keys=keys, tables=tuple(tables))


def _survey(data: Path | None, businesses: int, seed: int, progress: Progress) -> AbstractContextManager[Path]:
    """The folder of the survey."""
    if data is not None and (data / RELEASE).exists() and not all((data / n).exists() for n in (BUSINESSES, EMPLOYEES)):
        raise DataError(
            f"data {data}",
            expected="a survey as `sfumato economy business` writes it",
            found="another kind of data",
            do="name such a folder with --data, or leave --data out",
        )

    def make(folder: Path) -> None:
        tell = partial(progress, "making businesses")
        generate_business(folder, businesses=businesses, seed=seed, progress=tell)

    return economy_folder(data, make)


def _forms(folder: Path) -> tuple[_Form, ...]:
    columns = 'unit = "business", weight = "weight"'
    if "rw_1" in pq.read_schema(folder / BUSINESSES).names:
        columns += ', replicates = { columns = "rw_*", rule = "jackknife" }'
    everyone = _Form(
        protected=EVERYONE,
        records=BUSINESSES,
        columns=columns,
        measure="turnover",
        statistic="total",
        tables={6: ("state",), 7: ("industry",)},
    )
    return (
        _Form(
            protected=EVERYONE,
            records=EMPLOYEES,
            columns='unit = "employee", weight = "weight"',
            measure="wage",
            statistic="mean",
            tables={3: ("occupation", "sex"), 4: ("industry", "sex")},
        ),
        everyone,
        replace(everyone, protected=ASKED, columns=columns + ', consent = "consent"', method="perturbed-values"),
        replace(everyone, protected=ASKED_CELLS, columns=columns + ', consent = "consent"'),
    )


def _release_text(form: _Form, folder: Path) -> str:
    attributes = dict.fromkeys(name for by in form.tables.values() for name in by)
    codelists = {name: json.dumps(str(folder.resolve() / "codelists" / f"{name}.csv")) for name in attributes}
    tables = [
        _TABLE.format(
            number=number, statistic=form.statistic, measure=form.measure, by=json.dumps(by), method=form.method
        )
        for number, by in form.tables.items()
    ]
    return _RELEASE.format(
        records=json.dumps(str(folder.resolve() / form.records)),
        columns=form.columns,
        attributes="\n".join(f"{name} = {{ codelist = {path} }}" for name, path in codelists.items()),
        measure=form.measure,
        tables="\n".join(tables),
    )


def _protected(
    ready: Checked, form: _Form, *, keys: int, seed: int, tell: Callable[[int], None]
) -> Iterator[PerturbedTable]:
    """The tables of a release under one key after the other."""
    if ready.plan.secret is None:
        raise ValueError("a release of perturbed tables has a key")
    planned = {table.name: table for table in ready.plan.of_kind(Totals)}
    first: dict[str, tuple[Cell, ...]] = {}
    by_key: dict[str, list[Floats]] = {name: [] for name in planned}
    for key in range(keys):
        tell(key)
        secret = replace(ready.plan.secret, key=Repeatable(seed, "chipperfield2019", key).key)
        for name, cells in Totals.tabulate(planned, cast(OpenRecords, ready.opened), secret):
            true, perturbed = _estimates(planned[name], cells)
            first.setdefault(name, tuple(_cells(cells, true, perturbed)))
            by_key[name].append(_impacts(true, perturbed))
    for number, by in form.tables.items():
        labels = {name: _labels(ready, name) for name in by}
        yield PerturbedTable(
            number=number,
            protected=form.protected,
            labels=labels,
            cells=first[str(number)],
            by_key=tuple(by_key[str(number)]),
        )


def _estimates(planned: PublishedTable, cells: Cells) -> tuple[Floats, Floats]:
    """The estimates without and with perturbation; the latter are NaN where they are suppressed."""
    method: Any = planned.method
    unit = 10.0 ** -(planned.table.decimals if planned.table.statistic == "mean" else 0)
    answer = method.protect(cells, OperatingSystem())
    shown = np.where(answer["status"] == SUPPRESSED, np.nan, answer["value"] * unit)
    return method.true_value(cells) * unit, shown


def _impacts(true: Floats, perturbed: Floats) -> Floats:
    told = (true != 0) & ~np.isnan(perturbed)
    impacts: Floats = 100 * (perturbed[told] / true[told] - 1)
    return impacts


def _cells(cells: Cells, true: Floats, perturbed: Floats) -> Iterator[Cell]:
    total = cells["total"] + cells["total_part"] / ONE
    shares = np.divide(cells["sampling_error"] / ONE, np.abs(total), out=np.zeros(len(total)), where=total != 0)
    codes = {d.name: [d.codes[place] for place in cells.codes(d.name)] for d in cells.dimensions}
    for place in range(len(cells)):
        yield Cell(
            codes={name: column[place] for name, column in codes.items()},
            true=float(true[place]),
            perturbed=None if np.isnan(perturbed[place]) else float(perturbed[place]),
            error=100 * float(shares[place]),
        )


def _labels(ready: Checked, name: str) -> dict[str, str]:
    codelist = ready.plan.codelists[name]
    labels = dict(zip(codelist.codes, codelist.labels, strict=True))
    return {**labels, TOTAL: "All"}
