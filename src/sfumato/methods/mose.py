"""MOSE: noise scaled to the largest sensitivity observed in a class of groups; what it guarantees is conditional."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.methods.local_sensitivity import Reach, mean_reach, prediction_reach
from sfumato.methods.observed_error import half_widths, least_count
from sfumato.methods.observed_sensitivity import observed
from sfumato.methods.regression import LineSums, rounded_mean
from sfumato.methods.small_samples import MOST_MINIMUM, NO_ERROR, NORMAL, CountedSamples
from sfumato.methods.smooth import LIMIT
from sfumato.methods.status import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee, plain

LEAST_PEOPLE = 3
UNCONDITIONALLY = "not differentially private; "
"""What a condition begins with: that without it nothing is promised."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """One statistic of all groups: rounded to the published grid, and by how much one more person could change it.

    Whatever has these two can be released; `Mose` makes them for predictions and means.
    """

    rounded: Integers
    sensitivity: Floats
    """In units of the data; NaN where the statistic is not defined."""
    scale: Integers
    """How many whole published units a person can change the estimate by, χ/n on the grid; 0 where it is withheld."""
    status: Integers
    chi: dict[int, Fraction]
    """χ of every class of groups that is published, as it may be told."""


@dataclass(frozen=True, kw_only=True)
class Mose(CountedSamples):
    """Laplace noise of scale χ/(n·ε) on predictions or means, and an independent draw for the number of people n.

    χ is the largest n·(local sensitivity) of the groups of a calibration class, rounded up; or `chi`, in people times
    units of the data. It is not differentially private. docs/methods/small-samples.md says what holds given χ.

    >>> Mose(alpha=Fraction(1), epsilon=Fraction(8), at=(Fraction(1, 4), Fraction(3, 4))).epsilon_of_value
    Fraction(8, 3)
    """

    name: ClassVar[str] = "mose"
    description: ClassVar[str] = (
        "random noise from the Laplace distribution, scaled to the largest change that one more person could make to "
        "any group of the same class and divided by the number of people (MOSE), was added to every estimate, and an "
        "independent draw to every number of people"
    )
    makes_means: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"count", "sum_x", "sum_y", "sum_xx", "sum_xy", "class"})

    chi: Fraction = Fraction(0)
    """χ for all classes, from other data or a bound that is known; 0 to take what is observed, rounded up."""
    minimum: int = LEAST_PEOPLE
    """Groups of fewer people are withheld, and take no part in χ."""
    clip: bool = True
    """Move a prediction outside the bounds of the outcome to them before noise is added."""
    least_groups: int = 1
    """Classes in which fewer groups take part are withheld: an observed χ describes the people of few groups."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_unless(
            (self.chi >= 0, "chi", "a positive number, or 0 to take what is observed", plain(self.chi)),
            (
                _is_drawn(self.chi * self.grid),
                "chi",
                f"a χ below 2^61 published units, of which {self.grid:,} make one of the data",
                plain(self.chi),
            ),
            (
                LEAST_PEOPLE <= self.minimum <= MOST_MINIMUM,
                "minimum",
                f"from {LEAST_PEOPLE} to {MOST_MINIMUM:,} people",
                f"{self.minimum}",
            ),
            (
                1 <= self.least_groups <= MOST_MINIMUM,
                "least_groups",
                f"from 1 to {MOST_MINIMUM:,}",
                f"{self.least_groups}",
            ),
        )

    def guarantee(self) -> EmployerEmployee:
        """ε for individuals, on a condition that no data can be shown to keep."""
        if self.chi:
            given = (
                f"χ = {plain(self.chi)}, which was set beforehand: groups of which it is no bound are withheld, and "
                "which these are depends on the data"
            )
        else:
            given = (
                "χ, the largest sensitivity observed in the confidential data: one person more or less must leave it, "
                "rounded up, as it is"
            )
        also = ", or one value only of what is predicted from" if self.at else ""
        condition = (
            f"{UNCONDITIONALLY}conditional on {given}. The scale of the noise depends on the true number of people, "
            f"and so does whether a group is withheld (fewer than {self.minimum} people{also})"
        )
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon, condition=condition)

    @cached_property
    def value_noise(self) -> RoundedLaplace:
        """The noise of values, whose scale is a whole multiple of 1/ε."""
        return RoundedLaplace(unit=1 / self.epsilon_of_value)

    @cached_property
    def count_noise(self) -> Geometric:
        """The noise of the number of people."""
        return Geometric(epsilon=self.epsilon_of_count)

    def estimates(self, cells: Cells) -> tuple[Estimates, ...]:
        """Every statistic with its scale and χ: confidential."""
        return tuple(self._estimates(cells, *found) for found in self._statistics(cells))

    def true_value(self, cells: Cells) -> Floats:
        """The statistics without noise in published units, one row a published cell: confidential."""
        found = [np.where(e.status == 0, e.rounded, np.nan) for e in self.estimates(cells)]
        return np.stack(found).T.ravel()

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every published cell, NaN where it is withheld: confidential."""
        found = [
            np.where(e.status == 0, self.value_noise.expected_magnitude(np.maximum(e.scale, 1)), np.nan)
            for e in self.estimates(cells)
        ]
        return np.stack(found).T.ravel()

    def planned_errors(self, people: Integers) -> Floats:
        """The mean absolute error of groups of so many people, in published units; NaN where χ is not set."""
        if not self.chi:
            return np.full(len(people), np.nan)
        return self.value_noise.expected_magnitude(self.planned_multiples(people))

    def planned_multiples(self, people: Integers) -> Integers:
        """χ/n in whole published units for groups of so many people, with the χ that is set: 1/ε of it is the scale."""
        return _multiples(self.chi * self.grid, people)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every estimate and every number of people plus a draw of its own, and errors from what is published."""
        self._check_people(cells)
        count = np.clip(cells["count"] + self.count_noise.sample(len(cells), randomness), -LIMIT, LIMIT)
        classes, value, error, status = cells["class"], [], [], []
        for estimate in self.estimates(cells):
            drawn = self.value_noise.sample(np.maximum(estimate.scale, 1), randomness)
            value.append(np.clip(estimate.rounded + drawn, -LIMIT, LIMIT))
            error.append(self._published_errors(estimate.chi, classes, count))
            status.append(estimate.status)
        return self.published(
            cells.dimensions,
            cells.positions,
            value=np.stack(value),
            error=np.stack(error),
            status=np.stack(status),
            count=count,
        )

    def _published_errors(self, chi: dict[int, Fraction], classes: Integers, count: Integers) -> Integers:
        """An error from the noisy number of people and χ alone: 1.96 of it cover the noise 95 times in 100."""
        told = count >= max(self.minimum, least_count(self.count_noise))
        errors = np.full(len(count), NO_ERROR, dtype=np.int64)
        for number, bound in chi.items():
            own = told & (classes == number) if number >= 0 else told
            people = count[own]
            scale = _multiples(bound * self.grid, people) * np.float64(self.value_noise.unit)
            widths = half_widths(scale, people, self.count_noise) / NORMAL
            errors[own] = np.minimum(np.ceil(widths), LIMIT).astype(np.int64)
        return errors

    def _statistics(self, cells: Cells) -> list[tuple[Integers, Reach, NDArray[np.bool_]]]:
        """Of every statistic the rounded values, how far one person can move them, and where they are defined."""
        low, high = self.low_y, self.high_y
        if not self.at:
            reach = mean_reach(cells, low_y=low, high_y=high)
            return [(rounded_mean(cells, grid=self.grid).astype(np.int64), reach, cells["count"] > 0)]
        line, found = LineSums.of(cells), []
        for rank in self.at:
            reach = prediction_reach(line, rank, low_x=self.low_x, high_x=self.high_x, low_y=low, high_y=high)
            rounded = line.rounded_prediction(rank, grid=self.grid)
            limits = (low * self.grid, high * self.grid) if self.clip else (-LIMIT, LIMIT)
            if self.clip:
                reach = reach.clipped(line.prediction(rank), low, high)
            found.append((np.clip(rounded, *limits).astype(np.int64), reach, line.is_defined()))
        return found

    def _estimates(self, cells: Cells, rounded: Integers, reach: Reach, defined: NDArray[np.bool_]) -> Estimates:
        people, sensitivity = cells["count"], reach.sensitivity()
        enough = people >= self.minimum
        with np.errstate(invalid="ignore"):
            products = people * sensitivity
        taken = enough & defined
        if self.chi:
            # What χ does not bound is withheld: the noise would be too small for it.
            taken &= products * (1 + 1e-9) <= float(self.chi)
            chi, classes = {-1: self.chi}, np.full(len(cells), -1)
        else:
            classes = cells["class"]
            found = observed(products, classes, taken=taken, least_groups=self.least_groups)
            # What no noise of 64 bits can hide is withheld: the budget has been charged, and nothing may fail.
            chi = {number: bound for number, bound in found.items() if _is_drawn(bound * self.grid)}
            taken &= np.isin(classes, list(chi))
        scale = np.zeros(len(cells), dtype=np.int64)
        for number, bound in chi.items():
            own = taken & (classes == number)
            scale[own] = _multiples(bound * self.grid, people[own])
        status = np.where(taken, 0, np.where(enough, NOT_AVAILABLE, SUPPRESSED))
        return Estimates(rounded=rounded, sensitivity=sensitivity, scale=scale, status=status, chi=chi)


def _is_drawn(chi: Fraction) -> bool:
    """Whether noise of a scale χ, in published units, can be drawn."""
    return ceil(chi) < LIMIT


def _multiples(chi: Fraction, people: Integers) -> Integers:
    """χ/n in whole published units, rounded up: by so much, at most, one person changes a rounded estimate."""
    multiples: Integers = -(-ceil(chi) // people)  # rounded up twice is rounded up once, as n is whole
    return multiples
