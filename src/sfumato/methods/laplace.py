"""Laplace noise in whole numbers: differential privacy for individuals, the baseline that hides no employer."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.methods.method import PlannedError
from sfumato.methods.parameters import check_parameters
from sfumato.methods.smooth import LIMIT
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee


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


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval can have."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
