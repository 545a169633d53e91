"""Spells: from which quarter to which each worker was with each employer.

The workforce is stationary: as many leave as come, so that every quarter has about as many workers as any other. Some
were there before the first quarter and some stay beyond the last. Within the time a worker is there, the employers
follow each other; most workers leave one and join the next in the same quarter.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.economy.federal.careers import Careers

LEAVING = 0.0258
"""How likely a worker leaves the workforce in a quarter: at 52 quarters 22.6 rows a worker, as published."""
GAP: Final = 0.15
GAPS: Final = (1, 4)
"""How likely the next employer is joined later than in the quarter of leaving, and by how many quarters."""
BOTH: Final = 0.12
OVERLAPS: Final = (2, 8)
"""How likely the former employer is kept beside the next, and for how many quarters."""
RECALL: Final = 0.06
ABSENCES: Final = (1, 3)
"""How likely a long spell is interrupted once, and for how many quarters."""
LONG: Final = 8


@dataclass(frozen=True, kw_only=True)
class Spells:
    """When each job of the careers was held, in quarters from 0 on, both ends included."""

    first: Integers
    last: Integers
    absent: Integers
    """Quarters of absence after which the same employer took the worker back; 0 for most."""
    before: Integers
    """Quarters held before the absence."""

    @property
    def lengths(self) -> Integers:
        """Quarters in which there were earnings."""
        return self.last - self.first + 1 - self.absent


def draw_spells(careers: Careers, *, quarters: int, rng: np.random.Generator) -> Spells:
    """Spells of all jobs of the careers, each of at least one quarter."""
    came, left = _presence(careers.employers, quarters=quarters, rng=rng)
    person = careers.person
    begins = np.append(True, person[1:] != person[:-1])
    ends = np.append(begins[1:], True)
    changes = _changes(person, begins, came[person], left[person], rng)

    first, last = came[person], left[person]
    first[~begins], last[~ends] = changes, changes
    kind = rng.random(len(changes))
    away, longer = (rng.integers(low, high, len(changes), endpoint=True) for low, high in (GAPS, OVERLAPS))
    shift = np.select([kind < GAP, kind < GAP + BOTH], [-away, longer], default=0)
    # A gap leaves the former employer at least one quarter, and nobody stays beyond the end.
    last[~ends] = np.clip(changes + shift, first[~ends], left[person][~ends])

    length = last - first + 1
    recalled = (length >= LONG) & (rng.random(len(person)) < RECALL)
    absent = np.where(recalled, rng.integers(*ABSENCES, len(person), endpoint=True), 0)
    before = 1 + np.floor(rng.random(len(person)) * np.maximum(length - absent - 1, 1)).astype(np.int64)
    return Spells(first=first, last=last, absent=absent, before=before)


def _presence(employers: Integers, *, quarters: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """The first and last quarter of every worker; who had more employers tends to have been there longer."""
    there_before = rng.random(len(employers)) < 1 / (1 + (quarters - 1) * LEAVING)
    came = np.where(there_before, 0, 1 + np.floor(rng.random(len(employers)) * (quarters - 1)).astype(np.int64))
    left = np.minimum(came + rng.geometric(LEAVING, len(employers)), quarters) - 1
    # The greatest of as many uniform draws as employers: times are handed out in this order, none is changed.
    shortest, fewest = np.argsort(left - came), np.argsort(rng.random(len(employers)) ** (1 / employers))
    came[fewest], left[fewest] = came[shortest], left[shortest]
    return came, left


def _changes(person: Integers, begins: Flags, came: Integers, left: Integers, rng: np.random.Generator) -> Integers:
    """The quarter of every change of employer, ascending within each worker's time."""
    later = ~begins
    drawn = came[later] + np.floor(rng.random(int(later.sum())) * (left - came + 1)[later]).astype(np.int64)
    ordered: Integers = drawn[np.lexsort((drawn, person[later]))]
    return ordered
