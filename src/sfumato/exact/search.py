"""The search for shifts that protect sensitive cells, and for the fewest cells that they need.

Sensitive cells are protected many at a time. First by cells that are withheld anyway, at no cost; then further cells
are opened by a program whose costs rise, again and again, for cells that hardly moved (re-weighted L1), so that few
cells move. `Search` keeps which piece of which shift protects which cell: docs/methods/suppression.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR, Shifts, Window, pieces_of, unmet
from sfumato.exact.rules import Protection
from sfumato.exact.system import System

LARGEST_WINDOW = 40_000
"""Cells of one linear program; larger systems are looked at in parts."""
_ROUNDS = 8
_SMALL, _FEW = 3_000, 60
"""Of a larger system only what is near is looked at, and for so few cells in any case."""
_TOGETHER = 150
"""Cells that are protected together in a large system."""
_TOGETHER_CELLS = 1_000_000
"""Entries of pieces that are looked at together."""
REWARD, LAST_REWARD = 1e3, 1e7
"""What a unit of protection is worth in cells of typical cost, and where everything has to be tried."""
_APART = 0.3
"""How far costs are off at most, in logarithms, where a pattern is begun anew."""
_STEPS = (30.0, 6.5, 1.4, 0.3)
"""How much a cell that hardly moves still costs less than one that does not, in typical needs; ever less."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A part of a shift that keeps all equations by itself."""

    cells: Integers
    by: Floats
    both: bool
    """Whether the opposite shift keeps all bounds too."""


def together(pieces: Sequence[Piece]) -> tuple[Integers, Floats, Integers, Flags]:
    """All pieces as columns: cell, shift, number of the piece, and whether the opposite holds too."""
    sizes = [len(piece.cells) for piece in pieces]
    return (
        np.concatenate([piece.cells for piece in pieces]),
        np.concatenate([piece.by for piece in pieces]),
        np.repeat(np.arange(len(pieces)), sizes),
        np.repeat(np.array([piece.both for piece in pieces], dtype=bool), sizes),
    )


