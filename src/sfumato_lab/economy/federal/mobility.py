"""Employers, and how workers move between them: with their office, within the state, or anywhere."""

import math
from dataclasses import dataclass
from enum import IntEnum, unique
from statistics import NormalDist
from typing import Final

import numpy as np
import pyarrow as pa

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.federal import agencies
from sfumato_lab.economy.federal.agencies import AGENCIES
from sfumato_lab.economy.federal.codes import STATE, STATES, distances, employment
from sfumato_lab.economy.frame import Purpose, stream

# Employers: an office of an agency in a state, heavy-tailed in size, each with an identifier of twelve digits.

REFERENCE_PERSONS = 2_170_000
REFERENCE_EMPLOYERS = 7_341
FEWEST = 100
OFFICE_SPREAD = 1.6
"""Standard deviation of the log size of an agency's offices."""
SIZE_NOISE = 0.72
"""Standard deviation of log size about what office and state lead one to expect."""
SEAT = 0.7
"""Share of what does not reach into the country that sits in the capital."""
PRESENCE_BY_OFFICE, PRESENCE_BY_STATE, PRESENCE_NOISE = 0.8, 0.55, 0.8
"""Powers of an office's size and of a state's share in how likely the office is present there, and the noise in it."""

CAPITAL = STATE.codes.index("DC")
# No agency has more than 50 offices, and this step visits 100 numbers before it repeats one.
_NUMBER_STEP = 37
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Employers:
    """Every employer, ordered by state, agency and office: the order of the identifiers."""

    state: Integers
    agency: Integers
    office: Integers
    """Offices of all agencies, numbered from 0 on."""
    number: Integers
    """The two-digit number of the office within its agency."""
    size: Integers
    """Persons whose first employer this is, at least one."""

    def __len__(self) -> int:
        return len(self.size)

    @property
    def offices(self) -> int:
        """The number of offices, present or not."""
        return int(self.office.max()) + 1

    @property
    def shares(self) -> Floats:
        """Every employer's share of all persons."""
        shares: Floats = self.size / self.size.sum()
        return shares

    @property
    def identifiers(self) -> pa.Array:
        """Two digits for the state, two for the agency, and the office's number at the eighth and ninth place."""
        return pa.array(
            f"{STATES[state].number}{agency + 1:02d}000{number:02d}001"
            for state, agency, number in zip(
                self.state.tolist(), self.agency.tolist(), self.number.tolist(), strict=True
            )
        )


def how_many(persons: int) -> int:
    """The number of employers: 7,341 at the published size and otherwise in proportion, never below 100."""
    return max(FEWEST, round(REFERENCE_EMPLOYERS * persons / REFERENCE_PERSONS))


def draw_employers(*, persons: int, seed: int) -> Employers:
    """The employers of a workforce of so many persons, at least one in each state."""
    rng = stream(seed, Purpose.FEDERAL_EMPLOYERS)
    count = how_many(persons)
    counts = _offices(count)
    agency, within = np.repeat(np.arange(len(AGENCIES)), counts), np.concatenate([np.arange(n) for n in counts])
    # Evenly spaced over the distribution: what the largest offices hold must not swing from seed to seed.
    spread = np.exp([OFFICE_SPREAD * _NORMAL.inv_cdf((place + 0.5) / n) for n in counts for place in range(n)])
    office_size = agencies.column("employment")[agency] * spread / np.bincount(agency, spread)[agency]
    by_state = _shares_by_state()[agency]

    size = office_size[:, None] * by_state * np.exp(SIZE_NOISE * rng.standard_normal(by_state.shape))
    presence = PRESENCE_BY_OFFICE * np.log(office_size)[:, None] + PRESENCE_BY_STATE * np.log(by_state)
    presence += PRESENCE_NOISE * rng.gumbel(size=by_state.shape)
    presence[presence.argmax(axis=0), np.arange(len(STATES))] = np.inf  # no state without an employer
    office, state = np.divmod(np.argsort(-presence, axis=None, kind="stable")[:count], len(STATES))

    number = (_NUMBER_STEP * within + 61 * agency) % 100
    order = np.lexsort((number[office], agency[office], state))
    office, state = office[order], state[order]
    return Employers(
        state=state,
        agency=agency[office],
        office=office,
        number=number[office],
        size=_whole(size[office, state], total=persons),
    )


def _offices(employers: int) -> list[int]:
    """The number of offices of every agency; a small workforce has fewer."""
    scale = min(1.0, math.sqrt(employers / REFERENCE_EMPLOYERS))
    return [math.ceil(agency.offices * scale) for agency in AGENCIES]


def _shares_by_state() -> Floats:
    """How the workers of every agency are spread over the states: a row per agency."""
    capital = np.zeros(len(STATES))
    capital[CAPITAL] = 1
    reach = agencies.column("reach")[:, None]
    shares: Floats = reach * employment() + (1 - reach) * (SEAT * capital + (1 - SEAT) * employment())
    return shares


