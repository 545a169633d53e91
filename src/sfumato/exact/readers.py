"""Readers who contribute alone to a cell and so know it: what is withheld has to hold against each of them too.

For a reader who knows the cells K, a sensitive cell is protected by a shift that leaves K as it is. A piece of a shift
that moves no cell of K is one. So is a mixture of two pieces that both move the sensitive cell the same way, and the
only cell of K that they move in opposite ways. `Readers` keeps the pairs that no pieces settle so far:
docs/methods/suppression.md has the argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR
from sfumato.exact.reduced import ANYBODY, Lesser
from sfumato.exact.rules import Protection
from sfumato.exact.search import Piece, Search, batches, together

_WIDE = 60
"""A piece with more readers than this says something of many cells, and little of any."""
_LONGEST, _LISTED = 60, 500_000
"""More open readers of a bound than this are not listed, but where few bounds are left: further pieces leave fewer."""
_BLOCK = 500
"""Bounds that are compared with all wide pieces at once."""
UP, DOWN, BOTH = 1, -1, 0
Ways = npt.NDArray[np.int8]
"""Directions: 1, −1 or 0."""
_NONE = np.zeros(0, dtype=np.int64)
NOBODY = Lesser(cell=_NONE, reader=_NONE, need=np.zeros(0))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lists:
    """A list of items for every number: those of k begin at starts[k]."""

    item: Integers
    starts: Integers

    def of(self, numbers: Integers) -> tuple[Integers, Integers]:
        """All items of some numbers: for each, which of the numbers, and the item."""
        which, place = _ranges(self.starts[numbers], self.starts[numbers + 1] - self.starts[numbers])
        return which, self.item[place]


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """Bounds that must not be known: above (1) or below (−1) the value of which cell, or both, and how far away."""

    cell: Integers
    side: Integers
    need: Floats
    only: Integers
    """The name of the only reader who is meant, or −1 for all."""

    def __len__(self) -> int:
        return len(self.cell)

    @classmethod
    def of(cls, search: Search, lesser: Lesser) -> "Bounds":
        """The bounds of all sensitive cells that are protected from readers who know nothing more.

        Both are one where a shift can go as far both ways. Those that may be less far from some reader stand apart.
        """
        protection = search.protection
        wanted = protection.sensitive & ~search.open
        needs = np.maximum(protection.up, protection.down)
        together = (protection.up > NEAR) & (protection.down > NEAR)
        together &= needs <= np.minimum(search.below, search.above) + NEAR
        together[lesser.cell] = False
        own = np.flatnonzero(wanted[lesser.cell] & (lesser.need > NEAR))
        cells = [np.flatnonzero(wanted & together)]
        cells += [np.flatnonzero(wanted & ~together & (one > NEAR)) for one in (protection.up, protection.down)]
        cell = np.concatenate([*cells, lesser.cell[own]])
        need = np.concatenate([needs[cells[0]], protection.up[cells[1]], protection.down[cells[2]], lesser.need[own]])
        side = np.repeat([BOTH, UP, DOWN, DOWN], [*map(len, cells), len(own)])
        only = np.concatenate([np.full(len(cell) - len(own), -1), lesser.reader[own]])
        order = np.argsort(cell, kind="stable")
        return cls(cell=cell[order], side=side[order], need=need[order], only=only[order])

    def apart(self, chosen: Flags, protection: Protection) -> "Bounds":
        """The same, with some that are both as two, the upper one first."""
        which = np.repeat(np.arange(len(self)), 1 + chosen)
        twice = chosen[which]
        side, cell = self.side[which], self.cell[which]
        side[twice] = np.tile([UP, DOWN], int(chosen.sum()))
        needs = np.where(side == UP, protection.up[cell], protection.down[cell])
        need = np.where(twice, needs, self.need[which])
        return Bounds(cell=cell, side=side, need=need, only=self.only[which])

    def met(self, pieces: Sequence[Piece]) -> "_Met":
        """Which pieces move which cells as far as they have to."""
        cells, by, number, both = together(pieces)
        first, last = np.searchsorted(self.cell, cells), np.searchsorted(self.cell, cells, side="right")
        entry, bound = _ranges(first, last - first)
        move = by[entry] * self.side[bound]  # 0 where only a piece will do that goes both ways
        fine = np.where(both[entry], np.abs(by[entry]), move) >= self.need[bound] - NEAR
        way = np.sign(by[entry]).astype(np.int8)
        return _Met(bound=bound[fine], piece=number[entry][fine], way=way[fine])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Met:
    """A bound, a piece that shows it, and the direction in which this moves the cell."""

    bound: Integers
    piece: Integers
    way: Ways

    def only(self, chosen: Flags) -> "_Met":
        return _Met(bound=self.bound[chosen], piece=self.piece[chosen], way=self.way[chosen])


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Bounds with readers against whom no piece protects them so far, in the order of bounds."""

    bound: Integers
    reader: Integers
    cell: Integers
    """The only cell of the reader that pieces for this bound move, or −1 if they move several."""
    way: Ways
    """Whether they move that cell as they move the sensitive one (1), or against it (−1)."""

    def __len__(self) -> int:
        return len(self.bound)

    def only(self, chosen: Flags | Integers) -> "Pairs":
        """Some of them."""
        return Pairs(bound=self.bound[chosen], reader=self.reader[chosen], cell=self.cell[chosen], way=self.way[chosen])

    def beside(self, other: "Pairs") -> "Pairs":
        """Both, in the order of bounds."""
        both = Pairs(
            bound=np.concatenate([self.bound, other.bound]),
            reader=np.concatenate([self.reader, other.reader]),
            cell=np.concatenate([self.cell, other.cell]),
            way=np.concatenate([self.way, other.way]),
        )
        return both.only(np.argsort(both.bound, kind="stable"))

    def of(self, bounds: Integers) -> tuple[Integers, Integers]:
        """All pairs of some bounds: for each, which of these bounds, and its place."""
        first, last = np.searchsorted(self.bound, bounds), np.searchsorted(self.bound, bounds, side="right")
        return _ranges(first, last - first)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Moved:
    """For every piece the readers who know a cell that it moves, in the order of `key`."""

    key: Integers
    """Piece times the number of readers, plus reader."""
    cell: Integers
    """The only such cell, or −1."""
    way: Ways
    """Where that goes."""

    @classmethod
    def by(cls, pieces: Sequence[Piece], knowers: _Lists, readers: int) -> "_Moved":
        cells, by, number, _ = together(pieces)
        known, reader = knowers.of(cells)
        cells, by = cells[known], by[known]
        key, first, times = np.unique(number[known] * readers + reader, return_index=True, return_counts=True)
        way = np.where(times == 1, np.sign(by[first]), 0).astype(np.int8)
        return cls(key=key, cell=np.where(times == 1, cells[first], -1), way=way)

    def settle(self, key: Integers, way: Ways, pairs: Pairs) -> Flags:
        """Which pairs a piece settles: each with its key, and the direction in which the piece moves its cell."""
        at = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        if not len(self.key):
            return np.ones(len(key), dtype=bool)
        moved = self.key[at] == key
        against = (self.cell[at] >= 0) & (self.cell[at] == pairs.cell) & (self.way[at] * way == -pairs.way)
        found: Flags = ~moved | against
        return found


