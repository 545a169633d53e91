"""Employers: an office of an agency in a state, heavy-tailed in size, each with an identifier of twelve digits."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from sfumato.arrays import Floats, Integers
from sfumato.economy.federal import agencies
from sfumato.economy.federal.agencies import AGENCIES
from sfumato.economy.federal.states import STATE, STATES, employment
from sfumato.economy.streams import Purpose, stream

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
