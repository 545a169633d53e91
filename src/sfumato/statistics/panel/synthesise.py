"""Fill the cells of a table of pairs that are too small to publish, with draws from a model of the others."""

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers

_SPREAD = 4.0
"""The variance, as logarithms, that effects are thought to have: a class or pair is often many times another."""
_SPREAD_IN_PLACE = 0.25
"""The same for the effects of a class in one place, beside those it has in all: places mostly resemble each other."""
_ROUNDS = 100
_CLOSE = 1e-3
_STEPS = 4
"""Steps towards the best value of an effect in each round."""
_LEAST = 1e-30
"""Nothing is divided by less."""
_LONGEST = 64.0
"""The rounds are extrapolated by at most so many of them."""
_FAR = 40.0
"""No effect is above the exponential of this, or below its inverse."""
_BEYOND = 600.0
"""A cell that is fitted so far above the minimum is drawn as if it were so far: closer, probabilities vanish."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLayout:
    """Where the cells of a table of pairs stand: the class of both ends, and the place in all further dimensions."""

    first: Integers
    second: Integers
    other: Integers
    classes: int
    others: int
    directed: bool

    @classmethod
    def of(cls, positions: Integers, *, classes: int, others: int, directed: bool) -> "PairLayout":
        """The layout of cells at these positions of the product of first end, second end and further dimensions."""
        ends, other = np.divmod(positions, others)
        first, second = np.divmod(ends, classes)
        return cls(first=first, second=second, other=other, classes=classes, others=others, directed=directed)

    def among(self, cells: Flags) -> "PairLayout":
        """The layout of some of the cells."""
        return replace(self, first=self.first[cells], second=self.second[cells], other=self.other[cells])


def synthesised(
    values: Integers, *, keep: Flags, below: Flags, layout: PairLayout, minimum: int, words: NDArray[np.uint64]
) -> Integers:
    """The values, with every cell `below` the minimum drawn from what the cells to `keep` lead one to expect.

    The cells are Poisson with means fitted by `fitted`, given that they are below the minimum. One uniform word a cell
    of the table decides the draw. Nothing but published values and the minimum enters, so that the draws tell no more
    than suppressed cells would.
    """
    if len(words) != len(values):
        raise ValueError("every cell needs a word")
    if bool(np.any(keep & below)):
        raise ValueError("a cell is kept or below the minimum, not both")
    filled = values.copy()
    means = fitted(values, keep=keep, below=below, layout=layout, minimum=minimum)
    filled[below] = _drawn(means[below], words[below], minimum)
    return filled


def fitted(values: Integers, *, keep: Flags, below: Flags, layout: PairLayout, minimum: int) -> Floats:
    """The mean of every cell: effects of both ends and of the place in the further dimensions, times each other.

    There are effects of the first end, of the second, and of the place; of each end in each place; and of each pair of
    classes, the same in all places. In a table without further dimensions only pairs within one class, which are far
    more frequent than between two, have one of their own. Undirected pairs have the same effects for both ends.

    The effects fit the cells to keep, and the others as far as these are known to be below the minimum: each counts as
    what it is expected to be, over and over (EM with proportional fitting, extrapolated). An effect of which little is
    seen stays near one, the middle of a log-normal prior, so that classes none of whose pairs is kept get what others
    in their place, and they in other places, lead one to expect, and not nothing.

    What remains: nothing that is published tells what the cells below the minimum sum to. With a minimum of 3, their
    sum came out within a tenth in flows by quarter between the states of a large economy, within a third in simulated
    sparse tables, and two to four times too high in small ones most of whose classes hardly occur. With larger minima,
    the cells that reach them are the exceptions where pairs of classes differ much, and the others are expected to be
    too large, about three times in such tables. Where no pair between two classes is kept, or none within one, all of
    these are expected to be zero.
    """
    within = (layout.first == layout.second).astype(np.int64)
    used = keep | below
    reached = np.bincount(within, weights=np.where(keep, values, 0), minlength=2).astype(np.float64)
    level = _ratio(reached, np.bincount(within, weights=used, minlength=2).astype(np.float64))
    used &= level[within] > 0
    model, cells = _Model.of(values[used], keep[used], layout.among(used), minimum)
    logs = model.solved(np.log(level, out=np.zeros(2), where=level > 0))
    means = np.zeros(len(values))
    means[used] = np.bincount(cells, weights=model.weight * model.means(logs), minlength=int(used.sum()))
    return means


@dataclass(frozen=True, kw_only=True, eq=False)
class _Effect:
    """One kind of effect: which of them every cell has, how many there are, and how far from one they are thought."""

    level: Integers
    number: int
    spread: float | None = _SPREAD
    """The variance of their logarithms under the prior; without one they fit whatever there is."""

    def sums(self, amounts: Floats) -> Floats:
        """What cells add up to for each of them."""
        summed: Floats = np.bincount(self.level, weights=amounts, minlength=self.number).astype(np.float64)
        return summed

    def closer(self, logs: Floats, *, wanted: Floats, without: Floats) -> Floats:
        """Logarithms closer to the best ones, for the sums that are wanted and those that cells have without them.

        The best u solves wanted − without·eᵘ − u/spread = 0. The left side falls, ever faster, so that Newton's steps
        from beyond the solution never pass it.
        """
        base = np.maximum(without, _LEAST)
        if self.spread is None:
            return np.log(np.maximum(wanted, _LEAST) / base)
        beyond = np.maximum(np.log((wanted + 1) / base), 0.0)
        u = np.where(wanted - base * np.exp(logs) - logs / self.spread <= 0, logs, beyond)
        for _ in range(_STEPS):
            had = base * np.exp(u)
            u = u + (wanted - had - u / self.spread) / (had + 1 / self.spread)
        return u


@dataclass(frozen=True, kw_only=True, eq=False)
class _Model:
    """Cells whose means are products of effects; these are held as logarithms, all kinds after each other."""

    known: Flags
    value: Floats
    weight: Floats
    """What a cell counts for: undirected pairs are there in both orders, each as a half."""
    effects: tuple[_Effect, ...]
    minimum: int

    @classmethod
    def of(cls, values: Integers, keep: Flags, layout: PairLayout, minimum: int) -> "tuple[_Model, Integers]":
        """The model of a table, and the cell of the table that each of its cells stands for."""
        turned = np.flatnonzero((layout.first != layout.second) & (not layout.directed))
        cells = np.append(np.arange(len(values)), turned)
        one, two = np.append(layout.first, layout.second[turned]), np.append(layout.second, layout.first[turned])
        weight = np.ones(len(values))
        weight[turned] = 0.5
        model = cls(
            known=keep[cells],
            value=np.where(keep, values, 0)[cells].astype(np.float64),
            weight=weight[cells],
            effects=_effects(one, two, layout.other[cells], layout),
            minimum=minimum,
        )
        return model, cells

    def means(self, logs: Floats) -> Floats:
        """The mean of every cell."""
        total = np.zeros(len(self.value))
        for effect, part in zip(self.effects, self._parts(logs), strict=True):
            total += part[effect.level]
        means: Floats = np.exp(total)
        return means

    def solved(self, level: Floats) -> Floats:
        """The effects that fit, beginning with the level of pairs between classes and within them.

        Two rounds show where rounds lead to; a step as long as many of them follows, and a round to smooth it
        (Varadhan and Roland 2008).
        """
        logs = np.zeros(sum(effect.number for effect in self.effects))
        logs[:2] = level
        means = self.means(logs)
        for _ in range(_ROUNDS):
            before = means
            once = self.improved(logs)
            twice = self.improved(once)
            change, turn = once - logs, twice - 2 * once + logs
            rounds = np.sqrt(np.sum(change**2) / max(float(np.sum(turn**2)), np.finfo(np.float64).tiny))
            longer = float(np.clip(rounds, 1.0, _LONGEST))
            logs = self.improved(np.clip(logs + 2 * longer * change + longer**2 * turn, -_FAR, _FAR))
            means = self.means(logs)
            if bool(np.all(np.abs(means - before) <= _CLOSE * np.maximum(means, 1.0))):
                break
        return logs

    def improved(self, logs: Floats) -> Floats:
        """The effects after one round: what cells are expected to be, then every kind of effect in turn."""
        logs, mean, full = logs.copy(), self.means(logs), self.value.copy()
        full[~self.known] = _mean_below(mean[~self.known], self.minimum)
        full *= self.weight
        for effect, part in zip(self.effects, self._parts(logs), strict=True):
            without = effect.sums(self.weight * mean) / np.exp(part)
            new = np.clip(effect.closer(part, wanted=effect.sums(full), without=without), -_FAR, _FAR)
            mean *= np.exp(new - part)[effect.level]
            part[:] = new
        return logs

    def _parts(self, logs: Floats) -> list[Floats]:
        """The logarithms of each kind."""
        return np.split(logs, np.cumsum([effect.number for effect in self.effects])[:-1])


def _effects(one: Integers, two: Integers, other: Integers, layout: PairLayout) -> tuple[_Effect, ...]:
    """The effects of cells with these classes of their ends and places in the further dimensions."""
    classes, others = layout.classes, layout.others
    low, high = (one, two) if layout.directed else (np.minimum(one, two), np.maximum(one, two))
    apart = (one == two) | (others > 1)
    everywhere = (
        # The levels of pairs between classes and within them are not drawn to anything.
        _Effect(level=(one == two).astype(np.int64), number=2, spread=None),
        _Effect(level=other, number=others),
        _Effect(level=one, number=classes),
        _Effect(level=two, number=classes),
        _Effect(level=np.where(apart, low * classes + high + 1, 0), number=classes * classes + 1),
    )
    if others == 1:
        return everywhere
    in_places = (
        _Effect(level=e * others + other, number=classes * others, spread=_SPREAD_IN_PLACE) for e in (one, two)
    )
    return (*everywhere, *in_places)


def _mean_below(mean: Floats, minimum: int) -> Floats:
    """The mean of a Poisson variable that is known to be below the minimum."""
    mean = np.minimum(mean, minimum + _BEYOND)
    expected: Floats = (
        mean * scipy.special.pdtr(minimum - 2, mean) / scipy.special.pdtr(minimum - 1, mean)
        if minimum > 1
        else np.zeros_like(mean)
    )
    return expected


def _drawn(mean: Floats, words: NDArray[np.uint64], minimum: int) -> Integers:
    """Poisson variables below the minimum, by inverting their distribution function: the least k beyond the word."""
    mean = np.minimum(mean, minimum + _BEYOND)
    share = (words >> np.uint64(11)) * 2.0**-53 * scipy.special.pdtr(minimum - 1, mean)
    low, high = np.zeros(len(mean), dtype=np.int64), np.full(len(mean), minimum - 1, dtype=np.int64)
    while bool(np.any(low < high)):
        middle = (low + high) // 2
        enough = scipy.special.pdtr(middle, mean) > share
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return low


def _ratio(wanted: Floats, had: Floats) -> Floats:
    return np.divide(wanted, had, out=np.zeros_like(wanted), where=had > 0)
