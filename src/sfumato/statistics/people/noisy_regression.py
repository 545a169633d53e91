"""Regression from noisy sums, solved exactly: differential privacy for individuals."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.people.small_samples import MOST_MINIMUM, NO_ERROR, OfWeights, SmallSamples

# Least squares from sums, exactly: predictions of many groups at once, as whole numbers of a published grid.

Exact = NDArray[Any]
"""Python's own integers, one a group: ten million ranks of up to 10,000 have sums of squares beyond 64 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LineSums:
    """Sums of (x, y) by group, and centred sums times n², which are whole numbers and lose no digit.

    >>> two = Cells(dimensions=(), positions=np.array([0]), columns={
    ...     "count": np.array([2]), "sum_x": np.array([4]), "sum_y": np.array([6]),
    ...     "sum_xx": np.array([10]), "sum_xy": np.array([14])})
    >>> line = LineSums.of(two)                         # the points (1, 2) and (3, 4)
    >>> line.rounded_prediction(Fraction(2), grid=10).tolist()
    [30]
    """

    n: Exact
    x: Exact
    y: Exact
    spread: Exact
    """n·Σxx − (Σx)²."""
    joint: Exact
    """n·Σxy − Σx·Σy."""

    @classmethod
    def of(cls, cells: Cells) -> "LineSums":
        """The exact sums of tabulated ones."""
        names = ("count", "sum_x", "sum_y", "sum_xx", "sum_xy")
        n, x, y, xx, xy = (cells[name].astype(object) for name in names)
        return cls(n=n, x=x, y=y, spread=n * xx - x * x, joint=n * xy - x * y)

    def is_defined(self) -> NDArray[np.bool_]:
        """Whether x takes two different values or more, so that there is one line."""
        return (self.spread > 0).astype(np.bool_)

    def rounded_prediction(self, rank: Fraction, *, grid: int) -> Exact:
        """α + β·rank in whole units of 1/grid, rounded exactly; 0 for groups without a line."""
        p, q = rank.numerator, rank.denominator
        spread = np.where(self.is_defined(), self.spread, 1)
        bottom = np.where(self.n > 0, self.n, 1) * spread * q
        top = (self.y * spread * q + self.joint * (self.n * p - self.x * q)) * grid
        return np.where(self.is_defined(), (2 * top + bottom) // (2 * bottom), 0)

    def prediction(self, rank: Fraction) -> Floats:
        """α + β·rank, NaN for groups without a line."""
        defined = self.is_defined()
        n, x, y = _floats(np.where(self.n > 0, self.n, 1)), _floats(self.x), _floats(self.y)
        slope = _floats(self.joint) / np.where(defined, _floats(self.spread), np.nan)
        predicted: Floats = y / n + slope * (float(rank) - x / n)
        return predicted


def rounded_mean(cells: Cells, *, grid: int) -> Exact:
    """Σy/n in whole units of 1/grid, rounded exactly; 0 for empty groups."""
    n, y = cells["count"].astype(object), cells["sum_y"].astype(object)
    bottom = np.where(n > 0, n, 1)
    mean: Exact = (2 * y * grid + bottom) // (2 * bottom)
    return mean


def _floats(numbers: Exact) -> Floats:
    return numbers.astype(np.float64)


# Regression from noisy sums: differential privacy for individuals, with all ranks for the price of one.

OUTCOME_SHARE = Fraction(2, 3)
"""Of ε, for the two sums with outcomes: their noise moves a prediction more than that of the three without."""
LIKELY, CERTAIN = 2.0, 8.0
"""A line is told where the determinant of the noisy sums is above so many standard deviations of its noise, and its
error where it is above the second number of them: below, chance may have made the line, and no error would be true."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySums:
    """Noisy sums of all groups with x as a share p of the way from its minimum to its maximum, q = 1 − p, |w| ≤ 1."""

    pp: Floats
    pq: Floats
    qq: Floats
    pw: Floats
    qw: Floats
    variance: float
    """Of the noise of Σpp, Σ2pq and Σqq each."""
    outcome_variance: float
    """Of the noise of Σpw and Σqw each."""

    @property
    def people(self) -> Floats:
        """The number of people, (p + q)² each."""
        return self.pp + 2 * self.pq + self.qq

    @cached_property
    def determinant(self) -> Floats:
        """Σpp·Σqq − (Σpq)²: positive where the line is determined."""
        return self.pp * self.qq - self.pq**2

    @cached_property
    def determinant_deviation(self) -> Floats:
        """The standard deviation that noise gives the determinant, to first order."""
        return np.sqrt(self.variance * (self.pp**2 + self.qq**2 + self.pq**2))

    def is_told(self, deviations: float) -> NDArray[np.bool_]:
        """Whether the line is so many standard deviations of the noise from not being determined."""
        return (self.pp > 0) & (self.qq > 0) & (self.determinant > deviations * self.determinant_deviation)

    def predicted(self, p: float) -> tuple[Floats, Floats]:
        """What the line says at p, and the standard deviation that the noise of all five sums gives it, to first order.

        The line is w = c·p + d·q with (Σpp, Σpq; Σpq, Σqq)·(c, d) = (Σpw, Σqw). A change of the sums moves it by
        z·(change of the right − change of the left·(c, d)), z being what solves the equations for (p, q).
        """
        whole = np.where(self.is_told(LIKELY), self.determinant, 1.0)
        c, d = self._solved(self.pw, self.qw, whole)
        first, second = self._solved(np.full(len(whole), p), np.full(len(whole), 1 - p), whole)
        outcomes = self.outcome_variance * (first**2 + second**2)
        # Σ2pq is what has the noise; Σpq has half of it.
        others = (first * c) ** 2 + ((first * d + second * c) / 2) ** 2 + (second * d) ** 2
        # Lines that are told have determinants that noise rather raised: taken as one deviation smaller.
        raised = whole / np.maximum(whole - self.determinant_deviation, whole / LIKELY)
        return c * p + d * (1 - p), raised * np.sqrt(outcomes + self.variance * others)

    def _solved(self, right: Floats, below: Floats, whole: Floats) -> tuple[Floats, Floats]:
        return (self.qq * right - self.pq * below) / whole, (self.pp * below - self.pq * right) / whole


@dataclass(frozen=True, kw_only=True)
class NoisyRegression(OfWeights, SmallSamples):
    """ε privacy for individuals: five sums with geometric noise, and lines computed from nothing else.

    With p the share of the way from the minimum of x to its maximum and w the outcome from −1 to 1, a person adds
    p², 2p(1−p) and (1−p)² to three sums, 1 in all, and w·p and w·(1−p) to two, 1 at most in all. Noise of the three
    together costs what noise of one would. With weights a person adds as many times that, and the noise is made for the
    largest. docs/methods/small-samples.md has the proof.

    >>> NoisyRegression(alpha=Fraction(1), epsilon=Fraction(3), at=(Fraction(1, 2),)).guarantee().condition
    ''
    """

    name: ClassVar[str] = "noisy-regression"
    of_people: ClassVar[tuple[str, ...]] = ("predict",)
    """The statistics of people that it makes."""
    description: ClassVar[str] = (
        "random noise from the geometric distribution, enough to hide one person, was added to the sums of every "
        "group, and predictions and numbers of people were computed from these"
    )
    unbiased: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"count", "sum_x", "sum_y", "sum_xx", "sum_xy"})

    minimum: int = 10
    """Groups whose noisy number of people is smaller are withheld; with weights, so many of the largest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_weights()
        shares = self.period_epsilon * (1 - OUTCOME_SHARE), self.period_epsilon * OUTCOME_SHARE
        widths = self.width_x, self.width_y
        self._refuse_unless(
            (0 <= self.minimum <= MOST_MINIMUM, "minimum", f"from 0 to {MOST_MINIMUM:,} people", f"{self.minimum}"),
            (
                min(share / (self.width_x * width) for share, width in zip(shares, widths, strict=True))
                > Fraction(self.weight_steps, LIMIT),
                "bounds",
                "bounds so narrow, or an epsilon so large, that the noise of sums of squares stays within 64 bits",
                f"values from {self.low_x:,} to {self.high_x:,} to predict from, an outcome from {self.low_y:,} to "
                f"{self.high_y:,}, and epsilon = {plain(self.period_epsilon)} a period",
            ),
        )

    def guarantee(self) -> EmployerEmployee:
        """For individuals: a person is in one group of a period, and adds to five sums of it."""
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon)

    @property
    def width_x(self) -> int:
        """From the least to the greatest x."""
        return self.high_x - self.low_x

    @property
    def width_y(self) -> int:
        """From the least to the greatest outcome."""
        return self.high_y - self.low_y

    @property
    def most_people(self) -> int:
        """How many people, or steps of weight, a group may have, so that its five sums stay within 64 bits."""
        return LIMIT // (self.width_x * max(self.width_x, self.width_y))

    @cached_property
    def noise(self) -> Geometric:
        """Of the sums of p², 2pq and q², in units of 1/width_x² and steps of weight."""
        return Geometric(epsilon=self.period_epsilon * (1 - OUTCOME_SHARE) / (self.width_x**2 * self.weight_steps))

    @cached_property
    def outcome_noise(self) -> Geometric:
        """Of the sums of w·p and w·q, in units of 1/(width_x·width_y) and steps of weight."""
        widths = self.width_x * self.width_y
        return Geometric(epsilon=self.period_epsilon * OUTCOME_SHARE / (widths * self.weight_steps))

    def whole_sums(self, cells: Cells) -> tuple[Integers, ...]:
        """The five sums as whole numbers: three in units of 1/width_x², two of 1/(width_x·width_y); confidential.

        Sums and products may wrap around in 64 bits on the way: the results do not, and are right.
        """
        self._check_people(cells)
        n, x, y = cells["count"], cells["sum_x"], cells["sum_y"]
        xx, xy, low, high, middle = cells["sum_xx"], cells["sum_xy"], self.low_x, self.high_x, self.low_y + self.high_y
        up, down = x - low * n, high * n - x
        pp = xx - 2 * low * x + low * low * n
        pq = (low + high) * x - xx - low * high * n
        qq = high * high * n - 2 * high * x + xx
        pw = 2 * (xy - low * y) - middle * up
        qw = 2 * (high * y - xy) - middle * down
        return pp, 2 * pq, qq, pw, qw

    def noisy_sums(self, cells: Cells, randomness: Randomness) -> NoisySums:
        """The sums with noise, which may be published."""
        noises = (self.noise, self.noise, self.noise, self.outcome_noise, self.outcome_noise)
        return self._scaled(
            *(
                np.clip(exact + noise.sample(len(cells), randomness), -LIMIT, LIMIT)
                for exact, noise in zip(self.whole_sums(cells), noises, strict=True)
            )
        )

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Predictions within the bounds of the outcome, numbers of people and errors, all from the noisy sums."""
        sums = self.noisy_sums(cells, randomness)
        count = np.rint(sums.people * self.largest_weight).astype(np.int64)
        status = np.where(sums.is_told(LIKELY), 0, NOT_AVAILABLE)
        status = np.where(count < self.minimum * self.largest_weight, SUPPRESSED, status)
        predicted = [sums.predicted(self._share(rank)) for rank in self.at]
        unit = self.width_y * self.grid / 2
        middle = (self.low_y + self.high_y) * self.grid / 2
        value = [np.rint(middle + unit * np.clip(w, -1, 1)) for w, _ in predicted]
        certain = sums.is_told(CERTAIN)
        error = [np.where(certain, np.ceil(unit * np.minimum(off, 1)), NO_ERROR) for _, off in predicted]
        return self.published(
            cells.dimensions,
            cells.positions,
            value=np.stack(value).astype(np.int64),
            error=np.stack(error).astype(np.int64),
            status=np.broadcast_to(status, (len(value), len(status))),
            count=count,
        )

    def true_value(self, cells: Cells) -> Floats:
        """The predictions without noise in published units, one row a published cell: confidential."""
        line = LineSums.of(cells)
        found = [np.clip(line.prediction(rank), self.low_y, self.high_y) * self.grid for rank in self.at]
        return np.stack(found).T.ravel()

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error to first order, NaN where the true sums tell no line: confidential."""
        exact = self._scaled(*self.whole_sums(cells))
        unit = self.width_y * self.grid / 2
        found = [
            np.where(exact.is_told(LIKELY), unit * np.sqrt(2 / np.pi) * exact.predicted(self._share(rank))[1], np.nan)
            for rank in self.at
        ]
        return np.stack(found).T.ravel()

    def _scaled(self, pp: Integers, twice_pq: Integers, qq: Integers, pw: Integers, qw: Integers) -> NoisySums:
        # In people of the largest weight: a line is the same in any unit, and one of them is what the noise hides.
        squares = float(self.width_x**2 * self.weight_steps)
        products = float(self.width_x * self.width_y * self.weight_steps)
        return NoisySums(
            pp=pp / squares,
            pq=twice_pq / (2 * squares),
            qq=qq / squares,
            pw=pw / products,
            qw=qw / products,
            variance=self.noise.variance / squares**2,
            outcome_variance=self.outcome_noise.variance / products**2,
        )

    def _share(self, rank: Fraction) -> float:
        return float((rank - self.low_x) / self.width_x)
