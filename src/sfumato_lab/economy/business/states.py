"""Eight states and territories of very unequal size: Australia's, whose business collections the paper is about."""

import numpy as np
from numpy.typing import NDArray

from sfumato_lab.economy.jobs.codelists import Codelist

# Code, label and share of all businesses in per cent, in round numbers.
# fmt: off
_STATES = (
    ("NSW", "New South Wales",              33.0),
    ("VIC", "Victoria",                     27.0),
    ("QLD", "Queensland",                   19.5),
    ("SA",  "South Australia",               6.5),
    ("WA",  "Western Australia",            10.2),
    ("TAS", "Tasmania",                      1.7),
    ("NT",  "Northern Territory",            0.7),
    ("ACT", "Australian Capital Territory",  1.4),
)
# fmt: on

STATE = Codelist(name="state", label="State", entries=tuple((code, label) for code, label, _ in _STATES))
TILES = """
.  NT  QLD
WA SA  NSW
.  .   VIC ACT
.  .   TAS
"""
"""Where states lie, roughly."""


def shares() -> NDArray[np.float64]:
    """Every state's share of all businesses."""
    percent = np.array([share for *_, share in _STATES])
    shares: NDArray[np.float64] = percent / percent.sum()
    return shares
