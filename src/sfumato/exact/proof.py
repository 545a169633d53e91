"""What a reader can work out from all that is published, for every sensitive cell; of any pattern, whoever made it.

A reader knows all equations, all cells that are published and the bounds of all others. The proof for a cell is a pair
of tables that agree with all that, in which the cell lies at or beyond the bounds that it needs. Many cells share a
pair; for those that none serves, two linear programs find the reader's exact bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR, Extremes, Window
from sfumato.exact.readers_search import settle_readers
from sfumato.exact.reduced import Reduced
from sfumato.exact.rules import Protection
from sfumato.exact.search import Piece, Search, batches, together
from sfumato.exact.shares import NO_SHARES, Shares
from sfumato.exact.system import System

_COVERED, _EVERYBODY = 0.2, 0.4
"""How much of the work is done when shared shifts, and programs for single cells, are found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """What was shown of a pattern."""

    low: Floats
    high: Floats
    """A reader's interval of every sensitive cell reaches from `low` to `high` at least."""
    exact: Flags
    """Where these are the reader's bounds themselves."""
    protected: Flags
    """Sensitive cells whose interval is as wide as they need."""
    unprotected: Flags
    """The other sensitive cells."""
    pairs: Integers
    """Cells with readers, who contribute alone to others and may know them better than they should; one in a row.

    The reader −1 stands for all of them, where the proof was stopped before."""
    readers: bool
    """Whether such readers were looked at."""
    pieces: tuple[Piece, ...]

    @property
    def holds(self) -> bool:
        """Whether nobody can work out what the rules forbid."""
        return not bool(self.unprotected.any()) and not len(self.pairs)


