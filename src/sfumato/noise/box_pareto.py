"""Noise in the hull of a box and its negative: heavy-tailed, with a scale of its own in every cell."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import accumulate
from math import fsum, inf, lgamma, log
from operator import mul

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.passes import (
    FIRST_BITS,
    MOST_CELLS,
    Uniforms,
    block_chunks,
    choices,
    heads_of,
    settled_rows,
    word_blocks,
)
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import ERROR, Twofold, VectorBounds, exactly, many_digits, minus_log, nearest

# The hull of a box and its negative: its norm, and points drawn uniformly from it.


def hull_norm(z: Floats) -> Floats:
    """‖z‖ = max(z⁺) + max(z⁻) over the last axis: the least λ ≥ 0 with z in λ times the hull of [0,1]^d and [−1,0]^d.

    >>> hull_norm(np.array([[3.0, 1.0], [3.0, -1.0]])).tolist()
    [3.0, 4.0]
    """
    norm: Floats = np.maximum(z.max(axis=-1), 0) - np.minimum(z.min(axis=-1), 0)
    return norm


@dataclass(frozen=True, kw_only=True)
class HullPoints:
    """Points of the hull known to the first bits of their uniforms.

    One of d + 1 numbers V_0 … V_d, chosen at random, is zero and the others are uniform on (0, 1). The d differences
    V_c − V_0 are a point drawn uniformly from the hull of [0,1]^d and [−1,0]^d; docs/methods/vector.md has the proof.
    """

    heads: Integers
    zero: Integers
    bits: int

    @classmethod
    def draw(cls, rows: int, cells: int, randomness: Randomness, *, bits: int) -> "HullPoints":
        """As many points as rows, in as many dimensions as cells."""
        heads = heads_of(word_blocks(rows, cells + 1, randomness), bits)
        return cls(heads=heads, zero=choices(rows, cells + 1, randomness), bits=bits)

    @property
    def coordinates(self) -> Floats:
        """The points at the lower ends of what is known: exact, and within 2^−bits of the points to be."""
        uniforms = self.heads * 2.0**-self.bits
        np.put_along_axis(uniforms, self.zero[:, None], 0.0, axis=1)
        return uniforms[:, 1:] - uniforms[:, :1]


def exact_coordinates(uniforms: Twofold, zero: Integers) -> Twofold:
    """The coordinates of points at the lower ends of their uniforms, with two floats for a number."""
    ends = Twofold(uniforms.high.copy(), uniforms.low.copy())
    for part in (ends.high, ends.low):
        np.put_along_axis(part, zero[:, None], 0.0, axis=1)
    return ends[:, 1:] - ends[:, :1]


def coordinate_bounds(heads: Sequence[int], zero: int, bits: int) -> list[tuple[Decimal, Decimal]]:
    """The least and the greatest value of every coordinate of one point, each correct to the digits in force."""
    # Whole numbers are subtracted before the one division, so that the signs of the bounds are exact.
    ends = [(0, 0) if i == zero else (head, head + 1) for i, head in enumerate(heads)]
    (start_low, start_high), *others = ends
    whole = Decimal(1 << bits)
    return [(Decimal(low - start_high) / whole, Decimal(high - start_low) / whole) for low, high in others]


# Tails of the form e^(−x)·polynomial(x): how far one cell, or the sum of a block, strays from zero.

# Quantiles are moved outward by this share, more than floating point can err: a term is made of logarithms of up to
# 10^3 where there are at most 128 of them, and of up to 10^5 where there are 4,096.
_OUTWARD, _OUTWARD_IF_LONG = 1 + 1e-12, 1 + 1e-9
_SMALLEST = 2.0**-1000  # a float that still has all its digits
_AT_A_TIME = 1 << 18  # terms of long series


@dataclass(frozen=True, kw_only=True)
class Tail:
    """A function T(x) = e^(−x)·Σ c_j x^j of x ≥ 0 with every c_j ≥ 0, given by the logarithms of the c_j.

    Such is the probability that a magnitude exceeds x. Divided by an independent gamma variable G of some shape, the
    magnitude exceeds x with probability E[T(xG)], which has a closed form too.

    >>> laplace = Tail(logs=(0.0,))
    >>> round(float(laplace.mixed(np.array(1.0), 3.0)), 9)  # (1 + x)^−3
    0.125
    """

    logs: tuple[float, ...]

    def at(self, x: Floats) -> Floats:
        """T(x)."""
        return _series(self.logs, np.asarray(x, dtype=np.float64), -np.asarray(x, dtype=np.float64))

    def mixed(self, x: Floats, shape: float) -> Floats:
        """E[T(xG)] with G gamma of shape m: (1+x)^(−m)·Σ c_j·m(m+1)…(m+j−1)·(x/(1+x))^j."""
        x = np.asarray(x, dtype=np.float64)
        if self._long:
            # lgamma(m+j) − lgamma(m) would lose what a large m and a small j have in common.
            steps = np.log(shape + np.arange(len(self.logs) - 1))[None, :]
            rising = Twofold(steps, np.zeros_like(steps)).running_sums().high[0]
            return _series(np.array(self.logs) + np.concatenate([[0.0], rising]), x / (1 + x), -shape * np.log1p(x))
        logs = [c + lgamma(shape + j) - lgamma(shape) for j, c in enumerate(self.logs)]
        return _series(logs, x / (1 + x), -shape * np.log1p(x))

    def integral(self, rate: float = 1.0) -> "Tail":
        """The tail I with I(rate·x) = ∫ T(u)·e^((1−rate)·u) du from x on; with rate 1 the plain integral of T."""
        if self._long:
            factorials = np.array([lgamma(j + 1) for j in range(len(self.logs))])
            terms = np.array(self.logs) + factorials - np.arange(1, len(self.logs) + 1) * log(rate)
            return Tail(logs=tuple((np.logaddexp.accumulate(terms[::-1])[::-1] - factorials).tolist()))
        found = [
            _log_sum(c + lgamma(j + 1) - lgamma(i + 1) - (j + 1) * log(rate) for j, c in enumerate(self.logs) if j >= i)
            for i in range(len(self.logs))
        ]
        return Tail(logs=tuple(found))

    def quantile(self, probability: float) -> float:
        """A value exceeded with a probability of at most 1 − probability, and hardly less."""
        return _quantile(self.at, probability, self._outward)

    def mixed_quantile(self, probability: float, shape: float) -> float:
        """The same of the magnitude divided by a gamma variable of this shape."""
        return _quantile(lambda x: self.mixed(x, shape), probability, self._outward)

    @property
    def _long(self) -> bool:
        """Whether the series is of a block that only simplex noise is made for."""
        return len(self.logs) > MOST_CELLS

    @property
    def _outward(self) -> float:
        return _OUTWARD_IF_LONG if self._long else _OUTWARD


@cache
def hull_tail(cells: int) -> Tail:
    """P(|R·W_c| > x) with R gamma of shape d+1, and W uniform in the hull of a box and its negative.

    c_j = (1 − j/d)(1 − j/(d+1))/j! for j < d; docs/methods/vector.md derives it.
    """
    d = cells
    return Tail(logs=tuple(log((1 - j / d) * (1 - j / (d + 1))) - lgamma(j + 1) for j in range(d)))


@cache
def sum_tail(cells: int) -> Tail:
    """P(L > x) with L the sum of d independent Laplace variables of scale 1: one side only.

    L is the difference of two gamma variables of shape d. The first exceeds x plus the second if fewer than d points
    of a Poisson process fall before that: j within x, and n within the second, which has as many with probability
    C(d+n−1, n)·2^(−d−n). So P(L > x) is e^(−x)·Σ x^j/j!·C(d+n−1, n)·2^(−d−n) over j + n < d.
    """
    d = cells
    whole = 2 ** (2 * d - 1)
    ways = accumulate(range(1, d), lambda before, n: before * (d + n - 1) // n, initial=1)  # C(d+n−1, n)
    within = list(accumulate(way << (d - 1 - n) for n, way in enumerate(ways)))
    factorials = accumulate(range(1, d), mul, initial=1)
    return Tail(logs=tuple(_log_ratio(c, whole * f) for c, f in zip(reversed(within), factorials, strict=True)))


def _log_ratio(numerator: int, denominator: int) -> float:
    """The natural logarithm of a ratio of whole numbers, also where it is too small for a float."""
    ratio = numerator / denominator
    return log(ratio) if ratio > _SMALLEST else log(numerator) - log(denominator)


def _series(logs: Sequence[float] | Floats, x: Floats, log_factor: Floats) -> Floats:
    """e^log_factor·Σ e^logs_j·x^j, term by term in logarithms so that nothing overflows."""
    with np.errstate(divide="ignore"):
        log_x = np.log(x)
    if len(logs) > MOST_CELLS:
        return _long_series(np.asarray(logs), log_x.ravel(), log_factor.ravel()).reshape(x.shape)
    total = np.zeros(x.shape)
    for j, c in enumerate(logs):
        total += np.exp(c + log_factor + (j * log_x if j else 0.0))
    return total


def _long_series(logs: Floats, log_x: Floats, log_factor: Floats) -> Floats:
    """The same for many terms, of as many points at a time as fit into little memory."""
    powers, step = np.arange(1, len(logs)), max(_AT_A_TIME // len(logs), 1)
    total: Floats = np.exp(logs[0] + log_factor)
    for start in range(0, len(log_x), step):
        part = slice(start, start + step)
        terms = logs[1:] + log_factor[part, None] + powers * log_x[part, None]
        total[part] += np.exp(terms).sum(axis=1)
    return total


def _log_sum(logs: Iterable[float]) -> float:
    logs = list(logs)
    top = max(logs)
    return top + log(fsum(np.exp(np.array(logs) - top)))


def _quantile(tail: Callable[[Floats], Floats], probability: float, outward: float) -> float:
    if not 0 <= probability < 1:
        raise ValueError(f"probability must be in [0, 1), not {probability}")
    beyond = 1 - probability
    if tail(np.array(0.0)) <= beyond:
        return 0.0
    low, high = 0.0, 1.0
    while tail(np.array(high)) > beyond:
        low, high = high, 2 * high
        if high == inf:
            return inf
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if tail(np.array(middle)) <= beyond else (middle, high)
    return high * outward


# Box Pareto noise: heavy-tailed in the hull norm, with a scale of its own in every cell of a block.

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
        for part in block_chunks(len(multiples), self.cells):
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

        def bounds(row: int) -> Callable[[Sequence[int], int], VectorBounds]:
            scales = [self.unit * multiple for multiple in multiples[row].tolist()]
            return partial(self.noise_bounds, scales, int(zero[row]))

        return settled_rows(
            heads,
            randomness,
            first_bits=first_bits,
            second_pass=lambda rows, uniforms: self.second_pass(multiples[rows], zero[rows], uniforms),
            bounds=bounds,
        )

    def noise_bounds(self, scales: Sequence[Fraction], zero: int, heads: Sequence[int], bits: int) -> VectorBounds:
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
