"""Agencies, states and the codes of every attribute of a federal workforce."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato_lab.economy.federal.agencies import AGENCY, INDUSTRY
from sfumato_lab.economy.jobs.codelists import EDUCATION, SEX, Codelist

# The fifty states and the District of Columbia: how many civilians the government employs there, and where they lie.
#
# Employment is in round thousands outside defence; positions are those of the main offices, in degrees.

_EARTH = 6_371.0
"""Kilometres."""


@dataclass(frozen=True, kw_only=True)
class State:
    """One state."""

    number: str
    """Two digits, with which the employers' identifiers begin."""
    code: str
    label: str
    employment: float
    """Thousands of federal civilians outside defence."""
    latitude: float
    longitude: float


def _state(number: str, code: str, label: str, *numbers: float) -> State:
    """A state from a line of the table below, its numbers in the order of the fields."""
    employment, latitude, longitude = numbers
    return State(number=number, code=code, label=label, employment=employment, latitude=latitude, longitude=longitude)


# fmt: off
STATES = (
    _state("01", "AL", "Alabama",               18, 33.0,  -86.8),
    _state("02", "AK", "Alaska",                10, 61.2, -149.9),
    _state("04", "AZ", "Arizona",               35, 33.4, -112.0),
    _state("05", "AR", "Arkansas",              13, 34.7,  -92.3),
    _state("06", "CA", "California",           105, 35.8, -119.4),
    _state("08", "CO", "Colorado",              32, 39.7, -105.0),
    _state("09", "CT", "Connecticut",            8, 41.6,  -72.7),
    _state("10", "DE", "Delaware",               3, 39.5,  -75.6),
    _state("11", "DC", "District of Columbia", 145, 38.9,  -77.0),
    _state("12", "FL", "Florida",               62, 28.1,  -81.6),
    _state("13", "GA", "Georgia",               47, 33.7,  -84.4),
    _state("15", "HI", "Hawaii",                 6, 21.3, -157.8),
    _state("16", "ID", "Idaho",                  9, 43.6, -116.2),
    _state("17", "IL", "Illinois",              42, 41.5,  -88.0),
    _state("18", "IN", "Indiana",               17, 39.8,  -86.2),
    _state("19", "IA", "Iowa",                  10, 41.8,  -93.2),
    _state("20", "KS", "Kansas",                13, 39.0,  -95.9),
    _state("21", "KY", "Kentucky",              17, 38.1,  -85.2),
    _state("22", "LA", "Louisiana",             18, 30.2,  -91.0),
    _state("23", "ME", "Maine",                  6, 44.2,  -69.6),
    _state("24", "MD", "Maryland",             100, 39.1,  -76.8),
    _state("25", "MA", "Massachusetts",         25, 42.3,  -71.3),
    _state("26", "MI", "Michigan",              25, 42.5,  -83.8),
    _state("27", "MN", "Minnesota",             18, 44.9,  -93.4),
    _state("28", "MS", "Mississippi",           12, 32.4,  -89.8),
    _state("29", "MO", "Missouri",              33, 38.7,  -92.4),
    _state("30", "MT", "Montana",               10, 46.4, -111.9),
    _state("31", "NE", "Nebraska",              10, 41.1,  -96.6),
    _state("32", "NV", "Nevada",                11, 36.6, -115.6),
    _state("33", "NH", "New Hampshire",          4, 43.1,  -71.4),
    _state("34", "NJ", "New Jersey",            24, 40.4,  -74.5),
    _state("35", "NM", "New Mexico",            18, 35.1, -106.5),
    _state("36", "NY", "New York",              60, 41.4,  -74.3),
    _state("37", "NC", "North Carolina",        28, 35.7,  -79.4),
    _state("38", "ND", "North Dakota",           5, 46.9,  -99.1),
    _state("39", "OH", "Ohio",                  38, 40.2,  -82.9),
    _state("40", "OK", "Oklahoma",              18, 35.5,  -97.2),
    _state("41", "OR", "Oregon",                17, 44.9, -122.5),
    _state("42", "PA", "Pennsylvania",          52, 40.3,  -76.7),
    _state("44", "RI", "Rhode Island",           4, 41.8,  -71.4),
    _state("45", "SC", "South Carolina",        13, 33.6,  -80.6),
    _state("46", "SD", "South Dakota",           8, 44.0,  -99.6),
    _state("47", "TN", "Tennessee",             36, 35.7,  -86.9),
    _state("48", "TX", "Texas",                 92, 30.9,  -97.2),
    _state("49", "UT", "Utah",                  16, 40.8, -111.9),
    _state("50", "VT", "Vermont",                4, 44.4,  -72.8),
    _state("51", "VA", "Virginia",              85, 38.6,  -77.6),
    _state("53", "WA", "Washington",            30, 47.4, -121.8),
    _state("54", "WV", "West Virginia",         17, 39.2,  -79.8),
    _state("55", "WI", "Wisconsin",             16, 43.4,  -88.9),
    _state("56", "WY", "Wyoming",                5, 42.6, -106.4),
)
# fmt: on

STATE = Codelist(name="state", label="State", entries=tuple((state.code, state.label) for state in STATES))
TILES = """
AK .  .  .  .  .  .  .  .  .  ME
.  .  .  .  .  WI .  .  .  VT NH
WA ID MT ND MN IL MI .  NY MA
OR NV WY SD IA IN OH PA NJ CT RI
CA UT CO NE MO KY WV VA MD DE
.  AZ NM KS AR TN NC SC DC
.  .  .  OK LA MS AL GA
HI .  .  TX .  .  .  FL
"""
"""Where states lie, roughly, all as large as any other."""


def employment() -> Floats:
    """Every state's share of all federal employment."""
    thousands = np.array([state.employment for state in STATES], dtype=np.float64)
    shares: Floats = thousands / thousands.sum()
    return shares


def distances() -> Floats:
    """Kilometres between every two states along the great circle."""
    latitude = np.radians([state.latitude for state in STATES])
    longitude = np.radians([state.longitude for state in STATES])
    cosine = np.sin(latitude) * np.sin(latitude)[:, None] + np.cos(latitude) * np.cos(latitude)[:, None] * np.cos(
        longitude - longitude[:, None]
    )
    kilometres: Floats = _EARTH * np.arccos(np.clip(cosine, -1, 1))
    return kilometres


# The codes of every attribute of the workforce, in the order its files and its release list them.

AGE: Final = Codelist(
    name="age",
    label="Age",
    entries=(
        ("18-24", "18 to 24 years"),
        ("25-34", "25 to 34 years"),
        ("35-44", "35 to 44 years"),
        ("45-54", "45 to 54 years"),
        ("55-64", "55 to 64 years"),
        ("65-99", "65 years and older"),
    ),
)

CODELISTS: Final = (STATE, AGENCY, INDUSTRY, SEX, AGE, EDUCATION)
