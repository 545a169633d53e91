"""Theil-Sen: the private median of lines through pairs of people; differential privacy for individuals."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.methods.pair_predictions import circles
from sfumato.methods.small_samples import MOST_MINIMUM, NO_ERROR, CountedSamples
from sfumato.methods.smooth import LIMIT
from sfumato.methods.status import SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.noise.private_median import MOST_POINTS, PrivateMedian
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.samples import Samples

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
    description: ClassVar[str] = (
        "predictions are medians, drawn at random so as to hide one person (exponential mechanism), of the lines "
        "through pairs of people who were put next to each other by chance, and numbers of people have random noise of "
        "their own"
    )
    unbiased: ClassVar[bool] = False
    tells_errors: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"samples"})

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
