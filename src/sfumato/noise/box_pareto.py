"""Box Pareto noise: heavy-tailed in the hull norm, with a scale of its own in every cell of a block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.box_hull import HullPoints, coordinate_bounds, exact_coordinates, hull_norm
from sfumato.noise.box_tail import Tail, hull_tail
from sfumato.noise.randomness import Randomness
from sfumato.noise.second_pass import Uniforms, settled_rows
from sfumato.noise.symmetric import FIRST_BITS
from sfumato.noise.twofold import ERROR, Twofold
from sfumato.noise.vector_refinement import Bounds, exactly, many_digits, minus_log, nearest
from sfumato.noise.vector_words import MOST_CELLS, chunks, heads_of, word_blocks

# Widths are themselves computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30
_DIRECT_TERMS = 64


@dataclass(frozen=True, kw_only=True)
class BoxPareto:
    """Noise Z in d cells of density ∝ (1 + ‖z/s‖)^(−tail−d), every cell published as the nearest whole number.

    ‖·‖ is the norm of the hull of a box and its negative, and the scales s_c = unit·multiple_c may differ from cell
    to cell. Z_c = s_c·R·W_c with W uniform in the hull and R = ΠU_j^(−1/(tail+j−1)) − 1 over j = 1 … d+1.
    docs/methods/vector.md has the proof.

    >>> from sfumato.noise.randomness import Seeded
    >>> BoxPareto(unit=Fraction(1), tail=Fraction(3), cells=2).sample(np.array([[5, 7]]), Seeded(1)).shape
    (1, 2)
    """

    unit: Fraction
    tail: Fraction
    cells: int

    def __post_init__(self) -> None:
        # Within these bounds the error analysis of the first pass holds: nothing underflows.
        if not 2**-64 <= self.unit <= 2**64 or not 2**-10 <= self.tail <= 2**64:
            raise ValueError(f"unit must be in [2^-64, 2^64] and tail in [2^-10, 2^64]: {self}")
        if not 1 <= self.cells <= MOST_CELLS:
            raise ValueError(f"cells must be between 1 and {MOST_CELLS}: {self}")

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One row of d whole numbers for every row of d multiples; a magnitude beyond 2^62 is given as 2^62.

        As with DoublePareto a caller must cut the *sum* of count and noise well inside 2^62. `first_bits` is for tests.
        """
        if multiples.ndim != 2 or multiples.shape[1] != self.cells or (multiples.size and int(multiples.min()) < 1):
            raise ValueError(f"multiples must be rows of {self.cells} positive whole numbers")
        noise = np.empty(multiples.shape, dtype=np.int64)
        for part in chunks(len(multiples), self.cells):
            rows = part.stop - part.start
            heads = heads_of(word_blocks(rows, self.cells + 1, randomness), first_bits)
            points = HullPoints.draw(rows, self.cells, randomness, bits=first_bits)
            noise[part], certain = self.first_pass(multiples[part], heads, points)
            if len(doubtful := np.flatnonzero(~certain.all(axis=1))):
                known = np.concatenate([heads[doubtful], points.heads[doubtful]], axis=1)
                noise[part.start + doubtful] = self._settled(
                    multiples[part][doubtful], known, points.zero[doubtful], first_bits, randomness
                )
        return noise

    def first_pass(
        self, multiples: Integers, heads: Integers, points: HullPoints
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The rounded noise in floating point, and which of it no further bit could change.

        The analysis of SimplexPareto holds for R + 1 = P = e^Y with d + 1 terms. |W| ≤ 1, so an error of R counts at
        most fully, and an error of W, below 2^−bits, counts R times.
        """
        # U = 0 makes infinities and NaN, which are equal to nothing.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            share, resolution = self._shares, 2.0**-points.bits
            scale = multiples * float(self.unit)
            exponent = (np.log(heads * resolution) * -share).sum(axis=1, keepdims=True)
            unknown = ((share / heads).sum(axis=1, keepdims=True) + resolution) * _WIDENED
            growth = np.exp(exponent)
            reach = scale * growth
            noise = scale * (growth - 1) * points.coordinates
            error = (reach + 1) * (exponent + 1) * ((128 + 4 * self.cells) * 2.0**-52) + reach * unknown
            low, high = np.floor(noise - error + 0.5), np.floor(noise + error + 0.5)
            certain = low == high
        return np.where(certain, high, 0).astype(np.int64), certain

    def second_pass(
        self, multiples: Integers, zero: Integers, uniforms: Uniforms
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The same with two floats for a number; the uniforms are those of R, then those of the points.

        The analysis of SimplexPareto's holds for P, and W errs by one operation.
        """
        share, own = self._shares, self.cells + 1
        scale = Twofold.of_integers(multiples) * Twofold.of(self.unit)
        exponent = (-uniforms.lower[:, :own].log() * self._exact_shares).sums()
        unknown = (share * uniforms.unknown[:, :own]).sum(axis=1, keepdims=True) + uniforms.step
        growth = exponent.exp()
        noise = exact_coordinates(uniforms.lower[:, own:], zero) * (growth - 1.0) * scale
        reach = growth.high * scale.high
        error = (reach + 1) * (exponent.high + (1 + share.sum())) * ((16 + 4 * self.cells) * ERROR) + reach * unknown
        return (noise + 0.5).whole_parts(below=error, above=error)

    def _settled(
        self, multiples: Integers, heads: Integers, zero: Integers, first_bits: int, randomness: Randomness
    ) -> Integers:
        """The noise of rows that the first pass left in doubt."""

        def bounds(row: int) -> Callable[[Sequence[int], int], Bounds]:
            scales = [self.unit * multiple for multiple in multiples[row].tolist()]
            return partial(self.noise_bounds, scales, int(zero[row]))

        return settled_rows(
            heads,
            randomness,
            first_bits=first_bits,
            second_pass=lambda rows, uniforms: self.second_pass(multiples[rows], zero[rows], uniforms),
            bounds=bounds,
        )

    def noise_bounds(self, scales: Sequence[Fraction], zero: int, heads: Sequence[int], bits: int) -> Bounds:
        """The least and the greatest whole number that the noise of each cell may round to, in many digits."""
        with many_digits(bits) as share:
            tail = exactly(self.tail)
            ends = [Decimal(0), Decimal(0)]
            for i, head in enumerate(heads[: self.cells + 1]):
                for end, log_end in enumerate(minus_log(head, bits)):
                    ends[end] += log_end / (tail + i)
            radius = [_radius(end, outward * share) for end, outward in zip(ends, (-1, 1), strict=True)]
            found = []
            for scale, (low, high) in zip(scales, coordinate_bounds(heads[self.cells + 1 :], zero, bits), strict=True):
                s = exactly(scale)
                least = _times(low, radius[0] if low > 0 else radius[1]) * s
                most = _times(high, radius[1] if high > 0 else radius[0]) * s
                found.append((nearest(least - abs(least) * share), nearest(most + abs(most) * share)))
            return found

    def log_density(self, z: Floats, scales: Floats) -> Floats:
        """The logarithm of the density of Z at rows of d coordinates, before rounding."""
        d, tail = self.cells, float(self.tail)
        # The unit ball has volume d + 1; the radius carries Γ(tail + d)/(Γ(tail)·d!).
        constant = lgamma(tail + d) - lgamma(tail) - lgamma(d + 1) - log(d + 1)
        density: Floats = constant - np.log(scales).sum(axis=-1) - (tail + d) * np.log1p(hull_norm(z / scales))
        return density

    def expected_magnitude(self, multiples: Integers) -> Floats:
        """The mean absolute noise of a cell after rounding; infinite when the tail is 1 or less."""
        if self.tail <= 1:
            return np.full(multiples.shape, np.inf)
        distinct, where = np.unique(multiples, return_inverse=True)
        s, tail = distinct.astype(np.float64) * float(self.unit), float(self.tail)
        mean = np.zeros(len(s))
        for j in range(1, _DIRECT_TERMS + 1):
            mean += self.one_cell.mixed((j - 0.5) / s, tail)
        # The rest by the integral, with the first correction of the midpoint rule.
        start = _DIRECT_TERMS / s
        mean += s / (tail - 1) * self.one_cell.integral().mixed(start, tail - 1)
        step = start / 1000
        slope = (self.one_cell.mixed(start + step, tail) - self.one_cell.mixed(start - step, tail)) / (2 * step)
        mean += slope / s / 24
        return mean[where].reshape(multiples.shape)

    def survival(self, magnitude: Floats) -> Floats:
        """P(|Z_c|/s_c > magnitude) for one cell by itself."""
        return self.one_cell.mixed(magnitude, float(self.tail))

    def quantile(self, probability: float) -> float:
        """A value that |Z_c|/s_c stays below with at least this probability, and hardly more."""
        return self.one_cell.mixed_quantile(probability, float(self.tail))

    @cached_property
    def one_cell(self) -> Tail:
        """One coordinate before its division by a gamma variable."""
        return hull_tail(self.cells)

    @cached_property
    def _shares(self) -> Floats:
        return self._exact_shares.high

    @cached_property
    def _exact_shares(self) -> Twofold:
        return Twofold.row(1 / (self.tail + i) for i in range(self.cells + 1))


def _radius(exponent: Decimal, outward: Decimal) -> Decimal:
    if exponent.is_infinite():
        return exponent
    growth = exponent.exp()
    return max(growth - 1 + growth * (1 + exponent) * outward, Decimal(0))


def _times(coordinate: Decimal, radius: Decimal) -> Decimal:
    # A coordinate of zero is zero at every radius, also at one without a bound.
    return coordinate * radius if coordinate else Decimal(0)
