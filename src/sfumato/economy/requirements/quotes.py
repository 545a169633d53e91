"""The sampled jobs of establishments: their occupation, what they require, and the days it takes to prepare."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.economy.requirements import occupations
from sfumato.economy.requirements.design import Design
from sfumato.economy.requirements.establishments import Establishments
from sfumato.economy.requirements.industries import group_mix
from sfumato.economy.requirements.occupations import GROUPS
from sfumato.economy.requirements.variables import (
    CLIMBING,
    CREDENTIALS,
    EDUCATION,
    HEIGHTS,
    KEYBOARDING,
    STRENGTH,
    TELEWORK,
    VARIABLES,
)

CORE = 0.35
"""How many jobs of an establishment are of the one group that is its core, before those that are by chance."""
OF_ITS_OWN = 3
"""Jobs of a dominant establishment in the occupation that nobody else has."""
BY_ESTABLISHMENT, BY_JOB = 0.2, 0.3
"""Standard deviations of latent values between establishments and between jobs of one, given the occupation."""
_DAYS = np.array([12.0, 45.0, 260.0, 600.0, 1_100.0])
"""Typical days of preparation, by education."""
_NO_DAYS = np.array([0.3, 0.08, 0.01, 0.0, 0.0])
"""Share of jobs that need none, by education."""
DAYS_OF_CREDENTIALS, DAYS_SPREAD, MOST_DAYS = 1.4, 0.8, 3_650

Codes = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Quotes:
    """Sampled jobs in the order of their establishments, with positions in the codelists."""

    establishment: Integers
    """Positions among all establishments."""
    job: Integers
    """Numbers within the establishment, from 0 on."""
    occupation: NDArray[np.int32]
    requirements: dict[str, Codes]
    """By the name of the variable."""
    prep_days: Integers

    def __len__(self) -> int:
        return len(self.establishment)


def draw_quotes(establishments: Establishments, part: slice, design: Design, rng: np.random.Generator) -> Quotes:
    """The jobs of some establishments: those of a slice."""
    of_part = np.arange(len(establishments))[part]
    jobs = establishments.jobs[part]
    # Positions within the slice, and numbers within the establishment.
    row = np.repeat(np.arange(len(jobs)), jobs)
    job = np.arange(len(row)) - np.repeat(np.cumsum(jobs) - jobs, jobs)
    industry = establishments.industry[part]
    occupation = _occupations(industry, row, design, rng)
    dominant = establishments.dominant[part][row] & (job < OF_ITS_OWN)
    occupation[dominant] = design.exclusive[industry[row[dominant]]]
    requirements = _requirements(design.latent[occupation], row, len(jobs), rng)
    return Quotes(
        establishment=of_part[row],
        job=job,
        occupation=occupation.astype(np.int32),
        requirements=requirements,
        prep_days=_days(requirements, rng),
    )


def _occupations(industry: Integers, row: Integers, design: Design, rng: np.random.Generator) -> Integers:
    """A group by the mix of the industry, that of the establishment's core for some; then an occupation of it."""
    mix = np.cumsum(group_mix(), axis=1)
    mix[:, -1] = 1.0
    groups = (mix + np.arange(len(mix))[:, None]).ravel()

    def draw_group(of: Integers) -> Integers:
        # Draws stay clear of the upper end, so that adding the number of the industry never rounds up to the next.
        drawn: Integers = np.searchsorted(groups, of + _below_one(len(of), rng), side="right") - len(GROUPS) * of
        return drawn

    core = draw_group(industry)[row]
    of_job = industry[row]
    group = np.where(rng.random(len(row)) < CORE, core, draw_group(of_job))
    table = (design.ends + occupations.group_of() + len(GROUPS) * np.arange(len(mix))[:, None]).ravel()
    place = np.searchsorted(table, len(GROUPS) * of_job + group + _below_one(len(row), rng), side="right")
    drawn: Integers = place - design.ends.shape[1] * of_job
    return drawn


def _below_one(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.random(count) * (1 - 2.0**-40)


def _requirements(
    latent: NDArray[np.float64], row: Integers, establishments: int, rng: np.random.Generator
) -> dict[str, Codes]:
    """The category of every variable; some exclude each other, whatever the latent values."""
    requirements: dict[str, Codes] = {}
    for number, variable in enumerate(VARIABLES):
        own = BY_ESTABLISHMENT * rng.standard_normal(establishments)[row] + BY_JOB * rng.standard_normal(len(row))
        requirements[variable.name] = np.searchsorted(variable.cuts, latent[:, number] + own).astype(np.int8)
    # Heights are reached by climbing; work that can be done at home is at a keyboard and not a strain.
    requirements[HEIGHTS.name] &= requirements[CLIMBING.name]
    at_desk = (requirements[STRENGTH.name] <= 1) & (requirements[KEYBOARDING.name] >= 1)
    requirements[TELEWORK.name] &= at_desk.astype(np.int8)
    return requirements


def _days(requirements: dict[str, Codes], rng: np.random.Generator) -> Integers:
    """Days of preparation: log-normal by education and credentials, none for some, at most ten years."""
    education = requirements[EDUCATION.name]
    days = _DAYS[education] * np.where(requirements[CREDENTIALS.name] == 1, DAYS_OF_CREDENTIALS, 1.0)
    days = np.rint(days * np.exp(DAYS_SPREAD * rng.standard_normal(len(days))))
    days[rng.random(len(days)) < _NO_DAYS[education]] = 0
    whole: Integers = np.minimum(days, MOST_DAYS).astype(np.int64)
    return whole
