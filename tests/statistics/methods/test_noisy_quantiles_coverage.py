"""Published errors of percentiles are true on synthetic economies of graduates, in small and high-paid cells too.

Their cells differ more than the public guess behind the bins supposes, so that a curve which draws them to the guess
and does not say so is found out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.adaptive_curve import AdaptiveCurve
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.curves import Percentiles
from sfumato.statistics.people.percentiles import CurveName, bins_of_guess, curve_named
from sfumato_lab.economy.graduates.generate import BINS, EARNINGS, MEDIAN, NAMES, SIGMA, generate_graduates
from tests.statistics.methods.graduates import AT, counted, percentiles

SEEDS = (1, 2, 3)
PEOPLE = 100_000
FEWEST = 30
REPEATED = 3
"""Each cell gets noise so many times."""
CLASSES = ((30, 60), (60, 120), (120, 250), (250, 10**9))


def guessed(median: int, curve: CurveName = "adaptive") -> PublicBins:
    """The bins of the release file that comes with graduates, made for some median."""
    return bins_of_guess(curve, median=median, sigma=Fraction(SIGMA), number=BINS, minimum=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Graduates:
    """The earnings in all cells of 30 people and more, and their percentiles: one row a cell."""

    earned: list[Floats]
    true: Floats

    @property
    def sizes(self) -> Integers:
        """People in each cell."""
        return np.array([len(cell) for cell in self.earned])

    def found(self, curve: CurveName, *, median: int, seed: int) -> Percentiles:
        """Their percentiles at ε = 1.5 a cell."""
        bins = guessed(median, curve)
        drawn = curve_named(curve, bins=bins, at=AT, epsilon=Fraction(3, 2))
        counts = np.concatenate([counted(cell[None, :], bins) for cell in self.earned])
        return drawn.percentiles(drawn.measured(counts, Seeded(seed)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """How far values are off, and whether 95 per cent intervals hold the truth: a row a cell, a column a percentile."""

    sizes: Integers
    true: Floats
    off: Floats
    held: NDArray[np.bool_]

    @property
    def highest(self) -> NDArray[np.bool_]:
        """The tenth of the cells with the highest upper quartile."""
        return self.true[:, -1] > np.quantile(self.true[:, -1], 0.9)


def cells_of(folder: Path) -> Iterator[Floats]:
    """The earnings of each cell of an economy."""
    table = pq.read_table(folder / EARNINGS)
    key = np.zeros(len(table), dtype=np.int64)
    for name in (*NAMES[False], "years"):
        _, code = np.unique(table[name].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
        key = key * (code.max() + 1) + code
    order = np.argsort(key, kind="stable")
    earned = table["earnings"].to_numpy().astype(np.float64)[order]
    yield from np.split(earned, np.flatnonzero(np.diff(key[order])) + 1)


@pytest.fixture(scope="module")
def economies(tmp_path_factory: pytest.TempPathFactory) -> list[Graduates]:
    made = []
    for seed in SEEDS:
        folder = tmp_path_factory.mktemp("graduates")
        generate_graduates(folder, people=PEOPLE, seed=seed, overwrite=True)
        earned = [cell for cell in cells_of(folder) if len(cell) >= FEWEST]
        made.append(Graduates(earned=earned, true=np.concatenate([percentiles(cell[None, :]) for cell in earned])))
    return made


def told(economies: list[Graduates], curve: CurveName = "adaptive", *, median: int = MEDIAN[False]) -> Told:
    """What is published about cells of the economies, beside the truth."""
    sizes, true, off, held = [], [], [], []
    for economy in economies:
        for seed in range(REPEATED):
            found = economy.found(curve, median=median, seed=seed)
            value = np.exp(found.logs)
            sizes.append(economy.sizes)
            true.append(economy.true)
            off.append(np.abs(value / economy.true - 1))
            held.append(np.abs(value - economy.true) <= 1.96 * value * found.errors)
    return Told(sizes=np.concatenate(sizes), true=np.vstack(true), off=np.vstack(off), held=np.vstack(held))


@pytest.fixture(scope="module")
def adaptive(economies: list[Graduates]) -> Told:
    return told(economies)


@pytest.mark.slow
def test_95_percent_intervals_hold_each_percentile_of_graduates_in_93_to_98_percent_of_cells(
    economies: list[Graduates], adaptive: Told
) -> None:
    for economy in np.split(adaptive.held, np.cumsum([REPEATED * len(made.earned) for made in economies])[:-1]):
        covered = economy.mean(axis=0)
        assert covered.min() > 0.93
        assert covered.max() < 0.98


@pytest.mark.parametrize(("least", "most"), CLASSES)
def test_so_they_do_in_small_and_in_large_cells(adaptive: Told, least: int, most: int) -> None:
    covered = adaptive.held[(adaptive.sizes >= least) & (adaptive.sizes < most)].mean(axis=0)
    assert covered.min() > 0.93
    assert covered.max() < 0.985


def test_in_the_tenth_of_cells_with_the_highest_earnings_they_hold_nine_in_ten_and_more(adaptive: Told) -> None:
    covered = adaptive.held[adaptive.highest].mean(axis=0)
    assert covered.min() > 0.9
    assert covered.max() < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("median", [30_000, 80_000])
def test_a_guess_that_is_far_off_makes_errors_larger_but_not_untrue(economies: list[Graduates], median: int) -> None:
    poor = told(economies, median=median)
    assert poor.held.mean(axis=0).min() > 0.93
    assert poor.held[poor.highest].mean(axis=0).min() > 0.88


def test_the_adaptive_curve_is_better_than_the_plain_sum_by_a_quarter_on_graduates(
    economies: list[Graduates], adaptive: Told
) -> None:
    plain = told(economies, "plain")
    assert adaptive.off.mean() < 0.75 * plain.off.mean()
    assert (adaptive.off.mean(axis=0) < 0.85 * plain.off.mean(axis=0)).all()


@pytest.mark.parametrize("epsilon", [Fraction(3, 2), Fraction(100)])
def test_cells_without_anyone_or_all_in_the_last_bin_have_an_error_within_the_bins(epsilon: Fraction) -> None:
    bins = guessed(MEDIAN[False])
    counts = np.zeros((20, len(bins)), dtype=np.int64)
    counts[10:, -1] = 40
    curve = AdaptiveCurve(bins=bins, at=AT, epsilon=epsilon)
    errors = curve.percentiles(curve.measured(counts, Seeded(1))).errors
    assert (errors > 0).all()
    assert (errors <= (bins.logs[-1] - bins.logs[0]) / 2).all()