def _whole(weights: Floats, *, total: int) -> Integers:
    """Whole numbers in proportion to weights, each at least one, that add up to the total."""
    exact = (total - len(weights)) * weights / weights.sum()
    whole = np.floor(exact).astype(np.int64)
    missing = total - len(weights) - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    sizes: Integers = whole + 1
    return sizes


# How workers move between employers: with their office, within the state, or anywhere.
#
# One worker in seven has more than one employer. What leads from one to the next is a trait of the worker, so that a
# third employer is found as the second was:
#
# - TRANSFERRED workers go with their office to the one that takes it over, in the same state. A few large offices were
#   reorganised; like the founding of a department in 2003, this gives a few pairs of employers very many workers.
# - NATIONAL workers stay with their office and change the state, the more often the larger the office.
# - ROAMING workers change the office, and mostly the state.
# - LOCAL workers stay in the state, which near the capital means both banks of the river.

SEVERAL = 0.15
"""Share of workers with more than one employer."""
TRANSFERRED_SHARE = 0.345
"""Share of these who went with their office."""
REORGANISED: Final = (2, 5, 8, 11)
"""The offices that were reorganised, by rank of size; the next smaller one took each over."""
NATIONAL, NATIONAL_CAPITAL = 0.66, 0.38
"""How likely a mover of an office of average size stays with it, in the states and in the capital."""
NATIONAL_BY_SIZE = 0.7
MOST_NATIONAL = 0.85
ROAMING, ROAMING_CAPITAL = 0.092, 0.16
ROAMING_STAYS = 0.3
MOBILITY_BY_SIZE = 0.12
"""Power of the office's size in how likely its workers move at all."""
CAPITAL_MOBILITY, NEIGHBOUR_MOBILITY = 2.6, 1.48
"""How much likelier workers in the capital and beside it move than elsewhere."""
MOST_MOBILE = 0.9
REACH = 1_270.0
"""Kilometres over which the attraction between states falls by a factor e, down to the floor."""
FLOOR = 0.03
STATE_ATTRACTION = 0.8
"""Power of a state's employment in how attractive it is to someone who leaves another."""
OWN_AGENCY, OWN_AGENCY_CAPITAL, OWN_AGENCY_ROAMING = 0.83, 0.49, 0.33
"""How likely a new office belongs to the same agency."""
ATTRACTION, ATTRACTION_CAPITAL = 1.45, 0.84
"""Power of an employer's size in how attractive it is: above 1 the large ones attract more than their share."""
ACROSS_THE_RIVER = 0.66
"""How likely a local move near the capital may lead into any of its three parts."""
METRO: Final = tuple(STATE.codes.index(code) for code in ("DC", "MD", "VA"))
METRO_SHARES: Final = (0.6, 0.2, 0.2)

NOWHERE: Final = -1


@unique
class Kind(IntEnum):
    """What leads a worker from one employer to the next."""

    LOCAL = 0
    NATIONAL = 1
    ROAMING = 2
    TRANSFERRED = 3


@dataclass(frozen=True, kw_only=True)
class Mobility:
    """Everything that decides moves between these employers; drawing is all that is left to chance."""

    employers: Employers
    several: Floats
    """By first employer: how likely a worker has more than one."""
    kinds: Floats
    """By first employer: the cumulative probabilities of the kinds, of those who have more than one."""
    heir: Integers
    """By employer: the one that took it over, or NOWHERE."""
    of_office: Integers
    """By state and office: the employer, or NOWHERE."""
    towards: Floats
    """By state: the cumulative probabilities of the states that someone who leaves it goes to."""
    attraction: Floats
    """Attraction of all employers before this one, and at the end of all."""

    def next_employers(self, current: Integers, kind: Integers, rng: np.random.Generator) -> Integers:
        """An employer for each of these workers to go to; it may be the one they are at."""
        state = self._next_states(self.employers.state[current], kind, rng)
        drawn = self._drawn_offices(current, state, kind, rng)
        same_office = self.of_office[state, self.employers.office[current]]
        drawn = np.where((kind == Kind.NATIONAL) & (same_office != NOWHERE), same_office, drawn)
        heir = self.heir[current]
        return np.where((kind == Kind.TRANSFERRED) & (heir != NOWHERE), heir, drawn)

    def _next_states(self, state: Integers, kind: Integers, rng: np.random.Generator) -> Integers:
        uniform, leaving, metro = rng.random((3, len(state)))
        elsewhere = np.minimum((self.towards[state] < uniform[:, None]).sum(axis=1), len(STATES) - 1)
        leaves = (kind == Kind.NATIONAL) | ((kind == Kind.ROAMING) & (leaving >= ROAMING_STAYS))
        crosses = (kind == Kind.LOCAL) & np.isin(state, METRO) & (leaving < ACROSS_THE_RIVER)
        around = np.array(METRO)[np.searchsorted(np.cumsum(METRO_SHARES)[:-1], metro)]
        return np.select([leaves, crosses], [elsewhere, around], default=state)

    def _drawn_offices(self, current: Integers, state: Integers, kind: Integers, rng: np.random.Generator) -> Integers:
        """An employer in the state, of the same agency or of any, by attraction."""
        agency = self.employers.agency[current]
        in_agency = state * len(AGENCIES) + agency
        cell = self.employers.state * len(AGENCIES) + self.employers.agency
        begin, end = np.searchsorted(cell, in_agency), np.searchsorted(cell, in_agency, side="right")
        loyal = np.select(
            [kind == Kind.ROAMING, kind == Kind.NATIONAL, self.employers.state[current] == CAPITAL],
            [OWN_AGENCY_ROAMING, 1.0, OWN_AGENCY_CAPITAL],
            default=OWN_AGENCY,
        )
        anywhere = (rng.random(len(current)) >= loyal) | (begin == end)
        begin = np.where(anywhere, np.searchsorted(self.employers.state, state), begin)
        end = np.where(anywhere, np.searchsorted(self.employers.state, state, side="right"), end)
        low, high = self.attraction[begin], self.attraction[end]
        found = np.searchsorted(self.attraction, low + rng.random(len(current)) * (high - low), side="right") - 1
        return np.clip(found, begin, end - 1)


