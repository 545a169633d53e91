"""Places, establishments, their workforces, workers and jobs, drawn one chunk at a time."""

import math
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato_lab.economy import industries
from sfumato_lab.economy.frame import Purpose, stratified_normal, stream
from sfumato_lab.economy.industries import INDUSTRY
from sfumato_lab.economy.jobs.codelists import AGE, EDUCATION, OWNERSHIP, PLACE_SIZE, RACE, Codelist, place_names

# Sizes of establishments: mostly a handful of workers, a few with thousands, adding up exactly.

MEAN = 20.68
"""Workers an establishment with jobs: 10.9 million jobs in 527,000 establishments."""
SPREAD_OF_SIZES = 1.94
"""Standard deviation of log size, chosen so that 15 in 10,000 have 1,000 workers or more."""
LARGEST = 40_000
"""No establishment is larger: the very largest places of work in a country have about as many."""
LARGEST_SHARE = 0.015
"""Nor does any hold more of all jobs than this, so that a person's two jobs are never in the same one."""


def draw_sizes(count: int, *, jobs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ascending sizes of `count` establishments, each at least one, with sum exactly `jobs`."""
    shape = np.exp(SPREAD_OF_SIZES * stratified_normal(count, rng))
    largest = min(LARGEST, np.floor(LARGEST_SHARE * jobs))
    scaled = (_scale(shape, jobs=jobs, largest=largest) * shape).clip(1, largest)
    sizes = np.floor(scaled).astype(np.int64)
    # Largest remainders: every size is its exact value rounded up or down, and the sum is exact.
    missing = jobs - int(sizes.sum())
    if missing > 0:
        sizes[np.argpartition(sizes - scaled, missing - 1)[:missing]] += 1
    return np.sort(sizes)


def _scale(shape: NDArray[np.float64], *, jobs: int, largest: float) -> float:
    """The factor at which the sizes, kept between one and the largest, add up to the jobs or just below."""
    low, high = 0.0, jobs / float(shape[0])
    below = float(len(shape))
    while jobs - below > 0.5:
        middle = (low + high) / 2
        total = float((middle * shape).clip(1, largest).sum())
        if total > jobs:
            high = middle
        else:
            low, below = middle, total
    return low


# Places: most are small, most people live in large ones.

FEWEST = 50
AT_REFERENCE = 3_500
REFERENCE_JOBS = 10_900_000
GROWTH = 0.8
"""Places grow with jobs to this power: a larger economy has more places and larger ones."""

PEOPLE_PER_JOB = 2.3
SPREAD_OF_PLACES = 2.0
"""Standard deviation of log population: at 11 million jobs one place in a hundred has 100,000 inhabitants."""
UNINHABITED = 0.004
"""Share of places where nobody lives but some work, such as an airport or an industrial park."""

_STRATA = (100, 10_000, 100_000)


@dataclass(frozen=True, kw_only=True)
class Places:
    """The places of an economy, in the order of their names."""

    labels: tuple[str, ...]
    populations: NDArray[np.int64]

    def __post_init__(self) -> None:
        assert len(self.labels) == len(set(self.labels)) == len(self.populations)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def codelist(self) -> Codelist:
        """The codes P00001, P00002, … with the names as labels."""
        codes = (f"P{number:05d}" for number in range(1, len(self) + 1))
        return Codelist(name="place", label="Place", entries=tuple(zip(codes, self.labels, strict=True)))

    @property
    def strata(self) -> NDArray[np.int8]:
        """Each place's position in the codelist of place sizes."""
        return np.searchsorted(_STRATA, self.populations, side="right").astype(np.int8)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Each place's code of place size."""
        return tuple(PLACE_SIZE.codes[stratum] for stratum in self.strata)


def how_many(jobs: int) -> int:
    """The number of places: 3,500 at 10.9 million jobs, 28,500 at 150 million, never below 50."""
    return max(FEWEST, round(AT_REFERENCE * math.pow(jobs / REFERENCE_JOBS, GROWTH)))


def draw_places(*, jobs: int, seed: int) -> Places:
    """Places with log-normal populations that add up to about 2.3 inhabitants a job."""
    count = how_many(jobs)
    rng = stream(seed, Purpose.POPULATIONS)
    median = PEOPLE_PER_JOB * jobs / count / np.exp(SPREAD_OF_PLACES**2 / 2)
    populations = np.rint(median * np.exp(SPREAD_OF_PLACES * stratified_normal(count, rng))).astype(np.int64)[::-1]
    populations[-max(1, round(UNINHABITED * count)) :] = 0
    # Plain names go to the largest places; codes then follow the alphabet, as in a gazetteer.
    names = place_names(count, seed=seed)
    order = sorted(range(count), key=names.__getitem__)
    return Places(labels=tuple(names[i] for i in order), populations=populations[order])


# Establishments: where, in which industry, owned by whom, how large.

WITHOUT_JOBS = 0.03
"""Establishments without any job, per establishment with jobs."""
PLACE_ACTIVITY = 0.5
"""Standard deviation of the log number of establishments an inhabitant."""
INDUSTRY_MIX = 0.5
"""Standard deviation of the log share of an industry in a place about its share in the economy."""
SIZE_NOISE = 1.8
"""Standard deviation of log size about what industry, ownership and place lead one to expect."""
_PUBLIC_SIZE = np.array([0.0, 0.5, 0.8, 0.5])
_PLACE_SIZE = 0.05


@dataclass(frozen=True, kw_only=True)
class Establishments:
    """Every establishment, ordered by place, industry and ownership; its key is its position plus one."""

    place: NDArray[np.int32]
    industry: NDArray[np.int8]
    ownership: NDArray[np.int8]
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.size)

    @property
    def cell(self) -> NDArray[np.int32]:
        """Each one's position in the product of places, industries and ownerships."""
        cell: NDArray[np.int32] = (self.place * np.int32(len(INDUSTRY)) + self.industry) * np.int32(
            len(OWNERSHIP)
        ) + self.ownership
        return cell

    @property
    def with_jobs(self) -> int:
        """The number of establishments with at least one job."""
        return int(np.count_nonzero(self.size))


