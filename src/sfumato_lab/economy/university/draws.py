"""People who left universities: job titles, institutions, sectors, and what they earned since."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.frame import Purpose, stratified_normal, stream
from sfumato_lab.economy.jobs.codelists import place_names
from sfumato_lab.economy.university import titles
from sfumato_lab.economy.university.titles import MOST_YEARS, PREMIUM, SECTOR, TITLE

# Institutions: their names, how many left each, and how well they place them.

SIZE_SPREAD = 0.6
"""Standard deviation of the size of institutions, on the log scale."""
PAY_SPREAD = 0.08
"""Standard deviation of what people of different institutions earn, on the log scale."""
FEWEST = 20
"""Employees of an institution."""


@dataclass(frozen=True, kw_only=True)
class Institution:
    """One institution."""

    code: str
    name: str
    employees: int
    """Those who left and are followed."""
    pay: float
    """The logarithm of what they earn, beside others."""


def draw_institutions(count: int, *, employees: int, seed: int) -> tuple[Institution, ...]:
    """So many institutions with so many employees in all, the largest first."""
    rng = stream(seed, Purpose.UNIVERSITY_INSTITUTIONS)
    shares = np.exp(-SIZE_SPREAD * stratified_normal(count, rng))
    sizes = _sizes(shares / shares.sum(), employees)
    names, pay = place_names(count, seed=seed), PAY_SPREAD * rng.standard_normal(count)
    return tuple(
        Institution(
            code=f"u{number + 1:02}",
            name=f"University of {names[number]}",
            employees=int(sizes[number]),
            pay=float(pay[number]),
        )
        for number in range(count)
    )


def _sizes(shares: NDArray[np.float64], employees: int) -> NDArray[np.int64]:
    """Whole numbers in these shares that add up, none below the fewest."""
    free = employees - FEWEST * len(shares)
    ends = np.rint(free * np.cumsum(shares)).astype(np.int64)
    ends[-1] = free
    return FEWEST + np.diff(ends, prepend=0)


# What became of people who left a university: their sector, and what they earned in every year since.

EMPLOYED, KEPT = 0.86, 0.94
"""Share of people with earnings in their first year, and of those with earnings who have some in the next."""
FOUND = 0.45
"""Share of people without earnings who have some in the next year."""
PERSISTENCE = 0.85
"""Correlation of log earnings in two years, given what is usual."""
PART_YEAR = 0.06
"""Share of years in which somebody earned during a part of the year only."""
LEAST_EARNINGS: Final = 500
"""Dollars a year."""

Codes = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Careers:
    """Years with earnings, in the order of people and years, with positions in the codelists."""

    people: int
    """Everybody who left, those without any earnings included."""
    person: Integers
    """Numbers from 0 on."""
    title: Codes
    sector: Codes
    year: Codes
    earnings: Integers

    def __len__(self) -> int:
        return len(self.person)


def draw_careers(people: int, *, pay: float, rng: np.random.Generator) -> Careers:
    """The careers of so many people; title and sector stay the same throughout one."""
    title = _pick(np.broadcast_to(titles.column("employees") / 100, (people, len(TITLE))), rng)
    sector = _pick(titles.sector_shares()[title], rng)
    # People left in any of the last ten years, so that the later a year the fewer have come to it.
    observed = np.arange(MOST_YEARS) < rng.integers(1, MOST_YEARS + 1, size=people)[:, None]
    person, year = np.nonzero(_employed(people, rng) & observed)
    level = np.log(titles.column("earnings"))[title] + PREMIUM[sector] + pay
    log_earnings = level[person] + titles.column("growth")[title[person]] * _experience(year)
    own, luck = rng.standard_normal(people)[person], rng.standard_normal(len(person))
    spread = titles.column("spread")[title[person]]
    log_earnings += spread * (np.sqrt(PERSISTENCE) * own + np.sqrt(1 - PERSISTENCE) * luck)
    share = np.where(rng.random(len(person)) < PART_YEAR, rng.random(len(person)), 1.0)
    return Careers(
        people=people,
        person=person,
        title=title[person],
        sector=sector[person],
        year=year.astype(np.int8),
        earnings=np.maximum(np.rint(share * np.exp(log_earnings)), LEAST_EARNINGS).astype(np.int64),
    )


def _pick(shares: Floats, rng: np.random.Generator) -> Codes:
    """A position for every row of shares."""
    drawn: Integers = (np.cumsum(shares, axis=1) < rng.random(len(shares))[:, None]).sum(axis=1)
    positions: Codes = np.minimum(drawn, shares.shape[1] - 1).astype(np.int8)
    return positions


def _employed(people: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each has earnings in every year: a row per person; who has them mostly keeps them."""
    chance = rng.random((people, MOST_YEARS))
    employed = np.empty((people, MOST_YEARS), dtype=np.bool_)
    employed[:, 0] = chance[:, 0] < EMPLOYED
    for year in range(1, MOST_YEARS):
        employed[:, year] = chance[:, year] < np.where(employed[:, year - 1], KEPT, FOUND)
    return employed


def _experience(year: Integers) -> Floats:
    """What part of ten years' growth there is after so many years: most of it early."""
    growth: Floats = np.sqrt(year / (MOST_YEARS - 1))
    return growth


assert len(PREMIUM) == len(SECTOR)
