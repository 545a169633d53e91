"""Which levels of a cube to measure, given the tables that readers ask for: the one with the least expected error."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import sqrt

from sfumato.cells import Dimension
from sfumato.cube.effects import Measured, effect_variances, table_variance
from sfumato.errors import MethodError
from sfumato.methods.several_levels import SeveralLevels
from sfumato.methods.truncated_laplace import TruncatedLaplace

By = tuple[str, ...]
_SHARES = tuple(Fraction(share, 20) for share in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18))
_MOST_LEVELS = 100
_FEW = (1, 2, 3)
"""Dimensions of the tables that readers ask for most."""


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


def errors_by_dimension(dimensions: Sequence[Dimension], measured: Sequence[Measured], *sizes: int) -> dict[int, float]:
    """The expected root mean square error of all tables with so many dimensions; the cube itself is measured last."""
    shape = [len(dimension) for dimension in dimensions]
    effects = effect_variances(shape, measured)
    found = {}
    for size in sizes:
        tables = list(combinations(range(len(shape)), size))
        variances = (table_variance(shape, table, effects, otherwise=measured[-1].variance) for table in tables)
        found[size] = sqrt(sum(variances) / len(tables))
    return found


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Expected root mean square errors by the dimension of a table, all at the same epsilon and delta."""

    planned: Mapping[int, float]
    """As the release has it; tables without noise cost nothing here, and have no error."""
    bottom_up: Mapping[int, float]
    """With all of it spent on the cube."""
    several_levels: Mapping[int, float]
    levels: Candidate
    """Of all that measure several levels the best for tables of few dimensions."""

    @property
    def recommended(self) -> Mapping[int, str]:
        """By the dimension of the tables that are asked for: what has the smaller error."""
        return {
            size: "bottom-up" if error <= self.several_levels[size] else "several-levels"
            for size, error in self.bottom_up.items()
        }


def compared(
    dimensions: tuple[Dimension, ...], method: TruncatedLaplace, *, public: Sequence[By] = (), calibrated: bool = True
) -> Comparison:
    """What the counts of a cube are expected to be off by, beside both approaches at the same budget; without any data.

    `public` are tables that are known anyway. Where controls are used in a way of which the effect on errors is not
    known, it is not `calibrated`, and they are not counted on.
    """
    names = [dimension.name for dimension in dimensions]
    noisy = {control.by: control.counts for control in method.controls if control.counts is not None}
    told = {by: noise.variance for by, noise in noisy.items()}
    told |= dict.fromkeys([control.by for control in method.exact_controls] + list(public), 0.0)
    measured = [
        Measured(axes=tuple(sorted(names.index(name) for name in by)), variance=variance)
        for by, variance in told.items()
        if calibrated
    ]
    measured.append(Measured(axes=tuple(range(len(names))), variance=method.counts.variance))
    spent = [method.counts, *noisy.values()]
    few = [size for size in _FEW if size < len(names)] or [len(names)]
    sizes = tuple(dict.fromkeys([*few, len(names)]))
    candidates = recommended(
        dimensions,
        all_tables(dimensions, *few),
        epsilon=sum((noise.epsilon for noise in spent), Fraction(0)),
        delta=sum(noise.delta() for noise in spent),
    )
    alone = next(candidate for candidate in candidates if candidate.is_bottom_up)
    levels = next(candidate for candidate in candidates if not candidate.is_bottom_up)
    return Comparison(
        planned=errors_by_dimension(dimensions, measured, *sizes),
        bottom_up=errors_by_dimension(dimensions, alone.design.measured_levels, *sizes),
        several_levels=errors_by_dimension(dimensions, levels.design.measured_levels, *sizes),
        levels=levels,
    )


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
