"""Job titles at a university, the sector people go to, and what they earn there.

Shares and earnings are round ones; graduate students enter industry as often as Zolas and others (2015) found.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato_lab.economy.jobs.codelists import Codelist


@dataclass(frozen=True, kw_only=True)
class Title:
    """One job title."""

    code: str
    label: str
    employees: float
    """Employees who leave, in per cent of all."""
    academia: float
    """Per cent of them who go to academia."""
    industry: float
    """Per cent who go to industry; the rest go to government."""
    earnings: float
    """Typical dollars in the first year, in academia."""
    growth: float
    """By how much the logarithm of earnings rises in ten years."""
    spread: float
    """Standard deviation of log earnings."""


def _title(code: str, label: str, *numbers: float) -> Title:
    """A title from a line of the table below, its numbers in the order of the fields."""
    employees, academia, industry, earnings, growth, spread = numbers
    return Title(
        code=code,
        label=label,
        employees=employees,
        academia=academia,
        industry=industry,
        earnings=earnings,
        growth=growth,
        spread=spread,
    )


# fmt: off
TITLES: Final = (
    #                                           number acad. ind. dollars growth spread
    _title("faculty",       "Faculty",              12,  62,   30,  88_000,  .20,  .48),
    _title("postdoc",       "Postdoctoral fellow",  10,  55,   38,  54_000,  .50,  .42),
    _title("graduate",      "Graduate student",     28,  55,   39,  42_000,  .65,  .50),
    _title("undergraduate", "Undergraduate",        24,  25,   66,  24_000,  .85,  .62),
    _title("staff",         "Staff",                26,  48,   42,  45_000,  .28,  .52),
)
# fmt: on

TITLE: Final = Codelist(
    name="title", label="Job title at the university", entries=tuple((title.code, title.label) for title in TITLES)
)
SECTOR: Final = Codelist(
    name="sector",
    label="Sector after leaving",
    entries=(("academia", "Academia"), ("industry", "Industry"), ("government", "Government")),
)
PREMIUM: Final = np.array([0.0, 0.28, 0.12])
"""The logarithm of earnings in every sector, beside academia."""
MOST_YEARS: Final = 10
YEARS: Final = Codelist(
    name="years",
    label="Years since leaving",
    entries=tuple((str(year), f"{year} year{'s' if year > 1 else ''}") for year in range(1, MOST_YEARS + 1)),
)


def column(name: str) -> Floats:
    """One field of every title, in the order of the codelist."""
    return np.array([getattr(title, name) for title in TITLES], dtype=np.float64)


def sector_shares() -> Floats:
    """The shares of sectors after leaving from every title: a row each, summing to one."""
    academia, industry = column("academia") / 100, column("industry") / 100
    return np.column_stack([academia, industry, 1 - academia - industry])
