"""Box Laplace noise on logarithms, and how far the whole numbers it makes are from the truth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.box_pareto import HullPoints, Tail, coordinate_bounds, exact_coordinates, hull_norm, hull_tail
from sfumato.noise.passes import FIRST_BITS, MOST_CELLS, Uniforms, block_chunks, heads_of, settled_rows, word_blocks
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import ERROR, Twofold, VectorBounds, exactly, many_digits, minus_log, nearest

# Box Laplace noise on logarithms: exponential in the hull norm, published after exponentiation.

# Widths are themselves computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30
_UNIT = 2.0**-52


@dataclass(frozen=True, kw_only=True)
class BoxLaplace:
    """Noise z in d cells of density ∝ exp(−‖z‖/b), where ‖·‖ is the norm of the hull of a box and its negative.

    z = b·R·W with W uniform in the hull and R = −Σ ln U_j over j = 1 … d+1. `sample` gives whole numbers
    A·unit·e^z − offset, rounded exactly. docs/methods/vector.md has the proof.

    >>> noise = BoxLaplace(scale=Fraction(1, 20), cells=2)
    >>> noise.growth > 1                                    # E[e^z], by which results are divided
    True
    """

    scale: Fraction
    cells: int

    def __post_init__(self) -> None:
        if not 2**-64 <= self.scale < 1:
            raise ValueError(f"scale must be in [2^-64, 1), or the exponential has no mean: {self}")
        if not 1 <= self.cells <= MOST_CELLS:
            raise ValueError(f"cells must be between 1 and {MOST_CELLS}: {self}")

    def sample(
        self,
        bases: Integers,
        randomness: Randomness,
        *,
        unit: Fraction,
        offset: Fraction,
        first_bits: int = FIRST_BITS,
    ) -> Integers:
        """The nearest whole number to A·unit·e^z − offset for every A in rows of d bases; at most 2^62.

        `first_bits` is for tests: fewer bits in the first pass change no probability.
        """
        if bases.ndim != 2 or bases.shape[1] != self.cells or (bases.size and int(bases.min()) < 1):
            raise ValueError(f"bases must be rows of {self.cells} positive whole numbers")
        values = np.empty(bases.shape, dtype=np.int64)
        for part in block_chunks(len(bases), self.cells):
            rows = part.stop - part.start
            heads = heads_of(word_blocks(rows, self.cells + 1, randomness), first_bits)
            points = HullPoints.draw(rows, self.cells, randomness, bits=first_bits)
            values[part], certain = self.first_pass(bases[part], heads, points, unit=unit, offset=offset)
            if len(doubtful := np.flatnonzero(~certain.all(axis=1))):
                known = np.concatenate([heads[doubtful], points.heads[doubtful]], axis=1)
                values[part.start + doubtful] = self._settled(
                    bases[part][doubtful],
                    known,
                    points.zero[doubtful],
                    randomness,
                    unit=unit,
                    offset=offset,
                    first_bits=first_bits,
                )
        return values

    def first_pass(
        self, bases: Integers, heads: Integers, points: HullPoints, *, unit: Fraction, offset: Fraction
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The rounded values in floating point, and which of them no further bit could change.

        Write u = 2^−52. If the library's `log` and `exp` are within 20u, R is within (22 + d)u of itself. The bits
        not drawn yet lower R by at most Σ 1/h and move W by less than 2^−bits. The exponent z is then within
        b(Σ 1/h + R·2^−bits + (64 + 2d)R·u), and where that is at most ½, e^z within twice that share of itself.
        """
        # U = 0 makes infinities and NaN, which are equal to nothing.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            b, resolution, shift = float(self.scale), 2.0**-points.bits, float(offset)
            radius = -np.log(heads * resolution).sum(axis=1, keepdims=True)
            unknown = (1.0 / heads).sum(axis=1, keepdims=True)
            exponent = b * radius * points.coordinates
            doubt = b * (unknown + radius * (resolution + (64 + 2 * self.cells) * _UNIT)) * _WIDENED
            size = bases * float(unit) * np.exp(exponent)
            error = size * (2 * doubt + 128 * _UNIT * (1 + np.abs(exponent))) + (size + shift + 1) * (16 * _UNIT)
            low, high = np.floor(size - shift - error + 0.5), np.floor(size - shift + error + 0.5)
            certain = (low == high) & (doubt <= 0.5)
        return np.where(certain, high, 0).astype(np.int64), certain

    def second_pass(
        self, bases: Integers, zero: Integers, uniforms: Uniforms, *, unit: Fraction, offset: Fraction
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The same with two floats for a number; the uniforms are those of R, then those of the points.

        R errs by (d + 1 + (d + 1)R)·ERROR, so the exponent by less than b(d + 8)(R + 1)·ERROR besides.
        """
        b, shift, own = float(self.scale), float(offset), self.cells + 1
        radius = -uniforms.lower[:, :own].log().sums()
        unknown = uniforms.unknown[:, :own].sum(axis=1, keepdims=True) + uniforms.step * radius.high
        exponent = exact_coordinates(uniforms.lower[:, own:], zero) * (radius * Twofold.of(self.scale))
        doubt = b * (unknown + (radius.high + 1) * ((16 + 2 * self.cells) * ERROR))
        size = exponent.exp() * (Twofold.of_integers(bases) * Twofold.of(unit))
        error = size.high * (2 * doubt + (1 + np.abs(exponent.high)) * (16 * ERROR)) + (size.high + shift + 1) * (
            16 * ERROR
        )
        found, certain = (size - Twofold.of(offset) + 0.5).whole_parts(below=error, above=error)
        return found, certain & (doubt <= 0.5)

    def _settled(
        self,
        bases: Integers,
        heads: Integers,
        zero: Integers,
        randomness: Randomness,
        *,
        unit: Fraction,
        offset: Fraction,
        first_bits: int,
    ) -> Integers:
        """The values of rows that the first pass left in doubt."""

        def second(rows: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
            return self.second_pass(bases[rows], zero[rows], uniforms, unit=unit, offset=offset)

        def bounds(row: int) -> Callable[[Sequence[int], int], VectorBounds]:
            sizes = [unit * base for base in bases[row].tolist()]
            return partial(self.value_bounds, sizes, offset, int(zero[row]))

        return settled_rows(heads, randomness, first_bits=first_bits, second_pass=second, bounds=bounds)

    def value_bounds(
        self, sizes: Sequence[Fraction], offset: Fraction, zero: int, heads: Sequence[int], bits: int
    ) -> VectorBounds:
        """The least and the greatest whole number that each value may round to, in many digits."""
        with many_digits(bits) as share:
            b, shift = exactly(self.scale), exactly(offset)
            ends = [Decimal(0), Decimal(0)]
            for head in heads[: self.cells + 1]:
                for end, log_end in enumerate(minus_log(head, bits)):
                    ends[end] += b * log_end
            found = []
            for size, (low, high) in zip(sizes, coordinate_bounds(heads[self.cells + 1 :], zero, bits), strict=True):
                base = exactly(size)
                least = _exponential(low, ends[0] if low > 0 else ends[1], -share)
                most = _exponential(high, ends[1] if high > 0 else ends[0], share)
                found.append(
                    (
                        nearest(base * least - shift * (1 + share)),
                        nearest(base * most - shift * (1 - share)),
                    )
                )
            return found

    def log_density(self, z: Floats) -> Floats:
        """The logarithm of the density of z at rows of d coordinates."""
        d, b = self.cells, float(self.scale)
        # The unit ball has volume d + 1, and the radius carries d!.
        density: Floats = -hull_norm(z) / b - lgamma(d + 1) - log(d + 1) - d * log(b)
        return density

    @cached_property
    def one_cell(self) -> Tail:
        """P(|z_c|/b > x) for one cell by itself."""
        return hull_tail(self.cells)

    @cached_property
    def growth(self) -> float:
        """E[e^(z_c)], the same for every cell: finite because the scale is below 1.

        With the tail T of |z_c|/b it is 1 + ½∫ T(x)·b(e^(bx) − e^(−bx)) dx: the mean of a cosh by parts.
        """
        b, start = float(self.scale), np.array(0.0)
        above, below = (self.one_cell.integral(rate).at(start) for rate in (1 - b, 1 + b))
        return 1 + b / 2 * float(above - below)


def _exponential(coordinate: Decimal, radius: Decimal, outward: Decimal) -> Decimal:
    """e^(coordinate·radius), moved outward; a coordinate of zero gives one at every radius."""
    exponent = coordinate * radius if coordinate else Decimal(0)
    if exponent.is_infinite():
        return exponent if exponent > 0 else Decimal(0)
    return exponent.exp() * (1 + outward * (1 + abs(exponent)))


# How far whole numbers made by box Laplace noise on logarithms are from the truth, on average.

_DIRECT_TERMS = 64


def expected_deviation(
    noise: BoxLaplace, true: Integers, bases: Integers, *, unit: Fraction, offset: Fraction
) -> tuple[Floats, Floats]:
    """E[(V − true)⁺] and E[(true − V)⁺] of V = A·unit·e^z − offset rounded, one cell at a time.

    Their sum is the mean absolute error, their difference the bias. Both are sums of tail probabilities at half
    integers: the first terms directly, the others by the integral, which is then right to a few parts in a million.
    """
    median, n, shift = bases.astype(np.float64) * float(unit), true.astype(np.float64), float(offset)
    over, under = np.zeros(n.shape), np.zeros(n.shape)
    for j in range(_DIRECT_TERMS):
        over += _above(noise, _logs(n + shift + j + 0.5, median))
        under += 1 - _above(noise, _logs(n + shift - j - 0.5, median))
    over += median * integral_above(noise, _logs(n + shift + _DIRECT_TERMS, median))
    under += median * _integral_below(noise, _logs(n + shift - _DIRECT_TERMS, median))
    return over, under


def relative_deviation(noise: BoxLaplace) -> float:
    """E|e^z/E[e^z] − 1|, the mean absolute error before rounding as a share of the base."""
    at = np.log(np.array(noise.growth))
    return float(integral_above(noise, at) + _integral_below(noise, at)) / noise.growth


def _logs(level: Floats, median: Floats) -> Floats:
    """Which z brings the value to a level; for a level it never falls to, one so low that z never does."""
    return np.log(np.maximum(level / median, 1e-300))


def _above(noise: BoxLaplace, r: Floats) -> Floats:
    """P(z ≥ r)."""
    half = noise.one_cell.at(np.abs(r) / float(noise.scale)) / 2
    return np.where(r >= 0, half, 1 - half)


def integral_above(noise: BoxLaplace, r: Floats) -> Floats:
    """∫ P(z ≥ t)·e^t dt from r on."""
    positive, negative = np.maximum(r, 0), np.minimum(r, 0)
    inside = -np.expm1(negative) - (tilted(noise, np.zeros_like(r), -1) - tilted(noise, -negative, -1))
    return tilted(noise, positive, 1) + inside


def _integral_below(noise: BoxLaplace, r: Floats) -> Floats:
    """∫ P(z < t)·e^t dt up to r."""
    positive, negative = np.maximum(r, 0), np.minimum(r, 0)
    inside = np.expm1(positive) - (tilted(noise, np.zeros_like(r), 1) - tilted(noise, positive, 1))
    return tilted(noise, -negative, -1) + inside


def tilted(noise: BoxLaplace, r: Floats, sign: int) -> Floats:
    """∫ P(z ≥ t)·e^(±t) dt from r ≥ 0 on."""
    b = float(noise.scale)
    rate = 1 - sign * b
    integral: Floats = b / 2 * noise.one_cell.integral(rate).at(rate * r / b)
    return integral
