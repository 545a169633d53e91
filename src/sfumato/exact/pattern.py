"""Which cells are withheld beside sensitive ones, so that nobody can work these out: docs/methods/suppression.md."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR
from sfumato.exact.readers_search import settle_readers
from sfumato.exact.reduced import Reduced
from sfumato.exact.rules import Protection
from sfumato.exact.search import LAST_REWARD, REWARD, Piece, Search
from sfumato.exact.shares import NO_SHARES, Shares
from sfumato.exact.system import System

_SMALL = 1_500
"""Cells of a system in which every single cell is tried to be done without."""
_SHARES = (0.3, 0.1)
"""Of all cells that were opened, how many of the dearest are tried to be done without, at once."""
_DEAREST = 2
"""Turns that are about the dearest ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """Cells that are withheld, with shifts that show it is enough; `sfumato.exact.proof` checks them."""

    withheld: Flags
    pieces: tuple[Piece, ...]
    unprotected: Integers
    """Sensitive cells that nothing protects, even if all others are withheld: their table tells them anyway."""

    pairs: Integers
    """Sensitive cells with readers, who contribute alone to others, against whom nothing was found; one in a row.

    The reader −1 stands for all of them, where the search was stopped before."""

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

    def of(
        self,
        system: System,
        *,
        weights: Floats | None = None,
        before: Flags | None = None,
        among: Flags | None = None,
    ) -> Floats:
        """The cost of every cell; `weights` are factors, such as more for totals.

        The typical value is that `among` some cells: jobs and dollars in one system have one each.
        """
        size = np.abs(system.value)
        some = size > 0 if among is None else (size > 0) & among
        typical = float(np.median(size[some])) if bool(np.any(some)) else 1.0
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
    readers: bool = True,
    shares: Shares = NO_SHARES,
    tries: int = 1,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str, float], None] = lambda _words, _share: None,
) -> Pattern:
    """A pattern in which every sensitive cell is protected, with its proof.

    `start` is a pattern that is kept and repaired. With `readers`, it holds against those who contribute alone to a
    cell as well; who has `shares` in a sensitive cell knows that it is not below them. `tries` is how often dear cells
    are tried to be done without. Once `stop` says so, nothing is improved any more: what comes is proved all the same,
    and perhaps larger.
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
        search = _improved(search, tries, stop, progress)
    pairs = np.zeros((0, 2), dtype=np.int64)
    if readers:
        pairs = settle_readers(
            search,
            smaller,
            system,
            protection,
            shares,
            hidden=np.ones(len(system), dtype=bool),
            pieces=search.pieces,
            opening=True,
            stop=stop,
            progress=lambda share: progress("single readers", share),
        )
    progress("withheld", 1.0)
    lost = smaller.whole(search.open) | (smaller.belongs < 0)
    return Pattern(
        withheld=(smaller.whole(search.withheld) | protection.sensitive | begin) & ~system.hidden,
        pieces=tuple(smaller.piece(piece) for piece in search.pieces),
        unprotected=np.flatnonzero(lost & protection.sensitive),
        pairs=pairs,
    )


def repair(system: System, withheld: Flags, protection: Protection, *, cost: Floats | None = None) -> Pattern:
    """A pattern of whatever origin with more cells withheld, so that it holds; those that it has stay."""
    return withhold(system, protection, cost=cost, start=withheld)


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


def _improved(search: Search, tries: int, stop: Callable[[], bool], progress: Callable[[str, float], None]) -> Search:
    """A cheaper pattern, if one is found: dear cells shown again, and in small systems all begun anew."""
    small = len(search.system) <= _SMALL
    best = _pruned(search, stop) if small and tries else search
    number = tries * len(_SHARES)
    for turn in range(tries):
        for at, share in enumerate(_SHARES, start=turn * len(_SHARES)):
            if not stop():
                told = partial(_part_of, progress, at, number)
                best = _cheaper(best, _without_dear(best, share, turn, stop, told))
        if small and not stop():
            best = _cheaper(best, _pruned(_begun_anew(search, turn + 1, stop), stop))
    return best


def _part_of(progress: Callable[[str, float], None], at: int, number: int, _words: str, share: float) -> None:
    """Tell how far all tries are, while one of them protects anew what it opened."""
    progress("improving", (at + share) / number)


def _cheaper(one: Search, other: Search) -> Search:
    """The cheaper of two, if the other protects as much."""
    better = int(other.open.sum()) <= int(one.open.sum()) and other.spent() < one.spent() - NEAR
    return other if better else one


def _without_dear(
    search: Search, share: float, turn: int, stop: Callable[[], bool], told: Callable[[str, float], None]
) -> Search:
    """The same with some of the dearest cells shown again, and what they protected protected anew.

    Later turns show other cells again, as many, by chance.
    """
    trial = search.clone()
    trial.turn += 101 * turn
    opened = trial.opened()
    if turn < _DEAREST:
        order = np.argsort(-trial.cost[opened], kind="stable")
    else:
        order = np.random.default_rng(turn).permutation(len(opened))
    trial.drop(np.sort(opened[order][turn % 2 : max(int(share * len(opened)), 1)]))
    told("improving", 0.0)
    _protect(trial, stop, told)
    trial.shed()
    return trial


def _begun_anew(search: Search, turn: int, stop: Callable[[], bool]) -> Search:
    """Another pattern, for which cells were opened for one sensitive cell after the other, at costs a little off."""
    trial = search.clone()
    trial.jitter = turn
    trial.drop(trial.opened())
    trial.cover(stop)
    trial.open_more(LAST_REWARD, both=False, single=True)
    _protect(trial, stop, lambda _words, _share: None)
    trial.shed()
    return trial


def _pruned(search: Search, stop: Callable[[], bool]) -> Search:
    """The same without cells that are not needed, the dearest first."""
    opened = search.opened()
    for cell in opened[np.argsort(-search.cost[opened], kind="stable")]:
        if stop() or not search.withheld[cell]:
            continue
        trial, left = search.clone(), int(search.open.sum())
        trial.drop(np.array([cell]))
        trial.cover(stop)
        if int(trial.open.sum()) > left:
            trial.cover_alone()
        if int(trial.open.sum()) <= left:
            search = trial
            search.shed()
    return search
