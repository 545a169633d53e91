"""Double Pareto noise for totals of units: it hides the value of one unit within a factor, and small ones whole.

docs/methods/formal-records.md says who is protected, and proves it.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import ADDED, CONFIDENCE, OF_TABLE, PlannedError, PublishedFigures, check_confidence, of_table
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import NoiseParts, spread
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.calibration import Calibration, calibrate
from sfumato.statistics.jobs.smooth import LIMIT, SmoothPareto
from sfumato.statistics.jobs.vector import OUTWARD, counts_within, rounded_down, rounded_up
from sfumato.statistics.units.question import HEAVIEST, NEGATIVE

MOST_CELLS = 10_000
"""Of one unit: epsilon that is divided by more would leave nothing."""
LARGEST_UNIT = "its largest unit"
_RATIOS = np.linspace(0, 1, 65)
"""Of two sizes of noise, at which their difference is worked out; others lie between."""
_WIDE = 1e9
"""A scale beside which whole numbers are fine."""
POSITIVE, NEGATIVES = "positive", "negative"
"""The columns with the protected sums of what is above 0, and of what is below, without its sign."""


@dataclass(frozen=True, kw_only=True)
class UnitPareto(SmoothPareto):
    """The values of one unit hidden within a factor 1 + α, and whole up to `floor`, by noise of scale k·S.

    S = max(αx, B), B being the floor and x what the largest unit adds to the cell. `epsilon` is what the whole table
    spends: all cells that one unit may be in have equal shares of it.

    >>> from fractions import Fraction
    >>> UnitPareto(alpha=Fraction("0.1"), epsilon=Fraction(2), floor=1_000).planned_error().floor_size
    10000
    """

    name: ClassVar[str] = "unit-pareto"
    done: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Pareto) was added to every {number} and "
        "rounded to whole {unit}"
    )
    description: ClassVar[str] = done.format(number="total", unit="numbers")
    of_units: ClassVar[bool] = True
    """It is for totals of records, and not for jobs."""

    most_cells: int = 1
    """In how many cells of the table one unit may be."""
    error_epsilon: Fraction = field(default=Fraction(0), repr=False, metadata={ADDED: True, OF_TABLE: True})
    """Nothing: scales are bought of counts of jobs alone."""
    sums: int = of_table(1)
    """How many sums of a cell one unit may move at once: two where it may have profits and losses there."""
    weighted: bool = of_table(False)
    several: bool = of_table(False)
    """Whether a unit may have several records in a cell, of different weights."""

    def __post_init__(self) -> None:
        if self.error_epsilon or self.worker_cells:
            raise MethodError(
                self.name,
                expected="neither error_epsilon nor attributes of workers, which are for tables of jobs",
                found=f"error_epsilon = {float(self.error_epsilon):g}, worker_cells = {self.worker_cells}",
                do="leave it out",
            )
        if not 1 <= self.most_cells <= MOST_CELLS:
            raise MethodError(
                f"{self.name}, most_cells",
                expected=f"a whole number from 1 to {MOST_CELLS:,}: in how many cells one unit may be",
                found=str(self.most_cells),
                do="write the number, or leave it out where every unit is in one cell",
            )
        super().__post_init__()

    @property
    def shares(self) -> int:
        """Into how many equal parts the table's ε is divided."""
        return self.most_cells * self.sums

    def cell_guarantee(self) -> EmployerEmployee:
        """What one cell by itself reveals at most."""
        return replace(self.guarantee(), epsilon=self.epsilon / self.shares)

    def guarantee(self) -> EmployerEmployee:
        """ε for the whole table, about the values of one unit."""
        return EmployerEmployee(definition="units", alpha=self.alpha, epsilon=self.epsilon)

    @cached_property
    def calibration(self) -> Calibration:
        """The tail and the scale of the noise, public and exact."""
        return calibrate(alpha=self.alpha, epsilon=self.epsilon, shares=self.shares, among="cells of one unit")

    def planned_error(self) -> PlannedError:
        """The error where αx ≤ B, and above that its share of the largest unit; of records of weight 1."""
        return replace(super().planned_error(), of=LARGEST_UNIT)

    @cached_property
    def of_differences(self) -> Floats:
        """The mean absolute difference of two noises in that of the larger, by how large the other is beside it."""
        sums = np.concatenate([np.arange(len(_RATIOS))] * 2)
        scales = _WIDE * np.concatenate([np.ones(len(_RATIOS)), np.maximum(_RATIOS, 1e-6)])
        found: Floats = spread(NoiseParts.of_cells(self.law, sums, scales), len(_RATIOS), CONFIDENCE).error
        return found / (_WIDE * self.error_in_scales)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every total plus noise, and with weights the largest one of the cell, which is public."""
        answer = super().protect(cells, randomness)
        return answer.with_column(HEAVIEST, cells[HEAVIEST]) if self.weighted else answer

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures as if the whole published total were of one unit."""
        values = answer["value"]
        if not self.weighted:
            low, high = self.published_interval(values, confidence)
            return PublishedFigures(error=self.published_error(values), low=low, high=high)
        check_confidence(confidence)
        alpha, floors = float(self.alpha), self.floor * answer[HEAVIEST].astype(np.float64)
        # A total is rounded down and the largest contribution up: it may be above the total by less than one.
        share = alpha * (np.maximum(values, 0) + 1)
        scale = (share + floors if self.several else np.maximum(share, floors)) + 1
        width = float(self.scale) * self.noise.quantile(confidence)
        if self.several:
            low, high = totals_within(values, width=width * (floors + 1 + alpha), slope=alpha * width)
        else:
            width *= 1 + (1 + alpha) / self.floor
            low, high = counts_within(values, width=width * floors, slope=alpha * width)
        return PublishedFigures(error=self.error_in_scales * scale, low=low, high=high)

    def multiples(self, cells: Cells) -> Integers:
        """The scale of every cell in units of 1/q, where α = p/q: confidential."""
        return self._multiples(cells)

    def _multiples(self, cells: Cells) -> Integers:
        """The scale of every cell in units of 1/q, where α = p/q.

        With weights S = max(αx, BW) + 1, W being the largest weight of the cell: the one makes up for rounding. Where a
        unit may have records of different weights S = αx + BW + 1.
        """
        if not self.weighted:
            return super()._multiples(cells)
        p, q = self.alpha.numerator, self.alpha.denominator
        share, floors = cells["largest"] * p, q * self.floor * cells[HEAVIEST]
        scaled: Integers = (share + floors if self.several else np.maximum(share, floors)) + q
        return scaled