def valid(system: System, withheld: Flags, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that move no published cell, keep every equation and stay within the bounds."""
    return [piece for part in batches(pieces) for piece in _valid(system, withheld, part)]


def _valid(system: System, withheld: Flags, pieces: Sequence[Piece]) -> list[Piece]:
    below, above = system.freedom
    cells, by, number, both = together(pieces)
    moves = sparse.csr_matrix((by, (cells, number)), shape=(len(system), len(pieces)))
    scale = np.maximum(abs(moves).max(axis=0).toarray().ravel(), 1.0)
    left = abs(system.equations @ moves).max(axis=0).toarray().ravel() if system.equations.shape[0] else 0 * scale
    slack = 1e-6 * scale[number]
    wrong = ~(withheld | system.hidden)[cells] | (by < -below[cells] - slack) | (by > above[cells] + slack)
    wrong |= both & ((by > below[cells] + slack) | (by < -above[cells] - slack))
    good = left <= 1e-5 * scale
    good[number[wrong]] = False
    return [piece for piece, fine in zip(pieces, good, strict=True) if fine]


def reached(system: System, withheld: Flags, pieces: Sequence[Piece]) -> tuple[Floats, Floats]:
    """How far every cell goes down and up in tables that agree with all that is published; pieces are checked anew."""
    down, up = np.zeros(len(system)), np.zeros(len(system))
    for fine in batches(valid(system, withheld, pieces)):
        cells, by, _, both = together(fine)
        np.maximum.at(up, cells, np.where(both, np.abs(by), by))
        np.maximum.at(down, cells, np.where(both, np.abs(by), -by))
    return down, up


def prove(
    system: System,
    withheld: Flags,
    protection: Protection,
    *,
    pieces: Sequence[Piece] = (),
    readers: bool = True,
    shares: Shares = NO_SHARES,
    before: System | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[float], None] = lambda _share: None,
) -> Proof:
    """Show for every sensitive cell what a reader can work out, and what readers who know single cells can.

    Nothing is believed: pieces that came with the pattern are checked, and what they do not show is looked for anew. A
    sensitive cell that is published has no interval. `before` has the bounds that everybody knew before anything was
    published, where those of the system are closer: beside these, `shares` tell contributors what no rule can hide from
    them. If `stop` ends it early, what was not shown counts as open.
    """
    known = ~(withheld | system.hidden)
    seen = system.with_bounds(lower=np.where(known, system.value, -np.inf), upper=np.where(known, system.value, np.inf))
    down, up = reached(system, withheld, pieces)
    smaller = Reduced.of(seen)
    wanted = Protection(
        sensitive=protection.sensitive & withheld,
        reasons=protection.reasons,
        down=protection.down,
        up=protection.up,
        owner=np.where(withheld, protection.owner, -1),
        either=protection.either,
    )
    search = Search(
        smaller.system,
        smaller.protection(wanted),
        np.ones(len(smaller.system)),
        np.ones(len(smaller.system), dtype=bool),
    )
    given = [smaller.shrunk(piece) for piece in valid(system, withheld, pieces)]
    for piece in given:
        search.take(piece)
    exact = np.zeros(len(search.system), dtype=bool)
    if not stop():
        search.cover(stop)
        progress(_COVERED)
        exact = _alone(search, stop)
    progress(_EVERYBODY)
    down_small, up_small = reached(smaller.system, search.withheld, search.pieces)
    inside = smaller.belongs >= 0
    down[inside] = np.maximum(down[inside], down_small[smaller.belongs[inside]])
    up[inside] = np.maximum(up[inside], up_small[smaller.belongs[inside]])
    pairs = np.zeros((0, 2), dtype=np.int64)
    if readers:
        pairs = settle_readers(
            search,
            smaller,
            system if before is None else before,
            protection,
            shares,
            hidden=withheld,
            pieces=sorted([*given, *search.pieces], key=lambda piece: len(piece.cells)),
            given=bool(given),
            opening=False,
            stop=stop,
            progress=lambda share: progress(_EVERYBODY + (1 - _EVERYBODY) * share),
        )
    progress(1.0)
    wide = _met(protection, down, up) & (withheld | (protection.up + protection.down == 0))
    return Proof(
        low=system.value - down,
        high=system.value + up,
        exact=smaller.whole(exact),
        protected=protection.sensitive & wide,
        unprotected=protection.sensitive & ~wide,
        pairs=pairs,
        readers=readers,
        pieces=(*pieces, *(smaller.piece(piece) for piece in search.pieces)),
    )


def _met(protection: Protection, down: Floats, up: Floats) -> Flags:
    """Where a reader's bounds, so far below and above the value, are as far away as they have to be."""
    below, above = down >= protection.down - NEAR, up >= protection.up - NEAR
    if not protection.either:
        return below & above
    below &= protection.down > NEAR
    above &= protection.up > NEAR
    return below | above | (np.maximum(protection.down, protection.up) <= NEAR)


def _alone(search: Search, stop: Callable[[], bool]) -> Flags:
    """The exact bounds of cells that no shared shift protects, by programs of their own; which cells these are."""
    exact = np.zeros(len(search.system), dtype=bool)
    left = np.flatnonzero(search.open)
    if not len(left):
        return exact
    label = components(search.system, np.arange(len(search.system)))
    for number in np.unique(label[left]):
        cells = np.flatnonzero(label == number)
        programs = Extremes(Window.of(search.by_cell, cells, search.below, search.above))
        for cell in left[label[left] == number]:
            if stop():
                return exact
            for sign in (1, -1):
                shift = programs.furthest(int(np.searchsorted(cells, cell)), sign)
                search.record(cells, shift, both=False, anyway=int(cell))
            exact[cell] = True
    return exact


def components(system: System, cells: Integers) -> Integers:
    """For some cells, which of them are linked by equations: the number of the group of each."""
    matrix = system.by_cell[:, cells]
    both = sparse.bmat([[None, abs(matrix)], [abs(matrix).T, None]], format="csr")
    _, label = sparse.csgraph.connected_components(both, directed=False)
    found: Integers = label[matrix.shape[0] :].astype(np.int64)
    return found
