"""Laplace noise scaled to a sensitivity: that of any data (global), or of the people at hand (local)."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, log
from typing import ClassVar

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.measures.attacks import AttackResult
from sfumato.method import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.people.noisy_regression import LineSums, rounded_mean
from sfumato.statistics.people.small_samples import MOST_MINIMUM, NO_ERROR, NORMAL, CountedSamples, OfWeights

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


def prediction_reach(
    line: LineSums, rank: Fraction, *, low_x: int, high_x: int, low_y: int, high_y: int, heaviest: int = 1
) -> Reach:
    """How far one added record (x, y) of whole numbers within the bounds can move α + β·rank; NaN without a line.

    Of records with weights, one that weighs as much as the `heaviest`; a lighter one moves it less.

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
    mass = (n / heaviest + 1) * spread

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


def mean_reach(cells: Cells, *, low_y: int, high_y: int, heaviest: int = 1) -> Reach:
    """How far one added record can move a mean: (y − ȳ)/(n + 1) at the ends of y; NaN for empty groups.

    n is the number of people, or what they weigh as a multiple of the `heaviest`.
    """
    n = cells["count"].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, cells["sum_y"] / n, np.nan)
    n = n / heaviest
    return Reach(least=(low_y - mean) / (n + 1), most=(high_y - mean) / (n + 1))


def _stationary(*, a: Floats, b: Floats, c: Floats, e: Floats) -> tuple[Floats, Floats]:
    """Where (a·d² + b·d + c)/(d² + e) has slope 0: the roots of b·d² − 2(a·e − c)·d − b·e, found without cancellation.

    Their product is −e: one is on each side of 0, and at b = 0 one is 0 and the other infinitely far out.
    """
    p = a * e - c
    q = p + np.where(p < 0, -1.0, 1.0) * np.hypot(p, b * np.sqrt(e))
    return q / b, -b * e / q


# What all of them do: an estimate on the published grid plus noise of its scale, and people with a draw of their own.

