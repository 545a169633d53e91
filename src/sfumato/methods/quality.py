"""Published quality: relative errors on a coarse scale, so that they tell little of what made them."""

import numpy as np

from sfumato.arrays import Floats

STEPS = np.array([0.01, 0.02, 0.03, 0.05, 0.075, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50, 0.75, 1.0])
"""Relative errors are rounded up to one of these; larger ones are not told."""


def rounded_up(relative: Floats) -> Floats:
    """The next step of the scale; infinite beyond its end, and where nothing is defined.

    A finer figure would reveal the size of the largest contributors: without sampling error the variance of a cell is
    theirs alone.

    >>> rounded_up(np.array([0.004, 0.11, 3.0])).tolist()
    [0.01, 0.15, inf]
    """
    padded = np.append(STEPS, np.inf)
    places = np.searchsorted(STEPS, np.where(np.isnan(relative), np.inf, relative), side="left")
    steps: Floats = padded[places]
    return steps
