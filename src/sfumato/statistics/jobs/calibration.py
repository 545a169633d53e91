"""The least noise that keeps one neighbour step within ε: of a cell, and of a block of worker cells."""

from bisect import bisect_left
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from math import exp, log1p
from typing import Literal

import numpy as np

from sfumato.errors import MethodError
from sfumato.method import (
    GRID,
    MARGIN,
    PRECISE,
    check_parameters,
    decimal,
    largest_alpha_to,
    log_growth,
    on_grid,
    smallest_from,
)
from sfumato.noise.passes import MOST_CELLS, MOST_SIMPLEX_CELLS

# The least double Pareto noise that keeps one neighbour step within ε, in exact numbers on the safe side.


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The tail a = c − 1 of the noise and its scale k in units of S = max(αx, 1)."""

    tail: Fraction
    scale: Fraction

    @property
    def variance(self) -> float | None:
        """Of the noise in units of S², 2k²/((a − 1)(a − 2)); None without a fourth moment, which needs a > 4."""
        return None if self.tail <= 4 else float(2 * self.scale**2 / ((self.tail - 1) * (self.tail - 2)))


def calibrate(*, alpha: Fraction, epsilon: Fraction, shares: int = 1, among: str = "worker cells") -> Calibration:
    """The noise that spends ε/shares on one neighbour step at α; docs/methods/smooth-pareto.md derives it.

    The tail is rounded down and the scale up, and the worst loss at the rounded numbers is then checked to be
    at most ε/shares, to sixty digits. `among` is what epsilon is shared by.
    """
    check_parameters("smooth-pareto", alpha=alpha, epsilon=epsilon, worker_cells=0)
    if not _admissible(alpha, epsilon / shares):
        raise _inadmissible(alpha, epsilon, shares, among)
    share = epsilon / shares
    tail = _tail(alpha, share)
    with localcontext(PRECISE):
        growth, limit, c = 1 + decimal(alpha), decimal(share), 1 + decimal(tail)
        same_scale = 1 / ((limit / c).exp() - 1)
        grown_scale = 1 / (growth * (((limit - growth.ln()) / c).exp() - 1))
        scale = on_grid(max(same_scale, grown_scale), ROUND_CEILING)
        while worst_loss(alpha=alpha, tail=tail, scale=scale) + MARGIN > limit:
            scale += Fraction(1, GRID)
    return Calibration(tail=tail, scale=scale)


def worst_loss(*, alpha: Fraction, tail: Fraction, scale: Fraction) -> Decimal:
    """The greatest log ratio of densities over one neighbour step, both directions and all outcomes.

    With c = tail + 1 and g = ln(1+α) it is the greatest of c·ln(1 + 1/k), where the count moves and the scale
    does not, g + c·ln(1 + 1/(k(1+α))), where both move, and (c − 1)·g, far out in the tail.
    """
    with localcontext(PRECISE):
        growth, a, k = 1 + decimal(alpha), decimal(tail), decimal(scale)
        g, c = growth.ln(), a + 1
        return max(c * (1 + 1 / k).ln(), g + c * (1 + 1 / (k * growth)).ln(), a * g)


def smallest_epsilon(*, alpha: Fraction, shares: int = 1) -> Decimal:
    """The smallest ε of two digits at which the mechanism exists for this α."""
    with localcontext(PRECISE):
        bound = shares * log_growth(alpha)
    return smallest_from(bound, lambda epsilon: _admissible(alpha, epsilon / shares))


def largest_alpha(*, epsilon: Fraction, shares: int = 1) -> Decimal | None:
    """The largest α of two digits at which the mechanism exists for this ε; None where it is too fine."""
    with localcontext(PRECISE):
        bound = (decimal(epsilon) / shares).exp() - 1
    return largest_alpha_to(bound, lambda alpha: _admissible(alpha, epsilon / shares))


def _tail(alpha: Fraction, epsilon: Fraction) -> Fraction:
    with localcontext(PRECISE):
        return on_grid((decimal(epsilon) - 2 * MARGIN) / (1 + decimal(alpha)).ln(), ROUND_FLOOR)


def _admissible(alpha: Fraction, epsilon: Fraction) -> bool:
    # ε > ln(1+α) makes the tail exceed 1; asked of the rounded tail, so that the mean error is finite as
    # drawn.
    return _tail(alpha, epsilon) > 1


def _inadmissible(alpha: Fraction, epsilon: Fraction, shares: int, among: str) -> MethodError:
    with localcontext(PRECISE):
        bound = shares * log_growth(alpha)
    times = f"{shares} · " if shares > 1 else ""
    remedies = [f"epsilon = {smallest_epsilon(alpha=alpha, shares=shares)} or more"]
    finest = largest_alpha(epsilon=epsilon, shares=shares)
    if finest is not None:
        remedies.append(f"alpha = {finest} or less")
    fewer = int(_tail(alpha, epsilon))  # ε/d > g up to here; a whole quotient is rounded down beneath itself
    if shares > 1 and fewer >= 1 and _admissible(alpha, epsilon / fewer):
        remedies.append(f"at most {fewer} {among}")
    return MethodError(
        "smooth-pareto",
        expected=f"epsilon > {times}ln(1 + alpha) = {times}ln({float(1 + alpha):g}) = {bound:.4g}",
        found=f"epsilon = {float(epsilon):g}",
        do="choose " + ", or ".join(remedies),
    )


# The least noise for a whole block of worker cells that keeps one neighbour step within ε, on the safe side.

Ball = Literal["simplex", "box"]
"""What one neighbour step may do to the cells of a block: add up to S in all, or up to a share in each."""

# Where the conditions leave a choice the variance is kept finite, which needs a tail above two.
_LIGHTEST = 3.0
_STEPS = 4000


def calibrate_block(method: str, ball: Ball, *, alpha: Fraction, epsilon: Fraction, cells: int) -> Calibration:
    """The tail γ − d and the scale 1/a with the least mean error; docs/methods/vector.md derives the conditions.

    The tail is rounded down and the scale up, and the worst loss at the rounded numbers is then checked to be at
    most ε, to sixty digits.
    """
    check_parameters(method, alpha=alpha, epsilon=epsilon, worker_cells=cells)
    check_cells(method, cells, most=MOST_CELLS if ball == "box" else MOST_SIMPLEX_CELLS)
    if not exists(alpha=alpha, epsilon=epsilon, cells=cells):
        raise _does_not_exist(method, alpha=alpha, epsilon=epsilon, cells=cells)
    tail = _best_tail(ball, alpha, epsilon, cells)
    with localcontext(PRECISE):
        growth, limit, gamma = 1 + decimal(alpha), decimal(epsilon), decimal(tail) + cells
        g = growth.ln()
        alone = limit + g if ball == "box" else limit
        reach = min((alone / gamma).exp() - 1, growth * (((limit - cells * g) / gamma).exp() - 1))
        scale = on_grid(1 / reach, ROUND_CEILING)
        while block_loss(ball, alpha=alpha, cells=cells, tail=tail, scale=scale) + MARGIN > limit:
            scale += Fraction(1, GRID)
    return Calibration(tail=tail, scale=scale)


def block_loss(ball: Ball, *, alpha: Fraction, cells: int, tail: Fraction, scale: Fraction) -> Decimal:
    """The greatest log ratio of densities over one neighbour step, both directions and all outcomes.

    With γ = tail + d and a = 1/scale it is the greatest of γ·ln(1+a), where counts move and scales do not,
    γ·ln(1 + a/(1+α)) + d·g, where both move, and (γ−d)·g, far out in the tail. In the box a count cannot move fully
    while its scale stays, which lowers the first by g; but one scale can move alone, and the third is (γ−1)·g.
    """
    with localcontext(PRECISE):
        growth, gamma, a = 1 + decimal(alpha), decimal(tail) + cells, 1 / decimal(scale)
        g = growth.ln()
        alone = gamma * (1 + a).ln() - (g if ball == "box" else 0)
        far = (gamma - (1 if ball == "box" else cells)) * g
        return max(alone, gamma * (1 + a / growth).ln() + cells * g, far)


def bell_rate(method: str, *, alpha: Fraction, epsilon: Fraction, cells: int) -> Fraction:
    """e = ε/ln(1+α), rounded down, which has to be above the number of cells; docs/methods/bell.md."""
    check_parameters(method, alpha=alpha, epsilon=epsilon, worker_cells=cells)
    check_cells(method, cells, most=MOST_SIMPLEX_CELLS)
    if not exists(alpha=alpha, epsilon=epsilon, cells=cells):
        raise _does_not_exist(method, alpha=alpha, epsilon=epsilon, cells=cells)
    return _excess(alpha, epsilon, 0)


def exists(*, alpha: Fraction, epsilon: Fraction, cells: int) -> bool:
    """Whether ε > d·ln(1+α), by at least what one step of the parameters' grid needs."""
    return _excess(alpha, epsilon, cells) > 0