UNCOVERED = 0.05
"""How often the interval of a published error misses the statistic."""
LEAST_PEOPLE = 3
"""What is withheld by the true number of people begins no lower: fewer have no line."""
UNCONDITIONALLY = "not differentially private; "
"""What a condition begins with: that without it nothing is promised."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """One statistic of all groups: rounded to the published grid, and by how much one more person could change it.

    Whatever has these two can be released.
    """

    rounded: Integers
    sensitivity: Floats
    """In units of the data; NaN where the statistic is not defined."""
    scale: Integers
    """How many whole published units a person can change the estimate by, such as χ/n; 0 where it is withheld."""
    status: Integers
    chi: dict[int, Fraction] = field(default_factory=dict)
    """χ of every class of groups that is published, as it may be told; none where noise needs none."""


@dataclass(frozen=True, kw_only=True)
class ScaledToSensitivity(CountedSamples):
    """Laplace noise on predictions or means, and an independent draw for the number of people."""

    of_people: ClassVar[tuple[str, ...]] = ("mean", "predict")
    """The statistics of people that it makes."""
    makes_means: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"count", "sum_x", "sum_y", "sum_xx", "sum_xy"})

    @property
    def clips(self) -> bool:
        """Whether a prediction outside the bounds of the outcome is moved to them before noise is added."""
        return True

    @cached_property
    def value_noise(self) -> RoundedLaplace:
        """The noise of values, whose scale is a whole multiple of 1/ε."""
        return RoundedLaplace(unit=1 / self.epsilon_of_value)

    @property
    def heaviest(self) -> int:
        """How many tabulated people one record counts for at most: steps of the largest weight, 1 without weights."""
        return 1

    @cached_property
    def count_noise(self) -> Geometric:
        """The noise of the number of people, as it is tabulated."""
        return Geometric(epsilon=self.epsilon_of_count / self.heaviest)

    def estimates(self, cells: Cells) -> tuple[Estimates, ...]:
        """Every statistic with the scale of its noise: confidential."""
        return tuple(self._estimates(cells, *found) for found in self._statistics(cells))

    @abstractmethod
    def _estimates(self, cells: Cells, rounded: Integers, reach: Reach, defined: Flags) -> Estimates:
        """One statistic with the scale of its noise, from how far one person can move it."""

    @abstractmethod
    def _published_errors(self, estimate: Estimates, cells: Cells, count: Integers) -> Integers:
        """What is told of errors; −1 where nothing is. `count` is the noisy number of people."""

    def _withheld(self, estimate: Estimates, count: Integers) -> Integers:  # noqa: ARG002 (some decide by it)
        """The status of every group; `count` is the noisy number of people."""
        return estimate.status

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

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every estimate and every number of people plus a draw of its own, and errors from what may be told."""
        self._check_people(cells)
        count = np.clip(cells["count"] + self.count_noise.sample(len(cells), randomness), -LIMIT, LIMIT)
        value, error, status = [], [], []
        for estimate in self.estimates(cells):
            drawn = self.value_noise.sample(np.maximum(estimate.scale, 1), randomness)
            value.append(np.clip(estimate.rounded + drawn, -LIMIT, LIMIT))
            error.append(self._published_errors(estimate, cells, count))
            status.append(self._withheld(estimate, count))
        return self.published(
            cells.dimensions,
            cells.positions,
            value=np.stack(value),
            error=np.stack(error),
            status=np.stack(status),
            count=self.weighed(count),
        )

    def _statistics(self, cells: Cells) -> list[tuple[Integers, Reach, Flags]]:
        """Of every statistic the rounded values, how far one person can move them, and where they are defined."""
        low, high = self.low_y, self.high_y
        if not self.at:
            reach = mean_reach(cells, low_y=low, high_y=high, heaviest=self.heaviest)
            return [(rounded_mean(cells, grid=self.grid).astype(np.int64), reach, cells["count"] > 0)]
        line, found = LineSums.of(cells), []
        for rank in self.at:
            reach = prediction_reach(
                line,
                rank,
                low_x=self.low_x,
                high_x=self.high_x,
                low_y=low,
                high_y=high,
                heaviest=self.heaviest,
            )
            rounded = line.rounded_prediction(rank, grid=self.grid)
            limits = (low * self.grid, high * self.grid) if self.clips else (-LIMIT, LIMIT)
            if self.clips:
                reach = reach.clipped(line.prediction(rank), low, high)
            found.append((np.clip(rounded, *limits).astype(np.int64), reach, line.is_defined()))
        return found

    def _error_of(self, scale: Integers) -> Integers:
        """The error that is told of noise whose scale is known: 1.96 of it cover the noise 95 times in 100."""
        width = scale * np.float64(self.value_noise.unit) * log(1 / UNCOVERED)
        return np.minimum(np.ceil(width / NORMAL), LIMIT).astype(np.int64)


def is_drawn(scale: Fraction) -> bool:
    """Whether noise of a scale, in published units, can be drawn."""
    return ceil(scale) < LIMIT


def three_digits(number: float) -> str:
    """A number in three digits, without powers of ten.

    >>> three_digits(16_712.3)
    '16,700'
    """
    return f"{float(f'{number:.3g}'):,.10g}"


# Global sensitivity: what one person can change in any data. Formal, and nearly always too much noise.


