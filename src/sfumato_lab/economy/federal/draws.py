"""Workers, careers, spells and histories, drawn one chunk of workers at a time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato_lab.economy.federal import agencies
from sfumato_lab.economy.federal.codes import AGE
from sfumato_lab.economy.federal.mobility import Employers, Kind, Mobility
from sfumato_lab.economy.jobs.codelists import EDUCATION

# Workers: sex, age and education as they are in the agency where they began.

FEMALE, MALE = 0, 1

Codes = NDArray[np.int8]

_AGE_CUTS = np.array([-1.45, -0.55, 0.1, 0.85, 1.9])
"""Cuts of the latent age between one group and the next."""
_EDUCATION_CUTS = np.array([-2.2, -0.5, 0.25])
_EDUCATION_BY_AGE = np.array([-0.5, 0.1, 0.1, 0.0, 0.0, 0.1])
_PAY_AGE = np.array([-0.45, -0.12, 0.02, 0.08, 0.1, 0.05])
_PAY_EDUCATION = np.array([-0.25, -0.15, -0.05, 0.18])
_PAY_WOMEN = -0.06
_PAY_SPREAD = 0.25

assert len(_AGE_CUTS) + 1 == len(_PAY_AGE) == len(_EDUCATION_BY_AGE) == len(AGE)
assert len(_EDUCATION_CUTS) + 1 == len(_PAY_EDUCATION) == len(EDUCATION)


@dataclass(frozen=True, kw_only=True)
class People:
    """The workers of a chunk, with positions in the codelists."""

    sex: Codes
    age: Codes
    education: Codes
    merit: Floats
    """The log of what each earns, beside what is usual in the agency."""


def draw_people(agency: Integers, rng: np.random.Generator) -> People:
    """Workers who begin in these agencies."""
    count = len(agency)
    sex = np.where(rng.random(count) < agencies.column("women")[agency], FEMALE, MALE).astype(np.int8)
    age = np.searchsorted(_AGE_CUTS, rng.standard_normal(count)).astype(np.int8)
    schooling = agencies.column("schooling")[agency] + _EDUCATION_BY_AGE[age] + rng.standard_normal(count)
    education = np.searchsorted(_EDUCATION_CUTS, schooling).astype(np.int8)
    merit = _PAY_AGE[age] + _PAY_EDUCATION[education] + np.where(sex == FEMALE, _PAY_WOMEN, 0.0)
    merit += _PAY_SPREAD * rng.standard_normal(count)
    return People(sex=sex, age=age, education=education, merit=merit)


# Careers: the employers of each worker, one after the other, drawn one chunk of workers at a time.

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


# Spells: from which quarter to which each worker was with each employer.
#
# The workforce is stationary: as many leave as come, so that every quarter has about as many workers as any other. Some
# were there before the first quarter and some stay beyond the last. Within the time a worker is there, the employers
# follow each other; most workers leave one and join the next in the same quarter.

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
    shortest, fewest = np.argsort(left - came, kind="stable"), np.argsort(rng.random(len(employers)) ** (1 / employers))
    came[fewest], left[fewest] = came[shortest], left[shortest]
    return came, left


def _changes(person: Integers, begins: Flags, came: Integers, left: Integers, rng: np.random.Generator) -> Integers:
    """The quarter of every change of employer, ascending within each worker's time."""
    later = ~begins
    drawn = came[later] + np.floor(rng.random(int(later.sum())) * (left - came + 1)[later]).astype(np.int64)
    ordered: Integers = drawn[np.lexsort((drawn, person[later]))]
    return ordered


# Histories: a row for each worker, employer and quarter with earnings, in this order.

GROWTH = 0.007
"""Growth of log earnings in a quarter."""
NOISE = 0.05
"""Standard deviation of log earnings from quarter to quarter."""

Singles = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Histories:
    """The rows of a chunk of workers."""

    person: Integers
    """Position of the worker in the chunk."""
    employer: NDArray[np.int32]
    quarter: NDArray[np.int8]
    earnings: Integers
    """Dollars in the quarter, at least 1."""

    def __len__(self) -> int:
        return len(self.person)


def draw_histories(
    careers: Careers, employers: Employers, people: People, *, quarters: int, rng: np.random.Generator
) -> Histories:
    """What the workers earned with every employer in every quarter."""
    spells = draw_spells(careers, quarters=quarters, rng=rng)
    order = np.lexsort((careers.employer, careers.person))
    person, employer = careers.person[order], careers.employer[order]
    first, last, absent, before = (a[order] for a in (spells.first, spells.last, spells.absent, spells.before))
    lengths = spells.lengths[order]

    job = np.repeat(np.arange(len(person), dtype=np.int32), lengths)
    begin = np.cumsum(lengths) - lengths
    held = np.arange(len(job), dtype=np.int32) - begin.astype(np.int32)[job]
    held += np.where(held >= before.astype(np.int32)[job], absent.astype(np.int32)[job], np.int32(0))
    quarter = (first.astype(np.int32)[job] + held).astype(np.int8)

    pay = np.log(agencies.column("pay"))[employers.agency[employer]] + people.merit[person]
    log_earnings = pay.astype(np.float32)[job] + np.float32(GROWTH) * quarter
    log_earnings += np.float32(NOISE) * rng.standard_normal(len(job), dtype=np.float32)
    earnings = np.exp(log_earnings)
    # In its first and last quarter a job is held for a part; who was there before or stays beyond has whole ones.
    for rows, partial in ((begin, first > 0), (begin + lengths - 1, last < quarters - 1)):
        earnings[rows] *= np.where(partial, 0.05 + 0.95 * rng.random(len(rows)), 1.0).astype(np.float32)
    return Histories(
        person=person[job],
        employer=employer.astype(np.int32)[job],
        quarter=quarter,
        earnings=np.maximum(np.rint(earnings), 1).astype(np.int64),
    )
