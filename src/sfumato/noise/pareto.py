"""Pareto noise, heavy-tailed and rounded to whole numbers: double for a cell, simplex for a block of cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.passes import (
    FIRST_BITS,
    MOST_SIMPLEX_CELLS,
    Uniforms,
    block_chunks,
    check_multiples,
    draw,
    first_pass,
    heads_of,
    settled_rows,
    signs,
    word_blocks,
)
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import (
    ERROR,
    SATURATION,
    Twofold,
    VectorBounds,
    exactly,
    many_digits,
    minus_log,
    nearest,
    refine,
)

# Double Pareto noise: symmetric, heavy-tailed, rounded to whole numbers, and drawn exactly.

Multiples = Integers | Floats

_DIRECT_TERMS = 64


@dataclass(frozen=True, kw_only=True)
class DoublePareto:
    """Noise Z of density a/(2s)·(1 + |z|/s)^(−a−1), published as the nearest whole number J.

    The scale s = unit·multiple may differ from draw to draw by a whole multiple; the tail is a. Both are
    exact fractions, and `sample` draws J with exactly P(|J| ≥ j) = (1 + (j − ½)/s)^(−a).
    docs/methods/smooth-pareto.md has the proof.

    >>> noise = DoublePareto(unit=Fraction(1), tail=Fraction(3))
    >>> float(noise.survival(np.array([1]), np.array([2]))[0])       # (1 + 0.5/2)^−3
    0.512
    """

    unit: Fraction
    tail: Fraction

    def __post_init__(self) -> None:
        # Within these bounds the error analysis of the first pass holds: nothing underflows.
        if not 2**-64 <= self.unit <= 2**64 or not 2**-10 <= self.tail <= 2**64:
            raise ValueError(f"unit must be in [2^-64, 2^64] and tail in [2^-10, 2^64]: {self}")

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One draw of J for every multiple; a magnitude beyond 2^62 is given as 2^62.

        A caller that adds J to a count must cut the *sum* at a limit well inside 2^62, so that the saturation
        here never shows: cutting the sum is post-processing, cutting the noise alone would not be.
        `first_bits` is for tests: fewer bits of U in the first pass send more draws to the refining loop and
        change no probability.
        """
        check_multiples(multiples)

        def first(part: slice, heads: Integers) -> tuple[Integers, NDArray[np.bool_]]:
            return first_pass(tail=self.tail, unit=self.unit, multiples=multiples[part], heads=heads, bits=first_bits)

        def second(places: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
            return self.second_pass(multiples[places], uniforms)

        def refined(i: int, known: int, bits: int) -> int:
            scale = self.unit * int(multiples[i])
            return refine(tail=self.tail, scale=scale, numerator=known, bits=bits, randomness=randomness)

        return draw(
            len(multiples),
            randomness,
            first_bits=first_bits,
            first_pass=first,
            second_pass=second,
            refine=refined,
        )

    def second_pass(self, multiples: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
        """The first pass again, with two floats for a number.

        y = −ln(U)/a errs by (1/a + 2y)·ERROR, e^y by (1/a + 1 + 3y)·ERROR of itself, and |Z| = s(e^y − 1) with the
        products by less than (1/a + 4 + 3y)(|Z| + s)·ERROR.
        """
        share = 1 / self.tail
        scale = Twofold.of_integers(multiples) * Twofold.of(self.unit)
        y = -uniforms.lower.log() * Twofold.of(share)
        magnitude = (y.exp() - 1.0) * scale
        reach = magnitude.high + scale.high
        error = (reach + 1) * (y.high + float(share) + 1) * (16 * ERROR)
        width = reach * uniforms.unknown * float(share)
        return (magnitude + 0.5).whole_parts(below=error + width, above=error)

    def log_density(self, z: Floats, multiples: Multiples) -> Floats:
        """The logarithm of the density of Z, before rounding."""
        a, s = float(self.tail), self._scale(multiples)
        density: Floats = np.log(a / (2 * s)) - (a + 1) * np.log1p(np.abs(z) / s)
        return density

    def log_mass(self, j: Integers, multiples: Multiples) -> Floats:
        """The logarithm of P(J = j), accurate also where the probability is tiny."""
        a, s = float(self.tail), self._scale(multiples)
        magnitude = np.abs(j).astype(np.float64)
        inner = np.maximum(magnitude - 0.5, 0)
        width = np.where(magnitude == 0, 0.5, 1.0)
        # Survival at the inner edge times the share of it that ends before the outer edge: no cancellation.
        share = np.log(-np.expm1(-a * np.log1p(width / (s + inner))))
        sides = np.where(magnitude == 0, 0.0, np.log(2))
        mass: Floats = share - sides - a * np.log1p(inner / s)
        return mass

    def survival(self, magnitude: Integers, multiples: Multiples) -> Floats:
        """P(|J| ≥ magnitude)."""
        edge = np.maximum(magnitude - 0.5, 0) / self._scale(multiples)
        probability: Floats = np.exp(-float(self.tail) * np.log1p(edge))
        return probability

    def expected_magnitude(self, multiples: Multiples) -> Floats:
        """E|J|, the mean absolute error of the published whole number; infinite when the tail is 1 or less.

        E|J| = Σ f(j − ½) over j ≥ 1 with f(x) = (1 + x/s)^(−a): the first terms directly, the others by the
        integral of f with two corrections of the midpoint rule. The next correction is below 10⁻¹¹ of the
        result.
        """
        if self.tail <= 1:
            return np.full(len(multiples), np.inf)
        a = float(self.tail)
        s, where = np.unique(self._scale(multiples), return_inverse=True)
        mean = np.zeros(len(s))
        for j in range(1, _DIRECT_TERMS + 1):
            mean += np.exp(-a * np.log1p((j - 0.5) / s))
        reach = s + _DIRECT_TERMS
        rest = np.exp(-a * np.log1p(_DIRECT_TERMS / s))
        # f′/f and f‴/f where the integral begins.
        first, third = (
            -a / reach,
            -a * (a + 1) * (a + 2) / reach**3,
        )
        mean += rest * (reach / float(self.tail - 1) + first / 24 - 7 * third / 5760)
        return mean[where]

    def quantile(self, probability: float) -> float:
        """The value that |Z|/s stays below with this probability."""
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        return float(np.expm1(-np.log1p(-probability) / float(self.tail)))

    def _scale(self, multiples: Multiples) -> Floats:
        return np.asarray(multiples, dtype=np.float64) * float(self.unit)


# Simplex Pareto noise: one draw for a whole block of cells, heavy-tailed in the sum of their magnitudes.

# The interval's width is itself computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30


@dataclass(frozen=True, kw_only=True)
class SimplexPareto:
    """Noise Z in d cells of density ∝ (1 + ‖z‖₁/s)^(−tail−d), every cell published as the nearest whole number.

    The scale s = unit·multiple may differ from block to block. The magnitudes are drawn one after the other, each
    given those before it: |Z_i| = s·(P_i − P_(i−1)) with P_0 = 1 and P_i = P_(i−1)·U_i^(−1/(tail+i−1)). Each cell by
    itself has double Pareto noise. docs/methods/vector.md has the proof.

    >>> from sfumato.noise.randomness import Seeded
    >>> SimplexPareto(unit=Fraction(1), tail=Fraction(3), cells=2).sample(np.array([5, 7, 9]), Seeded(1)).shape
    (3, 2)
    """

    unit: Fraction
    tail: Fraction
    cells: int

    def __post_init__(self) -> None:
        _ = self.marginal  # refuses a unit or a tail out of bounds
        if not 1 <= self.cells <= MOST_SIMPLEX_CELLS:
            raise ValueError(f"cells must be between 1 and {MOST_SIMPLEX_CELLS}: {self}")

    @cached_property
    def marginal(self) -> DoublePareto:
        """The noise of one cell by itself."""
        return DoublePareto(unit=self.unit, tail=self.tail)

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One row of d whole numbers for every multiple; a magnitude beyond 2^62 is given as 2^62.

        As with DoublePareto a caller must cut the *sum* of count and noise well inside 2^62. `first_bits` is for tests:
        fewer bits in the first pass send more rows to the refining loop and change no probability.
        """
        check_multiples(multiples)
        noise = np.empty((len(multiples), self.cells), dtype=np.int64)
        for part in block_chunks(len(multiples), self.cells):
            words = word_blocks(part.stop - part.start, self.cells, randomness)
            heads = heads_of(words, first_bits)
            magnitudes, certain = self.first_pass(multiples[part], heads, first_bits)
            if len(doubtful := np.flatnonzero(~certain.all(axis=1))):
                magnitudes[doubtful] = self._settled(multiples[part][doubtful], heads[doubtful], first_bits, randomness)
            np.multiply(magnitudes, signs(words), out=noise[part])
        return noise

    def first_pass(self, multiples: Integers, heads: Integers, bits: int) -> tuple[Integers, NDArray[np.bool_]]:
        """The rounded magnitudes in floating point, and which of them no further bit could change.

        Write u = 2^−52, Y = ln P and P for P_i. If the library's `log` and `exp` are within 20u (NumPy accepts no
        more than 4u), each term of Y is within 22u of itself, Y within (22 + d)u, P within (20 + (22 + d)Y)u, and
        s(P_i − P_(i−1)) within twice that share of sP and a few u more: below (128 + 4d)(1 + Y)u(sP + 1), which is
        taken. The bits not drawn yet lower −ln U by at most 1/h each, and the magnitude by at most sP times the sum
        of these changes, because its derivative in each term of Y is at most sP, and largest at the end used here.
        """
        # U = 0 makes infinities and NaN, which are equal to nothing.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            share = self._shares
            scale = (multiples * float(self.unit))[:, None]
            exponent = np.cumsum(np.log(heads * 2.0**-bits) * -share, axis=1)
            unknown = np.cumsum(share / heads, axis=1) * _WIDENED
            reach = np.exp(exponent) * scale
            magnitude = reach - np.concatenate([scale, reach[:, :-1]], axis=1)
            error = (reach + 1) * (exponent + 1) * ((128 + 4 * self.cells) * 2.0**-52)
            high = np.floor(magnitude + error + 0.5)
            low = np.floor(magnitude - error - reach * unknown + 0.5)
            certain = low == high
        # Certain magnitudes are below 2^52, where the error alone reaches 1, and convert exactly.
        return np.where(certain, np.abs(high), 0).astype(np.int64), certain

    def second_pass(self, multiples: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
        """The same with two floats for a number.

        With t the sum of the 1/(tail + i − 1), Y errs by (t + (2 + d)Y)·ERROR, P by (t + 1 + (3 + d)Y)·ERROR of itself,
        and a difference of two by less than (8 + 2d)(1 + Y + t)·ERROR of sP.
        """
        share, unit = self._shares, Twofold.of(self.unit)
        scale = Twofold.of_integers(multiples[:, None]) * unit
        exponent = (-uniforms.lower.log() * self._exact_shares).running_sums()
        unknown = np.cumsum(share * uniforms.unknown, axis=1)
        reach = exponent.exp() * scale
        magnitude = reach - scale.beside(reach[:, :-1])
        error = (reach.high + 1) * (exponent.high + (1 + share.sum())) * ((16 + 4 * self.cells) * ERROR)
        return (magnitude + 0.5).whole_parts(below=error + reach.high * unknown, above=error)

    def _settled(self, multiples: Integers, heads: Integers, first_bits: int, randomness: Randomness) -> Integers:
        """The magnitudes of rows that the first pass left in doubt."""
        return settled_rows(
            heads,
            randomness,
            first_bits=first_bits,
            second_pass=lambda rows, uniforms: self.second_pass(multiples[rows], uniforms),
            bounds=lambda row: partial(self.magnitude_bounds, self.unit * int(multiples[row])),
        )

    def magnitude_bounds(self, scale: Fraction, heads: Sequence[int], bits: int) -> VectorBounds:
        """The least and the greatest whole number that each magnitude may round to, in many digits.

        Every magnitude rises with every −ln U, so its bounds are at the two extreme corners.
        """
        with many_digits(bits) as share:
            s, tail = exactly(scale), exactly(self.tail)
            logs = [minus_log(head, bits) for head in heads]
            ends: list[list[int]] = []
            for end, outward in ((0, -1), (1, 1)):
                exponent, before, found = exactly(Fraction(0)), s, list[int]()
                for i, log in enumerate(logs):
                    exponent += log[end] / (tail + i)
                    if exponent.is_infinite():  # U may be as small as it likes, and the magnitude as large
                        found.append(SATURATION)
                        continue
                    reach = s * exponent.exp()
                    margin = reach * (1 + exponent) * share
                    found.append(max(nearest(reach - before + outward * margin), 0))
                    before = reach
                ends.append(found)
            return list(zip(*ends, strict=True))

    def log_density(self, z: Floats, scale: Floats | float) -> Floats:
        """The logarithm of the density of Z at rows of d coordinates, before rounding."""
        d, tail = self.cells, float(self.tail)
        constant = float(np.log(tail + np.arange(d)).sum()) - d * np.log(2 * np.asarray(scale))
        density: Floats = constant - (tail + d) * np.log1p(np.abs(z).sum(axis=-1) / scale)
        return density

    @cached_property
    def _shares(self) -> Floats:
        return self._exact_shares.high

    @cached_property
    def _exact_shares(self) -> Twofold:
        return Twofold.row(1 / (self.tail + i) for i in range(self.cells))
