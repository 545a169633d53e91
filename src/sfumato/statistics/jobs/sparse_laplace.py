"""Counts in very many worker cells, such as places of residence: only those above a threshold are listed."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import ceil, prod
from typing import ClassVar

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.method import PlannedError, PublishedFigures, check_confidence, check_parameters
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import precise
from sfumato.noise.waiting import Excess, Gaps
from sfumato.privacy.guarantee import Definition, EmployerEmployee

# What the method sees: the workforce of every establishment, by the cell of each worker.


@dataclass(frozen=True, kw_only=True)
class Workforces:
    """Who contributes how many jobs to which cell: confidential, but for the blocks and their establishments.

    A block is a workplace cell with an establishment. Row i says that establishment `unit[i]`, with `size[i]` jobs in
    all, has `jobs[i]` in the worker cell `inside[i]` of the block `blocks[block[i]]`.
    """

    dimensions: tuple[Dimension, ...]
    blocks: Integers
    """Their places in the product of the public dimensions, ascending."""
    establishments: Integers | None
    """The number of every block, which is public; None where establishments without jobs are not known."""
    largest: Integers
    """The jobs, in all, of the largest establishment of every block."""
    block: Integers
    inside: Integers
    unit: Integers
    size: Integers
    jobs: Integers

    @property
    def width(self) -> int:
        """The number of worker cells in a block."""
        return prod(len(dimension) for dimension in self.dimensions if not dimension.public)

    @property
    def pair(self) -> Integers:
        """The cell of every row, counted through all blocks that are there."""
        return self.block * self.width + self.inside

    def cells(self, pairs: Integers, **columns: Integers) -> Cells:
        """Cells in the product of all dimensions, from their places among the blocks."""
        block, inside = np.divmod(pairs, self.width)
        position, of_block, of_inside = np.zeros_like(pairs), self.blocks[block], inside.copy()
        step = 1
        for dimension in reversed(self.dimensions):
            rest = of_block if dimension.public else of_inside
            position += rest % len(dimension) * step
            rest //= len(dimension)
            step *= len(dimension)
        order = np.argsort(position, kind="stable")
        kept = {name: column[order] for name, column in columns.items()}
        return Cells(dimensions=self.dimensions, positions=position[order], columns=kept)

    def counts(self) -> Cells:
        """The true counts of the cells that hold a job, with the largest establishment in each and around it."""
        pairs, count = summed(self.pair, self.jobs)
        largest = np.zeros_like(count)
        np.maximum.at(largest, np.searchsorted(pairs, self.pair), self.jobs)
        return self.cells(pairs, count=count, largest=largest, largest_employer=self.largest[pairs // self.width])


def summed(keys: Integers, numbers: Integers) -> tuple[Integers, Integers]:
    """The distinct keys, ascending, and the sum of the numbers of each, in whole numbers."""
    order = np.argsort(keys, kind="stable")
    keys, numbers = keys[order], numbers[order]
    begin = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[begin], np.add.reduceat(numbers, begin) if len(begin) else numbers


# Sparse Laplace.

FINE = 2**30
"""Into so many parts a job is divided where workforces are scaled down, so that whole numbers stay exact."""
MOST_JOBS = 2**31
LARGEST = 2**24
"""No establishment has more jobs than this."""
WIDEST = 2**24
"""The most worker cells in a block: rounding down to parts of a job then adds next to nothing to the noise."""
SCALED_DOWN = Fraction(1, 20)
"""The most likely it may be that a workforce of a block is scaled down."""
FINEST_ALPHA, MOST_EPSILON = Fraction(1, 1000), 100
MOST_FALSE = Fraction(1, 10)
"""The chance at which an empty cell is listed, at most, however few there are."""
FINEST_STEP = Fraction(1, 2**56)
"""The least epsilon for each part of a job: noise of less reaches beyond 64 bits."""
_DIGITS = 100
Figure = Callable[[int], float]
"""What follows from the cap of a workplace cell."""


@dataclass(frozen=True, kw_only=True)
class SparseLaplace:
    """Strong, pure (α, ε) privacy, or ε for persons alone, for workplace cells with very many worker cells.

    First a share of ε bounds the largest establishment of every workplace cell. The bound is public, and workforces
    beyond it are scaled down. The rest of ε is spent on discrete Laplace noise in every worker cell, whose scale is
    public too. What stays below a public threshold is not listed; of the empty cells of a workplace cell, `false_cells`
    are listed on average at most. docs/methods/origin-destination.md has the proofs.

    >>> SparseLaplace(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=500).guarantee().definition
    'strong'
    """

    name: ClassVar[str] = "sparse-laplace"
    unbiased: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest_employer"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    employers: bool = True
    """Whether sizes and shapes of establishments are hidden as well as persons."""
    false_cells: Fraction = Fraction(1, 20)
    """How many worker cells without any job are listed in a workplace cell, on average and at most."""
    size_share: Fraction = Fraction(1, 5)
    """The share of epsilon that bounding the largest establishments spends."""

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        most = WIDEST if self.employers else MOST_JOBS
        wrong = {
            f"alpha ≥ {FINEST_ALPHA}, with employers hidden": self.employers and self.alpha < FINEST_ALPHA,
            "1/10^6 ≤ false_cells ≤ 10": not Fraction(1, 10**6) <= self.false_cells <= 10,
            f"epsilon ≤ {MOST_EPSILON}": self.epsilon > MOST_EPSILON,
            "1/100 ≤ size_share ≤ 99/100": not Fraction(1, 100) <= self.size_share <= Fraction(99, 100),
            f"at most {most:,} worker cells in a workplace cell": self.worker_cells > most,
        }
        for expected, is_wrong in wrong.items():
            if is_wrong:
                raise MethodError(
                    self.name,
                    expected=expected,
                    found=f"alpha = {float(self.alpha):g}, epsilon = {float(self.epsilon):g}, "
                    f"false_cells = {float(self.false_cells):g}, size_share = {float(self.size_share):g}, "
                    f"{self.worker_cells:,} worker cells",
                    do="choose others: the defaults are false_cells = 0.05 and size_share = 0.2",
                )
        if self.epsilon < self.least_epsilon:
            raise MethodError(
                self.name,
                expected=f"epsilon ≥ {ceil(self.least_epsilon * 10_000) / 10_000:g}, at alpha = {float(self.alpha):g}: "
                "with less, noise for the largest establishments does not fit into 64 bits",
                found=f"epsilon = {float(self.epsilon):g}",
                do="raise epsilon, or choose a smaller alpha or size_share, or employers = false",
            )

    @property
    def description(self) -> str:
        """What is done to the counts, as a clause of the privacy statement."""
        first = (
            "for every workplace cell a random upper bound of its largest establishment was drawn first, which is "
            "public, and larger workforces were scaled down to it; then "
            if self.employers
            else ""
        )
        return (
            f"{first}random numbers from the discrete Laplace distribution (two-sided geometric) were added to the "
            "counts of all worker cells, empty ones too, and only values that reach a public threshold are listed: "
            f"where there is no job, a value is listed with a chance of {float(self.false_rate):.3g} at most"
        )

    def guarantee(self) -> EmployerEmployee:
        """Strong where employers are hidden: an establishment is in one block, which costs ε in two parts."""
        protects: Definition = "strong" if self.employers else "individuals"
        return EmployerEmployee(definition=protects, alpha=self.alpha, epsilon=self.epsilon)

    # The bound of the largest establishment.

    @property
    def width(self) -> int:
        """The number of worker cells in a block."""
        return max(self.worker_cells, 1)

    @property
    def false_rate(self) -> Fraction:
        """The chance at which an empty cell is listed, at most."""
        return min(self.false_cells / self.width, MOST_FALSE)

    @cached_property
    def ladder(self) -> Integers:
        """The sizes that the largest neighbour steps lead to from 0 on: one step leads to the next rung at most."""
        p, q = self.alpha.numerator, self.alpha.denominator
        rungs = [0]
        while rungs[-1] < LARGEST:
            rungs.append(rungs[-1] + max(rungs[-1] * p // q, 1))
        return np.array(rungs, dtype=np.int64)

    @cached_property
    def rung_noise(self) -> Geometric:
        """The noise in the rung of the largest establishment."""
        return Geometric(epsilon=self.epsilon * self.size_share)

    @cached_property
    def margin(self) -> int:
        """The rungs above the noisy one at which workforces are cut: least m with P(J < −m) at most a twentieth."""
        return max(self.rung_noise.quantile(1 - 2 * SCALED_DOWN), 0)

    def caps(self, largest: Integers, randomness: Randomness) -> Integers:
        """A public bound of the largest establishment of every block; 0 where employers are not hidden."""
        if not self.employers:
            return np.zeros_like(largest)
        rung = np.searchsorted(self.ladder, largest) + self.rung_noise.sample(len(largest), randomness)
        caps: Integers = self.ladder[np.clip(rung + self.margin, 1, len(self.ladder) - 1)]
        return caps

    # The noise in the worker cells, given that bound.

    @property
    def parts(self) -> int:
        """Into how many parts a job is divided."""
        return FINE if self.employers else 1

    def sensitivity(self, cap: int) -> int:
        """The most by which a neighbour step changes all cells of a block together, in parts of a job."""
        if not self.employers:
            return 1
        changed = max(Fraction(2 * cap, cap + 1), 2 * self.alpha * cap / (1 + self.alpha))
        return ceil(changed * FINE) + self.width

    def noise(self, cap: int) -> Geometric:
        """The noise in a block, in parts of a job."""
        return Geometric(epsilon=self._step(cap))

    def _step(self, cap: int) -> Fraction:
        return self.epsilon * self._noise_share / self.sensitivity(cap)

    @property
    def _noise_share(self) -> Fraction:
        """The share of epsilon that the noise in worker cells spends."""
        return 1 - self.size_share if self.employers else Fraction(1)

    @property
    def least_epsilon(self) -> Fraction:
        """Below it noise at the greatest cap is too far-reaching for 64 bits."""
        greatest = int(self.ladder[-1]) if self.employers else 0
        return FINEST_STEP * self.sensitivity(greatest) / self._noise_share

    def threshold(self, cap: int, rate: Fraction | None = None) -> int:
        """The least value that is listed: an empty cell reaches it with a chance of the false rate at most."""
        rate, noise = self.false_rate if rate is None else rate, self.noise(cap)
        with localcontext(precise(_DIGITS)):
            epsilon, chance = (Decimal(f.numerator) / Decimal(f.denominator) for f in (noise.epsilon, rate))
            reached = -(chance * (1 + (-epsilon).exp())).ln() / epsilon
            return max(ceil((reached + self.parts // 2) / self.parts), 1)

    def bound(self, cap: int) -> int:
        """The same in parts of a job: from here on a sum is rounded to the threshold or more."""
        return self.threshold(cap) * self.parts - self.parts // 2

    def _chance(self, cap: int) -> Fraction:
        """With which chance an empty cell is listed."""
        return Fraction(Gaps(noise=self.noise(cap), bound=self.bound(cap)).chance(_DIGITS))

    def spread(self, cap: int) -> float:
        """The mean absolute noise in a block, in jobs."""
        return self.noise(cap).expected_magnitude / self.parts

    # From true numbers to the answer.

    def protect(self, workforces: Workforces, randomness: Randomness) -> Cells:
        """The listed cells with the columns `value` and `cap`, the bound of their block.

        The first worker cell of every block is there always, as 0 where it is below the threshold: so the cap of
        every block is told.
        """
        self._check(workforces)
        caps = self.caps(workforces.largest, randomness)
        pairs, sums = summed(workforces.pair, self._kept(workforces, caps))
        of_pair = caps[pairs // self.width]
        found, values = [pairs[:0]], [sums[:0]]
        for cap in np.unique(caps).tolist():
            noise, bound = self.noise(cap), self.bound(cap)
            own = np.flatnonzero(of_pair == cap)
            drawn = sums[own] + noise.sample(len(own), randomness)
            empty = self._listed_by_chance(
                np.flatnonzero(caps == cap), pairs[own], Gaps(noise=noise, bound=bound), randomness
            )
            found += [pairs[own][drawn >= bound], empty]
            values += [drawn[drawn >= bound], bound + Excess(noise=noise).sample(len(empty), randomness)]
        first = np.arange(len(caps), dtype=np.int64) * self.width
        listed = np.concatenate(found)
        first = first[~np.isin(first, listed)]
        whole = (np.concatenate(values) + self.parts // 2) // self.parts
        listed, value = np.concatenate([listed, first]), np.concatenate([whole, np.zeros_like(first)])
        columns = {"value": value, "cap": caps[listed // self.width]}
        if workforces.establishments is not None:
            columns["establishments"] = workforces.establishments[listed // self.width]
        return workforces.cells(listed, **columns)

    def _kept(self, workforces: Workforces, caps: Integers) -> Integers:
        """The jobs of every row in parts of a job, those of workforces beyond the cap scaled down and rounded down."""
        jobs = workforces.jobs * self.parts
        if not self.employers:
            return jobs
        cap = caps[workforces.block]
        whole, rest = np.divmod(workforces.jobs * cap, workforces.size)
        return np.where(workforces.size > cap, whole * FINE + rest * FINE // workforces.size, jobs)

    def _listed_by_chance(self, blocks: Integers, occupied: Integers, gaps: Gaps, randomness: Randomness) -> Integers:
        """The cells without any job whose noise alone reaches the threshold; the others are never made."""
        block, inside = np.divmod(gaps.places(len(blocks) * self.width, randomness), self.width)
        pairs: Integers = blocks[block] * self.width + inside
        # What falls on a cell with jobs is none of it: that one has noise of its own.
        return pairs[~np.isin(pairs, occupied, kind="sort")]

    def _check(self, workforces: Workforces) -> None:
        """Refuse what does not fit into 64 bits, or together; the error names no count."""
        size, jobs = workforces.size, workforces.jobs
        fits = workforces.width == self.width and float(jobs.sum()) < MOST_JOBS
        fits = fits and bool(np.all((jobs >= 0) & (jobs <= size) & (size <= LARGEST)))
        fits = fits and bool(np.all(size <= workforces.largest[workforces.block]))
        if not fits:
            raise MethodError(
                self.name,
                expected="fewer than 2^31 jobs, at most 2^24 in an establishment, and "
                f"{self.width:,} worker cells in a workplace cell",
                found="other workforces",
                do="check the counts, or publish the table for parts of the country",
            )

    # Figures.

    def planned_error(self) -> PlannedError:
        """The noise at the cap of small establishments, and at that of large ones."""
        if not self.employers:
            return PlannedError(floor=self.spread(0), floor_size=0, share=0.0)
        small = int(1 / self.alpha)
        rung = int(np.searchsorted(self.ladder, small)) + self.margin
        far = len(self.ladder) - 1
        return PlannedError(
            floor=self.spread(int(self.ladder[min(rung, far)])),
            floor_size=small,
            share=self.spread(LARGEST) / LARGEST * float((1 + self.alpha) ** self.margin),
            of="the largest establishment of its workplace cell",
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of cells with the columns `count` and `cap`, listed or not: confidential.

        That a workforce may be scaled down is left out, and so is rounding to whole jobs.
        """
        lost, beyond, listed = self._thresholded(cells)
        error: Floats = cells["count"] * lost + np.where(
            listed, self._of_caps(cells["cap"], self.spread) - beyond, beyond
        )
        return error

    def expected_bias(self, cells: Cells) -> Floats:
        """What noise above the threshold adds, less what is lost below it: confidential, as the error is."""
        lost, beyond, _ = self._thresholded(cells)
        bias: Floats = beyond - cells["count"] * lost
        return bias

    def _thresholded(self, cells: Cells) -> tuple[Floats, Floats, Flags]:
        """How likely cells are not listed, and the mean of their noise J where they are, in jobs; J < a is not listed.

        P(J ≥ b) = r^b/(1 + r) and E[J; J ≥ b] = r^b(b + r/(1 − r))/(1 + r) for b ≥ 1. For a ≤ 0, J < a is as likely as
        J ≥ 1 − a, and as its mean is 0, noise from a on has the mean that noise from 1 − a on has.
        """
        step, bound = (
            self._of_caps(cells["cap"], one) for one in (lambda cap: float(self.noise(cap).epsilon), self.bound)
        )
        away = bound - cells["count"] * float(self.parts)
        below = away <= 0
        b = np.where(below, 1 - away, away)
        chance = np.exp(-step * b) / (1 + np.exp(-step))
        beyond = chance * (b + 1 / np.expm1(step)) / self.parts
        return np.where(below, chance, 1 - chance), beyond, below

    def published_error(self, values: Integers) -> Floats:
        """Nothing: the noise of a value is told by the cap beside it."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """What a value tells without the cap beside it: no more than that counts are not negative."""
        check_confidence(confidence)
        return np.zeros(len(values)), np.full(len(values), np.nan)

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures of listed cells, and of those that are 0 because they are below the threshold.

        The noise of a listed cell takes its interval off the count in at most half of what may be missed, given that
        it is listed; the other half is for workforces that were scaled down. The lower end is that of a threshold so
        much rarer to reach that it is 0 wherever a value may well be noise alone.
        """
        check_confidence(confidence)
        missed = 1 - Fraction(confidence)
        cut = SCALED_DOWN if self.employers else Fraction(0)
        told = missed > cut
        each = (missed - cut) / 2 if told else missed
        cap, value = answer["cap"], answer["value"].astype(np.float64)
        below = self._of_caps(cap, lambda one: self.threshold(one, self._chance(one) * each))
        beyond = self._of_caps(cap, lambda one: ceil(Fraction(self.noise(one).quantile(1 - each), self.parts)) + 1)
        threshold, listed = self._of_caps(cap, self.threshold), value > 0
        high = np.where(listed, value, threshold - 1) + beyond
        return PublishedFigures(
            error=np.where(listed, self._of_caps(cap, self.spread), threshold),
            low=np.where(listed, np.maximum(value - below + 1, 0.0), 0.0),
            high=high if told else np.full(len(value), np.nan),
        )

    def thresholds(self, caps: Integers) -> Integers:
        """The least value that is listed, of cells with these caps."""
        return self._of_caps(caps, self.threshold).astype(np.int64)

    def _of_caps(self, caps: Integers, figure: "Figure") -> Floats:
        """A figure of every cell that follows from its cap; there are few different ones."""
        different, place = np.unique(caps, return_inverse=True)
        figures = np.array([figure(cap) for cap in different.tolist()], dtype=np.float64)
        return figures[place] if len(caps) else np.zeros(0)
