"""Which major groups of occupations work in each industry."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.economy.industries import INDUSTRY
from sfumato.economy.requirements.occupations import GROUPS, MAJOR_GROUP

# Per cent of the groups that make up an industry, roughly; the others share the rest as in the country.
# fmt: off
_MAIN: Final = {
    "11":    {"45": 60, "53":  8, "11":  6, "43":  5, "37":  3},
    "21":    {"47": 40, "53": 14, "17":  9, "49":  9, "51":  8},
    "22":    {"49": 25, "43": 14, "51": 14, "17": 12, "11":  8},
    "23":    {"47": 62, "49":  8, "11":  8, "43":  7},
    "31-33": {"51": 50, "53": 11, "43":  8, "17":  7, "49":  6, "11":  6},
    "42":    {"41": 25, "53": 24, "43": 18, "11":  8, "49":  6},
    "44-45": {"41": 52, "53": 13, "43": 10, "49":  5, "29":  4, "35":  3},
    "48-49": {"53": 62, "43": 17, "49":  6},
    "51":    {"15": 22, "27": 16, "43": 14, "41": 12, "13": 10, "49":  5},
    "52":    {"13": 32, "43": 30, "41": 17, "15":  9, "11":  9},
    "53":    {"41": 24, "43": 20, "11": 14, "49": 14, "37":  8},
    "54":    {"13": 20, "15": 18, "43": 14, "17": 13, "11": 11, "23":  9, "19":  5},
    "55":    {"13": 27, "43": 22, "11": 20, "15": 12},
    "56":    {"37": 23, "43": 18, "53": 16, "33":  9, "51":  7, "47":  4},
    "61":    {"25": 62, "43":  9, "11":  5, "21":  4, "35":  4, "37":  4},
    "62":    {"29": 33, "31": 30, "43": 13, "21":  6, "39":  4},
    "71":    {"39": 26, "35": 18, "27": 13, "41":  8, "37":  8, "33":  6},
    "72":    {"35": 82, "37":  5, "41":  4},
    "81":    {"49": 22, "39": 20, "43": 10, "51":  8, "21":  6, "37":  4},
    "92":    {"33": 28, "43": 18, "13": 11, "11":  8, "21":  6, "47":  5, "19":  4},
}
# fmt: on


def group_mix() -> NDArray[np.float64]:
    """The share of every major group in every industry: a row per industry, summing to one."""
    everywhere = np.array([group.share for group in GROUPS])
    mix = np.empty((len(INDUSTRY), len(GROUPS)))
    for row, industry in zip(mix, INDUSTRY.codes, strict=True):
        main = np.array([_MAIN[industry].get(code, 0) for code in MAJOR_GROUP.codes], dtype=np.float64)
        others = np.where(main > 0, 0, everywhere)
        row[:] = main / 100 + (1 - main.sum() / 100) * others / others.sum()
    return mix
