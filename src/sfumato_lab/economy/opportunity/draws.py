"""Children of tracts: where they grew up, race, gender, and two ranks in hundredths of a percentile."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.federal.codes import STATE
from sfumato_lab.economy.frame import Purpose, stream
from sfumato_lab.economy.jobs.codelists import Codelist
from sfumato_lab.economy.opportunity import groups, states
from sfumato_lab.economy.opportunity.groups import GENDER, GROUPS, RACE

# Tracts: how many children grew up there, of which race, how well off, and what became of them.

PER_COUNTY = 24
"""Tracts of a county."""
CHILDREN, CHILDREN_SPREAD, FEWEST_CHILDREN = 300.0, 0.45, 20
"""Mean children of a tract, their spread on the log scale, and the fewest."""
SEGREGATION = 2.6
"""Tracts differ in their races as draws from a Dirichlet distribution do whose weights sum to this."""
AFFLUENCE = 0.5
"""Standard deviation between tracts of where parents stand."""
PLACE, PLACE_BY_AFFLUENCE, OWN = 0.045, 0.4, 0.02
"""Spread of intercepts between tracts, its correlation with affluence, and their spread between groups of a tract."""
SLOPE_SPREAD = 0.04
SLOPES: Final = (0.2, 0.45)
"""The least and the most slope of a group."""


@dataclass(frozen=True, kw_only=True)
class Tracts:
    """Tracts in the order of their states."""

    state: Integers
    """Positions in the codelist of states, ascending."""
    children: Integers
    race: Floats
    """The shares of races: a row per tract."""
    affluence: Floats
    """Where parents stand beside others of their race, in standard deviations."""
    intercept: Floats
    """The mean rank of children of the lowest parents, from 0 to 1, by tract, race and gender."""
    slope: Floats
    """How far children's ranks rise with those of their parents, by tract, race and gender."""

    def __len__(self) -> int:
        return len(self.state)

    @cached_property
    def codelist(self) -> Codelist:
        """Eleven digits a tract: two of its state, three of its county, six of its own."""
        within = np.arange(len(self)) - np.searchsorted(self.state, self.state)
        county, tract = np.divmod(within, PER_COUNTY)
        number, label = states.numbers(), [label for _, label in STATE.entries]
        return Codelist(
            name="tract",
            label="Census tract",
            entries=tuple(
                (f"{number[s]}{2 * c + 1:03}{100 * (t + 1):06}", f"Tract {t + 1}, county {2 * c + 1:03}, {label[s]}")
                for s, c, t in zip(self.state.tolist(), county.tolist(), tract.tolist(), strict=True)
            ),
        )


def draw_tracts(count: int, seed: int) -> Tracts:
    """So many tracts, over the states as they are in the country, at least one in each."""
    rng = stream(seed, Purpose.OPPORTUNITY_TRACTS)
    state = np.repeat(np.arange(len(STATE)), _allocate(count))
    children = CHILDREN * np.exp(CHILDREN_SPREAD * rng.standard_normal(count) - CHILDREN_SPREAD**2 / 2)
    # A tiny weight may give an exact zero for a race, never for all of them: white ones are many everywhere but one.
    weights = rng.standard_gamma(SEGREGATION * states.race_shares()[state]) + 1e-12
    affluence = rng.standard_normal(count)
    place = PLACE_BY_AFFLUENCE * affluence + np.sqrt(1 - PLACE_BY_AFFLUENCE**2) * rng.standard_normal(count)
    shape = (count, len(RACE), len(GENDER))
    slope = groups.column("slope")[:, None] + SLOPE_SPREAD * rng.standard_normal(shape)
    return Tracts(
        state=state,
        children=np.maximum(np.rint(children), FEWEST_CHILDREN).astype(np.int64),
        race=weights / weights.sum(axis=1, keepdims=True),
        affluence=AFFLUENCE * affluence,
        intercept=groups.intercepts() + PLACE * place[:, None, None] + OWN * rng.standard_normal(shape),
        slope=slope.clip(*SLOPES),
    )


def _allocate(count: int) -> Integers:
    """Whole numbers of tracts by state with this sum: one each, the rest in proportion, by largest remainders."""
    quota = (count - len(STATE)) * states.tract_shares()
    whole = np.floor(quota).astype(np.int64)
    whole[np.argsort(whole - quota, kind="stable")[: count - len(STATE) - whole.sum()]] += 1
    return 1 + whole


# Children of some tracts: race, gender, and two ranks in hundredths of a percentile.

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
