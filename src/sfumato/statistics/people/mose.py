"""MOSE: noise scaled to the largest sensitivity observed in a class of groups."""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.measures.attacks import AttackResult
from sfumato.method import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.people.attacks import attack_estimates
from sfumato.statistics.people.sensitivity import (
    LEAST_PEOPLE,
    UNCONDITIONALLY,
    UNCOVERED,
    Estimates,
    Reach,
    WeightedSensitivity,
    is_drawn,
    three_digits,
)
from sfumato.statistics.people.small_samples import MOST_MINIMUM, NO_ERROR, NORMAL, SIZES

# How wide an interval of MOSE is, when all that may be used is the noisy number of people.

_DOUBLINGS = 60
_LEAST = 6


def least_count(noise: Geometric) -> int:
    """The least noisy number of people that tells an error: below 6/ε it may be twice the true one, or half."""
    return int(np.ceil(_LEAST / float(noise.epsilon)))


def half_widths(scale: Floats, count: Integers, noise: Geometric) -> Floats:
    """Half the width of an interval of 95 %, for Laplace noise of a scale that is `scale`·count/n for n people.

    Only the noisy count n + K is known. With every n equally likely beforehand, n is count + K, and noise goes beyond h
    with the probability E exp(−t·(count + K)), t = h/(scale·count): the moments of geometric noise give it in closed
    form, and t is found by halving. It is 3.0 scales for a large count and more for a small one.

    >>> from fractions import Fraction
    >>> half_widths(np.array([1.0, 1.0]), np.array([1_000, 10]), Geometric(epsilon=Fraction(1))).round(2).tolist()
    [3.0, 3.09]
    """
    step = float(noise.epsilon)
    ratio = np.exp(-step)

    def uncovered(t: Floats) -> Floats:
        spread: Floats = 2 * np.log1p(-ratio) - np.log1p(-np.exp(t - step)) - np.log1p(-np.exp(-t - step))
        return spread - t * count

    # It falls from 1 at t = 0, and later rises again: the first crossing is wanted, which for all counts that tell an
    # error is below 0.8 of the step, and the function falls until there.
    low, high = np.zeros(len(count)), np.full(len(count), 0.8 * step)
    for _ in range(_DOUBLINGS):
        middle = (low + high) / 2
        beyond = uncovered(middle) > np.log(UNCOVERED)
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    widths: Floats = high * scale * count
    return widths


# χ, the largest sensitivity times number of people that is observed in a class of groups, told only roughly.

STEPS = tuple(map(Fraction, ("1", "1.5", "2", "3", "5", "7", "10")))
"""χ is rounded up to one of these times a power of ten."""
# More than the arithmetic of a sensitivity can err by, so that a rounded χ is never below the true one.
_HAIR = 1 + 1e-9
LEAST = Fraction(1, 10**9)
"""Where no record could move any group, as where all predictions are clipped: the smallest χ that is told."""


def rounded_up(chi: float) -> Fraction:
    """The next number of a coarse scale that is not below χ: a maximum over real people is never told exactly.

    >>> rounded_up(1234.5), rounded_up(0.0071)
    (Fraction(1500, 1), Fraction(1, 100))
    """
    if not 0 <= chi < float("inf"):
        raise ValueError("χ must be finite and not negative")
    if chi <= LEAST:
        return LEAST
    least = Fraction(chi * _HAIR)
    unit = Fraction(10) ** Decimal(chi).adjusted()
    return next((step * unit for step in STEPS if step * unit >= least), 15 * unit)


def observed(
    products: Floats, classes: Integers, *, taken: NDArray[np.bool_], least_groups: int = 1
) -> dict[int, Fraction]:
    """χ of every class by its number: the greatest n·sensitivity of the groups that take part, rounded up.

    Classes in which fewer than `least_groups` take part have none.

    >>> observed(np.array([3.0, 8.0, 90.0]), np.array([4, 4, 4]), taken=np.array([True, True, False]))
    {4: Fraction(10, 1)}
    """
    found, place, many = np.unique(classes[taken], return_inverse=True, return_counts=True)
    greatest = np.zeros(len(found))
    np.maximum.at(greatest, place, products[taken])
    enough = many >= least_groups
    return {int(n): rounded_up(float(chi)) for n, chi in zip(found[enough], greatest[enough], strict=True)}