def draw_establishments(places: Places, *, jobs: int, seed: int, active: int | None = None) -> Establishments:
    """`active` establishments with `jobs` jobs in all, as many as were published, and a few per cent without any."""
    active = round(jobs / MEAN) if active is None else active
    total = active + round(WITHOUT_JOBS * active)
    cells = _establishments_by_cell(places, total=total, seed=seed)
    cell = np.repeat(np.arange(cells.size, dtype=np.int32), cells.ravel())
    place, rest = np.divmod(cell, np.int32(len(INDUSTRY) * len(OWNERSHIP)))
    industry, ownership = (part.astype(np.int8) for part in np.divmod(rest, np.int32(len(OWNERSHIP))))

    # The distribution of sizes is fixed; who gets which size is not: establishments are ranked by a score,
    # and the sizes are handed out in that order.
    rng = stream(seed, Purpose.SIZES)
    score = rng.standard_normal(total, dtype=np.float32)
    score *= np.float32(SIZE_NOISE)
    expected = np.log(industries.column("size"))[:, None] + _PUBLIC_SIZE
    score += expected.astype(np.float32)[industry, ownership]
    score += (_PLACE_SIZE * np.log1p(places.populations)).astype(np.float32)[place]
    score[rng.permutation(total)[: total - active]] = -np.inf
    size = np.zeros(total, dtype=np.int64)
    size[np.argsort(score)[total - active :]] = draw_sizes(active, jobs=jobs, rng=rng)
    return Establishments(place=place, industry=industry, ownership=ownership, size=size)


def _establishments_by_cell(places: Places, *, total: int, seed: int) -> NDArray[np.int64]:
    """The number of establishments by place, industry and ownership; most combinations have none."""
    weights = (places.populations + 20) * np.exp(
        PLACE_ACTIVITY * stream(seed, Purpose.PLACE_ACTIVITY).standard_normal(len(places))
    )
    mix = industries.column("establishments") * np.exp(
        INDUSTRY_MIX * stream(seed, Purpose.INDUSTRY_MIX).standard_normal((len(places), len(INDUSTRY)))
    )
    rng = stream(seed, Purpose.ESTABLISHMENTS)
    by_place = rng.multinomial(total, weights / weights.sum())
    by_industry = rng.multinomial(by_place, mix / mix.sum(axis=1, keepdims=True))
    return rng.multinomial(by_industry, industries.ownership_shares())


# What sets one establishment's workforce apart from another's.

COLUMNS: Final = ("women", "minority", "hispanic", "schooling", "seniority", "pay")

