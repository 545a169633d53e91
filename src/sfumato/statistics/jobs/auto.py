"""Auto: the mechanism with the least expected error, chosen by public figures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from math import exp, log
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import PlannedError, PublishedFigures, most_jobs, published_figures
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import NoiseParts
from sfumato.privacy.account import parallel
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.calibration import exists
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.vector import Blocks, SmoothBox, VectorPareto

# A public model of workplace cells: what their error would be if establishments were of ordinary sizes.
#
# It serves to choose a mechanism and nothing else. No figure of it is taken from the data that are protected.

SPREAD = 1.94
"""Standard deviation of the logarithm of sizes: at a mean of about 20 workers, 15 in 10,000 have 1,000 or more."""
LARGEST = 40_000
"""No establishment of the model is larger."""

_NODES = 400


@dataclass(frozen=True, kw_only=True)
class ReferenceCells:
    """Workplace cells of log-normal establishments whose workers are spread evenly over d worker cells.

    >>> cells = ReferenceCells(mean_size=20, worker_cells=8)
    >>> cells.jobs_in_a_cell(4)                             # 4 establishments of 20 workers in 8 cells
    10.0
    """

    mean_size: int
    worker_cells: int

    def jobs_in_a_cell(self, establishments: int) -> float:
        """The expected count of one worker cell."""
        return establishments * self.mean_size / self.worker_cells

    def mean_of(self, establishments: int, error: Callable[[Floats], Floats]) -> float:
        """The mean of an error that follows the count of one worker cell: the largest establishment, and the rest."""
        largest = self._largest(establishments)
        rest = max(establishments * self.mean_size - float(largest.mean()), 0.0)
        return float(error((largest + rest) / self.worker_cells).mean())

    def largest_at_least(self, establishments: int, *, share: float, least: float) -> float:
        """E[max(share·X, least)] with X the largest of so many establishments."""
        return float(np.maximum(share * self._largest(establishments), least).mean())

    def _largest(self, establishments: int) -> Floats:
        # The largest of k is below x with probability F(x)^k: the quantile at u is that of one at u^(1/k).
        at = [min(u ** (1 / establishments), 1 - 1e-15) for u in self._levels]
        logs = np.array([self._normal.inv_cdf(level) for level in at])
        sizes: Floats = np.clip(np.exp(logs), 1, LARGEST)
        return sizes

    @cached_property
    def _levels(self) -> list[float]:
        return [(i + 0.5) / _NODES for i in range(_NODES)]

    @cached_property
    def _normal(self) -> NormalDist:
        # Sizes below one count as one, which adds to the mean; the median is set so that the mean is as asked.
        low, high = -20.0, log(self.mean_size)
        for _ in range(60):
            middle = (low + high) / 2
            sizes = [exp(NormalDist(middle, SPREAD).inv_cdf(u)) for u in self._levels]
            mean = sum(min(max(size, 1), LARGEST) for size in sizes) / _NODES
            low, high = (middle, high) if mean < self.mean_size else (low, middle)
        return NormalDist(low, SPREAD)


Mechanism = VectorPareto | LogBox | SmoothBox

_SMALLEST_MEAN, _LARGEST_MEAN = 2, 1000
# Numbers of establishments at which the choice may change: each, then every tenth of a factor of ten.
_CLASSES = sorted({*range(1, 11), *(round(10 ** (i / 10)) for i in range(10, 51))})


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Workplace cells of `first` to `last` establishments are protected by one mechanism; None is no last."""

    first: int
    last: int | None
    mechanism: Mechanism

    def __str__(self) -> str:
        if self.last is None:
            number = f"{self.first:,} or more" if self.first > 1 else "any number of"
        else:
            number = f"{self.first:,}" if self.first == self.last else f"{self.first:,} to {self.last:,}"
        return f"{number} establishment{'' if number == '1' else 's'}: {self.mechanism.name}"


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Weak, pure (α, ε) privacy by vector-pareto, log-box or smooth-box, whichever suits a workplace cell.

    The choice is a fixed function of the public number of establishments, of α, ε and the number of worker cells, and
    of `mean_size`, the workers of an ordinary establishment; it never looks at a count. docs/methods/vector.md has
    the proof and the model of ordinary cells that the rule is derived from.

    >>> method = Auto(alpha=Fraction("0.1"), epsilon=Fraction(4), worker_cells=8)
    >>> print(method.describe_choice())
    1 establishment: vector-pareto; 2 to 5 establishments: log-box; 6 or more establishments: smooth-box
    """

    name: ClassVar[str] = "auto"
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest", "largest_employer", "establishments"})
    unbiased: ClassVar[bool] = True  # but for rounding, which `expected_bias` tells

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    mean_size: int = 20

    def __post_init__(self) -> None:
        if not _SMALLEST_MEAN <= self.mean_size <= _LARGEST_MEAN:
            raise MethodError(
                self.name,
                expected=f"mean_size between {_SMALLEST_MEAN} and {_LARGEST_MEAN} workers",
                found=f"mean_size = {self.mean_size}",
                do="give the public mean number of workers of an establishment, such as 20",
            )
        _ = self.rule  # refuses parameters at which no mechanism exists

    @property
    def cells(self) -> int:
        """The number of cells in a block."""
        return max(self.worker_cells, 1)

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Those that exist here: log-box always does where any does."""
        alpha, epsilon, worker_cells = self.alpha, self.epsilon, self.worker_cells
        log_box = LogBox(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)
        if not exists(alpha=alpha, epsilon=epsilon, cells=self.cells):
            return (log_box,)
        return (
            VectorPareto(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells),
            log_box,
            SmoothBox(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells),
        )

    @cached_property
    def rule(self) -> tuple[Choice, ...]:
        """Which mechanism serves which numbers of establishments: public, and part of the privacy statement."""
        best = [min(self.mechanisms, key=lambda m: self.model_error(m, number)) for number in _CLASSES]
        runs = [list(run) for _, run in groupby(zip(_CLASSES, best, strict=True), key=lambda pair: pair[1].name)]
        firsts = [1, *(run[0][0] for run in runs[1:]), None]
        return tuple(
            Choice(first=run[0][0], last=None if after is None else after - 1, mechanism=run[0][1])
            for run, after in zip(runs, firsts[1:], strict=True)
        )

    def describe_choice(self) -> str:
        """The rule in words."""
        return "; ".join(map(str, self.rule))

    @property
    def description(self) -> str:
        """What is done to the counts, with the rule: it is part of the privacy statement of every bundle."""
        return (
            "random noise was drawn for all worker cells of a workplace cell together, by a mechanism that the public "
            f"number of its establishments alone decides ({self.describe_choice()}), and the results were rounded to "
            "whole jobs"
        )

    def model_error(self, mechanism: Mechanism, establishments: int) -> float:
        """The mean error of a worker cell under the public model of ordinary workplace cells."""
        model, alpha = self._model, float(self.alpha)
        if isinstance(mechanism, VectorPareto):
            return mechanism.error_in_scales * model.largest_at_least(establishments, share=alpha, least=1)
        if isinstance(mechanism, SmoothBox):
            share = alpha / self.cells
            return mechanism.error_in_scales * model.largest_at_least(establishments, share=share, least=1 + alpha)
        return mechanism.error_share * (model.jobs_in_a_cell(establishments) + 1 / alpha)

    def guarantee(self) -> EmployerEmployee:
        """That of the weakest mechanism in the rule: workplace cells hold different establishments."""
        return parallel([choice.mechanism.guarantee() for choice in self.rule])

    def planned_error(self) -> PlannedError:
        """The greatest of the mechanisms that the rule may choose, as a share of the count where they differ."""
        planned = [choice.mechanism.planned_error() for choice in self.rule]
        of = {error.of for error in planned}
        return PlannedError(
            floor=max(error.floor for error in planned),
            floor_size=min(error.floor_size for error in planned),
            share=max(error.share or 0.0 for error in planned),
            of=of.pop() if len(of) == 1 else "the cell's count",
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell under the mechanism chosen for it: confidential."""
        error = np.zeros(len(cells))
        for where, mechanism in self._parts(cells):
            error[where] = mechanism.expected_error(_some(cells, where, mechanism.needs))
        return error

    def expected_bias(self, cells: Cells) -> Floats:
        """What rounding brings back of the bias where log-box is chosen: confidential."""
        bias = np.zeros(len(cells))
        for where, mechanism in self._parts(cells):
            if isinstance(mechanism, LogBox):
                bias[where] = mechanism.expected_bias(_some(cells, where, mechanism.needs))
        return bias

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every workplace cell under its mechanism; zeros get noise like any other count."""
        Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)
        value = np.zeros(len(cells), dtype=np.int64)
        for where, mechanism in self._parts(cells):
            value[where] = mechanism.protect(_some(cells, where, mechanism.needs), randomness)["value"]
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})

    def published_error(self, values: Integers) -> Floats:
        """The largest of the figures of all mechanisms, when the number of establishments is not given."""
        figures: Floats = np.max([choice.mechanism.published_error(values) for choice in self.rule], axis=0)
        return figures

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """What all mechanisms together do not exclude, when the number of establishments is not given."""
        ends = [choice.mechanism.published_interval(values, confidence) for choice in self.rule]
        lows, highs = zip(*ends, strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures of the mechanism that the public number of establishments chose for each workplace cell."""
        return self._figures(answer, confidence, None)

    def most_jobs(self, answer: Cells, miss: float) -> Floats:
        """The most jobs that each workplace cell can have, by the mechanism that was chosen for it."""
        first = answer.blocks()[:, 0]
        found = np.zeros(len(first))
        for where, mechanism in self._parts(answer):
            found[where[first]] = most_jobs(mechanism, _some(answer, where, frozenset({"value"})), miss)
        return found

    def figures_within(self, answer: Cells, confidence: float, largest: Floats) -> PublishedFigures:
        """The same where no establishment of a workplace cell has more workers than `largest`."""
        return self._figures(answer, confidence, largest)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:
        """The pieces of each mechanism, in the workplace cells that it was chosen for."""
        return NoiseParts.joined(
            mechanism.noise_parts(_some(answer, where, frozenset({"value"})), sums[where], error[where])
            for where, mechanism in self._parts(answer)
        )

    def _figures(self, answer: Cells, confidence: float, largest: Floats | None) -> PublishedFigures:
        error, low, high = (np.zeros(len(answer)) for _ in range(3))
        for where, mechanism in self._parts(answer):
            part = published_figures(
                mechanism,
                _some(answer, where, frozenset({"value"})),
                confidence,
                None if largest is None else largest[where],
            )
            error[where], low[where], high[where] = part.error, part.low, part.high
        return PublishedFigures(error=error, low=low, high=high)

    @cached_property
    def _model(self) -> ReferenceCells:
        return ReferenceCells(mean_size=self.mean_size, worker_cells=self.cells)

    def _parts(self, cells: Cells) -> Iterator[tuple[NDArray[np.bool_], Mechanism]]:
        """Which cells each choice of the rule is for, by the number of establishments and nothing else."""
        if "establishments" not in cells.columns:
            raise MethodError(
                self.name,
                expected="the public number of establishments in every workplace cell",
                found="cells without it, as a joined table has them",
                do="give a workplaces table, or choose log-box or smooth-box",
            )
        number = np.maximum(cells["establishments"], 1)
        for choice in self.rule:
            where = number >= choice.first
            if choice.last is not None:
                where &= number <= choice.last
            yield where, choice.mechanism


def _some(cells: Cells, where: NDArray[np.bool_], columns: frozenset[str]) -> Cells:
    return Cells(
        dimensions=cells.dimensions,
        positions=cells.positions[where],
        columns={name: cells[name][where] for name in columns},
    )
