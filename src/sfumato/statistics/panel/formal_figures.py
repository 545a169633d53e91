"""Error figures of indicators with a guarantee, from protected numbers and parameters alone.

docs/methods/formal-indicators.md says what they suppose, and how often intervals hold the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, PublishedFigures
from sfumato.noise.box_pareto import sum_tail
from sfumato.noise.sums import Law
from sfumato.statistics.jobs.mean_of import certain_reach
from sfumato.statistics.jobs.vector import VectorPareto, counts_within, rounded_down, rounded_up
from sfumato.statistics.panel.formal_period import (
    AT,
    AVERAGE,
    CHANGES,
    COUNTS,
    FLOWS,
    GAINED,
    LOST,
    OF,
    PAY,
    PAYROLLS,
    PeriodPareto,
)
from sfumato.statistics.panel.indicators import CODES

FOR_THE_EMPLOYER = 0.1
"""Of the probability with which an interval may miss, the part that is spent on bounding the largest employer."""
_POINTS = 2_000
"""Equally likely values that stand for the noise of a net change."""
_HALVINGS = 60


@dataclass(frozen=True, kw_only=True)
class PeriodFigures:
    """The error figures of the indicators of one period."""

    method: PeriodPareto

    def figures(self, values: Integers, confidence: float = CONFIDENCE) -> PublishedFigures:
        """The error and the interval of every indicator, by workplace cell, worker cell and indicator; NaN for none."""
        shape = values.shape
        found = {name: np.full(shape, np.nan) for name in ("error", "low", "high")}
        for code in self.method.known:
            if code == AVERAGE:
                continue
            own = self._of_flow(values, code, confidence) if code in FLOWS else self._of_sum(values, code, confidence)
            beside = PublishedFigures(**{name: figure.reshape(-1) for name, figure in own.items()}).beside(
                values[..., AT[code]].reshape(-1)
            )
            for name, figures in found.items():
                figures[..., AT[code]] = getattr(beside, name).reshape(shape[:2])
        if AVERAGE in self.method.indicators:
            for name, figure in self._of_average(values, found["low"], confidence).items():
                found[name][..., AT[AVERAGE]] = figure
        return PublishedFigures(**found)

    def status(self, values: Integers) -> Integers:
        """Which indicators are not available: those that are not known, and averages of jobs that may be none."""
        status = np.full(values.shape, NOT_AVAILABLE, dtype=np.int64)
        status[..., [AT[code] for code in self.method.known]] = 0
        if AVERAGE in self.method.indicators:
            low = self._of_sum(values, "full_quarter", CONFIDENCE)["low"]
            status[..., AT[AVERAGE]] = np.where(self._has_average(values, low), 0, NOT_AVAILABLE)
        return status

    def errors(self, largest: Integers) -> Floats:
        """The mean absolute error before rounding by the true largest establishments, but of averages: confidential."""
        found = np.full((len(largest), len(CODES)), np.nan)
        for code in self.method.known:
            if code == AVERAGE:
                continue
            method, of_pay = self._part(code), code in PAYROLLS
            scale = np.maximum(float(self.method.alpha) * largest[:, int(of_pay)], float(method.floor))
            mean = self.flows.mean if code in FLOWS else method.noise_law(self._cells(code)).mean
            found[:, AT[code]] = mean * scale
        return found

    # Sums of cells of one part.

    def _part(self, code: str) -> VectorPareto:
        return self.method.parts[PAY if code in PAYROLLS else COUNTS]

    def _cells(self, code: str) -> int:
        """Of how many protected cells an indicator is the sum, in each worker cell."""
        if code in PAYROLLS:
            return len(self.method.pay) if code == PAYROLLS[0] else 1
        return len(self.method.groups_of(OF[code]))

    def _totals(self, values: Integers, method: VectorPareto) -> Floats:
        """The protected number of all jobs, or the payroll, of each workplace cell."""
        whole = PAYROLLS[0] if method is self.method.parts.get(PAY) else "employment"
        totals: Floats = values[..., AT[whole]].astype(np.float64).sum(axis=1)
        return totals

    def _of_sum(self, values: Integers, code: str, confidence: float) -> dict[str, Floats]:
        """The figures of a sum of cells that were drawn together."""
        method, cells = self._part(code), self._cells(code)
        own, totals = values[..., AT[code]], self._totals(values, method)
        scale = np.maximum(float(method.alpha) * np.maximum(totals, 0), float(method.floor))
        error = np.repeat((method.noise_law(cells).mean * scale)[:, None], own.shape[1], axis=1)
        missed = 1 - confidence
        if cells == method.cells:  # the indicator is all that the scale follows
            reach = _reach(method, cells, missed / 2)
            low, high = _within(own.reshape(-1), reach, method, cells)
            return {"error": error, "low": low.reshape(own.shape), "high": high.reshape(own.shape)}
        reach = _reach(method, cells, (1 - FOR_THE_EMPLOYER) * missed / 2)
        most = self._most(totals, method, missed)
        wide = reach * np.maximum(float(method.alpha) * most, float(method.floor)) + cells / 2
        return {"error": error, **_around(own, wide, most)}

    def _most(self, totals: Floats, method: VectorPareto, missed: float) -> Floats:
        """The most that a workplace cell can have in all, going by its protected total; NaN where there is no limit."""
        reach = _reach(method, method.cells, FOR_THE_EMPLOYER * missed)
        return _within(totals, reach, method, method.cells)[1]

    # Jobs created and destroyed: half the change of employers, and half the net change of another draw.

    @cached_property
    def flows(self) -> "_Halves":
        """The noise of jobs created, or destroyed."""
        kinds = len(self.method.groups_of(GAINED)) + len(self.method.groups_of(LOST))
        net = self.method.parts[COUNTS].noise_law(kinds)
        return _Halves(change=self.method.parts[CHANGES].noise_law(1), net=net)

    def _of_flow(self, values: Integers, code: str, confidence: float) -> dict[str, Floats]:
        method, missed = self.method.parts[COUNTS], 1 - confidence
        totals = self._totals(values, method)
        scale = np.maximum(float(method.alpha) * np.maximum(totals, 0), 1.0)
        most = self._most(totals, method, missed)
        kinds = len(self.method.groups_of(GAINED)) + len(self.method.groups_of(LOST))
        reach = self.flows.quantile(1 - (1 - FOR_THE_EMPLOYER) * missed)
        wide = reach * np.maximum(float(method.alpha) * most, 1.0) + (1 + kinds) / 4 + 0.5
        own = values[..., AT[code]]
        error = np.repeat((self.flows.mean * scale)[:, None], own.shape[1], axis=1)
        return {"error": error, **_around(own, wide, most)}

    # Averages.

    def _has_average(self, values: Integers, low: Floats) -> Flags:
        """Where the number of kept jobs is above 0 with the certainty that means need."""
        method, jobs = self.method.parts[COUNTS], values[..., AT["full_quarter"]]
        totals = np.maximum(self._totals(values, method), 0)
        needed = certain_reach(method) * np.maximum(float(method.alpha) * totals, 1.0) + 0.5
        return np.asarray((low > 0) & (jobs > needed[:, None]))

    def _of_average(self, values: Integers, low: Floats, confidence: float) -> dict[str, Floats]:
        """The figures of average monthly earnings, as of means of jobs; NaN where there is none."""
        some = self._has_average(values, low[..., AT["full_quarter"]])
        paid, jobs = (values[..., AT[code]].astype(np.float64) for code in (PAYROLLS[1], "full_quarter"))
        totals = [self._totals(values, self.method.parts[part])[:, None] for part in (PAY, COUNTS)]
        other = tuple((whole - own)[some] for whole, own in zip(totals, (paid, jobs), strict=True))
        figures = self.method.mean_of.figures_of(paid[some], jobs[some], other, confidence)
        months = self.method.months
        found = {name: np.full(some.shape, np.nan) for name in ("error", "low", "high")}
        found["error"][some] = figures.error / months
        found["low"][some], found["high"][some] = np.floor(figures.low / months), np.ceil(figures.high / months)
        return found


@dataclass(frozen=True, kw_only=True)
class _Halves:
    """Half the sum of two independent noises, in units of the scale that both follow."""

    change: Law
    net: Law

    @cached_property
    def _points(self) -> Floats:
        """Equally likely values of the noise of the net change."""
        share = (np.arange(_POINTS) + 0.5) / _POINTS
        grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 20_000)]) * self.net.mean
        beyond = 1 - self.net.below(grid)
        upper = share[share > 0.5]
        half = np.interp(1 - upper, beyond[::-1], grid[::-1])
        return np.concatenate([-half[::-1], half])

    def beyond(self, reach: float) -> float:
        """The probability that it is further off than so much."""
        return float(2 * (1 - self.change.below(2 * reach - self._points)).mean())

    @cached_property
    def mean(self) -> float:
        """The mean magnitude."""
        reaches = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 400)]) * (self.change.mean + self.net.mean)
        return float(np.trapezoid([self.beyond(reach) for reach in reaches], reaches))

    def quantile(self, probability: float) -> float:
        """What its magnitude stays below with this probability."""
        low, high = 0.0, self.change.mean + self.net.mean
        while self.beyond(high) > 1 - probability:
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.beyond(middle) > 1 - probability else (low, middle)
        return high


@lru_cache(maxsize=1024)
def _quantile(cells: int, missed: float, tail: float) -> float:
    return sum_tail(cells).mixed_quantile(1 - missed, tail)


def _reach(method: VectorPareto, cells: int, missed: float) -> float:
    """What the noise of so many cells stays below on one side, but for a probability, in units of S."""
    return float(method.calibration.scale) * _quantile(cells, missed, float(method.calibration.tail))


def _within(values: Floats | Integers, reach: float, method: VectorPareto, cells: int) -> tuple[Floats, Floats]:
    """The least and the greatest number that a protected sum of all cells is consistent with; each was rounded."""
    within: Callable[..., tuple[Floats, Floats]] = counts_within
    width, slope = reach * method.floor, reach * float(method.alpha)
    more = (cells - 1) / 2
    return within(values - more, width=width, slope=slope)[0], within(values + more, width=width, slope=slope)[1]


def _around(own: Integers, wide: Floats, most: Floats) -> dict[str, Floats]:
    """The interval so far around protected numbers, of workplace cells that have at most so much in all.

    Where a number and the others of its workplace cell exclude each other, the interval spans both.
    """
    values, wide = own.astype(np.float64), wide[:, None]
    known = np.isfinite(wide)
    reach = np.where(known, wide, np.nan)
    low = np.where(known, rounded_up(values - reach, values), 0.0)
    high = np.fmin(rounded_down(np.maximum(values, 0) + reach, values), most[:, None])
    return {"low": np.fmin(low, high), "high": np.maximum(low, high)}
