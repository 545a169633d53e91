"""Indicators with a guarantee in every period of a table: what all spend, what is drawn, and what errors are told."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import NOT_AVAILABLE, PlannedError, PublishedFigures, check_confidence
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.vector import Number
from sfumato.statistics.panel.formal_figures import PeriodFigures
from sfumato.statistics.panel.formal_period import AT, AVERAGE, COUNTS, MEASURED, PAYROLLS, PeriodPareto
from sfumato.statistics.panel.indicators import CODES

_JOBS, _PAYROLL = AT["employment"], AT[PAYROLLS[0]]


@dataclass(frozen=True, kw_only=True)
class IndicatorPareto:
    """Strong (α, Σ ε) privacy for workforce indicators of several periods: an establishment may be in all of them.

    The column `measured` has what was tabulated of a cell in the rows of its indicators, one after the other, and
    `largest_employer` the jobs of the largest establishment of the workplace cell, or its payroll in rows of payrolls.
    """

    name: ClassVar[str] = "smooth-pareto"
    needs: ClassVar[frozenset[str]] = frozenset({"measured", "largest_employer"})
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Vector Pareto) was drawn for all kinds of jobs "
        "and all worker cells of a workplace cell together, in every period, added to their counts and rounded to "
        "whole jobs; indicators are sums of these counts"
    )

    period: str
    """The dimension of periods."""
    periods: tuple[tuple[str, PeriodPareto], ...]
    """The method of every period in which something can be known."""

    @property
    def alpha(self) -> Fraction:
        """Which sizes are hard to tell apart."""
        return self.periods[0][1].alpha

    @property
    def epsilon(self) -> Fraction:
        """What all periods spend together."""
        return sum((method.epsilon for _, method in self.periods), Fraction(0))

    @property
    def epsilons(self) -> dict[str, Fraction]:
        """What each of them spends."""
        return {code: method.epsilon for code, method in self.periods}

    @property
    def loudest(self) -> PeriodPareto:
        """The method of the period whose counts have most noise, among those with most indicators."""
        some = [method for _, method in self.periods]
        return max(some, key=lambda method: (len(method.indicators), -method.epsilon))

    def guarantee(self) -> EmployerEmployee:
        """All periods added up: a job, and an establishment, may be in each of them."""
        return EmployerEmployee(definition="strong", alpha=self.alpha, epsilon=self.epsilon)

    def planned_error(self) -> PlannedError:
        """Of the number of jobs with any earnings, or of the payroll where none is counted, in the loudest period."""
        method = self.loudest
        part = method.parts.get(COUNTS) or next(iter(method.parts.values()))
        mean = part.noise_law(len(method.groups) or len(method.pay)).mean
        return PlannedError(
            floor=mean * part.floor,
            floor_size=int(part.floor / part.alpha),
            share=float(part.alpha) * mean,
            of="the largest establishment of its workplace cell",
        )

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every indicator as a whole number in `value`, and in `status` which are not available."""
        blocks = _Blocks(cells, self)
        value, status = blocks.empty(0), blocks.empty(NOT_AVAILABLE)
        measured, largest = (blocks.column(name) for name in ("measured", "largest_employer"))
        for method, rows in blocks.alike():
            sizes = largest[rows][:, 0, [_JOBS, _PAYROLL]]
            drawn = method.protect(measured[rows][..., :MEASURED], sizes, randomness)
            missing = PeriodFigures(method=method).status(drawn)
            if AVERAGE in method.indicators:
                drawn[..., AT[AVERAGE]] = method.average(drawn)
            value[rows], status[rows] = np.where(missing == 0, drawn, 0), missing
        columns = {"value": blocks.laid_back(value), "status": blocks.laid_back(status)}
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every indicator by the true largest establishments, NaN of none: confidential."""
        blocks = _Blocks(cells, self)
        found = np.full(blocks.shape, np.nan)
        largest, count = (blocks.column(name) for name in ("largest_employer", "count"))
        for method, rows in blocks.alike():
            errors = PeriodFigures(method=method).errors(largest[rows][:, 0, [_JOBS, _PAYROLL]])
            found[rows] = errors[:, None, :]
            if AVERAGE in method.indicators:
                found[rows, :, AT[AVERAGE]] = self._errors_of_averages(method, found[rows], count[rows])
        return blocks.laid_back(found)

    @staticmethod
    def _errors_of_averages(method: PeriodPareto, errors: Floats, count: Integers) -> Floats:
        """About how far averages are off, as if both noises were normal; infinite where there are no jobs."""
        jobs = np.where(count[..., AT["full_quarter"]] > 0, count[..., AT["full_quarter"]], np.nan)
        average = count[..., AT[AVERAGE]]
        paid, held = errors[..., AT[PAYROLLS[1]]] / method.months, errors[..., AT["full_quarter"]] * average
        return np.hypot(paid, held) / jobs

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The error and the interval of every indicator, from all protected numbers of its workplace cell."""
        check_confidence(confidence)
        blocks = _Blocks(answer, self)
        values = blocks.column("value")
        found = {name: np.full(blocks.shape, np.nan) for name in ("error", "low", "high")}
        for method, rows in blocks.alike():
            figures = PeriodFigures(method=method).figures(values[rows], confidence)
            for name, column in found.items():
                column[rows] = getattr(figures, name)
        return PublishedFigures(**{name: blocks.laid_back(column) for name, column in found.items()})

    def published_error(self, values: Integers) -> Floats:
        """A value alone does not tell its indicator, and so not its error; `published_figures` has it."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """Nothing can be said of a value alone."""
        check_confidence(confidence)
        return np.zeros(len(values)), np.full(len(values), np.nan)


class _Blocks:
    """Cells as workplace cells of a period, each with its worker cells, each with its indicators."""

    def __init__(self, cells: Cells, method: IndicatorPareto) -> None:
        self.cells, self.method = cells, method
        base = cells.positions[:: len(CODES)] // len(CODES)
        self._base = Cells(dimensions=cells.dimensions[:-1], positions=base)
        self._period = next(d for d in cells.dimensions if d.name == method.period)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The worker cells of each workplace cell and period, without the indicators."""
        return self._base.blocks()

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many there are of each."""
        return (*self.order.shape, len(CODES))

    def empty(self, value: int) -> Integers:
        """A number for each indicator."""
        return np.full(self.shape, value, dtype=np.int64)

    def column(self, name: str) -> Integers:
        """A column of the cells."""
        return self.cells[name].reshape(-1, len(CODES))[self.order]

    def laid_back(self, found: NDArray[Number]) -> NDArray[Number]:
        """A number for each indicator in the order of the cells."""
        column = np.empty((self.order.size, len(CODES)), dtype=found.dtype)
        column[self.order] = found
        return column.reshape(-1)

    def alike(self) -> Iterator[tuple[PeriodPareto, NDArray[np.intp]]]:
        """The workplace cells of all periods that have one method, so that all are drawn together."""
        periods: dict[PeriodPareto, list[int]] = {}
        for code, method in self.method.periods:
            periods.setdefault(method, []).append(self._period.places[code])
        place = self._base.codes(self._period.name)[self.order[:, 0]]
        for method, places in periods.items():
            if len(rows := np.flatnonzero(np.isin(place, places))):
                yield method, rows