def smallest_vector_epsilon(*, alpha: Fraction, cells: int) -> Decimal:
    """The smallest ε of two digits at which both mechanisms exist for this α."""
    with localcontext(PRECISE):
        bound = cells * (1 + decimal(alpha)).ln()
    return smallest_from(bound, lambda epsilon: exists(alpha=alpha, epsilon=epsilon, cells=cells))


def largest_vector_alpha(*, epsilon: Fraction, cells: int) -> Decimal | None:
    """The largest α of two digits at which both mechanisms exist for this ε; None where it is too fine."""
    with localcontext(PRECISE):
        bound = (decimal(epsilon) / cells).exp() - 1
    return largest_alpha_to(bound, lambda alpha: exists(alpha=alpha, epsilon=epsilon, cells=cells))


def check_cells(method: str, cells: int, *, most: int = MOST_CELLS) -> None:
    """Refuse a block of more cells than the noise is made for."""
    if cells > most:
        other = (
            f", or the method vector-pareto, which takes {MOST_SIMPLEX_CELLS:,}" if most < MOST_SIMPLEX_CELLS else ""
        )
        raise MethodError(
            method,
            expected=f"at most {most:,} worker cells in a workplace cell",
            found=f"{cells:,}",
            do=f"use fewer or coarser worker attributes in one table{other}",
        )


