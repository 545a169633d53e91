"""Sizes of establishments: mostly a handful of workers, a few with thousands, adding up exactly."""

import numpy as np
from numpy.typing import NDArray

from sfumato.economy.quantiles import stratified_normal

MEAN = 20.68
"""Workers an establishment with jobs: 10.9 million jobs in 527,000 establishments."""
SPREAD = 1.94
"""Standard deviation of log size, chosen so that 15 in 10,000 have 1,000 workers or more."""
LARGEST = 40_000
"""No establishment is larger: the very largest places of work in a country have about as many."""
LARGEST_SHARE = 0.015
"""Nor does any hold more of all jobs than this, so that a person's two jobs are never in the same one."""


def draw_sizes(count: int, *, jobs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ascending sizes of `count` establishments, each at least one, with sum exactly `jobs`."""
    shape = np.exp(SPREAD * stratified_normal(count, rng))
    largest = min(LARGEST, np.floor(LARGEST_SHARE * jobs))
    scaled = (_scale(shape, jobs=jobs, largest=largest) * shape).clip(1, largest)
    sizes = np.floor(scaled).astype(np.int64)
    # Largest remainders: every size is its exact value rounded up or down, and the sum is exact.
    missing = jobs - int(sizes.sum())
    if missing > 0:
        sizes[np.argpartition(sizes - scaled, missing - 1)[:missing]] += 1
    return np.sort(sizes)


def _scale(shape: NDArray[np.float64], *, jobs: int, largest: float) -> float:
    """The factor at which the sizes, kept between one and the largest, add up to the jobs or just below."""
    low, high = 0.0, jobs / float(shape[0])
    below = float(len(shape))
    while jobs - below > 0.5:
        middle = (low + high) / 2
        total = float((middle * shape).clip(1, largest).sum())
        if total > jobs:
            high = middle
        else:
            low, below = middle, total
    return low
