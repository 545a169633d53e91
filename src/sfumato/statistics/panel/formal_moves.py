"""Discrete Laplace noise for moves between employers, of which every worker has one in a period at most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import NOT_AVAILABLE, PlannedError, PublishedFigures, check_confidence, check_parameters
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.vector import LIMIT

MOVES = 2
"""What one job more changes in the moves of a period at most: one move is replaced by another."""


def most_changed(panel: Sequence[str], weights: Mapping[str, Fraction]) -> Fraction:
    """The greatest sum of weights of periods in which one job can begin or end, whatever its history in a panel.

    A job that goes on through a period makes no move there, so that no job changes three periods that follow each
    other: it begins, ends, and is not there.

    >>> panel = [str(year) for year in range(2000, 2008)]
    >>> most_changed(panel, {year: Fraction(1) for year in panel[1:-1]})
    Fraction(4, 1)
    """
    best = {(before, now): Fraction(0) for before in (False, True) for now in (False, True)}
    for place, code in enumerate(panel):
        last = place == len(panel) - 1
        found: dict[tuple[bool, bool], Fraction] = {}
        for (before, now), sum_so_far in best.items():
            for after in (False, True) if not last else (False,):
                changed = now and not (before and after)
                total = sum_so_far + (weights.get(code, Fraction(0)) if changed else 0)
                found[now, after] = max(found.get((now, after), Fraction(0)), total)
        best = found
    return max(best.values())


@dataclass(frozen=True, kw_only=True)
class MoveLaplace:
    """ε privacy for single jobs, whatever periods they were held in, by discrete Laplace noise in every cell.

    A worker has at most one move in a period, so that one job more changes the moves of a period by two at most: one
    goes, and one comes. docs/methods/formal-indicators.md has the proof.
    """

    name: ClassVar[str] = "laplace"
    description: ClassVar[str] = (
        "every worker counted with one move in a period at most, the one between the jobs that paid most; random whole "
        "numbers from the discrete Laplace distribution (two-sided geometric), enough to hide one job in every period, "
        "were added to every number of moves"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"count", "available"})

    alpha: Fraction
    periods: tuple[tuple[str, Fraction], ...]
    """What a job loses in each period in which moves can be seen, if it begins or ends there."""
    panel: tuple[str, ...]
    """All periods of the panel."""
    period: str = ""
    """The dimension of periods; empty where the table adds them up."""

    def __post_init__(self) -> None:
        for _, epsilon in self.periods:
            check_parameters(self.name, alpha=self.alpha, epsilon=epsilon, worker_cells=0)

    @property
    def epsilon(self) -> Fraction:
        """What a job loses at most, in all periods in which it can begin or end together."""
        return most_changed(self.panel, dict(self.periods))

    @property
    def most_periods(self) -> int:
        """In how many of the periods a job can begin or end at most."""
        return int(most_changed(self.panel, {code: Fraction(1) for code, _ in self.periods}))

    @cached_property
    def noises(self) -> dict[str, Geometric]:
        """The noise of each period, or of all where they are added up."""
        if not self.period:
            return {"": Geometric(epsilon=self.epsilon / (MOVES * self.most_periods))}
        return {code: Geometric(epsilon=epsilon / MOVES) for code, epsilon in self.periods}

    @property
    def loudest(self) -> Geometric:
        """The noise of the period that spends least."""
        return max(self.noises.values(), key=lambda noise: noise.expected_magnitude)

    def guarantee(self) -> EmployerEmployee:
        """For single jobs, whatever their history."""
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon)

    def planned_error(self) -> PlannedError:
        """The error of the period that spends least."""
        return PlannedError(floor=self.loudest.expected_magnitude, floor_size=0, share=0.0)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every number of moves plus noise, and in `status` where moves cannot be seen."""
        value, status = np.zeros(len(cells), dtype=np.int64), np.full(len(cells), NOT_AVAILABLE, dtype=np.int64)
        for noise, own in self._apart(cells):
            rows = np.flatnonzero(own & (cells["available"] == 1))
            value[rows] = np.clip(cells["count"][rows] + noise.sample(len(rows), randomness), -LIMIT, LIMIT)
            status[rows] = 0
        columns = {"value": value, "status": status}
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell, which is no secret."""
        return self._spread(cells, lambda noise: noise.expected_magnitude)

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The error and the interval of every number of moves, by its period; NaN where there is none."""
        check_confidence(confidence)
        width = self._spread(answer, lambda noise: float(noise.quantile(confidence)))
        y = np.where(answer["status"] == 0, answer["value"].astype(np.float64), np.nan)
        error = np.where(np.isnan(y), np.nan, self._spread(answer, lambda noise: noise.expected_magnitude))
        return PublishedFigures(error=error, low=np.maximum(y - width, 0.0), high=np.maximum(y, 0.0) + width)

    def published_error(self, values: Integers) -> Floats:
        """That of the period that spends least: a value alone does not tell its period."""
        return np.full(len(values), self.loudest.expected_magnitude)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """That of the period that spends least, which covers in all others too."""
        check_confidence(confidence)
        width, y = float(self.loudest.quantile(confidence)), values.astype(np.float64)
        return np.maximum(y - width, 0.0), np.maximum(y, 0.0) + width

    def _apart(self, cells: Cells) -> Iterator[tuple[Geometric, Any]]:
        """Every noise with the cells that have it."""
        if not self.period:
            yield self.noises[""], np.ones(len(cells), dtype=np.bool_)
            return
        dimension = next(d for d in cells.dimensions if d.name == self.period)
        place = cells.codes(self.period)
        for code, noise in self.noises.items():
            yield noise, place == dimension.places[code]

    def _spread(self, cells: Cells, figure: Any) -> Floats:
        found = np.full(len(cells), np.nan)
        for noise, own in self._apart(cells):
            found[own] = figure(noise)
        return found
