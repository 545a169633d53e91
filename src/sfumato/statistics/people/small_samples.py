"""What the methods for small groups share: their records and bounds, and counts of people with Laplace noise."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import floor, prod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.frame.records import MOST_RECORDS
from sfumato.measures.attacks import AttackResult
from sfumato.method import HIDDEN, PlannedError, added, check_parameters, of_table
from sfumato.noise.geometric import Geometric
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.jobs.laplace import Laplace
from sfumato.statistics.jobs.smooth import LIMIT

# The records of small groups, for methods that no sums are enough for.


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Pairs (x, y) of people, each in one group; a group is a position in the product of the dimensions.

    `positions` has the group of every record, ascending. `groups` are those the table publishes, with or without
    records: every combination of codes unless it says otherwise.

    >>> sex = Dimension(name="sex", codes=("F", "M"))
    >>> held = Samples(dimensions=(sex,), positions=np.array([1, 1]), x=np.array([3, 9]), y=np.array([1, 2]))
    >>> held.sizes.tolist()
    [0, 2]
    """

    dimensions: tuple[Dimension, ...]
    positions: Integers
    x: Integers
    y: Integers
    groups: Integers | None = None

    def __post_init__(self) -> None:
        for name in ("positions", "x", "y"):
            column = getattr(self, name)
            if column.shape != self.positions.shape or column.dtype != np.int64:
                raise ValueError(f"{name!r} must be one 64-bit integer a record")
        domain = prod(map(len, self.dimensions))
        if self.groups is None:
            object.__setattr__(self, "groups", np.arange(domain, dtype=np.int64))
        listed = self.listed
        if len(listed) and not (listed[0] >= 0 and listed[-1] < domain and bool(np.all(np.diff(listed) > 0))):
            raise ValueError("groups must ascend within the product of the dimensions")
        if bool(np.any(np.diff(self.positions) < 0)) or not bool(np.isin(self.positions, listed).all()):
            raise ValueError("records must be in order of their groups, all of which are listed")

    @property
    def listed(self) -> Integers:
        """The positions of the groups that are published."""
        if self.groups is None:
            raise ValueError("the groups are set when samples are made")
        return self.groups

    @cached_property
    def starts(self) -> Integers:
        """Where the records of every listed group begin, and after the last one where they end."""
        begins = np.searchsorted(self.positions, self.listed, side="left")
        return np.append(begins, len(self.positions)).astype(np.int64)

    @property
    def sizes(self) -> Integers:
        """The number of records of every listed group."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.listed)

    def codes(self, dimension: str) -> NDArray[np.intp]:
        """The place of every listed group in the codelist of one dimension."""
        return Cells(dimensions=self.dimensions, positions=self.listed).codes(dimension)

    def only(self, dimension: str, code: str) -> "Samples":
        """The groups with one code of a dimension, and their records."""
        places = next(d for d in self.dimensions if d.name == dimension).places
        groups = self.listed[self.codes(dimension) == places[code]]
        own = np.isin(self.positions, groups)
        return replace(self, positions=self.positions[own], x=self.x[own], y=self.y[own], groups=groups)

    def sums(self) -> Cells:
        """The sums of values by group."""
        place = np.searchsorted(self.listed, self.positions)
        terms = {"count": np.ones_like(self.x), "sum_x": self.x, "sum_y": self.y}
        terms |= {"sum_xx": self.x * self.x, "sum_xy": self.x * self.y}
        columns = {name: np.zeros(len(self), dtype=np.int64) for name in terms}
        for name, term in terms.items():
            np.add.at(columns[name], place, term)
        return Cells(dimensions=self.dimensions, positions=self.listed, columns=columns)


# Records that count with weights: none with more than a largest one, which everybody may know.

MOST_WEIGHT = 10**9


@dataclass(frozen=True, kw_only=True)
class OfWeights:
    """A method whose records may have weights: one of the largest is what the noise hides.

    Whatever a record of weight 1 changes by 1, one of weight w changes by w at most: docs/methods/weights.md.
    """

    name: ClassVar[str]

    largest_weight: int = added(1)
    """For records with weights: none may weigh more. It is public, and not read off the data."""
    weights_above: Literal["refuse", "clip"] = added("refuse")
    """For records with weights: refuse data with a heavier record, or clip, count it with the largest weight."""
    weight_steps: int = added(1, of_table=True)
    """The largest weight as a whole number of the steps that tabulated sums are in; 1 where records have no weights."""

    def check_weights(self) -> None:
        """Refuse bounds of weights that no record could keep to, or that no noise is made for."""
        if not 1 <= self.largest_weight <= MOST_WEIGHT:
            raise MethodError(
                self.name,
                expected=f"a largest_weight from 1 to {MOST_WEIGHT:,}",
                found=f"{self.largest_weight:,}",
                do="state the largest weight that a record may have",
            )
        if self.weights_above not in ("refuse", "clip"):
            raise MethodError(
                f"{self.name}, weights_above",
                expected='"refuse" or "clip"',
                found=repr(self.weights_above),
                do="correct the word",
            )

    def weighed(self, steps: Integers) -> Integers:
        """Numbers of people in steps as what they weigh, rounded."""
        if self.weight_steps == self.largest_weight:
            return steps
        whole: Integers = np.rint(steps * (self.largest_weight / self.weight_steps)).astype(np.int64)
        return whole


# What the methods for small groups share: bounds, ranks, shares of ε, and the table they publish.

NO_ERROR = -1
"""Stands in the column `error` where nothing published tells it."""
NORMAL = 1.959963984540054
"""The quantile that a published error is multiplied by for an interval of 95 %."""
MOST_DECIMALS = 6
MOST_MINIMUM = 10**6
MOST_BOUND = 2**40
LEAST_SHARE = Fraction(1, 10**12)
"""Of ε, for one number: noise of less would leave 64 bits."""


TYPICAL = "How far a value is typically off depends on the people of its group; the table says it beside every value."
SIZES = (30, 100, 1000)
"""Groups of so many people are examples of what an error is."""


@dataclass(frozen=True, kw_only=True)
class SmallSamples(ABC):
    """A prediction at each rank of `at` for every group, or a mean where `at` is empty, with a number of people.

    Values, ranks and bounds are in the smallest unit of the data; what is published is in 10^−decimals of it. `epsilon`
    is what the whole table spends on one person, who is in one group a period.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    makes_means: ClassVar[bool] = False
    leaks: ClassVar[str] = ""
    """What it gives away that nothing bounds, in a sentence of the privacy statement."""
    has_one_error: ClassVar[bool] = False
    """Whether all values have the same error, whatever the data, so that it is never unknown."""

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    at: tuple[Fraction, ...] = of_table((Fraction(1, 2),))
    low_x: int = of_table(0)
    high_x: int = of_table(1)
    low_y: int = of_table(0)
    high_y: int = of_table(1)
    decimals: int = of_table(0)
    periods: int = of_table(1)

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        bounds = (self.low_x, self.high_x, self.low_y, self.high_y)
        of_x, of_y = f"from {self.low_x:,} to {self.high_x:,}", f"from {self.low_y:,} to {self.high_y:,}"
        outside = [rank for rank in self.at if not self.low_x <= rank <= self.high_x]
        rules = (
            (self.low_y < self.high_y, "bounds of the outcome", "a minimum below the maximum", of_y),
            (self.low_x < self.high_x, "bounds of what is predicted from", "a minimum below the maximum", of_x),
            (max(map(abs, bounds)) <= MOST_BOUND, "bounds", "values of at most 2^40 units", f"{of_x} and {of_y}"),
            (not outside, "at", f"values within the bounds, {of_x}", ", ".join(map(plain, outside))),
            (len(set(self.at)) == len(self.at), "at", "every value once", ", ".join(map(plain, self.at))),
            (bool(self.at) or self.makes_means, "at", "one value at least: it makes predictions, and no means", "none"),
            (
                0 <= self.decimals <= MOST_DECIMALS,
                "decimals",
                f"a whole number from 0 to {MOST_DECIMALS}",
                f"{self.decimals}",
            ),
            (self.periods >= 1, "periods", "one period at least", f"{self.periods}"),
        )
        self._refuse_unless(*rules)

    @abstractmethod
    def guarantee(self) -> EmployerEmployee:
        """What the whole protected table reveals at most."""

    @property
    def grid(self) -> int:
        """How many published units make one unit of the data."""
        return int(10**self.decimals)

    @property
    def statistics(self) -> int:
        """How many values are published of every group."""
        return max(len(self.at), 1)

    @property
    def period_epsilon(self) -> Fraction:
        """What one period spends: a person may be in every one."""
        return self.epsilon / self.periods

    def spending(self, factor: Fraction) -> Self:
        """The same method with so many times its ε."""
        return replace(self, epsilon=self.epsilon * factor)

    def of_one_period(self) -> Self:
        """The method that a period has, as if there were no other."""
        return replace(self, epsilon=self.period_epsilon, periods=1)

    def in_order(self) -> Self:
        """The same method with the places it predicts at in one order."""
        return replace(self, at=tuple(sorted(self.at)))

    def planned_error(self) -> PlannedError:
        """It falls with the number of people, and no one figure stands for all; `planned_errors` has it by size."""
        return PlannedError(floor=0.0, floor_size=0, share=None, of="its people")

    def published_error(self, values: Integers) -> Floats:
        """No value alone tells its error; `protect` publishes it."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """No value alone tells its interval; `protect` publishes the error it is made of."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        return np.full(len(values), -np.inf), np.full(len(values), np.nan)

    observes: ClassVar[bool] = False
    """Whether the scale of its noise is observed in the data."""

    @property
    def tells_errors(self) -> bool:
        """Whether the error of a value can be told from what is published."""
        return True

    def parts(self, counted: Any) -> Iterator[tuple[str, Self, Any]]:
        """What is protected as a table of its own: all of it, under no name."""
        yield "", self, counted

    def attacks(self, counted: Any, answer: Cells) -> tuple[AttackResult, ...]:  # noqa: ARG002 (most know of none)
        """What a reader gets out of the published groups; the truth is used to judge: confidential."""
        return ()

    def true_estimates(self, counted: Any) -> Floats:
        """What would be published without protection, in the unit of the measure: confidential; NaN where nothing."""
        exact: Floats = self.true_value(counted) / self.grid
        return exact

    def true_value(self, cells: Cells) -> Floats:
        """The same in published units."""
        raise NotImplementedError

    def people(self, counted: Any) -> Integers:
        """The true number of people of every group, or what they weigh: confidential."""
        return self.weighed(counted["count"])

    def weighed(self, steps: Integers) -> Integers:
        """Numbers of people as they are tabulated, as numbers of people: the same without weights."""
        return steps

    def typical_error(self) -> str:
        """How far a value is typically off, as far as it is known before any data are read."""
        return TYPICAL

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        return "by group", "by group"

    @property
    def most_people(self) -> int:
        """How many people a group may have, so that all arithmetic stays within 64 bits."""
        return LIMIT - 1

    def _refuse_unless(self, *rules: tuple[bool, str, str, str]) -> None:
        """Refuse parameters of which a rule does not hold: what it is about, what is expected and what is found."""
        for holds, what, expected, found in rules:
            if not holds:
                raise MethodError(f"{self.name}, {what}", expected=expected, found=found, do="correct the release file")

    def _check_people(self, cells: Cells) -> None:
        # The error names no number of the data: these are confidential.
        most = self.most_people
        if len(cells) and not (int(cells["count"].min()) >= 0 and int(cells["count"].max()) <= most):
            raise MethodError(
                self.name,
                expected=f"at most {most:,} people in a group, so that sums stay within 64 bits",
                found="a group outside these limits",
                do="check the data; or state narrower bounds, or values in a larger unit",
            )

    def published(
        self,
        dimensions: tuple[Dimension, ...],
        groups: Integers,
        *,
        value: Integers,
        error: Integers,
        status: Integers,
        count: Integers,
    ) -> Cells:
        """The protected table: the groups' dimensions and a last one, `at`; arrays are of statistics × groups."""
        codes = tuple(map(plain, self.at)) or ("mean",)
        hidden = np.isin(status, HIDDEN)
        columns = {
            "value": np.where(hidden, 0, value),
            "count": np.broadcast_to(count, value.shape),
            "error": np.where(hidden, NO_ERROR, error),
            "status": status,
        }
        return Cells(
            dimensions=(*dimensions, Dimension(name="at", codes=codes, public=True)),
            positions=(groups[:, None] * len(codes) + np.arange(len(codes))).ravel(),
            columns={name: column.T.astype(np.int64).ravel() for name, column in columns.items()},
        )


