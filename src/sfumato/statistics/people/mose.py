"""MOSE: noise scaled to the largest sensitivity observed in a class of groups."""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.people.noisy_regression import LineSums, rounded_mean
from sfumato.statistics.people.small_samples import MOST_MINIMUM, NO_ERROR, NORMAL, SIZES, CountedSamples

# By how much one more person can change a statistic of the people at hand; docs/methods/small-samples.md proves it.


@dataclass(frozen=True, kw_only=True, eq=False)
class Reach:
    """The least and the greatest change of a statistic that adding one legal record can make, by group.

    >>> Reach(least=np.array([-3.0]), most=np.array([2.0])).sensitivity().tolist()
    [3.0]
    """

    least: Floats
    most: Floats

    def sensitivity(self) -> Floats:
        """The local sensitivity: the larger of the two."""
        return np.maximum(np.abs(self.least), np.abs(self.most))

    def clipped(self, value: Floats, low: float, high: float) -> "Reach":
        """The same for the statistic moved into its bounds; clipping keeps order, so the ends stay the ends."""
        before = np.clip(value, low, high)
        ends = (np.clip(value + change, low, high) - before for change in (self.least, self.most))
        least, most = ends
        return Reach(least=least, most=most)


def prediction_reach(line: LineSums, rank: Fraction, *, low_x: int, high_x: int, low_y: int, high_y: int) -> Reach:
    """How far one added record (x, y) of whole numbers within the bounds can move α + β·rank; NaN without a line.

    With everything centred, the change is

        (y − ȳ − β(x − x̄)) · (S + n·ρ·(x − x̄)) / ((n + 1)·S + n·(x − x̄)²),   S = Σ(x − x̄)²,  ρ = rank − x̄.

    It is linear in y, so y is at an end. In x it is a quotient of quadratics with two stationary points, one on each
    side of x̄; it is monotone between them. Its extremes over the whole numbers are next to these, or at the ends: the
    four corners alone are not enough, above all in small groups.
    """
    defined = line.is_defined()
    # Everything is multiplied by n, so that each number is exact until it becomes a float: no digits cancel.
    n = line.n.astype(np.float64)
    spread = np.where(defined, line.spread.astype(np.float64), np.nan)
    slope = line.joint.astype(np.float64) / spread
    rho = (line.n * rank.numerator - line.x * rank.denominator).astype(np.float64) / rank.denominator
    mass = (n + 1) * spread

    def change(x: Floats, u: Floats) -> Floats:
        d = n * x - line.x.astype(np.float64)
        with np.errstate(invalid="ignore"):
            found: Floats = (u - slope * d) / n * (spread + rho * d) / (mass + d * d)
        return found

    least, most = np.full(len(n), np.inf), np.full(len(n), -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = line.x.astype(np.float64) / n
        for y in (low_y, high_y):
            u = (line.n * y - line.y).astype(np.float64)
            places = [np.full(len(n), float(low_x)), np.full(len(n), float(high_x))]
            for root in _stationary(a=-slope * rho, b=u * rho - slope * spread, c=u * spread, e=mass):
                place = np.clip(np.nan_to_num(root / n + mean, nan=low_x), low_x, high_x)
                places += [np.floor(place), np.ceil(place)]
            for x in places:
                moved = change(x, u)
                least, most = np.fmin(least, moved), np.fmax(most, moved)
    return Reach(least=np.where(defined, least, np.nan), most=np.where(defined, most, np.nan))


def mean_reach(cells: Cells, *, low_y: int, high_y: int) -> Reach:
    """How far one added record can move a mean: (y − ȳ)/(n + 1) at the ends of y; NaN for empty groups."""
    n = cells["count"].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, cells["sum_y"] / n, np.nan)
    return Reach(least=(low_y - mean) / (n + 1), most=(high_y - mean) / (n + 1))


def _stationary(*, a: Floats, b: Floats, c: Floats, e: Floats) -> tuple[Floats, Floats]:
    """Where (a·d² + b·d + c)/(d² + e) has slope 0: the roots of b·d² − 2(a·e − c)·d − b·e, found without cancellation.

    Their product is −e: one is on each side of 0, and at b = 0 one is 0 and the other infinitely far out.
    """
    p = a * e - c
    q = p + np.where(p < 0, -1.0, 1.0) * np.hypot(p, b * np.sqrt(e))
    return q / b, -b * e / q


# How wide an interval of MOSE is, when all that may be used is the noisy number of people.

UNCOVERED = 0.05
"""How often the interval misses the statistic."""
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
    of_people: ClassVar[tuple[str, ...]] = ("mean", "predict")
    """The statistics of people that it makes."""
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

    observes: ClassVar[bool] = True

    def typical_error(self) -> str:
        """How far a value is typically off, where χ is given."""
        if not self.chi:
            return super().typical_error()
        errors = self.planned_errors(np.array(SIZES)) / self.grid
        told = [f"{_three_digits(error)} in a group of {size:,}" for size, error in zip(SIZES, errors, strict=True)]
        return f"The noise is typically {', '.join(told[:-1])} and {told[-1]} people."

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        if not self.chi:
            return super().typical_by_size()
        few, _, many = self.planned_errors(np.array(SIZES)) / self.grid
        return f"{_three_digits(few)} of {SIZES[0]} people", f"{_three_digits(many)} of {SIZES[-1]:,} people"

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


def _three_digits(number: float) -> str:
    """A number in three digits, without powers of ten.

    >>> _three_digits(16_712.3)
    '16,700'
    """
    return f"{float(f'{number:.3g}'):,.10g}"
