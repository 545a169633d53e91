"""The budget of an employee report, term by term, and how far its cells are off."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.cells import Cells
from sfumato.check import checked
from sfumato.errors import DataError
from sfumato.methods.mose import Mose
from sfumato.methods.status import HIDDEN
from sfumato.plan import PlannedTable
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.publish.structure import number
from sfumato.release_file import load
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.schmutte2020.published import CHI_VALUES, MOST_YEARS, SECTORS

THRESHOLDS = (0.05, 0.1, 0.2)
"""Absolute percentage differences of which the share of cells within is told."""
_STATISTICS = {"count": "employment", "mean": "earnings"}


@dataclass(frozen=True, kw_only=True)
class YearlySpending:
    """What a person is charged for one statistic of one year."""

    statistic: str
    year: str
    epsilon: Fraction


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The share of cells of one statistic whose absolute percentage difference is within a threshold."""

    statistic: str
    threshold: float
    cells: int
    within: float


@dataclass(frozen=True, kw_only=True)
class EmployeeReport:
    """One institution's report."""

    titles: int
    sectors: int
    years: int
    charged: Fraction
    """What the plan of the release charges to the ledger."""
    spending: tuple[YearlySpending, ...]
    differences: tuple[Difference, ...]

    @property
    def epsilon(self) -> Fraction:
        """Σ over years of ε for employment and ε for earnings."""
        return sum((line.epsilon for line in self.spending), Fraction(0))

    @property
    def without_parallel_composition(self) -> Fraction:
        """What it would be if a person counted as being in all titles and sectors of a year."""
        return self.epsilon * self.titles * self.sectors

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure; those of the design have one published beside them."""
        for quantity, published, ours in (
            ("sectors", SECTORS, self.sectors),
            ("years", MOST_YEARS, self.years),
            ("titles_by_sectors", CHI_VALUES, self.titles * self.sectors),
        ):
            yield {"quantity": quantity, "published": published, "ours": ours}
        for line in self.spending:
            about: dict[str, Any] = {"statistic": line.statistic, "year": line.year, "published": None}
            yield {"quantity": "epsilon_of_year", **about, "ours": number(line.epsilon)}
        for quantity, value in (
            ("epsilon_of_report", self.epsilon),
            ("epsilon_charged", self.charged),
            ("epsilon_without_parallel_composition", self.without_parallel_composition),
        ):
            yield {"quantity": quantity, "published": None, "ours": number(value)}
        for found in self.differences:
            about = {"statistic": found.statistic, "threshold": found.threshold, "cells": found.cells}
            yield {"quantity": "share_within_threshold", **about, "published": None, "ours": found.within}


def evaluate_report(file: Path, *, draws: int, seed: int) -> EmployeeReport:
    """Take a release that `sfumato economy university` wrote term by term, and protect its cells several times."""
    with checked(load(file)) as ready:
        found = ready.plan.tables
        tables = {_STATISTICS[t.table.statistic]: t for t in found if t.table.statistic in _STATISTICS}
        if len(tables) != len(_STATISTICS):
            raise DataError(
                f"data {file}",
                expected="an employee report as `sfumato economy university` writes it, of counts and means",
                found="another kind of data",
                do="name another folder with --data, or leave --data out",
            )
        counted = ready.count({table.name: table for table in tables.values()})
        guarantees = [charge.guarantee for charge in ready.identity.charges(ready.plan)]
    charged = sum((g.epsilon for g in guarantees if isinstance(g, EmployerEmployee)), Fraction(0))
    spending = [line for name, table in tables.items() for line in _spending(name, table)]
    differences: list[Difference] = []
    for name, table in tables.items():
        cells = counted[table.name]
        assert isinstance(cells, Cells)
        differences += _differences(name, table, cells, draws=draws, seed=seed)
    sizes = {dimension.name: len(dimension) for dimension in next(iter(tables.values())).question.by}
    return EmployeeReport(
        titles=sizes["title"],
        sectors=sizes["sector"],
        years=sizes["years"],
        charged=charged,
        spending=tuple(spending),
        differences=tuple(differences),
    )


def _spending(name: str, table: PlannedTable) -> Iterator[YearlySpending]:
    method: Any = table.method
    years = next(dimension.codes for dimension in table.question.by if dimension.name == "years")
    for year in years:
        yield YearlySpending(statistic=name, year=year, epsilon=method.epsilon / method.periods)


def _differences(name: str, table: PlannedTable, cells: Cells, *, draws: int, seed: int) -> Iterator[Difference]:
    method = table.method
    true = method.true_value(cells) if isinstance(method, Mose) else cells["count"].astype(np.float64)
    shares = np.full((draws, len(true)), np.nan)
    for draw in range(draws):
        drawn = method.protect(cells, Repeatable(seed, "schmutte2020", name, draw))
        hidden = np.isin(drawn["status"], HIDDEN) if "status" in drawn.columns else np.zeros(len(true), dtype=bool)
        seen = ~hidden & (true > 0)
        shares[draw, seen] = np.abs(drawn["value"][seen] - true[seen]) / true[seen]
    told = shares[~np.isnan(shares)]
    for threshold in THRESHOLDS:
        yield Difference(
            statistic=name,
            threshold=threshold,
            cells=len(told) // draws,
            within=float((told <= threshold).mean()),
        )
