"""Races and genders: where parents stand in the income distribution, and how children's ranks follow theirs.

Intercepts and slopes are round ones, of the size found for children born around 1980 in the United States.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato_lab.economy.jobs.codelists import SEX, Codelist


@dataclass(frozen=True, kw_only=True)
class Race:
    """One race or ethnicity."""

    code: str
    label: str
    parents: float
    """Where parents stand, in standard deviations."""
    women: float
    """The mean rank of women whose parents have the lowest rank, from 0 to 1."""
    men: float
    """The same of men."""
    slope: float
    """How far children's ranks rise with those of their parents."""


def _race(code: str, label: str, *numbers: float) -> Race:
    """A race from a line of the table below, its numbers in the order of the fields."""
    parents, women, men, slope = numbers
    return Race(code=code, label=label, parents=parents, women=women, men=men, slope=slope)


# fmt: off
RACES: Final = (
    #                                                 parents women  men slope
    _race("white",      "White",                         .20,  .36, .39, .31),
    _race("black",      "Black",                        -.75,  .28, .25, .27),
    _race("hispanic",   "Hispanic",                     -.55,  .35, .37, .25),
    _race("asian",      "Asian",                         .05,  .46, .47, .23),
    _race("indigenous", "American Indian, Alaska Native", -.60, .28, .27, .29),
)
# fmt: on

RACE: Final = Codelist(name="race", label="Race", entries=tuple((race.code, race.label) for race in RACES))
GENDER: Final = Codelist(name="gender", label="Gender", entries=SEX.entries)
GROUPS: Final = len(RACE) * len(GENDER)
"""Groups of a tract; the number of one is race · genders + gender."""


def intercepts() -> Floats:
    """The mean rank of children of the lowest parents, for every race (a row) and gender."""
    return np.array([(race.women, race.men) for race in RACES])


def column(name: str) -> Floats:
    """One field of every race, in the order of the codelist."""
    return np.array([getattr(race, name) for race in RACES], dtype=np.float64)
