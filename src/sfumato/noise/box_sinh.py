"""Box Laplace noise on inverse hyperbolic sines of counts, published after the hyperbolic sine is taken."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.box_laplace import BoxLaplace, integral_above, relative_deviation, tilted
from sfumato.noise.box_pareto import HullPoints, coordinate_bounds
from sfumato.noise.passes import FIRST_BITS, Uniforms, block_chunks, heads_of, settled_rows, word_blocks
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import VectorBounds, exactly, many_digits, minus_log, nearest

_WIDENED = 1 + 2.0**-30
_UNIT = 2.0**-52
_DIRECT_TERMS = 64


@dataclass(frozen=True, kw_only=True)
class BoxSinh:
    """Whole numbers next to size·factor·sinh(asinh(n/size) + z), with z of density ∝ exp(−‖z‖/b) in blocks of d cells.

    Their mean is n where factor = 1/E[cosh z], because z is symmetric: sinh(a+z) has the mean sinh(a)·E[cosh z].
    docs/methods/bell.md has the proof.

    >>> from sfumato.noise.randomness import Seeded
    >>> noise = BoxSinh(scale=Fraction(1, 20), cells=2, size=Fraction(10))
    >>> noise.sample(np.array([[5, 700]]), Seeded(1)).shape
    (1, 2)
    """

    scale: Fraction
    cells: int
    size: Fraction

    def __post_init__(self) -> None:
        if not 2**-20 <= self.size <= 2**40:
            raise ValueError(f"size must be in [2^-20, 2^40]: {self}")
        _ = self.logarithm  # refuses a scale or a number of cells out of bounds

    @cached_property
    def logarithm(self) -> BoxLaplace:
        """The noise z."""
        return BoxLaplace(scale=self.scale, cells=self.cells)

    @cached_property
    def factor(self) -> Fraction:
        """1/E[cosh z] to twelve digits, which is 1/E[e^z]: public."""
        return Fraction(f"{1 / self.logarithm.growth:.12g}")

    def sample(self, counts: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One whole number for every count in rows of d; at most 2^62, either way. `first_bits` is for tests."""
        if counts.ndim != 2 or counts.shape[1] != self.cells or (counts.size and int(counts.min()) < 0):
            raise ValueError(f"counts must be rows of {self.cells} whole numbers that are not negative")
        values = np.empty(counts.shape, dtype=np.int64)
        for part in block_chunks(len(counts), self.cells):
            rows = part.stop - part.start
            heads = heads_of(word_blocks(rows, self.cells + 1, randomness), first_bits)
            points = HullPoints.draw(rows, self.cells, randomness, bits=first_bits)
            values[part], certain = self.first_pass(counts[part], heads, points)
            if len(doubtful := np.flatnonzero(~certain.all(axis=1))):
                values[part.start + doubtful] = self._settled(
                    counts[part][doubtful],
                    np.concatenate([heads[doubtful], points.heads[doubtful]], axis=1),
                    points.zero[doubtful],
                    first_bits,
                    randomness,
                )
        return values

    def first_pass(self, counts: Integers, heads: Integers, points: HullPoints) -> tuple[Integers, Flags]:
        """The rounded values in floating point, and which of them no further bit could change.

        z is known as BoxLaplace knows it; asinh(n/size) errs by 32u of one more than itself if the library's is within
        20u, u = 2^−52; and where all that is at most ½, a sinh by less than twice that times its cosh.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            b, resolution = float(self.scale), 2.0**-points.bits
            radius = -np.log(heads * resolution).sum(axis=1, keepdims=True)
            unknown = (1.0 / heads).sum(axis=1, keepdims=True)
            start = np.arcsinh(counts / float(self.size))
            exponent = b * radius * points.coordinates
            doubt = b * (unknown + radius * (resolution + (64 + 2 * self.cells) * _UNIT)) * _WIDENED
            doubt = doubt + (1 + start + np.abs(exponent)) * (64 * _UNIT)
            height = float(self.size * self.factor)
            value, slope = height * np.sinh(start + exponent), height * np.cosh(start + exponent)
            error = slope * (2 * doubt + 64 * _UNIT) + (np.abs(value) + 1) * (16 * _UNIT)
            low, high = np.floor(value - error + 0.5), np.floor(value + error + 0.5)
            certain = (low == high) & (doubt <= 0.5)
        return np.where(certain, high, 0).astype(np.int64), certain

    def _settled(
        self, counts: Integers, heads: Integers, zero: Integers, first_bits: int, randomness: Randomness
    ) -> Integers:
        """The values of rows that the first pass left in doubt: too few to need a second one."""

        def second(rows: Integers, _: Uniforms) -> tuple[Integers, Flags]:
            shape = (len(rows), self.cells)
            return np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)

        return settled_rows(
            heads,
            randomness,
            first_bits=first_bits,
            second_pass=second,
            bounds=lambda row: self.value_bounds(counts[row].tolist(), int(zero[row])),
        )

    def value_bounds(self, counts: Sequence[int], zero: int) -> Callable[[Sequence[int], int], VectorBounds]:
        """What is known of the values of one row, in many digits."""

        def bounds(heads: Sequence[int], bits: int) -> VectorBounds:
            with many_digits(bits) as share:
                b = exactly(self.scale)
                ends = [Decimal(0), Decimal(0)]
                for head in heads[: self.cells + 1]:
                    for end, log_end in enumerate(minus_log(head, bits)):
                        ends[end] += b * log_end
                found = []
                coordinates = coordinate_bounds(heads[self.cells + 1 :], zero, bits)
                for count, (low, high) in zip(counts, coordinates, strict=True):
                    least = self._value(count, low * (ends[0] if low > 0 else ends[1]) if low else Decimal(0), -share)
                    most = self._value(count, high * (ends[1] if high > 0 else ends[0]) if high else Decimal(0), share)
                    found.append((nearest(least), nearest(most)))
                return found

        return bounds

    def _value(self, count: int, z: Decimal, outward: Decimal) -> Decimal:
        """size·factor·sinh(asinh(n/size) + z), moved outward: rising with z."""
        if z.is_infinite():
            return z
        ratio = Decimal(count) / exactly(self.size)
        base = ratio + (1 + ratio * ratio).sqrt()
        up, down = base * z.exp(), (-z).exp() / base
        return exactly(self.size * self.factor) / 2 * (up - down + (up + down) * (1 + abs(z)) * outward)

    # How far values are from the truth, on average.

    def expected_deviation(self, counts: Integers) -> tuple[Floats, Floats]:
        """E[(V − n)⁺] and E[(n − V)⁺] of the rounded values: the first terms directly, the others by the integral."""
        n = counts.astype(np.float64)
        over, under = np.zeros(n.shape), np.zeros(n.shape)
        for j in range(_DIRECT_TERMS):
            over += self._above(n, n + j + 0.5)
            under += 1 - self._above(n, n - j - 0.5)
        return over + self._rest(n, n + _DIRECT_TERMS, 1), under + self._rest(n, n - _DIRECT_TERMS, -1)

    def _rest(self, n: Floats, level: Floats, side: int) -> Floats:
        """∫ P(V beyond v) dv from a level on, away from n: with v = size·factor·sinh(a + z), over z."""
        start, height = np.arcsinh(n / float(self.size)), float(self.size * self.factor)
        first = side * (np.arcsinh(level / height) - start)
        rising, falling = integral_above(self.logarithm, first), _falling_above(self.logarithm, first)
        found: Floats = height / 2 * (np.exp(side * start) * rising + np.exp(-side * start) * falling)
        return found

    def _above(self, n: Floats, level: Floats) -> Floats:
        """P(V ≥ level)."""
        z = np.arcsinh(level / float(self.size * self.factor)) - np.arcsinh(n / float(self.size))
        half = self.logarithm.one_cell.at(np.abs(z) / float(self.scale)) / 2
        return np.where(z >= 0, half, 1 - half)

    @cached_property
    def error_share(self) -> float:
        """What the mean absolute error is at most, before rounding, as a share of √(n² + size²).

        It is E|τ(cosh z − M) + sinh z|/M with M = E[cosh z] and τ = n/√(n² + size²): a convex function of τ, so at most
        what it is at τ = 0 or τ = 1.
        """
        zero, mean = np.zeros(1), self.logarithm.growth
        small = float(integral_above(self.logarithm, zero)[0] + _falling_above(self.logarithm, zero)[0]) / mean
        return max(small, relative_deviation(self.logarithm))


def _falling_above(noise: BoxLaplace, r: Floats) -> Floats:
    """∫ P(z ≥ t)·e^(−t) dt from r on."""
    positive, negative = np.maximum(r, 0), np.minimum(r, 0)
    inside = np.expm1(-negative) - (tilted(noise, np.zeros_like(r), 1) - tilted(noise, -negative, 1))
    return tilted(noise, positive, -1) + inside
