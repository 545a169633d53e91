"""Errors by the size of the group: MOSE beside formal methods, and percentiles by every curve."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from sfumato.arrays import Floats, Integers
from sfumato.checking import check
from sfumato.errors import DataError
from sfumato.method import HIDDEN
from sfumato.noise.randomness import Repeatable
from sfumato.release import load
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import NoisyRegression
from sfumato.statistics.people.percentiles import CURVES, CurveName, curve_named, recommended
from sfumato.statistics.people.sensitivity import GlobalSensitivity, LocalSensitivity
from sfumato.statistics.people.theil_sen import TheilSen
from sfumato_lab.economy.files import RELEASE
from sfumato_lab.economy.graduates.generate import EARNINGS
from sfumato_lab.reproduce.schmutte2020.atlas import (
    EPSILON,
    EPSILON_OF_A_CELL,
    GLOBAL,
    LOCAL,
    RANK,
    SIZES,
    Atlas,
    inside,
    label,
)

# MOSE beside two methods with a formal guarantee, by the size of the group, at the same nominal ε.

CANDIDATES = (Mose.name, NoisyRegression.name, TheilSen.name)
"""One of these is recommended; the others are what they are compared with."""
METHODS = (*CANDIDATES, GLOBAL, LOCAL)
LEAST_SHOWN = 10
"""Theil-Sen withholds groups below this noisy number of people, as noisy regression does."""
MOST_WITHHELD = 0.5
"""A method that withholds more is not recommended."""


@dataclass(frozen=True, kw_only=True)
class ErrorOfMethod:
    """What one method does to groups of one class of sizes."""

    method: str
    size_class: str
    error: float | None
    """The mean absolute error in ranks of what is published; None where nothing is."""
    withheld: float


@dataclass(frozen=True, kw_only=True)
class MethodsBySize:
    """All methods and sizes, means over several draws of their noise."""

    draws: int
    lines: tuple[ErrorOfMethod, ...]
    guesses: Mapping[str, float]
    """By class of sizes, how far off a reader is who takes the mean of all groups for every one."""

    @property
    def size_classes(self) -> list[str]:
        """In the order of their sizes."""
        return list(dict.fromkeys(line.size_class for line in self.lines))

    def of(self, method: str, size_class: str) -> ErrorOfMethod:
        """One of them."""
        return next(line for line in self.lines if (line.method, line.size_class) == (method, size_class))

    def recommended(self, size_class: str) -> str:
        """Of those that publish half of the groups the one with the least error, if it beats the mean of all groups."""
        lines = [self.of(method, size_class) for method in CANDIDATES]
        usable = {x.method: x.error for x in lines if x.error is not None and x.withheld <= MOST_WITHHELD}
        best = min(usable, key=lambda method: usable[method], default="")
        return best if best and usable[best] < self.guesses[size_class] else ""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure, with nothing published beside it."""
        for line in self.lines:
            about = {"method": line.method, "size_class": line.size_class, "epsilon": float(EPSILON)}
            yield {
                "quantity": "mean_error",
                **about,
                "published": None,
                "ours": line.error,
                "withheld": line.withheld,
                "keys": self.draws,
            }
        for size_class in self.size_classes:
            yield {
                "quantity": "error_of_the_overall_mean",
                "size_class": size_class,
                "published": None,
                "ours": self.guesses[size_class],
            }
            about = {"size_class": size_class, "epsilon": float(EPSILON)}
            yield {
                "quantity": "recommended_method",
                **about,
                "published": None,
                "ours": self.recommended(size_class) or None,
            }


def compare_methods(atlas: Atlas, *, draws: int, seed: int) -> MethodsBySize:
    """Predict at the 25th and the 75th percentile, everything that is published of a group within ε = 8."""
    own = ("alpha", "at", "low_x", "high_x", "low_y", "high_y", "decimals")
    shared: dict[str, Any] = {name: getattr(atlas.method, name) for name in own} | {"epsilon": EPSILON}
    formal = NoisyRegression(**shared)
    true = formal.true_value(atlas.cells)
    protectors: dict[str, Any] = {
        Mose.name: replace(atlas.method, epsilon=EPSILON, count_epsilon=EPSILON / (len(atlas.method.at) + 1)),
        NoisyRegression.name: formal,
        TheilSen.name: TheilSen(**shared, minimum=LEAST_SHOWN),
        GLOBAL: GlobalSensitivity(**shared, minimum=LEAST_SHOWN),
        LOCAL: LocalSensitivity(**shared, accept_leak=True),
    }
    people = np.repeat(atlas.people, len(formal.at))
    usual = float(np.nanmean(true))
    guesses = {
        label(low, high): float(np.nanmean(np.abs(true - usual)[inside(people, low, high)])) / RANK
        for low, high in SIZES
        if inside(people, low, high).any()
    }
    lines = []
    for name, method in protectors.items():
        held: Any = atlas.samples if name == TheilSen.name else atlas.cells
        off, shown = np.zeros(len(true)), np.zeros(len(true))
        for draw in range(draws):
            table = method.protect(held, Repeatable(seed, "schmutte2020", "sizes", name, draw))
            seen = ~np.isin(table["status"], HIDDEN) & ~np.isnan(true)
            off += np.where(seen, np.abs(table["value"] - true), 0.0)
            shown += seen
        for low, high in SIZES:
            group = inside(people, low, high)
            values = float(shown[group].sum())
            if group.any():
                lines.append(
                    ErrorOfMethod(
                        method=name,
                        size_class=label(low, high),
                        error=float(off[group].sum()) / values / RANK if values else None,
                        withheld=1 - values / (draws * int(group.sum())),
                    )
                )
    return MethodsBySize(draws=draws, lines=tuple(lines), guesses=guesses)


