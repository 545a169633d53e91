"""Laplace noise: rounded to whole numbers, or as a random factor e^L; drawn exactly."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import floor

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.passes import FIRST_BITS, Uniforms, check_first_bits, check_multiples, chunks, draw, settled
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import ERROR, SATURATION, Twofold, digits_for, precise, saturated, until_certain

# Laplace noise rounded to whole numbers, and drawn exactly.

Multiples = Integers | Floats

# The error of |Z| = −s·ln U as a share of |Z| + 1: 20 units of 2^−52 for `log` (NumPy accepts no more than 4), less
# than 4 for the scale, the product and the sums before rounding; 64 units are taken.
# The error of A·U^(∓λ) as a share of itself and (1 + y), where y = −λ·ln U. With `log` and `exp` within 20 units of
# 2^−52 (NumPy accepts no more than 4), y is within 22 units of itself and e^(±y) within 22y + 20; A and the product add
# less than 4, the offset and the sums before rounding less than 4 of what is added. 64 units are taken there too.
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


# Log-Laplace noise: a factor e^L with L from the Laplace distribution, the product rounded and drawn exactly.

_DIRECT_TERMS = 64


@dataclass(frozen=True, kw_only=True)
class LogLaplace:
    """X = A·e^L − offset with L of density exp(−|l|/λ)/(2λ), published as the nearest whole number V.

    The median A − offset has A = unit·multiple, which may differ from draw to draw by a whole multiple. All parameters
    are exact fractions, and `sample` draws V with exactly the distribution of ⌊X + ½⌋. docs/methods/log-laplace.md has
    the proof.

    >>> noise = LogLaplace(unit=Fraction(1), spread=Fraction(1, 10), offset=Fraction(10))
    >>> round(float(noise.survival(np.array([3]), np.array([10]))[0]), 6)       # ½·((3 − ½ + 10)/10)^(−10)
    0.053687
    """

    unit: Fraction
    spread: Fraction
    """λ, the scale of the Laplace distribution; below 1, or the mean would be infinite."""
    offset: Fraction

    def __post_init__(self) -> None:
        # Within these bounds the error analysis of the first pass holds: nothing underflows, and no value is so
        # low that only one of the passes would cut it.
        if not (2**-64 <= self.unit <= 2**64 and 2**-64 <= self.spread < 1 and 0 <= self.offset <= SATURATION):
            raise ValueError(f"unit must be in [2^-64, 2^64], spread in [2^-64, 1) and offset in [0, 2^62]: {self}")

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One draw of V for every multiple; a value beyond 2^62 is given as 2^62.

        A caller must cut V at a limit well inside 2^62, which is post-processing. `first_bits` is for tests: fewer bits
        of U in the first pass change no probability.
        """
        check_first_bits(first_bits)
        check_multiples(multiples)
        drawn = np.empty(len(multiples), dtype=np.int64)
        for part in chunks(len(multiples)):
            words = randomness.words(part.stop - part.start)
            heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
            upward = (words & np.uint64(1)) == 0
            values, certain = self.first_pass(multiples[part], heads, upward, first_bits)
            if len(doubtful := np.flatnonzero(~certain)):
                values[doubtful] = self._settled(
                    multiples[part][doubtful], heads[doubtful], upward[doubtful], first_bits, randomness
                )
            drawn[part] = values
        return drawn

    def first_pass(
        self, multiples: Integers, heads: Integers, upward: NDArray[np.bool_], bits: int
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The rounded values of X, and which of them no further bit of U could change; the others are given as 0.

        With L ≥ 0 (upward) A·U^(−λ) falls with U and is convex, otherwise A·U^λ grows and is concave, λ being below 1.
        Either way it moves by at most the length of the interval times the slope λ·(X + offset)/U at its lower end.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # U = 0 is never certain
            uniform = heads * 2.0**-bits
            y = np.log(uniform) * -float(self.spread)
            product = np.exp(np.where(upward, y, -y)) * (multiples * float(self.unit))
            error = (product + float(self.offset) + 1) * (y + 1) * _ERROR
            width = product / uniform * (_WIDENED * 2.0**-bits * float(self.spread))
            value = product - float(self.offset)
            high = np.floor(value + error + np.where(upward, 0.0, width) + 0.5)
            low = np.floor(value - error - np.where(upward, width, 0.0) + 0.5)
            certain = low == high
        return np.where(certain, high, 0).astype(np.int64), certain

    def second_pass(
        self, multiples: Integers, upward: NDArray[np.bool_], uniforms: Uniforms
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """The same with two floats for a number.

        y errs by (λ + 2y)·ERROR, e^(±y) by (2 + 3y)·ERROR of itself, and with the products and the sum X by less than
        8(X + 2·offset)(1 + y)·ERROR.
        """
        y = -uniforms.lower.log() * Twofold.of(self.spread)
        product = y.where(upward, -y).exp() * (Twofold.of_integers(multiples) * Twofold.of(self.unit))
        error = (product.high + float(self.offset) + 1) * (y.high + 1) * (16 * ERROR)
        width = product.high * uniforms.unknown * float(self.spread)
        value = product - Twofold.of(self.offset) + 0.5
        return value.whole_parts(below=error + np.where(upward, width, 0.0), above=error + np.where(upward, 0.0, width))

    def value_bounds(self, median: Fraction, upward: bool, numerator: int, bits: int) -> tuple[int, int]:
        """The least and the greatest integer that X may round to when U is known to its first `bits` bits.

        One operation errs by at most η = 10^(1−digits) of its result, so y by η(λ + 4y), e^(±y) by η(λ + 4y + 1) of
        itself and the product by η(4y + 5) of itself; ends are moved outward by 10η(product + offset + 1)(1 + y).
        """
        digits = digits_for(bits)
        with localcontext(precise(digits)):
            near, margin = self._value(median, upward, Fraction(numerator + 1, 2**bits), digits)
            if numerator == 0:  # U may be as small as it likes: X as large, or as close to −offset
                if upward:
                    return saturated(near - margin), SATURATION
                return floor(-self.offset + Fraction(1, 2)), saturated(near + margin)
            far, more = self._value(median, upward, Fraction(numerator, 2**bits), digits)
            low, high = (near - margin, far + more) if upward else (far - more, near + margin)
            return max(saturated(low), floor(-self.offset + Fraction(1, 2))), saturated(high)

    def survival(self, value: Integers, multiples: Integers) -> Floats:
        """P(V ≥ value)."""
        return self._above(value.astype(np.float64) - 0.5, self._medians(multiples))

    def log_mass(self, value: Integers, multiples: Integers) -> Floats:
        """The logarithm of P(V = value); −∞ where X cannot come so low."""
        w = (value + float(self.offset)) / self._medians(multiples)
        half = 0.5 / self._medians(multiples)
        power = 1 / float(self.spread)
        below, above = np.maximum(w - half, 0), np.maximum(w + half, 0)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # in the cases that are not chosen
            # On one side of the median: the probability beyond the nearer end, times the share that ends in between.
            high = -power * np.log(below) + np.log(-np.expm1(-power * np.log1p(2 * half / below))) - np.log(2)
            share = np.log1p(-np.minimum(2 * half / above, 1))
            low = power * np.log(above) + np.log(-np.expm1(power * share)) - np.log(2)
            across = np.log(1 - 0.5 * above**-power - 0.5 * below**power)
        mass: Floats = np.where(below >= 1, high, np.where(above <= 1, low, across))
        return np.where(above <= 0, -np.inf, mass)

    def expected_deviation(self, true: Integers, multiples: Integers) -> tuple[Floats, Floats]:
        """E[(V − true)⁺] and E[(true − V)⁺]: their sum is the mean absolute error, their difference the bias.

        Both are sums of tail probabilities of X at half-integers: the first terms directly, the others by the integral
        with the first correction of the midpoint rule.
        """
        medians, n = self._medians(multiples), true.astype(np.float64)
        over, under = np.zeros(len(n)), np.zeros(len(n))
        for j in range(_DIRECT_TERMS):
            over += self._above(n + j + 0.5, medians)
            under += 1 - self._above(n - j - 0.5, medians)
        over += self._integral_above(n + _DIRECT_TERMS, medians)
        under += self._integral_below(n - _DIRECT_TERMS, medians)
        return over, under

    def quantile(self, probability: float) -> float:
        """The value that |L| stays below with this probability."""
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        return float(-np.log1p(-probability)) * float(self.spread)

    def _settled(
        self, multiples: Integers, heads: Integers, upward: NDArray[np.bool_], first_bits: int, randomness: Randomness
    ) -> Integers:
        """The values of draws that the first pass left in doubt."""

        def second(places: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
            return self.second_pass(multiples[places], upward[places], uniforms)

        def refined(i: int, known: int, bits: int) -> int:
            bounds = partial(self.value_bounds, self.unit * int(multiples[i]), bool(upward[i]))
            return until_certain(bounds, numerator=known, bits=bits, randomness=randomness)

        return settled(heads, randomness, first_bits=first_bits, second_pass=second, refine=refined)

    def _value(self, median: Fraction, upward: bool, uniform: Fraction, digits: int) -> tuple[Decimal, Decimal]:
        """X + ½ at one U to many digits, with a bound of its error."""
        a, spread, offset, u = (
            Decimal(f.numerator) / Decimal(f.denominator) for f in (median, self.spread, self.offset, uniform)
        )
        y = -spread * u.ln()
        product = a * (y if upward else -y).exp()
        return product - offset + Decimal("0.5"), (product + offset + 1) * (1 + y) * Decimal(10) ** (2 - digits)

    def _above(self, x: Floats, medians: Floats) -> Floats:
        """P(X ≥ x)."""
        w = np.maximum((x + float(self.offset)) / medians, 0)
        power = 1 / float(self.spread)
        probability: Floats = np.where(w >= 1, 0.5 * np.maximum(w, 1) ** -power, 1 - 0.5 * np.minimum(w, 1) ** power)
        return probability

    def _integral_above(self, x: Floats, medians: Floats) -> Floats:
        """∫ P(X ≥ t) dt from x on, less the density at x over 24."""
        w, power = (x + float(self.offset)) / medians, 1 / float(self.spread)
        beyond = 0.5 * np.maximum(w, 1) ** (1 - power) / (power - 1)
        inside = np.minimum(w, 1)
        between = (1 - inside) - 0.5 * (1 - inside ** (power + 1)) / (power + 1)
        total: Floats = medians * (beyond + between) - self._density(w, medians) / 24
        return total

    def _integral_below(self, x: Floats, medians: Floats) -> Floats:
        """∫ P(X < t) dt up to x, less the density at x over 24."""
        w, power = np.maximum((x + float(self.offset)) / medians, 0), 1 / float(self.spread)
        beyond = 0.5 * np.minimum(w, 1) ** (power + 1) / (power + 1)
        outside = np.maximum(w, 1)
        between = (outside - 1) - 0.5 * (1 - outside ** (1 - power)) / (power - 1)
        total: Floats = medians * (beyond + between) - self._density(w, medians) / 24
        return total

    def _density(self, w: Floats, medians: Floats) -> Floats:
        power = 1 / float(self.spread)
        with np.errstate(divide="ignore"):
            log = np.where(w >= 1, -(power + 1) * np.log(w), (power - 1) * np.log(np.maximum(w, 0)))
        density: Floats = 0.5 * power / medians * np.exp(log)
        return density

    def _medians(self, multiples: Integers) -> Floats:
        return np.asarray(multiples, dtype=np.float64) * float(self.unit)
