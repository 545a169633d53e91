"""Double Pareto noise: symmetric, heavy-tailed, rounded to whole numbers, and drawn exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.first_pass import first_pass
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import refine

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Multiples = Integers | Floats

_FIRST_BITS = 53  # of each word, as many as a float64 holds exactly; the word's last bit is the sign
_CHUNK = 1 << 14  # draws at a time: the working arrays stay in the processor's cache
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

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = _FIRST_BITS) -> Integers:
        """One draw of J for every multiple; a magnitude beyond 2^62 is given as 2^62.

        A caller that adds J to a count must cut the *sum* at a limit well inside 2^62, so that the saturation
        here never shows: cutting the sum is post-processing, cutting the noise alone would not be.
        `first_bits` is for tests: fewer bits of U in the first pass send more draws to the refining loop and
        change no probability.
        """
        if not 1 <= first_bits <= _FIRST_BITS:
            raise ValueError(f"first_bits must be between 1 and {_FIRST_BITS}, not {first_bits}")
        if len(multiples) and int(multiples.min()) < 1:
            raise ValueError("every multiple must be a positive whole number")
        noise = np.empty(len(multiples), dtype=np.int64)
        for part in _chunks(len(multiples)):
            words = randomness.words(part.stop - part.start)
            heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
            magnitudes, certain = first_pass(
                tail=self.tail, unit=self.unit, multiples=multiples[part], heads=heads, bits=first_bits
            )
            for i in np.flatnonzero(~certain):
                magnitudes[i] = refine(
                    tail=self.tail,
                    scale=self.unit * int(multiples[part][i]),
                    numerator=int(heads[i]),
                    bits=first_bits,
                    randomness=randomness,
                )
            signs = 1 - ((words & np.uint64(1)).view(np.int64) << 1)
            np.multiply(magnitudes, signs, out=noise[part])
        return noise

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


def _chunks(n: int) -> Iterator[slice]:
    for start in range(0, n, _CHUNK):
        yield slice(start, min(start + _CHUNK, n))
