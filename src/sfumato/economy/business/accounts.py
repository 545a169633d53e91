"""What establishments turn over, what is left of it, and who asked to be protected."""

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.economy.business import divisions
from sfumato.economy.business.establishments import Establishments
from sfumato.economy.business.sizes import size_of

MOST_TURNOVER = 10**13
"""Dollars: beyond any firm, and small enough that a weighted turnover is exact in 64 bits to four digits."""
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
    turnover: Integers = np.minimum(np.rint(np.exp(log_turnover)), MOST_TURNOVER).astype(np.int64)
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
