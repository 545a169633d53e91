"""Nineteen industry divisions: how many businesses, how often in chains, how large, what they turn over and pay.

All figures are round ones; pay follows the mean weekly earnings of the paper's Table 4 where it has them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato_lab.economy.jobs.codelists import Codelist


@dataclass(frozen=True, kw_only=True)
class Division:
    """One industry division."""

    code: str
    label: str
    businesses: float
    """Businesses, in per cent of all."""
    chains: float
    """Share of enterprises with several establishments."""
    size: float
    """Shift of the latent size, in standard deviations."""
    turnover: float
    """Typical turnover a head, in thousand dollars a year."""
    margin: float
    """Typical profit, as a share of turnover."""
    pay: float
    """Pay beside that of the same occupations elsewhere."""


def _division(code: str, label: str, *numbers: float) -> Division:
    """A division from a line of the table below, its numbers in the order of the fields."""
    businesses, chains, size, turnover, margin, pay = numbers
    return Division(
        code=code,
        label=label,
        businesses=businesses,
        chains=chains,
        size=size,
        turnover=turnover,
        margin=margin,
        pay=pay,
    )


# fmt: off
DIVISIONS = (
    #                                                        number chains  size turn. margin  pay
    _division("A", "Agriculture, forestry and fishing",        7.5,  .02,  -.30,  160,  .12,   .80),
    _division("B", "Mining",                                   0.5,  .10,   .35,  900,  .18,  1.75),
    _division("C", "Manufacturing",                            4.0,  .06,   .30,  300,  .08,  1.00),
    _division("D", "Electricity, gas, water and waste",        0.5,  .10,   .30,  600,  .10,  1.35),
    _division("E", "Construction",                            17.0,  .02,  -.20,  230,  .10,  1.15),
    _division("F", "Wholesale trade",                          3.5,  .08,   .15,  650,  .06,  1.10),
    _division("G", "Retail trade",                             6.0,  .12,   .10,  250,  .05,   .80),
    _division("H", "Accommodation and food services",          4.5,  .09,   .25,   90,  .06,   .75),
    _division("I", "Transport, postal and warehousing",        8.5,  .03,  -.20,  210,  .08,  1.05),
    _division("J", "Information media and telecommunications", 1.0,  .08,   .10,  350,  .12,  1.20),
    _division("K", "Financial and insurance services",         5.0,  .12,  -.10,  500,  .22,  1.25),
    _division("L", "Rental, hiring and real estate",          11.0,  .05,  -.35,  280,  .20,  1.00),
    _division("M", "Professional and technical services",     13.0,  .03,  -.10,  180,  .14,  1.15),
    _division("N", "Administrative and support services",      4.5,  .05,   .10,  110,  .08,   .85),
    _division("O", "Public administration and safety",         0.4,  .15,   .60,  150,  .02,  1.05),
    _division("P", "Education and training",                   1.4,  .06,   .40,   95,  .08,   .90),
    _division("Q", "Health care and social assistance",        6.5,  .06,   .20,  100,  .12,   .95),
    _division("R", "Arts and recreation services",             1.2,  .04,   .05,  150,  .06,   .85),
    _division("S", "Other services",                           4.0,  .03,  -.10,  110,  .10,   .85),
)
# fmt: on

INDUSTRY = Codelist(
    name="industry", label="Industry", entries=tuple((division.code, division.label) for division in DIVISIONS)
)


def column(name: str) -> NDArray[np.float64]:
    """One field of every division, in the order of the codelist."""
    return np.array([getattr(division, name) for division in DIVISIONS], dtype=np.float64)
