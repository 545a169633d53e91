"""The sampled establishments: how many in each stratum, which, how many of their jobs, and with what weight.

The first stage takes establishments with probability proportional to size, systematically: equally spaced points
along all workers of a stratum, ordered by ownership and size, fall on the sampled establishments. The second stage
takes 4 to 8 jobs of each with probability proportional to their workers, so that all of them have the same weight.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.economy.industries import INDUSTRY
from sfumato.economy.requirements.design import Design
from sfumato.economy.requirements.sizes import LARGE, SIZE, STARTS, size_at
from sfumato.economy.requirements.strata import OWNERSHIP, PER_INDUSTRY, SURE, ownership_shares, workers

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
