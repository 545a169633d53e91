"""The search for pieces that protect every sensitive cell against every single reader: docs/methods/suppression.md.

First all cells at once, with signs that change from program to program: after ten of them hardly any two cells have
always moved the same way. Then programs in which moving the cells of open readers the same way once more costs
something. What is left needs further cells: many sensitive cells together, each with its readers held, and in the end
one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.sparse.linalg import lsqr

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR, Shifts, Window, pieces_of, unmet
from sfumato.exact.readers import DOWN, UP, Readers
from sfumato.exact.reduced import Reduced
from sfumato.exact.rules import Protection
from sfumato.exact.search import LAST_REWARD, Piece, Search
from sfumato.exact.shares import Shares, known_zeros
from sfumato.exact.system import System

_WINDOW = 20_000
"""Cells of one program in which all sensitive cells are asked for."""
_MIXED = 8
"""Programs with signs by chance."""
_GUIDED = 30
"""Programs at most that know the open readers."""
_SLOW, _PATIENCE = 0.93, 3
"""Others are not worth it where each of the last ones left more than this."""
_LEFT_OUT, _STILL = 0.5, 0.02
"""The share of cells that are not asked for, by chance, and what it costs beside 1 if they move all the same."""
_TIED = 1e-7
_SWEEPS = 12
_TOGETHER = (200, 20)
"""Bounds that are looked at together where cells are held, ever fewer of those that are left."""
_OPENED, _OPENED_TIMES = 20, 50
"""The same where further cells are opened, which fewer need if each program knows what the last ones opened."""
_OPENING = (1.0, 0.1, 0.01)
_AVOID = 0.5
"""What it costs in all to move the cells of a bound's readers as they moved before, beside 1 for the bound."""


_NEAR_AND_FAR = ((True, False), (False, False))
"""Whether only cells nearby may move, and whether further ones are opened."""


