"""One table under several protections: what each loses of its cells, and what readers still find out.

Arrays have one entry for every combination of codes. `told` says where a value is published; where none is, a cell is
withheld, or merged away, and can be used for nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.measures.attacks import AttackResult, pooled
from sfumato.measures.formulas import mean, ratio, spearman

PERCENT = 10
"""A contribution is disclosed that an estimate is within so many percent of."""
LARGEST = f"largest contributor, estimated by the second (within {PERCENT} %)"
ALONE = f"contributor alone in a cell (within {PERCENT} %)"
SUBTRACTED = f"contributor alone in a cell, by subtracting all others from a coarser table (within {PERCENT} %)"
ATTACKS = (LARGEST, ALONE, SUBTRACTED)
"""What is tried on every protection alike; each succeeds on every target where true numbers are published."""
IN_SHORT = {
    LARGEST: "the largest in a cell, by the second largest",
    ALONE: "who is alone in a cell",
    SUBTRACTED: "the same, by subtraction",
}
"""Attacks as headings of a chart."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a protection costs the cells of one group that have something in them, on average over trials."""

    label: str
    cells: int
    withheld: float | None
    """The share of cells without a published value; None where no cell has anything in it."""
    value_withheld: float | None
    """The share of their value."""
    usable: float | None
    """The share of cells that are published, and off by no more than the stated accuracy."""
    median_error: float | None
    mean_error: float | None
    """Of published cells; None where none is published."""
    median_relative: float | None
    mean_relative: float | None
    spearman: float | None
    """The rank correlation of published and true values."""
    error_ratio: float | None = None
    """The error of all cells that both publish, as a ratio to that of the legacy."""
    loss_ratio: float | None = None
    """The same of all cells, where one that is withheld counts as if 0 were published."""

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """The true cells of one table, and what everyone is judged by: confidential."""

    name: str
    title: str
    unit: str
    dimensions: tuple[Dimension, ...]
    true: Floats
    groups: Mapping[str, tuple[tuple[str, ...], Integers]]
    """By what cells are told apart: the labels, and the place of every cell among them; −1 is no group."""
    contributors: "Contributors | None" = None
    """Where they are known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributors:
    """Who contributes to every cell, in the unit of its value: confidential."""

    number: Integers
    largest: Floats
    second: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What readers get of a table: values where they are told."""

    value: Floats
    told: Flags
    guess: Floats | None = None
    """What readers work out of cells that are not told, by the middle of the bounds; None where there are none."""

    @property
    def estimate(self) -> Floats:
        """The best that a reader knows of every cell; NaN where that is nothing."""
        unknown = np.full(len(self.value), np.nan) if self.guess is None else self.guess
        return np.where(self.told, self.value, unknown)


def laid_out(cells: Cells, dimensions: Sequence[Dimension], values: Floats, otherwise: float) -> Floats:
    """Some figures of cells over all combinations of these dimensions; cells with other codes are left out.

    >>> sex = Dimension(name="sex", codes=("F", "M", "total"))
    >>> cells = Cells(dimensions=(sex,), positions=np.array([1, 2]))
    >>> laid_out(cells, [Dimension(name="sex", codes=("F", "M"))], np.array([4.0, 9.0]), 0.0).tolist()
    [0.0, 4.0]
    """
    at, inside = np.zeros(len(cells), dtype=np.int64), np.ones(len(cells), dtype=bool)
    own, size = {one.name: one for one in cells.dimensions}, 1
    for dimension in dimensions:
        place = np.array([dimension.places.get(code, -1) for code in own[dimension.name].codes], dtype=np.int64)
        codes = place[cells.codes(dimension.name)]
        inside &= codes >= 0
        at, size = at * len(dimension) + codes, size * len(dimension)
    found = np.full(size, otherwise, dtype=np.float64)
    found[at[inside]] = values[inside]
    return found


class Losses:
    """The losses of one table under one protection, trial after trial; cells are kept of their sums alone."""

    def __init__(self, target: Target, accuracy: float) -> None:
        self.target, self.accuracy = target, accuracy
        self._found: list[dict[tuple[str, int], dict[str, float]]] = []
        self._error, self._lost = np.zeros(len(target.true)), np.zeros(len(target.true))
        self._told = np.zeros(len(target.true), dtype=np.int64)

    def add(self, shown: Shown) -> None:
        """One trial more."""
        true = self.target.true
        error = np.abs(shown.value - true)
        self._error += np.where(shown.told, error, 0.0)
        self._lost += np.where(shown.told, error, np.abs(true))
        self._told += shown.told
        self._found.append(
            {group: _figures(true[at], shown.value[at], shown.told[at], self.accuracy) for group, at in self._groups()}
        )

    def _groups(self) -> Iterator[tuple[tuple[str, int], Integers]]:
        """The cells of every group that have something in them."""
        some = np.flatnonzero(self.target.true)
        yield ("", 0), some
        for name, (labels, places) in self.target.groups.items():
            own = places[some]
            for place in range(len(labels)):
                if (inside := own == place).any():
                    yield (name, place), some[inside]

    def by(self, legacy: "Losses | None") -> dict[str, tuple[Loss, ...]]:
        """What is lost in every group, by what groups are of: all cells together are under no name."""
        made: dict[str, list[Loss]] = {}
        for group, at in self._groups():
            name, place = group
            label = self.target.groups[name][0][place] if name else "all"
            figures = [found[group] for found in self._found]
            averaged: dict[str, Any] = {key: _mean_of_known(one[key] for one in figures) for key in figures[0]}
            every = at if name else np.arange(len(self.target.true))  # also what is made of cells with nothing in them
            ratios: dict[str, Any] = {} if legacy is None else self._ratios(legacy, every)
            made.setdefault(name, []).append(Loss(label=label, cells=len(at), **averaged, **ratios))
        return {name: tuple(some) for name, some in made.items()}

    def _ratios(self, legacy: "Losses", at: Integers) -> dict[str, float | None]:
        """The error of all of some cells beside that of the legacy."""
        both = at[(self._told[at] > 0) & (legacy._told[at] > 0)]
        own, other = (float((one._error[both] / one._told[both]).sum()) for one in (self, legacy))
        lost, others = (float(one._lost[at].sum()) / len(one._found) for one in (self, legacy))
        return {"error_ratio": _known(ratio(own, other)), "loss_ratio": _known(ratio(lost, others))}


