"""Agencies: how many they employ in how many offices, how far these reach into the country, who works there.

Employment follows the civilian workforce outside defence in round thousands; everything else is as rough.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato_lab.economy.jobs.codelists import Codelist

INDUSTRY = Codelist(
    name="industry",
    label="Industry",
    entries=(
        ("health", "Health and veterans"),
        ("justice", "Justice and security"),
        ("land", "Land, agriculture and environment"),
        ("finance", "Revenue and financial supervision"),
        ("social", "Social insurance and labour"),
        ("transport", "Transport and space"),
        ("commerce", "Commerce and statistics"),
        ("energy", "Energy"),
        ("foreign", "Foreign affairs"),
        ("central", "Central services and culture"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Agency:
    """One agency."""

    code: str
    label: str
    industry: str
    employment: float
    """Thousands of workers."""
    offices: int
    """Administrative divisions, each of which is an employer in every state where it is present."""
    reach: float
    """How far into the country: 1 is present in proportion to the states, 0 almost only at the seat of government."""
    women: float
    """Share of women."""
    schooling: float
    """Shift of the latent schooling, in standard deviations."""
    pay: float
    """Typical dollars a quarter."""


def _agency(code: str, label: str, industry: str, *numbers: float) -> Agency:
    """An agency from a line of the table below, its numbers in the order of the fields."""
    employment, offices, reach, women, schooling, pay = numbers
    return Agency(
        code=code,
        label=label,
        industry=industry,
        employment=employment,
        offices=int(offices),
        reach=reach,
        women=women,
        schooling=schooling,
        pay=pay,
    )


# fmt: off
AGENCIES = (
    #                                              industry    empl. off. reach women school    pay
    _agency("AG", "Agriculture",                  "land",       98,  31, .95, .44,  .05, 14_500),
    _agency("AM", "International development",    "foreign",     4,   6, .10, .53,  .90, 25_000),
    _agency("AR", "Archives",                     "central",     3,   5, .60, .52,  .30, 16_500),
    _agency("CM", "Commerce",                     "commerce",   46,  19, .65, .46,  .60, 22_500),
    _agency("CU", "Credit unions",                "finance",     1,   4, .70, .45,  .70, 24_000),
    _agency("DJ", "Justice",                      "justice",   115,  34, .85, .38,  .30, 21_000),
    _agency("DL", "Labour",                       "social",     17,  22, .80, .50,  .50, 22_000),
    _agency("DN", "Energy",                       "energy",     15,  24, .60, .38,  .70, 25_500),
    _agency("ED", "Education",                    "central",     4,  18, .55, .62,  .80, 24_500),
    _agency("EE", "Equal employment",             "social",      2,   5, .80, .63,  .70, 22_000),
    _agency("EP", "Environmental protection",     "land",       18,  16, .75, .51,  .80, 25_500),
    _agency("FC", "Communications",               "commerce",    2,   8, .35, .49,  .80, 26_500),
    _agency("FD", "Deposit insurance",            "finance",     7,   8, .80, .44,  .70, 29_000),
    _agency("FT", "Trade supervision",            "commerce",    1,   6, .35, .51,  .90, 26_500),
    _agency("GS", "General services",             "central",    12,  14, .75, .48,  .40, 22_500),
    _agency("HE", "Health and human services",    "health",     82,  28, .55, .61,  .60, 22_500),
    _agency("HS", "Homeland security",            "justice",   182,  24, .95, .34, -.05, 17_500),
    _agency("HU", "Housing",                      "social",     10,  17, .80, .60,  .50, 23_000),
    _agency("IN", "Interior",                     "land",       72,  24, .95, .41,  .10, 16_500),
    _agency("NL", "Labour relations",             "social",      2,   5, .75, .58,  .70, 24_500),
    _agency("NN", "Space and aeronautics",        "transport",  18,  12, .60, .34,  .95, 28_500),
    _agency("NU", "Nuclear supervision",          "energy",      4,   9, .45, .39,  .90, 29_500),
    _agency("OM", "Personnel",                    "central",     6,  12, .65, .58,  .30, 20_000),
    _agency("SB", "Small business",               "commerce",    5,  12, .85, .55,  .40, 20_500),
    _agency("SE", "Securities supervision",       "finance",     4,  10, .50, .46,  .95, 34_000),
    _agency("SM", "Museums",                      "central",     5,  10, .15, .51,  .40, 17_500),
    _agency("ST", "State",                        "foreign",    10,  22, .45, .53,  .60, 22_500),
    _agency("SZ", "Social security",              "social",     66,   9, .95, .70,  .10, 17_500),
    _agency("TD", "Transport",                    "transport",  57,  15, .95, .26,  .20, 27_500),
    _agency("TR", "Treasury",                     "finance",   112,  19, .90, .63,  .15, 17_000),
    _agency("TV", "Valley authority",             "energy",     12,   6, .40, .22,  .20, 23_500),
    _agency("VA", "Veterans affairs",             "health",    305,  12, .98, .60,  .10, 18_000),
)
# fmt: on

AGENCY = Codelist(name="agency", label="Agency", entries=tuple((agency.code, agency.label) for agency in AGENCIES))


def column(name: str) -> Floats:
    """One field of every agency, in the order of the codelist."""
    return np.array([getattr(agency, name) for agency in AGENCIES], dtype=np.float64)


def industries() -> NDArray[np.int8]:
    """Every agency's position in the codelist of industries."""
    return np.array([INDUSTRY.codes.index(agency.industry) for agency in AGENCIES], dtype=np.int8)
