"""One of several candidates, with probabilities that fall exponentially with whole-number costs, drawn exactly."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import digits_for, precise, until_certain
from sfumato.noise.symmetric import FIRST_BITS, check_first_bits, chunks

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_TIMES = 2**44
"""How many candidates of the same cost one may stand for."""
_UNIT = 2.0**-52
_NEVER = 2**62


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
        times: Integers | None = None,
        first_bits: int = FIRST_BITS,
    ) -> Integers:
        """One candidate for every row of costs. `first_bits` is for tests, and changes no probability."""
        check_first_bits(first_bits)
        times = np.ones_like(costs) if times is None else times
        if len(costs) and not (int(times.min()) >= 0 and int(times.max()) <= MOST_TIMES and times.any(axis=1).all()):
            raise ValueError("every row needs a candidate, and none stands for more than 2^44")
        chosen = np.empty(len(costs), dtype=np.int64)
        for part in chunks(len(costs)):
            words = randomness.words(part.stop - part.start)
            heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
            chosen[part], certain = self._first_pass(costs[part], times[part], heads, first_bits)
            for i in np.flatnonzero(~certain):
                row, own = costs[part.start + i], times[part.start + i]
                chosen[part.start + i] = until_certain(
                    lambda numerator, bits, row=row, own=own: self._bounds(row, own, numerator, bits),  # type: ignore[misc]
                    numerator=int(heads[i]),
                    bits=first_bits,
                    randomness=randomness,
                )
        return chosen

    def probabilities(self, costs: Integers) -> Floats:
        """The probability of every candidate of every row."""
        weights = self._weights(costs, np.ones_like(costs))
        chances: Floats = weights / weights.sum(axis=1, keepdims=True)
        return chances

    def _weights(self, costs: Integers, times: Integers) -> Floats:
        """Relative to the cheapest candidate there is, which weighs 1 each time."""
        least = np.where(times > 0, costs, _NEVER).min(axis=1, keepdims=True)
        # What is not there may be cheaper still: its weight must not become infinite before it is multiplied by 0.
        weights: Floats = times * np.exp(-float(self.rate) * np.maximum(costs - least, 0))
        return weights

    def _first_pass(
        self, costs: Integers, times: Integers, heads: Integers, bits: int
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The candidate that U falls on, and where no further bit of U could change it.

        A weight w·e^−x errs by at most (4x + 21)·w·e^−x units of 2^−52: by 277 of itself up to x = 64, and by less
        than one in all beyond, as w ≤ 2^44. K of them added up err by 278 + K of the whole, which is at least 1, and
        U times the whole by as much again and 2. 64K + 1024 units of the whole are taken.
        """
        ends = np.cumsum(self._weights(costs, times), axis=1)
        whole = ends[:, -1]
        margin = (64 * costs.shape[1] + 1024) * _UNIT * whole
        low = heads * 2.0**-bits * whole
        high = (heads + 1) * 2.0**-bits * whole
        first = (ends <= (low - margin)[:, None]).sum(axis=1)
        last = (ends[:, :-1] < (high + margin)[:, None]).sum(axis=1)
        return first.astype(np.int64), first == last

    def _bounds(self, costs: Integers, times: Integers, numerator: int, bits: int) -> tuple[int, int]:
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
