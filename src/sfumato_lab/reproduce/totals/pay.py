"""Totals of pay in the economy of the demo: both protections, their errors by size of the cell, and the attacks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.noise.factors import ONE, Factors
from sfumato.noise.keyed import hashes
from sfumato.noise.randomness import Repeatable
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato_lab.reproduce.totals.readers import FORMAL, LEGACY, Attacked, growth, shape, size

PART = "pay"
TABLES: Mapping[str, tuple[str, ...]] = {
    "place × industry × ownership": ("place", "industry", "ownership"),
    "place": ("place",),
    "industry": ("industry",),
}
CLASSES = ((1, "1-9 jobs"), (10, "10-99"), (100, "100-999"), (1_000, "1,000-9,999"), (10_000, "10,000 and more"))
"""Classes of cells by their jobs: from how many on, and what they are called."""
ALL = "all"
LEAST, MOST = Fraction("0.1"), Fraction("0.25")
"""How far factors are from one."""
CAP_AT = 0.999
"""The share of jobs that earn no more than the cap: an office takes a number that it knows without the data."""
_WITH_CUT = "with the cut"
_SPREAD = 0.1
"""Of the logarithm of what establishments pay in a period, over what they paid in the one before."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is spent, and how often noise and keys are drawn."""

    alpha: Fraction = Fraction("0.1")
    epsilon: Fraction = Fraction(2)
    """Of each table, and of each quarter of a panel."""
    trials: int = 20


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure: what it is, of which table and cells, and by which method."""

    part: str
    quantity: str
    table: str
    size_class: str
    method: str
    ours: float | None
    indicator: str = ""
    cells: int = 0
    reason: str = ""

    def row(self) -> dict[str, Any]:
        """For machines."""
        names = ("quantity", "part", "table", "indicator", "size_class", "method", "ours", "cells")
        found = {name: getattr(self, name) for name in names}
        return {**found, "published": None, **({"reason": self.reason} if self.reason else {})}


@dataclass(frozen=True, kw_only=True, eq=False)
class Pay:
    """What the jobs of every establishment pay, by sex of the worker: of a real economy it would be confidential."""

    pay: Integers
    """By establishment and sex."""
    cut: Integers
    """The same of what is left after the cut."""
    jobs: Integers
    """By establishment."""
    codes: Mapping[str, Integers]
    """The place of every establishment among the codes of an attribute."""
    cap: int

    @classmethod
    def read(cls, folder: Path) -> "Pay":
        """Add up the jobs of an economy by establishment and sex."""
        jobs = pq.read_table(folder / "jobs.parquet", columns=["worker", "workplace", "earnings"])
        workers = pq.read_table(folder / "workers.parquet", columns=["worker", "sex"])
        places = pq.read_table(folder / "workplaces.parquet")
        key = places["workplace"].to_numpy()
        order = np.argsort(key)
        unit = order[np.searchsorted(key, jobs["workplace"].to_numpy(), sorter=order)]
        who = workers["worker"].to_numpy()
        by_worker = np.argsort(who)
        sex = _codes(workers["sex"])[by_worker[np.searchsorted(who, jobs["worker"].to_numpy(), sorter=by_worker)]]
        earned = jobs["earnings"].to_numpy().astype(np.int64)
        cap = int(np.quantile(earned, CAP_AT))

        def added(values: Integers) -> Integers:
            whole = np.bincount(2 * unit + sex, weights=values, minlength=2 * len(key))
            return np.rint(whole).astype(np.int64).reshape(-1, 2)

        return cls(
            pay=added(earned),
            cut=added(np.minimum(earned, cap)),
            jobs=np.bincount(unit, minlength=len(key)),
            codes={name: _codes(places[name]) for name in ("place", "industry", "ownership")},
            cap=cap,
        )

    @property
    def share_cut(self) -> float:
        """The share of all pay that is above the cap."""
        return 1 - float(self.cut.sum()) / float(self.pay.sum())

    def cells(self, names: Sequence[str]) -> Integers:
        """The cell of every establishment, numbered from 0: only cells with an establishment have a number."""
        number = np.zeros(len(self.jobs), dtype=np.int64)
        for name in names:
            number = number * (int(self.codes[name].max()) + 1) + self.codes[name]
        found: Integers = np.unique(number, return_inverse=True)[1].reshape(-1)
        return found

    def grown(self, seed: int) -> "Pay":
        """The same a period later: what every establishment pays grew or shrank at its own rate, for both sexes."""
        stream = np.random.Generator(np.random.Philox(key=np.frombuffer(Repeatable(seed, "grown").key, np.uint64)))
        rate = np.exp(stream.normal(0, _SPREAD, len(self.jobs)))[:, None]
        pay, cut = (np.rint(column * rate).astype(np.int64) for column in (self.pay, self.cut))
        return Pay(pay=pay, cut=np.minimum(cut, pay), jobs=self.jobs, codes=self.codes, cap=self.cap)


def errors(pay: Pay, setting: Setting, seed: int, progress: Progress) -> Iterator[Measured]:
    """How far totals are off, all cells together and by the jobs of a cell, as a share of what is paid there.

    Those of the formal method are of what noise does, and with what the cap cuts off besides.
    """
    names = hashes([str(unit) for unit in range(len(pay.jobs))])
    paid, left = (column.sum(axis=1) for column in (pay.pay, pay.cut))
    for table, attributes in TABLES.items():
        cell = pay.cells(attributes)
        true, jobs = _added(paid, cell), _added(pay.jobs, cell)
        off = {method: np.zeros(len(true)) for method in (FORMAL, LEGACY, _WITH_CUT)}
        formal = SmoothPareto(alpha=setting.alpha, epsilon=setting.epsilon, floor=pay.cap)
        counted = _as_cells(_added(left, cell), largest=_largest(left, cell))
        chance = Repeatable(seed, "totals", table)
        for trial in range(setting.trials):
            progress(f"pay by {table}", trial, setting.trials)
            drawn = formal.protect(counted, chance)["value"]
            off[FORMAL] += np.abs(drawn - counted["count"]) / setting.trials
            off[_WITH_CUT] += np.abs(drawn - true) / setting.trials
            factors = Factors(key=Repeatable(seed, "key", trial).key, least=LEAST, most=MOST).of(names) / ONE
            off[LEGACY] += np.abs(np.bincount(cell, weights=paid * factors) - true) / setting.trials
        for label, some in _classes(jobs):
            whole = float(true[some].sum())
            shares = {method: float(error[some].sum()) / whole for method, error in off.items() if whole}
            figure = partial(Measured, part=PART, table=table, size_class=label, cells=int(some.sum()))
            for method in (FORMAL, LEGACY) if shares else ():
                yield figure(quantity="error_share", method=method, ours=shares[method])
            if shares:
                yield figure(quantity="error_share_with_cut", method=FORMAL, ours=shares[_WITH_CUT])
                yield figure(quantity="error_ratio", method=FORMAL, ours=shares[FORMAL] / shares[LEGACY])


def attacks(pay: Pay, setting: Setting, seed: int) -> Iterator[Attacked]:
    """Shape, size and growth of the establishments that have a cell to themselves, by pay of women and of men."""
    cell = pay.cells(TABLES["place × industry × ownership"])
    periods = (pay, pay.grown(seed))
    establishments = np.bincount(cell)
    true = [np.stack([_added(one.pay[:, sex], cell) for sex in (0, 1)], axis=1) for one in periods]
    for method, publish in ((LEGACY, _legacy), (FORMAL, _formal)):
        published = publish(periods, cell, setting, seed)
        yield shape(PART, method, published[0], true[0], establishments)
        yield size(PART, method, published[0], true[0], establishments)
        yield growth(PART, method, published, true, establishments)


def _legacy(periods: Sequence[Pay], cell: Integers, setting: Setting, seed: int) -> list[Floats]:  # noqa: ARG001
    """Both periods with the same factor of every establishment, in whole numbers."""
    names = hashes([str(unit) for unit in range(len(cell))])
    factors = Factors(key=Repeatable(seed, "attacked").key, least=LEAST, most=MOST).of(names) / ONE
    return [
        np.rint(np.stack([np.bincount(cell, weights=one.pay[:, sex] * factors) for sex in (0, 1)], axis=1))
        for one in periods
    ]


def _formal(periods: Sequence[Pay], cell: Integers, setting: Setting, seed: int) -> list[Integers]:
    """Both periods with noise of their own, both sexes of a cell together."""
    method = VectorPareto(alpha=setting.alpha, epsilon=setting.epsilon, worker_cells=2, floor=periods[0].cap)
    chance, found = Repeatable(seed, "attacked"), []
    for one in periods:
        count = np.stack([_added(one.cut[:, sex], cell) for sex in (0, 1)], axis=1)
        largest = np.repeat(_largest(one.cut.sum(axis=1), cell), 2)
        columns = {"count": count.reshape(-1), "largest_employer": largest}
        by = (
            Dimension(name="cell", codes=tuple(map(str, range(len(count)))), public=True),
            Dimension(name="sex", codes=("F", "M"), public=False),
        )
        cells = Cells(dimensions=by, positions=np.arange(2 * len(count)), columns=columns)
        found.append(method.protect(cells, chance)["value"].reshape(-1, 2))
    return found


def _classes(jobs: Integers) -> Iterator[tuple[str, Any]]:
    """All cells, and those of each class by their jobs."""
    yield ALL, np.ones(len(jobs), dtype=bool)
    place = np.searchsorted([begin for begin, _ in CLASSES], jobs, side="right") - 1
    for at, (_, label) in enumerate(CLASSES):
        if (place == at).any():
            yield label, place == at


def _codes(column: Any) -> Integers:
    found: Integers = column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return found


def _added(values: Integers, cell: Integers) -> Integers:
    whole = np.zeros(int(cell.max()) + 1, dtype=np.int64)
    np.add.at(whole, cell, values)
    return whole


def _largest(values: Integers, cell: Integers) -> Integers:
    most = np.zeros(int(cell.max()) + 1, dtype=np.int64)
    np.maximum.at(most, cell, values)
    return most


def _as_cells(count: Integers, *, largest: Integers) -> Cells:
    cell = Dimension(name="cell", codes=tuple(map(str, range(len(count)))), public=True)
    return Cells(dimensions=(cell,), positions=np.arange(len(count)), columns={"count": count, "largest": largest})
