"""Leaders: the largest employers of a cell, given the turnover that makes its few contributors dominate it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.economy.business import divisions
from sfumato.economy.business.accounts import MOST_TURNOVER
from sfumato.economy.business.design import CELLS, SHAPES, Design
from sfumato.economy.business.establishments import Establishments
from sfumato.economy.business.sizes import LARGE, MOST_EMPLOYEES, STARTS

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
