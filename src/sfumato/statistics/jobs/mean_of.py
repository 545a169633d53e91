"""Means as protected totals over protected counts, with intervals from both distributions of noise."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.cells import Cells, Dimension
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, PlannedError, PublishedFigures, published_figures
from sfumato.noise.randomness import Randomness
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto, laid_back

TOTAL, JOBS = "total", "jobs"
"""The columns with the total and the number of jobs, and what the names of others begin with that are of each."""
CERTAINTY = 0.999
"""With which the number of jobs must be above 0 for a mean to be published, by an interval that is open above."""
_MANY = 10**12
"""Jobs, more than any cell has."""
_ANGLES = 61
"""Between noise of the total alone and of the count alone, at which their sum is worked out; others lie between."""
_POINTS = 1_000
"""Equally likely values that stand for the noise of the count."""
_HALVINGS = 60


@dataclass(frozen=True, kw_only=True)
class MeanOf:
    """A total and a count of the same jobs, each protected by itself; their quotient is a mean.

    docs/methods/formal-totals.md says how intervals are made, and how often they hold the mean.
    """

    name: ClassVar[str] = "smooth-pareto"
    total: SmoothPareto | VectorPareto
    jobs: SmoothPareto | VectorPareto

    @property
    def needs(self) -> frozenset[str]:
        """The columns that tabulation must supply for every cell, of the total and of the count."""
        return self.total.needs

    @property
    def description(self) -> str:
        """What is done, as a clause of the privacy statement."""
        return f"{self.jobs.description}; so it was done to totals, and means are quotients of the two"

    def guarantee(self) -> EmployerEmployee:
        """What both reveal at most, together."""
        return sequential([self.total.guarantee(), self.jobs.guarantee()])

    def planned_error(self) -> PlannedError:
        """That of the total: how far a mean is off depends on how many jobs there are."""
        return self.total.planned_error()

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The protected total as `value`, the protected number of jobs, and where there is no mean.

        There is none where the interval of the count reaches 0 at a high certainty: any mean would be possible. A count
        that came out high by chance has a mean that is too low, with an interval that does not know of it.
        """
        total = self.total.protect(part_of(cells, TOTAL), randomness)
        jobs = self.jobs.protect(part_of(cells, JOBS), randomness)
        status = np.where(above_zero(self.jobs, jobs), 0, NOT_AVAILABLE)
        return total.with_column(JOBS, jobs["value"]).with_column("status", status)

    def expected_error(self, cells: Cells) -> Floats:
        """About how far the mean of every cell is off on average, from the true columns: confidential."""
        count = np.maximum(cells[JOBS], 1)
        magnitude = [
            part.expected_error(own) / part.error_in_scales
            for part, own in ((self.total, part_of(cells, TOTAL)), (self.jobs, part_of(cells, JOBS)))
        ]
        mean = cells[TOTAL] / count
        found: Floats = self._together(magnitude[0], mean * magnitude[1], self._means) / count
        return found

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The mean absolute error and the interval of every mean; NaN where there is none.

        All means that a test at this confidence does not reject (Fieller's interval). With the true mean the noise of
        the total less that many times the noise of the count is the total less that many times the count, of which all
        is published. Its scale is that of the noise if one establishment had all of the cell, or of the workplace cell.
        """
        some = answer["status"] == 0
        total, jobs = (answer[name].astype(np.float64) for name in ("value", JOBS))
        order = answer.blocks()
        whole = {name: np.repeat(answer[name][order].sum(axis=1), order.shape[1]) for name in ("value", JOBS)}
        other = tuple((laid_back(order, whole[n]) - answer[n]).astype(np.float64) for n in ("value", JOBS))
        found = self.figures_of(total, np.where(some, jobs, 1.0), other, confidence)
        error, low, high = (np.where(some, figure, np.nan) for figure in (found.error, found.low, found.high))
        return PublishedFigures(error=error, low=low, high=high)

    def figures_of(self, total: Floats, jobs: Floats, other: tuple[Floats, ...], confidence: float) -> PublishedFigures:
        """The figures of means of protected totals over protected numbers of jobs, which are above 0.

        `other` is what the workplace cell of each has beside it, of both.
        """
        most = float(self.total.floor)
        middle = np.clip(total / jobs, 0.0, most)

        def beyond(mean: Floats) -> Flags:
            """Whether noise does not explain a mean."""
            one, two = self._scales(mean, total, jobs, other)
            reach = self._together(one, mean * two, self._quantiles(confidence)) + 0.5 * (1 + mean)
            return np.abs(np.maximum(total, 0.0) - mean * jobs) > reach

        low = edge(np.zeros_like(middle), middle, beyond)
        high = edge(np.full_like(middle, most), middle, beyond)
        one, two = self._scales(middle, total, jobs, other)
        error = self._together(one, middle * two, self._means) / jobs
        shown = total / jobs
        low, high = np.minimum(low, np.maximum(shown, 0.0)), np.maximum(high, shown)
        return PublishedFigures(error=np.maximum(error, np.maximum(low - shown, 0.0)), low=low, high=high)

    def _scales(self, mean: Floats, total: Floats, jobs: Floats, other: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        """S of the total and of the count if the mean were this: both published numbers then tell the count.

        They are weighed by how much noise each has. `other` is what the workplace cell has beside the cell.
        """
        count = jobs
        for _ in range(2):
            one = np.maximum(float(self.total.alpha) * np.maximum(mean * count + other[0], 0.0), self.total.floor)
            two = np.maximum(float(self.jobs.alpha) * np.maximum(count + other[1], 0.0), 1.0)
            weight, own = mean**2 / (self._spread[0] * one) ** 2, 1 / (self._spread[1] * two) ** 2
            told = np.divide(total, mean, out=np.zeros_like(total), where=mean > 0)
            count = (weight * told + own * jobs) / (weight + own)
        return one, two

    @cached_property
    def _spread(self) -> tuple[float, float]:
        return self.total.error_in_scales, self.jobs.error_in_scales

    # Sums of the noise of both, by the angle between what each has of it.

    def _together(self, one: Floats, two: Floats, table: Floats) -> Floats:
        """A figure of the sum of noises of two scales, in units of S, from its table by angle."""
        found: Floats = np.hypot(one, two) * np.interp(np.arctan2(two, one), self._angles, table)
        return found

    @cached_property
    def _angles(self) -> Floats:
        return np.linspace(0, np.pi / 2, _ANGLES)

    @cached_property
    def _noises(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The scale in units of S, and the tail, of the noise of a cell of both."""
        one, two = ((float(part.calibration.scale), float(part.calibration.tail)) for part in (self.total, self.jobs))
        return one, two

    def _beyond(self, angle: float, reach: float) -> float:
        """The probability that the sum of both noises is further off than `reach`."""
        (k, tail), (other, second) = self._noises
        share = (np.arange(_POINTS) + 0.5) / _POINTS
        drawn = other * ((2 * np.minimum(share, 1 - share)) ** (-1 / second) - 1) * np.sign(share - 0.5)
        edge = reach - np.sin(angle) * drawn
        scale = max(k * np.cos(angle), 1e-12)
        far = (1 + np.abs(edge) / scale) ** -tail / 2
        return float(2 * np.where(edge > 0, far, 1 - far).mean())

    def _quantiles(self, confidence: float) -> Floats:
        """What the sum of both noises stays below with this probability, by angle."""
        known: dict[float, Floats] = self._known
        if confidence not in known:
            known[confidence] = np.array([self._quantile(angle, confidence) for angle in self._angles])
        return known[confidence]

    @cached_property
    def _known(self) -> dict[float, Floats]:
        return {}

    def _quantile(self, angle: float, confidence: float) -> float:
        low, high = 0.0, 1.0
        while self._beyond(angle, high) > 1 - confidence:
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(angle, middle) > 1 - confidence else (low, middle)
        return high

    @cached_property
    def _means(self) -> Floats:
        """The mean magnitude of the sum of both noises, by angle."""
        reaches = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 300)]) * max(k for k, _ in self._noises)
        found = [np.trapezoid([self._beyond(angle, reach) for reach in reaches], reaches) for angle in self._angles]
        return np.array(found)


