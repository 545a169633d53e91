"""The consistent alternative at the same budget: errors by dimension beside the cube alone, and what to prefer.

Both spend the same ε and δ. Bottom-up spends all on the cube; several levels share it, and are combined. Either is
published as it comes, or as whole numbers none of which is negative.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Literal

import numpy as np

from sfumato.arrays import Floats
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Repeatable
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.levels import Candidate, SeveralLevels, all_tables, errors_by_dimension, recommended
from sfumato_lab.reproduce.li2020.evaluate import CAP, EPSILON, RECORDS, TABLE_4, Tables, survey

Approach = Literal["bottom-up", "several-levels"]
Numbers = Literal["signed", "whole-nonnegative"]
APPROACHES: tuple[Approach, ...] = ("bottom-up", "several-levels")
NUMBERS: tuple[Numbers, ...] = ("signed", "whole-nonnegative")
EPSILONS = (Fraction(1), EPSILON)
SURVEYS = (RECORDS, 20_000)
"""Numbers of records: the published one, which leaves nearly all cells empty, and one that does not."""
MOST_RUNS = 20
_ONE_IN = 50
"""Of the runs asked for: fitting whole numbers takes long, and differences are large."""
COMPARED = (1, 2, 3)
"""The levels compared are those recommended for all tables of so many dimensions together."""
WORKLOADS: Mapping[str, tuple[int, ...]] = {
    "one-way": (1,),
    "two-way": (2,),
    "three-way": (3,),
    "one- to three-way": COMPARED,
    "the cube": (10,),
}


@dataclass(frozen=True, kw_only=True)
class LevelError:
    """The root mean square error of tables of one dimension, by one approach."""

    epsilon: Fraction
    records: int
    dimension: int
    approach: Approach
    numbers: Numbers
    simulated: float
    expected: float | None
    """From the parameters; None where negative numbers were removed."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Both approaches compared."""

    runs: int
    delta: float
    errors: tuple[LevelError, ...]
    designs: Mapping[Fraction, Candidate]
    """The levels compared, by epsilon."""
    workloads: Mapping[tuple[Fraction, str], tuple[Candidate, ...]]
    """Candidates from the best to the worst, by epsilon and workload."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every error by dimension, and for every candidate of a workload."""
        for error in self.errors:
            yield {
                "quantity": "level_error",
                "epsilon": float(error.epsilon),
                "records": error.records,
                "dimension": error.dimension,
                "approach": error.approach,
                "numbers": error.numbers,
                "runs": self.runs,
                "published": None,
                "ours": error.simulated,
                "theory": error.expected,
            }
        for (epsilon, workload), candidates in self.workloads.items():
            for candidate in candidates:
                yield {
                    "quantity": "workload_error",
                    "epsilon": float(epsilon),
                    "workload": workload,
                    "approach": "bottom-up" if candidate.is_bottom_up else "several-levels",
                    "levels": candidate.name,
                    "share": float(candidate.share),
                    "recommended": candidate is candidates[0],
                    "published": None,
                    "ours": candidate.error,
                }

    def better(self, epsilon: Fraction, records: int) -> list[int]:
        """The dimensions at which several levels in whole numbers have a smaller error than the signed cube alone."""
        found = {
            (error.approach, error.numbers, error.dimension): error.simulated
            for error in self.errors
            if (error.epsilon, error.records) == (epsilon, records)
        }
        return [
            size
            for size in TABLE_4
            if found["several-levels", "whole-nonnegative", size] < found["bottom-up", "signed", size]
        ]


def compare_levels(*, runs: int, seed: int) -> Levels:
    """Measure both ways, in one run for every fifty asked for, and compare what readers would get."""
    delta = TruncatedGeometric(epsilon=EPSILON, cap=CAP).delta()
    cubes = [survey(seed, records=records) for records in SURVEYS]
    dimensions = cubes[0].dimensions
    workloads = {
        (epsilon, name): tuple(recommended(dimensions, all_tables(dimensions, *sizes), epsilon=epsilon, delta=delta))
        for epsilon in EPSILONS
        for name, sizes in WORKLOADS.items()
    }
    names = {sizes: name for name, sizes in WORKLOADS.items()}
    designs = {
        epsilon: next(found for found in workloads[epsilon, names[COMPARED]] if not found.is_bottom_up)
        for epsilon in EPSILONS
    }
    runs = max(min(runs // _ONE_IN, MOST_RUNS), 1)
    errors: list[LevelError] = []
    for epsilon, chosen in designs.items():
        alone = SeveralLevels.split(dimensions, levels={}, epsilon=epsilon, delta=delta)
        for cube in cubes:
            for approach, design in zip(APPROACHES, (alone, chosen.design), strict=True):
                errors += _errors(cube, design, approach, epsilon=epsilon, runs=runs, seed=seed)
    return Levels(runs=runs, delta=delta, errors=tuple(errors), designs=designs, workloads=workloads)


def _errors(
    cube: Cube, design: SeveralLevels, approach: Approach, *, epsilon: Fraction, runs: int, seed: int
) -> Iterator[LevelError]:
    true, tables = cube["count"], Tables(shape=cube.shape)
    squares: dict[Numbers, Floats] = {numbers: np.zeros(len(cube.shape) + 1) for numbers in NUMBERS}
    for run in range(runs):
        measured = design.measure(true, Repeatable(seed, "li2020", "levels", approach, f"{epsilon} {run}"))
        made: dict[Numbers, Floats] = {
            "signed": design.combined(measured),
            "whole-nonnegative": design.consistent(measured).astype(np.float64),
        }
        for numbers, found in made.items():
            off = tables.of((found - true)[None])[0]
            squares[numbers] += tables.by_size(off * off) / runs
    expected = errors_by_dimension(cube.dimensions, design.measured_levels, *TABLE_4)
    for numbers, found in squares.items():
        for size in TABLE_4:
            yield LevelError(
                epsilon=epsilon,
                records=cube.total("count"),
                dimension=size,
                approach=approach,
                numbers=numbers,
                simulated=sqrt(found[size]),
                expected=expected[size] if numbers == "signed" else None,
            )
