"""How far an estimate may be off: quantiles of the perturbation that was really used, with sampling error beside it.

Perturbation is bimodal: a cell with one large contributor is moved up or down by about the same amount, never by
little. So the interval is not ±1.645 standard deviations but comes from the distribution itself: for every choice of
directions the amount is nearly normal around its mean, with the variance of the noise and of sampling.
"""

from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HALVINGS = 40
_AT_ONCE = 1 << 15
_FAR = 6.0  # standard deviations: as good as certain


def half_widths(scales: Floats, sampling: Floats, *, spread: float, confidence: float) -> Floats:
    """The least number so that each cell is off by no more with the given probability.

    A row of `scales` has m·y·w of the contributors that move the cell; `sampling` is its standard error by sampling.
    The triangular noise is taken as normal of its variance b²/6, which is right to about one percent of coverage.
    """
    found = np.zeros(len(scales))
    for begin in range(0, len(scales), _AT_ONCE):
        piece = slice(begin, begin + _AT_ONCE)
        found[piece] = _half_widths(scales[piece], sampling[piece], spread, confidence)
    return found


def _half_widths(scales: Floats, sampling: Floats, spread: float, confidence: float) -> Floats:
    # By symmetry the largest contributor moves up.
    signs = np.array([(1, *others) for others in product((1, -1), repeat=scales.shape[1] - 1)], dtype=np.float64)
    centres = scales @ signs.T
    deviation = np.sqrt(sampling**2 + spread**2 / 6 * (scales * scales).sum(axis=1))
    some = np.where(deviation > 0, deviation, 1.0)[:, None]
    low, high = np.zeros(len(scales)), np.abs(scales).sum(axis=1) + _FAR * deviation
    for _ in range(_HALVINGS):
        middle = ((low + high) / 2)[:, None]
        inside = (scipy.special.ndtr((middle - centres) / some) - scipy.special.ndtr((-middle - centres) / some)).mean(
            axis=1
        )
        enough = inside >= confidence
        low, high = np.where(enough, low, middle[:, 0]), np.where(enough, middle[:, 0], high)
    widths: Floats = np.where(deviation > 0, high, 0.0)
    return widths