def batches(pieces: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    """Pieces beside each other, so many at a time that memory is bounded."""
    ends = np.cumsum([len(piece.cells) for piece in pieces]) // _TOGETHER_CELLS
    cuts = np.flatnonzero(np.diff(ends, prepend=-1, append=-1)) if len(pieces) else np.zeros(0, dtype=np.int64)
    for start, end in pairwise(cuts.tolist()):
        yield pieces[start:end]


class Search:
    """What is withheld so far, what is protected so far, and by which piece."""

    def __init__(self, system: System, protection: Protection, cost: Floats, withheld: Flags) -> None:
        self.system, self.protection, self.cost = system, protection, cost
        self.by_cell = system.by_cell
        needs = np.maximum(protection.up, protection.down)
        self.far = 4 * float(np.abs(system.value).max(initial=1.0) + needs.max(initial=1.0))
        """No cell is moved further, though nothing else may hold it."""
        below, above = system.freedom
        self.below, self.above = np.minimum(below, self.far), np.minimum(above, self.far)
        self.withheld = withheld.copy()
        self.free = (protection.sensitive | system.hidden) & ~system.fixed
        """Cells that are withheld in any case."""
        self.withheld |= self.free | protection.sensitive
        self.pieces: list[Piece] = []
        self.keep: list[Piece] = []
        """Pieces that protect against single readers: they stay in any case."""
        n = len(system)
        self.piece_up, self.piece_down = np.full(n, -1), np.full(n, -1)
        wanted = protection.sensitive
        self.open_up = wanted & (protection.up > NEAR)
        self.open_down = wanted & (protection.down > NEAR)
        needs = needs[wanted]
        self.typical = float(np.median(needs[needs > 0])) if bool(np.any(needs > 0)) else 1.0
        self.jitter = 0
        self.turn = 0
        """How often signs were chosen: where nothing else decides, they alternate differently each time."""

    @property
    def open(self) -> Flags:
        """Cells that are not protected yet."""
        return self.open_up | self.open_down

    def clone(self) -> "Search":
        """A copy to try something with."""
        copy = Search.__new__(Search)
        copy.__dict__.update(self.__dict__)
        for name in ("withheld", "piece_up", "piece_down", "open_up", "open_down"):
            setattr(copy, name, getattr(self, name).copy())
        copy.pieces, copy.keep = list(self.pieces), list(self.keep)
        return copy

    def opened(self) -> Integers:
        """Cells that are withheld though they are not sensitive."""
        return np.flatnonzero(self.withheld & ~self.free & ~self.protection.sensitive)

    def spent(self) -> float:
        """The cost of all cells that are withheld though they are not sensitive."""
        return float(self.cost[self.opened()].sum())

    # What one program does.

    def attempt(
        self, cells: Integers, wanted: Integers, cost: Floats, *, both: bool, reward: float = 1.0, weigh: bool = True
    ) -> int:
        """Try to protect some cells by moving only some; the number of bounds that were protected.

        With `both`, a shift and its opposite have to be possible, and protect both bounds at once. With `weigh`, costs
        are changed until few cells move.
        """
        below, above = (np.minimum(self.below, self.above),) * 2 if both else (self.below, self.above)
        window = Window.of(self.by_cell, cells, below, above)
        place = np.searchsorted(cells, wanted)
        needs = self._needs(wanted, both=both)
        shifts = Shifts(window, place, needs)
        shift = shifts.cheapest(cost, reward=reward)
        missed = unmet(shift[place], needs)
        if both and bool(missed.any()):
            turned = np.where(missed, -needs, needs)
            others = Shifts(window, place, turned)
            other = others.cheapest(cost, reward=reward)
            if unmet(other[place], turned).sum() < missed.sum():
                shift, shifts = other, others
        if weigh and bool(cost.any()):
            for step in _STEPS:
                weighted = cost * self.typical / (np.abs(shift) + step * self.typical)
                shift = shifts.cheapest(weighted, reward=reward)
        return self.record(cells, shift, both=both)

    def _needs(self, wanted: Integers, *, both: bool) -> Floats:
        """What each wanted cell needs, with a sign: upwards where that leaves the equations more balanced."""
        self.turn += 1
        up, down = self.protection.up[wanted], self.protection.down[wanted]
        size = np.maximum(up, down)
        indptr, indices, data = self.by_cell.indptr, self.by_cell.indices, self.by_cell.data
        balance = np.zeros(self.by_cell.shape[0])
        signs = np.zeros(len(wanted))
        forced = np.zeros(len(wanted))
        if not both:
            forced = self.open_up[wanted].astype(float) - self.open_down[wanted].astype(float)
        for at in np.argsort(-size, kind="stable"):
            cell = wanted[at]
            rows = indices[indptr[cell] : indptr[cell + 1]]
            entries = data[indptr[cell] : indptr[cell + 1]]
            tilt = float(balance[rows] @ entries)
            chance = 1.0 if (int(cell) * 2654435761 + self.turn * 40503) >> 7 & 1 else -1.0
            signs[at] = forced[at] or (-np.sign(tilt) if tilt else chance)
            balance[rows] += entries * signs[at] * size[at]
        return signs * size if both else np.where(signs > 0, up, -down)

    def record(self, cells: Integers, shift: Floats, *, both: bool, anyway: int = -1) -> int:
        """Keep the pieces of a shift that protect something new, or move one cell; and withhold what they move."""
        whole = np.zeros(len(self.system))
        whole[cells] = shift
        moved, label = pieces_of(self.by_cell, whole)
        order = np.argsort(label, kind="stable")
        bounds = np.flatnonzero(np.diff(label[order], prepend=-1, append=-1))
        done = 0
        for start, end in pairwise(bounds):
            own = np.sort(moved[order[start:end]])
            new = self.take(Piece(cells=own, by=whole[own], both=both), anyway=bool(np.any(own == anyway)))
            if new:
                self.withheld[own] = True
            done += new
        return done

    def take(self, piece: Piece, *, anyway: bool = False) -> int:
        """Keep a piece if it protects something new; the number of bounds that it does."""
        cells = piece.cells
        up, down = (np.abs(piece.by),) * 2 if piece.both else (piece.by, -piece.by)
        met_up = self.open_up[cells] & (up >= self.protection.up[cells] - NEAR)
        met_down = self.open_down[cells] & (down >= self.protection.down[cells] - NEAR)
        if self.protection.either:
            met = met_up | met_down
            met_up, met_down = met & self.open_up[cells], met & self.open_down[cells]
        new_up, new_down = cells[met_up], cells[met_down]
        if len(new_up) or len(new_down) or anyway:
            self.piece_up[new_up] = self.piece_down[new_down] = len(self.pieces)
            self.open_up[new_up] = self.open_down[new_down] = False
            self.pieces.append(piece)
        return len(new_up) + len(new_down)

    # Protection by what is withheld, and by opening more.

    def cover(self, stop: Callable[[], bool]) -> None:
        """Protect what can be protected by cells that are withheld already."""
        for both, parts in ((True, (1,) * _ROUNDS), (True, (4,)), (False, (1,))):
            for part in parts:
                todo = self._todo(both=both)
                if not len(todo) or (part > 1 and (stop() or len(todo) < 4 * part)):
                    break
                done = 0
                for number in range(part):
                    for window, wanted in self.windows(self.withheld & ~self.system.fixed, todo[number::part]):
                        done += self.attempt(window, wanted, np.zeros(len(window)), both=both)
                if done < (0.4 if len(self.system) <= LARGEST_WINDOW else 0.15) * len(todo):
                    break

    def cover_alone(self) -> None:
        """The same for one bound after the other, which finds all there is; it ends at the first that is not met."""
        cells = np.flatnonzero(self.withheld & ~self.system.fixed)
        for cell in np.flatnonzero(self.open):
            while self.open[cell]:
                if not self.attempt(cells, np.array([cell]), np.zeros(len(cells)), both=False):
                    return

    def _todo(self, *, both: bool) -> Integers:
        """Cells that are open; with `both`, those that can go up and down by what they need."""
        if not both:
            return np.flatnonzero(self.open)
        needs = np.maximum(self.protection.up, self.protection.down)
        return np.flatnonzero(self.open & (needs <= np.minimum(self.below, self.above) + NEAR))

    def windows(self, can: Flags, todo: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Cells that may move with those of them that have to be protected, in parts that a program can take."""
        cells = np.flatnonzero(can)
        if len(todo) <= _FEW and len(cells) > _SMALL:
            yield self.around(todo, can), todo
        elif len(cells) <= LARGEST_WINDOW:
            yield cells, todo
        else:
            start = (self.turn * 7919) % (LARGEST_WINDOW // 2)
            cuts = [0, *range(start or LARGEST_WINDOW, len(cells), LARGEST_WINDOW), len(cells)]
            for begin, end in pairwise(cuts):
                part = cells[begin:end]
                wanted = todo[(todo >= part[0]) & (todo <= part[-1])]
                if len(wanted):
                    yield part, wanted

    def open_more(self, reward: float, *, both: bool, single: bool = False) -> int:
        """Withhold more cells, for those that cannot be protected otherwise; with `single`, for one after the other."""
        can, done, todo = ~self.system.fixed, 0, self._todo(both=both)
        everything = np.flatnonzero(can)
        together = 1 if single else len(todo) if len(everything) <= LARGEST_WINDOW else _TOGETHER
        if single and self.jitter:
            todo = todo[np.argsort(self._jitter(todo), kind="stable")]
        for group in _groups(todo, together):
            wanted = group[self.open[group]]
            if len(wanted):
                cells = everything if len(everything) <= _SMALL else self.around(wanted, can)
                cost = np.where(self.withheld[cells], 0.0, self.cost[cells] * self._jitter(cells))
                done += self.attempt(cells, wanted, cost, both=both, reward=reward)
        return done

    def _jitter(self, cells: Integers) -> Floats:
        """Factors that make one try differ from the next; 1 in the first."""
        if not self.jitter:
            return np.ones(len(cells))
        mixed = (cells.astype(np.uint64) + np.uint64(977 * self.jitter)) * np.uint64(0x9E3779B97F4A7C15)
        found: Floats = np.exp(_APART * ((mixed >> np.uint64(40)).astype(np.float64) / 2**23 - 1.0))
        return found

    def open_anything(self) -> int:
        """Look at all cells at once for what is left, together and then one by one: the last resort."""
        cells, todo = np.flatnonzero(~self.system.fixed), self._todo(both=False)
        cost = np.where(self.withheld[cells], 0.0, self.cost[cells])
        done = self.attempt(cells, todo, cost, both=False, reward=LAST_REWARD, weigh=False)
        if not done:
            done = sum(
                self.attempt(cells, one, cost, both=False, reward=LAST_REWARD, weigh=False) for one in _groups(todo, 1)
            )
        return done

    def around(self, wanted: Integers, can: Flags) -> Integers:
        """The cells near some others: few cheap and withheld ones of every equation, and those that close rings."""
        each = 12 if len(self.system) <= LARGEST_WINDOW else 3
        matrix, rows_of = self.system.equations, self.by_cell
        near, rows = np.unique(wanted), np.zeros(0, dtype=np.int64)
        last = near
        for _ in range(3):
            new = np.setdiff1d(rows_of[:, last].indices, rows)
            if not len(new):
                break
            rows = np.union1d(rows, new)
            part = matrix[new]
            line = np.repeat(np.arange(len(new)), np.diff(part.indptr))
            price = np.where(self.withheld[part.indices], 0.0, self.cost[part.indices])
            price[~can[part.indices]] = np.inf
            order = np.lexsort((part.indices, price, line))
            rank = np.arange(len(order)) - part.indptr[:-1][line[order]]
            cheap = order[(rank < each) & (price[order] < np.inf)]
            last = np.setdiff1d(part.indices[cheap], near)
            near = np.union1d(near, last)
            if len(near) > LARGEST_WINDOW // 2:
                break
        inside, times = np.unique(matrix[rows].indices, return_counts=True)
        near = np.union1d(near, inside[times == np.diff(rows_of.indptr)[inside]])
        return near[can[near]].astype(np.int64)

    # What is not needed.

    def drop(self, cells: Integers) -> None:
        """Show some cells again: whatever was protected by them is open again."""
        gone = np.zeros(len(self.system), dtype=bool)
        gone[cells] = True
        self.withheld[cells] = False
        broken = np.array([*(bool(gone[piece.cells].any()) for piece in self.pieces), False], dtype=bool)
        for opened, piece in ((self.open_up, self.piece_up), (self.open_down, self.piece_down)):
            lost = (piece >= 0) & broken[piece]
            opened[lost] = True
            piece[lost] = -1

    def shed(self) -> None:
        """Show every cell again that no piece in use moves, and forget the other pieces."""
        kept = {id(piece) for piece in self.keep}
        stays = [at for at, piece in enumerate(self.pieces) if id(piece) in kept]
        used = np.unique(np.concatenate([self.piece_up, self.piece_down, np.array(stays, dtype=np.int64)]))
        used = used[used >= 0]
        renumber = np.full(len(self.pieces) + 1, -1)
        renumber[used] = np.arange(len(used))
        self.pieces = [self.pieces[at] for at in used]
        self.piece_up, self.piece_down = renumber[self.piece_up], renumber[self.piece_down]
        self.withheld = self.free | self.protection.sensitive
        for piece in self.pieces:
            self.withheld[piece.cells] = True


def _groups(todo: Integers, size: int) -> Iterator[Integers]:
    """Cells beside each other, so many at a time."""
    for start in range(0, len(todo), max(size, 1)):
        yield todo[start : start + size]