class Readers:
    """For every bound of a sensitive cell: the readers against whom no pieces protect it so far."""

    def __init__(self, search: Search, known: tuple[Integers, Integers], lesser: Lesser = NOBODY) -> None:
        """Cells are `known` to readers: a cell and the reader's name, one in a row."""
        cells, owners = known
        self.names, reader = np.unique(owners, return_inverse=True)
        order = np.argsort(reader, kind="stable")
        self._cells = _Lists(item=cells[order], starts=np.searchsorted(reader[order], np.arange(len(self.names) + 1)))
        order = np.argsort(cells, kind="stable")
        starts = np.searchsorted(cells[order], np.arange(len(search.system) + 1))
        self._knowers = _Lists(item=reader[order], starts=starts)
        chosen = np.isin(lesser.reader, self.names)
        lesser = Lesser(cell=lesser.cell[chosen], reader=lesser.reader[chosen], need=lesser.need[chosen])
        self.known = np.diff(starts) > 0
        """Cells that some reader knows."""
        self._protection = search.protection
        self.bounds = Bounds.of(search, lesser)
        self.listed = self.bounds.only >= 0
        """Bounds whose open readers are all in `pairs`; of the others, all readers are open."""
        own = np.flatnonzero(self.listed)
        reader = np.searchsorted(self.names, self.bounds.only[own])
        self.pairs = Pairs(bound=own, reader=reader, cell=np.full(len(own), -1), way=np.zeros(len(own), dtype=np.int8))
        self._elsewhere = np.sort(lesser.cell * len(self) + np.searchsorted(self.names, lesser.reader))
        """Cells with readers whose lower bound stands apart."""
        self._wide: list[Piece] = []

    def __len__(self) -> int:
        return len(self.names)

    @property
    def open(self) -> Flags:
        """Bounds that some reader may know better than they should."""
        found = ~self.listed if len(self) else np.zeros(len(self.bounds), dtype=bool)
        found[self.pairs.bound] = True
        return found

    @property
    def left(self) -> int:
        """How much there is to settle: pairs, and many for a bound of which they are not listed."""
        return len(self.pairs) + 2 * _LONGEST * int((~self.listed).sum())

    def against(self, bound: int) -> list[int]:
        """The readers of a bound that are listed as open."""
        found: list[int] = self.pairs.reader[self.pairs.of(np.array([bound]))[1]].tolist()
        return found

    def known_by(self, readers: Integers) -> tuple[Integers, Integers]:
        """The cells that some readers know: for each, which of the readers, and the cell."""
        return self._cells.of(readers)

    def unsettled(self) -> Integers:
        """The cells and readers that are still open, one in a row; −1 stands for any reader."""
        anybody = np.unique(self.bounds.cell[self.open & ~self.listed])
        cells = np.concatenate([self.bounds.cell[self.pairs.bound], anybody])
        names = np.concatenate([self.names[self.pairs.reader], np.full(len(anybody), ANYBODY)])
        return np.unique(np.stack([cells, names], axis=1), axis=0)

    def absorb(self, pieces: Sequence[Piece]) -> Flags:
        """Note against whom some pieces protect; for each of them, whether that is news."""
        parts = [self._absorb(part) if len(self) else np.zeros(len(part), dtype=bool) for part in batches(pieces)]
        self._spare()
        return np.concatenate([np.zeros(0, dtype=bool), *parts])

    def split(self) -> None:
        """Let the upper and the lower bound of cells that are open stand for themselves."""
        chosen = self.open & (self.bounds.side == BOTH)
        place = np.cumsum(1 + chosen) - 1 - chosen
        twice = self.pairs.only(chosen[self.pairs.bound])
        once = replace(self.pairs, bound=place[self.pairs.bound])
        self.pairs = once.beside(replace(twice, bound=place[twice.bound] + 1))
        self.listed = np.repeat(self.listed, 1 + chosen)
        self.bounds = self.bounds.apart(chosen, self._protection)
        self._spare()

    def _spare(self) -> None:
        """Where a bound on one side is enough: leave out the readers from whom the other one is protected.

        Not those whose lower bound stands apart: from them, both are.
        """
        if not self._protection.either or not bool(np.any(self.bounds.side != BOTH)):
            return
        other = {side: self._listed_at(-side) for side in (UP, DOWN)}
        for one, at in other.items():
            self._as_other(one, at)
        cell, side = self.bounds.cell[self.pairs.bound], self.bounds.side[self.pairs.bound]
        key = cell * len(self) + self.pairs.reader
        gone = np.zeros(len(key), dtype=bool)
        for one, at in other.items():
            mine = np.flatnonzero((side == one) & (at[cell] >= 0))
            gone[mine] = ~np.isin(key[mine], key[side == -one]) & ~np.isin(key[mine], self._elsewhere)
        self.pairs = self.pairs.only(~gone)

    def _listed_at(self, side: int) -> Integers:
        """For every cell its bound on one side that is listed, or −1."""
        found = np.full(len(self._protection.sensitive), -1)
        bounds = np.flatnonzero((self.bounds.side == side) & (self.bounds.only < 0) & self.listed)
        found[self.bounds.cell[bounds]] = bounds
        return found

    def _as_other(self, side: int, other: Integers) -> None:
        """List the bounds on one side that nothing has shown so far, if the other is listed: with its open readers."""
        bounds = np.flatnonzero((self.bounds.side == side) & (self.bounds.only < 0) & ~self.listed)
        bounds = bounds[other[self.bounds.cell[bounds]] >= 0]
        cell = self.bounds.cell[bounds]
        which, place = self.pairs.of(other[cell])
        bound, reader = bounds[which], self.pairs.reader[place]
        if side == UP:
            cells = self._elsewhere // max(len(self), 1)
            first, last = np.searchsorted(cells, cell), np.searchsorted(cells, cell, side="right")
            which, place = _ranges(first, last - first)
            bound = np.concatenate([bound, bounds[which]])
            reader = np.concatenate([reader, self._elsewhere[place] % max(len(self), 1)])
        else:
            own = ~np.isin(self.bounds.cell[bound] * len(self) + reader, self._elsewhere)
            bound, reader = bound[own], reader[own]
        self.listed[bounds] = True
        none = np.zeros(len(bound), dtype=np.int8)
        self.pairs = self.pairs.beside(Pairs(bound=bound, reader=reader, cell=np.full(len(bound), -1), way=none))

    def _absorb(self, pieces: Sequence[Piece]) -> Flags:
        news = np.zeros(len(pieces), dtype=bool)
        met = self.bounds.met(pieces)
        moved = _Moved.by(pieces, self._knowers, len(self))
        readers = np.bincount(moved.key // len(self), minlength=len(pieces))
        wide = readers > _WIDE
        useful = np.unique(met.piece[wide[met.piece] & ~self.listed[met.bound]])
        self._wide += [pieces[at] for at in useful]
        news[useful] = True
        news[self._begin(met.only(~wide[met.piece] & ~self.listed[met.bound]), readers, moved)] = True
        news[self._rule_out(met, moved, wide)] = True
        return news

    def _begin(self, met: _Met, readers: Integers, moved: _Moved) -> Integers:
        """List readers of bounds that are met for the first time by pieces of few readers: the piece of the fewest."""
        order = np.lexsort((readers[met.piece], met.bound))
        bounds, first = np.unique(met.bound[order], return_index=True)
        piece, way = met.piece[order][first], met.way[order][first]
        start, end = np.searchsorted(moved.key, piece * len(self)), np.searchsorted(moved.key, (piece + 1) * len(self))
        which, place = _ranges(start, end - start)
        self._list(
            bounds,
            Pairs(
                bound=bounds[which],
                reader=moved.key[place] % len(self),
                cell=moved.cell[place],
                way=moved.way[place] * way[which],
            ),
        )
        return piece

    def _list(self, bounds: Integers, pairs: Pairs) -> None:
        """Say who is open of some bounds; wide pieces that came before settle some of them."""
        which, own = self._knowers.of(self.bounds.cell[bounds])
        themselves = np.isin(pairs.bound * len(self) + pairs.reader, bounds[which] * len(self) + own)
        apart = np.isin(self.bounds.cell[pairs.bound] * len(self) + pairs.reader, self._elsewhere)
        apart &= self.bounds.side[pairs.bound] == DOWN
        self.listed[bounds] = True
        self.pairs = self.pairs.beside(pairs.only(~themselves & ~apart))

    def _rule_out(self, met: _Met, moved: _Moved, wide: Flags) -> Integers:
        """Leave out the pairs that some pieces settle; the pieces that settled any."""
        gone, useful = np.zeros(len(self.pairs), dtype=bool), [_NONE]
        for piece in np.flatnonzero(wide).tolist():
            mine = met.only(met.piece == piece)
            way: Ways = np.zeros(len(self.bounds), dtype=np.int8)
            way[mine.bound] = mine.way
            place = np.flatnonzero((way[self.pairs.bound] != 0) & ~gone)
            some = self.pairs.only(place)
            new = place[moved.settle(piece * len(self) + some.reader, way[some.bound], some)]
            gone[new] = True
            useful.append(np.full(min(len(new), 1), piece))
        narrow = met.only(~wide[met.piece])
        which, place = self.pairs.of(narrow.bound)
        fresh = ~gone[place]
        which, place = which[fresh], place[fresh]
        some = self.pairs.only(place)
        settled = moved.settle(narrow.piece[which] * len(self) + some.reader, narrow.way[which], some)
        found, first = np.unique(place[settled], return_index=True)
        useful.append(np.unique(narrow.piece[which[settled][first]]))
        gone[found] = True
        self.pairs = self.pairs.only(~gone)
        return np.concatenate(useful)

    def compare(self, bounds: Integers | None = None) -> None:
        """List the open readers of bounds that only wide pieces show: of some, or of all with not too many readers."""
        todo = np.flatnonzero(~self.listed) if bounds is None else bounds[~self.listed[bounds]]
        longest = max(_LONGEST, _LISTED // max(len(todo), 1)) if bounds is None else len(self)
        for start in range(0, len(todo), _BLOCK):
            self._compare(todo[start : start + _BLOCK], longest)
        self._spare()
        if bool(self.listed.all()):
            self._wide = []

    def _compare(self, block: Integers, longest: int) -> None:
        cells = self.bounds.cell[block]
        near = [piece for piece in self._wide if piece.cells[0] <= cells[-1] and piece.cells[-1] >= cells[0]]
        if not near:
            return
        met = self.bounds.met(near)
        inside = np.full(len(self.bounds), -1)
        inside[block] = np.arange(len(block))
        met = met.only(inside[met.bound] >= 0)
        shown = np.zeros((len(block), len(near)), dtype=np.float32)
        shown[inside[met.bound], met.piece] = met.way
        times = np.abs(shown).sum(axis=1)
        moved = _Moved.by(near, self._knowers, len(self))
        names, column = np.unique(moved.key % len(self), return_inverse=True)
        moves = np.zeros((len(near), len(names)), dtype=np.float32)
        alone = self._cells.starts[names + 1] - self._cells.starts[names] == 1
        moves[moved.key // len(self), column] = np.where(alone[column], moved.way, 1)
        same = np.empty((len(block), len(names)), dtype=np.float32)
        same[:, alone] = shown @ moves[:, alone]
        same[:, ~alone] = np.abs(shown) @ moves[:, ~alone]
        left = (np.abs(same) == times[:, None]) & (times > 0)[:, None]
        fine = (times > 0) & (left.sum(axis=1) <= longest)
        which, place = np.nonzero(left & fine[:, None])
        cell = np.where(alone, self._cells.item[self._cells.starts[names]], -1)[place]
        way = np.where(cell >= 0, np.sign(same[which, place]), 0).astype(np.int8)
        self._list(block[fine], Pairs(bound=block[which], reader=names[place], cell=cell, way=way))


def _ranges(first: Integers, times: Integers) -> tuple[Integers, Integers]:
    """Ranges of numbers, one after the other: for each number, which range, and the number."""
    which = np.repeat(np.arange(len(times)), times)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(times) - times - first, times)