@dataclass(frozen=True, kw_only=True)
class CountedSamples(SmallSamples):
    """Small samples whose number of people has noise of its own, an independent draw, and a share of ε."""

    count_epsilon: Fraction = Fraction(0)
    """What the number of people spends in a period; 0 for as much as each of the other values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.count_epsilon < self.period_epsilon:
            raise MethodError(
                f"{self.name}, count_epsilon",
                expected=f"less than the {plain(self.period_epsilon)} that a period has, or 0 for an equal share",
                found=f"count_epsilon = {plain(self.count_epsilon)}",
                do="leave it out, or choose a smaller one",
            )
        least = min(self.epsilon_of_count, self.epsilon_of_value)
        self._refuse_unless(
            (
                least >= LEAST_SHARE,
                "epsilon",
                "at least 10^-12 for each value and for the number of people",
                plain(least),
            )
        )

    def spending(self, factor: Fraction) -> Self:
        """The same method with so many times its ε, divided as before."""
        return replace(self, epsilon=self.epsilon * factor, count_epsilon=self.count_epsilon * factor)

    @property
    def epsilon_of_count(self) -> Fraction:
        """ε of the number of people of one period."""
        return self.count_epsilon or self.period_epsilon / (self.statistics + 1)

    @property
    def epsilon_of_value(self) -> Fraction:
        """ε of each value of one period."""
        return (self.period_epsilon - self.epsilon_of_count) / self.statistics


# Discrete Laplace noise for counts of people: differential privacy for one person with the whole history.


@dataclass(frozen=True, kw_only=True)
class RecordLaplace(OfWeights, Laplace):
    """ε privacy for one person by discrete Laplace noise of ε/periods in every cell.

    A person is in one cell of each period: inside a period one count changes, by one, and the periods add up. Records
    with weights count with these, added up exactly and rounded once: one changes a count by `largest_weight` at most,
    and noise of that much less ε hides any of them. With a limit of the records of a unit, noise of that much less ε
    hides all of them: docs/methods/hypercube.md has the proof.

    >>> RecordLaplace(alpha=Fraction(1), epsilon=Fraction(2), periods=4).noise.epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "laplace-records"
    of_people: ClassVar[tuple[str, ...]] = ("count",)
    """The statistics of people that it makes."""
    named: ClassVar[str] = Laplace.name
    """What release files call it: of people there is one such noise."""
    description: ClassVar[str] = (
        "random whole numbers from the discrete Laplace distribution (two-sided geometric), enough to hide one "
        "person's whole history, were added to every count"
    )

    periods: int = of_table(1)
    """The number of periods in which the table counts a person."""
    protects: Literal["record", "unit"] = added("record")
    """What is hidden: a record, or all records of one unit of the last of `levels`, such as an establishment."""
    most_records: int = added(1)
    """For protects = "unit": how many records of a unit are counted at most, chosen by the key of the release."""

    def __post_init__(self) -> None:
        if self.periods < 1:
            raise MethodError(
                self.name, expected="one period or more", found=f"{self.periods}", do="choose at least one period"
            )
        least, most = {"record": (1, 1), "unit": (2, MOST_RECORDS)}.get(self.protects, (1, 0))
        if not least <= self.most_records <= most:
            raise MethodError(
                f"{self.name}, protects",
                expected=f'"record", or "unit" with most_records from 2 to {MOST_RECORDS:,}: where one record of a '
                "unit is counted, a new one may take its place, and these are two steps",
                found=f"{self.protects!r} with most_records = {self.most_records:,}",
                do="state how many records of a unit are counted at most, or leave out both",
            )
        self.check_weights()
        super().__post_init__()

    @cached_property
    def noise(self) -> Geometric:
        """The same noise for every cell."""
        return Geometric(epsilon=self.epsilon / self.periods / self.largest_weight / self.most_records)

    def guarantee(self) -> EmployerEmployee:
        """For one person: parallel over the cells of a period, sequential over the periods."""
        period = EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon / self.periods)
        return sequential([period] * self.periods)

    def people(self, counted: Any) -> Integers:
        """The true number of people of every group: confidential."""
        found: Integers = counted["count"]
        return found

    def true_value(self, counted: Cells) -> Floats:
        """The same, as what a published value is compared with."""
        return counted["count"].astype(np.float64)

    def spending(self, factor: Fraction) -> Self:
        """The same method with so many times its ε."""
        return replace(self, epsilon=self.epsilon * factor)

    def of_one_period(self) -> Self:
        """The method that a period has, as if there were no other."""
        return replace(self, epsilon=self.epsilon / self.periods, periods=1)

    def in_order(self) -> Self:
        """The same: it has no places."""
        return self

    def with_value_epsilon(self, epsilon: Fraction) -> "RecordLaplace":
        """The same method with so much ε for each count of a period."""
        return replace(self, epsilon=epsilon * self.periods)

    def probability_within(self, share: Fraction, people: Integers, means: Floats | None) -> Floats:  # noqa: ARG002
        """The probability that a count is off by at most a share of itself, for cells of so many people."""
        most = np.array([floor(share * int(n)) for n in people])
        return 1 - self.noise.survival(most + 1)

    def typical_error(self) -> str:
        """How far a count is typically off."""
        what = "people" if self.largest_weight == 1 else "of a weighted count"
        return f"The noise is typically {self.planned_error().in_a_small_cell} {what}."

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups."""
        what = " people" if self.largest_weight == 1 else ""
        return f"{self.planned_error().in_a_small_cell}{what}", "the same"
