"""Which cells are sensitive, why, and how far from the truth what a reader can work out has to be.

Every rule looks at the contributions to a cell: x in all, x₁ of the largest unit, x₂ of the second, and so on. A unit
is what the columns are counted by: a person, an establishment, or a holding with all its establishments as one. Rules
at several levels of unit are joined with `Protection.joined`. The formulas are in docs/methods/suppression.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntFlag

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError
from sfumato.exact.system import System


class Reason(IntFlag):
    """Why a cell is sensitive; several may hold."""

    UNITS = 1
    COUNT = 2
    DOMINANCE = 4
    PERCENT = 8
    PRIOR = 16
    ZERO = 32
    FULL = 64

    @property
    def is_about_units(self) -> bool:
        """Whether it depends on what a unit is."""
        return self in (Reason.UNITS, Reason.DOMINANCE, Reason.PERCENT, Reason.PRIOR)

    @property
    def words(self) -> str:
        """The rule in words, for the confidential report."""
        return {
            Reason.UNITS: "fewer units than the minimum",
            Reason.COUNT: "a count below the minimum",
            Reason.DOMINANCE: "a few units have too large a share",
            Reason.PERCENT: "another contributor could estimate the largest too closely",
            Reason.PRIOR: "a reader with prior knowledge could estimate the largest too closely",
            Reason.ZERO: "a zero, which tells something about everyone",
            Reason.FULL: "everyone of its group, which tells something about everyone",
        }[self]


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """What is known of the contributions to every cell of a table, by one kind of unit.

    With weights, `value` is the weighted sum that is published and the others are true contributions.
    """

    value: Floats
    units: Integers
    largest: Floats
    second: Floats
    top: Floats | None = None
    """The sum of the n largest, where a rule looks at so many."""
    waived: Flags | None = None
    """Cells whose largest contributors agreed that they may be recognised."""
    full: Flags | None = None
    """Cells that hold everyone of their group."""
    owner: Integers | None = None
    """The number of the unit that contributes alone, or −1; units are numbered alike in all tables."""

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if column is not None and column.shape != self.value.shape:
                raise ValueError(f"{field.name} has one entry a cell")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of an office; None leaves a rule out.

    >>> rules = Rules(percent=10)
    >>> one = Contributions(value=np.array([100.0]), units=np.array([3]), largest=np.array([90.0]),
    ...                     second=np.array([8.0]))
    >>> found = rules.protection(one)
    >>> bool(found.sensitive[0]), float(found.up[0])  # 10 % of 90 less what the others hide
    (True, 7.0)
    """

    units: int | None = None
    """The least number of units of a cell that is shown."""
    count: float | None = None
    """The least count of a cell that is shown."""
    dominance: tuple[int, float] | None = None
    """(n, k): the n largest units have at most k % of a cell that is shown."""
    percent: float | None = None
    """p: nobody who contributes can estimate the largest contribution to within p %."""
    coalition: int = 1
    """How many contributors put together what they know, for `percent` and `prior`."""
    prior: tuple[float, float] | None = None
    """(p, q): nobody who knows all contributions to within q % can estimate the largest to within p %."""
    zeros: bool = False
    full: bool = False
    share: float = 30.0
    """For rules of units and counts: how far bounds are from the truth at least, in percent of it."""
    least: float = 1.0
    """The least distance of a bound from the truth: in whole numbers, 1 is what keeps them from being told."""

    def __post_init__(self) -> None:
        n, k = self.dominance or (1, 50.0)
        p, q = self.prior or (10.0, 100.0)
        for right, expected, found in (
            (self.units is None or self.units >= 1, "units ≥ 1", f"units = {self.units}"),
            (self.count is None or self.count > 0, "count > 0", f"count = {self.count}"),
            (n >= 1 and 0 < k <= 100, "dominance = [n, k] with n ≥ 1 and 0 < k ≤ 100", f"dominance = [{n}, {k}]"),
            (self.percent is None or 0 < self.percent <= 100, "0 < percent ≤ 100", f"percent = {self.percent}"),
            (self.coalition >= 1, "coalition ≥ 1", f"coalition = {self.coalition}"),
            (0 < p < q <= 100, "prior = [p, q] with 0 < p < q ≤ 100", f"prior = [{p}, {q}]"),
            (self.share >= 0 and self.least >= 0, "share ≥ 0 and least ≥ 0", f"{self.share} and {self.least}"),
        ):
            if not right:
                raise MethodError("the rules of sensitive cells", expected=expected, found=found, do="correct the rule")

    @property
    def top(self) -> int:
        """How many of the largest contributions the rules look at beyond two; 0 for none."""
        wanted = [self.dominance[0]] if self.dominance else []
        wanted += [self.coalition + 1] if self.percent is not None or self.prior else []
        beyond = {n for n in wanted if n > 2}
        if len(beyond) > 1:
            raise MethodError(
                "the rules of sensitive cells",
                expected="rules that look at the same number of largest contributors",
                found=f"{min(beyond)} and {max(beyond)}",
                do="let n of `dominance` be 1, 2 or `coalition` + 1",
            )
        return beyond.pop() if beyond else 0

    def protection(self, of: Contributions) -> "Protection":
        """Which cells are sensitive, and how far each bound has to be from the value."""
        found = _Found(of.value, self.least)
        shown = of.units > 0
        waived = np.zeros(len(of.value), dtype=bool) if of.waived is None else of.waived
        by_share = self.share / 100 * np.abs(of.value)
        if self.units is not None:
            found.add(Reason.UNITS, shown & (of.units < self.units) & ~waived, by_share, by_share)
        if self.count is not None:
            few = shown & (of.value < self.count) & ~waived
            found.add(Reason.COUNT, few, by_share, self.count - of.value)
        if self.dominance is not None:
            n, k = self.dominance
            over = self._top(of, n) * 100 / k - of.value
            found.add(Reason.DOMINANCE, shown & (over > 0) & ~waived, over, over)
        if self.percent is not None:
            over = self.percent / 100 * of.largest - (of.value - self._top(of, self.coalition + 1))
            found.add(Reason.PERCENT, shown & (over > 0) & ~waived, over, over)
        if self.prior is not None:
            p, q = self.prior
            over = p / q * of.largest - (of.value - self._top(of, self.coalition + 1))
            found.add(Reason.PRIOR, shown & (over > 0) & ~waived, over, over)
        none = np.zeros(len(of.value))
        if self.zeros:
            found.add(Reason.ZERO, of.value == 0, none, none)
        if self.full and of.full is not None:
            found.add(Reason.FULL, of.full & (of.value > 0), none, none)
        return found.protection(of)

    def _top(self, of: Contributions, n: int) -> Floats:
        if n <= 2:
            return of.largest if n == 1 else of.largest + of.second
        if of.top is None or n != self.top:
            raise ValueError(f"the sum of the {n} largest contributions is needed")
        return of.top


