"""What the smooth methods share: noise scaled to the largest establishment of each cell."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.methods.method import PlannedError
from sfumato.methods.parameters import check_parameters
from sfumato.methods.vector_figures import check_confidence, counts_within
from sfumato.noise.randomness import Randomness
from sfumato.privacy.composition import parallel, sequential
from sfumato.privacy.guarantee import EmployerEmployee

# Published values are cut here. The noise saturates at 2^62, so the cut sees every sum that reaches beyond
# it: the output is a function of the exact sum, which is post-processing, and never of the noise alone.
LIMIT = 2**61


class ScaledNoise(Protocol):
    """Symmetric noise whose scale is a multiple of a unit: `DoublePareto`, `Quartic` and `RoundedLaplace`."""

    def sample(self, multiples: Integers, randomness: Randomness) -> Integers:
        """One rounded draw for every multiple."""
        ...

    def expected_magnitude(self, multiples: Integers) -> Floats:
        """The mean magnitude of the rounded noise."""
        ...

    def quantile(self, probability: float) -> float:
        """The number of scales that the noise stays below with this probability."""
        ...


@dataclass(frozen=True, kw_only=True)
class Smooth(ABC):
    """(α, ε) privacy by noise of scale k·max(αx, 1), x being the largest establishment of the cell.

    `epsilon` is what the whole table spends. `worker_cells` is the number of worker-attribute cells inside
    each workplace cell, 0 when the table uses workplace attributes only: the guarantee is then strong.
    Otherwise it is weak, and each worker cell gets an equal share of ε.

    The density of the noise falls on both sides of zero; the error figures rely on it.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        _ = self.scale  # refuses parameters at which the mechanism does not exist

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """k, the scale of the noise in units of S = max(αx, 1): public and exact."""

    @property
    @abstractmethod
    def noise(self) -> ScaledNoise:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""

    @property
    @abstractmethod
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding, which E|J|/S never exceeds because the survival function is convex."""

    @property
    def shares(self) -> int:
        """Into how many equal parts the table's ε is divided."""
        return max(self.worker_cells, 1)

    def cell_guarantee(self) -> EmployerEmployee:
        """What one cell by itself reveals at most."""
        return EmployerEmployee(
            definition="weak" if self.worker_cells else "strong",
            alpha=self.alpha,
            epsilon=self.epsilon / self.shares,
        )

    def guarantee(self) -> EmployerEmployee:
        """Strong on workplace attributes, weak on worker attributes; ε for the whole table either way."""
        # One establishment is in all worker cells of its workplace cell, and in no other workplace cell.
        return parallel([sequential([self.cell_guarantee()] * self.shares)])

    def planned_error(self) -> PlannedError:
        """The error where αx ≤ 1, and above that its share of the largest establishment's workers."""
        smallest = np.array([self.alpha.denominator])
        return PlannedError(
            floor=float(self.noise.expected_magnitude(smallest)[0]),
            floor_size=int(1 / self.alpha),
            share=float(self.alpha) * self.error_in_scales,
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true largest establishment: confidential."""
        return self.noise.expected_magnitude(self._multiples(cells))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        noisy = cells["count"] + self.noise.sample(self._multiples(cells), randomness)
        value = np.clip(noisy, -LIMIT, LIMIT)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})

    def published_error(self, values: Integers) -> Floats:
        """The error as if the whole published count were one establishment.

        Its mean is never below the true mean error: the published count is unbiased, the largest
        establishment is at most the count, and the figure is a convex function of the published count
        (Jensen's inequality).
        """
        as_one_establishment = np.maximum(float(self.alpha) * np.maximum(values, 0), 1.0)
        error: Floats = self.error_in_scales * as_one_establishment
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, whatever their largest establishment.

        It keeps every n ≥ 0 with |value − n| ≤ w·max(αn, 1) + ½, where w is k times the quantile of the
        noise, and below zero those that it keeps at 0. Where αw ≥ 1 the noise of a large establishment may hide any
        count, and the upper end is NaN.
        """
        check_confidence(confidence)
        width = float(self.scale) * self.noise.quantile(confidence)
        return counts_within(values, width=width, slope=float(self.alpha) * width)

    def _multiples(self, cells: Cells) -> Integers:
        """The scale S = max(αx, 1) of every cell in units of 1/q, where α = p/q: max(p·x, q), exactly."""
        count, largest = cells["count"], cells["largest"]
        p, q = self.alpha.numerator, self.alpha.denominator
        # The error names no number: these are confidential.
        if len(cells) and not (
            bool(np.all((largest >= 0) & (largest <= count)))
            and int(count.max()) < LIMIT
            and int(largest.max()) <= (2**63 - 1) // p
        ):
            raise MethodError(
                self.name,
                expected=f"0 ≤ largest ≤ count < 2^61 and largest·{p} < 2^63 in every cell",
                found="a cell outside these limits",
                do="check the counts, or choose an alpha with fewer decimals",
            )
        multiples: Integers = np.maximum(largest * p, q)
        return multiples