def above_zero(method: SmoothPareto | VectorPareto, answer: Cells) -> Flags:
    """Where published numbers of jobs are such that the true ones are above 0, with the certainty that means need.

    The noise of a cell is supposed to have the scale that its workplace cell has if one establishment had all jobs in
    it, going by the published numbers. Where several cells share one scale their interval must not reach 0 either.
    """
    value, order = answer["value"], answer.blocks()
    if not isinstance(method, VectorPareto):
        low, _ = method.published_interval(value, 2 * CERTAINTY - 1)  # the noise is symmetric
        return np.asarray((low > 0) & (value > 0))
    whole = laid_back(order, np.repeat(np.maximum(value[order].sum(axis=1), 0), order.shape[1]))
    reach = certain_reach(method)
    low = published_figures(method, answer, CONFIDENCE).low
    return np.asarray((low > 0) & (value > reach * np.maximum(float(method.alpha) * whole, 1.0) + 0.5))


def certain_reach(method: SmoothPareto | VectorPareto) -> float:
    """How far noise moves a number at most, to one side and with the certainty that means need, in units of S."""
    noise = method.noise.marginal if isinstance(method, VectorPareto) else method.noise
    return float(method.calibration.scale) * float(noise.quantile(2 * CERTAINTY - 1))


def fewest_jobs(method: SmoothPareto | VectorPareto) -> int:
    """The least published number of jobs that can have a mean."""
    return int(certain_reach(method) + 0.5) + 1


def allows_means(method: SmoothPareto | VectorPareto) -> bool:
    """Whether any number of jobs is certain enough to be above 0, be it all of its workplace cell and very large."""
    cells = max(method.worker_cells, 1) if isinstance(method, VectorPareto) else 1
    by = (
        Dimension(name="place", codes=("0",), public=True),
        Dimension(name="group", codes=tuple(map(str, range(cells))), public=False),
    )
    value = np.zeros(cells, dtype=np.int64)
    value[0] = _MANY
    answer = Cells(dimensions=by, positions=np.arange(cells), columns={"value": value})
    return bool(above_zero(method, answer)[0])


def part_of(cells: Cells, name: str) -> Cells:
    """The columns of the total, or of the number of its jobs, as a method for one of them knows them."""
    beside = {n.removeprefix(f"{name}_"): column for n, column in cells.columns.items() if n.startswith(f"{name}_")}
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"count": cells[name], **beside})


def beside(total: Cells, jobs: Cells) -> Cells:
    """The columns of a total and those of the number of its jobs, each with the name of what it is of."""
    columns = {name: column for name, column in total.columns.items() if name == "establishments"}
    for of, cells in ((TOTAL, total), (JOBS, jobs)):
        own = {name: column for name, column in cells.columns.items() if name != "establishments"}
        columns |= {of if name == "count" else f"{of}_{name}": column for name, column in own.items()}
    return Cells(dimensions=total.dimensions, positions=total.positions, columns=columns)


def edge(end: Floats, inside: Floats, beyond: Any) -> Floats:
    """Where what is not rejected ends, between a value inside and an end; the end itself where it is not rejected."""
    far = beyond(end)
    inner, outer = inside, end
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        out = beyond(middle)
        inner, outer = np.where(out, inner, middle), np.where(out, middle, outer)
    found: Floats = np.where(far, outer, end)
    return found
