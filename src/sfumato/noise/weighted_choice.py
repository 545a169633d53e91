"""One of several candidates, with probabilities that fall exponentially with whole-number costs, drawn exactly."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.end_to_end import EndToEnd, rounded_up, turn
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import digits_for, precise, until_certain
from sfumato.noise.symmetric import FIRST_BITS, check_first_bits

Times = NDArray[np.signedinteger[Any]]

MOST_TIMES = 2**44
"""How many candidates of the same cost one may stand for."""
_UNIT = 2.0**-52
_NEVER = 2**62
_REACH = 80
"""The largest exponent that matters: beyond it, even 2^44 candidates weigh less than 2^−71 of one that costs 0."""
_LONGEST = 1 << 16  # weights of a table: few enough to stay in the processor's cache
_CHUNK = 1 << 17  # candidates at a time, for the same reason
_MOST = 1 << 21  # candidates at a time that memory is set aside for, however long their rows are
_ROWS = (1 << 11) + 1  # rows at a time, unless that is too much: NumPy would take fewer through a buffer of its own


@dataclass(frozen=True, kw_only=True)
class WeightedChoice:
    """Candidate k with probability proportional to exp(−rate·cost_k): the exponential mechanism's choice.

    A candidate may stand for several that cost the same, `times` of them, or for none. A uniform U falls on one of the
    candidates, laid end to end with their weights as lengths; as many bits of U are drawn as it takes to tell on which.

    >>> WeightedChoice(rate=Fraction(1, 2)).probabilities(np.array([[0, 2]])).round(3).tolist()
    [[0.731, 0.269]]
    """

    rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Fraction | int) or self.rate <= 0:
            raise ValueError("the rate is an exact fraction above 0")

    def sample(
        self,
        costs: Integers,
        randomness: Randomness,
        *,
        times: Times | None = None,
        first_bits: int = FIRST_BITS,
    ) -> Integers:
        """One candidate for every row of costs, or for every row of times when one row of costs goes for all of these.

        `first_bits` is for tests, and changes no probability.
        """
        check_first_bits(first_bits)
        rows, candidates = costs.shape if times is None else times.shape
        if rows and not candidates:
            raise _no_choice()
        if rows and times is not None and not 0 <= int(times.min()) <= int(times.max()) <= MOST_TIMES:
            raise _no_choice()
        shared = len(costs) < rows
        step = _rows_at_a_time(candidates, shared=shared)
        weights, chosen = _Weights.of(self.rate, costs, rows=min(rows, step)), np.empty(rows, dtype=np.int64)
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            words = randomness.words(part.stop - part.start)
            heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
            own_costs, own_times = costs if shared else costs[part], None if times is None else times[part]
            line = weights.laid(own_costs, own_times)
            chosen[part], certain = line.fallen_on(heads, bits=first_bits, error=_error(candidates))
            for i in np.flatnonzero(~certain):
                cost = own_costs[i % len(own_costs)]
                several = np.ones_like(cost) if own_times is None else own_times[i]
                chosen[part.start + i] = until_certain(
                    lambda numerator, bits, cost=cost, several=several: self._bounds(cost, several, numerator, bits),  # type: ignore[misc]
                    numerator=int(heads[i]),
                    bits=first_bits,
                    randomness=randomness,
                )
        return chosen

    def probabilities(self, costs: Integers) -> Floats:
        """The probability of every candidate of every row."""
        weights = np.exp(-float(self.rate) * (costs - costs.min(axis=1, keepdims=True)))
        chances: Floats = weights / weights.sum(axis=1, keepdims=True)
        return chances

    def _bounds(self, costs: Integers, times: Times, numerator: int, bits: int) -> tuple[int, int]:
        """The first and the last candidate that U may fall on when it is known to its first `bits` bits.

        Every end errs by less than 100·K units of 10^(1−digits) of the whole.
        """
        digits = digits_for(bits)
        with localcontext(precise(digits)):
            rate = Decimal(self.rate.numerator) / Decimal(self.rate.denominator)
            least, ends = int(costs[times > 0].min()), [Decimal(0)]
            for cost, several in zip(costs.tolist(), times.tolist(), strict=True):
                ends.append(ends[-1] + (several * (-rate * (cost - least)).exp() if several else 0))
            margin = len(costs) * ends[-1] * Decimal(10) ** (4 - digits)
            low, high = (ends[-1] * n / Decimal(2) ** bits for n in (numerator, numerator + 1))
            first = sum(end <= low - margin for end in ends[1:])
            return first, sum(end < high + margin for end in ends[1:-1])


@dataclass(frozen=True, kw_only=True)
class _Weights:
    """Weights of some rows at a time, in the same room again and again, from a table where that pays."""

    rate: float
    reach: int
    """The largest difference of costs that matters."""
    table: Floats | None
    """Weights of all these differences and the next one, if they are fewer than the candidates to be weighed."""
    above: Integers
    weights: Floats

    @classmethod
    def of(cls, rate: Fraction, costs: Integers, *, rows: int) -> "_Weights":
        """For so many rows at a time, with as many rows of costs or with one for all."""
        candidates = costs.shape[1]
        reach = min(int(_REACH // rate), _NEVER)
        short = reach < min(costs.size, _LONGEST)
        return cls(
            rate=float(rate),
            reach=reach,
            table=np.exp(np.arange(reach + 2) * -float(rate)) if short else None,
            above=np.empty(candidates * rows, dtype=np.int64),
            weights=np.empty(rounded_up(candidates) * rows),
        )

    def laid(self, costs: Integers, times: Times | None) -> EndToEnd:
        """The candidates of some rows.

        Costs are counted from the least of all. Only if that makes a row weigh so little that what is out of reach
        could matter, they are counted from the least of each row.
        """
        least, most = int(costs.min()), int(costs.max())
        line = self._laid(least, costs, times)
        if most - least > self.reach and float(line.whole.min()) < 0.5:
            rows = costs if times is None else np.broadcast_to(costs, times.shape)
            there = rows if times is None else np.where(times > 0, rows, _NEVER)
            line = self._laid(there.min(axis=1), rows, times)
        if not line.whole.all():
            raise _no_choice()
        return line

    def _laid(self, least: int | Integers, costs: Integers, times: Times | None) -> EndToEnd:
        lines, candidates = costs.shape if times is None else times.shape
        lengths = self.weights[: rounded_up(candidates) * lines].reshape(-1, lines)
        there = lengths[:candidates]
        if len(costs) == lines:
            self._weigh(least, costs, out=there)
            if times is not None:
                there *= times.T
        elif times is not None:
            there[:] = times.T
            there *= self._weigh(least, costs, out=np.empty((candidates, len(costs))))
        return EndToEnd.of(lengths, parts=candidates)

    def _weigh(self, least: int | Integers, costs: Integers, *, out: Floats) -> Floats:
        """The weights of single candidates, a column for every row of costs."""
        above = self.above[: costs.size].reshape(out.shape)
        turn(costs, above)
        if np.any(least):
            above -= least
        # What is not there may cost less than the least: clipped, its weight is 1 and not infinite, times 0.
        if self.table is not None:
            self.table.take(above, out=out, mode="clip")
        else:
            np.multiply(np.clip(above, 0, self.reach + 1, out=above), -self.rate, out=out)
            np.exp(out, out=out)
        return out


def _error(candidates: int) -> float:
    """By how large a share of the whole the ends of so many candidates may be off in the first pass, at most.

    A weight w·e^−x errs by at most (4x + 21)·w·e^−x units of 2^−52: by 341 of itself up to x = 80. Beyond, less than
    2^−71 is put for less than 2^−71, but only where the whole is 1/2 or more: that is 2^−18 of a unit of it. K of them
    added up err by 342 + K of the whole, in any order. U times the whole errs by as much and 2. 32K + 512 are taken.
    """
    return (32 * candidates + 512) * _UNIT


def _rows_at_a_time(candidates: int, *, shared: bool) -> int:
    # Where all rows share a weight, it takes twice as many to go without the buffer.
    rows = max(_CHUNK // max(candidates, 1), 2 * _ROWS if shared else _ROWS)
    return max(min(rows, _MOST // max(candidates, 1)), 1)


def _no_choice() -> ValueError:
    return ValueError("every row needs a candidate, and none stands for more than 2^44")
