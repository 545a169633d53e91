"""What readers of several kinds can find in a release with withheld cells; for the confidential report.

bounds        the interval of every withheld cell, by two linear programs each
insiders      what readers find who contribute alone to a cell, or own all of several cells
between       what two releases tell together: periods, or a coarser release beside a finer one
points        random tables that agree with all that is published: how narrow a good guess is

Tables of one period with other filters or levels need no attack of their own: they are put into one system.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import Extremes, Window
from sfumato.exact.proof import Proof, components, prove
from sfumato.exact.reduced import Reduced
from sfumato.exact.rules import Protection
from sfumato.exact.search import Piece
from sfumato.exact.system import System, joint


def bounds(
    system: System, withheld: Flags, *, known: Integers | None = None, stop: Callable[[], bool] = lambda: False
) -> tuple[Floats, Floats]:
    """A reader's exact interval of every cell: the value where it is published, or `known` to this reader.

    A cell without an upper bound has the largest value that the sums allow, or infinity. Cells that were not reached
    before `stop` have NaN.
    """
    shown = ~(withheld | system.hidden)
    if known is not None:
        shown[known] = True
    seen = system.with_bounds(lower=np.where(shown, system.value, -np.inf), upper=np.where(shown, system.value, np.inf))
    smaller = Reduced.of(seen)
    below, above = smaller.system.freedom
    far = 1e3 * max(float(np.abs(system.value).max(initial=1.0)), 1.0)
    number = len(smaller.system)
    low, high = np.full(number, np.nan), np.full(number, np.nan)
    label = components(smaller.system, np.arange(number)) if number else np.zeros(0, dtype=np.int64)
    for group in np.unique(label):
        cells = np.flatnonzero(label == group)
        programs = Extremes(Window.of(smaller.system.by_cell, cells, np.minimum(below, far), np.minimum(above, far)))
        for place, cell in enumerate(cells):
            if stop():
                break
            down, up = -programs.furthest(place, -1)[place], programs.furthest(place, 1)[place]
            low[cell] = -np.inf if down >= far * 0.99 else smaller.system.value[cell] - down
            high[cell] = np.inf if up >= far * 0.99 else smaller.system.value[cell] + up
    inside = smaller.belongs >= 0
    found_low, found_high = system.value.copy(), system.value.copy()
    found_low[inside], found_high[inside] = low[smaller.belongs[inside]], high[smaller.belongs[inside]]
    return found_low, found_high


def found(system: System, withheld: Flags, protection: Protection) -> Integers:
    """The sensitive cells that any reader knows better than the rules allow."""
    return np.flatnonzero(prove(system, withheld, protection, readers=False).unprotected)


def insiders(system: System, withheld: Flags, protection: Protection, *, pieces: Sequence[Piece] = ()) -> Integers:
    """Sensitive cells with the readers who know them better than the rules allow, because they own other cells."""
    return prove(system, withheld, protection, pieces=pieces).pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """One release: its system, what it withholds, and what it has to protect."""

    system: System
    withheld: Flags
    protection: Protection


def between(
    first: Shown, second: Shown, same: tuple[Integers, Integers], *, most_change: Floats | float = 0.0
) -> Proof:
    """What a reader works out who sees two releases and knows that some cells changed by no more than so much.

    The cells of the second follow on those of the first.
    """
    both = joint(first.system, second.system, same, most_change=most_change)
    changes = len(same[0])
    none = np.zeros(changes)
    parts = (first.protection, second.protection)
    protection = Protection(
        sensitive=np.concatenate([*(one.sensitive for one in parts), none > 0]),
        reasons=np.concatenate([*(one.reasons for one in parts), none.astype(np.int64)]),
        down=np.concatenate([*(one.down for one in parts), none]),
        up=np.concatenate([*(one.up for one in parts), none]),
        owner=np.concatenate([*(one.owner for one in parts), none.astype(np.int64) - 1]),
    )
    return prove(both, np.concatenate([first.withheld, second.withheld, none > 0]), protection, readers=False)


def points(system: System, pieces: Sequence[Piece], *, steps: int, uniform: Callable[[int], Floats]) -> Floats:
    """Random tables that agree with all that is published, one a row after the true one: hit and run along pieces.

    Every step goes along a piece of a proof to a random place between the bounds. `uniform` draws numbers in [0, 1).
    """
    walk = np.tile(system.value, (steps + 1, 1))
    if not pieces:
        return walk
    for step, (choice, place) in enumerate(uniform(2 * steps).reshape(steps, 2)):
        piece = pieces[int(choice * len(pieces))]
        at = walk[step, piece.cells]
        room_up = np.where(piece.by > 0, system.upper[piece.cells] - at, at - system.lower[piece.cells])
        room_down = np.where(piece.by > 0, at - system.lower[piece.cells], system.upper[piece.cells] - at)
        most = float(np.min(room_up / np.abs(piece.by)))
        least = -float(np.min(room_down / np.abs(piece.by)))
        far = 10 * float(np.abs(system.value).max(initial=1.0))
        least, most = max(least, -far), min(most, far)
        walk[step + 1] = walk[step]
        walk[step + 1, piece.cells] += piece.by * (least + place * (most - least))
    return walk
