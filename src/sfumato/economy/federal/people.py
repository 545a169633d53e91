"""Workers: sex, age and education as they are in the agency where they began."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.economy.codelists import EDUCATION
from sfumato.economy.federal import agencies
from sfumato.economy.federal.codelists import AGE

FEMALE, MALE = 0, 1

Codes = NDArray[np.int8]

_AGE_CUTS = np.array([-1.45, -0.55, 0.1, 0.85, 1.9])
"""Cuts of the latent age between one group and the next."""
_EDUCATION_CUTS = np.array([-2.2, -0.5, 0.25])
_EDUCATION_BY_AGE = np.array([-0.5, 0.1, 0.1, 0.0, 0.0, 0.1])
_PAY_AGE = np.array([-0.45, -0.12, 0.02, 0.08, 0.1, 0.05])
_PAY_EDUCATION = np.array([-0.25, -0.15, -0.05, 0.18])
_PAY_WOMEN = -0.06
_PAY_SPREAD = 0.25

assert len(_AGE_CUTS) + 1 == len(_PAY_AGE) == len(_EDUCATION_BY_AGE) == len(AGE)
assert len(_EDUCATION_CUTS) + 1 == len(_PAY_EDUCATION) == len(EDUCATION)


@dataclass(frozen=True, kw_only=True)
class People:
    """The workers of a chunk, with positions in the codelists."""

    sex: Codes
    age: Codes
    education: Codes
    merit: Floats
    """The log of what each earns, beside what is usual in the agency."""


def draw_people(agency: Integers, rng: np.random.Generator) -> People:
    """Workers who begin in these agencies."""
    count = len(agency)
    sex = np.where(rng.random(count) < agencies.column("women")[agency], FEMALE, MALE).astype(np.int8)
    age = np.searchsorted(_AGE_CUTS, rng.standard_normal(count)).astype(np.int8)
    schooling = agencies.column("schooling")[agency] + _EDUCATION_BY_AGE[age] + rng.standard_normal(count)
    education = np.searchsorted(_EDUCATION_CUTS, schooling).astype(np.int8)
    merit = _PAY_AGE[age] + _PAY_EDUCATION[education] + np.where(sex == FEMALE, _PAY_WOMEN, 0.0)
    merit += _PAY_SPREAD * rng.standard_normal(count)
    return People(sex=sex, age=age, education=education, merit=merit)
