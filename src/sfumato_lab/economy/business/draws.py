"""Establishments and enterprises, their accounts, leaders, staff and replicate weights."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.business import divisions, occupations
from sfumato_lab.economy.business.design import (
    CELLS,
    LARGE,
    MOST_EMPLOYEES,
    RESPONSE_CLASSES,
    SHAPES,
    STARTS,
    Design,
    draw_employees,
    size_of,
)
from sfumato_lab.economy.business.divisions import INDUSTRY
from sfumato_lab.economy.business.occupations import OCCUPATION

# Establishments and the enterprises that own them, one chunk at a time.

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


# What establishments turn over, what is left of it, and who asked to be protected.

MOST_TURNOVER = 39 * 10**11
"""Dollars, times the weight: beyond any firm, and small enough that sums are exact to millionths in 64 bits."""
MOST_LOSS = 10**12
"""Dollars."""

TURNOVER_SPREAD = 0.9
"""Standard deviation of log turnover a head."""
WINDFALL, WINDFALL_TAIL = 0.01, 1.4
"""Share of establishments whose turnover is multiplied by a Pareto draw, and its tail index: traders, holdings."""
_ZERO = np.array([0.075, 0.03, 0.01, 0.0])
"""Share without any turnover, by size."""
BEST_MARGIN = 0.7
_MARGIN_SPREAD = np.array([0.15, 0.12, 0.09, 0.05])
_WORST_MARGIN = np.array([-1.5, -1.0, -0.5, -0.1])
"""Spread and least value of profit as a share of turnover, by size: the large ones vary less."""
DORMANT_COST = 8_000
"""Typical loss in dollars of an establishment without turnover."""
_CONSENT = np.array([0.08, 0.10, 0.14, 0.25])
"""Share that asked to be protected, by size."""


def draw_turnover(establishments: Establishments, rng: np.random.Generator) -> Integers:
    """Dollars a year: log-normal given industry and employees, with a heavier tail and some zeros."""
    count = len(establishments)
    heads = establishments.employees + 0.7
    log_turnover = TURNOVER_SPREAD * rng.standard_normal(count) + np.log(heads)
    log_turnover += np.log(1_000 * divisions.column("turnover"))[establishments.industry]
    lucky = rng.random(count) < WINDFALL
    log_turnover[lucky] -= np.log(1 - rng.random(np.count_nonzero(lucky))) / WINDFALL_TAIL
    most = np.floor(MOST_TURNOVER / establishments.weight)
    turnover: Integers = np.minimum(np.rint(np.exp(log_turnover)), most).astype(np.int64)
    turnover[rng.random(count) < _ZERO[size_of(establishments.employees)]] = 0
    return turnover


def draw_profit(establishments: Establishments, turnover: Integers, rng: np.random.Generator) -> Integers:
    """Dollars a year: a share of turnover with a heavy tail on both sides; without turnover, what it cost."""
    size = size_of(establishments.employees)
    margin = _MARGIN_SPREAD[size] * rng.standard_t(3, size=len(turnover))
    margin += divisions.column("margin")[establishments.industry]
    profit: Floats = turnover * margin.clip(_WORST_MARGIN[size], BEST_MARGIN)
    dormant = turnover == 0
    profit[dormant] = -DORMANT_COST * np.exp(rng.standard_normal(np.count_nonzero(dormant)))
    whole: Integers = np.rint(np.maximum(profit, -MOST_LOSS)).astype(np.int64)
    return whole


def draw_consent(employees: Integers, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each asked to be protected, the large ones more often."""
    asked: NDArray[np.bool_] = rng.random(len(employees)) < _CONSENT[size_of(employees)]
    return asked


# Leaders: the largest employers of a cell, given the turnover that makes its few contributors dominate it.

ROWS_PER_LEADER = 2
"""A cell has leaders if it has at least so many rows for each; smaller ones are uneven enough as they are."""
JITTER = 0.04
"""Standard deviation of a leader's log turnover about the shape of its cell."""
LEAST_REST = 1_000_000
"""Dollars that all others of a cell are taken to have at least."""
FIRST_LEADER = 0.8 * MOST_TURNOVER
"""A first leader that would have more has about this, and the others of its cell are less in proportion."""