@dataclass(frozen=True, kw_only=True)
class WeightedSensitivity(OfWeights, ScaledToSensitivity):
    """The same for records with weights, too: what a record of the largest weight can change."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_weights()

    @property
    def heaviest(self) -> int:
        """The largest weight in steps."""
        return self.weight_steps


@dataclass(frozen=True, kw_only=True)
class GlobalSensitivity(WeightedSensitivity):
    """ε privacy for individuals: Laplace noise of what one person can change in any group whatever.

    That is the whole range of the outcome for a prediction, and half of it for a mean without weights, in groups of
    every size.
    docs/methods/small-samples.md has the proof.

    >>> ranks = GlobalSensitivity(alpha=Fraction(1), epsilon=Fraction(8), low_y=0, high_y=100)
    >>> ranks.sensitivity, replace(ranks, at=()).sensitivity
    (100, 50)
    """

    name: ClassVar[str] = "global-sensitivity"
    description: ClassVar[str] = (
        "random noise from the Laplace distribution, scaled to the largest change that one person could make in any "
        "group whatever, was added to every estimate, and an independent draw to every number of people"
    )
    has_one_error: ClassVar[bool] = True

    minimum: int = 10
    """Groups whose noisy number of people is smaller are withheld; with weights, so many of the largest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_unless(
            (0 <= self.minimum <= MOST_MINIMUM, "minimum", f"from 0 to {MOST_MINIMUM:,} people", f"{self.minimum}"),
            (
                is_drawn(Fraction(self.sensitivity)),
                "decimals",
                "a range of the outcome below 2^61 published units",
                f"{self.sensitivity:,}",
            ),
        )

    @property
    def sensitivity(self) -> int:
        """How many published units one person can change an estimate by, whatever the data."""
        span = (self.high_y - self.low_y) * self.grid
        # One heavy record beside a light one can take the mean from one end nearly to the other.
        return span if self.at or self.heaviest > 1 else -(-span // 2)

    def guarantee(self) -> EmployerEmployee:
        """For individuals: a person is in one group of a period."""
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon)

    def planned_errors(self, people: Integers) -> Floats:
        """The mean absolute error of groups of so many people, in published units: of all sizes the same."""
        return self.value_noise.expected_magnitude(np.full(len(people), self.sensitivity))

    def typical_error(self) -> str:
        """How far a value is typically off."""
        return f"The noise is typically {self._typical}, in groups of every size."

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        return self._typical, "the same"

    @property
    def _typical(self) -> str:
        return three_digits(float(self.planned_errors(np.array([1]))[0]) / self.grid)

    def _estimates(self, cells: Cells, rounded: Integers, reach: Reach, defined: Flags) -> Estimates:
        # A group without a line, or without people, has the middle: that there is none may not show either.
        middle = (self.low_y + self.high_y) * self.grid // 2
        return Estimates(
            rounded=np.where(defined, rounded, middle),
            sensitivity=reach.sensitivity(),
            scale=np.full(len(cells), self.sensitivity),
            status=np.where(defined, 0, NOT_AVAILABLE),
        )

    def _withheld(self, estimate: Estimates, count: Integers) -> Integers:  # noqa: ARG002
        return np.where(count < self.minimum * self.heaviest, SUPPRESSED, 0)

    def _published_errors(self, estimate: Estimates, cells: Cells, count: Integers) -> Integers:  # noqa: ARG002
        return self._error_of(estimate.scale)


# Local sensitivity: what one person can change in the group at hand. Less noise, and the noise tells about the group.

_CORNERS = ((False, False), (False, True), (True, False), (True, True))
_HAIR = 1 + 1e-9
"""More than the arithmetic of a sensitivity can err by."""
_BEYOND = 1.1
"""So many ε are told apart from ε: a person at the worst corner is worth a little more than ε half of the time."""


