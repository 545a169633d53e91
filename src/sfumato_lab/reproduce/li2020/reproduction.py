"""The figures of Li and Krenzke (2020) again: the noise of Table 2, and Table 4 with both calibrations and variants."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sfumato.arrays import Floats
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.statistics.cube.calibrate import CalibrationMethod
from sfumato_lab.reproduce.li2020.assessment import QUOTES, Assessed, assess_survey
from sfumato_lab.reproduce.li2020.evaluate import (
    CAP,
    CHANCE_OF_NOISE,
    CONVERGED,
    DELTA,
    EPSILON,
    RUNS,
    TABLE_2,
    TABLE_2_CAP,
    TABLE_2_EPSILON,
    TABLE_4,
    VARIANCE_OF_NOISE,
    VARIANTS,
    ExpectedVariances,
    Moments,
    Progress,
    Simulated,
    Variant,
    at_mean_cardinality,
    expected,
    simulate,
    survey,
)
from sfumato_lab.reproduce.li2020.interactive import Interactive, compare_interactive
from sfumato_lab.reproduce.li2020.levels import Levels, compare_levels

PAPER = "li2020"
QUICK_RUNS = 100
CALIBRATIONS: tuple[CalibrationMethod, ...] = ("raking", "least-squares")
Measure = Literal["variance", "within_run", "mean_square"]
SUFFIXES: Mapping[Measure, str] = {"variance": "", "within_run": "_within_run", "mean_square": "_mean_square"}
Runs = Literal["converged", "all"]
Averaged = Literal["by_table", "by_cell"]
AVERAGED: tuple[Averaged, ...] = ("by_table", "by_cell")
RUNS_OF: Mapping[CalibrationMethod, tuple[Runs, ...]] = {
    "raking": ("converged", "all"),
    "least-squares": ("converged",),
}
"""Least squares solves all of them."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Noise in tables of one dimension, without and with calibration; None where no run converged."""

    dimension: int
    plain: float | None
    calibrated: float | None

    @property
    def reduction(self) -> float | None:
        """The share of the variance that calibration took away."""
        if self.plain is None or self.calibrated is None or self.plain == 0:
            return None
        return 1 - self.calibrated / self.plain


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was computed again."""

    runs: int
    noise: TruncatedGeometric
    """Of Table 2."""
    evaluated: TruncatedGeometric
    """Of the evaluation."""
    simulated: Mapping[Variant, Simulated]
    levels: Levels
    """The alternative that measures several levels."""
    interactive: Interactive
    """The other option of the paper: each table by itself."""
    assessed: Assessed
    """The assessment after perturbation."""

    def lines(
        self, calibration: CalibrationMethod, variant: Variant, measure: Measure = "variance", runs: Runs = "converged"
    ) -> list[Line]:
        """Table 4 by one calibration, with one variant of the noise, over the runs that converged or over all."""
        return _lines(*self._moments(calibration, variant, runs), measure)

    def reductions(
        self, calibration: CalibrationMethod, variant: Variant, averaged: Averaged, runs: Runs = "converged"
    ) -> dict[int, float | None]:
        """By dimension: the reduction in each table over runs, the mean over tables or over all cells of theirs."""
        moments = self._moments(calibration, variant, runs)
        before, after = (part.variance_by_table() for part in moments)
        tables = self.simulated[variant].tables
        if before is None or after is None:
            return dict.fromkeys(TABLE_4)
        sizes = np.array([int(table).bit_count() for table in range(len(before))])
        weights = np.ones_like(before) if averaged == "by_table" else tables.table_cells
        found: dict[int, float | None] = {}
        for size in TABLE_4:
            some = (sizes == size) & (before > 0)
            share = 1 - after[some] / before[some]
            found[size] = float(np.average(share, weights=weights[some])) if some.any() else None
        return found

    def _moments(self, calibration: CalibrationMethod, variant: Variant, runs: Runs) -> tuple[Moments, Moments]:
        part = self.simulated[variant]
        if calibration == "least-squares":
            return part.plain, part.least_squares
        return (part.plain_where_raked, part.raked) if runs == "converged" else (part.plain, part.raked_in_all)

    def bounded(self, variant: Variant) -> list[Line]:
        """Mean squares of the noise where least squares must leave no negative cell, over the first runs."""
        part = self.simulated[variant]
        return _lines(part.plain_where_bounded, part.bounded, "mean_square")

    def converged(self, calibration: CalibrationMethod, variant: Variant) -> int:
        """The number of runs in which the calibration met every control."""
        part = self.simulated[variant]
        return part.raked.runs if calibration == "raking" else part.solved

    @cached_property
    def theory(self) -> Mapping[int, ExpectedVariances]:
        """By dimension: what is expected of two-sided noise and least squares."""
        return {size: expected(size, variance=self.evaluated.variance) for size in TABLE_4}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        return iter(self._rows)

    @cached_property
    def _rows(self) -> tuple[dict[str, Any], ...]:
        return tuple(self._all_rows())

    def _all_rows(self) -> Iterator[dict[str, Any]]:
        yield from self._noise_rows()
        for calibration in CALIBRATIONS:
            for variant in VARIANTS:
                yield {
                    "quantity": "converged_runs",
                    "calibration": calibration,
                    "variant": variant,
                    "runs": self.runs,
                    "published": CONVERGED if calibration == "raking" else None,  # of 1,000
                    "ours": self.converged(calibration, variant),
                }
                for used in RUNS_OF[calibration]:
                    yield from self._variance_rows(calibration, variant, used)
        for variant in VARIANTS:
            for line in self.bounded(variant):
                about: dict[str, Any] = {"dimension": line.dimension, "variant": variant, "published": None}
                yield {"quantity": "mean_square_bounded", **about, "ours": line.calibrated}
        for variant in VARIANTS:
            for tolerance, runs in self.simulated[variant].within.items():
                about = {"tolerance": tolerance, "variant": variant, "runs": self.runs, "published": None}
                yield {"quantity": "raked_within", **about, "ours": runs}
        for size in TABLE_4:
            about = {"dimension": size, "published": None, "ours": at_mean_cardinality(size)}
            yield {"quantity": "variance_reduction_at_mean_cardinality", **about}
        yield from self.levels.rows()
        yield from self.interactive.rows()
        yield from self.assessed.rows()

    def _noise_rows(self) -> Iterator[dict[str, Any]]:
        for j, printed in TABLE_2.items():
            ours = float(self.noise.probability(np.array([j]))[0])
            yield {"quantity": "noise_probability", "j": j, "published": float(printed), "ours": ours}
        yield {"quantity": "delta", "published": float(DELTA), "ours": self.noise.delta()}
        any_noise = 1 - float(self.evaluated.probability(np.array([0]))[0])
        yield {"quantity": "chance_of_noise", "published": CHANCE_OF_NOISE, "ours": any_noise}
        yield {"quantity": "cell_variance", "published": VARIANCE_OF_NOISE, "ours": self.evaluated.variance}

    def _variance_rows(self, calibration: CalibrationMethod, variant: Variant, runs: Runs) -> Iterator[dict[str, Any]]:
        used = self._moments(calibration, variant, runs)[1].runs
        known = variant == "two-sided" and calibration == "least-squares"
        suffix = "" if runs == "converged" else "_all_runs"

        def row(quantity: str, size: int, published: float | None, ours: float | None, theory: float) -> dict[str, Any]:
            about = {"dimension": size, "calibration": calibration, "variant": variant, "runs_used": used}
            figures = {"published": published, "ours": ours} | ({"theory": theory} if known else {})
            return {"quantity": quantity + suffix, **about, **figures}

        for measure, ending in SUFFIXES.items():
            for line in self.lines(calibration, variant, measure, runs):
                size, theory = line.dimension, self.theory[line.dimension]
                within = measure == "within_run"
                printed = (None, None, None) if measure == "mean_square" else TABLE_4[size]
                before = theory.before_within_run if within else theory.before
                after = theory.after_within_run if within else theory.after
                yield row(f"noise_variance{ending}", size, printed[0], line.plain, before)
                yield row(f"noise_variance_calibrated{ending}", size, printed[1], line.calibrated, after)
                yield row(f"variance_reduction{ending}", size, printed[2], line.reduction, 1 - after / before)
        for averaged in AVERAGED:
            for size, share in self.reductions(calibration, variant, averaged, runs).items():
                theory = self.theory[size]
                expects = theory.by_table if averaged == "by_table" else theory.by_cell
                yield row(f"variance_reduction_{averaged}", size, TABLE_4[size][2], share, expects)


def reproduce(
    *, runs: int = RUNS, seed: int = 1, quotes: int = QUOTES, progress: Progress = lambda *_: None
) -> Reproduction:
    """Compute Table 2 again, Table 4 from as many runs as are asked for, and assess a survey of so many quotes."""
    return Reproduction(
        runs=runs,
        noise=TruncatedGeometric(epsilon=TABLE_2_EPSILON, cap=TABLE_2_CAP),
        evaluated=TruncatedGeometric(epsilon=EPSILON, cap=CAP),
        simulated=simulate(survey(seed), runs=runs, seed=seed, progress=progress),
        levels=compare_levels(runs=runs, seed=seed),
        interactive=compare_interactive(seed=seed),
        assessed=assess_survey(seed=seed, quotes=quotes),
    )


def _lines(before: Moments, after: Moments, measure: Measure) -> list[Line]:
    plain, calibrated = (getattr(moments, measure)() for moments in (before, after))

    def at(values: Floats | None, size: int) -> float | None:
        return None if values is None else float(values[size])

    return [Line(dimension=size, plain=at(plain, size), calibrated=at(calibrated, size)) for size in TABLE_4]