@dataclass(frozen=True, kw_only=True)
class Led:
    """Establishments with their turnover, the leaders among them promoted."""

    establishments: Establishments
    turnover: Integers
    rank: Integers
    """0 for the first leader of a cell, 1 for the second; -1 for all that lead nothing."""


def without_leaders(establishments: Establishments, turnover: Integers) -> Led:
    """The same establishments and turnover, nobody leading."""
    return Led(establishments=establishments, turnover=turnover, rank=np.full(len(turnover), -1))


def promote(
    establishments: Establishments, turnover: Integers, design: Design, *, scale: float, rng: np.random.Generator
) -> Led:
    """Make the largest employers of every cell its leaders, taken for sure.

    `scale` is how many times as many establishments the whole survey has: leaders are measured against what all
    others of their cell will turn over in the end.
    """
    cell = establishments.cell
    order = np.lexsort((-establishments.employees, cell))
    rows_of_cell = np.bincount(cell, minlength=CELLS)
    place = np.empty_like(cell)
    place[order] = np.arange(len(cell)) - np.repeat(np.cumsum(rows_of_cell) - rows_of_cell, rows_of_cell)
    shares = _shares()[design.shape]
    leaders = np.count_nonzero(shares, axis=1)
    leaders[rows_of_cell < ROWS_PER_LEADER * leaders] = 0
    leads = place < leaders[cell]

    others = np.where(leads, 0, establishments.weight * turnover)
    rest = np.maximum(scale * np.bincount(cell, others, minlength=CELLS), LEAST_REST)
    of_leaders = rest * design.concentration / (1 - design.concentration)
    of_leaders = np.minimum(of_leaders, FIRST_LEADER / shares[:, 0])
    rows = np.flatnonzero(leads)
    exact = of_leaders[cell[rows]] * shares[cell[rows], place[rows]]
    exact *= np.exp(JITTER * rng.standard_normal(len(rows)))
    turnover, employees, weight = turnover.copy(), establishments.employees.copy(), establishments.weight.copy()
    turnover[rows] = np.minimum(np.rint(exact), MOST_TURNOVER).astype(np.int64)
    heads = turnover[rows] / (1_000 * divisions.column("turnover")[establishments.industry[rows]])
    employees[rows] = heads.clip(STARTS[LARGE], MOST_EMPLOYEES).astype(np.int64)
    weight[rows] = 1.0
    return Led(
        establishments=replace(establishments, employees=employees, weight=weight),
        turnover=turnover,
        rank=np.where(leads, place, -1),
    )


def _shares() -> NDArray[np.float64]:
    """The shapes as shares, a row each, filled with zeros."""
    shares = np.zeros((len(SHAPES), max(map(len, SHAPES))))
    for row, shape in zip(shares, SHAPES, strict=True):
        row[: len(shape)] = np.array(shape) / sum(shape)
    return shares


# A sample of the employees of every establishment, linked to it.

TAKEN, TAKEN_POWER, MOST_TAKEN = 2.0, 0.4, 30
"""So many employees are sampled for each power of their number, up to a limit."""
EXCLUSIVE_SHARE = 0.4
"""How many of a leader's employees have the occupation that works for leaders only."""
LOWER_PAY_WOMEN = 0.12
PAY_BY_ESTABLISHMENT, PAY_SPREAD = 0.18, 0.4
"""Standard deviations of log pay between establishments and between employees of one."""
LEAST_WAGE = 20
WEIGHT_DIGITS = 4

FEMALE, MALE = 0, 1

Codes = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Staff:
    """Sampled employees in the order of their establishments, with positions in the codelists."""

    establishment: Integers
    """Positions among the establishments of the chunk."""
    occupation: Codes
    sex: Codes
    wage: Integers
    """Dollars a week."""
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.establishment)


