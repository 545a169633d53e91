"""The fifty states and the District of Columbia: how many tracts they have, and who grows up there.

Tracts are those of the census of 2010; shares of children by race are round ones and from no file.
"""

from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato_lab.economy.federal.codes import STATE, STATES
from sfumato_lab.economy.opportunity.groups import RACE

# fmt: off
_STATES: Final = {
    #     tracts  per cent: black, hispanic, asian, indigenous; the rest are white
    "AL": (1181, 32,  3,  1,  1), "AK": ( 167,  4,  5,  6, 22), "AZ": (1526,  4, 36,  2,  8),
    "AR": ( 686, 21,  4,  1,  1), "CA": (8057,  8, 38, 11,  1), "CO": (1249,  5, 22,  3,  1),
    "CT": ( 833, 12, 12,  3,  1), "DE": ( 218, 24,  6,  2,  1), "DC": ( 179, 74, 10,  2,  1),
    "FL": (4245, 21, 18,  2,  1), "GA": (1969, 34,  6,  2,  1), "HI": ( 351,  3, 12, 52,  2),
    "ID": ( 298,  1, 12,  1,  2), "IL": (3123, 19, 17,  4,  1), "IN": (1511, 11,  5,  1,  1),
    "IA": ( 825,  3,  4,  2,  1), "KS": ( 770,  7,  9,  2,  1), "KY": (1115,  9,  2,  1,  1),
    "LA": (1148, 41,  3,  1,  1), "ME": ( 358,  1,  1,  1,  1), "MD": (1406, 32,  6,  5,  1),
    "MA": (1478,  8, 11,  5,  1), "MI": (2813, 18,  5,  2,  1), "MN": (1338,  5,  4,  5,  2),
    "MS": ( 664, 45,  1,  1,  1), "MO": (1393, 15,  3,  1,  1), "MT": ( 271,  1,  3,  1, 10),
    "NE": ( 532,  6,  8,  2,  2), "NV": ( 687,  8, 26,  6,  2), "NH": ( 295,  1,  2,  2,  1),
    "NJ": (2010, 17, 17,  7,  1), "NM": ( 499,  2, 50,  1, 14), "NY": (4919, 19, 18,  7,  1),
    "NC": (2195, 26,  6,  2,  2), "ND": ( 205,  1,  2,  1,  8), "OH": (2952, 15,  3,  2,  1),
    "OK": (1046, 10,  8,  2, 12), "OR": ( 834,  2, 13,  4,  2), "PA": (3218, 13,  6,  2,  1),
    "RI": ( 244,  6, 14,  3,  1), "SC": (1103, 36,  3,  1,  1), "SD": ( 222,  1,  2,  1, 14),
    "TN": (1497, 21,  3,  1,  1), "TX": (5265, 13, 42,  3,  1), "UT": ( 588,  1, 11,  3,  2),
    "VT": ( 184,  1,  1,  1,  1), "VA": (1907, 24,  6,  5,  1), "WA": (1458,  5, 12,  8,  3),
    "WV": ( 484,  4,  1,  1,  1), "WI": (1409,  8,  5,  3,  1), "WY": ( 132,  1,  9,  1,  3),
}
# fmt: on


def tract_shares() -> Floats:
    """Every state's share of all tracts."""
    tracts = np.array([_STATES[code][0] for code in STATE.codes], dtype=np.float64)
    shares: Floats = tracts / tracts.sum()
    return shares


def race_shares() -> Floats:
    """The shares of races among the children of every state: a row each, summing to one."""
    others = np.array([_STATES[code][1:] for code in STATE.codes]) / 100
    shares = np.column_stack([1 - others.sum(axis=1), others])
    assert shares.shape == (len(STATE), len(RACE))
    return shares


def numbers() -> tuple[str, ...]:
    """The two digits with which the codes of a state's tracts begin."""
    return tuple(state.number for state in STATES)
