"""Eight occupations: what they earn, how many of them are women, and in which industries they work."""

import numpy as np

from sfumato.arrays import Floats
from sfumato_lab.economy.business.divisions import INDUSTRY
from sfumato_lab.economy.jobs.codelists import Codelist

# Code, label, mean dollars a week as in the paper's Table 3, and the share of women.
# fmt: off
_OCCUPATIONS = (
    ("1", "Managers",                       1_929, .38),
    ("2", "Professionals",                  1_436, .55),
    ("3", "Technicians and trades workers", 1_250, .16),
    ("4", "Community and personal service",   709, .70),
    ("5", "Clerical and administration",      970, .73),
    ("6", "Sales workers",                    607, .60),
    ("7", "Machinery operators",            1_285, .12),
    ("8", "Labourers",                        784, .35),
)

# Who works in an industry: per cent of each occupation.
_MIX = {
    "A": (22,  5,  8,  1,  5,  1, 10, 48), "B": ( 8, 18, 24,  1,  6,  1, 38,  4), "C": (10,  9, 30,  1, 10,  5, 15, 20),
    "D": (10, 22, 25,  1, 17,  3, 14,  8), "E": (12,  6, 48,  1,  9,  2,  8, 14), "F": (18, 10, 10,  1, 18, 18, 14, 11),
    "G": (10,  3,  6,  1,  7, 58,  4, 11), "H": (13,  1, 12, 34,  4, 10,  2, 24), "I": ( 8,  6,  8,  3, 22,  3, 42,  8),
    "J": (14, 38, 17,  2, 16,  9,  1,  3), "K": (15, 30,  2,  1, 48,  3,  1,  0), "L": (14, 10,  4,  1, 27, 38,  2,  4),
    "M": (11, 53, 10,  2, 19,  2,  1,  2), "N": ( 9, 13,  7,  8, 22,  5,  6, 30), "O": (11, 29,  6, 19, 30,  1,  1,  3),
    "P": ( 6, 60,  3, 18, 10,  1,  0,  2), "Q": ( 5, 46,  4, 29, 13,  1,  0,  2), "R": (13, 23, 11, 28, 10,  8,  1,  6),
    "S": ( 7, 11, 42, 19, 10,  4,  2,  5),
}
# fmt: on

OCCUPATION = Codelist(
    name="occupation", label="Occupation", entries=tuple((code, label) for code, label, *_ in _OCCUPATIONS)
)


def pay() -> Floats:
    """Mean dollars a week of every occupation."""
    return np.array([weekly for *_, weekly, _ in _OCCUPATIONS], dtype=np.float64)


def women() -> Floats:
    """The share of women in every occupation."""
    return np.array([share for *_, share in _OCCUPATIONS])


def mix() -> Floats:
    """The share of every occupation in every industry: a row per industry, summing to one."""
    percent = np.array([_MIX[code] for code in INDUSTRY.codes], dtype=np.float64)
    shares: Floats = percent / percent.sum(axis=1, keepdims=True)
    return shares