@dataclass(frozen=True, kw_only=True)
class SignedPareto:
    """Totals of values that may be below 0: what is above 0 and what is below are protected each by itself.

    One step of a unit with one record moves one of the two sums of a cell, never both, so that each may spend what the
    table spends; of larger units a step moves both, and each has half.
    """

    name: ClassVar[str] = "unit-pareto"
    needs: ClassVar[frozenset[str]] = UnitPareto.needs
    of: UnitPareto

    @property
    def description(self) -> str:
        """What is done, as a clause of the privacy statement."""
        return f"{self.of.description}; so it was done to sums above 0 and to sums below 0, and totals are differences"

    @property
    def done(self) -> str:
        """What is done, to numbers of which kind and in which unit."""
        return (
            "what is above 0 and what is below 0 was added up by itself, "
            + self.of.done.replace("every {number}", "both sums of every cell")
            + ", and every {number} is their difference"
        )

    def guarantee(self) -> EmployerEmployee:
        """What both sums reveal at most, together."""
        return self.of.guarantee()

    def planned_error(self) -> PlannedError:
        """About that of the larger sum and the floor of the other."""
        one = self.of.planned_error()
        return replace(one, floor=float(_together(self.of, np.array([one.floor]), np.array([one.floor]))[0]))

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell: confidential."""
        return _together(self.of, *(self.of.expected_error(part) for part in _parts(cells)))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The difference of both protected sums as `value`, and both."""
        above, below = (self.of.protect(part, randomness) for part in _parts(cells))
        value = np.clip(above["value"] - below["value"], -LIMIT, LIMIT)
        found = above.with_column("value", value)
        return found.with_column(POSITIVE, above["value"]).with_column(NEGATIVES, below["value"])

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures of the difference: each sum is held by its interval but for half of what the confidence leaves.

        Both hold then at least as often as is stated. Lower ends are NaN where the sum below 0 has no upper limit.
        """
        check_confidence(confidence)
        parts = [
            self.of.published_figures(answer.with_column("value", answer[name]), (1 + confidence) / 2)
            for name in (POSITIVE, NEGATIVES)
        ]
        above, below = (one.beside(answer[name]) for one, name in zip(parts, (POSITIVE, NEGATIVES), strict=True))
        return PublishedFigures(
            error=_together(self.of, above.error, below.error),  # no sum is below 0, and an error says so
            low=above.low - below.high,
            high=above.high - below.low,
        )


def totals_within(values: Integers, *, width: Floats, slope: float) -> tuple[Floats, Floats]:
    """The least and the greatest whole n ≥ 0 with |value − n| ≤ slope·n + width + ½; NaN for no upper limit.

    As with `counts_within`, a negative value has the upper end of 0.
    """
    y = values.astype(np.float64)
    width, slope = width * (1 + OUTWARD) + 0.5, slope * (1 + OUTWARD)
    low = rounded_up((y - width) / (1 + slope), y)
    if slope >= 1:
        return low, np.full(len(y), np.nan)
    y = np.maximum(y, 0.0)
    return low, rounded_down((y + width) / (1 - slope), y)


def _parts(cells: Cells) -> tuple[Cells, Cells]:
    """The sums above 0 and those below, each as cells of its own."""
    public = {HEAVIEST: cells[HEAVIEST]} if HEAVIEST in cells.columns else {}
    made = [
        Cells(
            dimensions=cells.dimensions,
            positions=cells.positions,
            columns={name: cells[f"{sign}{name}"] for name in ("count", "largest")} | public,
        )
        for sign in ("", NEGATIVE)
    ]
    return made[0], made[1]


def _together(method: UnitPareto, one: Floats, other: Floats) -> Floats:
    """The mean absolute difference of two independent noises, given that of each."""
    larger, smaller = np.maximum(one, other), np.minimum(one, other)
    ratios = np.divide(smaller, larger, out=np.zeros(len(larger)), where=larger > 0)
    found: Floats = larger * np.interp(ratios, _RATIOS, method.of_differences)
    return found