@dataclass(frozen=True, kw_only=True)
class LocalSensitivity(ScaledToSensitivity):
    """Laplace noise of what one more person could change in the very group: not private, and there for comparison.

    The scale is computed from the people of the group, so the noise tells about them. Whoever wants it all the same
    has to say `accept_leak`. docs/methods/small-samples.md shows what it gives away.
    """

    name: ClassVar[str] = "local-sensitivity"
    description: ClassVar[str] = (
        "random noise from the Laplace distribution, scaled to the largest change that one more person could make to "
        "the same group, was added to every estimate, and an independent draw to every number of people"
    )
    leaks: ClassVar[str] = (
        "In tables protected with local-sensitivity the noise of each group is scaled to what one more person could "
        "change in that very group. The scale is computed from the people of the group, and nothing bounds what it "
        "tells about them: whoever knows all but one of them can find out whether that one is there."
    )

    why_unweighted: ClassVar[str] = "it is there for comparison with what was published without weights"

    accept_leak: bool = False
    """Has to be true: that the scale of the noise tells about people is known and accepted."""
    tell_scales: bool = False
    """Publish errors, which are the scale: analyses that allow for the noise need them, and they give it away."""
    minimum: int = LEAST_PEOPLE
    """Groups of fewer people are withheld."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.accept_leak:
            raise MethodError(
                f"{self.name}, accept_leak",
                expected="accept_leak = true: the scale of its noise is computed from the people of each group, and "
                "nothing bounds what it tells about them",
                found="accept_leak = false",
                do="use noisy-regression or mose; or accept it, for a comparison that nobody else gets",
            )
        self._refuse_unless(
            (
                LEAST_PEOPLE <= self.minimum <= MOST_MINIMUM,
                "minimum",
                f"from {LEAST_PEOPLE} to {MOST_MINIMUM:,} people",
                f"{self.minimum}",
            ),
        )

    @property
    def tells_errors(self) -> bool:
        """Only where scales are told, which are what errors are made of."""
        return self.tell_scales

    def guarantee(self) -> EmployerEmployee:
        """ε on a condition that is never met: that nobody learns from the scale of the noise."""
        told = "published beside every value" if self.tell_scales else "visible in the noise itself"
        condition = (
            f"{UNCONDITIONALLY}conditional on nobody learning anything from the scale of the noise, which is the local "
            f"sensitivity of each group, computed from its people and {told}; nor from which groups are withheld "
            f"(fewer than {self.minimum} people{', or one value only of what is predicted from' if self.at else ''})"
        )
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon, condition=condition)

    def _estimates(self, cells: Cells, rounded: Integers, reach: Reach, defined: Flags) -> Estimates:
        enough, sensitivity = cells["count"] >= self.minimum, reach.sensitivity()
        units = np.where(defined, np.ceil(np.nan_to_num(sensitivity) * self.grid * _HAIR), 0.0)
        taken = enough & defined & (units < LIMIT)
        return Estimates(
            rounded=rounded,
            sensitivity=sensitivity,
            scale=np.where(taken, np.maximum(units, 1), 0).astype(np.int64),
            status=np.where(taken, 0, np.where(enough, NOT_AVAILABLE, SUPPRESSED)),
        )

    def _published_errors(self, estimate: Estimates, cells: Cells, count: Integers) -> Integers:  # noqa: ARG002
        return self._error_of(estimate.scale) if self.tell_scales else np.full(len(count), NO_ERROR)

    def attacks(self, counted: Cells, answer: Cells) -> tuple[AttackResult, ...]:
        """How often what is published betrays far more than ε about whether one more person is in a group.

        The reader knows everybody else of the group, and wonders about somebody at a corner of the bounds.
        """
        losses = self.losses(counted, answer)
        return (
            AttackResult(
                attack="whether one more person is in a group, a tenth beyond epsilon",
                targets=int((~np.isnan(losses)).sum()),
                successes=int((losses > _BEYOND * float(self.epsilon_of_value)).sum()),
                guessed=0,
            ),
        )

    def losses(self, counted: Cells, answer: Cells) -> Floats:
        """By how much each published value speaks against one more person: the greatest log ratio over four people."""
        shape = (-1, self.statistics)
        value, error, status = (answer[name].reshape(shape).T for name in ("value", "error", "status"))
        losses = np.full(value.shape, -np.inf)
        there = self.estimates(counted)
        for other in map(self.estimates, self._with_one_more(counted)):
            for place, (before, after) in enumerate(zip(there, other, strict=True)):
                one, another = (
                    self.value_noise.log_mass(value[place] - e.rounded, np.maximum(e.scale, 1)) for e in (before, after)
                )
                excluded = after.status != 0
                if self.tell_scales:
                    excluded |= self._error_of(after.scale) != error[place]
                losses[place] = np.fmax(losses[place], np.where(excluded, np.inf, one - another))
        return np.where(status == 0, losses, np.nan).T.ravel()

    def _with_one_more(self, cells: Cells) -> Iterator[Cells]:
        for right, top in _CORNERS:
            x, y = (self.high_x if right else self.low_x), (self.high_y if top else self.low_y)
            person = {"count": 1, "sum_x": x, "sum_y": y, "sum_xx": x * x, "sum_xy": x * y}
            more = {name: cells[name] + amount for name, amount in person.items() if name in cells.columns}
            yield replace(cells, columns={**cells.columns, **more})
