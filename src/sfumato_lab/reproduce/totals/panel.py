"""Indicators of a federal panel: both protections by release files, their errors, growth over quarters, and attacks.

Nothing here knows how indicators are protected: releases are run and assessed, and what they publish is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato import assess, check, load, run
from sfumato.arrays import Floats, Integers
from sfumato.errors import SfumatoError
from sfumato.keys import new_key
from sfumato.noise.factors import ONE
from sfumato_lab.economy.federal.generate import generate_federal
from sfumato_lab.reproduce.totals.pay import ALL, LEAST, MOST, Measured, Progress, Setting
from sfumato_lab.reproduce.totals.readers import FORMAL, LEGACY, Attacked, growth, lattice, shape, size

PART, LATTICE = "panel", "lattice"
QUARTERS, LATTICE_QUARTERS = 10, 60
"""So many quarters have growth over eight of them: of jobs at the end of a quarter, the next one has to be known."""
LATTICE_PERSONS = 40_000
CAP = 75_000
"""The most that one job counts for in a quarter, in dollars."""
COUNTS = ("beginning", "end", "full_quarter")
PAYROLLS = ("payroll", "full_quarter_payroll")
GROWN = ("end", "payroll")
"""The indicators whose growth is looked at."""
CLASSES = ((1, "1-9 jobs"), (10, "10-99"), (100, "100-999"), (1_000, "1,000 and more"))
"""Classes of cells by their jobs at the end of the quarter: from how many on, and what they are called."""
TABLES: Mapping[str, tuple[str, ...]] = {"state × agency": ("state", "agency"), "state": ("state",)}
_NAMES = {"state × agency": "cells", "state": "states"}

_DATA = """
[data]
jobs = {{ path = "histories.parquet", worker = "worker", workplace = "employer", period = "quarter", \
first = "{first}", last = "{last}", earnings = "earnings" }}
workplaces = {{ path = "employers.parquet", key = "employer" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["state", "agency", "industry"]

[data.attributes]
state = {{ codelist = "codelists/state.csv" }}
agency = {{ codelist = "codelists/agency.csv" }}
sex = {{ codelist = "codelists/sex.csv" }}
education = {{ codelist = "codelists/education.csv" }}

[data.measures]
earnings = {{ unit = "dollars", cap = {cap} }}
"""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A table of indicators that both releases publish."""

    name: str
    by: tuple[str, ...]
    indicators: tuple[str, ...]

    def section(self, protect: str) -> str:
        """The table in a release file."""
        by, indicators = (", ".join(f'"{one}"' for one in some) for some in ((*self.by, "quarter"), self.indicators))
        return (
            f'\n[[table]]\nname = "{self.name}"\nindicators = [{indicators}]\nby = [{by}]\nprotect = {{ {protect} }}\n'
        )


def release_files(folder: Path, tables: Sequence[Asked], setting: Setting, quarters: Sequence[str]) -> dict[str, Path]:
    """Write the release files of both protections; every table spends epsilon in each quarter."""
    data = _DATA.format(first=quarters[0], last=quarters[-1], cap=CAP)
    spent = setting.epsilon * len(quarters)
    figures = f"alpha = {float(setting.alpha):g}, epsilon = {float(spent * len(tables)):g}"
    budget = f'budget = {{ {figures}, totals = ["earnings"] }}'
    heads = {LEGACY: 'key = "legacy.key"', FORMAL: budget}
    protect = {
        # As the legacy was: in whole numbers, and with all it has.
        LEGACY: 'method = "noise-infusion", rounding = 1, earnings_rounding = 1',
        FORMAL: f'method = "smooth-pareto", epsilon = {float(spent):g}',
    }
    files = {}
    for method, head in heads.items():
        files[method] = folder / f"{method}.toml"
        text = f'[release]\ntitle = "Indicators, {method}"\nperiod = "{quarters[0]} to {quarters[-1]}"\n{head}\n'
        text += f'ledger = "{method}.sqlite"\nbundle = "{method}"\n{data}'
        files[method].write_text(text + "".join(table.section(protect[method]) for table in tables), encoding="utf-8")
    return files


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Numbers of one table, by cell, quarter and indicator; NaN where there is none."""

    values: Mapping[str, NDArray[np.float64]]
    """True ones, and what each method publishes."""
    establishments: Integers
    """By cell: of the last quarter that tells them."""
    indicators: tuple[str, ...]
    workplace: Integers
    """The workplace cell that every cell is part of."""

    def of(self, method: str, *codes: str) -> NDArray[np.float64]:
        """The values of some indicators, by cell, quarter and indicator."""
        return self.values[method][:, :, [self.indicators.index(code) for code in codes]]


TRUE = "true"


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """What both releases published, why the formal one did not where it did not, and what its cap cuts off."""

    tables: Mapping[str, Found]
    reason: str = ""
    share_cut: float | None = None


def publish(
    folder: Path, tables: Sequence[Asked], setting: Setting, quarters: Sequence[str], progress: Progress
) -> Published:
    """Run the releases of both protections; the truth is what the office is told in the report of the legacy."""
    files = release_files(folder, tables, setting, quarters)
    if not (folder / "legacy.key").exists():
        new_key(folder / "legacy.key", a=1 + LEAST, b=1 + MOST)
    progress("indicators, legacy", 0, 2)
    release = load(files[LEGACY])
    bundles = {LEGACY: run(release).bundle}
    report = assess(release).report
    progress("indicators, formal", 1, 2)
    reason, cut = "", None
    try:
        formal = load(files[FORMAL])
        cut = check(formal).cut
        bundles[FORMAL] = run(formal).bundle
    except SfumatoError as error:
        reason = f"{error.where}: expected {error.expected}"
    found = {
        table.name: _found(table, quarters, pq.read_table(report.with_name(f"{table.name}.parquet")), bundles)
        for table in tables
    }
    share = cut["earnings"].figures()["share_of_total"] if cut and "earnings" in cut else None
    return Published(tables=found, reason=reason, share_cut=share)


def _found(asked: Asked, quarters: Sequence[str], truth: pa.Table, bundles: Mapping[str, Path]) -> Found:
    read = {method: pq.read_table(bundle / f"tables/{asked.name}.parquet") for method, bundle in bundles.items()}
    keys = {name: list(dict.fromkeys(truth[name].cast(pa.string()).to_pylist())) for name in asked.by}

    def places(table: pa.Table) -> tuple[Integers, Integers, Integers]:
        cell = np.zeros(len(table), dtype=np.int64)
        for name, codes in keys.items():
            cell = cell * len(codes) + _among(table[name], codes)
        return cell, _among(table["quarter"], quarters), _among(table["indicator"], asked.indicators)

    used = np.unique(places(truth)[0])
    shape_of = (len(used), len(quarters), len(asked.indicators))

    def laid_out(table: pa.Table, column: str) -> NDArray[np.float64]:
        cell, quarter, indicator = places(table)
        at = np.searchsorted(used, cell)
        inside = (indicator >= 0) & (at < len(used))
        inside &= used[np.minimum(at, len(used) - 1)] == cell
        whole = np.full(shape_of, np.nan)
        values = table[column].to_numpy(zero_copy_only=False).astype(np.float64)
        whole[at[inside], quarter[inside], indicator[inside]] = values[inside]
        return whole

    values = {method: laid_out(table, "value") for method, table in read.items()}
    values[TRUE] = np.where(np.isnan(values[LEGACY]), np.nan, laid_out(truth, "true"))
    told = laid_out(read[LEGACY], "establishments")
    outside = 1
    for name in asked.by:
        outside *= 1 if name in ("state", "agency") else len(keys[name])
    return Found(
        values=values,
        establishments=np.nan_to_num(np.nanmax(told.reshape(len(used), -1), axis=1)).astype(np.int64),
        indicators=asked.indicators,
        workplace=used // outside,
    )


def _among(column: Any, codes: Sequence[str]) -> Integers:
    """The place of every value among some codes; −1 where it is none of them."""
    encoded = column.combine_chunks()
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    place = {code: at for at, code in enumerate(codes)}
    known = np.array([place.get(code, -1) for code in encoded.dictionary.to_pylist()], dtype=np.int64)
    found: Integers = known[encoded.indices.to_numpy()]
    return found


# Errors and growth.


def evaluate(
    folder: Path, setting: Setting, quarters: Sequence[str], progress: Progress
) -> tuple[list[Measured], list[Attacked], Published]:
    """Errors and growth of both protections by the size of a cell, and the attacks on single employers."""
    tables = [Asked(name=_NAMES[table], by=by, indicators=(*COUNTS, *PAYROLLS)) for table, by in TABLES.items()]
    found = publish(folder, tables, setting, quarters, progress)
    measured = [
        one
        for table, name in _NAMES.items()
        for one in (
            *_errors(table, found.tables[name], found.reason),
            *_growth(table, found.tables[name], found.reason),
        )
    ]
    return measured, list(_attacks(found.tables["cells"], found.reason)), found


def _errors(table: str, found: Found, reason: str) -> Iterator[Measured]:
    """The share by which values are off, of all that is truly there, over all quarters."""
    jobs = found.of(TRUE, "end")[:, :, 0]
    for indicator in found.indicators:
        true = found.of(TRUE, indicator)[:, :, 0]
        for label, some in _classes(jobs, ~np.isnan(true)):
            for method in (FORMAL, LEGACY):
                off, told = None, ""
                if method in found.values:
                    off = float(np.nansum(np.abs(found.of(method, indicator)[:, :, 0] - true)[some]) / true[some].sum())
                else:
                    told = reason
                about = {"table": table, "size_class": label, "indicator": indicator, "reason": told}
                yield Measured(
                    part=PART, quantity="error_share", method=method, ours=off, cells=int(some.sum()), **about
                )


def _growth(table: str, found: Found, reason: str) -> Iterator[Measured]:
    """By how many points published growth from a quarter to the next is off: in the middle, and in one of ten."""
    jobs = found.of(TRUE, "end")[:, :, 0]
    for indicator in GROWN:
        true = found.of(TRUE, indicator)[:, :, 0]
        grown = _rates(true)
        for label, some in _classes(jobs[:, :-1], ~np.isnan(grown)):
            for method in (FORMAL, LEGACY):
                told = "" if method in found.values else reason
                off: Any = np.abs(_rates(found.of(method, indicator)[:, :, 0]) - grown)[some] if not told else []
                # A cell without a growth rate, as nothing or less was published before, is as far off as can be.
                off = np.where(np.isnan(off), np.inf, off) if len(off) else off
                for quantity, share in (("growth_off", 0.5), ("growth_off_90", 0.9)):
                    figure = float(np.quantile(off, share, method="lower")) if len(off) else None
                    known = figure is not None and np.isfinite(figure)
                    about = {"table": table, "size_class": label, "indicator": indicator, "reason": told}
                    yield Measured(
                        part=PART,
                        quantity=quantity,
                        method=method,
                        ours=figure if known else None,
                        cells=int(some.sum()),
                        **about,
                    )


def _rates(values: Floats) -> Floats:
    """Growth from every quarter to the next, NaN where there is none."""
    before, after = values[:, :-1], values[:, 1:]
    rates: Floats = np.divide(after, before, out=np.full(before.shape, np.nan), where=before > 0) - 1
    return rates


def _classes(jobs: Floats, known: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """All cells in which something is known, and those of each class by their jobs."""
    yield ALL, known
    place = np.searchsorted([begin for begin, _ in CLASSES], np.nan_to_num(jobs, nan=-1.0), side="right") - 1
    for at, (_, label) in enumerate(CLASSES):
        some = known & (place == at)
        if some.any():
            yield label, some


# Attacks.


def _attacks(found: Found, reason: str) -> Iterator[Attacked]:
    """Ratio, size and growth of the payrolls of employers that have a cell to themselves."""
    true = found.of(TRUE, *PAYROLLS)
    for method in (LEGACY, FORMAL):
        if method not in found.values:
            yield from (
                Attacked(part=PART, attack=of, method=method, reason=reason) for of in ("ratio", "size", "growth")
            )
            continue
        published = found.of(method, *PAYROLLS)
        whole = ~np.isnan(true).any(axis=2) & ~np.isnan(published).any(axis=2)
        establishments = np.broadcast_to(found.establishments[:, None], whole.shape)
        told = shape(PART, method, published[whole], true[whole], establishments[whole])
        yield replace(told, attack="ratio")
        yield size(PART, method, published[whole], true[whole], establishments[whole])
        both = ~np.isnan(true[:, :-1, :1]).any(axis=2) & ~np.isnan(true[:, 1:, :1]).any(axis=2)
        both &= ~np.isnan(published[:, :-1, 0]) & ~np.isnan(published[:, 1:, 0])
        periods = [[of[:, :-1, :1][both], of[:, 1:, :1][both]] for of in (published, true)]
        yield growth(PART, method, periods[0], periods[1], establishments[:, :-1][both])


def lattice_attacks(
    folder: Path, setting: Setting, progress: Progress, *, persons: int = LATTICE_PERSONS, seed: int = 1
) -> list[Attacked]:
    """Look for the factors of employers behind sixty quarters of jobs by sex and education."""
    quarters = generate(folder, persons=persons, quarters=LATTICE_QUARTERS, seed=seed)
    asked = Asked(name="stocks", by=("state", "agency", "sex", "education"), indicators=COUNTS)
    published = publish(folder, [asked], setting, quarters, progress)
    found = published.tables["stocks"]
    within = int(LEAST * ONE), int(MOST * ONE)
    single = np.flatnonzero(found.establishments == 1)
    told = []
    for method in (LEGACY, FORMAL):
        if method not in found.values:
            told.append(Attacked(part=LATTICE, attack="lattice", method=method, reason=published.reason))
            continue
        series: dict[int, list[Integers]] = {}
        truth: dict[int, list[Integers]] = {}
        for cell in single:
            values, true = found.values[method][cell].ravel(), found.values[TRUE][cell].ravel()
            some = ~np.isnan(values) & ~np.isnan(true)
            for whole, one in ((series, values), (truth, true)):
                whole.setdefault(int(found.workplace[cell]), []).append(one[some].astype(np.int64))
        told.append(lattice(LATTICE, method, series, truth, within))
    return told


def generate(folder: Path, *, persons: int, quarters: int, seed: int) -> list[str]:
    """Make a panel of so many quarters, if there is none; the codes of these."""
    if not (folder / "release.toml").exists():
        generate_federal(folder, persons=persons, quarters=quarters, seed=seed)
    return [f"{2010 + at // 4}-Q{at % 4 + 1}" for at in range(quarters)]
