"""Tables 3, 4, 6 and 7 in form: a synthetic survey of businesses, protected by releases under several keys."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet as pq

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.check import Checked, checked
from sfumato.economy.business.generate import BUSINESSES, EMPLOYEES, generate_business
from sfumato.economy.files import RELEASE
from sfumato.engine.question import TOTAL
from sfumato.errors import DataError
from sfumato.keys import new_key
from sfumato.methods.status import SUPPRESSED
from sfumato.methods.top_contributors import TopContributors
from sfumato.noise.factors import ONE
from sfumato.noise.randomness import OperatingSystem
from sfumato.plan import PlannedTable
from sfumato.release_file import load
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.chipperfield2019.impacts import Cell, PerturbedTable
from sfumato.reproduce.chipperfield2019.published_tables import ASKED, EVERYONE
from sfumato.reproduce.economy_folder import economy_folder

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
protect = {{ method = "top-contributors" }}
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
        replace(everyone, protected=ASKED, columns=columns + ', consent = "consent"'),
    )


def _release_text(form: _Form, folder: Path) -> str:
    attributes = dict.fromkeys(name for by in form.tables.values() for name in by)
    codelists = {name: json.dumps(str(folder.resolve() / "codelists" / f"{name}.csv")) for name in attributes}
    tables = [
        _TABLE.format(number=number, statistic=form.statistic, measure=form.measure, by=json.dumps(by))
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
    planned = {table.table.name: table for table in ready.plan.tables}
    asked = {name: table.question for name, table in planned.items()}
    first: dict[str, tuple[Cell, ...]] = {}
    by_key: dict[str, list[Floats]] = {name: [] for name in planned}
    for key in range(keys):
        tell(key)
        secret = replace(ready.plan.secret, key=Repeatable(seed, "chipperfield2019", key).key)
        for name, cells in ready.opened.answer(asked, secret).items():
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


def _estimates(planned: PlannedTable, cells: Cells) -> tuple[Floats, Floats]:
    """The estimates without and with perturbation; the latter are NaN where they are suppressed."""
    method = planned.method
    if not isinstance(method, TopContributors):
        raise TypeError("these tables are protected by their top contributors")
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
