"""Noise of density proportional to 1/(1 + z⁴), rounded to whole numbers, and drawn exactly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.passes import FIRST_BITS, Uniforms, check_first_bits, check_multiples, chunks, signs
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import ERROR, SATURATION, WORD, Twofold

# Drawing |Z| of density proportional to 1/(1 + z⁴) by comparing random bits with polynomials.
#
# Fold the half-line onto t in (0, 1] by |Z| = t or |Z| = 1/t. Then t has density proportional to 1/(1 + t⁴) from the
# inner part and t²/(1 + t⁴) from the outer one. A point (t, v), uniform on the unit interval times [0, 5/4], is
#
#     inner, |Z| = t,         when v·(1 + t⁴) < 1,
#     outer, |Z| = 1/t,       when 1 ≤ v·(1 + t⁴) < 1 + t²,
#     tried again otherwise;  (1 + t²)/(1 + t⁴) never exceeds (1 + √2)/2 < 5/4.
#
# About 89 of 100 points are kept. No decision needs more than whole numbers.

# Eight operations on numbers of at most 4, each within 2^−53 of its result, err by less than 2^−48 in all; a
# magnitude, made by three, by less than 2^−48 of itself.
_ERROR = 2.0**-48
# v(1 + t⁴) and 1 + t² move by less than 8 and 2 times the length of the interval of t and v.
_REACH = 16.0
REJECTED = -1
"""Stands for a magnitude where the point is to be tried again."""


def first_pass(*, scale: Floats, across: Integers, up: Integers, bits: int) -> tuple[Integers, Flags, Flags]:
    """Rounded magnitudes s·|Z|, which points were kept, and which of these answers no further bit could change.

    `across` and `up` hold the first bits of t and of v/(5/4) as whole numbers. s·t grows with t evenly; s/t falls, is
    convex, and falls most steeply at the lower end of the interval. What is not certain is given as 0 and not kept.
    """
    step = 2.0**-bits
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # t = 0 is infinitely far out, if outer
        t = across * step
        square = t * t
        level = up * (1.25 * step) * (square * square + 1)
        margin = _ERROR + _REACH * step
        inner = level < 1
        accepted = level < square + 1
        clear = (np.abs(level - 1) > margin) & (np.abs(level - 1 - square) > margin)
        magnitude = np.where(inner, scale * t, scale / t)
        error = (magnitude + 1) * _ERROR
        # 1.01 covers the rounding of the widths themselves.
        rise = np.where(inner, scale * (1.01 * step), 0.0)
        fall = np.where(inner, 0.0, magnitude / t * (1.01 * step))
        high = np.floor(magnitude + error + rise + 0.5)
        certain = clear & (~accepted | (np.floor(magnitude - error - fall + 0.5) == high))
    kept = accepted & certain
    return np.where(kept, high, 0).astype(np.int64), kept, certain


def second_pass(*, scale: Twofold, across: Uniforms, up: Uniforms) -> tuple[Integers, Flags]:
    """Rounded magnitudes, REJECTED where the point is to be tried again, and which of these answers are certain.

    The same with two floats for a number: eight operations on numbers of at most 4 err by less than 64·ERROR, a
    magnitude, made by four, by less than 8·ERROR of itself.
    """
    t = across.lower
    square = t * t
    level = up.lower * Twofold.of(Fraction(5, 4)) * (square * square + 1.0)
    from_inner, from_outer = (level - 1.0).high, (level - 1.0 - square).high
    margin = 64 * ERROR + _REACH * across.step
    clear = (np.abs(from_inner) > margin) & (np.abs(from_outer) > margin)
    inner, rejected = from_inner < 0, from_outer >= 0
    magnitude = (scale * t).where(inner, scale / t)
    error = (magnitude.high + 1) * (64 * ERROR)
    rise, fall = scale.high * across.step, magnitude.high * across.unknown
    found, certain = (magnitude + 0.5).whole_parts(
        below=error + np.where(inner, 0.0, fall), above=error + np.where(inner, rise, 0.0)
    )
    return np.where(rejected, REJECTED, found), clear & (rejected | certain)


def resolved(
    *, unit: Fraction, multiples: Integers, across: Integers, up: Integers, bits: int, randomness: Randomness
) -> Integers:
    """Rounded magnitudes of points that the first pass left in doubt; REJECTED where a point is to be tried again."""
    words = randomness.words(2 * len(across)).reshape(2, -1)
    with np.errstate(all="ignore"):  # t = 0 makes infinities and NaN, which are never certain
        found, certain = second_pass(
            scale=Twofold.of_integers(multiples) * Twofold.of(unit),
            across=Uniforms.of(across, words[0], first_bits=bits),
            up=Uniforms.of(up, words[1], first_bits=bits),
        )
    for i in np.flatnonzero(~certain):
        one = resolve(
            scale=unit * int(multiples[i]),
            across=int(across[i]) << WORD | int(words[0, i]),
            up=int(up[i]) << WORD | int(words[1, i]),
            bits=bits + WORD,
            randomness=randomness,
        )
        found[i] = REJECTED if one is None else one
    return found


def resolve(*, scale: Fraction, across: int, up: int, bits: int, randomness: Randomness) -> int | None:
    """One rounded magnitude, or None when the point is to be tried again, drawing words until it is certain."""
    while True:
        kind = point(across=across, up=up, bits=bits)
        if kind == "rejected":
            return None
        if kind is not None:
            low, high = magnitude_bounds(scale=scale, across=across, bits=bits, inner=kind == "inner")
            if low == high:
                return low
        further = randomness.words(2)
        across, up = (head << WORD | int(word) for head, word in zip((across, up), further, strict=True))
        bits += WORD


def point(*, across: int, up: int, bits: int) -> str | None:
    """Where the point lies, "inner", "outer" or "rejected", as far as its first bits tell; None when they do not."""
    one = 2**bits
    # v(1 + t⁴) and 1 + t², both in units of 1/(4·one⁵), at the lower and the upper ends of the intervals.
    least = 5 * up * (one**4 + across**4)
    most = 5 * (up + 1) * (one**4 + (across + 1) ** 4)
    if most <= 4 * one**5:
        return "inner"
    if least >= 4 * one**3 * (one**2 + (across + 1) ** 2):
        return "rejected"
    if least >= 4 * one**5 and most <= 4 * one**3 * (one**2 + across**2):
        return "outer"
    return None


def magnitude_bounds(*, scale: Fraction, across: int, bits: int, inner: bool) -> tuple[int, int]:
    """The least and the greatest integer that s·t, or s/t outside, may round to; exact."""
    if inner:
        low, high = (_rounded(scale * Fraction(end, 2**bits)) for end in (across, across + 1))
        return low, high
    low = _rounded(scale * Fraction(2**bits, across + 1))
    return low, SATURATION if across == 0 else _rounded(scale * Fraction(2**bits, across))


def _rounded(value: Fraction) -> int:
    return min((2 * value.numerator + value.denominator) // (2 * value.denominator), SATURATION)


Multiples = Integers | Floats

_BOTH_SIDES = 2 * np.sqrt(2) / np.pi  # density of |Z| at 0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_LARGE_SCALE = 16.0
_DIRECT_TERMS = 64


@dataclass(frozen=True, kw_only=True)
class Quartic:
    """Noise s·Z with Z of density √2/(π(1 + z⁴)), published as the nearest whole number J.

    The scale s = unit·multiple may differ from draw to draw by a whole multiple. E|Z| = 1/√2 and E[Z²] = 1; the fourth
    moment is infinite. `sample` draws J exactly. docs/methods/smooth-gamma.md has the proof.

    >>> noise = Quartic(unit=Fraction(8))
    >>> round(float(noise.expected_magnitude(np.array([1000]))[0] / 8000), 4)
    0.7071
    """

    unit: Fraction

    def __post_init__(self) -> None:
        # Within these bounds the error analysis of the first pass holds: nothing underflows.
        if not 2**-64 <= self.unit <= 2**64:
            raise ValueError(f"unit must be in [2^-64, 2^64]: {self}")

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One draw of J for every multiple; a magnitude beyond 2^62 is given as 2^62.

        A caller must cut the *sum* of count and J well inside 2^62, as with double Pareto noise. `first_bits` is for
        tests: fewer bits in the first pass change no probability.
        """
        check_first_bits(first_bits)
        check_multiples(multiples)
        noise = np.empty(len(multiples), dtype=np.int64)
        for part in chunks(len(multiples)):
            waiting = np.arange(part.start, part.stop)
            while len(waiting):
                waiting = self._attempt(waiting, multiples, noise, randomness, first_bits)
        return noise

    def log_density(self, z: Floats, multiples: Multiples) -> Floats:
        """The logarithm of the density of s·Z, before rounding."""
        s = self._scale(multiples)
        u = np.abs(z) / s
        # For large u the one is lost beside u⁴, and u⁴ itself may overflow.
        density: Floats = np.log(_BOTH_SIDES / (2 * s)) - np.logaddexp(0, 4 * np.log(np.maximum(u, 1e-60)))
        return density

    def log_mass(self, j: Integers, multiples: Multiples) -> Floats:
        """The logarithm of P(J = j), accurate also where the probability is tiny."""
        s = self._scale(multiples)
        magnitude = np.abs(j).astype(np.float64)
        inner, outer = np.maximum(magnitude - 0.5, 0) / s, (magnitude + 0.5) / s
        # The angle between 1/outer and 1/inner, without a difference of almost equal angles.
        width = np.arctan(np.where(magnitude == 0, 0.5, 1.0) / s / (1 + inner * outer))
        sides = np.where(magnitude == 0, 0.0, np.log(2))
        mass: Floats = np.log(_area(np.arctan(1 / outer), width)) - sides
        return mass

    def survival(self, magnitude: Integers, multiples: Multiples) -> Floats:
        """P(|J| ≥ magnitude)."""
        return _tail(np.maximum(magnitude - 0.5, 0) / self._scale(multiples))

    @staticmethod
    def exceeded(scales: Floats) -> Floats:
        """P(|Z| > z) in closed form: quick, and right to fifteen digits of one: far out `survival` knows more."""
        z, root = np.minimum(np.abs(scales), 1e6), np.sqrt(2)
        logs = np.log((z * z + root * z + 1) / (z * z - root * z + 1))
        angles = np.arctan(root * z + 1) + np.arctan(root * z - 1)
        found: Floats = np.maximum(1 - (logs / 2 + angles) / np.pi, 0.0)
        return found

    def expected_magnitude(self, multiples: Multiples) -> Floats:
        """E|J|, the mean absolute error of the published whole number.

        E|J| = Σ P(|sZ| ≥ j − ½) over j ≥ 1. By the corrections of the midpoint rule it is s/√2 less the density of |sZ|
        at 0 over 24 (the next correction vanishes, and the one after is below 10⁻⁹ for s ≥ 16); for smaller scales
        the first terms are added directly, and the others by the same rule from there on.
        """
        s, where = np.unique(self._scale(multiples), return_inverse=True)
        mean: Floats = s / np.sqrt(2) - _BOTH_SIDES / (24 * s)
        small = s < _LARGE_SCALE
        mean[small] = _rounded_mean(s[small])
        ordered: Floats = mean[where]
        return ordered

    def quantile(self, probability: float) -> float:
        """The least value, to the last digits, that |Z| stays below with at least this probability."""
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        low, high = 0.0, 1.0
        while _tail(np.array([high]))[0] > 1 - probability:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _tail(np.array([middle]))[0] > 1 - probability else (low, middle)
        return high

    def _attempt(
        self, waiting: Integers, multiples: Integers, noise: Integers, randomness: Randomness, bits: int
    ) -> Integers:
        """Try once for every draw that waits, and return those that must try again."""
        words = randomness.words(2 * len(waiting))
        shift = np.uint64(64 - bits)
        place, height = words[: len(waiting)], words[len(waiting) :]
        across, up = ((half >> shift).view(np.int64) for half in (place, height))
        scale = self._scale(multiples[waiting])
        magnitudes, accepted, certain = first_pass(scale=scale, across=across, up=up, bits=bits)
        if len(doubtful := np.flatnonzero(~certain)):
            found = resolved(
                unit=self.unit,
                multiples=multiples[waiting[doubtful]],
                across=across[doubtful],
                up=up[doubtful],
                bits=bits,
                randomness=randomness,
            )
            accepted[doubtful] = found >= 0
            magnitudes[doubtful] = np.maximum(found, 0)
        noise[waiting[accepted]] = (magnitudes * signs(place))[accepted]
        return waiting[~accepted]

    def _scale(self, multiples: Multiples) -> Floats:
        return np.asarray(multiples, dtype=np.float64) * float(self.unit)


