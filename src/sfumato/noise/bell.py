"""Bell noise for blocks of cells: the density falls ever faster in the middle, and as a power far out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lgamma

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.box_pareto import Tail, sum_tail
from sfumato.noise.passes import (
    FIRST_BITS,
    MOST_SIMPLEX_CELLS,
    block_chunks,
    check_multiples,
    heads_of,
    settled_rows,
    signs,
    word_blocks,
)
from sfumato.noise.radial import Piece, Radii
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import VectorBounds, exactly, many_digits, nearest

_OUTWARD = 1 + 1e-9  # of quantiles: more than the quadrature errs by
_DIRECT_TERMS = 64
_POINTS = 1_500
_MANY = 512


def bell_pieces(*, inner: Fraction, outer: Fraction, steepest: Fraction | None = None) -> tuple[Piece, ...]:
    """h whose logarithm falls by the least of inner/(1−w), `steepest` and outer/(1+w) at every w.

    >>> [piece.bend for piece in bell_pieces(inner=Fraction(13), outer=Fraction(29))]
    [-1, 1]
    """
    meet = (outer - inner) / (outer + inner)
    if steepest is None or steepest >= inner / (1 - meet):
        return (
            Piece(bend=-1, power=inner, low=Fraction(0), high=meet),
            Piece(bend=1, power=outer, low=meet, high=None),
        )
    first, last = 1 - inner / steepest, outer / steepest - 1
    return (
        Piece(bend=-1, power=inner, low=Fraction(0), high=first),
        Piece(bend=0, power=steepest, low=first, high=last),
        Piece(bend=1, power=outer, low=last, high=None),
    )


@dataclass(frozen=True, kw_only=True)
class OneCell:
    """The noise of one cell by itself in units of its scale, from the law of radii."""

    radii: Radii
    tail: Tail
    """What the magnitude of the cell would exceed if radii had a gamma distribution."""

    def survival(self, magnitude: Floats) -> Floats:
        """P(|Z| > magnitude); of many magnitudes by interpolation, which errs by a few millionths."""
        if np.size(magnitude) <= _MANY:
            return self.radii.beyond(self.tail, magnitude).reshape(np.shape(magnitude))
        points, survival, _ = self._curves
        return np.interp(magnitude, points, survival)

    def quantile(self, probability: float) -> float:
        """A value that |Z| stays below with at least this probability, and hardly more."""
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        return quantile(self.radii, self.tail, 1 - probability)

    @property
    def mean(self) -> float:
        """E|Z|."""
        return self.radii.mean / self.radii.cells * _factorial_sum(self.tail)

    def expected_magnitude(self, scales: Floats) -> Floats:
        """The mean magnitude after rounding to whole numbers, for noise of these scales.

        Σ P(|Z| > (j − ½)/s) over j ≥ 1: the first terms directly, the others by the integral.
        """
        s, where = np.unique(np.asarray(scales, dtype=np.float64), return_inverse=True)
        points, _, integral = self._curves
        halves = (np.arange(_DIRECT_TERMS) + 0.5)[:, None] / s
        exceeded = self.survival(halves.ravel())
        mean: Floats = exceeded.reshape(halves.shape).sum(axis=0) + s * np.interp(_DIRECT_TERMS / s, points, integral)
        return mean[where].reshape(np.shape(scales))

    @cached_property
    def _curves(self) -> tuple[Floats, Floats, Floats]:
        """Points, the survival function there, and its integral from there on."""
        scale, end = self.mean, quantile(self.radii, self.tail, 1e-15)
        points = scale * np.sinh(np.linspace(0, np.arcsinh(end / scale), _POINTS))
        survival = self.radii.beyond(self.tail, points)
        steps = np.diff(points) * (survival[1:] + survival[:-1]) / 2
        integral = np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])
        return points, survival, integral * (self.mean / integral[0])


@lru_cache(maxsize=64)
def _sums(radii: Radii, cells: int) -> OneCell:
    """The sum of so many cells of a block, on one side of zero."""
    return OneCell(radii=radii, tail=sum_tail(cells))


def _factorial_sum(tail: Tail) -> float:
    return float(sum(np.exp(c + lgamma(j + 1)) for j, c in enumerate(tail.logs)))


def quantile(radii: Radii, tail: Tail, beyond: float) -> float:
    """A value exceeded with a probability of at most `beyond`, and hardly less."""
    if radii.beyond(tail, np.zeros(1))[0] <= beyond:
        return 0.0
    low, high = 0.0, 2 * radii.mean_guess
    while radii.beyond(tail, np.array([high]))[0] > beyond:
        low, high = high, 2 * high
    while high - low > 1e-11 * high:
        middle = np.linspace(low, high, 18)[1:-1]
        above = int((radii.beyond(tail, middle) > beyond).sum())
        low, high = (low if above == 0 else float(middle[above - 1])), (high if above == 16 else float(middle[above]))
    return high * _OUTWARD


# Simplex bell noise: one draw for a block of cells, a function of the sum of their magnitudes.


@dataclass(frozen=True, kw_only=True)
class SimplexBell:
    """Noise Z in d cells of density ∝ h(‖z‖₁/s), every cell published as the nearest whole number.

    ln h falls by the least of (rate − d)/(1−w) and (rate + d)/(1+w), so nowhere by more than `rate`. The scale s =
    unit·multiple may differ from block to block. docs/methods/bell.md has the proof.

    >>> from sfumato.noise.randomness import Seeded
    >>> SimplexBell(unit=Fraction(1), rate=Fraction(20), cells=2).sample(np.array([5, 7, 9]), Seeded(1)).shape
    (3, 2)
    """

    unit: Fraction
    rate: Fraction
    cells: int

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_SIMPLEX_CELLS:
            raise ValueError(f"cells must be between 1 and {MOST_SIMPLEX_CELLS}: {self}")
        if not 2**-64 <= self.unit <= 2**64 or not self.cells < self.rate <= 2**64:
            raise ValueError(f"unit must be in [2^-64, 2^64] and rate above the number of cells: {self}")

    @cached_property
    def radii(self) -> Radii:
        """The sums of all magnitudes, in scales."""
        pieces = bell_pieces(inner=self.rate - self.cells, outer=self.rate + self.cells)
        return Radii(pieces=pieces, cells=self.cells)

    @cached_property
    def marginal(self) -> OneCell:
        """The noise of one cell by itself."""
        return OneCell(radii=self.radii, tail=Tail(logs=(0.0,)))

    def sum_beyond(self, cells: int, x: Floats) -> Floats:
        """The probability that the noises of so many cells add up to more than x scales: one side only."""
        return _sums(self.radii, cells).survival(x)

    def sum_quantile(self, cells: int, beyond: float) -> float:
        """The number of scales that their sum exceeds with at most this probability."""
        return quantile(self.radii, sum_tail(cells), beyond)

    def sum_mean(self, cells: int) -> float:
        """The mean magnitude of their sum, in scales."""
        return 2 * self.radii.mean / self.cells * _factorial_sum(sum_tail(cells))

    @property
    def variance(self) -> float:
        """Of one cell, in squared scales: the share of one of d magnitudes in the sum is beta, squared 2/(d(d+1))."""
        return self.radii.second_moment * 2 / (self.cells * (self.cells + 1))

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One row of d whole numbers for every multiple; a magnitude beyond 2^62 is given as 2^62.

        A caller must cut the *sum* of count and noise well inside 2^62. `first_bits` is for tests: fewer bits in the
        first pass send more rows to the refining loop and change no probability.
        """
        check_multiples(multiples)
        noise = np.empty((len(multiples), self.cells), dtype=np.int64)

        def attempt(rows: Integers) -> Flags:
            words = word_blocks(len(rows), self.cells, randomness)
            heads, chosen = heads_of(words, first_bits), self.radii.choose(len(rows), randomness)
            scales = multiples[rows]
            found, doubtful = self.first_pass(scales, chosen, heads, first_bits)
            if len(doubtful):
                found[doubtful] = settled_rows(
                    heads[doubtful],
                    randomness,
                    first_bits=first_bits,
                    second_pass=lambda some, _: nothing_certain(some, self.cells + 1),
                    bounds=lambda i: self.row_bounds(self.unit * int(scales[doubtful[i]]), int(chosen[doubtful[i]])),
                )
            noise[rows] = found[:, 1:] * signs(words)
            accepted: Flags = found[:, 0] > 0
            return accepted

        until_accepted(len(multiples), self.cells, attempt)
        return noise

    def first_pass(
        self, multiples: Integers, chosen: Integers, heads: Integers, bits: int
    ) -> tuple[Integers, Integers]:
        """Rows of acceptance and rounded magnitudes in floating point, and which rows further bits may change."""
        radii, slope, error, unknown = self.radii.first_radii(chosen, heads, bits)
        with np.errstate(invalid="ignore", over="ignore"):
            scale = (multiples * float(self.unit))[:, None]
            below = error + slope * unknown
            accepted, decided = self.radii.accepted(chosen, radii[:, -1], below[:, -1], error[:, -1])
            magnitude = scale * np.diff(radii, axis=1, prepend=0.0)
            # Bits not drawn yet lower a magnitude; where the piece bends down they raise those after it.
            doubt = 2 * (scale * error + 2.0**-50) + scale * slope * unknown
            low, high = np.floor(magnitude - doubt + 0.5), np.floor(magnitude + doubt + 0.5)
            certain = (low == high).all(axis=1)
        sure = decided & (certain | ~accepted)
        found = np.where(sure[:, None], np.concatenate([accepted[:, None], np.abs(high)], axis=1), 0)
        found = np.where((found[:, :1] > 0) | (np.arange(self.cells + 1) == 0), found, 0)
        return found.astype(np.int64), np.flatnonzero(~sure)

    def row_bounds(self, scale: Fraction, chosen: int) -> Callable[[Sequence[int], int], VectorBounds]:
        """What is known of acceptance and of the magnitudes of one row, in many digits."""

        def bounds(heads: Sequence[int], bits: int) -> VectorBounds:
            with many_digits(bits) as share:
                increments, _, accepted = self.radii.exact_radii(chosen, heads, bits, share)
                s = exactly(scale)
                return [accepted, *((nearest(s * low), nearest(s * high * (1 + share))) for low, high in increments)]

        return bounds

    def log_density(self, z: Floats, scale: Floats | float) -> Floats:
        """The logarithm of the density of Z at rows of d coordinates, before rounding."""
        d = self.cells
        constant = lgamma(d) - self.radii.log_mass - d * np.log(2 * np.asarray(scale))
        density: Floats = constant + self.radii.log_height(np.abs(z).sum(axis=-1) / scale)
        return density


def until_accepted(rows: int, width: int, attempt: Callable[[Integers], Flags]) -> None:
    """Draw all rows, and those anew that are not accepted, until every row is: each time with new randomness."""
    for part in block_chunks(rows, width):
        left = np.arange(part.start, part.stop)
        while len(left):
            left = left[~attempt(left)]


def nothing_certain(rows: Integers, width: int) -> tuple[Integers, Flags]:
    """The second pass of noise whose doubtful rows are too few to need one."""
    return np.zeros((len(rows), width), dtype=np.int64), np.zeros((len(rows), width), dtype=np.bool_)
