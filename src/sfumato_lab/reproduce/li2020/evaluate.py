"""Perturb and calibrate the cube many times, all 1,023 tables at once, beside what was published."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Margin
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Repeatable
from sfumato.statistics.cube.calibrate import gaps, least_squares, one_cycle
from sfumato.statistics.cube.controls import Control
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.levels import remaining_share
from sfumato.statistics.cube.tabulate import Chunk, tabulated

# What was published about the bottom-up hypercube: figures to print beside ours, never results.
#
# Source: J. Li, T. Krenzke, "A Proposed 'Bottom-Up' Differential Privacy Approach for Disclosure Prevention in Data
# Query Tool", Westat, 2020.

TABLE_2_EPSILON, TABLE_2_CAP = Fraction(2), 7
TABLE_2 = {
    0: "0.76159",
    1: "0.10307",
    2: "0.013949",
    3: "0.0018878",
    4: "0.0002555",
    5: "0.0000346",
    6: "0.0000047",
    7: "0.0000006",
}
"""The probability of a perturbation by +j, and by −j, as it is printed."""
DELTA = "0.0000006"

EPSILON, CAP = Fraction(7), 1
"""The noise of the evaluation in section 4."""
CHANCE_OF_NOISE = 0.235
"""Of ±1, as section 4 says."""
VARIANCE_OF_NOISE = 0.00182
RECORDS, CELLS, RUNS, CYCLES, CONVERGED = 182, 17_280, 1_000, 10, 224
CARDINALITIES = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)
"""Two to five categories each and 17,280 cells: this is the only way."""

TABLE_4 = {
    1: (6.592, 0.000, 1.000),
    2: (3.255, 1.684, 0.483),
    3: (1.340, 1.082, 0.193),
    4: (0.522, 0.494, 0.054),
    5: (0.200, 0.200, 0.0),
    6: (0.077, 0.078, 0.0),
    7: (0.030, 0.030, 0.0),
    8: (0.012, 0.012, 0.0),
    9: (0.005, 0.004, 0.0),
    10: (0.002, 0.002, 0.0),
}
"""By the number of dimensions: variance of the noise without and with calibration, and the reduction."""


# The records of the evaluation: as many as published, over as many cells. The real ones are not at hand.

_WORDS = 2.0**64
_WEIGHT = 1_000_000


def survey(seed: int, *, records: int = RECORDS) -> Cube:
    """A cube of so many records; the second category of a variable is half as frequent as the first, and so on."""
    positions = np.zeros(records, dtype=np.int64)
    for place, categories in enumerate(CARDINALITIES):
        positions = positions * categories + _codes(categories, records, Repeatable(seed, "li2020", "variable", place))
    dimensions = tuple(
        Dimension(name=f"variable {place + 1}", codes=tuple(str(code + 1) for code in range(categories)))
        for place, categories in enumerate(CARDINALITIES)
    )
    return tabulated(dimensions, [Chunk(positions=positions, weights=np.full(records, _WEIGHT))])


def _codes(categories: int, records: int, chance: Repeatable) -> NDArray[np.int64]:
    shares = 1 / np.arange(1, categories + 1)
    upto = np.cumsum(shares / shares.sum())
    uniform = chance.words(records) / _WORDS
    return np.minimum(np.searchsorted(upto, uniform, side="right"), categories - 1).astype(np.int64)


# What is expected of two-sided noise in the tables of one dimension, in each of the ways to average over them.
#
# Calibration to all one-way tables leaves 1 − (1 + Σ(k − 1))/Πk of the variance in a table with cardinalities k. Tables
# of one dimension differ in that, so how much it takes away "on average" depends on what is averaged.


@dataclass(frozen=True, kw_only=True)
class ExpectedVariances:
    """Expected variances, without and with calibration, and what it takes away."""

    before: float
    after: float
    by_table: float
    """The reduction in a table, the mean over tables; it is that of the sum of squares over all their cells, too."""
    by_cell: float
    """The same where a table counts as often as it has cells."""
    before_within_run: float
    after_within_run: float

    @property
    def reduction(self) -> float:
        """That of the mean variance: tables with few cells, whose sums are the noisiest, count most."""
        return 1 - self.after / self.before

    @property
    def within_run(self) -> float:
        """That of the variance of all cells in a run about their mean, which takes the common error away before."""
        return 1 - self.after_within_run / self.before_within_run


def expected(size: int, *, variance: float) -> ExpectedVariances:
    """For tables of so many dimensions, when a cell of the cube has this variance."""
    tables = list(combinations(range(len(CARDINALITIES)), size))
    one_way = [(axis,) for axis in range(len(CARDINALITIES))]
    cells = np.array([prod(CARDINALITIES[axis] for axis in table) for table in tables], dtype=np.float64)
    left = np.array([remaining_share(CARDINALITIES, table, one_way) for table in tables])
    total = variance * prod(CARDINALITIES)
    share = len(tables) / cells.sum()
    return ExpectedVariances(
        before=total * float(np.mean(1 / cells)),
        after=total * float(np.mean(left / cells)),
        by_table=float(np.mean(1 - left)),
        by_cell=float(np.average(1 - left, weights=cells)),
        # All tables have the same total, and with it the same error in the mean; calibration makes that 0.
        before_within_run=total * float(share - share * share),
        after_within_run=total * float(left.sum() / cells.sum()),
    )


def at_mean_cardinality(size: int) -> float:
    """What the formula takes away from a table all of whose dimensions have the mean number of categories."""
    mean = sum(CARDINALITIES) / len(CARDINALITIES)
    return (1 + size * (mean - 1)) / mean**size


# All 1,023 tables of a cube at once: for every run the noise in every cell of every table, and its moments.


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The cells of all tables of a cube, laid out as the cube with one more code, the total, in every dimension."""

    shape: tuple[int, ...]

    def of(self, noise: Floats) -> Floats:
        """The noise in all cells of all tables, one row for every run, from that in the cells of the cube."""
        table = noise
        for axis in range(1, len(self.shape) + 1):
            table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
        return table.reshape(len(noise), self.cells)

    @property
    def cells(self) -> int:
        """The number of cells of all tables."""
        return int(np.prod([length + 1 for length in self.shape]))

    @cached_property
    def sizes(self) -> Integers:
        """The number of dimensions of the table that each cell belongs to."""
        return self._over_axes([np.append(np.ones(length), 0.0) for length in self.shape], np.add).astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """How much a cell counts where every table of a size counts the same: one divided by all its cells."""
        inside = self._over_axes([np.append(np.full(length, 1 / length), 1.0) for length in self.shape], np.multiply)
        tables = np.array([comb(len(self.shape), size) for size in range(len(self.shape) + 1)])
        weights: Floats = inside / tables[self.sizes]
        return weights

    @cached_property
    def pooled(self) -> Floats:
        """One column for every size: how much a cell counts where every cell of a size counts the same."""
        columns = np.zeros((self.cells, len(self.shape) + 1))
        columns[np.arange(self.cells), self.sizes] = 1.0
        shares: Floats = columns / columns.sum(axis=0)
        return shares

    @cached_property
    def table(self) -> Integers:
        """The table that each cell belongs to: a number with one bit for every dimension it has."""
        bits = (np.append(np.full(length, 1 << axis), 0) for axis, length in enumerate(self.shape))
        return self._over_axes([bit.astype(np.float64) for bit in bits], np.add).astype(np.int64)

    @cached_property
    def table_cells(self) -> Floats:
        """How many cells each table has."""
        return np.bincount(self.table).astype(np.float64)

    def by_table(self, cells: Floats) -> Floats:
        """The mean over the cells of each table."""
        return np.bincount(self.table, weights=cells) / self.table_cells

    def by_size(self, cells: Floats) -> Floats:
        """The mean over all cells of a table and all tables of a size, for every size from 0 on."""
        sizes = len(self.shape) + 1
        return np.bincount(self.sizes, weights=cells * self.weights, minlength=sizes).astype(np.float64, copy=False)

    def _over_axes(self, factors: Sequence[Floats], combine: np.ufunc) -> Floats:
        whole = factors[0]
        for factor in factors[1:]:
            whole = combine.outer(whole, factor)
        flat: Floats = whole.ravel()
        return flat


