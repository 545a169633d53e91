"""Noise of density proportional to 1/(1 + z⁴), rounded to whole numbers, and drawn exactly by rejection."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.noise.quartic_draws import first_pass, resolved
from sfumato.noise.randomness import Randomness
from sfumato.noise.symmetric import FIRST_BITS, check_first_bits, check_multiples, chunks, signs

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
