"""Establishments and the enterprises that own them, one chunk at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.economy.business import divisions
from sfumato.economy.business.design import RESPONSE_CLASSES, Design
from sfumato.economy.business.divisions import INDUSTRY
from sfumato.economy.business.sizes import draw_employees, size_of

CHAIN_TAIL = 1.25
"""Tail index of the number of further establishments of an enterprise that has several."""
MOST_ESTABLISHMENTS = 600
MOST_OF_ALL = 0.05
"""Nor does an enterprise have more of a chunk than this."""
AWAY, ANOTHER_INDUSTRY = 0.5, 0.15
"""How often a further establishment lies in a state, or works in an industry, drawn anew."""
SIZE_BY_CHAIN = 0.22
"""How the latent size rises with the logarithm of the establishments of an enterprise."""


@dataclass(frozen=True, kw_only=True)
class Establishments:
    """Establishments in the order of their enterprises, which are numbered from 0 on."""

    enterprise: Integers
    cell: Integers
    employees: Integers
    weight: Floats

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def enterprises(self) -> int:
        """The number of enterprises."""
        return int(self.enterprise[-1]) + 1

    @property
    def state(self) -> NDArray[np.int8]:
        """Positions in the codelist of states."""
        return (self.cell // len(INDUSTRY)).astype(np.int8)

    @property
    def industry(self) -> NDArray[np.int8]:
        """Positions in the codelist of industries."""
        return (self.cell % len(INDUSTRY)).astype(np.int8)


def draw_establishments(count: int, design: Design, rng: np.random.Generator) -> Establishments:
    """So many establishments, the last enterprise cut short where the count is reached."""
    places = np.cumsum(design.businesses)
    places[-1] = 1.0
    home = np.searchsorted(places, rng.random(count), side="right")
    owned = _owned(divisions.column("chains")[home % len(INDUSTRY)], rng)
    last = int(np.searchsorted(np.cumsum(owned), count))
    enterprise = np.repeat(np.arange(last + 1), owned[: last + 1])[:count]

    cell = _spread(home[enterprise], np.diff(enterprise, prepend=-1) == 0, places, rng)
    latent = rng.standard_normal(count) + divisions.column("size")[cell % len(INDUSTRY)]
    latent += SIZE_BY_CHAIN * np.log(owned[enterprise])
    employees = draw_employees(latent, rng)
    response = rng.integers(RESPONSE_CLASSES, size=count)
    return Establishments(
        enterprise=enterprise,
        cell=cell,
        employees=employees,
        weight=design.weights[cell, size_of(employees), response],
    )


def _owned(chains: Floats, rng: np.random.Generator) -> Integers:
    """How many establishments each enterprise has: mostly one, rarely hundreds."""
    several = rng.random(len(chains)) < chains
    most = min(MOST_ESTABLISHMENTS, max(2, int(MOST_OF_ALL * len(chains))))
    more = np.floor((1 - rng.random(len(chains))) ** (-1 / CHAIN_TAIL))
    return np.where(several, np.minimum(1 + more, most), 1).astype(np.int64)


def _spread(home: Integers, further: NDArray[np.bool_], places: Floats, rng: np.random.Generator) -> Integers:
    """The cells of establishments: the first of an enterprise at home, further ones partly elsewhere."""
    rows = np.flatnonzero(further)
    state, industry = np.divmod(home[rows], len(INDUSTRY))
    new_state, new_industry = np.divmod(
        np.searchsorted(places, rng.random((2, len(rows))), side="right"), len(INDUSTRY)
    )
    state = np.where(rng.random(len(rows)) < AWAY, new_state[0], state)
    industry = np.where(rng.random(len(rows)) < ANOTHER_INDUSTRY, new_industry[1], industry)
    cell = home.copy()
    cell[rows] = state * len(INDUSTRY) + industry
    return cell