@dataclass(frozen=True, kw_only=True)
class Mose(WeightedSensitivity):
    """Laplace noise of scale χ/(n·ε) on predictions or means, and an independent draw for the number of people n.

    χ is the largest n·(local sensitivity) of the groups of a calibration class, rounded up; or `chi`, in people times
    units of the data. With weights n is what people weigh, as a multiple of the largest weight. It is not
    differentially private. docs/methods/small-samples.md says what holds given χ.

    >>> Mose(alpha=Fraction(1), epsilon=Fraction(8), at=(Fraction(1, 4), Fraction(3, 4))).epsilon_of_value
    Fraction(8, 3)
    """

    name: ClassVar[str] = "mose"
    description: ClassVar[str] = (
        "random noise from the Laplace distribution, scaled to the largest change that one more person could make to "
        "any group of the same class and divided by the number of people (MOSE), was added to every estimate, and an "
        "independent draw to every number of people"
    )
    needs: ClassVar[frozenset[str]] = WeightedSensitivity.needs | {"class"}

    chi: Fraction = Fraction(0)
    """χ for all classes, from other data or a bound that is known; 0 to take what is observed, rounded up."""
    minimum: int = LEAST_PEOPLE
    """Groups of fewer people are withheld, and take no part in χ; with weights, so many of the largest."""
    clip: bool = True
    """Move a prediction outside the bounds of the outcome to them before noise is added."""
    least_groups: int = 1
    """Classes in which fewer groups take part are withheld: an observed χ describes the people of few groups."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_unless(
            (self.chi >= 0, "chi", "a positive number, or 0 to take what is observed", plain(self.chi)),
            (
                is_drawn(self.chi * self.grid * self.heaviest),
                "chi",
                f"a χ below 2^61 published units, of which {self.grid:,} make one of the data"
                + (f", divided by {self.heaviest:,}, the steps of the largest weight" if self.heaviest > 1 else ""),
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
            f"and so does whether a group is withheld ({self.withheld_below}{also})"
        )
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon, condition=condition)

    @property
    def withheld_below(self) -> str:
        """Which groups are withheld, in words."""
        if self.heaviest == 1:
            return f"fewer than {self.minimum} people"
        return f"people who weigh less than {self.minimum * self.largest_weight:,} together"

    observes: ClassVar[bool] = True

    @property
    def clips(self) -> bool:
        """As the release file says."""
        return self.clip

    def attacks(self, counted: Cells, answer: Cells) -> tuple[AttackResult, ...]:
        """The leak of the published example code, tried on what is published here."""
        classes = np.zeros(len(counted), dtype=np.int64) if self.chi else counted["class"]
        return attack_estimates(self, counted, answer, classes)

    def typical_error(self) -> str:
        """How far a value is typically off, where χ is given."""
        if not self.chi:
            return super().typical_error()
        errors = self.planned_errors(np.array(SIZES)) / self.grid
        told = [f"{three_digits(error)} in a group of {size:,}" for size, error in zip(SIZES, errors, strict=True)]
        return f"The noise is typically {', '.join(told[:-1])} and {told[-1]} people{self._of_the_largest_weight}."

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        if not self.chi:
            return super().typical_by_size()
        few, _, many = self.planned_errors(np.array(SIZES)) / self.grid
        who = f"people{self._of_the_largest_weight}"
        return f"{three_digits(few)} of {SIZES[0]} {who}", f"{three_digits(many)} of {SIZES[-1]:,} {who}"

    @property
    def _of_the_largest_weight(self) -> str:
        return "" if self.heaviest == 1 else f" who weigh {self.largest_weight:,} each"

    def planned_errors(self, people: Integers) -> Floats:
        """The mean absolute error of groups of so many people, in published units; NaN where χ is not set."""
        if not self.chi:
            return np.full(len(people), np.nan)
        return self.value_noise.expected_magnitude(self.planned_multiples(people))

    def with_value_epsilon(self, epsilon: Fraction) -> "Mose":
        """The same method with so much ε for each mean of a period; the number of people keeps its own."""
        return replace(self, epsilon=(epsilon + (self.count_epsilon or epsilon)) * self.periods)

    def probability_within(self, share: Fraction, people: Integers, means: Floats | None) -> Floats:
        """The probability that a mean is off by at most a share of itself, for all cells that are published."""
        if means is None:
            raise MethodError(
                self.name,
                expected="a mean of the cells, which differences are a share of",
                found="none",
                do="give one with --mean, or a column `mean` in the file of cells",
            )
        published = people >= self.minimum
        most = np.floor(float(share) * means[published] * self.grid).astype(np.int64)
        return 1 - self.value_noise.survival(most + 1, self.planned_multiples(people[published]))

    def planned_multiples(self, people: Integers) -> Integers:
        """χ/n in whole published units for groups of so many people, with the χ that is set: 1/ε of it is the scale.

        With weights, people of the largest weight.
        """
        return self._multiples(self.chi, people * self.heaviest)

    def _published_errors(self, estimate: Estimates, cells: Cells, count: Integers) -> Integers:
        """An error from the noisy number of people and χ alone: 1.96 of it cover the noise 95 times in 100."""
        told = count >= max(self.minimum * self.heaviest, least_count(self.count_noise))
        scale = np.zeros(len(count))
        for number, bound in estimate.chi.items():
            own = told & (cells["class"] == number) if number >= 0 else told
            scale[own] = self._multiples(bound, count[own]) * np.float64(self.value_noise.unit)
        told &= scale > 0
        errors = np.full(len(count), NO_ERROR, dtype=np.int64)
        widths = half_widths(scale[told], count[told], self.count_noise) / NORMAL
        errors[told] = np.minimum(np.ceil(widths), LIMIT).astype(np.int64)
        return errors

    def _estimates(self, cells: Cells, rounded: Integers, reach: Reach, defined: NDArray[np.bool_]) -> Estimates:
        people, sensitivity = cells["count"], reach.sensitivity()
        enough = people >= self.minimum * self.heaviest
        with np.errstate(invalid="ignore"):
            products = people / self.heaviest * sensitivity
        taken = enough & defined
        if self.chi:
            # What χ does not bound is withheld: the noise would be too small for it.
            taken &= products * (1 + 1e-9) <= float(self.chi)
            chi, classes = {-1: self.chi}, np.full(len(cells), -1)
        else:
            classes = cells["class"]
            found = observed(products, classes, taken=taken, least_groups=self.least_groups)
            # What no noise of 64 bits can hide is withheld: the budget has been charged, and nothing may fail.
            chi = {number: bound for number, bound in found.items() if is_drawn(bound * self.grid * self.heaviest)}
            taken &= np.isin(classes, list(chi))
        scale = np.zeros(len(cells), dtype=np.int64)
        for number, bound in chi.items():
            own = taken & (classes == number)
            scale[own] = self._multiples(bound, people[own])
        status = np.where(taken, 0, np.where(enough, NOT_AVAILABLE, SUPPRESSED))
        return Estimates(rounded=rounded, sensitivity=sensitivity, scale=scale, status=status, chi=chi)

    def _multiples(self, chi: Fraction, people: Integers) -> Integers:
        """χ/n in whole published units, rounded up: by so much, at most, one person changes a rounded estimate."""
        most = ceil(chi * self.grid * self.heaviest)
        multiples: Integers = -(-most // people)  # rounded up twice is rounded up once, as n is whole
        return multiples
