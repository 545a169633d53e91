"""Laplace noise for individuals and for whole establishments: the baselines."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import PlannedError, check_confidence, check_parameters
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import NoiseParts, symmetric
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.smooth import LIMIT

# Laplace noise in whole numbers: differential privacy for individuals, the baseline that hides no employer.


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """ε privacy for single jobs by discrete Laplace noise of ε; sizes and shapes of establishments stay open.

    One job is in one cell of the table, so every cell gets the whole ε, whatever attributes classify it. The noise is
    drawn in whole jobs: continuous noise of scale 1/ε, rounded, promises the same and is cosh(ε/2) times as large.
    `alpha` plays no part. docs/methods/baselines.md has the proofs.

    >>> Laplace(alpha=Fraction("0.1"), epsilon=Fraction(2)).guarantee().definition
    'individuals'
    """

    name: ClassVar[str] = "laplace"
    description: ClassVar[str] = (
        "random whole numbers from the discrete Laplace distribution (two-sided geometric), enough to hide one job, "
        "were added to every count"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"count"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)

    @cached_property
    def noise(self) -> Geometric:
        """The same noise for every cell."""
        return Geometric(epsilon=self.epsilon)

    def guarantee(self) -> EmployerEmployee:
        """For individuals only."""
        return EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon)

    def planned_error(self) -> PlannedError:
        """The same error in every cell."""
        return PlannedError(floor=self.noise.expected_magnitude, floor_size=0, share=0.0)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error, the same in every cell."""
        return np.full(len(cells), self.noise.expected_magnitude)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative."""
        return with_noise(self.name, cells, cells["count"], self.noise, randomness)

    def published_error(self, values: Integers) -> Floats:
        """The mean absolute error, which is no secret here."""
        return np.full(len(values), self.noise.expected_magnitude)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts n ≥ 0 within the quantile of the noise of the published value, and below zero those of 0."""
        check_confidence(confidence)
        width, y = float(self.noise.quantile(confidence)), values.astype(np.float64)
        return np.maximum(y - width, 0.0), np.maximum(y, 0.0) + width

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:  # noqa: ARG002
        """The same noise in every cell, which is no secret."""
        law = symmetric(lambda x: self.noise.survival(np.floor(x) + 1), self.noise.expected_magnitude)
        return NoiseParts.of_cells(law, sums, np.ones(len(sums)))


def with_noise(method: str, cells: Cells, counts: Integers, noise: Geometric, randomness: Randomness) -> Cells:
    """Counts plus noise of one ε for all cells, the sums cut well inside 64 bits."""
    # The error names no number: these are confidential.
    if len(counts) and not (int(counts.min()) >= 0 and int(counts.max()) < LIMIT):
        raise MethodError(
            method,
            expected="0 ≤ count < 2^61 in every cell",
            found="a cell outside these limits",
            do="check the counts",
        )
    value = np.clip(counts + noise.sample(len(counts), randomness), -LIMIT, LIMIT)
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})


# Node Laplace: differential privacy for whole establishments, the large ones being left out.

LARGEST_THRESHOLD = 10**9


@dataclass(frozen=True, kw_only=True)
class NodeLaplace:
    """ε privacy for whole workforces: establishments of `threshold` workers or more are left out, then Laplace noise.

    An establishment that is kept has threshold − 1 workers at most, which discrete Laplace noise of ε/(threshold − 1)
    hides. The guarantee is strong at every α, since any workforce may be added to an empty one, and the whole table
    costs ε once, also with worker attributes. Published values are too low where establishments are left out.
    docs/methods/baselines.md has the proof.

    >>> NodeLaplace(alpha=Fraction("0.1"), epsilon=Fraction(2), threshold=50).planned_error().floor_size
    49
    """

    name: ClassVar[str] = "node-laplace"
    description: ClassVar[str] = (
        "establishments with many workers were left out, and random whole numbers from the discrete Laplace "
        "distribution (two-sided geometric), enough to hide any of the others whole, were added to every count"
    )
    unbiased: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"count", "count_below_threshold"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    threshold: int = 100
    """Establishments with so many workers in all, or more, are left out."""

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        if not 2 <= self.threshold <= LARGEST_THRESHOLD:
            raise MethodError(
                self.name,
                expected=f"2 ≤ threshold ≤ {LARGEST_THRESHOLD}",
                found=f"threshold = {self.threshold}",
                do="choose a threshold such as 100: establishments of 100 workers or more are left out",
            )

    @cached_property
    def noise(self) -> Geometric:
        """The same noise for every cell."""
        return Geometric(epsilon=self.epsilon / (self.threshold - 1))

    def guarantee(self) -> EmployerEmployee:
        """Strong, at the α that is asked for; it would hold at any."""
        return EmployerEmployee(definition="strong", alpha=self.alpha, epsilon=self.epsilon)

    def planned_error(self) -> PlannedError:
        """The error of the noise, and all workers of the establishments that are left out."""
        return PlannedError(
            floor=self.noise.expected_magnitude,
            floor_size=self.threshold - 1,
            share=1.0,
            of=f"its establishments of {self.threshold:,} or more",
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell, noise and left-out jobs together: confidential."""
        return self.noise.expected_distance(_left_out(cells))

    def expected_bias(self, cells: Cells) -> Floats:
        """The jobs that are left out, as a negative number: confidential."""
        return -_left_out(cells).astype(np.float64)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count of the establishments that are kept, plus noise: whole numbers, possibly negative."""
        _left_out(cells)  # refuses columns that contradict each other
        return with_noise(self.name, cells, cells["count_below_threshold"], self.noise, randomness)

    def published_error(self, values: Integers) -> Floats:
        """The mean absolute error of the noise alone: how much is left out cannot be told."""
        return np.full(len(values), self.noise.expected_magnitude)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """The least count the published value is consistent with; any number of jobs may have been left out."""
        check_confidence(confidence)
        # Only noise above its quantile takes this end beyond the count, which is half of what is that far from zero.
        width = self.noise.quantile(max(2 * Fraction(confidence) - 1, Fraction(0)))
        low = np.maximum(values - float(width), 0.0)
        return low, np.full(len(values), np.nan)


def _left_out(cells: Cells) -> Integers:
    left_out: Integers = cells["count"] - cells["count_below_threshold"]
    if len(left_out) and int(left_out.min()) < 0:
        raise MethodError(
            NodeLaplace.name,
            expected="count_below_threshold ≤ count in every cell",
            found="a cell where it is greater",
            do="check the counts",
        )
    return left_out
