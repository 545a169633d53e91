"""Readers who contribute alone to a cell and so know it: what is withheld has to hold against each of them too.

For a reader u who knows the cells K, a sensitive cell is protected by a shift that leaves K as it is. A piece of a
shift does so for all readers but those who know one of the few cells that it moves. So two small pieces that share no
such reader protect a cell against everybody, one reader at a time; docs/methods/suppression.md has the argument.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR, Window, pieces_of
from sfumato.exact.search import LAST_REWARD, Piece, Search

_MANY = 40
"""A piece with more readers than this says too little about any of them to be remembered."""
_GROUPS = (50, 30, 15, 8, 4)
"""Cells that are looked at together, ever fewer of those that are left."""
_OPENING = (1.0, 0.1, 0.01)
UP, DOWN = 0, 1

Task = tuple[int, int]
"""A sensitive cell, and whether its upper or its lower bound is meant."""


class Readers:
    """For every bound of a sensitive cell: the readers against whom no piece protects it so far."""

    def __init__(self, search: Search, owner: Integers) -> None:
        self._search, self._owner = search, owner
        known = owner >= 0
        self._owned: dict[int, Integers] = {}
        cells = np.flatnonzero(known & search.withheld)
        order = cells[np.argsort(owner[cells], kind="stable")]
        names, starts = np.unique(owner[order], return_index=True)
        for name, start, end in zip(names, starts, np.append(starts, len(order))[1:], strict=True):
            self._owned[int(name)] = order[start:end]
        protection = search.protection
        self._turn = 0
        self._needs = (protection.up, protection.down)
        self.against: dict[Task, frozenset[int] | None] = {}
        """None where everybody is still to be looked at."""
        wanted = protection.sensitive & ~search.open
        for side in (UP, DOWN):
            self.against.update(
                {(int(cell), side): None for cell in np.flatnonzero(wanted & (self._needs[side] > NEAR))}
            )
        for piece in search.pieces:
            self.absorb(piece)

    @property
    def open(self) -> list[Task]:
        """Bounds that some reader may still know better than they should."""
        return [task for task, against in self.against.items() if against is None or against]

    def pairs(self) -> Integers:
        """The cells and readers that are still open, one in a row."""
        found = {
            (task[0], reader)
            for task in self.open
            for reader in _either(self.against[task], self._owned)
            if reader != self._owner[task[0]]
        }
        return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)

    def settle(self, stop: Callable[[], bool], *, opening: bool) -> None:
        """Look for pieces until every cell is protected against every reader; with `opening`, by further cells too."""
        if not self._owned:
            self.against = dict.fromkeys(self.against, frozenset())
            return
        for size in _GROUPS:
            self._turn += 1
            for group in _spread([task for task in self.open if self.against[task] is None], size):
                if stop():
                    return
                self._try(group, frozenset(), both=True)
            for group, held in self._apart(size):
                if stop():
                    return
                self._try(group, held, both=True)
        for task in self.open:
            if stop():
                return
            self._alone(task, opening=opening)

    def _alone(self, task: Task, *, opening: bool) -> None:
        """One bound by itself, against all readers at once or one after the other, near it and then anywhere."""
        most = len(self._owned)
        ways = [(False, True, True), (False, False, True), (False, False, False)]
        ways += [(True, True, True), (True, False, True), (True, False, False)] if opening else []
        for may_open, both, near in ways:
            against = self.against[task]
            if against == frozenset():
                return
            self._try([task], against or frozenset(), both=both, near=near, opening=may_open, most=most)
            for reader in sorted(self.against[task] or ()):
                if reader in (self.against[task] or ()):
                    self._try([task], frozenset([reader]), both=both, near=near, opening=may_open, most=most)

    def _apart(self, size: int) -> Iterator[tuple[list[Task], frozenset[int]]]:
        """Bounds that can be looked at together: none of their cells is known to a reader of another one."""
        left = [task for task in self.open if self.against[task]]
        while left:
            group: list[Task] = []
            held: set[int] = set()
            inside: set[int] = set()
            rest: list[Task] = []
            for task in left:
                against, own = self.against[task] or frozenset(), int(self._owner[task[0]])
                if len(group) < size and own not in held and not against & (inside | {own}):
                    group.append(task)
                    held |= against
                    inside.add(own)
                else:
                    rest.append(task)
            inside.discard(-1)
            yield group, frozenset(held)
            left = rest if len(rest) < len(left) else []

    def _try(
        self,
        tasks: list[Task],
        held: frozenset[int],
        *,
        both: bool,
        near: bool = True,
        opening: bool = False,
        most: int = _MANY,
    ) -> None:
        """One program for some bounds, with the cells of some readers held where they are."""
        search = self._search
        can = (search.withheld | opening) & ~search.system.fixed
        for reader in held:
            can[self._owned[reader]] = False
        wanted = np.unique(np.array([cell for cell, _ in tasks], dtype=np.int64))
        wanted = wanted[can[wanted]]
        if not len(wanted):
            return
        cells = search.around(wanted, can) if near else np.flatnonzero(can)
        below, above = (np.minimum(search.below, search.above),) * 2 if both else (search.below, search.above)
        window = Window.of(search.by_cell, cells, below, above)
        side = dict(tasks)
        needs = self._signed(wanted, side, both=both)
        price = np.where(search.withheld[cells], 0.01, search.cost[cells] * 100) if opening else np.ones(len(cells))
        place = np.searchsorted(cells, wanted)
        shift = window.shift(wanted=place, needs=needs, cost=price, reward=LAST_REWARD)
        for step in _OPENING if opening else ():
            weighted = price * search.typical / (np.abs(shift) + step * search.typical)
            shift = window.shift(wanted=place, needs=needs, cost=weighted, reward=LAST_REWARD)
        self._take(cells, shift, both=both, most=most)

    def _signed(self, wanted: Integers, side: dict[int, int], *, both: bool) -> Floats:
        up, down = self._needs[UP][wanted], self._needs[DOWN][wanted]
        if both:
            return np.where(
                (np.arange(len(wanted)) >> (self._turn // 2)) % 2 == self._turn % 2, 1.0, -1.0
            ) * np.maximum(up, down)
        upwards = np.array([side[int(cell)] == UP for cell in wanted])
        return np.where(upwards, up, -down)

    def _take(self, cells: Integers, shift: Floats, *, both: bool, most: int) -> None:
        """Keep the pieces of a shift that say something new."""
        whole = np.zeros(len(self._search.system))
        whole[cells] = shift
        moved, label = pieces_of(self._search.by_cell, whole)
        order = np.argsort(label, kind="stable")
        bounds = np.flatnonzero(np.diff(label[order], prepend=-1, append=-1))
        for start, end in pairwise(bounds):
            own = np.sort(moved[order[start:end]])
            piece = Piece(cells=own, by=whole[own], both=both)
            if self.absorb(piece, most=most):
                self._search.pieces.append(piece)
                self._search.keep.append(piece)
                new = own[~self._search.withheld[own]]
                self._search.withheld[own] = True
                for cell in new[self._owner[new] >= 0]:
                    reader = int(self._owner[cell])
                    self._owned[reader] = np.append(self._owned.get(reader, np.zeros(0, dtype=np.int64)), cell)

    def absorb(self, piece: Piece, most: int = _MANY) -> bool:
        """Note against whom a piece does not protect; whether that is news."""
        readers = frozenset(np.unique(self._owner[piece.cells]).tolist()) - {-1}
        if len(readers) > most:
            return False
        news = False
        for cell, side in self._protected(piece):
            against = self.against.get((cell, side), frozenset())
            now = readers - {int(self._owner[cell])} if against is None else against & readers
            if now != against:
                self.against[cell, side], news = now, True
        return news

    def _protected(self, piece: Piece) -> Iterable[Task]:
        up, down = (np.abs(piece.by),) * 2 if piece.both else (piece.by, -piece.by)
        for side, moves in ((UP, up), (DOWN, down)):
            met: Flags = moves >= self._needs[side][piece.cells] - NEAR
            yield from ((int(cell), side) for cell in piece.cells[met] if (int(cell), side) in self.against)


def _either(against: frozenset[int] | None, everyone: Iterable[int]) -> Iterable[int]:
    return everyone if against is None else against


def _spread(tasks: list[Task], size: int) -> Iterator[list[Task]]:
    """Bounds in groups of cells that lie far from each other."""
    cells = sorted({cell for cell, _ in tasks})
    number = max(len(cells) // size, 1)
    for start in range(number if cells else 0):
        yield [(cell, UP) for cell in cells[start::number]]
