"""A wrong guess of median and sigma makes no percentile wrong with a confident error: three economies and two shapes.

Percentiles go the way of a release: from its file to a method, which counts people in its own bins.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.checking import check
from sfumato.method import STATUSES
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.statistics.people.percentiles import NoisyQuantiles
from sfumato_lab.economy.graduates.generate import generate_graduates
from sfumato_lab.economy.university.generate import generate_university
from tests.statistics.methods.graduates import cells_of_bins

AT = (10, 25, 50, 75, 90)
FEWEST, MOST_CELLS = 30, 500
RELEASE = """
[release]
title = "Earnings"
population = "people"
period = "2001"
budget = {{ epsilon = 1.5, definition = "individuals" }}

[data]
records = {{ path = "people.parquet", unit = "person" }}

[data.attributes]
cell = {{ codes = ["a"] }}

[data.measures]
earnings = {{ unit = "dollars a year", minimum = 0 }}

[[table]]
name = "percentiles"
quantiles = {{ of = "earnings", at = [10, 25, 50, 75, 90], bins = {bins} }}
by = ["cell"]
decimals = 0
protect = {{ method = "noisy-quantiles", epsilon = 1.5 }}
"""
WRONG = ((3.0, 1.0), (1 / 3, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 0.5), (0.5, 2.0))
"""Factors of the right median and of the right sigma."""
Earned = tuple[Floats, ...]


def method_of(folder: Path, bins: str) -> NoisyQuantiles:
    """The method of a release file with these bins."""
    (folder / "release.toml").write_text(RELEASE.format(bins=bins), encoding="utf-8")
    [table] = check(load(folder / "release.toml"), data=False).plan.tables
    assert isinstance(table.method, NoisyQuantiles)
    return table.method


def guess(cells: Earned, median: float = 1.0, sigma: float = 1.0) -> str:
    """What a release file says of bins, off by these factors."""
    logs = np.log(np.maximum(np.concatenate(cells), 1.0))
    low, middle, high = np.quantile(logs, (0.16, 0.5, 0.84))
    return f"{{ median = {round(median * np.exp(middle))}, sigma = {sigma * (high - low) / 2:.3f}, number = 32 }}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """What is published: one row a cell, one column a percentile."""

    value: Floats
    error: Floats
    status: Floats
    true: Floats

    @classmethod
    def of(cls, cells: Earned, method: NoisyQuantiles, seed: int = 1) -> "Told":
        inner = method.edges[1:-1]
        counts = [np.bincount(np.searchsorted(inner, cell, side="right"), minlength=len(inner) + 1) for cell in cells]
        found = method.protect(cells_of_bins(np.stack(counts)), Seeded(seed))
        shown = found["count"].reshape(-1, len(AT))[:, 0] >= FEWEST
        columns = (found[name].reshape(-1, len(AT))[shown].astype(np.float64) for name in ("value", "error", "status"))
        value, error, status = columns
        true = np.stack([np.quantile(cell, np.array(AT) / 100, method="hazen") for cell in cells])[shown]
        return cls(value=value, error=error, status=status, true=true)

    @property
    def with_error(self) -> NDArray[np.bool_]:
        return self.error > 0

    def covered(self, deviations: float) -> Floats:
        """How often so many standard errors to either side hold each percentile that has one."""
        held = np.abs(self.value - self.true) <= deviations * self.error + 0.5
        return np.mean(held, axis=0, where=self.with_error)


def some(cells: Iterator[Floats]) -> Earned:
    """Cells of 30 people and more, not too many."""
    large = [cell for cell in cells if len(cell) >= FEWEST]
    chosen = np.random.default_rng(1).permutation(len(large))[:MOST_CELLS]
    return tuple(large[place] for place in chosen)


def read(*paths: Path, by: tuple[str, ...]) -> Iterator[Floats]:
    """The earnings of every cell of some files."""
    for path in paths:
        table = pq.read_table(path)
        key = np.zeros(len(table), dtype=np.int64)
        for name in by:
            _, code = np.unique(table[name].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
            key = key * (code.max() + 1) + code
        order = np.argsort(key, kind="stable")
        earned = table["earnings"].to_numpy().astype(np.float64)[order]
        yield from np.split(earned, np.flatnonzero(np.diff(key[order])) + 1)


def graduates(folder: Path) -> Earned:
    generate_graduates(folder, people=40_000, seed=5)
    return some(read(folder / "earnings.parquet", by=("institution", "degree", "field", "cohort", "years")))


def veterans(folder: Path) -> Earned:
    generate_graduates(folder, people=60_000, seed=6, veterans=True)
    return some(read(folder / "earnings.parquet", by=("branch", "occupation", "years")))


def university(folder: Path) -> Earned:
    generate_university(folder, employees=40_000, seed=7)
    return some(read(*sorted(folder.glob("u*.parquet")), by=("title", "sector", "years")))


def drawn(shape: Callable[[np.random.Generator, int], Floats]) -> Callable[[Path], Earned]:
    """Cells of people of one shape, with means that differ."""

    def cells(_: Path) -> Earned:
        chance = np.random.default_rng(9)
        sizes = np.exp(chance.uniform(np.log(30), np.log(1_500), 300)).astype(int)
        logs = [np.log(45_000) + 0.35 * chance.standard_normal() + shape(chance, size) for size in sizes]
        return tuple(np.maximum(np.rint(np.exp(cell)), 1.0) for cell in logs)

    return cells


ECONOMIES: dict[str, Callable[[Path], Earned]] = {
    "graduates": graduates,
    "veterans": veterans,
    "university": university,
    "heavy tails": drawn(lambda chance, size: 0.42 * chance.standard_t(2.5, size)),
    "part-time": drawn(lambda chance, size: 0.6 * chance.standard_normal(size) - 1.5 * (chance.random(size) < 0.2)),
}


@pytest.fixture(scope="module")
def economy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Earned]:
    return cache(lambda name: ECONOMIES[name](tmp_path_factory.mktemp("economy") / "data"))


QUICK = [("veterans", 1.0, 1.0), ("veterans", 3.0, 1.0), ("veterans", 2.0, 0.5), ("part-time", 1.0, 0.5)]
SLOW = [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in ((name, *factors) for name in ECONOMIES for factors in ((1.0, 1.0), *WRONG))
    if case not in QUICK
]


@pytest.mark.parametrize(("name", "median", "sigma"), [*QUICK, *SLOW])
def test_90_percent_intervals_of_p10_to_p90_hold_in_88_percent_of_cells_whatever_the_guess(
    tmp_path: Path, economy: Callable[[str], Earned], name: str, median: float, sigma: float
) -> None:
    cells = economy(name)
    told = Told.of(cells, method_of(tmp_path, guess(cells, median, sigma)))
    assert told.with_error.mean(axis=0).min() > 0.9, "values, and not only bounds"
    assert told.covered(1.645).min() >= 0.88
    assert told.covered(1.96).mean() >= 0.93


@pytest.mark.parametrize(
    "name", ["veterans", *(pytest.param(name, marks=pytest.mark.slow) for name in ("graduates", "university"))]
)
def test_a_wrong_guess_hardly_makes_values_worse(tmp_path: Path, economy: Callable[[str], Earned], name: str) -> None:
    cells = economy(name)

    def off(*factors: float) -> float:
        told = Told.of(cells, method_of(tmp_path, guess(cells, *factors)))
        return float(np.mean(np.abs(told.value / told.true - 1), where=told.with_error))

    right = off()
    assert all(off(*factors) < 1.35 * right for factors in WRONG)


@pytest.mark.parametrize("name", ["veterans", "heavy tails", pytest.param("graduates", marks=pytest.mark.slow)])
def test_bins_that_end_too_early_give_bounds_that_are_true_and_no_errors(
    tmp_path: Path, economy: Callable[[str], Earned], name: str
) -> None:
    cells = economy(name)
    told = Told.of(cells, method_of(tmp_path, "[0, 20000, 25000, 30000, 35000, 40000, 45000, 50000, 60000, 10000000]"))
    below, above = ("below", "above")
    words = np.array(STATUSES)[told.status.astype(int)]
    assert np.array_equal(np.isin(words, (below, above)), ~told.with_error)
    assert (words == below).mean() > 0.05
    assert (words == above).mean() > 0.05
    assert np.mean(told.true < told.value, where=words == below) > 0.95
    assert np.mean(told.true >= told.value, where=words == above) > 0.95
    often = told.with_error.sum(axis=0) >= 50  # what is near the ends and has an error
    assert told.covered(1.645)[often].min() >= 0.88
