"""Establishments: where, in which industry, owned by whom, how large."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.economy import industries
from sfumato.economy.codelists import OWNERSHIP
from sfumato.economy.industries import INDUSTRY
from sfumato.economy.places import Places
from sfumato.economy.sizes import MEAN, draw_sizes
from sfumato.economy.streams import Purpose, stream

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
