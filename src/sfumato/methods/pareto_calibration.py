"""The least double Pareto noise that keeps one neighbour step within ε, in exact numbers on the safe side."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from sfumato.errors import MethodError
from sfumato.methods.parameters import (
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


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The tail a = c − 1 of the noise and its scale k in units of S = max(αx, 1)."""

    tail: Fraction
    scale: Fraction


def calibrate(*, alpha: Fraction, epsilon: Fraction, shares: int = 1) -> Calibration:
    """The noise that spends ε/shares on one neighbour step at α; docs/methods/smooth-pareto.md derives it.

    The tail is rounded down and the scale up, and the worst loss at the rounded numbers is then checked to be
    at most ε/shares, to sixty digits.
    """
    check_parameters("smooth-pareto", alpha=alpha, epsilon=epsilon, worker_cells=0)
    if not _admissible(alpha, epsilon / shares):
        raise _inadmissible(alpha, epsilon, shares)
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


def _inadmissible(alpha: Fraction, epsilon: Fraction, shares: int) -> MethodError:
    with localcontext(PRECISE):
        bound = shares * log_growth(alpha)
    times = f"{shares} · " if shares > 1 else ""
    remedies = [f"epsilon = {smallest_epsilon(alpha=alpha, shares=shares)} or more"]
    finest = largest_alpha(epsilon=epsilon, shares=shares)
    if finest is not None:
        remedies.append(f"alpha = {finest} or less")
    fewer = int(_tail(alpha, epsilon))  # ε/d > g up to here; a whole quotient is rounded down beneath itself
    if shares > 1 and fewer >= 1 and _admissible(alpha, epsilon / fewer):
        remedies.append(f"at most {fewer} worker cells")
    return MethodError(
        "smooth-pareto",
        expected=f"epsilon > {times}ln(1 + alpha) = {times}ln({float(1 + alpha):g}) = {bound:.4g}",
        found=f"epsilon = {float(epsilon):g}",
        do="choose " + ", or ".join(remedies),
    )