# Standard deviations of the establishments' own effects, on the scale of each column before it becomes a
# share. They make workforces differ by much more than the luck of hiring, as real ones do.
_WOMEN, _ORIGIN, _SCHOOLING, _SENIORITY, _PAY = 0.9, 0.6, 0.6, 0.35, 0.3
_PLACE_ORIGIN = 0.7
_MINORITY_ODDS, _HISPANIC_ODDS = -1.45, -1.9
_URBAN_SCHOOLING = np.array([-0.35, -0.25, 0.0, 0.2])
_URBAN_PAY = np.array([-0.15, -0.1, 0.0, 0.12])
_SIZE_PAY = 0.03

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Workforces:
    """One row per establishment with what its workers' attributes are drawn from.

    The rows are narrow and contiguous on purpose: a job finds all it needs in one memory access.
    """

    rows: NDArray[np.float32]

    def of(self, establishment: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
        """The columns for a sequence of establishments."""
        return dict(zip(COLUMNS, self.rows[establishment].T, strict=True))

    def pay(self, establishment: NDArray[np.int64]) -> NDArray[np.float32]:
        """The log of typical yearly earnings alone."""
        pay: NDArray[np.float32] = self.rows[:, COLUMNS.index("pay")][establishment]
        return pay


def draw_workforces(establishments: Establishments, places: Places, *, seed: int) -> Workforces:
    """Effects of industry, place and the establishment itself, added up once per establishment."""
    origin = _PLACE_ORIGIN * stream(seed, Purpose.PLACE_PEOPLE).standard_normal((len(places), 2))
    women = industries.column("women")
    by_industry = {
        "women": np.log(women / (1 - women)),
        "minority": industries.column("minority"),
        "schooling": industries.column("schooling"),
        "seniority": industries.column("seniority"),
        "pay": np.log(industries.column("pay")),
    }
    rows = np.empty((len(establishments), len(COLUMNS)), dtype=np.float32)
    for number, start in enumerate(range(0, len(establishments), _CHUNK)):
        part = slice(start, start + _CHUNK)
        place, industry = establishments.place[part], establishments.industry[part]
        stratum = places.strata[place]
        own = stream(seed, Purpose.WORKFORCES, number).standard_normal((6, len(place)))
        base = {name: effect[industry] for name, effect in by_industry.items()}
        columns = {
            "women": _share(base["women"] + _WOMEN * own[0]),
            "minority": _share(_MINORITY_ODDS + base["minority"] + origin[place, 0] + _ORIGIN * own[1]),
            "hispanic": _share(_HISPANIC_ODDS + base["minority"] + origin[place, 1] + _ORIGIN * own[2]),
            "schooling": base["schooling"] + _URBAN_SCHOOLING[stratum] + _SCHOOLING * own[3],
            "seniority": base["seniority"] + _SENIORITY * own[4],
            "pay": base["pay"] + _URBAN_PAY[stratum] + _SIZE_PAY * np.log1p(establishments.size[part]) + _PAY * own[5],
        }
        for position, name in enumerate(COLUMNS):
            rows[part, position] = columns[name]
    return Workforces(rows=rows)


def _share(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-log_odds))


# Which worker and which establishment each job belongs to, without a shuffle and without a list of all jobs.
#
# Slots 0, 1, … are the positions of all establishments laid end to end. Job row r sits in slot
# (stride·r + start) mod jobs. As the stride has no common divisor with the number of jobs, every slot is filled
# exactly once; as it is close to the golden section of all jobs, rows that follow each other are far apart, and
# any run of rows is a fair sample of all establishments.
#
# Rows come in blocks of 25, held by 24 workers: the last row is the second job of the block's last worker.

BLOCK = 25
WORKERS_PER_BLOCK = BLOCK - 1
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rule that places every job; `ends` are the cumulative sizes of the establishments."""

    ends: Integers
    start: int

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return int(self.ends[-1])

    @property
    def workers(self) -> int:
        """The number of workers: one for each row but the last of each full block."""
        return self.jobs - self.jobs // BLOCK

    @property
    def stride(self) -> int:
        """The step from one row's slot to the next row's."""
        stride = round(GOLDEN * self.jobs)
        while gcd(stride, self.jobs) != 1:
            stride += 1
        return stride

    def establishments(self, rows: Integers) -> Integers:
        """Positions of the establishments of these job rows.

        The product stays below 2^63 up to three billion jobs.
        """
        slots = (rows * self.stride + self.start) % self.jobs
        # Looking up in ascending order walks through memory instead of jumping: seven times as fast at 150
        # million jobs, sorting included.
        order = np.argsort(slots)
        found = np.empty_like(slots)
        # One without jobs ends where the one before it ends, and so is never the first to end beyond a slot.
        found[order] = np.searchsorted(self.ends, slots[order], side="right")
        return found


def second(rows: Integers) -> NDArray[np.bool_]:
    """Whether each row is a worker's second job."""
    return np.equal(rows % BLOCK, WORKERS_PER_BLOCK)


def worker_keys(rows: Integers) -> Integers:
    """The keys, from 1 on, of the workers who hold these job rows."""
    block, within = np.divmod(rows, BLOCK)
    return block * WORKERS_PER_BLOCK + np.minimum(within, WORKERS_PER_BLOCK - 1) + 1


# Workers and their jobs, drawn from the workforces of the establishments, one chunk of rows at a time.