# Percentiles of graduates' earnings by every curve at ε = 1.5 a cell, by the size of the cell.

PEOPLE = ((30, 49), (50, 99), (100, 199), (200, 499), (500, 999), (1_000, None))
BINS = (20, 60)
PLAIN, IMPROVED = ("plain", 20), ("adaptive", 60)
"""The usual curve with its best number of bins, and ours."""
LARGE = 100
"""Medians of so many graduates and more are to be near."""
_MEDIAN = Fraction(50)
_CHUNK = 4_096


@dataclass(frozen=True, kw_only=True, eq=False)
class Earned:
    """Earnings of people in cells of 30 and more, one cell after the other, each in ascending order."""

    earnings: Floats
    starts: Integers
    """Where every cell begins, and after the last one where it ends."""
    at: tuple[Fraction, ...]
    guess: Mapping[str, Any]
    """What bins are made of: a public guess."""

    @property
    def people(self) -> Integers:
        """Of every cell."""
        return np.diff(self.starts)

    def true(self) -> Floats:
        """The percentiles, halfway between the ranks on either side: one row a cell."""
        places = self.people[:, None] * np.array([float(place) / 100 for place in self.at]) - 0.5
        low = np.clip(np.floor(places), 0, self.people[:, None] - 1).astype(np.int64)
        high = np.minimum(low + 1, self.people[:, None] - 1)
        below, above = (self.earnings[self.starts[:-1, None] + rank] for rank in (low, high))
        share = np.clip(places - low, 0, 1)
        between: Floats = below + share * (above - below)
        return between

    def bins(self, number: int) -> PublicBins:
        """So many public bins."""
        return PublicBins.equal_mass(**self.guess, number=number)

    def counted(self, bins: PublicBins) -> Integers:
        """How many people of every cell are in each bin."""
        cell = np.repeat(np.arange(len(self.people)), self.people)
        place = np.searchsorted(bins.edges[1:-1], self.earnings, side="right") + len(bins) * cell
        return np.bincount(place, minlength=len(self.people) * len(bins)).reshape(-1, len(bins))


def read_earned(folder: Path) -> Earned:
    """The earnings of graduates in a folder that `sfumato economy graduates` wrote."""
    table: Any = check(load(folder / RELEASE), data=False).plan.tables[0]
    quantiles, method = table.table.quantiles, table.method
    if quantiles is None or not (folder / EARNINGS).exists():
        raise DataError(
            f"data {folder}",
            expected="graduates as `sfumato economy graduates` writes them",
            found="another kind of data",
            do="name another folder with --data, or leave --data out",
        )
    names = table.table.by
    read = pq.read_table(folder / EARNINGS, columns=[*names, quantiles.of])
    cell = np.zeros(read.num_rows, dtype=np.int64)
    for name in names:
        column = read[name].cast("string").combine_chunks().dictionary_encode()
        cell = cell * len(column.dictionary) + column.indices.to_numpy().astype(np.int64)
    earnings = read[quantiles.of].to_numpy().astype(np.float64)
    order = np.lexsort((earnings, cell))
    _, number, people = np.unique(cell[order], return_inverse=True, return_counts=True)
    kept = people[number] >= PEOPLE[0][0]
    sizes = people[people >= PEOPLE[0][0]]
    bins = quantiles.bins
    return Earned(
        earnings=earnings[order][kept],
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        at=method.at,
        guess={"median": bins.median, "sigma": bins.sigma, "minimum": method.edges[0], "maximum": method.edges[-1]},
    )


@dataclass(frozen=True, kw_only=True)
class CurveError:
    """One curve in cells of one class of sizes: mean absolute relative errors of the percentiles."""

    curve: CurveName
    bins: int
    size_class: str
    cells: int
    errors: tuple[float, ...]

    @property
    def error(self) -> float:
        """The mean over the percentiles."""
        return sum(self.errors) / len(self.errors)


