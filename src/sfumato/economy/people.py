"""Workers and their jobs, drawn from the workforces of the establishments, one chunk of rows at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.economy.codelists import AGE, EDUCATION, RACE
from sfumato.economy.layout import BLOCK, Layout, second, worker_keys
from sfumato.economy.streams import Purpose, stream
from sfumato.economy.workforces import Workforces

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
