"""Careers: the employers of each worker, one after the other, drawn one chunk of workers at a time."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Integers
from sfumato.economy.federal.mobility import Kind, Mobility

FURTHER: Final = (0.693, 0.217, 0.068, 0.022)
"""Of those with more than one employer, the shares who have one, two, three and four further ones."""
TRIES = 12
"""How often an employer someone had before is drawn anew before the career ends."""
PATIENCE = 4
"""After so many tries the worker looks everywhere: a small state may have no other employer."""


@dataclass(frozen=True, kw_only=True)
class Careers:
    """One row for each worker and employer, ordered by worker and then in the order of the career."""

    person: Integers
    """Position of the worker in the chunk."""
    employer: Integers
    employers: Integers
    """By worker: how many employers there were."""

    def __len__(self) -> int:
        return len(self.person)


def draw_careers(first: Integers, mobility: Mobility, rng: np.random.Generator) -> Careers:
    """The careers of workers with these first employers; nobody has the same employer twice."""
    movers = np.flatnonzero(rng.random(len(first)) < mobility.several[first])
    kind = (mobility.kinds[first[movers]] < rng.random(len(movers))[:, None]).sum(axis=1)
    further = 1 + np.searchsorted(np.cumsum(FURTHER)[:-1], rng.random(len(movers)), side="right")
    had = np.full((len(movers), 1 + len(FURTHER)), -1)
    had[:, 0] = first[movers]
    for turn in range(1, had.shape[1]):
        moving = np.flatnonzero((further >= turn) & (had[:, turn - 1] >= 0))
        for trial in range(TRIES):
            looking = kind[moving] if trial < PATIENCE else np.full(len(moving), Kind.ROAMING)
            found = mobility.next_employers(had[moving, turn - 1], looking, rng)
            new = (had[moving, :turn] != found[:, None]).all(axis=1)
            had[moving[new], turn] = found[new]
            moving = moving[~new]

    employers = np.ones(len(first), dtype=np.int64)
    employers[movers] = (had >= 0).sum(axis=1)
    person = np.repeat(np.arange(len(first)), employers)
    employer = first[person]
    several = employers[person] > 1
    employer[several] = had[had >= 0][np.repeat((had >= 0).sum(axis=1) > 1, (had >= 0).sum(axis=1))]
    return Careers(person=person, employer=employer, employers=employers)
