"""Children of some tracts: race, gender, and two ranks in hundredths of a percentile."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sfumato.arrays import Integers
from sfumato.economy.opportunity import groups
from sfumato.economy.opportunity.groups import GENDER, GROUPS, RACE
from sfumato.economy.opportunity.tracts import Tracts

MOST_RANK: Final = 10_000
"""Hundredths of a percentile."""
WITHIN = 0.85
"""Standard deviation of where parents of one race and tract stand."""
CONCENTRATION = 2.0
"""Ranks of children are beta draws around their mean; with two, ranks with mean one half are uniform."""
EXTREME = 0.05
"""Mean ranks stay so far from 0 and from 1."""


@dataclass(frozen=True, kw_only=True)
class Children:
    """Children in the order of their tracts, races and genders, with positions in the codelists."""

    tract: NDArray[np.int32]
    """Positions among all tracts."""
    race: NDArray[np.int8]
    gender: NDArray[np.int8]
    parent_rank: Integers
    kid_rank: Integers

    def __len__(self) -> int:
        return len(self.tract)


def draw_children(tracts: Tracts, part: slice, rng: np.random.Generator) -> Children:
    """The children of some tracts: those of a slice."""
    here = np.arange(len(tracts))[part]
    by_race = rng.multinomial(tracts.children[part], tracts.race[part])
    women = rng.binomial(by_race, 0.5)
    sizes = np.stack([women, by_race - women], axis=2).ravel()
    group = np.repeat(np.arange(len(sizes)), sizes)
    tract, within = np.divmod(group, GROUPS)
    race = within // len(GENDER)
    assert len(sizes) == len(here) * len(RACE) * len(GENDER)

    stand = groups.column("parents")[race] + tracts.affluence[part][tract] + WITHIN * rng.standard_normal(len(group))
    parent_rank = _whole(ndtr(stand))
    mean = tracts.intercept[part].ravel()[group] + tracts.slope[part].ravel()[group] * parent_rank / MOST_RANK
    mean = mean.clip(EXTREME, 1 - EXTREME)
    return Children(
        tract=here[tract].astype(np.int32),
        race=race.astype(np.int8),
        gender=(within % len(GENDER)).astype(np.int8),
        parent_rank=parent_rank,
        kid_rank=_whole(rng.beta(CONCENTRATION * mean, CONCENTRATION * (1 - mean))),
    )


def _whole(share: NDArray[np.float64]) -> Integers:
    ranks: Integers = np.rint(MOST_RANK * share).astype(np.int64)
    return ranks
