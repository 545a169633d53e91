"""The least double Pareto noise that keeps one neighbour step within ε, in exact numbers on the safe side."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from sfumato.errors import MethodError

LARGEST_ALPHA = 10
LARGEST_EPSILON = 10**6
LARGEST_DENOMINATOR = 10**6  # of alpha: scales are whole multiples of 1/denominator and must fit 64 bits

_CONTEXT = Context(prec=100, rounding=ROUND_HALF_EVEN)
# Far above the rounding of a few operations at 100 digits, far below what one step of the grid changes.
_MARGIN = Decimal("1e-60")
# Parameters are whole billionths: exact, and short enough to be printed in full.
_GRID = 10**9


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
    _check_ranges(alpha, epsilon)
    if not _admissible(alpha, epsilon / shares):
        raise _inadmissible(alpha, epsilon, shares)
    share = epsilon / shares
    tail = _tail(alpha, share)
    with localcontext(_CONTEXT):
        growth, limit, c = 1 + _decimal(alpha), _decimal(share), 1 + _decimal(tail)
        same_scale = 1 / ((limit / c).exp() - 1)
        grown_scale = 1 / (growth * (((limit - growth.ln()) / c).exp() - 1))
        scale = _on_grid(max(same_scale, grown_scale), ROUND_CEILING)
        while worst_loss(alpha=alpha, tail=tail, scale=scale) + _MARGIN > limit:
            scale += Fraction(1, _GRID)
    return Calibration(tail=tail, scale=scale)


def worst_loss(*, alpha: Fraction, tail: Fraction, scale: Fraction) -> Decimal:
    """The greatest log ratio of densities over one neighbour step, both directions and all outcomes.

    With c = tail + 1 and g = ln(1+α) it is the greatest of c·ln(1 + 1/k), where the count moves and the scale
    does not, g + c·ln(1 + 1/(k(1+α))), where both move, and (c − 1)·g, far out in the tail.
    """
    with localcontext(_CONTEXT):
        growth, a, k = 1 + _decimal(alpha), _decimal(tail), _decimal(scale)
        g, c = growth.ln(), a + 1
        return max(c * (1 + 1 / k).ln(), g + c * (1 + 1 / (k * growth)).ln(), a * g)


def smallest_epsilon(*, alpha: Fraction, shares: int = 1) -> Decimal:
    """The smallest ε of two digits at which the mechanism exists for this α."""
    with localcontext(_CONTEXT):
        bound = shares * (1 + _decimal(alpha)).ln()
        step = Decimal(1).scaleb(bound.adjusted() - 1)
        epsilon = bound.quantize(step, rounding=ROUND_CEILING)
        while not _admissible(alpha, Fraction(epsilon) / shares):
            epsilon += step
    return epsilon


def largest_alpha(*, epsilon: Fraction, shares: int = 1) -> Decimal | None:
    """The largest α of two digits at which the mechanism exists for this ε; None where it is too fine."""
    with localcontext(_CONTEXT):
        bound = min((_decimal(epsilon) / shares).exp() - 1, Decimal(LARGEST_ALPHA))
        step = Decimal(1).scaleb(bound.adjusted() - 1)
        alpha = bound.quantize(step, rounding=ROUND_FLOOR)
        while alpha > 0 and not _admissible(Fraction(alpha), epsilon / shares):
            alpha -= step
    return alpha if alpha > 0 and Fraction(alpha).denominator <= LARGEST_DENOMINATOR else None


def _tail(alpha: Fraction, epsilon: Fraction) -> Fraction:
    with localcontext(_CONTEXT):
        return _on_grid((_decimal(epsilon) - 2 * _MARGIN) / (1 + _decimal(alpha)).ln(), ROUND_FLOOR)


def _admissible(alpha: Fraction, epsilon: Fraction) -> bool:
    # ε > ln(1+α) makes the tail exceed 1; asked of the rounded tail, so that the mean error is finite as
    # drawn.
    return _tail(alpha, epsilon) > 1


def _check_ranges(alpha: Fraction, epsilon: Fraction) -> None:
    if not (isinstance(alpha, Fraction) and isinstance(epsilon, Fraction)):
        raise MethodError(
            "smooth-pareto",
            expected="alpha and epsilon as exact fractions",
            found=f"alpha = {alpha!r}, epsilon = {epsilon!r}",
            do="write Fraction('0.1'), not 0.1",
        )
    if not 0 < alpha <= LARGEST_ALPHA or alpha.denominator > LARGEST_DENOMINATOR:
        raise MethodError(
            "smooth-pareto",
            expected=f"0 < alpha ≤ {LARGEST_ALPHA}, with a denominator of at most {LARGEST_DENOMINATOR}",
            found=f"alpha = {alpha}",
            do="choose an alpha such as 0.1: establishments within ten per cent of each other look alike",
        )
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise MethodError(
            "smooth-pareto",
            expected=f"0 < epsilon ≤ {LARGEST_EPSILON}",
            found=f"epsilon = {epsilon}",
            do="choose an epsilon such as 2",
        )


def _inadmissible(alpha: Fraction, epsilon: Fraction, shares: int) -> MethodError:
    with localcontext(_CONTEXT):
        bound = shares * (1 + _decimal(alpha)).ln()
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


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _on_grid(value: Decimal, rounding: str) -> Fraction:
    return Fraction(int((value * _GRID).to_integral_value(rounding)), _GRID)
