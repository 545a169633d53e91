"""The parameters every method takes: their ranges, and the nearest ones that are admissible."""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from sfumato.errors import MethodError

LARGEST_ALPHA = 10
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**9), 10**6
LARGEST_DENOMINATOR = 10**6  # of alpha: scales are whole multiples of 1/denominator and must fit 64 bits

PRECISE = Context(prec=100, rounding=ROUND_HALF_EVEN)
"""Decimal arithmetic for calibrations."""
MARGIN = Decimal("1e-60")
"""Far above the rounding of a few operations at 100 digits, far below what one step of the grid changes."""
GRID = 10**9
"""Parameters are whole billionths, short enough to be printed in full in a privacy statement."""


def check_parameters(method: str, *, alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    """Refuse parameters outside the ranges that every method keeps to."""
    if not (isinstance(alpha, Fraction) and isinstance(epsilon, Fraction)):
        raise MethodError(
            method,
            expected="alpha and epsilon as exact fractions",
            found=f"alpha = {alpha!r}, epsilon = {epsilon!r}",
            do="write Fraction('0.1'), not 0.1",
        )
    if not 0 < alpha <= LARGEST_ALPHA or alpha.denominator > LARGEST_DENOMINATOR:
        raise MethodError(
            method,
            expected=f"0 < alpha ≤ {LARGEST_ALPHA}, with a denominator of at most {LARGEST_DENOMINATOR}",
            found=f"alpha = {alpha}",
            do="choose an alpha such as 0.1: establishments within ten per cent of each other look alike",
        )
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise MethodError(
            method,
            expected=f"{float(LEAST_EPSILON):g} ≤ epsilon ≤ {LARGEST_EPSILON}",
            found=f"epsilon = {epsilon}",
            do="choose an epsilon such as 2",
        )
    if worker_cells < 0:
        raise MethodError(
            method,
            expected="worker_cells ≥ 0",
            found=f"worker_cells = {worker_cells}",
            do="give the number of worker-attribute cells in a workplace cell, 0 for none",
        )


def smallest_from(bound: Decimal, admissible: Callable[[Fraction], bool]) -> Decimal:
    """The smallest admissible number of two digits that is not below the bound."""
    with localcontext(PRECISE):
        step = Decimal(1).scaleb(bound.adjusted() - 1)
        value = bound.quantize(step, rounding=ROUND_CEILING)
        while not admissible(Fraction(value)):
            value += step
    return value


def largest_alpha_to(bound: Decimal, admissible: Callable[[Fraction], bool]) -> Decimal | None:
    """The largest admissible α of two digits that is not above the bound; None where it is too fine."""
    with localcontext(PRECISE):
        bound = min(bound, Decimal(LARGEST_ALPHA))
        step = Decimal(1).scaleb(bound.adjusted() - 1)
        alpha = bound.quantize(step, rounding=ROUND_FLOOR)
        while alpha > 0 and not admissible(Fraction(alpha)):
            alpha -= step
    return alpha if alpha > 0 and Fraction(alpha).denominator <= LARGEST_DENOMINATOR else None


def log_growth(alpha: Fraction) -> Decimal:
    """g = ln(1 + α), how far one neighbour step moves the logarithm of a size; asked within PRECISE."""
    return (1 + decimal(alpha)).ln()


def decimal(value: Fraction) -> Decimal:
    """A fraction to the digits of the context in force."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def on_grid(value: Decimal, rounding: str) -> Fraction:
    """A number as whole billionths, rounded to the side that is asked for."""
    return Fraction(int((value * GRID).to_integral_value(rounding)), GRID)
