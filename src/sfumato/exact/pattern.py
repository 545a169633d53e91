"""Which cells are withheld beside sensitive ones, so that nobody can work these out: docs/methods/suppression.md."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR
from sfumato.exact.reduced import Reduced
from sfumato.exact.rules import Protection
from sfumato.exact.search import LAST_REWARD, REWARD, Piece, Search
from sfumato.exact.system import System

_TRIES = 6
_SHARES = (0.5, 0.25, 0.12)
"""Of all cells that were opened, how many of the dearest are tried to be done without, at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """Cells that are withheld, with shifts that show it is enough; `sfumato.exact.proof` checks them."""

    withheld: Flags
    pieces: tuple[Piece, ...]
    unprotected: Integers
    """Sensitive cells that nothing protects, even if all others are withheld: their table tells them anyway."""

    @property
    def cells(self) -> int:
        """How many cells are withheld."""
        return int(self.withheld.sum())


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What it costs to withhold a cell that is not sensitive: so much for any, and so much for each unit of value."""

    cell: float = 1.0
    value: float = 0.0
    """In cells, for a cell of the typical value: 1 makes such a cell cost two."""
    kept: float = 0.01
    """The part of it that a cell costs which was withheld in the last period."""

    def of(self, system: System, *, weights: Floats | None = None, before: Flags | None = None) -> Floats:
        """The cost of every cell; `weights` are factors, such as more for totals."""
        size = np.abs(system.value)
        typical = float(np.median(size[size > 0])) if bool(np.any(size > 0)) else 1.0
        cost = self.cell + self.value * size / typical
        if weights is not None:
            cost = cost * weights
        if before is not None:
            cost = np.where(before, cost * self.kept, cost)
        found: Floats = np.where(system.hidden, 0.0, np.maximum(cost, 1e-9))
        return found


def withhold(
    system: System,
    protection: Protection,
    *,
    cost: Floats | None = None,
    start: Flags | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str, float], None] = lambda _words, _share: None,
) -> Pattern:
    """A pattern in which every sensitive cell is protected, with its proof.

    `start` is a pattern that is kept and repaired. Once `stop` says so, nothing is improved any more: what comes is
    proved all the same, and perhaps larger.
    """
    price = Costs().of(system) if cost is None else cost
    smaller = Reduced.of(system)
    known = smaller.protection(protection)
    costs = smaller.sums(price)
    shown = costs[~smaller.system.hidden]
    costs = costs / (float(np.median(shown)) if len(shown) else 1.0)
    begin = np.zeros(len(system), dtype=bool) if start is None else start
    search = Search(smaller.system, known, costs, smaller.any(begin))
    _protect(search, stop, progress)
    if start is None:
        search.shed()
        search = _improved(search, stop, progress)
    progress("withheld", 1.0)
    lost = smaller.whole(search.open) | (smaller.belongs < 0)
    return Pattern(
        withheld=(smaller.whole(search.withheld) | protection.sensitive | begin) & ~system.hidden,
        pieces=tuple(smaller.piece(piece) for piece in search.pieces),
        unprotected=np.flatnonzero(lost & protection.sensitive),
    )


def _protect(search: Search, stop: Callable[[], bool], progress: Callable[[str, float], None]) -> None:
    """Protect all that can be protected: by what is withheld, by cheap cells for many, by any for one alone."""
    number = max(int(search.open.sum()), 1)
    while bool(search.open.any()):
        search.cover(stop)
        progress("protecting", 1 - int(search.open.sum()) / number)
        left = int(search.open.sum())
        if not left:
            return
        done = search.open_more(REWARD, both=True)
        if done < 0.3 * left:
            done += search.open_more(LAST_REWARD, both=True, single=True)
            done += search.open_more(LAST_REWARD, both=False, single=True)
        if not done and not search.open_anything():
            return


def _improved(search: Search, stop: Callable[[], bool], progress: Callable[[str, float], None]) -> Search:
    """The same with dear cells shown again, where what they protected can be protected for less."""
    best, spent = search, search.spent()
    for turn in range(_TRIES):
        for share in _SHARES:
            if stop():
                return best
            progress("improving", (turn + 1) / _TRIES)
            opened = np.flatnonzero(best.withheld & ~best.free & ~best.protection.sensitive)
            if not len(opened):
                return best
            trial = best.clone()
            trial.turn += 101 * turn
            dear = opened[np.argsort(-trial.cost[opened], kind="stable")]
            trial.drop(np.sort(dear[turn % 2 : max(int(share * len(dear)), 1)]))
            _protect(trial, stop, lambda _words, _share: None)
            trial.shed()
            if not bool(trial.open.any() & ~best.open.any()) and trial.spent() < spent - NEAR:
                best, spent = trial, trial.spent()
    return best
