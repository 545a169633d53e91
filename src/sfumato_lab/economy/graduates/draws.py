"""Graduates by institution and degree, veterans by branch and occupation, and what they earn years after."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.jobs.codelists import Codelist

# The three years of earnings: 1, 5 and 10 years after graduation or discharge.

AFTER: Final = (1, 5, 10)
PRESENT: Final = np.array([0.80, 0.78, 0.74])
"""Share of people with earnings enough to count, in each of the years."""
GROWTH: Final = np.array([0.0, 0.30, 0.52])
"""How far log earnings have risen by then."""
WIDENING: Final = np.array([1.0, 1.1, 1.2])
"""How far their spread has grown."""


def years_after(event: str) -> Codelist:
    """The codelist of the years after an event."""
    return Codelist(
        name="years",
        label=f"Years after {event}",
        entries=tuple((str(year), f"{year} year{'s' if year > 1 else ''} after {event}") for year in AFTER),
    )


# People in cells, and what they earn one, five and ten years after.

PERSISTENCE = 0.75
"""Correlation of log earnings in two of the years, given the cell."""
LEAST_EARNINGS = 2_000
"""Dollars a year: who earns less does not count as employed."""

Codes = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Population:
    """Cells over which people are spread, in the order of the product of some codelists, with their earnings."""

    codelists: tuple[Codelist, ...]
    years: Codelist
    shares: Floats
    """The share of every cell in all people."""
    level: Floats
    """The mean of log earnings in the first year, by cell."""
    spread: Floats
    """Their standard deviation, by cell."""
    growth: Floats
    """How much faster than usual they grow, by cell."""
    observed: NDArray[np.bool_]
    """Whether the year after has come, for every cell (a row) and each of the years."""


@dataclass(frozen=True, kw_only=True)
class Earners:
    """Years with earnings in the order of people and years, with positions in the codelists."""

    people: int
    """Everybody, those without any earnings included."""
    person: Integers
    """Numbers from 0 on."""
    cell: Integers
    year: Codes
    earnings: Integers

    def __len__(self) -> int:
        return len(self.person)


def draw_people(people: int, population: Population, rng: np.random.Generator) -> Earners:
    """So many people, spread over the cells."""
    ends = np.cumsum(population.shares)
    ends[-1] = 1.0
    of_person = np.searchsorted(ends, rng.random(people), side="right")
    present = rng.random((people, len(AFTER))) < PRESENT
    person, year = np.nonzero(present & population.observed[of_person])
    cell = of_person[person]
    own, luck = rng.standard_normal(people)[person], rng.standard_normal(len(person))
    log_earnings = population.level[cell] + GROWTH[year] * population.growth[cell]
    spread = population.spread[cell] * WIDENING[year]
    log_earnings += spread * (np.sqrt(PERSISTENCE) * own + np.sqrt(1 - PERSISTENCE) * luck)
    return Earners(
        people=people,
        person=person,
        cell=cell,
        year=year.astype(np.int8),
        earnings=np.maximum(np.rint(np.exp(log_earnings)), LEAST_EARNINGS).astype(np.int64),
    )
