"""What intruders learn from a cube about records of which they know some codes: slivers, linked tables and records.

The attacks of Li and Krenzke (2020), section 1. An intruder knows the codes of a record in some attributes, those of an
occupation, say, and that no other record of the data has them. What is left to learn are its codes in the others.

- *Slivers*: the table by what is known and one more attribute, which has one record in the row of the target. Whether
  it is asked for directly, or as the difference of two larger tables, is the same in a cube, whose parts add up to the
  whole exactly.
- *Linked tables*: one such table for each attribute, linked by what is known. It succeeds when all codes are right.
- *Linked records*: the target is linked to one of the cells of the cube that agree with what is known, as in
  probabilistic record linkage.

Intruders pick what is most probable after they saw the noisy counts. One record in a cell with the count c and noise of
variance v makes it exp((2c − 1)/2v) times as likely, as far as the noise is normal; before, a code is as probable as it
is common among all records. Where the columns of a cube share their draws, the weighted count less the average weight
times the count has no noise, and is 0 in every cell of the row but the target's: intruders pick the largest, if that
gets them further. Each attack is judged beside the same one on unprotected counts, and beside a guess without
the cube: the commonest code, or combination of codes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes, summed
from sfumato.arrays import Flags, Floats, Integers
from sfumato.statistics.cube.attacks import without_shared_noise
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.cube_query import AnswerNoise, CubeQuery
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.section import COUNT, WEIGHTED, CubeSection

_Number = TypeVar("_Number", np.int64, np.float64)
SLIVERS, TABLES, RECORDS = "slivers", "linked tables", "linked records"
MOST_TARGETS = 2_000
"""Records that are attacked, spread over all that can be."""
_NO_NOISE = 1e-9
_AT_ONCE = 4_000_000
"""Cells that are looked at together."""


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """What one attack learns of records that are the only ones with what is known of them."""

    attack: str
    known: tuple[str, ...]
    """The attributes that the intruder knows."""
    targets: int
    """Records, and for slivers their codes in each other attribute."""
    unprotected: float
    """How many of them unprotected counts disclose."""
    disclosed: float
    """How many of them the published cube does; where several are as probable, one of them is picked."""
    guessed: float
    """How many are right by guessing the commonest."""


def linkage_attacks(published: PublishedCube, true: Cube, section: CubeSection) -> tuple[Linkage, ...]:
    """All three attacks, for each set of attributes that an intruder may know."""
    shared = section.draws == "shared" and WEIGHTED in published.cube.columns
    left = without_shared_noise(published.cube, published.figures).difference if shared else None
    return tuple(found for known in known_sets(true, section) for found in _attacks(published, true, known, left))


def known_sets(cube: Cube, section: CubeSection) -> list[tuple[str, ...]]:
    """The attributes that identify records; where these are not named, those with most codes, one after the other."""
    if section.identifying:
        return [section.identifying]
    order = sorted(cube.names, key=lambda name: -len(cube.dimensions[cube.names.index(name)]))
    return [tuple(order[:number]) for number in range(1, len(order))]


def _attacks(published: PublishedCube, true: Cube, known: tuple[str, ...], left: Floats | None) -> Iterator[Linkage]:
    counts, keys = true[COUNT], true.axes(known)
    others = tuple(axis for axis in range(counts.ndim) if axis not in keys)
    alone = np.argwhere(summed(counts, keys) == 1)
    at = alone[np.unique(np.linspace(0, max(len(alone) - 1, 0), min(len(alone), MOST_TARGETS)).astype(np.intp))]
    if not len(at):
        return
    common = {axis: summed(counts, (axis,)) for axis in others}
    noisy = _Noisy.of(published, common)

    def attacked(axes: Axes, at: NDArray[np.intp], usual: Integers) -> Floats:
        """How probably each target is disclosed: without protection, by guessing, and by all that is published."""
        plain = _rows(counts, keys, axes, at)
        scores: list[Integers | Floats] = [
            plain,
            np.broadcast_to(np.ravel(usual), plain.shape),
            noisy.scores(keys, axes, at),
        ]
        if left is not None:
            scores.append(np.abs(_rows(left, keys, axes, at)))
        return np.stack([picked(score, plain > 0) for score in scores])

    codes = np.stack([attacked((axis,), at, common[axis]) for axis in others])
    yield _linkage(SLIVERS, known, len(others) * len(at), codes.sum(axis=(0, 2)))
    yield _linkage(TABLES, known, len(at), codes.prod(axis=0).sum(axis=1))
    together = summed(counts, others)
    step = max(_AT_ONCE // together.size, 1)
    parts = [attacked(others, at[first : first + step], together) for first in range(0, len(at), step)]
    yield _linkage(RECORDS, known, len(at), np.concatenate(parts, axis=1).sum(axis=1))


def _linkage(attack: str, known: tuple[str, ...], targets: int, found: Floats) -> Linkage:
    unprotected, guessed, *ways = map(float, found)
    return Linkage(
        attack=attack, known=known, targets=targets, unprotected=unprotected, disclosed=max(ways), guessed=guessed
    )


@dataclass(frozen=True, kw_only=True)
class _Noisy:
    """The published counts, how much noise is in their sums, and how common codes are."""

    cube: Cube
    noise: AnswerNoise
    usual: Mapping[int, Floats]
    """For each attribute that is to be learnt, the logarithm of the share of each code."""

    @classmethod
    def of(cls, published: PublishedCube, common: Mapping[int, Integers]) -> "_Noisy":
        noise = AnswerNoise.of(published.cube.shape, published.figures.noise[COUNT], parts=published.cube.parts[COUNT])
        with np.errstate(divide="ignore"):
            usual = {axis: np.log(number / number.sum()) for axis, number in common.items()}
        return cls(cube=published.cube, noise=noise, usual=usual)

    def scores(self, keys: Axes, axes: Axes, at: NDArray[np.intp]) -> Floats:
        """How probable each code, or combination of codes, is after a look at the counts, as a logarithm."""
        query = CubeQuery.at(self.cube, tuple(sorted((*keys, *axes))), {})
        variance = float(self.noise.of_totals(query, np.zeros(())))
        seen = _rows(self.cube[COUNT], keys, axes, at) / self.cube.parts[COUNT]
        before = np.zeros(())
        for axis in axes:
            before = np.add.outer(before, self.usual[axis])
        after: Floats = np.ravel(before) + seen / max(variance, _NO_NOISE)
        return after


def picked(scores: Integers | Floats, right: Flags) -> Floats:
    """Of every row the probability that its largest score, one of them where there are several, is at a right place.

    >>> picked(np.array([[2, 2, 0], [0, 0, 1]]), np.array([[True, False, False], [True, False, False]]))
    array([0.5, 0. ])
    """
    largest = scores == scores.max(axis=1, keepdims=True)
    found: Floats = (largest & right).sum(axis=1) / largest.sum(axis=1)
    return found


def _rows(cells: NDArray[_Number], keys: Axes, others: Axes, at: NDArray[np.intp]) -> NDArray[_Number]:
    """The table over both, a row for each combination of keys that is asked for and a column for each of the others."""
    together = tuple(sorted((*keys, *others)))
    table = summed(cells, together)
    order = [together.index(axis) for axis in (*keys, *others)]
    # The rows are picked before they are laid out: a cube may be too large to be copied.
    rows: NDArray[_Number] = np.transpose(table, order)[tuple(at.T)].reshape(len(at), -1)
    return rows
