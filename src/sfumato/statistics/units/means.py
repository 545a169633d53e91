"""Means of the values of units: protected totals over the number of records, which everyone may know."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, PublishedFigures
from sfumato.noise.factors import ONE
from sfumato.noise.randomness import Randomness
from sfumato.statistics.column_texts import COLUMNS
from sfumato.statistics.published import Columns
from sfumato.statistics.table import FOR_UNITS, Table
from sfumato.statistics.units.pareto import NEGATIVES, POSITIVE
from sfumato.statistics.units.question import RECORDS
from sfumato.statistics.units.statistic import UnitTotals
from sfumato.surroundings import Surroundings

TOTAL = "total"
"""The column with the protected total."""


@dataclass(frozen=True, kw_only=True)
class UnitMeans(UnitTotals):
    """Means of a measure of records, weighted where these are, the values of every unit hidden."""

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return not data.of_jobs and table.statistic == "mean" and table.protect.method in FOR_UNITS

    def drawn(self, counted: Cells, randomness: Randomness) -> Cells:
        """The protected totals, the number of records, and where there is no mean because there is none."""
        drawn = super().drawn(counted, randomness).with_column(RECORDS, counted[RECORDS])
        return drawn.with_column("status", np.where(drawn[RECORDS] > 0, 0, NOT_AVAILABLE))

    def _divisor(self, cells: Cells) -> Floats:
        """The number of records of every cell, or what they weigh; 1 where there are none."""
        some: Floats = np.where(cells[RECORDS] > 0, cells[RECORDS], 1) / (ONE if self.question.weight else 1)
        return some

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (means are never made to agree)
        """The mean with its error and interval, and what it is made of."""
        unit, figures, some = 10**self.table.decimals, self._of_means(answer), answer[RECORDS] > 0
        records = answer[RECORDS] / ONE if self.question.weight else answer[RECORDS]
        return {
            "value": self.shown_values(answer) / unit,
            "error": np.where(some, np.round(figures.error, self.table.decimals), np.nan),
            "low": np.where(some, np.floor(figures.low * unit) / unit, np.nan),
            "high": np.where(some, np.ceil(figures.high * unit) / unit, np.nan),
            "status": answer["status"],
            TOTAL: answer["value"],
            **{name: answer[name] for name in (POSITIVE, NEGATIVES) if name in answer.columns},
            RECORDS: records,
        }

    def _of_means(self, answer: Cells) -> PublishedFigures:
        """The error figures of means: those of totals over the number of records."""
        figures, by = self.shown_figures(answer, answer), self._divisor(answer)
        return PublishedFigures(error=figures.error / by, low=figures.low / by, high=figures.high / by)

    def shown_values(self, shown: Cells) -> Integers:
        """The means as readers get them, in parts of the unit; 0 where there is none."""
        return self._parts(shown["value"], shown)

    def _parts(self, totals: Integers, cells: Cells) -> Integers:
        mean = np.where(cells[RECORDS] > 0, totals / self._divisor(cells), 0.0)
        found: Integers = np.rint(mean * 10**self.table.decimals).astype(np.int64)
        return found

    def expected_errors(self, counted: Cells) -> Floats:
        """How far means are off on average, in parts of the unit: confidential."""
        found: Floats = super().expected_errors(counted) / self._divisor(counted) * 10**self.table.decimals
        return found

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: the true mean, in parts of the unit."""
        return self.showing(counted, self._parts(super().with_true_values(counted)["count"], counted))

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:  # noqa: ARG002
        """The interval as it is published, in parts of the unit."""
        figures, unit = self._of_means(answer), 10**self.table.decimals
        low, high = figures.low * unit, figures.high * unit
        return np.where(np.isnan(low), -np.inf, np.floor(low)), np.where(np.isnan(high), np.inf, np.ceil(high))

    @property
    def is_additive(self) -> bool:
        """Means do not add up."""
        return False

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return super().lacking_columns - {"status"}

    def design(self) -> dict[str, Any]:
        """In how many cells a unit may be."""
        return {"most_cells": self.noise_of.most_cells}

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        told, records = super().column_texts(plan), "what the records weigh" if self.question.weight else "records"
        return told | {
            "value": f"mean: `{TOTAL}` over `{RECORDS}`; empty where there is no record",
            "error": "upper estimate of the mean absolute error of the mean, if one unit had all of the total",
            "low": f"least true mean that the published one is consistent with, {CONFIDENCE:.0%} confidence",
            "high": f"greatest true mean that the published one is consistent with, {CONFIDENCE:.0%} confidence; "
            "empty: no limit",
            "status": COLUMNS["status"],
            TOTAL: "protected total",
            RECORDS: f"number of {records}, which is public" if not self.question.weight else f"{records}: public",
        }

    def expected_error(self) -> tuple[str, str]:
        """How far totals are typically off: how far a mean is depends on how many records there are."""
        small, large = super().expected_error()
        return f"{small} over records", f"{large}, over records"

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:
        """What was done to its numbers."""
        over = "what its records weigh together" if self.question.weight else "its number of records"
        return (
            f"{super().paragraph(plan, answer)} The mean of a cell is its protected total over {over}, which is public "
            "and exact; there is none where there is no record."
        )

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of means of units."""
        if not plan.of_kind(cls):
            return []
        return [
            "Of means of units, `error`, `low` and `high` are those of the total over the number of records, which is "
            f"exact: they enclose the true mean with a probability of at least {CONFIDENCE:.0%}."
        ]
