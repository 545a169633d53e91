"""One draw of noise for all worker cells of a workplace cell: Vector Pareto and Smooth Box."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import FOR_THE_LARGEST, PlannedError, PublishedFigures, check_confidence
from sfumato.noise.box_pareto import BoxPareto, sum_tail
from sfumato.noise.pareto import SimplexPareto
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import Law, NoiseParts, symmetric
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.bought_scale import BuysScale
from sfumato.statistics.jobs.calibration import Calibration, calibrate_block

# Blocks: the worker cells of one workplace cell side by side, as the vector methods see them.

Number = TypeVar("Number", bound=np.generic)

LIMIT = 2**61
"""Published values are cut here, well inside the 2^62 at which noise saturates: the sum is cut, never the noise."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The columns of Cells in rows, one row a workplace cell."""

    cells: Cells
    order: NDArray[np.intp]
    columns: Mapping[str, Integers]

    @classmethod
    def of(cls, cells: Cells, *, needs: frozenset[str], method: str, width: int, alpha: Fraction) -> "Blocks":
        """The blocks of all cells, or a MethodError, which names no count: those are confidential."""
        lacking = sorted(needs - set(cells.columns))
        if lacking or cells.worker_cells != width:
            raise MethodError(
                method,
                expected=f"the columns {', '.join(sorted(needs))}, and {width} worker cells in each workplace cell",
                found=f"no {' nor '.join(lacking)}" if lacking else f"{cells.worker_cells} worker cells",
                do="tabulate for this method; a joined table has no number of establishments, so choose another there"
                if lacking
                else "build the method with the worker_cells of the table",
            )
        order = cells.blocks()
        blocks = cls(cells=cells, order=order, columns={name: cells[name][order] for name in needs})
        blocks.check(method, alpha)
        return blocks

    def __getitem__(self, column: str) -> Integers:
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.order)

    def check(self, method: str, alpha: Fraction) -> None:
        """Refuse counts that do not fit together, or not into 64 bits after multiplication with α = p/q."""
        count, most = self["count"], 2**59 // (alpha.numerator * self.order.shape[1])
        fits = bool(np.all((count >= 0) & (count < most)))
        if "largest" in self.columns:
            fits = fits and bool(np.all((self["largest"] >= 0) & (self["largest"] <= count)))
        if "largest_employer" in self.columns:
            employer = self["largest_employer"]
            total = np.minimum(count, most).sum(axis=1, keepdims=True)
            fits = fits and bool(np.all((employer >= 0) & (employer <= total) & (employer == employer[:, :1])))
        if not fits:
            raise MethodError(
                method,
                expected=f"0 ≤ largest ≤ count < 2^59/{alpha.numerator * self.order.shape[1]} in every cell, and one "
                "largest_employer of at most the sum of its cells in every workplace cell",
                found="a cell outside these limits",
                do="check the counts; classify the table by a worker attribute instead of a `where` on it; or choose "
                "an alpha with fewer decimals",
            )

    def published(self, rows: Integers) -> Cells:
        """Protected values in the places of the cells they belong to."""
        value = np.clip(laid_back(self.order, rows), -LIMIT, LIMIT)
        return Cells(dimensions=self.cells.dimensions, positions=self.cells.positions, columns={"value": value})


def laid_back(order: NDArray[np.intp], rows: NDArray[Number]) -> NDArray[Number]:
    """Rows of blocks as one column in the order of the cells."""
    column = np.empty(order.size, dtype=rows.dtype)
    column[order.ravel()] = rows.ravel()
    return column


# Published error figures of methods whose noise depends on more than one published value.

# Interval ends are moved outward by this share before they are rounded, more than floating point can err.
OUTWARD = 1e-12


def counts_within(values: Integers, *, width: float | Floats, slope: float) -> tuple[Floats, Floats]:
    """The least and the greatest whole n ≥ 0 with |value − n| ≤ max(slope·n, width) + ½; NaN for no upper limit.

    A negative value has the upper end of 0. No count is below 0, so noise took it there: what it had been before it
    passed 0 is as open as if it were 0.
    """
    y = values.astype(np.float64)
    width, slope = width * (1 + OUTWARD), slope * (1 + OUTWARD)
    low = rounded_up(np.minimum(y - width - 0.5, (y - 0.5) / (1 + slope)), y)
    if slope >= 1:
        return low, np.full(len(y), np.nan)
    y = np.maximum(y, 0.0)
    return low, rounded_down(np.maximum(y + width + 0.5, (y + 0.5) / (1 - slope)), y)


