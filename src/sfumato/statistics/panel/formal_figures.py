"""Error figures of indicators with a guarantee, from protected numbers and parameters alone.

docs/methods/formal-indicators.md says what they suppose, and how often intervals hold the truth.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, PublishedFigures
from sfumato.noise.box_pareto import sum_tail
from sfumato.noise.sums import Law
from sfumato.statistics.jobs.mean_of import certain_reach
from sfumato.statistics.jobs.vector import VectorPareto, rounded_down, rounded_up
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
        reach = _reach(method, cells, (1 - confidence) / 2)
        if cells < method.cells:
            reach *= _for_the_scale(method)
        other = totals[:, None] - own
        return {"error": error, **_consistent(own, reach, method, other, cells / 2)}

    # Jobs created and destroyed: half the change of employers, and half the net change of another draw.

    @cached_property
    def flows(self) -> "_Halves":
        """The noise of jobs created, or destroyed."""
        kinds = len(self.method.groups_of(GAINED)) + len(self.method.groups_of(LOST))
        net = self.method.parts[COUNTS].noise_law(kinds)
        return _Halves(change=self.method.parts[CHANGES].noise_law(1), net=net)

    def _of_flow(self, values: Integers, code: str, confidence: float) -> dict[str, Floats]:
        method = self.method.parts[COUNTS]
        totals = self._totals(values, method)
        scale = np.maximum(float(method.alpha) * np.maximum(totals, 0), 1.0)
        kinds = len(self.method.groups_of(GAINED)) + len(self.method.groups_of(LOST))
        own = values[..., AT[code]]
        error = np.repeat((self.flows.mean * scale)[:, None], own.shape[1], axis=1)
        wide = self.flows.quantile(confidence) * _for_the_scale(method) * scale
        reach = (wide + (1 + kinds) / 4 + 0.5)[:, None]
        near = own.astype(np.float64)
        low, high = rounded_up(near - reach, near), rounded_down(np.maximum(near, 0) + reach, near)
        return {"error": error, "low": low, "high": high}

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


def _for_the_scale(method: VectorPareto) -> float:
    """By what intervals are wider where the scale of the noise is only known by other protected numbers.

    These may have come out low. One plus the square of the share that noise has of a number that one establishment has
    all of is enough for nine cases of ten, as is measured; with little noise it is next to one.
    """
    return 1 + (float(method.alpha) * method.noise_law(method.cells).mean) ** 2


def _consistent(own: Integers, reach: float, method: VectorPareto, other: Floats, rounding: float) -> dict[str, Floats]:
    """All n ≥ 0 with |value − n| ≤ reach·max(α(n + other), B) + rounding; no upper end where there is none.

    `other` is what the workplace cell has beside the number, as it is published: what noise made of the number itself
    plays no part in the scale that it is held against.
    """
    values, slope, width = own.astype(np.float64), reach * float(method.alpha), reach * method.floor
    further = slope * np.maximum(other, 0.0)
    below = np.minimum(values - width - rounding, (values - rounding - further) / (1 + slope))
    low = rounded_up(below, values)
    if slope >= 1:
        return {"low": low, "high": np.full(values.shape, np.nan)}
    values = np.maximum(values, 0.0)
    above = np.maximum(values + width + rounding, (values + rounding + further) / (1 - slope))
    return {"low": low, "high": rounded_down(above, values)}
