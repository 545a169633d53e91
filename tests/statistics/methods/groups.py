"""Small groups of people, by hand or drawn, as sums and as samples."""

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.statistics.people.small_samples import Samples

RANKS: dict[str, Any] = {
    "alpha": Fraction(1),
    "at": (Fraction(2_500), Fraction(7_500)),
    "low_x": 0,
    "high_x": 10_000,
    "low_y": 0,
    "high_y": 10_000,
}
"""Ranks in hundredths, predicted at the quarter and at three quarters."""


def sums(sizes: Integers, x: Integers, y: Integers, classes: Integers | None = None) -> Cells:
    """The sums of groups whose people follow each other."""
    ends = np.concatenate([[0], np.cumsum(sizes)])

    def total(column: Integers) -> Integers:
        running = np.concatenate([[0], np.cumsum(column)])
        return (running[ends[1:]] - running[ends[:-1]]).astype(np.int64)

    columns = {"count": sizes.astype(np.int64), "sum_x": total(x), "sum_y": total(y)}
    columns |= {"sum_xx": total(x * x), "sum_xy": total(x * y), "sum_yy": total(y * y)}
    columns["class"] = np.zeros(len(sizes), dtype=np.int64) if classes is None else classes
    return Cells(dimensions=(groups(len(sizes)),), positions=np.arange(len(sizes)), columns=columns)


def sums_of(*people: list[tuple[int, int]]) -> Cells:
    """The sums of groups typed by hand."""
    sizes = np.array([len(group) for group in people], dtype=np.int64)
    flat = np.array([person for group in people for person in group], dtype=np.int64).reshape(-1, 2)
    return sums(sizes, flat[:, 0], flat[:, 1])


def samples(sizes: Integers, x: Integers, y: Integers) -> Samples:
    """The same people as records."""
    positions = np.repeat(np.arange(len(sizes)), sizes)
    return Samples(dimensions=(groups(len(sizes)),), positions=positions, x=x, y=y)


def groups(n: int) -> Dimension:
    return Dimension(name="group", codes=tuple(map(str, range(n))))


def drawn_ranks(sizes: Integers, seed: int, *, crowded: bool = False) -> tuple[Integers, Integers]:
    """Ranks of parents and children in hundredths: a line for every group, and people scattered about it.

    Parents have all ranks, or, where they are crowded, a standard deviation of eight ranks around one of their group's.
    """
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(len(sizes)), sizes)
    x = 10_000 * rng.beta(1.2, 1.4, len(own))
    if crowded:
        x = np.clip(rng.uniform(2_500, 7_500, len(sizes))[own] + rng.normal(0, 800, len(own)), 0, 10_000)
    middle, slope = rng.normal(4_500, 600, len(sizes)), rng.normal(0.3, 0.08, len(sizes))
    y = np.clip(middle[own] + slope[own] * (x - 5_000) + rng.normal(0, 2_500, len(own)), 0, 10_000)
    return np.rint(x).astype(np.int64), np.rint(y).astype(np.int64)


def exact_prediction(people: list[tuple[int, int]], rank: Fraction) -> Fraction | None:
    """Least squares in fractions, by the definition; None where x takes one value only."""
    n = len(people)
    mean_x, mean_y = (Fraction(sum(column), n) for column in zip(*people, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in people)
    if not spread:
        return None
    slope = sum(((x - mean_x) * (y - mean_y) for x, y in people), Fraction(0)) / spread
    return mean_y + slope * (rank - mean_x)
