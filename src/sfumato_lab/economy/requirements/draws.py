"""The sampled establishments and jobs of each stratum, with replicate weights."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.industries import INDUSTRY
from sfumato_lab.economy.requirements import occupations
from sfumato_lab.economy.requirements.design import (
    OWNERSHIP,
    PER_INDUSTRY,
    SURE,
    Design,
    group_mix,
    ownership_shares,
    workers,
)
from sfumato_lab.economy.requirements.occupations import GROUPS
from sfumato_lab.economy.requirements.sizes import LARGE, SIZE, STARTS, size_at
from sfumato_lab.economy.requirements.variables import (
    CLIMBING,
    CREDENTIALS,
    EDUCATION,
    HEIGHTS,
    KEYBOARDING,
    STRENGTH,
    TELEWORK,
    VARIABLES,
)

# The sampled establishments: how many in each stratum, which, how many of their jobs, and with what weight.
#
# The first stage takes establishments with probability proportional to size, systematically: equally spaced points
# along all workers of a stratum, ordered by ownership and size, fall on the sampled establishments. The second stage
# takes 4 to 8 jobs of each with probability proportional to their workers, so that all of them have the same weight.

FEWEST_JOBS, MOST_JOBS = 4, 8
MEAN_JOBS = np.array([4.8, 5.5, 6.2, 7.0, MOST_JOBS])
"""Mean jobs taken of an establishment, by size, and of one taken for sure."""
FEWEST_OF_STRATUM = 2
"""Establishments: with fewer there is nothing to estimate a variance from."""
SURE_EACH = 10_000
"""For every so many quotes one establishment of each industry is taken for sure, up to two."""
MOST_SURE = 2
SURE_SPREAD = 0.35
"""Spread of the size of those, on the log scale."""
CHANGE, UPHEAVAL, UPHEAVALS = 0.3, 1.2, 0.06
"""How workers changed in number since the frame: the usual spread on the log scale, that of a few, and their share."""
MOST_CHANGE = 10.0
"""Beyond that an establishment counts as another one; without a limit, one weight would decide every variance."""
RESPONSE = 0.25
"""Spread of the adjustment for those who did not answer, on the log scale."""
WEIGHT_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class Establishments:
    """Sampled establishments in the order of the frame: by stratum, ownership and size."""

    stratum: Integers
    ownership: Integers
    jobs: Integers
    """How many of the jobs were taken: quotes."""
    size: Floats
    """Workers according to the frame."""
    weight: Floats
    """The weight of each of the jobs: workers it stands for."""

    def __len__(self) -> int:
        return len(self.stratum)

    @property
    def industry(self) -> Integers:
        """Positions in the codelist of industries."""
        return self.stratum // PER_INDUSTRY

    @property
    def size_class(self) -> Integers:
        """Positions in the codelist of sizes."""
        return np.minimum(self.stratum % PER_INDUSTRY, LARGE)

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Whether each was taken for sure."""
        return np.equal(self.stratum % PER_INDUSTRY, SURE)

    @property
    def dominant(self) -> NDArray[np.bool_]:
        """Whether each is the first of its industry taken for sure, the one with an occupation of its own."""
        return self.sure & (np.diff(self.stratum, prepend=-1) > 0)


def draw_establishments(quotes: int, design: Design, rng: np.random.Generator) -> Establishments:
    """A sample of establishments with exactly so many quotes."""
    sampled, jobs = _take(allocate(quotes, design).ravel(), rng)
    stratum = np.repeat(np.arange(len(sampled)), sampled)
    industry, within = np.divmod(stratum, PER_INDUSTRY)
    number = np.arange(len(stratum)) - (np.cumsum(sampled) - sampled)[stratum]
    along = (number + rng.random(len(sampled))[stratum]) / sampled[stratum]
    ownership, share = _place(industry, along)
    size = size_at(industry, np.minimum(within, LARGE), share)
    sure = within == SURE
    size[sure] = STARTS[-1] * np.exp(SURE_SPREAD * np.abs(rng.standard_normal(np.count_nonzero(sure))))
    return Establishments(
        stratum=stratum,
        ownership=ownership,
        jobs=jobs,
        size=size,
        weight=_weights(stratum, size, sampled, jobs, rng),
    )