def _excess(alpha: Fraction, epsilon: Fraction, cells: int) -> Fraction:
    """ε/g − d, rounded down."""
    with localcontext(PRECISE):
        return on_grid((decimal(epsilon) - 2 * MARGIN) / (1 + decimal(alpha)).ln() - cells, ROUND_FLOOR)


def _best_tail(ball: Ball, alpha: Fraction, epsilon: Fraction, cells: int) -> Fraction:
    """The tail with the least mean error scale/(tail − 1); mostly the greatest that the third condition allows.

    With an ε far above d a heavier tail of smaller scale does better. The search is in floating point: whatever it
    finds is only a choice, which is verified afterwards.
    """
    most = _excess(alpha, epsilon, cells) + (1 if ball == "box" else cells)
    if most <= _LIGHTEST:
        return most
    g, limit = log1p(alpha), float(epsilon)
    tails = np.geomspace(_LIGHTEST, float(most), _STEPS)
    with np.errstate(over="ignore"):
        alone = np.expm1((limit + (g if ball == "box" else 0)) / (tails + cells))
        both = exp(g) * np.expm1((limit - cells * g) / (tails + cells))
        benefit = np.minimum(alone, both) * (tails - 1)
    best = int(benefit.argmax())
    return most if best == _STEPS - 1 else Fraction(round(1000 * float(tails[best])), 1000)


def _does_not_exist(method: str, *, alpha: Fraction, epsilon: Fraction, cells: int) -> MethodError:
    with localcontext(PRECISE):
        bound = cells * (1 + decimal(alpha)).ln()
    times = f"{cells} · " if cells > 1 else ""
    remedies = [f"epsilon = {smallest_vector_epsilon(alpha=alpha, cells=cells)} or more"]
    finest = largest_vector_alpha(epsilon=epsilon, cells=cells)
    if finest is not None:
        remedies.append(f"alpha = {finest} or less")
    # With fewer cells the mechanism exists the sooner: the first number with which it does not, less one.
    fewer = bisect_left(range(1, cells), True, key=lambda n: not exists(alpha=alpha, epsilon=epsilon, cells=n))
    if fewer:
        remedies.append(f"at most {fewer} worker cells")
        if cells <= MOST_CELLS:
            remedies.append("the method log-box, which is weak")
    return MethodError(
        method,
        expected=f"epsilon > {times}ln(1 + alpha) = {times}ln({float(1 + alpha):g}) = {bound:.4g}; "
        "below that the mechanism does not exist",
        found=f"epsilon = {float(epsilon):g}",
        do="choose " + ", or ".join(remedies),
    )


def exact_delta(*, alpha: Fraction, epsilon: Fraction) -> Fraction:
    """The least δ that noise of scale 2·S/ε has at this ε, before rounding, a hair above it.

    It is ½·(1 − 1/R)·R^(−1/α)·(e^(−ε/(2α)) + e^(−3ε/(2α))) with R = 1 + α; the paper's inequality implies that it is at
    most δ for small α, but not for all.
    """
    with localcontext(PRECISE):
        a, e = decimal(alpha), decimal(epsilon)
        tails = (-e / (2 * a)).exp() + (-3 * e / (2 * a)).exp()
        found = a / (2 * (1 + a)) * (-log_growth(alpha) / a).exp() * tails
        return Fraction(found * (1 + MARGIN))
