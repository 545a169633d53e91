"""Four size classes of establishments, and how workers divide over the sizes of theirs.

The frame is a distribution, not a list: log size is normal among establishments, so among workers it is normal too,
with the mean raised by the variance.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sfumato.arrays import Floats
from sfumato_lab.economy import industries
from sfumato_lab.economy.jobs.codelists import Codelist

SIZE: Final = Codelist(
    name="size",
    label="Size by employment",
    entries=(
        ("5-49", "5 to 49 workers"),
        ("50-99", "50 to 99 workers"),
        ("100-499", "100 to 499 workers"),
        ("500+", "500 or more workers"),
    ),
)
LARGE: Final = len(SIZE) - 1
"""The position of the largest class."""
STARTS: Final = np.array([5, 50, 100, 500, 10_000])
"""Where every class starts, and where the last one ends: beyond that an establishment is taken for sure."""
SPREAD = 1.75
"""Standard deviation of log size."""


def _mean_log() -> Floats:
    """The mean of log size among the workers of every industry; its mean size is that of the industry."""
    return np.log(industries.column("size")) + SPREAD**2 / 2


def _below() -> Floats:
    """The share of workers in establishments smaller than every start: a row per industry."""
    shares: Floats = ndtr((np.log(STARTS) - _mean_log()[:, None]) / SPREAD)
    return shares


def worker_shares() -> Floats:
    """The share of every size class among the workers of every industry: a row per industry, summing to one."""
    within = np.diff(_below(), axis=1)
    shares: Floats = within / within.sum(axis=1, keepdims=True)
    return shares


def size_at(industry: NDArray[np.int64], size: NDArray[np.int64], share: Floats) -> Floats:
    """The size of the establishment below which this share of the workers of an industry and size class are."""
    below = _below()
    start, end = below[industry, size], below[industry, size + 1]
    sizes: Floats = np.exp(_mean_log()[industry] + SPREAD * ndtri(start + share * (end - start)))
    return sizes
