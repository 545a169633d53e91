"""Double Pareto noise: symmetric, heavy-tailed, rounded to whole numbers, and drawn exactly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.first_pass import first_pass
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import refine
from sfumato.noise.second_pass import Uniforms
from sfumato.noise.symmetric import FIRST_BITS, check_multiples, draw
from sfumato.noise.twofold import ERROR, Twofold

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
