"""The search for pieces that protect every sensitive cell against every single reader: docs/methods/suppression.md.

First all cells at once, with signs that change from program to program: after ten of them hardly any two cells have
always moved the same way. Then programs in which moving the cells of open readers the same way once more costs
something. What is left needs further cells: many sensitive cells together, each with its readers held, and in the end
one by one.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from scipy.sparse.linalg import lsqr

from sfumato.arrays import Floats, Integers
from sfumato.exact.programs import NEAR, Window, pieces_of
from sfumato.exact.readers import Readers
from sfumato.exact.search import LAST_REWARD, Piece, Search

_WINDOW = 20_000
"""Cells of one program in which all sensitive cells are asked for."""
_MIXED = 8
"""Programs with signs by chance."""
_GUIDED = 30
"""Programs at most that know the open readers."""
_SLOW = 0.93
"""Another one is not worth it where the last one left more than this."""
_TIED = 1e-7
_SWEEPS = 12
_TOGETHER = (200, 20)
"""Bounds that are looked at together where cells are held or opened, ever fewer of those that are left."""
_OPENING = (1.0, 0.1, 0.01)
_AVOID = 0.5
"""What it costs in all to move the cells of a bound's readers as they moved before, beside 1 for the bound."""


class ReadersSearch:
    """Pieces for a search, until every bound holds against every single reader."""

    def __init__(
        self, search: Search, readers: Readers, stop: Callable[[], bool], progress: Callable[[float], None]
    ) -> None:
        self._search, self._readers, self._stop = search, readers, stop
        self._tell, self._number, self._share = progress, max(len(readers.bounds), 1), 0.0
        self._turn = 0

    def settle(self, *, opening: bool) -> None:
        """Look for pieces until nothing is open, or nothing is found; with `opening`, by further cells too."""
        if not len(self._readers):
            return
        for _ in range(_MIXED):
            if bool(self._readers.listed.all()) or not self._round(guided=False):
                break
        self._guide()
        for size in _TOGETHER:
            self._held(size, opening=opening)
            if opening:
                self._guide()
        self._alone(opening=opening)

    def _progress(self) -> None:
        self._share = max(self._share, 1 - int(self._readers.open.sum()) / self._number)
        self._tell(self._share)

    # All at once.

    def _guide(self) -> None:
        """Programs that know the open readers, as long as they settle some."""
        before = np.inf
        for _ in range(_GUIDED):
            self._readers.compare()
            left = self._readers.left
            if not left or left > _SLOW * before or not self._round(guided=True):
                return
            before = left

    def _round(self, *, guided: bool) -> bool:
        """One program for every window of withheld cells; whether there is anything left to do."""
        readers, search = self._readers, self._search
        self._turn += 1
        cells = np.flatnonzero(search.withheld & ~search.system.fixed)
        needs = self._needs(np.flatnonzero(readers.open), both=True)
        for window in self._windows(cells):
            wanted = window[needs[window] > 0]
            if self._stop():
                return False
            if len(wanted):
                self._ask(window, wanted, needs[wanted], guided=guided)
        self._progress()
        return bool(readers.open.any())

    def _needs(self, bounds: Integers, *, both: bool) -> Floats:
        """For every cell, how far it has to move for some bounds; 0 if it cannot both ways, where that is asked."""
        needs = np.zeros(len(self._search.system))
        np.maximum.at(needs, self._readers.bounds.cell[bounds], self._readers.bounds.need[bounds])
        if both:
            needs[needs > np.minimum(self._search.below, self._search.above) + NEAR] = 0.0
        return needs

    def _windows(self, cells: Integers) -> Iterator[Integers]:
        parts = -(-len(cells) // _WINDOW)
        size = -(-len(cells) // max(parts, 1))
        start = self._turn * 7919 % size if parts > 1 else 0
        for first, last in pairwise(sorted({0, *range(start, len(cells), max(size, 1)), len(cells)})):
            yield cells[first:last]

    def _ask(self, cells: Integers, wanted: Integers, needs: Floats, *, guided: bool) -> None:
        search, cap = self._search, np.minimum(self._search.below, self._search.above)
        window, place = Window.of(search.by_cell, cells, cap, cap), np.searchsorted(cells, wanted)
        signs, (rise, fall) = self._signs(window, place, needs, guided=guided)
        shift = window.shift(wanted=place, needs=signs * needs, cost=rise, fall=fall, reward=1.0)
        self._take(cells, shift, both=True)

    def _signs(
        self, window: Window, place: Integers, needs: Floats, *, guided: bool
    ) -> tuple[Floats, tuple[Floats, Floats]]:
        """Where each wanted cell goes: sums are balanced, and readers' cells go where they have not been.

        With it, what it costs every cell of the window to go up and down.
        """
        random, n = np.random.default_rng(self._turn), len(window.cells)
        mine, theirs, way, weight = self._links(window.cells) if guided else self._links(window.cells[:0])
        chosen = np.zeros(n)
        chosen[place] = needs
        matrix = window.matrix.tocsr()
        own = np.asarray(window.matrix.multiply(window.matrix).sum(axis=0)).ravel()[place] * needs
        signs = np.where(random.random(len(place)) < 0.5, 1.0, -1.0)
        typical = float(np.median(needs))
        for _ in range(_SWEEPS):
            chosen[place] = signs * needs
            tilt = ((window.matrix.T @ (matrix @ chosen))[place] - signs * own) / typical
            if guided:
                direction = np.sign(chosen)
                pressure = np.bincount(theirs, weight * way * direction[mine], minlength=n)
                pressure += np.bincount(mine, weight * way * direction[theirs], minlength=n)
                tilt = np.sign(tilt) + 2 * np.sign(pressure[place])
            turn = random.random(len(place)) < 0.5
            signs = np.where(turn & (tilt != 0), -np.sign(tilt), signs)
        if not guided and self._turn % 2 == 0:
            signs = np.where(random.random(len(place)) < 0.5, signs, -signs)
        chosen[place] = signs
        goes = way * chosen[mine]
        rise, fall = (np.bincount(theirs, _AVOID * weight * met, minlength=n) for met in (goes > 0, goes < 0))
        return signs, (rise.astype(np.float64), fall.astype(np.float64))

    def _links(self, cells: Integers) -> tuple[Integers, Integers, Integers, Floats]:
        """For open pairs with both cells in a window: their places, the way they went together, and a weight."""
        pairs, bounds = self._readers.pairs, self._readers.bounds
        weight = 1 / np.maximum(np.bincount(pairs.bound, minlength=len(bounds)), 1)[pairs.bound]
        mine = bounds.cell[pairs.bound]
        if not len(cells):
            none = np.zeros(0, dtype=np.int64)
            return none, none, none, np.zeros(0)
        inside = np.full(len(self._search.system), -1)
        inside[cells] = np.arange(len(cells))
        single = np.flatnonzero((pairs.cell >= 0) & (inside[mine] >= 0) & (inside[pairs.cell] >= 0))
        several = np.flatnonzero((pairs.cell < 0) & (inside[mine] >= 0))
        which, known = self._readers.known_by(pairs.reader[several])
        here = inside[known] >= 0
        which, known = several[which[here]], known[here]
        # Cells of a reader who knows several must not move at all: both ways cost.
        place = np.concatenate([single, which, which])
        theirs = np.concatenate([pairs.cell[single], known, known])
        way = np.concatenate([pairs.way[single], np.ones(len(which)), -np.ones(len(which))])
        return inside[mine[place]], inside[theirs], way, weight[place]

    def _take(self, cells: Integers, shift: Floats, *, both: bool) -> None:
        """Keep the pieces of a shift that say something new."""
        search = self._search
        whole = np.zeros(len(search.system))
        whole[cells] = shift
        moved, label = pieces_of(search.by_cell, whole)
        order = np.argsort(label, kind="stable")
        bounds = np.flatnonzero(np.diff(label[order], prepend=-1, append=-1))
        parts = [np.sort(moved[order[start:end]]) for start, end in pairwise(bounds)]
        pieces = [Piece(cells=own, by=whole[own], both=both) for own in parts]
        for at in np.flatnonzero(self._readers.absorb(pieces)):
            search.pieces.append(pieces[at])
            search.keep.append(pieces[at])
            search.withheld[pieces[at].cells] = True

    # Some together, with the readers held.

    def _held(self, size: int, *, opening: bool) -> None:
        """Programs for bounds whose readers' cells do not get in each other's way."""
        left = np.flatnonzero(self._readers.open)
        while len(left):
            if self._stop():
                return
            left = self._together(left, size, opening=opening)
            self._progress()

    def _together(self, todo: Integers, size: int, *, opening: bool) -> Integers:
        """One program for as many bounds as agree, so many at most; the others that are still open."""
        search, readers = self._search, self._readers
        cap = np.minimum(search.below, search.above)
        rises, falls, sign = cap > NEAR, cap > NEAR, np.zeros(len(cap))
        group: list[int] = []
        rest: list[int] = []
        for at, bound in enumerate(todo):
            if len(group) == size:
                rest += todo[at:].tolist()
                break
            cell = int(readers.bounds.cell[bound])
            fits = not sign[cell] and readers.bounds.need[bound] <= cap[cell] + NEAR
            for direction in (1, -1) if fits else ():
                up, down = self._held_by(bound, direction)
                may = rises[cell] if direction > 0 else falls[cell]
                if may and not bool(np.any(sign[up] > 0)) and not bool(np.any(sign[down] < 0)):
                    rises[up] = falls[down] = False
                    sign[cell] = direction
                    group.append(bound)
                    break
            else:
                rest.append(bound)
        if group:
            chosen = np.array(group)
            self._program(
                chosen, sign, np.where(rises, cap, 0.0), np.where(falls, cap, 0.0), both=True, opening=opening
            )
        left = np.array(rest if group else [], dtype=np.int64)
        return left[readers.open[left]]

    def _held_by(self, bound: int, direction: int) -> tuple[Integers, Integers]:
        """The cells that must not go up, and those that must not go down, while a sensitive cell goes somewhere."""
        pairs = self._readers.pairs
        _, place = pairs.of(np.array([bound]))
        way = pairs.way[place] * direction
        single = pairs.cell[place] >= 0
        _, known = self._readers.known_by(pairs.reader[place[~single]])
        own = pairs.cell[place]
        return np.concatenate([own[single & (way > 0)], known]), np.concatenate([own[single & (way < 0)], known])

    def _program(
        self,
        bounds: Integers,
        sign: Floats,
        rises: Floats,
        falls: Floats,
        *,
        both: bool,
        opening: bool,
        near: bool = True,
    ) -> None:
        """One program for some bounds within what cells may move."""
        search, readers = self._search, self._readers
        can = (search.withheld | opening) & ~search.system.fixed & ((rises > 0) | (falls > 0))
        needs = self._needs(bounds, both=False)
        wanted = np.unique(readers.bounds.cell[bounds])
        wanted = wanted[can[wanted]]
        if not len(wanted):
            return
        cells = search.around(wanted, can) if near else np.flatnonzero(can)
        window = Window.of(search.by_cell, cells, falls, rises)
        place, signed = np.searchsorted(cells, wanted), (sign * needs)[wanted]
        price = np.where(search.withheld[cells], 0.01, search.cost[cells] * 100) if opening else np.ones(len(cells))
        shift = window.shift(wanted=place, needs=signed, cost=price, reward=LAST_REWARD)
        for step in _OPENING if opening else ():
            weighted = price * search.typical / (np.abs(shift) + step * search.typical)
            shift = window.shift(wanted=place, needs=signed, cost=weighted, reward=LAST_REWARD)
        self._take(cells, shift, both=both)

    # One by one.

    def _alone(self, *, opening: bool) -> None:
        """Each bound that is left by itself: against all of its readers at once, and then one after the other."""
        self._readers.split()
        left = np.flatnonzero(self._readers.open)
        tied = self._tied() if len(left) else set()
        for bound in left.tolist():
            for may_open in (False, True) if opening else (False,):
                for both, near in ((True, True), (False, True), (False, False)):
                    self._single(bound, set() if may_open else tied, both=both, near=near, opening=may_open)
            if self._stop():
                return
            self._progress()

    def _single(self, bound: int, tied: set[tuple[int, int]], *, both: bool, near: bool, opening: bool) -> None:
        readers = self._readers
        if not readers.open[bound]:
            return
        every = readers.against(bound)
        if not any((bound, reader) in tied for reader in every):
            self._hold(bound, np.array(every, dtype=np.int64), both, near, opening)
            readers.compare(np.array([bound]))
        for reader in readers.against(bound):
            if self._stop():
                return
            if (bound, reader) not in tied and reader in readers.against(bound):
                self._hold(bound, np.array([reader]), both, near, opening)

    def _tied(self) -> set[tuple[int, int]]:
        """Open pairs that no shift of withheld cells can settle: the sensitive cell moves as the reader's cell does.

        Shifts by chance, whatever their size, move all that can move, and in a fixed proportion only what is tied.
        """
        search, pairs = self._search, self._readers.pairs
        cells = np.flatnonzero(search.withheld & ~search.system.fixed)
        matrix, random = search.by_cell[:, cells].T.tocsr(), np.random.default_rng(1)
        whole = np.zeros((3, len(search.system)))
        for shift in whole:
            chance = random.standard_normal(len(cells))
            shift[cells] = chance - matrix @ lsqr(matrix, chance, atol=1e-15, btol=1e-15, iter_lim=5_000)[0]
        if bool(np.abs(search.system.equations @ whole.T).max(initial=0.0) > _TIED):
            return set()  # not exact enough to say
        single = pairs.only(pairs.cell >= 0)
        mine, theirs = whole[:, self._readers.bounds.cell[single.bound]], whole[:, single.cell]
        apart = np.abs(mine[1:] * theirs[0] - theirs[1:] * mine[0]).max(axis=0)
        size = np.abs(mine).max(axis=0) * np.abs(theirs).max(axis=0)
        found = (apart <= _TIED * size) & (np.abs(theirs).max(axis=0) > 1e-4)
        return set(zip(single.bound[found].tolist(), single.reader[found].tolist(), strict=True))

    def _hold(self, bound: int, held: Integers, both: bool, near: bool, opening: bool) -> None:
        search = self._search
        cap = np.minimum(search.below, search.above)
        rises, falls = (cap.copy(), cap.copy()) if both else (search.above.copy(), search.below.copy())
        _, known = self._readers.known_by(held)
        rises[known] = falls[known] = 0.0
        sign = np.zeros(len(cap))
        sign[self._readers.bounds.cell[bound]] = self._readers.bounds.side[bound]
        self._program(np.array([bound]), sign, rises, falls, both=both, opening=opening, near=near)
