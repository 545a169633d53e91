"""From which value on a sparse table lists a cell, by its largest establishment and epsilon; no data are read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.errors import ReleaseError
from sfumato.statistics.jobs.sparse import SparseCounts
from sfumato.statistics.jobs.sparse_laplace import LARGEST, SparseLaplace
from sfumato.surroundings import Surroundings

EPSILONS = tuple(map(Fraction, (1, 2, 4, 8)))
SIZES = (1, 10, 50, 100, 500, 1_000, 10_000)


@dataclass(frozen=True, kw_only=True)
class ExpectedThreshold:
    """The usual threshold where the largest establishment has so many workers, and the noise below it."""

    largest: int
    epsilon: Fraction
    threshold: int
    error: float


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What a table will list, before any data are read."""

    table: str
    method: SparseLaplace
    expected: tuple[ExpectedThreshold, ...]


def tune_thresholds(
    plan: Surroundings, name: str | None = None, *, largest: Sequence[int] = SIZES, epsilons: Sequence[Fraction] = ()
) -> Thresholds:
    """The thresholds of a sparse table of a release, by the size of the largest establishment and ε.

    The noise in the bound of the largest establishment is left out: half of all thresholds are lower, half higher.
    """
    found = [table for table in plan.of_kind(SparseCounts) if name in (None, table.name)]
    if len(found) != 1:
        raise ReleaseError(
            "[[table]]",
            expected='one table with method = "sparse-laplace", or --table to choose',
            found=", ".join(table.name for table in found) or "none",
            do="name the table with --table, or see docs/methods/origin-destination.md",
        )
    (table,) = found
    method = table.protection
    asked = tuple(epsilons) or tuple(sorted({*EPSILONS, method.epsilon}))
    if not largest or not 1 <= min(largest) <= max(largest) <= LARGEST:
        raise ReleaseError(
            "largest",
            expected=f"sizes of establishments from 1 to {LARGEST:,}",
            found="another number",
            do="correct the option",
        )
    return Thresholds(
        table=table.name,
        method=method,
        expected=tuple(_expected(replace(method, epsilon=epsilon), size) for size in largest for epsilon in asked),
    )


def _expected(method: SparseLaplace, largest: int) -> ExpectedThreshold:
    cap = 0
    if method.employers:
        rung = int(np.searchsorted(method.ladder, largest)) + method.margin
        cap = int(method.ladder[min(rung, len(method.ladder) - 1)])
    return ExpectedThreshold(
        largest=largest, epsilon=method.epsilon, threshold=method.threshold(cap), error=method.spread(cap)
    )