@dataclass(frozen=True, kw_only=True, eq=False)
class Protection:
    """What readers must not be able to work out: for every sensitive cell, bounds within `down` and `up` of it."""

    sensitive: Flags
    reasons: Integers
    """Bits of `Reason`."""
    down: Floats
    up: Floats
    owner: Integers
    """Who contributes alone to a cell and so knows it, or −1."""
    either: bool = False
    """Whether a bound on one side is enough, so that nobody can tell a cell exactly."""

    @staticmethod
    def joined(several: "Sequence[Protection]") -> "Protection":
        """All of several kinds of unit, or rules, about the same cells; the owner is that of the last which has one."""
        owner = several[0].owner
        for one in several[1:]:
            owner = np.where(one.owner >= 0, one.owner, owner)
        return Protection(
            sensitive=np.logical_or.reduce([one.sensitive for one in several]),
            reasons=np.bitwise_or.reduce([one.reasons for one in several]),
            down=np.maximum.reduce([one.down for one in several]),
            up=np.maximum.reduce([one.up for one in several]),
            owner=owner,
        )

    @staticmethod
    def over(system: System, tables: "Mapping[str, Protection]") -> "Protection":
        """The protection of all tables over the cells of their system; a cell of two tables needs what either does."""
        n = len(system)
        sensitive, reasons = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
        down, up, owner = np.zeros(n), np.zeros(n), np.full(n, -1, dtype=np.int64)
        for name, one in tables.items():
            at = system.places[name]
            sensitive[at] |= one.sensitive
            reasons[at] |= one.reasons
            down[at] = np.maximum(down[at], one.down)
            up[at] = np.maximum(up[at], one.up)
            owner[at] = np.where(one.owner >= 0, one.owner, owner[at])
        below, above = system.freedom
        return Protection(
            sensitive=sensitive,
            reasons=reasons,
            down=np.minimum(down, below),
            up=np.minimum(up, above),
            owner=owner,
        )


class _Found:
    """What rules find, gathered one after the other."""

    def __init__(self, value: Floats, least: float) -> None:
        self._value, self._least = value, least
        self._reasons = np.zeros(len(value), dtype=np.int64)
        self._down, self._up = np.zeros(len(value)), np.zeros(len(value))

    def add(self, reason: Reason, met: Flags, down: Floats, up: Floats) -> None:
        """Cells that a rule calls sensitive; every bound is at least the least distance away."""
        self._reasons[met] |= int(reason)
        self._down[met] = np.maximum(self._down[met], np.maximum(down[met], self._least))
        self._up[met] = np.maximum(self._up[met], np.maximum(up[met], self._least))

    def protection(self, of: Contributions) -> Protection:
        """All of it; nobody has to believe that a value is below zero."""
        alone = of.units == 1
        owner = np.full(len(self._value), -1, dtype=np.int64) if of.owner is None else np.where(alone, of.owner, -1)
        return Protection(
            sensitive=self._reasons > 0,
            reasons=self._reasons,
            down=np.where(self._value >= 0, np.minimum(self._down, self._value), self._down),
            up=self._up,
            owner=owner,
        )