@dataclass(frozen=True, kw_only=True)
class PercentilesBySize:
    """All curves, bins and sizes."""

    cells: int
    draws: int
    at: tuple[Fraction, ...]
    lines: tuple[CurveError, ...]
    planned: Mapping[str, CurveName]
    """By class of sizes the curve that is recommended before any data are read, with 60 bins."""
    median_error: float
    """Of medians of a hundred graduates and more, with our curve."""
    median_within: float
    """The share of them within five per cent."""

    @property
    def size_classes(self) -> list[str]:
        """In the order of their sizes."""
        return list(dict.fromkeys(line.size_class for line in self.lines))

    def of(self, curve: str, bins: int, size_class: str) -> CurveError:
        """One of them."""
        asked = (curve, bins, size_class)
        return next(line for line in self.lines if (line.curve, line.bins, line.size_class) == asked)

    def best(self, size_class: str) -> CurveError:
        """The curve with the least error in cells of a class."""
        return min((line for line in self.lines if line.size_class == size_class), key=lambda line: line.error)

    def improvement(self, size_class: str, *, any_bins: bool = False) -> float:
        """By how much our curve has less error than the plain cumulative sum, as a share.

        With `any_bins` the plain sum may have the better of both numbers of bins, which nobody knows beforehand.
        """
        plain = [self.of(PLAIN[0], number, size_class).error for number in (BINS if any_bins else PLAIN[1:])]
        return 1 - self.of(*IMPROVED, size_class).error / min(plain)

    def mean_improvement(self, *, any_bins: bool = False) -> float:
        """The mean over classes of sizes."""
        return float(np.mean([self.improvement(size, any_bins=any_bins) for size in self.size_classes]))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure, with nothing published beside it."""
        shared: dict[str, Any] = {"epsilon": float(EPSILON_OF_A_CELL), "published": None}
        for line in self.lines:
            about = {"curve": line.curve, "bins": line.bins, "size_class": line.size_class, "cells": line.cells}
            for place, error in zip(("all", *(float(p) for p in self.at)), (line.error, *line.errors), strict=True):
                yield {"quantity": "percentile_error", **about, "percentile": place, **shared, "ours": error}
        for size_class in self.size_classes:
            best = self.best(size_class)
            yield {
                "quantity": "recommended_curve",
                "size_class": size_class,
                **shared,
                "ours": best.curve,
                "bins": best.bins,
                "planned": self.planned[size_class],
            }
        for name, any_bins in (("improvement", False), ("improvement_over_best_bins", True)):
            for size_class in self.size_classes:
                gain = self.improvement(size_class, any_bins=any_bins)
                yield {"quantity": name, "size_class": size_class, **shared, "ours": gain}
            mean = self.mean_improvement(any_bins=any_bins)
            yield {"quantity": name, "size_class": "mean", **shared, "ours": mean}
        yield {"quantity": "median_error", "size_class": f"{LARGE}+", **shared, "ours": self.median_error}
        yield {"quantity": "median_within_5_percent", "size_class": f"{LARGE}+", **shared, "ours": self.median_within}


def compare_curves(earned: Earned, *, draws: int, seed: int) -> PercentilesBySize:
    """Read percentiles off noisy bins by every curve, several times, and compare them with those of the people."""
    true, people = earned.true(), earned.people
    present = [(low, high) for low, high in PEOPLE if inside(people, low, high).any()]
    lines, medians = [], np.empty(0)
    for number in BINS:
        bins = earned.bins(number)
        counts = earned.counted(bins)
        for curve in CURVES:
            off = np.concatenate(
                [
                    _read(curve, bins, earned.at, counts, Repeatable(seed, curve, number, draw)) / true - 1
                    for draw in range(draws)
                ]
            )
            off = np.abs(off)
            sizes = np.tile(people, draws)
            if (curve, number) == IMPROVED:
                medians = off[sizes >= LARGE][:, earned.at.index(_MEDIAN)]
            for low, high in present:
                own = inside(sizes, low, high)
                lines.append(
                    CurveError(
                        curve=curve,
                        bins=number,
                        size_class=label(low, high),
                        cells=int(own.sum()) // draws,
                        errors=tuple(off[own].mean(axis=0).tolist()),
                    )
                )
    return PercentilesBySize(
        cells=len(people),
        draws=draws,
        at=earned.at,
        lines=tuple(lines),
        planned={label(low, high): _planned(earned, low, high) for low, high in present},
        median_error=float(medians.mean()),
        median_within=float((medians <= 0.05).mean()),
    )


def _read(curve: CurveName, bins: PublicBins, at: tuple[Fraction, ...], counts: Integers, chance: Repeatable) -> Floats:
    """The percentiles that a curve has after noise: one row a cell."""
    found = curve_named(curve, bins=bins, at=at, epsilon=EPSILON_OF_A_CELL)
    parts = [
        np.exp(found.percentiles(found.measured(counts[start : start + _CHUNK], chance)).logs)
        for start in range(0, len(counts), _CHUNK)
    ]
    return np.concatenate(parts)


def _planned(earned: Earned, low: int, high: int | None) -> CurveName:
    """What would be chosen from bins and ε alone, for the middling cell of the class."""
    size = int(np.median(earned.people[inside(earned.people, low, high)]))
    return recommended(bins=earned.bins(BINS[-1]), at=earned.at, epsilon=EPSILON_OF_A_CELL, size=size)[0].curve
