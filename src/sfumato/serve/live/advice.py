"""What to expect of an ad-hoc question before anything is spent: usable figures, errors by ε, and which method fits."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf, isfinite
from typing import Any

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.live import ChargedSession
from sfumato.method import Method, PlannedError
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.selection import everything
from sfumato.serve.core.status import CAUTION, RELIABILITY, UNRELIABLE
from sfumato.serve.page.rating import Numbers
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.registry import METHODS

SIZES = (100, 1_000)
"""Cells whose errors are told as examples."""
_EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
_SPREAD = 10
"""Where a cell has many establishments, the largest is taken to have one job of so many."""
_STEPS = 24


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What one ε gives."""

    epsilon: float
    errors: tuple[float, ...]
    """The error in a cell of each of `SIZES` that has many establishments."""
    usable_from: float
    """How many jobs a cell of many establishments needs, for an error below the first mark; infinite if none is."""
    usable: int | None
    """How many cells of published tables have as many."""
    shown: float | None
    """The error that will stand beside a figure of the last of `SIZES`, as a share of it; None where data tell it.

    It is as if one establishment had all jobs of a cell.
    """

    @property
    def mark(self) -> str:
        """The mark that such a figure will have, where it is for an error larger than the one to be expected."""
        if self.shown is None or self.shown <= self.errors[-1] / SIZES[-1]:
            return ""
        return RELIABILITY[sum(100 * self.shown >= least for least in (CAUTION, UNRELIABLE))].symbol


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to expect of a question with the ε that was chosen, and with others."""

    cells: int
    choices: tuple[Expected, ...]
    chosen: Expected
    public: str
    """The published table that has the sizes of the cells; empty where none has."""
    average: float | None
    """How many jobs a cell has on average by published tables, where no table has the sizes."""
    wished: float | None = None
    """The least ε whose error is as small as wished; None where there is none."""


@cache
def descriptions() -> dict[str, str]:
    """What every method does, in words."""
    found = {name: getattr(METHODS[name], "description", "") for name in METHODS}
    return {name: text if isinstance(text, str) else "" for name, text in found.items()}


def best_method(live: ChargedSession, question: dict[str, Any]) -> str | None:
    """The method with the smallest error for a question, of those without bias that the budget can pay for."""
    found: list[tuple[float, int, str]] = []
    for at, name in enumerate(live.fitting(**question)):
        with suppress(SfumatoError):
            statistic = live.plan(method=name, **question)
            if getattr(statistic.method, "unbiased", True):  # only those that may be biased say it
                found.append((_error(statistic.method.planned_error(), SIZES[-1]), at, name))
    return min(found)[2] if found else None


def advise(
    live: ChargedSession,
    question: dict[str, Any],
    statistic: PublishedTable,
    tables: Iterable[ServedTable],
    *,
    epsilons: tuple[float, float],
    wish: float | None,
) -> Advice:
    """What to expect; `epsilons` are the least and the most, `wish` an error in percent of a cell of the first size."""
    sizes, public, average = _public_sizes(statistic, list(tables))
    own = float(question["epsilon"])
    low, high = epsilons
    among = sorted({own, *(epsilon for epsilon in _EPSILONS if low <= epsilon <= high)})

    def expected(epsilon: float) -> Expected | None:
        try:
            method = live.plan(**question | {"epsilon": Fraction(str(epsilon))}).method
            planned = method.planned_error()
        except SfumatoError:
            return None  # the method does not exist there
        usable_from = _usable_from(planned)
        usable = None if sizes is None else int((sizes >= usable_from).sum())
        errors = tuple(_error(planned, size) for size in SIZES)
        shown = _shown(method, planned)
        return Expected(epsilon=epsilon, errors=errors, usable_from=usable_from, usable=usable, shown=shown)

    choices = tuple(filter(None, map(expected, among)))
    chosen = next(one for one in choices if one.epsilon == own)
    return Advice(
        cells=statistic.cells,
        choices=choices,
        chosen=chosen,
        public=public,
        average=average,
        wished=None if wish is None else _wished(expected, wish * SIZES[0] / 100, low, high),
    )


def _wished(expected: Any, error: float, low: float, high: float) -> float | None:
    """The least ε with an error as small as this: errors shrink as ε grows."""

    def fits(epsilon: float) -> bool:
        found = expected(epsilon)
        return found is not None and found.errors[0] <= error

    if not fits(high):
        return None
    for _ in range(_STEPS):
        middle = float(f"{(low * high) ** 0.5:.4g}")
        if not low < middle < high:
            break
        low, high = (low, middle) if fits(middle) else (middle, high)
    return float(f"{high:.4g}")


def _error(planned: PlannedError, size: float) -> float:
    """The mean absolute error of a cell of a size that has many establishments."""
    of = size / _SPREAD if "establishment" in planned.of else size
    return max(planned.floor, (planned.share or 0.0) * of if of > planned.floor_size else 0.0)


def _shown(method: Method, planned: PlannedError) -> float | None:
    """The published error of a figure of the last of `SIZES`, as a share of it; None where data tell it.

    Where workers are told apart, as many of each kind are taken to be in a workplace cell.
    """
    kinds: int = getattr(method, "cells", 1)  # only methods whose errors are those of workplace cells say it
    if kinds > 1:
        return max(planned.floor / SIZES[-1], kinds * (planned.share or 0.0))
    error = float(method.published_error(np.array([SIZES[-1]]))[0])
    return error / SIZES[-1] if isfinite(error) else None


def _usable_from(planned: PlannedError) -> float:
    """The least size from which on the error of a cell of many establishments is below the first mark."""
    share = CAUTION / 100
    of = 1 / _SPREAD if "establishment" in planned.of else 1.0
    return planned.floor / share if (planned.share or 0.0) * of < share else inf


def _public_sizes(statistic: PublishedTable, tables: Sequence[ServedTable]) -> tuple[Numbers | None, str, float | None]:
    """The sizes of the cells by a published table of the same attributes, or else how large they are on average."""
    about, by = statistic.table, {name.lower() for name in statistic.table.by}
    known = [table for table in tables if table.kind == "table" and table.metrics[0].unit == "jobs"]
    for table in known:
        if {dimension.name.lower() for dimension in table.dimensions} == by and not about.where:
            return next(_values(table)), table.title, None
    totals = [float(np.nansum(values)) for table in known if table.adds_up for values in _values(table)]
    return None, "", max(totals) / statistic.cells if totals and not about.where else None


def _values(table: ServedTable) -> Iterator[Numbers]:
    answer = table.answer(everything(table))
    yield np.asarray(answer.columns[0].values, dtype=np.float64)
