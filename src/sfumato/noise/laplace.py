"""Laplace noise rounded to whole numbers, and drawn exactly."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import SATURATION, digits_for, precise, saturated, until_certain
from sfumato.noise.second_pass import Uniforms
from sfumato.noise.symmetric import FIRST_BITS, check_multiples, draw
from sfumato.noise.twofold import ERROR, Twofold

Multiples = Integers | Floats

# The error of |Z| = −s·ln U as a share of |Z| + 1: 20 units of 2^−52 for `log` (NumPy accepts no more than 4), less
# than 4 for the scale, the product and the sums before rounding; 64 units are taken.
_ERROR = 2.0**-46
# The interval's width is itself computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30
_HALF = Decimal("0.5")


@dataclass(frozen=True, kw_only=True)
class RoundedLaplace:
    """Noise Z of density exp(−|z|/s)/(2s), published as the nearest whole number J.

    The scale s = unit·multiple may differ from draw to draw by a whole multiple. `sample` draws J with exactly
    P(|J| ≥ j) = exp(−(j − ½)/s). docs/methods/smooth-laplace.md has the proof.

    >>> noise = RoundedLaplace(unit=Fraction(1, 2))
    >>> round(float(noise.expected_magnitude(np.array([4]))[0]), 3)       # 1/(2·sinh(1/(2s)))
    1.979
    """

    unit: Fraction

    def __post_init__(self) -> None:
        # Within these bounds the error analysis of the first pass holds: nothing underflows.
        if not 2**-64 <= self.unit <= 2**64:
            raise ValueError(f"unit must be in [2^-64, 2^64]: {self}")

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One draw of J for every multiple; a magnitude beyond 2^62 is given as 2^62.

        A caller must cut the *sum* of count and J well inside 2^62, as with double Pareto noise. `first_bits` is for
        tests: fewer bits of U in the first pass change no probability.
        """
        check_multiples(multiples)

        def first(part: slice, heads: Integers) -> tuple[Integers, NDArray[np.bool_]]:
            return self.first_pass(multiples[part], heads, first_bits)

        def second(places: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
            return self.second_pass(multiples[places], uniforms)

        def refined(i: int, known: int, bits: int) -> int:
            scale = self.unit * int(multiples[i])
            return until_certain(
                lambda numerator, bits: magnitude_bounds(scale=scale, numerator=numerator, bits=bits),
                numerator=known,
                bits=bits,
                randomness=randomness,
            )

        return draw(
            len(multiples),
            randomness,
            first_bits=first_bits,
            first_pass=first,
            second_pass=second,
            refine=refined,
        )

    def first_pass(self, multiples: Integers, heads: Integers, bits: int) -> tuple[Integers, NDArray[np.bool_]]:
        """The rounded magnitudes |Z|, and which of them no further bit of U could change.

        |Z| falls with U and is convex in it: over [h, h+1]/2^bits it is at most its value at h, and below that by at
        most the length of the interval times the slope s/U there.
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # U = 0 is infinitely far out, hence never certain
            uniform = heads * 2.0**-bits
            scale = multiples * float(self.unit)
            magnitude = np.log(uniform) * -scale
            error = (magnitude + 1) * _ERROR
            width = scale / uniform * (_WIDENED * 2.0**-bits)
            high = np.floor(magnitude + error + 0.5)
            low = np.floor(magnitude - error - width + 0.5)
            certain = low == high
        return np.where(certain, high, 0).astype(np.int64), certain

    def second_pass(self, multiples: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
        """Again with two floats for a number: ln U errs by (1 + |ln U|)·ERROR, so |Z| by less than 4(|Z| + s)·ERROR."""
        scale = Twofold.of_integers(multiples) * Twofold.of(self.unit)
        magnitude = -uniforms.lower.log() * scale
        error = (magnitude.high + scale.high + 1) * (16 * ERROR)
        return (magnitude + 0.5).whole_parts(below=error + scale.high * uniforms.unknown, above=error)

    def log_density(self, z: Floats, multiples: Multiples) -> Floats:
        """The logarithm of the density of Z, before rounding."""
        s = self._scale(multiples)
        density: Floats = -np.abs(z) / s - np.log(2 * s)
        return density

    def log_mass(self, j: Integers, multiples: Multiples) -> Floats:
        """The logarithm of P(J = j)."""
        s = self._scale(multiples)
        magnitude = np.abs(j).astype(np.float64)
        inner = np.log(-np.expm1(-1 / s)) - np.log(2) - (magnitude - 0.5) / s
        mass: Floats = np.where(magnitude == 0, np.log(-np.expm1(-0.5 / s)), inner)
        return mass

    def survival(self, magnitude: Integers, multiples: Multiples) -> Floats:
        """P(|J| ≥ magnitude)."""
        probability: Floats = np.exp(-np.maximum(magnitude - 0.5, 0) / self._scale(multiples))
        return probability

    def expected_magnitude(self, multiples: Multiples) -> Floats:
        """E|J|, the mean absolute error of a published number: Σ P(|J| ≥ j) = e^(−1/(2s))/(1 − e^(−1/s))."""
        s = self._scale(multiples)
        mean: Floats = np.exp(-0.5 / s) / -np.expm1(-1 / s)
        return mean

    def quantile(self, probability: float) -> float:
        """The value that |Z|/s stays below with this probability."""
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        return float(-np.log1p(-probability))

    def _scale(self, multiples: Multiples) -> Floats:
        return np.asarray(multiples, dtype=np.float64) * float(self.unit)


def magnitude_bounds(*, scale: Fraction, numerator: int, bits: int) -> tuple[int, int]:
    """The least and the greatest integer that |Z| may round to when U is known to its first `bits` bits.

    One operation errs by at most η = 10^(1−digits) of its result. U errs by η relative, so ln U by η absolute and η
    relative, and |Z| by less than s·η + 4η|Z|, well below the 10η(|Z| + s) that the ends are moved outward by.
    """
    digits = digits_for(bits)
    with localcontext(precise(digits)):
        low, margin = _magnitude(scale, Fraction(numerator + 1, 2**bits), digits)
        least = max(saturated(low - margin + _HALF), 0)
        if numerator == 0:  # U may be as small as it likes, and |Z| as large
            return least, SATURATION
        high, margin = _magnitude(scale, Fraction(numerator, 2**bits), digits)
        return least, saturated(high + margin + _HALF)


def _magnitude(scale: Fraction, uniform: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    s, u = (Decimal(f.numerator) / Decimal(f.denominator) for f in (scale, uniform))
    magnitude = -s * u.ln()
    return magnitude, (magnitude + s) * Decimal(10) ** (2 - digits)
