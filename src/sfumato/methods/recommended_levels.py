"""Which levels of a cube to measure, given the tables that readers ask for: the one with the least expected error."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import sqrt

from sfumato.cells import Dimension
from sfumato.errors import MethodError
from sfumato.methods.several_levels import SeveralLevels

By = tuple[str, ...]
_SHARES = tuple(Fraction(share, 20) for share in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18))
_MOST_LEVELS = 100


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A choice of levels and what it would cost the workload."""

    name: str
    share: Fraction
    """The share of epsilon that goes to levels above the cube, evenly to each of them."""
    design: SeveralLevels
    error: float
    """The expected root mean square error of the workload's tables, weighted as asked."""

    @property
    def is_bottom_up(self) -> bool:
        """Whether only the cube itself is measured."""
        return len(self.design.levels) == 1


def all_tables(dimensions: Sequence[Dimension], *sizes: int) -> dict[By, float]:
    """A workload of all tables with so many dimensions; every number of dimensions counts the same.

    >>> sex, size = Dimension(name="sex", codes=("F", "M")), Dimension(name="size", codes=("s", "m", "l"))
    >>> all_tables([sex, size], 1, 2)
    {('sex',): 0.25, ('size',): 0.25, ('sex', 'size'): 0.5}
    """
    names = [dimension.name for dimension in dimensions]
    workload: dict[By, float] = {}
    for size in sizes:
        tables = list(combinations(names, size))
        workload.update({by: 1 / len(sizes) / len(tables) for by in tables})
    return workload


def recommended(
    dimensions: tuple[Dimension, ...], workload: Mapping[By, float], *, epsilon: Fraction, delta: float
) -> list[Candidate]:
    """Candidates from the best to the worst, the best share of each; bottom-up is always among them.

    Errors are expected ones, worked out from the parameters: nothing is spent by asking.
    """
    if not workload or any(weight < 0 for weight in workload.values()) or not sum(workload.values()):
        raise MethodError(
            "workload",
            expected="tables with weights from 0 on, not all 0",
            found=f"{len(workload)} tables",
            do="name the tables that readers ask for",
        )
    best = []
    for name, levels in _families(dimensions, workload).items():
        tried = []
        for share in _SHARES if levels else (Fraction(0),):
            each = {by: share / len(levels) for by in levels}
            design = SeveralLevels.split(dimensions, levels=each, epsilon=epsilon, delta=delta)
            tried.append(Candidate(name=name, share=share, design=design, error=_error(design, workload)))
        best.append(min(tried, key=lambda candidate: candidate.error))
    return sorted(best, key=lambda candidate: candidate.error)


def _families(dimensions: Sequence[Dimension], workload: Mapping[By, float]) -> dict[str, list[By]]:
    names = tuple(dimension.name for dimension in dimensions)
    asked = {tuple(name for name in names if name in by) for by, weight in workload.items() if weight > 0}
    families: dict[str, list[By]] = {
        "bottom-up": [],
        "the grand total": [()],
        "one-way tables": list(combinations(names, 1)),
        "two-way tables": list(combinations(names, 2)),
        "the tables asked for": sorted(asked - {names}),
        "the largest tables asked for": sorted(
            by for by in asked - {names} if not any(set(by) < set(other) for other in asked - {names})
        ),
    }
    kept: dict[str, list[By]] = {}
    for name, levels in families.items():
        proper = [by for by in levels if len(by) < len(names)]
        repeats = any(set(proper) == set(other) for other in kept.values())
        if not repeats and len(proper) <= _MOST_LEVELS and (proper or name == "bottom-up"):
            kept[name] = proper
    return kept


def _error(design: SeveralLevels, workload: Mapping[By, float]) -> float:
    total = sum(workload.values())
    return sum(w / total * sqrt(design.expected_variance(*by)) for by, w in workload.items() if w > 0)
