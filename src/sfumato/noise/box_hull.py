"""The hull of a box and its negative: its norm, and points drawn uniformly from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.noise.randomness import Randomness
from sfumato.noise.twofold import Twofold
from sfumato.noise.vector_words import choices, heads_of, word_blocks


def hull_norm(z: Floats) -> Floats:
    """‖z‖ = max(z⁺) + max(z⁻) over the last axis: the least λ ≥ 0 with z in λ times the hull of [0,1]^d and [−1,0]^d.

    >>> hull_norm(np.array([[3.0, 1.0], [3.0, -1.0]])).tolist()
    [3.0, 4.0]
    """
    norm: Floats = np.maximum(z.max(axis=-1), 0) - np.minimum(z.min(axis=-1), 0)
    return norm


@dataclass(frozen=True, kw_only=True)
class HullPoints:
    """Points of the hull known to the first bits of their uniforms.

    One of d + 1 numbers V_0 … V_d, chosen at random, is zero and the others are uniform on (0, 1). The d differences
    V_c − V_0 are a point drawn uniformly from the hull of [0,1]^d and [−1,0]^d; docs/methods/vector.md has the proof.
    """

    heads: Integers
    zero: Integers
    bits: int

    @classmethod
    def draw(cls, rows: int, cells: int, randomness: Randomness, *, bits: int) -> "HullPoints":
        """As many points as rows, in as many dimensions as cells."""
        heads = heads_of(word_blocks(rows, cells + 1, randomness), bits)
        return cls(heads=heads, zero=choices(rows, cells + 1, randomness), bits=bits)

    @property
    def coordinates(self) -> Floats:
        """The points at the lower ends of what is known: exact, and within 2^−bits of the points to be."""
        uniforms = self.heads * 2.0**-self.bits
        np.put_along_axis(uniforms, self.zero[:, None], 0.0, axis=1)
        return uniforms[:, 1:] - uniforms[:, :1]


def exact_coordinates(uniforms: Twofold, zero: Integers) -> Twofold:
    """The coordinates of points at the lower ends of their uniforms, with two floats for a number."""
    ends = Twofold(uniforms.high.copy(), uniforms.low.copy())
    for part in (ends.high, ends.low):
        np.put_along_axis(part, zero[:, None], 0.0, axis=1)
    return ends[:, 1:] - ends[:, :1]


def coordinate_bounds(heads: Sequence[int], zero: int, bits: int) -> list[tuple[Decimal, Decimal]]:
    """The least and the greatest value of every coordinate of one point, each correct to the digits in force."""
    # Whole numbers are subtracted before the one division, so that the signs of the bounds are exact.
    ends = [(0, 0) if i == zero else (head, head + 1) for i, head in enumerate(heads)]
    (start_low, start_high), *others = ends
    whole = Decimal(1 << bits)
    return [(Decimal(low - start_high) / whole, Decimal(high - start_low) / whole) for low, high in others]
