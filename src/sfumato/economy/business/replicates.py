"""Replicate weights of the delete-a-group jackknife."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats

GROUPS: Final = 60
NAMES: Final = tuple(f"rw_{number}" for number in range(1, GROUPS + 1))


def draw_groups(stratum: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Groups from 0 on, dealt out in turn within every stratum, so that each group is a sample of all."""
    groups = np.empty(len(stratum), dtype=np.int64)
    groups[np.argsort(stratum, kind="stable")] = (np.arange(len(stratum)) + rng.integers(GROUPS)) % GROUPS
    return groups


def replicate_weights(weight: Floats, group: NDArray[np.int64], number: int) -> Floats:
    """The weights without one group: the others stand for it.

    Who was taken for sure, at weight 1, stands for nobody else and would be in any sample: it keeps its weight, and
    adds nothing to the sampling variance.
    """
    without = np.where(group == number, 0.0, weight * (GROUPS / (GROUPS - 1)))
    return np.where(weight == 1.0, 1.0, without)