def within_reach(values: Integers, low: Floats, high: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """An interval cut to what the noise can reach when it moves a value by `reach` and half a job at most.

    A negative value has the upper end of 0, as in `counts_within`. An infinite reach cuts nothing.
    """
    y = values.astype(np.float64)
    reach = reach * (1 + OUTWARD) + 0.5
    known = np.isfinite(reach)
    beyond = np.where(known, reach, 0.0)
    low = np.where(known, np.maximum(low, rounded_up(y - beyond, y)), low)
    return low, np.where(known, np.fmin(high, rounded_down(np.maximum(y, 0.0) + beyond, y)), high)


def rounded_up(low: Floats, values: Floats) -> Floats:
    """Lower ends as whole numbers of jobs, moved outward first."""
    whole: Floats = np.maximum(np.ceil(low - OUTWARD * (1 + np.abs(values) + np.abs(low))), 0.0)
    return whole


def rounded_down(high: Floats, values: Floats) -> Floats:
    """Upper ends as whole numbers of jobs, moved outward first."""
    whole: Floats = np.maximum(np.floor(high + OUTWARD * (1 + np.abs(values) + np.abs(high))), 0.0)
    return whole


# Vector Pareto: one draw of heavy-tailed noise for all worker cells of a workplace cell; strong and pure.

# Of the probability with which an interval may miss, the part that is spent on bounding the largest employer.
_FOR_THE_EMPLOYER = 0.1


@dataclass(frozen=True, kw_only=True)
class VectorPareto(BuysScale):
    """Strong, pure (α, ε) privacy for all worker cells of a workplace cell at once, at the cost of ε once.

    The noise has scale k·max(αx, B) in every cell of the block, x being the largest *total* workforce of an
    establishment in the workplace cell, and B = `floor` what one job adds at most: 1 to counts, and to totals the cap
    of the measure, in which x is then told too. `worker_cells` is the number of cells in a block, 0 when workers are
    not told apart. docs/methods/vector.md has the proofs, and docs/methods/formal-totals.md that for totals.

    >>> VectorPareto(alpha=Fraction("0.05"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'strong'
    """

    name: ClassVar[str] = "vector-pareto"
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest_employer"})
    done: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Vector Pareto) was drawn for all worker cells of "
        "a workplace cell together, added to their {number}s and rounded to whole {unit}"
    )
    """What is done, to numbers of which kind and in which unit."""
    description: ClassVar[str] = done.format(number="count", unit="jobs")

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        _ = self.calibration, self.bought  # refuses parameters at which the mechanism does not exist

    @property
    def cells(self) -> int:
        """The number of cells in a block."""
        return max(self.worker_cells, 1)

    @cached_property
    def calibration(self) -> Calibration:
        """The tail γ − d of the noise and its scale k = 1/a in units of S, public and exact."""
        return calibrate_block(
            self.name, "simplex", alpha=self.alpha, epsilon=self.epsilon, cells=self.worker_cells or 1
        )

    @cached_property
    def noise(self) -> SimplexPareto:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        unit = self.calibration.scale / self.alpha.denominator
        return SimplexPareto(unit=unit, tail=self.calibration.tail, cells=self.cells)

    @property
    def variance(self) -> float | None:
        """Of the noise of a cell in units of S²; None where tails are too heavy."""
        return self.calibration.variance

    @property
    def least(self) -> Fraction:
        """The least S there is."""
        return Fraction(self.floor)

    @property
    def error_in_scales(self) -> float:
        """E|Z_c|/S before rounding, which rounding only lowers: k/(γ − d − 1)."""
        return float(self.calibration.scale / (self.calibration.tail - 1))

    def guarantee(self) -> EmployerEmployee:
        """Strong, and ε once: an establishment is in one block, and a block is one output."""
        return EmployerEmployee(definition="strong", alpha=self.alpha, epsilon=self.epsilon + self.error_epsilon)

    def planned_error(self) -> PlannedError:
        """The error where no establishment of the workplace cell exceeds 1/α workers, and its share above that."""
        nobody = np.zeros(1, dtype=np.int64)
        return PlannedError(
            floor=float(self._rounded_error(nobody)[0]),
            floor_size=int(self.least / self.alpha),
            share=float(self.alpha) * self.error_in_scales,
            of="the largest establishment of its workplace cell",
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from the true largest employer: confidential."""
        blocks = self._blocks(cells)
        error = self._rounded_error(blocks["largest_employer"][:, 0])
        return laid_back(blocks.order, np.repeat(error, self.cells))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        blocks = self._blocks(cells)
        employer = blocks["largest_employer"][:, 0]
        answer = blocks.published(blocks["count"] + self._noise(employer, randomness))
        return self.with_scale(answer, self._multiples(employer), randomness)

    def published_error(self, values: Integers) -> Floats:
        """The error as if each value were a workplace cell of its own, which it is when workers are not told apart."""
        self._alone()
        return self._error(values)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, each value a workplace cell of its own."""
        self._alone()
        check_confidence(confidence)
        width = self.reach(confidence)
        return counts_within(values, width=width * float(self.least), slope=float(self.alpha) * width)

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures from all published values of a workplace cell: the largest employer is at most their true sum.

        With the probability that is not spent on a cell's own noise the true sum is bounded first: the sum of the
        published values misses it by at most a known number of scales. Where that bound is none, or the noise of
        a large establishment may hide any count, the interval has no upper end. A negative value has the upper
        end of 0. Where a value and the others of its workplace cell exclude each other, the interval spans both.
        """
        return self._figures(answer, confidence, np.full(len(answer), np.inf))

    def most_jobs(self, answer: Cells, miss: float) -> Floats:
        """The most jobs that each workplace cell can have, by the sum of its published values."""
        totals = answer["value"][answer.blocks()].sum(axis=1)
        if self.cells == 1:
            _, high = self.published_interval(totals, 1 - 2 * miss)  # the noise is symmetric
        else:
            high = self._most(totals, miss)
        return np.where(np.isnan(high), np.inf, high)

    def figures_within(self, answer: Cells, confidence: float, largest: Floats) -> PublishedFigures:
        """The figures where no establishment of a workplace cell has more workers than `largest`."""
        return self._figures(answer, confidence + FOR_THE_LARGEST, largest)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:
        """One piece for the cells of a workplace cell that are in one sum: their noise was drawn together.

        Given the gamma variable that all divide by, they are independent Laplace variables of one scale.
        """
        pieces, cells = NoiseParts.of_blocks(self.noise_law(1), answer.blocks(), sums, error / self.error_in_scales)
        numbers, law = np.unique(cells, return_inverse=True)
        return replace(pieces, laws=tuple(map(self.noise_law, numbers.tolist())), law=law, scale=pieces.scale / cells)

    def reach(self, confidence: float) -> float:
        """The number of S that the noise of one cell stays below with this probability."""
        return float(self.calibration.scale) * self.noise.marginal.quantile(confidence)

    def sum_reach(self, miss: float) -> float:
        """The number of S that the noises of a workplace cell add up to more than with this probability."""
        k, tail = float(self.calibration.scale), float(self.calibration.tail)
        return k * sum_tail(self.cells).mixed_quantile(1 - miss, tail)

    def noise_law(self, cells: int) -> Law:
        """The noise in the sum of so many cells of a workplace cell, in units of S."""
        k, tail, together = float(self.calibration.scale), float(self.calibration.tail), sum_tail(cells)
        mean = 2 * k / (tail - 1) * float(together.integral().at(np.array(0.0)))
        return symmetric(lambda x: 2 * together.mixed(x / k, tail), mean, slope=float(self.alpha))

    def _most(self, totals: Integers, miss: float) -> Floats:
        """The most jobs of workplace cells, going by their published sums; NaN where there is no limit."""
        together = self.sum_reach(miss)
        # Half a job of rounding in every cell, on the side that makes the bound larger.
        slope = float(self.alpha) * together
        _, most = counts_within(totals + self.cells // 2, width=together * float(self.least), slope=slope)
        return most

    def _figures(self, answer: Cells, confidence: float, largest: Floats) -> PublishedFigures:
        """The figures at a confidence of the own noise, given how large an establishment of each cell can be."""
        check_confidence(confidence)
        order, alpha, floor = answer.blocks(), float(self.alpha), float(self.least)
        likely, largest = (found[order][:, 0] for found in (self.likely_largest(answer, largest), largest))
        totals = answer["value"][order].sum(axis=1)
        at_most = np.minimum(np.maximum(totals, 0), likely)
        error = laid_back(order, np.repeat(self.error_in_scales * np.maximum(alpha * at_most, floor), self.cells))
        if self.cells == 1:
            low, high = self.published_interval(answer["value"], confidence)
            reach = self.reach(confidence) * np.maximum(alpha * largest, floor)
            low, high = within_reach(answer["value"], low, high, laid_back(order, reach))
            return PublishedFigures(error=error, low=low, high=high)
        missed = 1 - confidence
        own = self.reach(1 - (1 - _FOR_THE_EMPLOYER) * missed)
        most = self._most(totals, _FOR_THE_EMPLOYER * missed)
        reach = (own * np.maximum(alpha * np.fmin(most, largest), floor) + 0.5)[:, None]
        values = answer["value"][order].astype(np.float64)
        known = np.isfinite(reach)  # fmin of no limit and none known
        reach = np.where(known, reach, np.nan)
        low = np.where(known, rounded_up(values - reach, values), 0.0)
        high = np.fmin(rounded_down(np.maximum(values, 0) + reach, values), most[:, None])
        low, high = np.fmin(low, high), np.maximum(low, high)
        return PublishedFigures(error=error, low=laid_back(order, low), high=laid_back(order, high))

    def _error(self, totals: Integers) -> Floats:
        """The error when the whole workplace cell is one establishment.

        Its mean is never below the true mean error: the published total is unbiased, the largest employer is at most
        the true total, and the figure is a convex function of the published one (Jensen's inequality).
        """
        scale = np.maximum(float(self.alpha) * np.maximum(totals, 0), float(self.least))
        error: Floats = self.error_in_scales * scale
        return error

    def _alone(self) -> None:
        if self.cells > 1:
            raise ValueError("the figures of one value need all values of its workplace cell: ask published_figures")

    def _blocks(self, cells: Cells) -> Blocks:
        return Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)

    def _noise(self, employer: Integers, randomness: Randomness) -> Integers:
        """The noise of every block, a row each, by its largest employer."""
        return self.noise.sample(self._multiples(employer), randomness)

    def _rounded_error(self, employer: Integers) -> Floats:
        """The mean absolute error of a cell of every block after rounding, by its largest employer."""
        return self.noise.marginal.expected_magnitude(self._multiples(employer))

    def _multiples(self, employer: Integers) -> Integers:
        """The scale S = max(αx, B) of every block in units of 1/q, where α = p/q: max(p·x, q·B), exactly."""
        p, q = self.alpha.numerator, self.alpha.denominator
        multiples: Integers = np.maximum(employer * p, q * self.floor)
        return multiples


# Smooth Box: one draw of heavy-tailed noise for all worker cells, scaled to the largest contribution in each; weak.


@dataclass(frozen=True, kw_only=True)
class SmoothBox:
    """Weak, pure (α, ε) privacy for all worker cells of a workplace cell at once, at the cost of ε once.

    The noise of cell c has scale k·max(αx_c, 1+α), x_c being the largest contribution of one establishment to that
    cell. `worker_cells` is the number of cells in a block, 0 when workers are not told apart: the guarantee is then
    strong. docs/methods/vector.md has the proofs.

    >>> SmoothBox(alpha=Fraction("0.05"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'weak'
    """

    name: ClassVar[str] = "smooth-box"
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest"})
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Box) was drawn for all worker cells of a "
        "workplace cell together, scaled in each, added to their counts and rounded to whole jobs"
    )

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        _ = self.calibration  # refuses parameters at which the mechanism does not exist

    @property
    def cells(self) -> int:
        """The number of cells in a block."""
        return max(self.worker_cells, 1)

    @cached_property
    def calibration(self) -> Calibration:
        """The tail γ − d of the noise and its scale k = 1/a in units of max(αx_c, 1+α), public and exact."""
        return calibrate_block(self.name, "box", alpha=self.alpha, epsilon=self.epsilon, cells=self.worker_cells or 1)

    @cached_property
    def noise(self) -> BoxPareto:
        """The noise whose scales are whole multiples of k/q, where α = p/q."""
        unit = self.calibration.scale / self.alpha.denominator
        return BoxPareto(unit=unit, tail=self.calibration.tail, cells=self.cells)

    @property
    def error_in_scales(self) -> float:
        """E|Z_c| in units of max(αx_c, 1+α), before rounding, which only lowers it: k(d+2)/(3(γ−d−1))."""
        return float(self.calibration.scale / (self.calibration.tail - 1)) * (self.cells + 2) / 3

    def guarantee(self) -> EmployerEmployee:
        """Weak on worker attributes, and ε once: an establishment is in one block, and a block is one output."""
        return EmployerEmployee(
            definition="weak" if self.worker_cells else "strong", alpha=self.alpha, epsilon=self.epsilon
        )

    def planned_error(self) -> PlannedError:
        """The error where no establishment has more than 1/α + 1 workers in the cell, and its share above that."""
        smallest = np.array([self.alpha.numerator + self.alpha.denominator])
        return PlannedError(
            floor=float(self.noise.expected_magnitude(smallest)[0]),
            floor_size=int(1 / self.alpha) + 1,
            share=float(self.alpha) * self.error_in_scales,
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true largest contribution: confidential."""
        blocks = self._blocks(cells)
        return laid_back(blocks.order, self.noise.expected_magnitude(self._multiples(blocks)))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        blocks = self._blocks(cells)
        return blocks.published(blocks["count"] + self.noise.sample(self._multiples(blocks), randomness))

    def published_error(self, values: Integers) -> Floats:
        """The error as if the whole published count were one establishment; on average not below the true one.

        The published count is unbiased, the largest contribution is at most the count, and the figure is a convex
        function of the published count (Jensen's inequality).
        """
        alpha = float(self.alpha)
        error: Floats = self.error_in_scales * np.maximum(alpha * np.maximum(values, 0), 1 + alpha)
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, whatever their largest contribution."""
        check_confidence(confidence)
        scales = self.reach(confidence)
        return counts_within(values, width=scales * float(1 + self.alpha), slope=scales * float(self.alpha))

    def most_jobs(self, answer: Cells, miss: float) -> Floats:
        """The most jobs that each workplace cell can have, worker cells each at their share of `miss`."""
        rows = answer["value"][answer.blocks()]
        _, high = self.published_interval(rows.ravel(), 1 - 2 * miss / self.cells)  # the noise is symmetric
        total: Floats = np.where(np.isnan(high), np.inf, high).reshape(rows.shape).sum(axis=1)
        return total

    def figures_within(self, answer: Cells, confidence: float, largest: Floats) -> PublishedFigures:
        """The figures where no establishment of a cell has more workers than `largest`."""
        values, alpha = answer["value"], float(self.alpha)
        confidence += FOR_THE_LARGEST
        low, high = self.published_interval(values, confidence)
        scales = self.reach(confidence)
        low, high = within_reach(values, low, high, scales * np.maximum(alpha * largest, 1 + alpha))
        at_most = np.minimum(np.maximum(values, 0), largest)
        error: Floats = self.error_in_scales * np.maximum(alpha * at_most, 1 + alpha)
        return PublishedFigures(error=error, low=low, high=high)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:
        """One piece for the cells of a workplace cell that are in one sum, as if all moved together.

        Their noise was drawn together, and mostly moves them to the same side; no sum can be further off on average.
        """
        law = symmetric(self.beyond, self.error_in_scales, float(self.alpha))
        return NoiseParts.of_blocks(law, answer.blocks(), sums, error / self.error_in_scales)[0]

    def reach(self, confidence: float) -> float:
        """The number of max(αx_c, 1+α) that the noise of one cell stays below with this probability."""
        return float(self.calibration.scale) * self.noise.quantile(confidence)

    def beyond(self, x: Floats) -> Floats:
        """The probability that its noise is more than so many of them."""
        return self.noise.survival(x / float(self.calibration.scale))

    def _blocks(self, cells: Cells) -> Blocks:
        return Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)

    def _multiples(self, blocks: Blocks) -> Integers:
        """The scale max(αx_c, 1+α) of every cell in units of 1/q, where α = p/q: max(p·x_c, p+q), exactly."""
        p, q = self.alpha.numerator, self.alpha.denominator
        multiples: Integers = np.maximum(blocks["largest"] * p, p + q)
        return multiples
