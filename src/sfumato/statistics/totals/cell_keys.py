"""Counts perturbed by a keyed table, the most even one that has mean 0 and a given variance."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from sfumato.arrays import Integers, Words
from sfumato.errors import MethodError

# The most even distribution over some whole numbers that has mean 0 and a given variance.

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


# Counts perturbed by a keyed table, which says for every n how often it is published as n + v.

_WORDS = 2**63  # a word without its lowest bit, so that a threshold after the last word fits into 64 bits
_METHOD = "cell-key table"
LARGEST_DEVIATION = 50
_LARGEST_DENOMINATOR = 10**6


@dataclass(frozen=True, kw_only=True)
class CellKeyTable:
    """The transition table of the cell-key method, built from the variance and the maximum deviation that are wanted.

    A count n becomes n + v with |v| ≤ `deviation`, mean 0 and the stated variance; never a negative number, and never
    one from 1 to `smallest` − 1. Zero stays zero. Among all such tables this is the one of greatest entropy: it tells
    least about n. From n = deviation + smallest on all rows are the same, so the table ends there.

    Probabilities are worked out in decimals of sixty digits and kept as whole 2⁻⁶³rds: the same on every machine.

    >>> table = CellKeyTable(variance=Fraction(2), deviation=4)
    >>> table.published(np.array([0, 1, 100]), np.array([7, 7, 2**63], dtype=np.uint64)).tolist()
    [0, 0, 100]
    """

    variance: Fraction
    deviation: int
    smallest: int = 3
    """The smallest count that is published beside 0."""

    def __post_init__(self) -> None:
        if not (1 <= self.deviation <= LARGEST_DEVIATION and 1 <= self.smallest <= self.deviation):
            raise MethodError(
                _METHOD,
                expected=f"a deviation from 1 to {LARGEST_DEVIATION} and a smallest count from 1 to that",
                found=f"deviation = {self.deviation}, smallest = {self.smallest}",
                do="choose a deviation such as 5 and 3 as the smallest count",
            )
        least, most = self._feasible()
        fine = self.variance > 0 and self.variance.denominator <= _LARGEST_DENOMINATOR
        if not (fine and least <= self.variance <= most):
            raise self._infeasible(least, most)

    @property
    def rows(self) -> int:
        """How many different rows there are; the last serves all larger counts."""
        return self.deviation + self.smallest + 1

    def moves(self, count: int) -> tuple[int, ...]:
        """The v that are allowed for a count."""
        if count == 0:
            return (0,)
        reached = range(count - self.deviation, count + self.deviation + 1)
        return tuple(after - count for after in reached if after == 0 or after >= self.smallest)

    @cached_property
    def probabilities(self) -> tuple[tuple[Fraction, ...], ...]:
        """For each count up to where rows repeat, the probability of each of its moves, in whole 2⁻⁶³rds."""
        return tuple(
            _in_words(most_even(self.moves(count), self.variance)) if count else (Fraction(1),)
            for count in range(self.rows)
        )

    def published(self, counts: Integers, words: Words) -> Integers:
        """The counts as they are published; the word of a cell decides, so the same cell always gets the same."""
        if len(counts) and int(counts.min()) < 0:
            raise MethodError(
                _METHOD,
                expected="counts from 0 on",
                found="a negative count",
                do="count records, which cannot be fewer",
            )
        thresholds, moves = self._lookup
        row = np.minimum(counts, self.rows - 1)
        place = np.zeros(len(counts), dtype=np.int64)
        uniform = words >> np.uint64(1)
        for column in thresholds.T:  # one for each move but the last, at most 2·deviation
            place += uniform >= column[row]
        published: Integers = counts + moves[row, place]
        return published

    @cached_property
    def _lookup(self) -> tuple[Words, Integers]:
        """The first word after every move but the last, row by row, and the moves themselves."""
        width = 2 * self.deviation + 1
        thresholds = np.full((self.rows, width - 1), _WORDS, dtype=np.uint64)
        moves = np.zeros((self.rows, width), dtype=np.int64)
        for count, chances in enumerate(self.probabilities):
            allowed = self.moves(count)
            moves[count, : len(allowed)] = allowed
            thresholds[count, : len(allowed) - 1] = [int(upto * _WORDS) for upto in accumulate(chances[:-1])]
        return thresholds, moves

    def _feasible(self) -> tuple[int, int]:
        """The least and the largest variance that every row can have with mean 0."""
        bounds = [variance_bounds(self.moves(count)) for count in range(1, self.rows)]
        return max(least for least, _ in bounds), min(most for _, most in bounds)

    def _infeasible(self, least: int, most: int) -> MethodError:
        hidden = f" and are never published as 1 to {self.smallest - 1}" if self.smallest > 1 else ""
        nearest = min(max(self.variance, Fraction(least)), Fraction(most)).limit_denominator(_LARGEST_DENOMINATOR)
        return MethodError(
            _METHOD,
            expected=f"a variance above 0, from {least} to {most}, denominator at most {_LARGEST_DENOMINATOR:,}: "
            f"so that counts move by at most {self.deviation}, are right on average{hidden}",
            found=f"variance = {self.variance}",
            # Counts of 1 move by at most the deviation when 0 is the only smaller count.
            do=f"choose variance = {nearest or Fraction(1, 10)}"
            if least <= most
            else f"choose deviation = {least} and variance = {least}",
        )


def _in_words(chances: Sequence[Decimal]) -> tuple[Fraction, ...]:
    """Probabilities as whole 2⁻⁶³rds that add up to one: their running sums are rounded."""
    with localcontext(Context(prec=50)):
        upto = [int((chance * _WORDS).to_integral_value()) for chance in accumulate(chances)]
    upto[-1] = _WORDS
    return tuple(Fraction(end - begin, _WORDS) for begin, end in zip([0, *upto[:-1]], upto, strict=True))