def _figures(true: Floats, value: Floats, told: Flags, accuracy: float) -> dict[str, float]:
    """The figures of one trial; NaN where they are not defined."""
    error = np.abs(value - true)
    published, share = error[told], error[told] / np.abs(true[told])
    # Compared without a division, so that 90 is within 10 % of 100 whatever the rounding of 0.1.
    near = told & (error <= accuracy * np.abs(true) * (1 + 1e-12))
    return {
        "withheld": mean(~told),
        "value_withheld": ratio(float(np.abs(true[~told]).sum()), float(np.abs(true).sum())),
        "usable": mean(near),
        "median_error": float(np.median(published)) if len(published) else float("nan"),
        "mean_error": mean(published),
        "median_relative": float(np.median(share)) if len(share) else float("nan"),
        "mean_relative": mean(share),
        "spearman": spearman(true=true[told], protected=value[told]),
    }


def _mean_of_known(values: Iterable[float]) -> float | None:
    known = [value for value in values if isfinite(value)]
    return sum(known) / len(known) if known else None


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


# Attacks that can be tried on every protection.


@dataclass(frozen=True, kw_only=True)
class Disclosed:
    """How often an attack succeeds on the cells of one table, on average over trials."""

    attack: str
    targets: int
    """Cells in which it succeeds where true numbers are published."""
    rate: float | None
    """None where there is no target."""

    @property
    def words(self) -> str:
        """The same for people."""
        return "no target" if self.rate is None else f"{self.rate:.1%} of {self.targets:,}"

    @classmethod
    def over(cls, trials: Sequence[AttackResult]) -> "Disclosed":
        """The same attack in several trials."""
        found = pooled(trials)
        rate = found.success_rate if found.targets else None
        return cls(attack=found.attack, targets=found.targets // len(trials), rate=rate)

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)


def common_attacks(target: Target, shown: Shown, coarser: Sequence[tuple[Target, Shown]]) -> Iterator[AttackResult]:
    """What readers find out who know the second largest contributor, or nothing but one table or several.

    Targets are cells in which true numbers would disclose what is looked for; `guessed` counts them all.
    """
    known = target.contributors
    if known is None:
        return
    estimate = shown.estimate
    told = (known.number > 1) & _near(target.true - known.second, known.largest)
    yield _result(LARGEST, _near(estimate - known.second, known.largest)[told])
    alone = (known.number == 1) & (target.true != 0)
    yield _result(ALONE, _near(estimate, target.true)[alone])
    found = np.zeros(len(target.true), dtype=bool)
    reached = np.zeros(len(target.true), dtype=bool)
    for other, seen in coarser:
        rest, inside = _subtracted(target, estimate, other, seen)
        found |= _near(rest, target.true)
        reached |= inside
    if coarser:
        yield _result(SUBTRACTED, found[alone & reached])


def is_coarser(target: Target, other: Target) -> bool:
    """Whether another table has the sums of this one over some dimensions, and all of them."""
    own = {one.name: one.codes for one in target.dimensions}
    names = [one.name for one in other.dimensions]
    if len(names) >= len(own) or target.unit != other.unit or not all(name in own for name in names):
        return False
    if any(own[one.name] != one.codes for one in other.dimensions):
        return False
    return np.array_equal(_summed(target, target.true, other), other.true)


def _summed(target: Target, values: Floats, other: Target) -> Floats:
    found: Floats = np.bincount(_above(target, other), weights=values, minlength=len(other.true)).astype(np.float64)
    return found


def _above(target: Target, other: Target) -> Integers:
    """The cell of a coarser table that every cell lies in."""
    cells = Cells(dimensions=target.dimensions, positions=np.arange(len(target.true), dtype=np.int64))
    at = np.zeros(len(cells), dtype=np.int64)
    for dimension in other.dimensions:
        at = at * len(dimension) + cells.codes(dimension.name)
    return at


def _subtracted(target: Target, estimate: Floats, other: Target, seen: Shown) -> tuple[Floats, Flags]:
    """Every cell as what is left of the coarser one, and whether that has other cells with something in them."""
    above = _above(target, other)
    some = np.bincount(above, weights=target.true != 0, minlength=len(other.true))
    lacking = np.bincount(above, weights=np.isnan(estimate), minlength=len(other.true))
    known = np.bincount(above, weights=np.nan_to_num(estimate), minlength=len(other.true))
    rest = seen.estimate[above] - (known[above] - np.nan_to_num(estimate))
    others_lacking = lacking[above] - np.isnan(estimate)
    return np.where(others_lacking == 0, rest, np.nan), some[above] > 1


def _near(estimate: Floats, true: Floats) -> Flags:
    """Whether estimates are within so many percent; of what is not known they are not."""
    with np.errstate(invalid="ignore"):
        near: Flags = 100 * np.abs(estimate - true) <= PERCENT * np.abs(true)
    return near


def _result(attack: str, succeeded: Flags) -> AttackResult:
    return AttackResult(attack=attack, targets=len(succeeded), successes=int(succeeded.sum()), guessed=len(succeeded))