def allocate(quotes: int, design: Design) -> Integers:
    """Quotes of every stratum, adding up exactly: a row per industry, those taken for sure in the last column."""
    sure = MOST_JOBS * min(MOST_SURE, quotes // SURE_EACH)
    least = FEWEST_OF_STRATUM * FEWEST_JOBS
    share = workers() * design.rate
    free = quotes - (sure + least * len(SIZE)) * len(INDUSTRY)
    exact = free * share / share.sum()
    rounded = np.floor(exact)
    # Largest remainders: every quota is its exact value rounded up or down, and the sum is exact.
    missing = free - int(rounded.sum())
    rounded.ravel()[np.argsort(rounded - exact, axis=None, kind="stable")[:missing]] += 1
    return np.column_stack([least + rounded, np.full(len(INDUSTRY), sure)]).astype(np.int64)


def _take(quotas: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """How many establishments it takes for the quota of every stratum, and how many jobs of each of them."""
    mean = np.tile(MEAN_JOBS, len(INDUSTRY))
    fewest = np.tile([*[FEWEST_OF_STRATUM] * len(SIZE), 0], len(INDUSTRY))
    least = np.maximum(-(-quotas // MOST_JOBS), fewest)
    count = np.rint(quotas / mean).astype(np.int64).clip(least, quotas // FEWEST_JOBS)
    # What exceeds the fewest jobs falls on free places, of which each establishment of a stratum has the same number.
    places = MOST_JOBS - FEWEST_JOBS
    more = [
        rng.multivariate_hypergeometric(np.full(of_stratum, places), beyond)
        for of_stratum, beyond in zip(count, quotas - FEWEST_JOBS * count, strict=True)
    ]
    return count, FEWEST_JOBS + np.concatenate(more)


def _place(industry: Integers, along: Floats) -> tuple[Integers, Floats]:
    """Who owns the establishment at this point along the workers of a stratum, and how far along the owner's it is."""
    ends = np.cumsum(ownership_shares(), axis=1)[industry]
    ownership = np.minimum((along[:, None] >= ends).sum(axis=1), len(OWNERSHIP) - 1)
    row = np.arange(len(along))
    start = np.where(ownership > 0, ends[row, ownership - 1], 0.0)
    return ownership, (along - start) / (ends[row, ownership] - start)


def _weights(stratum: Integers, size: Floats, sampled: Integers, jobs: Integers, rng: np.random.Generator) -> Floats:
    """Workers that a job stands for: the workers there are now, over the chance of both stages, and for who is silent.

    An establishment of the frame's size s is taken n·s/W times on average of W workers, and stands for none but itself
    when taken for sure.
    """
    of_stratum = np.column_stack([workers(), np.ones(len(INDUSTRY))]).ravel()
    chance = sampled[stratum] * size / of_stratum[stratum]
    spread = np.where(rng.random(len(size)) < UPHEAVALS, UPHEAVAL, CHANGE)
    change = np.minimum(_around_one(spread, rng), MOST_CHANGE)
    response = _around_one(np.full(len(size), RESPONSE), rng)
    sure = stratum % PER_INDUSTRY == SURE
    weight: Floats = np.where(sure, size, size * change * response / chance) / jobs
    return np.maximum(np.round(weight, WEIGHT_DIGITS), 10.0**-WEIGHT_DIGITS)


def _around_one(spread: Floats, rng: np.random.Generator) -> Floats:
    """Log-normal draws with mean one."""
    draws: Floats = np.exp(spread * rng.standard_normal(len(spread)) - spread**2 / 2)
    return draws


# The sampled jobs of establishments: their occupation, what they require, and the days it takes to prepare.

CORE = 0.35
"""How many jobs of an establishment are of the one group that is its core, before those that are by chance."""
OF_ITS_OWN = 3
"""Jobs of a dominant establishment in the occupation that nobody else has."""
BY_ESTABLISHMENT, BY_JOB = 0.2, 0.3
"""Standard deviations of latent values between establishments and between jobs of one, given the occupation."""
_DAYS = np.array([12.0, 45.0, 260.0, 600.0, 1_100.0])
"""Typical days of preparation, by education."""
_NO_DAYS = np.array([0.3, 0.08, 0.01, 0.0, 0.0])
"""Share of jobs that need none, by education."""
DAYS_OF_CREDENTIALS, DAYS_SPREAD, MOST_DAYS = 1.4, 0.8, 3_650

Codes = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Quotes:
    """Sampled jobs in the order of their establishments, with positions in the codelists."""

    establishment: Integers
    """Positions among all establishments."""
    job: Integers
    """Numbers within the establishment, from 0 on."""
    occupation: NDArray[np.int32]
    requirements: dict[str, Codes]
    """By the name of the variable."""
    prep_days: Integers

    def __len__(self) -> int:
        return len(self.establishment)


def draw_quotes(establishments: Establishments, part: slice, design: Design, rng: np.random.Generator) -> Quotes:
    """The jobs of some establishments: those of a slice."""
    of_part = np.arange(len(establishments))[part]
    jobs = establishments.jobs[part]
    # Positions within the slice, and numbers within the establishment.
    row = np.repeat(np.arange(len(jobs)), jobs)
    job = np.arange(len(row)) - np.repeat(np.cumsum(jobs) - jobs, jobs)
    industry = establishments.industry[part]
    occupation = _occupations(industry, row, design, rng)
    dominant = establishments.dominant[part][row] & (job < OF_ITS_OWN)
    occupation[dominant] = design.exclusive[industry[row[dominant]]]
    requirements = _requirements(design.latent[occupation], row, len(jobs), rng)
    return Quotes(
        establishment=of_part[row],
        job=job,
        occupation=occupation.astype(np.int32),
        requirements=requirements,
        prep_days=_days(requirements, rng),
    )


def _occupations(industry: Integers, row: Integers, design: Design, rng: np.random.Generator) -> Integers:
    """A group by the mix of the industry, that of the establishment's core for some; then an occupation of it."""
    mix = np.cumsum(group_mix(), axis=1)
    mix[:, -1] = 1.0
    groups = (mix + np.arange(len(mix))[:, None]).ravel()

    def draw_group(of: Integers) -> Integers:
        # Draws stay clear of the upper end, so that adding the number of the industry never rounds up to the next.
        drawn: Integers = np.searchsorted(groups, of + _below_one(len(of), rng), side="right") - len(GROUPS) * of
        return drawn

    core = draw_group(industry)[row]
    of_job = industry[row]
    group = np.where(rng.random(len(row)) < CORE, core, draw_group(of_job))
    table = (design.ends + occupations.group_of() + len(GROUPS) * np.arange(len(mix))[:, None]).ravel()
    place = np.searchsorted(table, len(GROUPS) * of_job + group + _below_one(len(row), rng), side="right")
    drawn: Integers = place - design.ends.shape[1] * of_job
    return drawn


def _below_one(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.random(count) * (1 - 2.0**-40)


def _requirements(
    latent: NDArray[np.float64], row: Integers, establishments: int, rng: np.random.Generator
) -> dict[str, Codes]:
    """The category of every variable; some exclude each other, whatever the latent values."""
    requirements: dict[str, Codes] = {}
    for number, variable in enumerate(VARIABLES):
        own = BY_ESTABLISHMENT * rng.standard_normal(establishments)[row] + BY_JOB * rng.standard_normal(len(row))
        requirements[variable.name] = np.searchsorted(variable.cuts, latent[:, number] + own).astype(np.int8)
    # Heights are reached by climbing; work that can be done at home is at a keyboard and not a strain.
    requirements[HEIGHTS.name] &= requirements[CLIMBING.name]
    at_desk = (requirements[STRENGTH.name] <= 1) & (requirements[KEYBOARDING.name] >= 1)
    requirements[TELEWORK.name] &= at_desk.astype(np.int8)
    return requirements


def _days(requirements: dict[str, Codes], rng: np.random.Generator) -> Integers:
    """Days of preparation: log-normal by education and credentials, none for some, at most ten years."""
    education = requirements[EDUCATION.name]
    days = _DAYS[education] * np.where(requirements[CREDENTIALS.name] == 1, DAYS_OF_CREDENTIALS, 1.0)
    days = np.rint(days * np.exp(DAYS_SPREAD * rng.standard_normal(len(days))))
    days[rng.random(len(days)) < _NO_DAYS[education]] = 0
    whole: Integers = np.minimum(days, MOST_DAYS).astype(np.int64)
    return whole


# Replicate weights by successive differences (Fay and Train 1995): neighbours in the sample are compared in a loop.
#
# Each primary unit has two rows a, b of a Hadamard matrix of order 80 and in replicate r the factor 1 + 2^(-3/2)·(a_r −
# b_r): 1.707, 1 or 0.293. The second row of a unit is the first row of its neighbour, and the loop is closed; so 4/80
# times the sum of squared differences of the replicates' totals is half the sum of squared differences between
# neighbours, which is unbiased for a loop of independent units.
#
# Primary units are establishments, in the order of the sample and in loops that never leave a stratum. Who was taken
# for sure adds no variance of the first stage: there the jobs are the primary units.

REPLICATES: Final = 80
NAMES: Final = tuple(f"rw_{number}" for number in range(1, REPLICATES + 1))
ROWS: Final = REPLICATES - 1
"""Rows whose entries sum to zero, which keeps the mean of the replicate weights at the weight; 79 is a prime."""


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Where every establishment stands in its loop."""

    position: Integers
    length: Integers
    start: Integers
    """The row of the first unit of the loop."""
    step: Integers
    """From one unit's row to the next one's; as 79 is a prime, no row comes twice in a loop."""


def _hadamard() -> NDArray[np.int8]:
    """The 79 rows of Paley's matrix of order 80 other than that of ones: orthogonal, each with as many 1 as -1."""
    squares = np.unique(np.arange(1, ROWS) ** 2 % ROWS)
    character = np.full(ROWS, -1, dtype=np.int8)
    character[squares] = 1
    character[0] = 1
    number = np.arange(ROWS)
    rows = np.empty((ROWS, REPLICATES), dtype=np.int8)
    rows[:, 0] = -1
    rows[:, 1:] = character[(number[None, :] - number[:, None]) % ROWS]
    # Turning the sign of every other row keeps all that; without it the first replicate would be the full sample.
    rows[1::2] *= -1
    return rows


HADAMARD: Final = _hadamard()


def draw_loops(establishments: Establishments, rng: np.random.Generator) -> Loops:
    """Loops of neighbours of one stratum, at most 79 each, of nearly equal length; rows of loops are unrelated."""
    stratum, sure = establishments.stratum, establishments.sure
    begin = np.flatnonzero(np.diff(stratum, prepend=-1))
    count = np.diff(begin, append=len(stratum))
    which = np.repeat(np.arange(len(begin)), count)
    within, of_stratum = np.arange(len(stratum)) - begin[which], count[which]
    loops = -(-of_stratum // ROWS)
    loop = within * loops // of_stratum
    first, after = -(-loop * of_stratum // loops), -(-(loop + 1) * of_stratum // loops)
    # One who was taken for sure is a loop alone, of jobs.
    number = np.cumsum((within == first) | sure) - 1
    start, step = rng.integers(ROWS, size=number[-1] + 1), rng.integers(1, ROWS, size=number[-1] + 1)
    return Loops(
        position=np.where(sure, 0, within - first),
        length=np.where(sure, establishments.jobs, after - first),
        start=start[number],
        step=step[number],
    )


def rows_of(loops: Loops, establishment: Integers, job: Integers, sure: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """The two rows of every quote, from its establishment and its number there."""
    position = np.where(sure[establishment], job, loops.position[establishment])
    neighbour = (position + 1) % loops.length[establishment]
    start, step = loops.start[establishment], loops.step[establishment]
    return (start + step * position) % ROWS, (start + step * neighbour) % ROWS


def replicate_weights(weight: Floats, rows: tuple[Integers, Integers], number: int) -> Floats:
    """The weights of one replicate, numbered from 0."""
    entry = HADAMARD[:, number].astype(np.float64)
    factor = 1 + 2**-1.5 * (entry[rows[0]] - entry[rows[1]])
    replicated: Floats = weight * factor
    return replicated
