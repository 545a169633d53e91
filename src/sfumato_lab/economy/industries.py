"""Twenty industry sectors: how many establishments, how large, who works there and for what pay.

Establishments, sizes and pay follow County Business Patterns 2019 in round numbers, with public schools and
public administration, which it leaves out, added; workforces follow the national picture, as roughly.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats
from sfumato_lab.economy.jobs.codelists import Codelist


@dataclass(frozen=True, kw_only=True)
class Sector:
    """One industry sector."""

    code: str
    label: str
    establishments: float
    """Relative number of establishments."""
    size: float
    """Typical number of workers of an establishment, beside other sectors."""
    women: float
    """Share of women."""
    schooling: float
    """Shift of the latent schooling, in standard deviations."""
    seniority: float
    """Shift of the latent age, in standard deviations."""
    minority: float
    """Shift of the log-odds of not being white, and of being Hispanic."""
    pay: float
    """Typical dollars a year of a worker aged 35 to 44 with some college."""


def _sector(code: str, label: str, *numbers: float) -> Sector:
    """A sector from a line of the table below, its numbers in the order of the fields."""
    establishments, size, women, schooling, seniority, minority, pay = numbers
    return Sector(
        code=code,
        label=label,
        establishments=establishments,
        size=size,
        women=women,
        schooling=schooling,
        seniority=seniority,
        minority=minority,
        pay=pay,
    )


# fmt: off
SECTORS = (
    #                                            establ. size women school senior minor.   pay
    _sector("11", "Agriculture, forestry, fishing", 1.0,  7, .27, -.75,  .10,  .70,  36_000),
    _sector("21", "Mining, oil and gas",            0.4, 23, .15, -.25,  .05,  .00,  84_000),
    _sector("22", "Utilities",                      0.5, 35, .25,  .15,  .30, -.30,  92_000),
    _sector("23", "Construction",                   9.3,  9, .13, -.50,  .00,  .35,  58_000),
    _sector("31-33", "Manufacturing",               3.7, 41, .29, -.25,  .20,  .10,  58_000),
    _sector("42", "Wholesale trade",                5.2, 15, .30, -.05,  .10,  .00,  62_000),
    _sector("44-45", "Retail trade",               13.3, 15, .50, -.35, -.45,  .10,  32_000),
    _sector("48-49", "Transport and warehousing",   3.3, 20, .25, -.40,  .10,  .35,  47_000),
    _sector("51", "Information",                    2.0, 22, .40,  .60, -.05, -.10,  86_000),
    _sector("52", "Finance and insurance",          6.0, 13, .56,  .55,  .10, -.10,  78_000),
    _sector("53", "Real estate and rental",         5.4,  5, .46,  .05,  .20, -.05,  50_000),
    _sector("54", "Professional services",         11.7, 10, .44,  .95,  .05, -.10,  78_000),
    _sector("55", "Management of companies",        0.7, 60, .50,  .70,  .10, -.15,  92_000),
    _sector("56", "Administrative services",        5.3, 19, .42, -.35, -.15,  .50,  36_000),
    _sector("61", "Education",                      2.6, 45, .68,  .90,  .10, -.15,  46_000),
    _sector("62", "Health care and social work",   11.7, 22, .77,  .35,  .00,  .15,  46_000),
    _sector("71", "Arts and recreation",            1.9, 17, .48,  .05, -.45, -.10,  30_000),
    _sector("72", "Accommodation and food",         9.4, 20, .54, -.65, -.85,  .40,  22_000),
    _sector("81", "Other services",                 9.6,  7, .53, -.15,  .05,  .15,  34_000),
    _sector("92", "Public administration",          2.0, 50, .46,  .35,  .30,  .05,  62_000),
)

# Shares of establishments in federal, state and local ownership; the rest is private.
_PUBLIC = {
    "22":    (.010, .020, .270),
    "48-49": (.050, .010, .040),
    "61":    (.000, .050, .500),
    "62":    (.003, .012, .020),
    "71":    (.005, .010, .055),
    "92":    (.250, .250, .500),
}
_PUBLIC_ELSEWHERE = (.0005, .001, .001)
# fmt: on

INDUSTRY = Codelist(name="industry", label="Industry", entries=tuple((sector.code, sector.label) for sector in SECTORS))


def column(name: str) -> Floats:
    """One field of every sector, in the order of the codelist."""
    return np.array([getattr(sector, name) for sector in SECTORS], dtype=np.float64)


def ownership_shares() -> Floats:
    """The shares of ownerships among the establishments of each sector: a row per sector, summing to one."""
    public = np.array([_PUBLIC.get(sector.code, _PUBLIC_ELSEWHERE) for sector in SECTORS])
    return np.column_stack([1 - public.sum(axis=1), public])
