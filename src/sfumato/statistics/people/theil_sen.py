"""Theil-Sen: the private median of lines through pairs of people."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import SUPPRESSED
from sfumato.noise.choice import MOST_POINTS, PrivateMedian
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.people.noisy_regression import LineSums
from sfumato.statistics.people.small_samples import MOST_MINIMUM, NO_ERROR, CountedSamples, Samples

# Lines through pairs of people who stand next to each other on a random circle, for many groups at once.

_RECORDS = 1 << 16
_GROUPS = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Circles:
    """People of some groups, each group in a random order that is read as a circle."""

    group: Integers
    """Of every person, from 0 on."""
    x: Floats
    y: Floats
    starts: Integers
    """Where every group begins, and after the last one where it ends."""

    def pairs(self, partners: int) -> Iterator[tuple[Integers, Integers]]:
        """Everybody with the one who follows 1, 2, … places further on, up to `partners`, never with themselves."""
        sizes, begins = np.diff(self.starts)[self.group], self.starts[:-1][self.group]
        place = np.arange(len(self.group)) - begins
        for step in range(1, partners + 1):
            first = np.flatnonzero(sizes > step)
            yield first, begins[first] + (place[first] + step) % sizes[first]

    def predictions(
        self, rank: Fraction, *, partners: int, low: int, high: int, grid: int
    ) -> tuple[Integers, Integers]:
        """What the line through every pair says at a rank, rounded to the grid and clipped, and the group of each.

        Pairs with one x have no line and are left out. Floating point is good enough: privacy needs no more than that
        a prediction depends on its two people alone.
        """
        groups, values = [], []
        for one, other in self.pairs(partners):
            lined = self.x[other] != self.x[one]
            first, second = one[lined], other[lined]
            run = self.x[second] - self.x[first]
            said = self.y[first] + (self.y[second] - self.y[first]) * ((float(rank) - self.x[first]) / run)
            groups.append(self.group[first])
            values.append(np.rint(np.clip(said, low, high) * grid).astype(np.int64))
        return np.concatenate(groups), np.concatenate(values)


def circles(samples: Samples, randomness: Randomness) -> Iterator[tuple[slice, Circles]]:
    """All groups, so many at a time as fit the memory, each in an order drawn from all orders alike."""
    starts = samples.starts
    begin = 0
    while begin < len(samples):
        end = int(np.searchsorted(starts, starts[begin] + _RECORDS, side="right")) - 1
        end = min(max(end, begin + 1), begin + _GROUPS, len(samples))
        records = slice(int(starts[begin]), int(starts[end]))
        local = starts[begin : end + 1] - starts[begin]
        group = np.repeat(np.arange(end - begin), np.diff(local))
        order = _shuffled(group, randomness)
        yield (
            slice(begin, end),
            Circles(
                group=group,
                x=samples.x[records][order].astype(np.float64),
                y=samples.y[records][order].astype(np.float64),
                starts=local,
            ),
        )
        begin = end


def _shuffled(group: Integers, randomness: Randomness) -> NDArray[np.intp]:
    """An order that keeps groups together and is random within each: that of random words behind the group's number.

    Two equal words would keep the order of the data; then all are drawn again, which leaves every order as likely as
    any other.
    """
    bits = np.uint64(int(group[-1]).bit_length() if len(group) else 0)
    while True:
        words = randomness.words(len(group)) >> bits
        # A shift by all 64 bits is not defined, and with one group there is nothing to put in front.
        keys = words | (group.astype(np.uint64) << (np.uint64(64) - bits)) if bits else words
        order = np.argsort(keys)
        if not bool(np.any(keys[order][1:] == keys[order][:-1])):
            return order


MOST_PARTNERS = 64


@dataclass(frozen=True, kw_only=True)
class TheilSen(CountedSamples):
    """ε privacy for individuals: people stand on a random circle, pairs of near ones predict, a private median decides.

    One more person on the circle parts `partners` pairs and makes twice as many new ones; each moves the rank of the
    median by a half. So the median is drawn with weights exp(−ε·t/(6·partners)). docs/methods/small-samples.md has
    the proof.

    >>> TheilSen(alpha=Fraction(1), epsilon=Fraction(9), at=(Fraction(1, 4), Fraction(3, 4)), partners=2).decay
    Fraction(1, 4)
    """

    name: ClassVar[str] = "theil-sen"
    of_people: ClassVar[tuple[str, ...]] = ("predict",)
    """The statistics of people that it makes."""
    description: ClassVar[str] = (
        "predictions are medians, drawn at random so as to hide one person (exponential mechanism), of the lines "
        "through pairs of people who were put next to each other by chance, and numbers of people have random noise of "
        "their own"
    )
    unbiased: ClassVar[bool] = False

    @property
    def tells_errors(self) -> bool:
        """No: it depends on how close the lines through pairs lie together."""
        return False

    def true_estimates(self, counted: Samples) -> Floats:
        """The least-squares predictions of the values themselves: confidential."""
        line = LineSums.of(counted.sums())
        found = [np.where(line.is_defined(), line.prediction(rank), np.nan).astype(np.float64) for rank in self.at]
        return np.stack(found).T.ravel()

    def people(self, counted: Samples) -> Integers:
        """The true number of people of every group: confidential."""
        return counted.sizes

    needs: ClassVar[frozenset[str]] = frozenset({"samples"})

    why_unweighted: ClassVar[str] = "pairs of people are made by chance, and no proof says what a heavy one changes"

    partners: int = 4
    """With how many of those who follow on the circle everybody makes a pair."""
    width: Fraction = Fraction(1, 400)
    """Lines this share of the outcome's range apart count as equal, which helps where many coincide."""
    minimum: int = 20
    """Groups whose noisy number of people is smaller are withheld."""

    def __post_init__(self) -> None:
        super().__post_init__()
        span = (self.high_y - self.low_y) * self.grid
        self._refuse_unless(
            (
                1 <= self.partners <= MOST_PARTNERS,
                "partners",
                f"a whole number from 1 to {MOST_PARTNERS}",
                f"{self.partners}",
            ),
            (0 <= self.width <= Fraction(1, 4), "width", "a share from 0 to 0.25", plain(self.width)),
            (0 <= self.minimum <= MOST_MINIMUM, "minimum", f"from 0 to {MOST_MINIMUM:,} people", f"{self.minimum}"),
            (span < MOST_POINTS, "decimals", "an outcome of fewer than 2^44 published units", f"{span + 1:,}"),
        )

    def guarantee(self) -> EmployerEmployee:
        """For individuals: a person is in one group of a period."""
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon)

    @property
    def decay(self) -> Fraction:
        """By how much the logarithm of a weight falls with t: ε over twice the most that one person changes t by."""
        return self.epsilon_of_value / (2 * 3 * self.partners)

    @cached_property
    def median(self) -> PrivateMedian:
        """The mechanism that draws every prediction, on the published grid."""
        low, high = self.low_y * self.grid, self.high_y * self.grid
        return PrivateMedian(decay=self.decay, low=low, high=high, width=int(self.width * (high - low)))

    @cached_property
    def count_noise(self) -> Geometric:
        """The noise of the number of people."""
        return Geometric(epsilon=self.epsilon_of_count)

    def protect(self, samples: Samples, randomness: Randomness) -> Cells:
        """Private medians and numbers of people; nothing published tells the error of a median."""
        count = np.clip(samples.sizes + self.count_noise.sample(len(samples), randomness), -LIMIT, LIMIT)
        value = np.empty((len(self.at), len(samples)), dtype=np.int64)
        for groups, standing in circles(samples, randomness):
            for place, rank in enumerate(self.at):
                owner, said = standing.predictions(
                    rank, partners=self.partners, low=self.low_y, high=self.high_y, grid=self.grid
                )
                value[place, groups] = self.median.sample(owner, said, groups.stop - groups.start, randomness)
        status = np.where(count < self.minimum, SUPPRESSED, 0)
        return self.published(
            samples.dimensions,
            samples.listed,
            value=value,
            error=np.full(value.shape, NO_ERROR),
            status=np.broadcast_to(status, value.shape),
            count=count,
        )

    def expected_error(self, samples: Samples) -> Floats:
        """Not known without drawing: it depends on how close the lines through pairs lie together."""
        return np.full(len(samples) * len(self.at), np.nan)