def draw_staff(led: Led, design: Design, *, limit: int, rng: np.random.Generator) -> Staff:
    """A sample of employees, at most `limit`: beyond that, only some establishments are asked for them."""
    establishments = led.establishments
    employees = establishments.employees
    taken = np.minimum(np.ceil(TAKEN * employees**TAKEN_POWER), MOST_TAKEN).astype(np.int64)
    taken = np.minimum(taken, employees)
    # Leaders are asked first; who is left out is chance.
    order = np.lexsort((rng.random(len(employees)), led.rank < 0))
    asked = np.empty(len(employees), dtype=np.bool_)
    asked[order] = np.cumsum(taken[order]) <= limit
    others = (taken > 0) & (led.rank < 0)
    stands_for = int(others.sum()) / max(int((others & asked).sum()), 1)

    row = np.repeat(np.arange(len(employees)), np.where(asked, taken, 0))
    occupation = _occupations(row, led, design, rng)
    sex = np.where(rng.random(len(row)) < occupations.women()[occupation], FEMALE, MALE).astype(np.int8)
    log_pay = np.log(occupations.pay())[occupation] + np.log(divisions.column("pay"))[establishments.industry[row]]
    log_pay += PAY_BY_ESTABLISHMENT * rng.standard_normal(len(employees))[row] + PAY_SPREAD * rng.standard_normal(
        len(row)
    )
    log_pay -= (PAY_BY_ESTABLISHMENT**2 + PAY_SPREAD**2) / 2 + LOWER_PAY_WOMEN * (sex == FEMALE)
    # Leaders are in the sample for sure; each of the others stands for those who were not asked too.
    weight = establishments.weight * np.where(others, stands_for, 1.0) * employees / np.maximum(taken, 1)
    return Staff(
        establishment=row,
        occupation=occupation.astype(np.int8),
        sex=sex,
        wage=np.maximum(np.rint(np.exp(log_pay)), LEAST_WAGE).astype(np.int64),
        weight=np.round(weight, WEIGHT_DIGITS)[row],
    )


def _occupations(row: Integers, led: Led, design: Design, rng: np.random.Generator) -> Integers:
    """Occupations by the mix of the industry, but some work for the leaders of a cell and for nobody else there."""
    cell = led.establishments.cell[row]
    mix = occupations.mix()
    # One ascending table of all industries: a draw in its own unit interval finds the occupation.
    table = (np.cumsum(mix, axis=1) + np.arange(len(INDUSTRY))[:, None]).ravel()
    industry = cell % len(INDUSTRY)
    place = np.searchsorted(table, industry + rng.random(len(row)), side="right")
    drawn: Integers = np.minimum(place - len(OCCUPATION) * industry, len(OCCUPATION) - 1)

    exclusive, rank = design.exclusive[cell], led.rank[row]
    entitled = (exclusive >= 0) & np.where(design.alone[cell], rank == 0, rank >= 0)
    barred = (drawn == exclusive) & ~entitled
    drawn[barred] = mix.argmax(axis=1)[industry[barred]]
    special = entitled & (rng.random(len(row)) < EXCLUSIVE_SHARE)
    drawn[special] = exclusive[special]
    return drawn


# Replicate weights of the delete-a-group jackknife.

GROUPS: Final = 60
NAMES: Final = tuple(f"rw_{number}" for number in range(1, GROUPS + 1))


def draw_groups(stratum: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Groups from 0 on, dealt out in turn within every stratum, so that each group is a sample of all."""
    groups = np.empty(len(stratum), dtype=np.int64)
    groups[np.argsort(stratum, kind="stable")] = (np.arange(len(stratum)) + rng.integers(GROUPS)) % GROUPS
    return groups


def replicate_weights(weight: Floats, group: NDArray[np.int64], number: int) -> Floats:
    """The weights without one group: the others stand for it.

    Who was taken for sure, at weight 1, stands for nobody else and would be in any sample: it keeps its weight, and
    adds nothing to the sampling variance.
    """
    without = np.where(group == number, 0.0, weight * (GROUPS / (GROUPS - 1)))
    return np.where(weight == 1.0, 1.0, without)
