"""A sample of the employees of every establishment, linked to it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.economy.business import divisions, occupations
from sfumato.economy.business.design import Design
from sfumato.economy.business.divisions import INDUSTRY
from sfumato.economy.business.leaders import Led
from sfumato.economy.business.occupations import OCCUPATION

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