def mobility_between(employers: Employers) -> Mobility:
    """The mobility that gives employers of the published number and sizes the published number of edges."""
    state, office, share = employers.state, employers.office, employers.shares
    capital = state == CAPITAL
    of_office = np.full((len(STATES), employers.offices), NOWHERE)
    of_office[state, office] = np.arange(len(employers))
    office_share: Floats = np.bincount(office, share).astype(np.float64)
    relative = (office_share / (office_share @ office_share))[office]

    heir = _heirs(employers, of_office, office_share)
    reorganised = heir != NOWHERE
    wanted, there = SEVERAL * TRANSFERRED_SHARE, float(share[reorganised].sum())
    transferred = np.where(reorganised, min(wanted / there, MOST_MOBILE) if there else 0.0, 0.0)

    active = np.ones(len(STATES))
    active[list(METRO)] = CAPITAL_MOBILITY, NEIGHBOUR_MOBILITY, NEIGHBOUR_MOBILITY
    moving = _scaled(active[state] * relative**MOBILITY_BY_SIZE, share, mean=SEVERAL - float(share @ transferred))

    national = np.minimum(np.where(capital, NATIONAL_CAPITAL, NATIONAL) * relative**NATIONAL_BY_SIZE, MOST_NATIONAL)
    roaming = np.minimum(np.where(capital, ROAMING_CAPITAL, ROAMING), 1 - national)
    several = np.minimum(transferred + moving, 1.0)
    in_general = moving / (transferred + moving)
    kinds = np.column_stack([in_general * (1 - national - roaming), in_general * national, in_general * roaming])

    towards = (np.exp(-distances() / REACH) + FLOOR) * employment() ** STATE_ATTRACTION
    np.fill_diagonal(towards, 0)
    attraction = share ** np.where(capital, ATTRACTION_CAPITAL, ATTRACTION)
    return Mobility(
        employers=employers,
        several=several,
        kinds=np.cumsum(kinds, axis=1),
        heir=heir,
        of_office=of_office,
        towards=np.cumsum(towards / towards.sum(axis=1, keepdims=True), axis=1),
        attraction=np.concatenate([[0.0], np.cumsum(attraction)]),
    )


def _heirs(employers: Employers, of_office: Integers, office_share: Floats) -> Integers:
    """The employer that took over each employer of a reorganised office, where it is present in the state."""
    ranked = np.argsort(-office_share, kind="stable")
    successor = np.full(len(ranked), NOWHERE)
    ranks = np.array([rank for rank in REORGANISED if rank + 1 < len(ranked)])
    successor[ranked[ranks]] = ranked[ranks + 1]
    taken = successor[employers.office]
    return np.where(taken != NOWHERE, of_office[employers.state, taken], NOWHERE)


def _scaled(weights: Floats, share: Floats, *, mean: float) -> Floats:
    """Probabilities in proportion to weights, none above MOST_MOBILE, whose mean over all workers is this."""
    scale = 1.0
    for _ in range(20):  # each round restores the mean after the cut at the most; few are cut
        scale *= mean / float(share @ np.minimum(scale * weights, MOST_MOBILE))
    return np.minimum(scale * weights, MOST_MOBILE)
