"""Totals and means of people with discrete Laplace noise: ε privacy for one person with the whole history.

docs/methods/people-totals.md has the proofs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import (
    NOT_AVAILABLE,
    PlannedError,
    PublishedFigures,
    check_confidence,
    check_parameters,
    of_table,
)
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import NoiseParts, symmetric
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.laplace import Laplace
from sfumato.statistics.jobs.mean_of import CERTAINTY, edge
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.people.small_samples import MOST_BOUND, SIZES, OfWeights

LACKING = "lacking"
"""The column with what people lack to the maximum, beside `value`, what they have above the minimum."""
LARGEST_SCALE = 2**52
"""Of noise, in steps: a draw is far below 2^61 but for a probability that no computer sees."""
_SHARES = 501
"""Between the middle and an end of the bounds, at which quantiles are worked out; others lie between."""
_HALVINGS = 60


def in_short(number: float) -> str:
    """A number in two digits, without powers of ten."""
    return f"{float(f'{number:.2g}'):,.10g}"


@dataclass(frozen=True, kw_only=True)
class BoundedSums(OfWeights, ABC):
    """What methods for sums of bounded values share: their bounds, their periods, and what one record moves."""

    named: ClassVar[str] = Laplace.name
    """What release files call it."""

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    low_y: int = of_table(0)
    high_y: int = of_table(1)
    periods: int = of_table(1)
    """The number of periods in which the table counts a person."""

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        self.check_weights()
        bounds = f"from {self.low_y:,} to {self.high_y:,}"
        rules = (
            (self.low_y < self.high_y, "bounds", "a minimum below the maximum", bounds),
            (max(abs(self.low_y), abs(self.high_y)) <= MOST_BOUND, "bounds", "values of at most 2^40 units", bounds),
            (self.periods >= 1, "periods", "one period at least", f"{self.periods}"),
        )
        for holds, what, expected, found in rules:
            if not holds:
                raise MethodError(f"{self.name}, {what}", expected=expected, found=found, do="correct the release file")
        if self.moves / self.period_epsilon > LARGEST_SCALE:
            raise MethodError(
                f"{self.name}, epsilon",
                expected="noise of at most 2^52 steps, which leaves room in 64 bits",
                found="more, by the bounds of the measure, the largest weight and epsilon",
                do="store the measure in a larger unit, state narrower bounds or weights, or spend more",
            )

    @property
    @abstractmethod
    def moves(self) -> int:
        """What one record moves at most, in the steps in which noise is added."""

    @property
    def largest(self) -> int:
        """The largest size of a value."""
        return max(abs(self.low_y), abs(self.high_y))

    @property
    def fraction(self) -> int:
        """How many steps of tabulated sums one unit of weight is."""
        return self.weight_steps // self.largest_weight if self.weight_steps > 1 else 1

    @property
    def period_epsilon(self) -> Fraction:
        """What one period spends: a person may be in every one."""
        return self.epsilon / self.periods

    @cached_property
    def noise(self) -> Geometric:
        """The same noise for every sum."""
        return Geometric(epsilon=self.period_epsilon / self.moves)

    def guarantee(self) -> EmployerEmployee:
        """For one person: parallel over the cells of a period, sequential over the periods."""
        period = EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.period_epsilon)
        return sequential([period] * self.periods)

    def spending(self, factor: Fraction) -> Self:
        """The same method with so many times its ε."""
        return replace(self, epsilon=self.epsilon * factor)

    def of_one_period(self) -> Self:
        """The method that a period has, as if there were no other."""
        return replace(self, epsilon=self.period_epsilon, periods=1)

    def in_order(self) -> Self:
        """The same: it has no places."""
        return self

    def people(self, counted: Cells) -> Integers:
        """The true number of people of every group, or what they weigh: confidential."""
        return self.weighed(counted["count"])

    @property
    def most_people(self) -> int:
        """How many people, or steps of weight, a group may have, so that all sums stay within 64 bits."""
        return (LIMIT - 1) // (2 * self.largest)

    def _refuse_large(self, *sums: Integers) -> None:
        # The error names no number: these are confidential.
        if any(len(one) and int(np.abs(one).max()) >= LIMIT for one in sums):
            raise MethodError(
                self.name,
                expected="sums below 2^61 steps in every cell",
                found="a cell outside these limits",
                do="store the measure in a larger unit, or state narrower bounds",
            )

    def _drawn(self, sums: Integers, randomness: Randomness) -> Integers:
        drawn: Integers = np.clip(sums + self.noise.sample(len(sums), randomness), -LIMIT, LIMIT)
        return drawn


@dataclass(frozen=True, kw_only=True)
class LaplaceTotal(BoundedSums):
    """ε privacy for one person by discrete Laplace noise on totals of a bounded measure.

    A person moves one total of each period by the largest bound at most, times the largest weight.

    >>> pay = LaplaceTotal(alpha=Fraction(1), epsilon=Fraction(2), high_y=250_000)
    >>> round(pay.noise.expected_magnitude)
    125000
    """

    name: ClassVar[str] = "laplace-total"
    of_people: ClassVar[tuple[str, ...]] = ("total",)
    """The statistics of people that it makes."""
    needs: ClassVar[frozenset[str]] = frozenset({"sum_y"})
    description: ClassVar[str] = (
        "values within public bounds were added up, and random whole numbers from the discrete Laplace distribution "
        "(two-sided geometric), enough to hide one person's whole history, were added to every total"
    )

    @property
    def moves(self) -> int:
        """What one record moves a total by at most, in the smallest unit of the measure."""
        return self.largest * self.largest_weight

    def totals(self, cells: Cells) -> Integers:
        """The true totals, in whole units: steps of weights are rounded once, halves up: confidential."""
        whole: Integers = (cells["sum_y"] + self.fraction // 2) // self.fraction
        return whole

    def true_value(self, counted: Cells) -> Floats:
        """The same, as what a published value is compared with."""
        return self.totals(counted).astype(np.float64)

    def planned_error(self) -> PlannedError:
        """The same error in every cell."""
        return PlannedError(floor=self.noise.expected_magnitude, floor_size=0, share=0.0)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error, the same in every cell."""
        return np.full(len(cells), self.noise.expected_magnitude)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every total plus noise: whole numbers, possibly outside of what is possible."""
        totals = self.totals(cells)
        self._refuse_large(totals)
        value = self._drawn(totals, randomness)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})

    def published_error(self, values: Integers) -> Floats:
        """The mean absolute error, which is no secret here."""
        return np.full(len(values), self.noise.expected_magnitude)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All totals within the quantile of the noise, of which none is on the side of 0 where no value is."""
        check_confidence(confidence)
        width, y = float(self.noise.quantile(confidence)), values.astype(np.float64)
        least, most = (0.0 if self.low_y >= 0 else -np.inf), (0.0 if self.high_y <= 0 else np.inf)
        return np.clip(np.minimum(y, most) - width, least, None), np.clip(np.maximum(y, least) + width, None, most)

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The error, and the interval so wide that it holds the value where that is possible."""
        y = answer["value"].astype(np.float64)
        low, high = self.published_interval(answer["value"], confidence)
        away = np.maximum(np.maximum(low - y, y - high), 0.0)
        return PublishedFigures(error=np.maximum(self.published_error(answer["value"]), away), low=low, high=high)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:  # noqa: ARG002
        """The same noise in every cell, which is no secret."""
        law = symmetric(lambda x: self.noise.survival(np.floor(x) + 1), self.noise.expected_magnitude)
        return NoiseParts.of_cells(law, sums, np.ones(len(sums)))

    def typical_error(self) -> str:
        """How far a total is typically off."""
        return f"The noise of a total is typically {self.planned_error().in_a_small_cell}, in groups of every size."

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        return self.planned_error().in_a_small_cell, "the same"


@dataclass(frozen=True, kw_only=True)
class LaplaceMean(BoundedSums):
    """ε privacy for one person by discrete Laplace noise on what people have above a minimum and lack to a maximum.

    Both together move by the range of the measure with one person, whatever the value, so that noise of one scale in
    both hides a person and no ε is divided: their sum is the number of people, and the share of the first the mean.

    >>> pay = LaplaceMean(alpha=Fraction(1), epsilon=Fraction(1), high_y=250_000)
    >>> pay.fewest, [round(float(error)) for error in pay.planned_errors(np.array([100, 1_000]))]
    (8, [2500, 250])
    """

    name: ClassVar[str] = "laplace-mean"
    of_people: ClassVar[tuple[str, ...]] = ("mean",)
    """The statistics of people that it makes."""
    needs: ClassVar[frozenset[str]] = frozenset({"count", "sum_y"})
    description: ClassVar[str] = (
        "what people have above the minimum of the measure and what they lack to its maximum were added up, and random "
        "whole numbers from the discrete Laplace distribution (two-sided geometric), enough to hide one person's whole "
        "history, were added to both sums, of which means, totals and numbers of people are made"
    )

    @property
    def span(self) -> int:
        """The range of the measure."""
        return self.high_y - self.low_y

    @property
    def moves(self) -> int:
        """What one record moves both sums by together, in steps of weights."""
        return self.span * self.weight_steps

    @property
    def person(self) -> int:
        """What a number of people of one is in both sums together."""
        return self.span * self.fraction

    def halves(self, cells: Cells) -> tuple[Integers, Integers]:
        """What people truly have above the minimum, and what they lack to the maximum: confidential."""
        return cells["sum_y"] - self.low_y * cells["count"], self.high_y * cells["count"] - cells["sum_y"]

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Both sums plus noise, and where there is no mean.

        There is none where the number of people may be 0: any mean would be possible.
        """
        halves = self.halves(cells)
        self._refuse_large(*halves)
        above, lacking = (self._drawn(half, randomness) for half in halves)
        status = np.where(above + lacking >= self._certain, 0, NOT_AVAILABLE)
        columns = {"value": above, LACKING: lacking, "status": status}
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)

    @cached_property
    def _certain(self) -> int:
        """What both sums reach together with a probability of one in a thousand, or less, where nobody is.

        With r = e^−ε the sum of two draws is k with ((1 − r)/(1 + r))²·r^k·(k + (1 + r²)/(1 − r²)), for k ≥ 0.
        """
        step = float(self.noise.epsilon)
        less, more = -np.expm1(-step), 1 + np.exp(-step)

        def beyond(k: int) -> float:
            middle = (1 + np.exp(-2 * step)) / -np.expm1(-2 * step)
            return float(np.exp(-step * k) * ((k + middle) * less + np.exp(-step)) / more**2)

        low, high = 0, 1
        while beyond(high) > 1 - CERTAINTY:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if beyond(middle) > 1 - CERTAINTY else (low, middle)
        return high

    @property
    def fewest(self) -> int:
        """The least published number of people that has a mean, rounded."""
        return -(-self._certain // self.person)

    # What both sums tell. Shares are of the range: 0 is the minimum of the measure, 1 the maximum.

    def published_means(self, answer: Cells) -> Floats:
        """The means, in the unit of the measure; NaN where there is none."""
        return np.where(answer["status"] == 0, self.low_y + self.span * _share(answer), np.nan)

    def published_people(self, answer: Cells) -> Floats:
        """The number of people, or what they weigh."""
        people: Floats = (answer["value"] + answer[LACKING]) / self.person
        return people

    def published_totals(self, answer: Cells) -> Integers:
        """The totals, in the smallest unit: all people at the maximum less what they lack, or above the minimum."""
        above, lacking = (answer[name].astype(np.float64) for name in ("value", LACKING))
        if self.low_y == 0 and self.fraction == 1:
            return answer["value"]
        total: Integers = np.rint((self.high_y * above + self.low_y * lacking) / self.person).astype(np.int64)
        return total

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The mean absolute error and the interval of every mean; NaN where there is none.

        Where the true share is p, (1 − p) of the first sum less p of the second is noise alone, of a distribution that
        is public. All p are kept that a test by it does not reject (Fieller's interval).
        """
        some = answer["status"] == 0
        both = np.where(some, answer["value"] + answer[LACKING], 1).astype(np.float64)
        told = np.where(some, _share(answer), 0.0)
        inside = np.clip(told, 0.0, 1.0)
        known, reaches = self._quantiles(confidence)
        scale = float(1 / self.noise.epsilon)

        def beyond(share: Floats) -> Flags:
            """Whether noise does not explain a share."""
            larger = np.maximum(share, 1 - share)
            return np.abs(inside - share) * both > np.interp(larger, known, reaches) * scale + larger / 2

        ends = (edge(np.full_like(inside, end), inside, beyond) for end in (0.0, 1.0))
        low, high = ends
        low, high = np.minimum(low, told), np.maximum(high, told)
        error = np.maximum((1 - inside * (1 - inside)) * scale / both, np.abs(told - inside))
        low, high = (np.where(some, self.low_y + self.span * end, np.nan) for end in (low, high))
        return PublishedFigures(error=np.where(some, self.span * error, np.nan), low=low, high=high)

    def published_error(self, values: Integers) -> Floats:
        """One sum alone does not tell the error; `published_figures` has it."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """One sum alone does not tell the interval; `published_figures` has it."""
        check_confidence(confidence)
        return np.full(len(values), float(self.low_y)), np.full(len(values), float(self.high_y))

    def _quantiles(self, confidence: float) -> tuple[Floats, Floats]:
        """What |(1 − p)X − pY| stays below with this probability, for Laplace noise of scale 1, by max(p, 1 − p).

        It is beyond t with a²e^(−t/a) − b²e^(−t/b) over a² − b², a and b being the larger and the smaller one.
        """
        check_confidence(confidence)
        larger = np.linspace(0.5, 1.0, _SHARES)
        a = np.maximum(larger, 0.5 + 1e-6)  # at a = b it is a limit
        b = np.maximum(1 - a, 1e-300)
        low, high = np.zeros(_SHARES), np.full(_SHARES, 1.0 - 2 * np.log(1 - confidence))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            far = (a**2 * np.exp(-middle / a) - b**2 * np.exp(-middle / b)) / (a**2 - b**2) > 1 - confidence
            low, high = np.where(far, middle, low), np.where(far, high, middle)
        return larger, high

    # How far means are off.

    def true_value(self, counted: Cells) -> Floats:
        """The means without noise, NaN where nobody is: confidential."""
        count = counted["count"].astype(np.float64)
        means: Floats = np.divide(counted["sum_y"], count, out=np.full(len(count), np.nan), where=count > 0)
        return means

    def expected_error(self, cells: Cells) -> Floats:
        """About how far the mean of every group is off on average, at the true numbers: confidential."""
        above, lacking = self.halves(cells)
        both = np.maximum(above + lacking, 1).astype(np.float64)
        share = above / both
        found: Floats = self.span * (1 - share * (1 - share)) * float(1 / self.noise.epsilon) / both
        return found

    def planned_errors(self, people: Integers) -> Floats:
        """The most that means of groups of so many people are off on average: it is three quarters in the middle."""
        found: Floats = self._of_one / people
        return found

    @property
    def _of_one(self) -> float:
        """The error of a mean times the number of people, at the most."""
        return float(self.span * self.largest_weight / self.period_epsilon)

    def planned_error(self) -> PlannedError:
        """It falls with the number of people, and no one figure stands for all; `planned_errors` has it by size."""
        return PlannedError(floor=0.0, floor_size=0, share=None, of="its people")

    def typical_error(self) -> str:
        """How far means, totals and numbers of people are typically off."""
        one = float(self.largest_weight / self.period_epsilon)
        ends = [abs(end) * one for end in (self.low_y, self.high_y)]
        total = (ends[0] ** 2 + ends[0] * ends[1] + ends[1] ** 2) / sum(ends)
        what = "people" if self.largest_weight == 1 else "what people weigh"
        return (
            f"A mean is typically off by {in_short(0.75 * self._of_one)} to {in_short(self._of_one)} divided by the "
            f"number of people, a number of people by {in_short(1.5 * one)} ({what}), and a total by {in_short(total)}."
        )

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups, of people of the largest weight."""
        small, large = (in_short(self._of_one / (n * self.largest_weight)) for n in (SIZES[0], SIZES[-1]))
        return f"{small} of {SIZES[0]} people", f"{large} of {SIZES[-1]:,}"


def _share(answer: Cells) -> Floats:
    """The share of the range that is above the minimum, of what may be less than 0 or more than 1."""
    both = (answer["value"] + answer[LACKING]).astype(np.float64)
    return np.divide(answer["value"], both, out=np.zeros(len(both)), where=both > 0)
