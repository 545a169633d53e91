"""How far an estimate may be off: quantiles of the perturbation that was really used, with sampling error beside it.

Perturbation is bimodal: a cell with one large contributor is moved up or down by about the same amount, never by
little. So the interval is not ±1.645 standard deviations but comes from the distribution itself: for every choice of
directions the amount is nearly normal around its mean, with the variance of the noise and of sampling.
"""

from itertools import product
from math import pi, sqrt

import numpy as np
import scipy

from sfumato.arrays import Floats

_HALVINGS = 40
"""Widths are right to this many binary digits of the farthest that a cell may be off."""
_TANGENTS = 12
"""Steps along the tangent, of which five to nine are enough nearly always; after these the rest is halved."""
_AT_ONCE = 1 << 13  # cells: their arrays stay in the processor's cache
_FAR = 6.0  # standard deviations: as good as certain
_NEVER = 9.0  # standard deviations: beyond them the probability is lost in rounding


def half_widths(scales: Floats, sampling: Floats, *, spread: float, confidence: float) -> Floats:
    """The least number so that each cell is off by no more with the given probability.

    A row of `scales` has m·y·w of the contributors that move the cell; `sampling` is its standard error by sampling.
    The triangular noise is taken as normal of its variance b²/6, which is right to about one percent of coverage.
    """
    deviation = np.sqrt(sampling**2 + spread**2 / 6 * (scales * scales).sum(axis=1))
    scales = scales[:, scales.any(axis=0)]  # where a contributor moves no cell, its direction does not matter
    moving = np.flatnonzero(deviation > 0)
    found = np.zeros(len(scales))
    for begin in range(0, len(moving), _AT_ONCE):
        rows = moving[begin : begin + _AT_ONCE]
        found[rows] = _half_widths(scales[rows], deviation[rows], confidence)
    return found


def _half_widths(scales: Floats, deviation: Floats, confidence: float) -> Floats:
    """Two ends close in on each width; the upper one, which is never too narrow, is returned."""
    # By symmetry the largest contributor moves up.
    others = product((1, -1), repeat=max(scales.shape[1] - 1, 0))
    signs = np.array([(1, *choice)[: scales.shape[1]] for choice in others], dtype=np.float64)
    centres = np.abs(scales @ signs.T)
    low = np.zeros(len(scales))
    high: Floats = np.abs(scales).sum(axis=1) + _FAR * deviation
    near = high * 2.0**-_HALVINGS
    # Where choices of directions lie apart, only the farthest goes beyond the width; elsewhere this is not far from it.
    share = min((1 - confidence) * len(signs), 0.5)
    at = np.minimum(centres.max(axis=1) + scipy.special.ndtri(1 - share) * deviation, high)
    active = np.arange(len(scales))
    for step in range(_TANGENTS + _HALVINGS):
        inside, density = _inside(at, centres[active], deviation[active])
        enough = inside >= confidence
        high[active] = np.where(enough, at, high[active])
        low[active] = np.where(enough, low[active], at)
        left = high[active] - low[active] > near[active]
        active, at, enough = active[left], at[left], enough[left]
        if not len(active):
            break
        within = high[active] - low[active]
        at_next = low[active] + within / 2
        if step < _TANGENTS:
            missing, slope = confidence - inside[left], density[left]
            # A little farther than the tangent says, so that the other end comes as close as this one.
            beyond = np.where(enough, -near[active] / 2, near[active] / 2)
            along = slope * within > np.abs(missing)
            tangent = at + np.divide(missing, slope, out=np.zeros(len(at)), where=along) + beyond
            along &= (low[active] < tangent) & (tangent < high[active])
            at_next = np.where(along, tangent, at_next)
        at = at_next
    return high


def _inside(width: Floats, centres: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The probability of being off by at most the width, averaged over directions, and its derivative."""
    up, down = ((end[:, None] - centres) / deviation[:, None] for end in (width, -width))
    inside, density = scipy.special.ndtr(up), np.exp(up * up / -2)
    if down.max() > -_NEVER:
        inside -= scipy.special.ndtr(down)
        density += np.exp(down * down / -2)
    return inside.mean(axis=1), density.mean(axis=1) / (deviation * sqrt(2 * pi))
