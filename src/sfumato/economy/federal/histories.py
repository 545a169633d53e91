"""Histories: a row for each worker, employer and quarter with earnings, in this order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.economy.federal import agencies
from sfumato.economy.federal.careers import Careers
from sfumato.economy.federal.employers import Employers
from sfumato.economy.federal.people import People
from sfumato.economy.federal.spells import draw_spells

GROWTH = 0.007
"""Growth of log earnings in a quarter."""
NOISE = 0.05
"""Standard deviation of log earnings from quarter to quarter."""

Floats = NDArray[np.float32]


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
