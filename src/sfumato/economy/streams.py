"""Random streams that depend on what they are for, never on when or where they are drawn."""

from enum import IntEnum, unique

import numpy as np


@unique
class Purpose(IntEnum):
    """What a stream is drawn for; a new purpose leaves every other stream as it was."""

    NAMES = 1
    POPULATIONS = 2
    PLACE_ACTIVITY = 3
    INDUSTRY_MIX = 4
    ESTABLISHMENTS = 5
    SIZES = 6
    PLACE_PEOPLE = 7
    WORKFORCES = 8
    LAYOUT = 9
    PEOPLE = 10
    FEDERAL_EMPLOYERS = 11
    FEDERAL_CAREERS = 12
    FEDERAL_PEOPLE = 13
    FEDERAL_HISTORIES = 14
    BUSINESS_DESIGN = 15
    BUSINESS_ESTABLISHMENTS = 16
    BUSINESS_ACCOUNTS = 17
    BUSINESS_REPLICATES = 18
    BUSINESS_STAFF = 19
    REQUIREMENTS_DESIGN = 20
    REQUIREMENTS_ESTABLISHMENTS = 21
    REQUIREMENTS_REPLICATES = 22
    REQUIREMENTS_QUOTES = 23
    OPPORTUNITY_TRACTS = 24
    OPPORTUNITY_CHILDREN = 25
    UNIVERSITY_INSTITUTIONS = 26
    UNIVERSITY_CAREERS = 27
    GRADUATES_CELLS = 28
    GRADUATES_PEOPLE = 29


def stream(seed: int, purpose: Purpose, chunk: int = 0) -> np.random.Generator:
    """The generator of one purpose and chunk, the same whichever thread asks for it first.

    Philox is counter-based: the key alone places the stream, so that chunks need no common state.
    """
    return np.random.Generator(np.random.Philox(key=np.array([seed, purpose << 32 | chunk], dtype=np.uint64)))
