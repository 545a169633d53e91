"""What holds for the whole survey of requirements: occupations, industries, sizes, strata."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy import industries
from sfumato_lab.economy.frame import Purpose, stream
from sfumato_lab.economy.industries import INDUSTRY
from sfumato_lab.economy.jobs.codelists import OWNERSHIP as EVERY_OWNERSHIP
from sfumato_lab.economy.jobs.codelists import Codelist
from sfumato_lab.economy.requirements import occupations
from sfumato_lab.economy.requirements.occupations import GROUPS, MAJOR_GROUP, OCCUPATION, TRAITS
from sfumato_lab.economy.requirements.sizes import SIZE, worker_shares
from sfumato_lab.economy.requirements.variables import VARIABLES, loadings

# Which major groups of occupations work in each industry.

# Per cent of the groups that make up an industry, roughly; the others share the rest as in the country.
# fmt: off
_MAIN: Final = {
    "11":    {"45": 60, "53":  8, "11":  6, "43":  5, "37":  3},
    "21":    {"47": 40, "53": 14, "17":  9, "49":  9, "51":  8},
    "22":    {"49": 25, "43": 14, "51": 14, "17": 12, "11":  8},
    "23":    {"47": 62, "49":  8, "11":  8, "43":  7},
    "31-33": {"51": 50, "53": 11, "43":  8, "17":  7, "49":  6, "11":  6},
    "42":    {"41": 25, "53": 24, "43": 18, "11":  8, "49":  6},
    "44-45": {"41": 52, "53": 13, "43": 10, "49":  5, "29":  4, "35":  3},
    "48-49": {"53": 62, "43": 17, "49":  6},
    "51":    {"15": 22, "27": 16, "43": 14, "41": 12, "13": 10, "49":  5},
    "52":    {"13": 32, "43": 30, "41": 17, "15":  9, "11":  9},
    "53":    {"41": 24, "43": 20, "11": 14, "49": 14, "37":  8},
    "54":    {"13": 20, "15": 18, "43": 14, "17": 13, "11": 11, "23":  9, "19":  5},
    "55":    {"13": 27, "43": 22, "11": 20, "15": 12},
    "56":    {"37": 23, "43": 18, "53": 16, "33":  9, "51":  7, "47":  4},
    "61":    {"25": 62, "43":  9, "11":  5, "21":  4, "35":  4, "37":  4},
    "62":    {"29": 33, "31": 30, "43": 13, "21":  6, "39":  4},
    "71":    {"39": 26, "35": 18, "27": 13, "41":  8, "37":  8, "33":  6},
    "72":    {"35": 82, "37":  5, "41":  4},
    "81":    {"49": 22, "39": 20, "43": 10, "51":  8, "21":  6, "37":  4},
    "92":    {"33": 28, "43": 18, "13": 11, "11":  8, "21":  6, "47":  5, "19":  4},
}
# fmt: on


def group_mix() -> NDArray[np.float64]:
    """The share of every major group in every industry: a row per industry, summing to one."""
    everywhere = np.array([group.share for group in GROUPS])
    mix = np.empty((len(INDUSTRY), len(GROUPS)))
    for row, industry in zip(mix, INDUSTRY.codes, strict=True):
        main = np.array([_MAIN[industry].get(code, 0) for code in MAJOR_GROUP.codes], dtype=np.float64)
        others = np.where(main > 0, 0, everywhere)
        row[:] = main / 100 + (1 - main.sum() / 100) * others / others.sum()
    return mix


# The strata of the sample: industry by size, and in each industry the establishments taken for sure.

PER_INDUSTRY: Final = len(SIZE) + 1
"""Strata of an industry: one for each size, and one for those taken for sure."""
SURE: Final = len(SIZE)
"""The position of the latter within an industry."""
STRATUM: Final = Codelist(
    name="stratum",
    label="Stratum",
    entries=tuple(
        (f"{industry}/{size}", f"{label}: {words}")
        for industry, label in INDUSTRY.entries
        for size, words in (*SIZE.entries, ("sure", "taken for sure"))
    ),
)
OWNERSHIP: Final = Codelist(
    name="ownership",
    label=EVERY_OWNERSHIP.label,
    entries=tuple(entry for entry in EVERY_OWNERSHIP.entries if entry[0] != "federal"),
)
"""Federal workers are not in the survey."""
WORKERS: Final = 130_000_000
"""In the country, whatever the size of the survey."""


def workers() -> Floats:
    """The workers of every stratum but those taken for sure: a row per industry, a column per size."""
    by_industry = industries.column("establishments") * industries.column("size")
    shares: Floats = (by_industry / by_industry.sum())[:, None] * worker_shares()
    return WORKERS * shares


def ownership_shares() -> Floats:
    """The shares of ownerships in every industry: a row each, summing to one."""
    kept = [EVERY_OWNERSHIP.codes.index(code) for code in OWNERSHIP.codes]
    shares = industries.ownership_shares()[:, kept]
    without_federal: Floats = shares / shares.sum(axis=1, keepdims=True)
    return without_federal


# The codelists of a survey of requirements.

CODELISTS: Final = (
    OCCUPATION,
    MAJOR_GROUP,
    INDUSTRY,
    OWNERSHIP,
    SIZE,
    STRATUM,
    *(variable.codelist for variable in VARIABLES),
)


# What holds for the whole survey: which occupations work where, what each is like, and how strata are sampled.

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
