"""The interactive approach beside the cube at the same budget: errors by number of tables, and what still adds up.

Asked interactively, each of k tables has a k-th of ε and δ and noise in its own cells only, whatever its dimension. The
cube has all of it, and tables of few dimensions add up the noise of many cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from sfumato.agree.least_squares import Axes, summed
from sfumato.arrays import Integers
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Repeatable
from sfumato.statistics.cube.levels import MeasuredMargin, better_by_themselves, errors_by_dimension, noise_of_one
from sfumato_lab.reproduce.li2020.evaluate import CAP, EPSILON, TABLE_4, survey

EPSILONS = (Fraction(1), EPSILON)
TABLES = (1, 10, 45, 120, 1023)
"""How many tables are asked for: one, all of one dimension, of two, of three, and all."""
_PAIRS = 45
"""Pairs of a table and one inside it that are compared, all two-way tables each with one of its margins."""


@dataclass(frozen=True, kw_only=True)
class Interactive:
    """Errors of both approaches, and how often answers contradict each other."""

    delta: float
    cube: dict[tuple[Fraction, int], float]
    """The root mean square error of tables by epsilon and dimension, summed from the cube."""
    asked: dict[tuple[Fraction, int], float]
    """That of every table, by epsilon and the number of tables that are asked for."""
    even: dict[tuple[Fraction, int], int]
    """By epsilon and dimension: the largest number of tables that are better asked interactively."""
    contradictions: dict[str, float]
    """By approach: the share of cells of a table that differ from the sum of a finer one."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure."""
        for (epsilon, size), error in self.cube.items():
            yield _row("bottom_up_error", epsilon, error, dimension=size)
        for (epsilon, tables), error in self.asked.items():
            yield _row("interactive_error", epsilon, error, tables=tables)
        for (epsilon, size), tables in self.even.items():
            yield _row("tables_better_asked", epsilon, tables, dimension=size)
        for approach, share in self.contradictions.items():
            yield {"quantity": "cells_that_do_not_add_up", "approach": approach, "published": None, "ours": share}


def _row(quantity: str, epsilon: Fraction, ours: float, **about: int) -> dict[str, Any]:
    return {"quantity": quantity, "epsilon": float(epsilon), **about, "published": None, "ours": ours}


def compare_interactive(*, seed: int) -> Interactive:
    """Work out the errors of both, and draw both once to see which answers contradict each other."""
    delta = TruncatedGeometric(epsilon=EPSILON, cap=CAP).delta()
    true = survey(seed)
    everything = tuple(range(len(true.shape)))
    cube: dict[tuple[Fraction, int], float] = {}
    asked: dict[tuple[Fraction, int], float] = {}
    even: dict[tuple[Fraction, int], int] = {}
    for epsilon in EPSILONS:
        own = noise_of_one(epsilon, delta, 1).variance
        found = errors_by_dimension(true.dimensions, [MeasuredMargin(axes=everything, variance=own)], *TABLE_4)
        cube |= {(epsilon, size): error for size, error in found.items()}
        asked |= {(epsilon, tables): sqrt(noise_of_one(epsilon, delta, tables).variance) for tables in TABLES}
        even |= {(epsilon, size): better_by_themselves(epsilon, delta, error) for size, error in found.items()}
    return Interactive(
        delta=delta, cube=cube, asked=asked, even=even, contradictions=_contradictions(true["count"], delta, seed)
    )


def _contradictions(counts: Integers, delta: float, seed: int) -> dict[str, float]:
    """Two-way tables beside one-way ones that are inside them: summed from one noisy cube, and each asked by itself."""
    chance = Repeatable(seed, "li2020", "interactive")
    noisy = counts + noise_of_one(EPSILONS[0], delta, 1).sample(counts.size, chance).reshape(counts.shape)
    pairs = list(combinations(range(counts.ndim), 2))[:_PAIRS]
    each = noise_of_one(EPSILONS[0], delta, len(pairs) + counts.ndim)

    def drawn(axes: Axes) -> Integers:
        table = np.asarray(summed(counts, axes))
        found: Integers = table + each.sample(table.size, chance).reshape(table.shape)
        return found

    margins = {axis: drawn((axis,)) for axis in range(counts.ndim)}
    differ: dict[str, list[bool]] = {"bottom-up": [], "interactive": []}
    for pair in pairs:
        for approach, fine, coarse in (
            ("bottom-up", summed(noisy, pair), summed(noisy, pair[:1])),
            ("interactive", drawn(pair), margins[pair[0]]),
        ):
            differ[approach] += np.ravel(np.asarray(fine).sum(axis=1) != coarse).tolist()
    return {approach: float(np.mean(found)) for approach, found in differ.items()}