class Moments:
    """Sums over runs from which variances follow; runs may come in any number of parts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._first, self._second = np.zeros(tables.cells), np.zeros(tables.cells)
        self._within = np.zeros(len(tables.shape) + 1)
        self.runs = 0

    def add(self, noise: Floats) -> None:
        """Take in some runs: the noise in all cells of all tables, one row for every run."""
        self.runs += len(noise)
        self._first += noise.sum(axis=0)
        squared = noise * noise
        self._second += squared.sum(axis=0)
        # The variance of all cells of a size in one run about their mean, as the paper seems to have it.
        mean = noise @ self._tables.pooled
        self._within += (squared @ self._tables.pooled - mean * mean).sum(axis=0)

    def variance(self) -> Floats | None:
        """By size: the variance of the noise in a cell over the runs, the mean over cells and then over tables."""
        over_runs = self._over_runs()
        return None if over_runs is None else self._tables.by_size(over_runs)

    def variance_by_table(self) -> Floats | None:
        """By table: the variance of the noise in a cell over the runs, the mean over cells."""
        over_runs = self._over_runs()
        return None if over_runs is None else self._tables.by_table(over_runs)

    def _over_runs(self) -> Floats | None:
        if self.runs < 2:
            return None
        about = (self._second - self._first * self._first / self.runs) / (self.runs - 1)
        return np.maximum(about, 0.0)

    def mean_square(self) -> Floats | None:
        """By size: the mean square of the noise, bias included."""
        return self._tables.by_size(self._second / self.runs) if self.runs else None

    def within_run(self) -> Floats | None:
        """By size: the variance over all cells of that size in one run about their mean, the mean over runs."""
        return self._within / self.runs if self.runs else None


Variant = Literal["two-sided", "no-negative"]
VARIANTS: tuple[Variant, ...] = ("two-sided", "no-negative")
Progress = Callable[[str, int, int], None]

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
"""In records. The paper does not say which difference from a control it took for none."""
TOLERANCE = TOLERANCES[-1]
"""The one that counts here: of all powers of ten it comes nearest to the published number of runs."""
BOUNDED_RUNS = 20
"""The bounded problem takes longer, and its bias shows in few runs."""
_BATCH = 25


@dataclass(kw_only=True)
class Simulated:
    """What was found with one variant of the noise."""

    variant: Variant
    tables: Tables
    plain: Moments = field(init=False)
    least_squares: Moments = field(init=False)
    plain_where_raked: Moments = field(init=False)
    """Without calibration, in those runs in which raking converged."""
    raked: Moments = field(init=False)
    """In those runs."""
    raked_in_all: Moments = field(init=False)
    """In all runs: where raking did not converge, the cycle that came nearest to the controls."""
    bounded: Moments = field(init=False)
    plain_where_bounded: Moments = field(init=False)
    solved: int = 0
    """Runs in which least squares met every control exactly."""
    within: dict[float, int] = field(default_factory=lambda: dict.fromkeys(TOLERANCES, 0))
    """Runs in which raking came within each tolerance in ten cycles."""

    def __post_init__(self) -> None:
        for name in (
            "plain",
            "least_squares",
            "plain_where_raked",
            "raked",
            "raked_in_all",
            "bounded",
            "plain_where_bounded",
        ):
            setattr(self, name, Moments(self.tables))


def simulate(cube: Cube, *, runs: int, seed: int, progress: Progress) -> dict[Variant, Simulated]:
    """Every run draws noise for all cells; both variants and both calibrations see the same noise."""
    tables = Tables(shape=cube.shape)
    found = {variant: Simulated(variant=variant, tables=tables) for variant in VARIANTS}
    true = cube["count"]
    for batch, first in enumerate(range(0, runs, _BATCH)):
        progress("runs", first, runs)
        number = min(_BATCH, runs - first)
        drawn = TruncatedGeometric(epsilon=EPSILON, cap=CAP).sample(
            number * true.size, Repeatable(seed, "li2020", "noise", batch)
        )
        perturbed = true + drawn.reshape(number, *true.shape)
        for variant, part in found.items():
            values = perturbed if variant == "two-sided" else np.maximum(perturbed, 0)
            _one_batch(part, cube, values, bounded=max(0, min(number, BOUNDED_RUNS - first)))
    return found


def _one_batch(found: Simulated, cube: Cube, perturbed: Integers, *, bounded: int) -> None:
    true = cube["count"].astype(np.float64)
    plain = found.tables.of(perturbed - true)
    found.plain.add(plain)

    dimensions = (_runs(len(perturbed)), *cube.dimensions)
    controls = list(_controls(cube, len(perturbed)))
    calibrated = least_squares(dimensions, perturbed * MILLION, controls)
    found.least_squares.add(found.tables.of(calibrated.values / MILLION - true))
    found.solved += len(perturbed) if calibrated.converged and calibrated.largest_gap == 0 else 0

    raked, off = _raked(perturbed.astype(np.float64), controls)
    for tolerance in TOLERANCES:
        found.within[tolerance] += int((off <= tolerance).sum())
    converged = off <= TOLERANCE
    found.plain_where_raked.add(plain[converged])
    noise = found.tables.of(raked - true)
    found.raked.add(noise[converged])
    found.raked_in_all.add(noise)

    if bounded:
        dimensions = (_runs(bounded), *cube.dimensions)
        values = perturbed[:bounded] * MILLION
        kept = least_squares(dimensions, values, list(_controls(cube, bounded)), nonnegative=True)
        found.bounded.add(found.tables.of(kept.values / MILLION - true))
        found.plain_where_bounded.add(plain[:bounded])


def _raked(perturbed: Floats, controls: list[Control]) -> tuple[Floats, Floats]:
    """Raked cubes, and how far each is from its controls at most; each is raked until it fits, or for ten cycles.

    One that does not fit in the end is taken as it was when it came nearest.
    """
    raked, nearest = perturbed.copy(), perturbed.copy()
    off = _farthest(perturbed, _margins(controls, np.arange(len(perturbed))))
    for _ in range(CYCLES):
        going = np.flatnonzero(off > TOLERANCE)
        if not len(going):
            break
        margins = _margins(controls, going)
        with np.errstate(over="ignore", invalid="ignore"):  # where it does not converge it may run away
            raked[going] = one_cycle(raked[going], margins)
            largest = _farthest(raked[going], margins)
        nearer = largest < off[going]
        nearest[going[nearer]], off[going[nearer]] = raked[going[nearer]], largest[nearer]
    return nearest, off


def _margins(controls: list[Control], runs: NDArray[np.intp]) -> list[Margin]:
    return [
        Margin(axes=(0, place + 1), values=control.values[runs] // MILLION) for place, control in enumerate(controls)
    ]


def _farthest(tables: Floats, margins: list[Margin]) -> Floats:
    return np.asarray(np.max([part.max(axis=1) for part in gaps(tables, margins)], axis=0))


def _runs(number: int) -> Dimension:
    return Dimension(name="run", codes=tuple(map(str, range(number))))


def _controls(cube: Cube, number: int) -> Iterator[Control]:
    """All one-way tables as they are, the same in every run."""
    for name in cube.names:
        once: NDArray[np.int64] = cube.project(name)["count"] * MILLION
        yield Control(name=name, by=("run", name), values=np.tile(once, (number, 1)))
