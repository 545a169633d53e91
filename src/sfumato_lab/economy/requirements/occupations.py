"""Eight hundred six-digit occupations in 22 major groups: how common they are, and what sets their work apart.

Groups are those of the 2018 Standard Occupational Classification without the military; shares of employment and
numbers of occupations follow it in round numbers. The occupations themselves are numbered, not real ones.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.jobs.codelists import Codelist

TRAITS: Final = ("strain", "schooling", "desk", "site", "driving", "licence", "lead")
"""What the work of an occupation is like, in standard deviations: requirements follow from these."""
PER_MINOR_GROUP: Final = 10


@dataclass(frozen=True, kw_only=True)
class Group:
    """One major group of occupations."""

    code: str
    label: str
    occupations: int
    share: float
    """Per cent of all workers."""
    traits: tuple[float, ...]
    """Typical values, in the order of TRAITS."""


def _group(code: str, label: str, occupations: int, share: float, *traits: float) -> Group:
    """A group from a line of the table below."""
    return Group(code=code, label=label, occupations=occupations, share=share, traits=traits)


# fmt: off
GROUPS: Final = (
    #                                              number share strain school  desk  site drive lic.  lead
    _group("11", "Management",                         34,  6.9,  -1.0,  1.2,  1.0,  -.6,  -.2,   .0,  1.8),
    _group("13", "Business and financial operations",  32,  6.6,  -1.4,  1.1,  1.6, -1.0,  -.5,   .1,   .2),
    _group("15", "Computer and mathematical",          21,  3.4,  -1.6,  1.1,  2.0, -1.2, -1.2,  -.8,   .1),
    _group("17", "Architecture and engineering",       35,  1.7,   -.9,  1.2,  1.3,   .0,  -.2,   .3,   .2),
    _group("19", "Life, physical and social science",  44,   .9,   -.7,  1.6,  1.0,  -.1,  -.3,   .2,   .3),
    _group("21", "Community and social service",       18,  1.6,   -.8,  1.2,   .6,  -.8,   .4,   .6,   .1),
    _group("23", "Legal",                               9,   .8,  -1.5,  1.9,  1.5, -1.2,  -.6,  1.5,   .2),
    _group("25", "Education and library",              58,  5.8,   -.3,  1.3,   .3,  -.6, -1.0,  1.0,   .3),
    _group("27", "Arts, design, sports and media",     40,  1.4,   -.5,   .7,   .9,  -.3,  -.3,  -.9,  -.1),
    _group("29", "Health practitioners",               65,  6.2,    .3,  1.2,   .5,  -.5,  -.8,  2.0,   .1),
    _group("31", "Health support",                     20,  4.7,    .8,  -.2,  -.3,  -.6,  -.3,   .9, -1.0),
    _group("33", "Protective service",                 22,  2.4,    .6,   .0,  -.1,   .6,   .7,   .9,  -.1),
    _group("35", "Food preparation and serving",       18,  8.8,    .6, -1.4, -1.4,   .2,  -.9,  -.6,  -.6),
    _group("37", "Cleaning and grounds",               10,  2.9,   1.0, -1.5, -1.8,   .4,  -.2,  -.9,  -.8),
    _group("39", "Personal care and service",          31,  2.0,    .4,  -.8, -1.0,  -.2,  -.6,   .3,  -.8),
    _group("41", "Sales",                              22,  8.9,    .0,  -.6,   .2,  -.5,  -.2,  -.6,  -.3),
    _group("43", "Office and administrative support",  54, 12.3,   -.9,  -.2,  1.7,  -.9,  -.8,  -.9,  -.5),
    _group("45", "Farming, fishing and forestry",      13,   .3,   1.3, -1.6, -1.9,  1.3,   .3,  -.9,  -.9),
    _group("47", "Construction and extraction",        59,  4.2,   1.5,  -.5, -1.5,  1.8,   .5,   .3,  -.2),
    _group("49", "Installation and repair",            51,  4.0,   1.2,  -.1,  -.5,  1.4,   .7,   .4,  -.3),
    _group("51", "Production",                         94,  6.0,   1.0,  -.8,  -.9,  1.2, -1.0,  -.6,  -.7),
    _group("53", "Transport and material moving",      50,  9.0,   1.2, -1.0, -1.1,   .9,  1.4,   .0,  -.9),
)
# fmt: on

MAJOR_GROUP: Final = Codelist(
    name="major_group", label="Major group of occupations", entries=tuple((group.code, group.label) for group in GROUPS)
)


def _entries(group: Group) -> tuple[tuple[str, str], ...]:
    """Six digits: two for the major group, two for the minor group in it, two for the occupation in that."""
    places = (divmod(number, PER_MINOR_GROUP) for number in range(group.occupations))
    return tuple(
        (
            f"{group.code}{minor + 1:02}{number + 1:02}",
            f"{group.label}: minor group {minor + 1}, occupation {number + 1}",
        )
        for minor, number in places
    )


OCCUPATION: Final = Codelist(
    name="occupation", label="Occupation", entries=tuple(entry for group in GROUPS for entry in _entries(group))
)


def hierarchy() -> dict[str, tuple[str, ...]]:
    """The major group, its label and the minor group of every occupation: further columns of the codelist."""
    labels = dict(MAJOR_GROUP.entries)
    major = tuple(code[:2] for code in OCCUPATION.codes)
    return {
        "major_group": major,
        "major_group_label": tuple(labels[code] for code in major),
        "minor_group": tuple(code[:4] for code in OCCUPATION.codes),
    }


def group_of() -> Integers:
    """The position of every occupation's major group."""
    return np.repeat(np.arange(len(GROUPS)), [group.occupations for group in GROUPS])


def bounds() -> Integers:
    """Where the occupations of every group start, and after them where the last group ends."""
    return np.concatenate([[0], np.cumsum([group.occupations for group in GROUPS])])


def group_traits() -> Floats:
    """The traits of every group: a row each."""
    return np.array([group.traits for group in GROUPS])