CHUNK = 20_000 * BLOCK
"""Rows drawn together, in whole blocks; each chunk has a stream, so changing this changes the economy."""

FEMALE, MALE = 0, 1
HISPANIC, NOT_HISPANIC = 0, 1

Codes = NDArray[np.int8]
Floats = NDArray[np.float32]


def _floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float32)


# Cuts of the latent age and schooling between one group and the next.
_AGE_CUTS = _floats(-2.2, -1.6, -1.2, -0.42, 0.19, 0.79, 1.6)
_EDUCATION_CUTS = _floats(-1.35, -0.33, 0.67)
# Nobody finished college at 18: the highest education of each age group.
_EDUCATION_LIMIT = np.array([1, 2, 3, 3, 3, 3, 3, 3], dtype=np.int8)
# Races other than white, as cumulative shares.
_RACE_CUTS = _floats(0.55, 0.58, 0.85, 0.86)

_PAY_AGE = _floats(-1.3, -0.75, -0.4, -0.12, 0.0, 0.06, 0.03, -0.25)
_PAY_EDUCATION = _floats(-0.25, -0.12, 0.0, 0.35)
_PAY_WOMEN = np.float32(-0.12)
_PAY_SECOND = np.float32(-0.9)
_PAY_SPREAD = np.float32(0.5)

assert len(_AGE_CUTS) + 1 == len(_EDUCATION_LIMIT) == len(_PAY_AGE) == len(AGE)
assert len(_EDUCATION_CUTS) + 1 == len(_PAY_EDUCATION) == len(EDUCATION)
assert len(_RACE_CUTS) + 2 == len(RACE)


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Workers by key, with positions in the codelists."""

    worker: NDArray[np.int64]
    age: Codes
    sex: Codes
    race: Codes
    ethnicity: Codes
    education: Codes


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """Jobs, ordered by worker; earnings in dollars a year."""

    worker: NDArray[np.int64]
    workplace: NDArray[np.int64]
    earnings: NDArray[np.int64]


def chunks(jobs: int) -> int:
    """The number of chunks of an economy with this many jobs."""
    return -(-jobs // CHUNK)


def draw_people(chunk: int, *, layout: Layout, workforces: Workforces, seed: int) -> tuple[Workers, Jobs]:
    """The workers and jobs of one chunk, the same in whichever order chunks are drawn."""
    rows = np.arange(chunk * CHUNK, min((chunk + 1) * CHUNK, layout.jobs))
    establishment = layout.establishments(rows)
    holder = worker_keys(rows)
    side_job = second(rows)
    rng = stream(seed, Purpose.PEOPLE, chunk)

    # A worker resembles the colleagues at the first job; the second is with strangers.
    workers = _draw_workers(holder[~side_job], workforces.of(establishment[~side_job]), rng)
    merit = _PAY_AGE[workers.age] + _PAY_EDUCATION[workers.education]
    merit[workers.sex == FEMALE] += _PAY_WOMEN

    log_pay = workforces.pay(establishment) + merit[holder - holder[0]]
    log_pay += _PAY_SPREAD * rng.standard_normal(len(rows), dtype=np.float32)
    log_pay[side_job] += _PAY_SECOND
    earnings = np.maximum(np.rint(np.exp(log_pay)), 1).astype(np.int64)
    return workers, Jobs(worker=holder, workplace=establishment + 1, earnings=earnings)


def _draw_workers(keys: NDArray[np.int64], workforce: dict[str, Floats], rng: np.random.Generator) -> Workers:
    count = len(keys)
    uniform = rng.random((3, count), dtype=np.float32)
    normal = rng.standard_normal((2, count), dtype=np.float32)
    age = _group(workforce["seniority"] + normal[0], _AGE_CUTS)
    education = _group(workforce["schooling"] + normal[1], _EDUCATION_CUTS)
    # A uniform below the share of minorities, divided by it, is uniform again: it picks which one.
    minority = uniform[1] < workforce["minority"]
    race = np.zeros(count, dtype=np.int8)
    race[minority] = 1 + _group(uniform[1][minority] / workforce["minority"][minority], _RACE_CUTS)
    return Workers(
        worker=keys,
        age=age,
        sex=np.where(uniform[0] < workforce["women"], FEMALE, MALE).astype(np.int8),
        race=race,
        ethnicity=np.where(uniform[2] < workforce["hispanic"], HISPANIC, NOT_HISPANIC).astype(np.int8),
        education=np.minimum(education, _EDUCATION_LIMIT[age]),
    )


def _group(values: Floats, cuts: Floats) -> Codes:
    """The group of each value: the number of cuts it reaches."""
    group = np.zeros(len(values), dtype=np.int8)
    for cut in cuts:
        group += values >= cut
    return group
