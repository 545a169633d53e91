"""The most even distribution over some whole numbers that has mean 0 and a given variance."""

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from sfumato.errors import MethodError

_PRECISE = Context(prec=60)
_CLOSE = Decimal("1e-25")  # far below 2⁻⁶³; the function then differs from its minimum in the fiftieth digit
_MOST_STEPS = 1_000

Chances = list[Decimal]


def variance_bounds(moves: Sequence[int]) -> tuple[int, int]:
    """The least and the largest variance that a distribution over these moves, in order, can have with mean 0.

    Without the move 0 it is at least the product of the two moves nearest to 0, one on each side; it is at most the
    product of the outermost two.

    >>> variance_bounds([-1, 2, 3, 4])
    (2, 4)
    """
    below, above = max((v for v in moves if v < 0), default=0), min((v for v in moves if v > 0), default=0)
    return (0 if 0 in moves else -below * above), -moves[0] * moves[-1]


def most_even(moves: Sequence[int], variance: Fraction) -> Chances:
    """The probabilities of greatest entropy, e^(λv + μv²) up to a factor, in decimals: the same on every machine.

    λ and μ minimise the convex function ln Σ e^(λv + μ(v² − variance)), whose gradient is the mean and what is missing
    to the variance. At the least and the largest variance two moves have all of the probability.

    >>> [round(float(chance), 3) for chance in most_even([-1, 0, 1], Fraction(1, 2))]
    [0.25, 0.5, 0.25]
    """
    least, most = variance_bounds(moves)
    with localcontext(_PRECISE):
        if variance == least:
            if 0 in moves:
                return [Decimal(v == 0) for v in moves]
            return _two(moves, max(v for v in moves if v < 0), min(v for v in moves if v > 0))
        if variance == most:
            return _two(moves, moves[0], moves[-1])
        return _solve(moves, Decimal(variance.numerator) / variance.denominator)


def _two(moves: Sequence[int], below: int, above: int) -> Chances:
    """All probability on two moves, so that the mean is 0."""
    shares = {below: Decimal(above) / (above - below), above: Decimal(-below) / (above - below)}
    return [shares.get(v, Decimal(0)) for v in moves]


def _solve(moves: Sequence[int], variance: Decimal) -> Chances:
    """Newton's method with steps halved until they lead downward."""
    first, second = Decimal(0), Decimal(0)
    height, chances = _at(moves, variance, first, second)
    for _ in range(_MOST_STEPS):
        mean, square, cube, fourth = (_moment(moves, chances, power) for power in (1, 2, 3, 4))
        off = square - variance
        if abs(mean) < _CLOSE and abs(off) < _CLOSE:
            return chances
        a, b, c = square - mean * mean, cube - mean * square, fourth - square * square
        down = (b * off - c * mean) / (a * c - b * b), (b * mean - a * off) / (a * c - b * b)
        step = Decimal(1)
        tried = _at(moves, variance, first + down[0], second + down[1])
        while tried[0] > height:
            step /= 2
            tried = _at(moves, variance, first + step * down[0], second + step * down[1])
        first, second = first + step * down[0], second + step * down[1]
        height, chances = tried
    raise MethodError(
        "cell-key table",
        expected="a variance well inside what the moves allow",
        found="one so near to the limit that no distribution was found",
        do="choose the limit itself, or a variance farther from it",
    )


def _at(moves: Sequence[int], variance: Decimal, first: Decimal, second: Decimal) -> tuple[Decimal, Chances]:
    """The function to be minimised, and the probabilities there."""
    weights = [(first * v + second * (v * v - variance)).exp() for v in moves]
    total = sum(weights, Decimal(0))
    return total.ln(), [weight / total for weight in weights]


def _moment(moves: Sequence[int], chances: Chances, power: int) -> Decimal:
    return sum((p * v**power for v, p in zip(moves, chances, strict=True)), Decimal(0))
