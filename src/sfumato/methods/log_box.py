"""Log Box: one draw of noise on the logarithms of all worker cells; no scale depends on the data; weak."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.methods.method import PlannedError
from sfumato.methods.parameters import PRECISE, check_parameters, decimal, largest_alpha_to, smallest_from
from sfumato.methods.vector_blocks import Blocks
from sfumato.methods.vector_calibration import check_cells
from sfumato.methods.vector_figures import OUTWARD, check_confidence, rounded_down, rounded_up
from sfumato.noise.box_deviation import expected_deviation, relative_deviation
from sfumato.noise.box_laplace import BoxLaplace
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee

_FINE = 10**18  # the scale is rounded up to this grid: finer than the billionths of others, since it may be tiny
_LARGEST_SCALE = Fraction(999, 1000)  # at one the mean of the exponential is infinite


@dataclass(frozen=True, kw_only=True)
class LogBox:
    """Weak, pure (α, ε) privacy by noise z on ln(n_c + 1/α), all worker cells of a workplace cell at once.

    The value is (n_c + 1/α)·e^(z_c)/E[e^(z_c)] − 1/α, rounded, so it is unbiased up to its rounding, and its error is a
    share of n_c + 1/α. `worker_cells` is the number of cells in a block, 0 when workers are not told apart: the
    guarantee is then strong. docs/methods/vector.md has the proofs.

    >>> LogBox(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'weak'
    """

    name: ClassVar[str] = "log-box"
    needs: ClassVar[frozenset[str]] = frozenset({"count"})
    description: ClassVar[str] = (
        "random noise was added to the logarithms of the counts of all worker cells of a workplace cell together (Log "
        "Box), and the results were corrected for bias and rounded to whole jobs"
    )
    unbiased: ClassVar[bool] = True  # but for rounding, which `expected_bias` tells

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        check_cells(self.name, self.worker_cells)
        if _scale(self.alpha, self.epsilon) > _LARGEST_SCALE:
            raise self._no_mean()

    @property
    def cells(self) -> int:
        """The number of cells in a block."""
        return max(self.worker_cells, 1)

    @cached_property
    def noise(self) -> BoxLaplace:
        """The noise of scale b ≥ g/ε, so that one step within [0, g] in every cell costs at most ε."""
        return BoxLaplace(scale=_scale(self.alpha, self.epsilon), cells=self.cells)

    @cached_property
    def correction(self) -> Fraction:
        """1/E[e^z] to twelve digits, the public factor that takes the bias away."""
        return Fraction(f"{1 / self.noise.growth:.12g}")

    @cached_property
    def error_share(self) -> float:
        """The mean absolute error of a cell as a share of n_c + 1/α, before rounding."""
        return relative_deviation(self.noise)

    def guarantee(self) -> EmployerEmployee:
        """Weak on worker attributes, and ε once: an establishment is in one block, and a block is one output."""
        return EmployerEmployee(
            definition="weak" if self.worker_cells else "strong", alpha=self.alpha, epsilon=self.epsilon
        )

    def planned_error(self) -> PlannedError:
        """The error of an empty cell, and above that its share of the count."""
        over, under = self._deviations(np.array([0]))
        return PlannedError(floor=float(over[0] + under[0]), floor_size=0, share=self.error_share, of="its count")

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true count: confidential."""
        counts, where = np.unique(self._blocks(cells).cells["count"], return_inverse=True)
        over, under = self._deviations(counts)
        return (over + under)[where]

    def expected_bias(self, cells: Cells) -> Floats:
        """What rounding brings back of the bias, a few thousandths of a job: confidential."""
        counts, where = np.unique(self._blocks(cells).cells["count"], return_inverse=True)
        over, under = self._deviations(counts)
        return (over - under)[where]

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count times a random factor about one, on a scale that begins at −1/α; zeros move like any other."""
        blocks = self._blocks(cells)
        bases = self._bases(blocks["count"])
        return blocks.published(self.noise.sample(bases, randomness, unit=self._unit, offset=1 / self.alpha))

    def published_error(self, values: Integers) -> Floats:
        """The error at the published count, which is a convex function of it and so not too small on average."""
        error: Floats = self.error_share * (np.maximum(values, 0) + 1 / float(self.alpha))
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts whose value was rounded from one within the quantile of |z|: there is always an upper end.

        A negative value has that of 0, since no count is below 0.
        """
        check_confidence(confidence)
        offset = 1 / float(self.alpha)
        factor = np.exp(float(self.noise.scale) * self.noise.one_cell.quantile(confidence) * (1 + OUTWARD))
        y = values.astype(np.float64)
        back = 1 / float(self.correction)
        near, far = np.maximum(y - 0.5 + offset, 0) * back, (np.maximum(y, 0) + 0.5 + offset) * back
        return rounded_up(near / factor - offset, y), rounded_down(far * factor - offset, y)

    @property
    def _unit(self) -> Fraction:
        return self.correction / self.alpha.numerator

    def _bases(self, counts: Integers) -> Integers:
        """n + 1/α in units of 1/p, where α = p/q: p·n + q, exactly."""
        return counts * self.alpha.numerator + self.alpha.denominator

    def _deviations(self, counts: Integers) -> tuple[Floats, Floats]:
        bases, offset = self._bases(counts), 1 / self.alpha
        return expected_deviation(self.noise, counts, bases, unit=self._unit, offset=offset)

    def _blocks(self, cells: Cells) -> Blocks:
        return Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)

    def _no_mean(self) -> MethodError:
        with localcontext(PRECISE):
            bound = (1 + decimal(self.alpha)).ln()
            widest = decimal(self.epsilon).exp() - 1
        least = smallest_from(bound, lambda epsilon: _scale(self.alpha, epsilon) <= _LARGEST_SCALE)
        finest = largest_alpha_to(widest, lambda alpha: _scale(alpha, self.epsilon) <= _LARGEST_SCALE)
        other = f", or alpha = {finest} or less" if finest is not None else ""
        return MethodError(
            self.name,
            expected=f"epsilon > ln(1 + alpha) = ln({float(1 + self.alpha):g}) = {bound:.4g}; at and below that the "
            "mean error is infinite",
            found=f"epsilon = {float(self.epsilon):g}",
            do=f"choose epsilon = {least} or more{other}",
        )


def _scale(alpha: Fraction, epsilon: Fraction) -> Fraction:
    """b = g/ε, rounded up."""
    with localcontext(PRECISE):
        exact = (1 + decimal(alpha)).ln() / decimal(epsilon)
        found = (exact * (1 + Decimal("1e-50")) * _FINE).to_integral_value(ROUND_CEILING)
    return Fraction(int(found), _FINE)