class ReadersSearch:
    """Pieces for a search, until every bound holds against every single reader."""

    def __init__(
        self, search: Search, readers: Readers, stop: Callable[[], bool], progress: Callable[[float], None]
    ) -> None:
        self._search, self._readers, self._stop = search, readers, stop
        self._tell, self._number, self._share = progress, max(len(readers.bounds), 1), 0.0
        self._turn = 0

    def settle(self, *, opening: bool) -> None:
        """Look for pieces until nothing is open, or nothing is found; with `opening`, by further cells too.

        First for those that go both ways and so serve both bounds of a cell; then for each bound by itself.
        """
        if not len(self._readers):
            return
        self._all_at_once(sided=False)
        self._readers.split()
        self._all_at_once(sided=True)
        for size in _TOGETHER:
            if not opening or self._search.protection.either:
                self._held(size, opening=False)
            if opening:
                self._held(max(_OPENED, int(self._readers.open.sum()) // _OPENED_TIMES), opening=True)
                self._guide(sided=True)
        self._alone(opening=opening)

    def _progress(self) -> None:
        self._share = max(self._share, 1 - int(self._readers.open.sum()) / self._number)
        self._tell(self._share)

    # All at once.

    def _all_at_once(self, *, sided: bool) -> None:
        for _ in range(_MIXED):
            if bool(self._readers.listed.all()) or not self._round(guided=False, sided=sided):
                break
        self._guide(sided=sided)

    def _guide(self, *, sided: bool) -> None:
        """Programs that know the open readers, as long as they settle some."""
        before = np.inf
        for turn in range(_GUIDED):
            self._readers.compare()
            left = self._readers.left
            if turn % _PATIENCE == 0:
                if left > _SLOW**_PATIENCE * before:
                    return
                before = left
            if not left or not self._round(guided=True, sided=sided):
                return

    def _round(self, *, guided: bool, sided: bool) -> bool:
        """One program for every window of withheld cells; whether there is anything left to do."""
        readers, search = self._readers, self._search
        self._turn += 1
        needs, sides = self._wanted(np.flatnonzero(readers.open))
        if sided:  # readers' cells that are not asked for stay in place, if they can
            needs[np.random.default_rng(self._turn).random(len(needs)) < _LEFT_OUT] = 0.0
        else:
            needs[needs > np.minimum(search.below, search.above) + NEAR] = 0.0
        for window in self._windows(np.flatnonzero(search.withheld & ~search.system.fixed)):
            if self._stop():
                return False
            if bool(needs[window].any()):
                self._ask(window, needs[window], sides[window], guided=guided, sided=sided)
        self._progress()
        return bool(readers.open.any())

    def _wanted(self, bounds: Integers) -> tuple[Floats, Integers]:
        """For every cell, how far it has to move for some bounds, and whether up or down; 0 where both will do."""
        which, needs = self._readers.bounds, np.zeros(len(self._search.system))
        np.maximum.at(needs, which.cell[bounds], which.need[bounds])
        sides = np.zeros((2, len(needs)), dtype=np.int64)
        sides[0, which.cell[bounds[which.side[bounds] != DOWN]]] = 1
        sides[1, which.cell[bounds[which.side[bounds] != UP]]] = 1
        return needs, sides[0] - sides[1]

    def _windows(self, cells: Integers) -> Iterator[Integers]:
        parts = -(-len(cells) // _WINDOW)
        size = -(-len(cells) // max(parts, 1))
        start = self._turn * 7919 % size if parts > 1 else 0
        for first, last in pairwise(sorted({0, *range(start, len(cells), max(size, 1)), len(cells)})):
            yield cells[first:last]

    def _ask(self, cells: Integers, needs: Floats, sides: Integers, *, guided: bool, sided: bool) -> None:
        search, cap = self._search, np.minimum(self._search.below, self._search.above)
        window = Window.of(search.by_cell, cells, *((search.below, search.above) if sided else (cap, cap)))
        place = np.flatnonzero(needs)
        signs, (rise, fall) = self._signs(window, place, needs[place], sides[place], guided=guided)
        still = np.where(self._readers.known[cells] & (needs == 0), _STILL, 0.0) if sided else np.zeros(len(cells))
        shift = Shifts(window, place, signs * needs[place]).cheapest(rise + still, fall=fall + still, reward=1.0)
        self._take(cells, shift)

    def _signs(
        self, window: Window, place: Integers, needs: Floats, sides: Integers, *, guided: bool
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
        free = sides == 0
        signs = np.where(free, np.where(random.random(len(place)) < 0.5, 1.0, -1.0), sides)
        typical = float(np.median(needs))
        for _ in range(_SWEEPS if bool(free.any()) else 0):
            chosen[place] = signs * needs
            tilt = ((window.matrix.T @ (matrix @ chosen))[place] - signs * own) / typical
            if guided:
                direction = np.sign(chosen)
                pressure = np.bincount(theirs, weight * way * direction[mine], minlength=n)
                pressure += np.bincount(mine, weight * way * direction[theirs], minlength=n)
                tilt = np.sign(tilt) + 2 * np.sign(pressure[place])
            turn = free & (random.random(len(place)) < 0.5)
            signs = np.where(turn & (tilt != 0), -np.sign(tilt), signs)
        if not guided and self._turn % 2 == 0:
            signs = np.where(free & (random.random(len(place)) < 0.5), -signs, signs)
        chosen[:] = 0.0
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

    def _take(self, cells: Integers, shift: Floats) -> None:
        """Keep the pieces of a shift that say something new."""
        search = self._search
        whole = np.zeros(len(search.system))
        whole[cells] = shift
        moved, label = pieces_of(search.by_cell, whole)
        order = np.argsort(label, kind="stable")
        bounds = np.flatnonzero(np.diff(label[order], prepend=-1, append=-1))
        parts = [np.sort(moved[order[start:end]]) for start, end in pairwise(bounds)]
        turned = np.abs(whole) <= np.minimum(search.below, search.above) + NEAR / 2
        pieces = [Piece(cells=own, by=whole[own], both=bool(turned[own].all())) for own in parts]
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
        rises, falls, sign = search.above.copy(), search.below.copy(), np.zeros(len(search.below))
        group: list[int] = []
        rest: list[int] = []
        for at, bound in enumerate(todo):
            if len(group) == size:
                rest += todo[at:].tolist()
                break
            cell, side = int(readers.bounds.cell[bound]), int(readers.bounds.side[bound])
            room = rises[cell] if side == UP else falls[cell]
            up, down = self._held_by(bound, side)
            crossed = bool(np.any(sign[up] > 0)) or bool(np.any(sign[down] < 0))
            if sign[cell] or crossed or room < readers.bounds.need[bound] - NEAR:
                rest.append(bound)
                continue
            rises[up] = falls[down] = 0.0
            sign[cell] = side
            group.append(bound)
        if group:
            self._program(np.array(group), rises, falls, opening=opening)
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

    def _program(self, bounds: Integers, rises: Floats, falls: Floats, *, opening: bool, near: bool = True) -> None:
        """One program for some bounds of different cells within what cells may move."""
        search, readers = self._search, self._readers
        can = (search.withheld | opening) & ~search.system.fixed & ((rises > 0) | (falls > 0))
        needs, sides = self._wanted(bounds)
        wanted = np.unique(readers.bounds.cell[bounds])
        wanted = wanted[can[wanted]]
        if not len(wanted):
            return
        cells = search.around(wanted, can) if near else np.flatnonzero(can)
        place, signed = np.searchsorted(cells, wanted), (sides * needs)[wanted]
        price = np.where(search.withheld[cells], 0.01, search.cost[cells] * 100) if opening else np.ones(len(cells))
        shifts = Shifts(Window.of(search.by_cell, cells, falls, rises), place, signed)
        shift = shifts.cheapest(price, reward=LAST_REWARD)
        if bool(unmet(shift[place], signed).all()):
            return
        for step in _OPENING if opening else ():
            weighted = price * search.typical / (np.abs(shift) + step * search.typical)
            shift = shifts.cheapest(weighted, reward=LAST_REWARD)
        self._take(cells, shift)

    # One by one.

    def _alone(self, *, opening: bool) -> None:
        """Each bound that is left by itself: against all of its readers at once, and then one after the other."""
        left = np.flatnonzero(self._readers.open).tolist()
        tied = self._tied() if left else set()
        for bound in left:
            for near, may_open in ((True, False), (True, True), (False, True)) if opening else _NEAR_AND_FAR:
                vain = {reader for reader in self._readers.against(bound) if self._in_vain(bound, reader, may_open)}
                vain |= set() if may_open else {reader for one, reader in tied if one == bound}
                self._single(bound, vain, near=near, opening=may_open)
            if self._stop():
                return
            self._progress()

    def _single(self, bound: int, vain: set[int], *, near: bool, opening: bool) -> None:
        readers = self._readers
        if not readers.open[bound]:
            return
        every = sorted(set(readers.against(bound)) - vain)
        if every or not readers.listed[bound]:
            self._hold(bound, every, near=near, opening=opening)
            readers.compare(np.array([bound]))
        for reader in readers.against(bound):
            if self._stop():
                return
            if reader not in vain and [reader] != every and reader in readers.against(bound):
                self._hold(bound, [reader], near=near, opening=opening)

    def _in_vain(self, bound: int, reader: int, opening: bool) -> bool:
        """Whether a single sum says that a cell cannot move as far as it has to while a reader's cells stay."""
        search, bounds = self._search, self._readers.bounds
        cell, known = bounds.cell[bound], self._readers.known_by(np.array([reader]))[1]
        for row in search.by_cell[:, [cell]].indices:
            line = search.system.equations[[row]]
            own = float(line.data[line.indices == cell][0])
            rises = line.data * own * bounds.side[bound] < 0
            room = np.where(rises, search.above[line.indices], search.below[line.indices]) * np.abs(line.data)
            room[~(search.withheld[line.indices] | opening) | np.isin(line.indices, known)] = 0.0
            if room[line.indices != cell].sum() < bounds.need[bound] * abs(own) - NEAR:
                return True
        return False

    def _hold(self, bound: int, held: list[int], *, near: bool, opening: bool) -> None:
        _, known = self._readers.known_by(np.array(held, dtype=np.int64))
        rises, falls = self._search.above.copy(), self._search.below.copy()
        rises[known] = falls[known] = 0.0
        self._program(np.array([bound]), rises, falls, opening=opening, near=near)

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


def settle_readers(
    search: Search,
    smaller: Reduced,
    system: System,
    protection: Protection,
    shares: Shares,
    *,
    hidden: Flags,
    pieces: Sequence[Piece],
    given: bool = False,
    opening: bool,
    stop: Callable[[], bool],
    progress: Callable[[float], None],
) -> Integers:
    """Look for pieces that hold off single readers; sensitive cells with the readers who are left, one in a row.

    Cells that are `hidden` have readers who know them. Pieces that were `given` may show each bound by itself. Who is
    left may only know what no rule can ask to be hidden: programs say so, and the search begins anew.
    """
    wanted = replace(protection, sensitive=protection.sensitive & hidden, owner=np.where(hidden, protection.owner, -1))
    known, pairs = shares.with_sums(system, protection), np.zeros((0, 2), dtype=np.int64)
    for last in (False, True):
        lesser = smaller.lesser(known, wanted, system.value)
        against = Readers(search, smaller.knowers(wanted.owner), lesser)
        against.absorb(pieces)
        if not opening:
            against.compare()
        if given:
            against.split()
            against.absorb(pieces)
            against.compare()
        ReadersSearch(search, against, stop, progress).settle(opening=opening)
        pairs = smaller.pairs(against.unsettled(), wanted)
        pairs = pairs[~known_zeros(system, wanted, pairs)]  # cells that are published tell zeros, and count
        if last or not len(pairs):
            break
        more = known.with_programs(system, protection, pairs, stop=stop)
        if len(more) == len(known):
            break
        known, pieces = more, [*pieces, *search.pieces]
    return pairs
