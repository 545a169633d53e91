"""The figures of Li and Krenzke (2020) again: the noise of Table 2, and Table 4 with both calibrations and variants."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np

from sfumato.cube.effects import remaining_share
from sfumato.noise.truncated_geometric import TruncatedGeometric
from sfumato.reproduce.li2020.published import (
    CAP,
    CARDINALITIES,
    CELLS,
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
)
from sfumato.reproduce.li2020.simulate import VARIANTS, Progress, Simulated, Variant, simulate
from sfumato.reproduce.li2020.survey import survey
from sfumato.reproduce.li2020.tables import Floats, Moments

PAPER = "li2020"
QUICK_RUNS = 100
Calibration = Literal["raking", "least-squares"]
CALIBRATIONS: tuple[Calibration, ...] = ("raking", "least-squares")
Measure = Literal["variance", "within_run", "mean_square"]
SUFFIXES: Mapping[Measure, str] = {"variance": "", "within_run": "_within_run", "mean_square": "_mean_square"}


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

    def lines(self, calibration: Calibration, variant: Variant, measure: Measure = "variance") -> list[Line]:
        """Table 4 by one calibration, with one variant of the noise."""
        part = self.simulated[variant]
        before, after = (
            (part.plain_where_raked, part.raked) if calibration == "raking" else (part.plain, part.least_squares)
        )
        return _lines(before, after, measure)

    def bounded(self, variant: Variant) -> list[Line]:
        """Mean squares of the noise where least squares must leave no negative cell, over the first runs."""
        part = self.simulated[variant]
        return _lines(part.plain_where_bounded, part.bounded, "mean_square")

    def converged(self, calibration: Calibration, variant: Variant) -> int:
        """The number of runs in which the calibration met every control."""
        part = self.simulated[variant]
        return part.raked.runs if calibration == "raking" else part.solved

    @cached_property
    def theory(self) -> Mapping[int, tuple[float, float]]:
        """By dimension: the expected variance without calibration, and its expected reduction by least squares."""
        found = {}
        one_way = [(axis,) for axis in range(len(CARDINALITIES))]
        for size in TABLE_4:
            before, after = [], []
            for table in combinations(range(len(CARDINALITIES)), size):
                cells = int(np.prod([CARDINALITIES[axis] for axis in table]))
                before.append(self.evaluated.variance * CELLS / cells)
                after.append(before[-1] * remaining_share(CARDINALITIES, table, one_way))
            found[size] = float(np.mean(before)), float(1 - np.mean(after) / np.mean(before))
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
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
                for measure in SUFFIXES:
                    yield from self._variance_rows(calibration, variant, measure)
        for variant in VARIANTS:
            for line in self.bounded(variant):
                about: dict[str, Any] = {"dimension": line.dimension, "variant": variant, "published": None}
                yield {"quantity": "mean_square_bounded", **about, "ours": line.calibrated}
        for variant in VARIANTS:
            for tolerance, runs in self.simulated[variant].within.items():
                about = {"tolerance": tolerance, "variant": variant, "runs": self.runs, "published": None}
                yield {"quantity": "raked_within", **about, "ours": runs}

    def _noise_rows(self) -> Iterator[dict[str, Any]]:
        for j, printed in TABLE_2.items():
            ours = float(self.noise.probability(np.array([j]))[0])
            yield {"quantity": "noise_probability", "j": j, "published": float(printed), "ours": ours}
        yield {"quantity": "delta", "published": float(DELTA), "ours": self.noise.delta()}
        any_noise = 1 - float(self.evaluated.probability(np.array([0]))[0])
        yield {"quantity": "chance_of_noise", "published": CHANCE_OF_NOISE, "ours": any_noise}
        yield {"quantity": "cell_variance", "published": VARIANCE_OF_NOISE, "ours": self.evaluated.variance}

    def _variance_rows(self, calibration: Calibration, variant: Variant, measure: Measure) -> Iterator[dict[str, Any]]:
        printed = measure != "mean_square"
        for line in self.lines(calibration, variant, measure):
            before, after, reduction = TABLE_4[line.dimension]
            about = {"dimension": line.dimension, "calibration": calibration, "variant": variant}
            for quantity, published, ours in (
                ("noise_variance", before, line.plain),
                ("noise_variance_calibrated", after, line.calibrated),
                ("variance_reduction", reduction, line.reduction),
            ):
                row = {
                    "quantity": quantity + SUFFIXES[measure],
                    **about,
                    "published": published if printed else None,
                    "ours": ours,
                }
                if measure == "variance" and variant == "two-sided" and calibration == "least-squares":
                    expected, share = self.theory[line.dimension]
                    row["theory"] = {
                        "noise_variance": expected,
                        "noise_variance_calibrated": expected * (1 - share),
                        "variance_reduction": share,
                    }[quantity]
                yield row


def reproduce(*, runs: int = RUNS, seed: int = 1, progress: Progress = lambda *_: None) -> Reproduction:
    """Compute Table 2 again, and Table 4 from as many runs as are asked for."""
    return Reproduction(
        runs=runs,
        noise=TruncatedGeometric(epsilon=TABLE_2_EPSILON, cap=TABLE_2_CAP),
        evaluated=TruncatedGeometric(epsilon=EPSILON, cap=CAP),
        simulated=simulate(survey(seed), runs=runs, seed=seed, progress=progress),
    )


def _lines(before: Moments, after: Moments, measure: Measure) -> list[Line]:
    plain, calibrated = (getattr(moments, measure)() for moments in (before, after))

    def at(values: Floats | None, size: int) -> float | None:
        return None if values is None else float(values[size])

    return [Line(dimension=size, plain=at(plain, size), calibrated=at(calibrated, size)) for size in TABLE_4]