def _area(angle: Floats, width: Floats) -> Floats:
    """P(cot(angle + width) ≤ |Z| ≤ cot(angle)), by Gauss's rule.

    With |z| = cot θ the density is sin²θ/(sin⁴θ + cos⁴θ), analytic about the whole of [0, π/2]: 64 nodes give it to the
    last digits, and nothing is subtracted.
    """
    theta = angle[..., None] + width[..., None] * (_NODES + 1) / 2
    sine, cosine = np.sin(theta) ** 2, np.cos(theta) ** 2
    area: Floats = _BOTH_SIDES * width / 2 * ((sine / (sine**2 + cosine**2)) @ _WEIGHTS)
    return area


def _tail(z: Floats) -> Floats:
    """P(|Z| ≥ z)."""
    angle = np.arctan2(1.0, z)
    return _area(np.zeros_like(angle), angle)


def _rounded_mean(s: Floats) -> Floats:
    mean = np.zeros(len(s))
    for j in range(1, _DIRECT_TERMS + 1):
        mean += _tail((j - 0.5) / s)
    z = _DIRECT_TERMS / s
    # E(|Z| − z)⁺: the integral of z/(1 + z⁴) has a closed form.
    beyond = _BOTH_SIDES / 2 * np.arctan2(1, z**2) - z * _tail(z)
    density = _BOTH_SIDES / (s * (1 + z**4))
    total: Floats = mean + s * beyond - density / 24
    return total
