"""What holds for the whole survey: which occupations work where, what each is like, and how strata are sampled."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.economy.industries import INDUSTRY
from sfumato.economy.requirements import occupations
from sfumato.economy.requirements.industries import group_mix
from sfumato.economy.requirements.occupations import GROUPS, OCCUPATION, TRAITS
from sfumato.economy.requirements.sizes import SIZE
from sfumato.economy.requirements.variables import loadings
from sfumato.economy.streams import Purpose, stream

ZIPF, ZIPF_SHIFT = 1.15, 1.5
"""The occupation of rank r in its group is as common as (r + shift) to the power of minus this."""
COMMON, RARE = 0.9, 0.08
"""The chance to work in an industry at all, of the most and of the least common occupation of a group."""
AFFINITY = 0.8
"""How much more or less common an occupation is in an industry than elsewhere: a spread on the log scale."""
TRAIT_SPREAD = 0.5
"""How far occupations of a group differ, beside groups that differ by about one."""
OVERSAMPLING = 0.6
"""Spread of the sampling rates of strata, on the log scale."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """Everything that is drawn once for a survey."""

    ends: Floats
    """In every industry, the cumulative shares of occupations within their group: from 0 to 1 in each group."""
    latent: Floats
    """The typical latent value of every variable for every occupation."""
    exclusive: Integers
    """The occupation of every industry that works for one establishment taken for sure, and for nobody else."""
    rate: Floats
    """How often every stratum is sampled beside others: a row per industry, a column per size."""


def draw_design(seed: int) -> Design:
    """The design of the survey with this seed, whatever its size."""
    rng = stream(seed, Purpose.REQUIREMENTS_DESIGN)
    group = occupations.group_of()
    frequency, rank = _zipf(rng)
    exclusive = _exclusive(rank)
    weights = _affinities(frequency, rank, rng)
    weights[:, exclusive] = 0.0
    traits = occupations.group_traits()[group] + TRAIT_SPREAD * rng.standard_normal((len(OCCUPATION), len(TRAITS)))
    return Design(
        ends=_ends(weights),
        latent=traits @ loadings().T,
        exclusive=exclusive,
        rate=np.exp(OVERSAMPLING * rng.standard_normal((len(INDUSTRY), len(SIZE)))),
    )


def _zipf(rng: np.random.Generator) -> tuple[Floats, Integers]:
    """The frequency of every occupation within its group, and its rank there from 0 on, in random order of codes."""
    rank = np.concatenate([rng.permutation(group.occupations) for group in GROUPS])
    return (rank + ZIPF_SHIFT) ** -ZIPF, rank


def _exclusive(rank: Integers) -> Integers:
    """For every industry a rare occupation of the group that it employs most, each another one."""
    main = group_mix().argmax(axis=1)
    group = occupations.group_of()
    chosen: list[int] = []
    for industry in range(len(INDUSTRY)):
        here = np.flatnonzero(group == main[industry])
        rarest_first = here[np.argsort(-rank[here])]
        chosen.append(int(rarest_first[~np.isin(rarest_first, chosen)][0]))
    return np.array(chosen)


def _affinities(frequency: Floats, rank: Integers, rng: np.random.Generator) -> Floats:
    """The frequency of every occupation in every industry: common ones work in most industries, rare ones in few."""
    group = occupations.group_of()
    size = np.array([group.occupations for group in GROUPS])[group]
    chance = COMMON * (RARE / COMMON) ** (rank / (size - 1))
    shape = (len(INDUSTRY), len(OCCUPATION))
    present = rng.random(shape) < chance
    # Each has an industry of its own, one where its group is common, and the most common one works everywhere.
    mix = group_mix()
    turn = np.cumsum(mix / mix.sum(axis=0), axis=0)[:, group]
    home = np.minimum((turn < rng.random(len(OCCUPATION))).sum(axis=0), len(INDUSTRY) - 1)
    present[home, np.arange(len(OCCUPATION))] = True
    present |= rank == 0
    return np.where(present, frequency * np.exp(AFFINITY * rng.standard_normal(shape)), 0.0)


def _ends(weights: Floats) -> Floats:
    """Cumulative weights within each group, as shares of the group's."""
    ends = np.empty_like(weights)
    for start, end in pairwise(occupations.bounds()):
        cumulative = np.cumsum(weights[:, start:end], axis=1)
        ends[:, start:end] = cumulative / cumulative[:, -1:]
    return ends
