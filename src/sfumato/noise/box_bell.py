"""Bell noise in the hull of a box and its negative, with a scale of its own in every cell of a block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import log

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.bell import OneCell, bell_pieces, nothing_certain, until_accepted
from sfumato.noise.box_pareto import hull_norm, hull_tail
from sfumato.noise.passes import FIRST_BITS, MOST_CELLS, choices, heads_of, settled_rows, word_blocks
from sfumato.noise.radial import Radii
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import VectorBounds, exactly, many_digits, nearest

_UNIT = 2.0**-52


@dataclass(frozen=True, kw_only=True)
class Corners:
    """Points on the surface of the hull of [0,1]^d and [−1,0]^d, as often in each direction as the hull reaches there.

    Of d + 1 numbers V_0 … V_d one, chosen at random, is 0, another one is 1, and the others are uniform between. The
    points are the d differences V_c − V_0: docs/methods/bell.md has the proof.
    """

    heads: Integers
    zero: Integers
    one: Integers
    bits: int

    @classmethod
    def draw(cls, rows: int, cells: int, randomness: Randomness, *, bits: int) -> "Corners":
        """As many points as rows, in as many dimensions as cells."""
        heads = heads_of(word_blocks(rows, cells + 1, randomness), bits)
        zero, other = choices(rows, cells + 1, randomness), choices(rows, cells, randomness)
        return cls(heads=heads, zero=zero, one=other + (other >= zero), bits=bits)

    @property
    def coordinates(self) -> Floats:
        """The points at the lower ends of what is known: exact, and within 2^−bits of the points to be."""
        uniforms = self.heads * 2.0**-self.bits
        np.put_along_axis(uniforms, self.zero[:, None], 0.0, axis=1)
        np.put_along_axis(uniforms, self.one[:, None], 1.0, axis=1)
        return uniforms[:, 1:] - uniforms[:, :1]


def corner_bounds(heads: Sequence[int], zero: int, one: int, bits: int) -> list[tuple[Decimal, Decimal]]:
    """The least and the greatest value of every coordinate of one point, to the digits in force."""
    known = {zero: (0, 0), one: (1 << bits, 1 << bits)}
    (first_low, first_high), *others = [known.get(i, (head, head + 1)) for i, head in enumerate(heads)]
    whole = Decimal(1 << bits)
    return [(Decimal(low - first_high) / whole, Decimal(high - first_low) / whole) for low, high in others]


@dataclass(frozen=True, kw_only=True)
class BoxBell:
    """Noise Z in d cells of density ∝ h(‖z/s‖), every cell published as the nearest whole number.

    ‖·‖ is the norm of the hull of a box and its negative, and the scales s_c = unit·multiple_c may differ from cell to
    cell. ln h falls by the least of (rate − d)/(1−w), `steepest` and (rate + 1)/(1+w). docs/methods/bell.md has the
    proof.

    >>> from sfumato.noise.randomness import Seeded
    >>> noise = BoxBell(unit=Fraction(1), rate=Fraction(20), steepest=Fraction(19), cells=2)
    >>> noise.sample(np.array([[5, 7]]), Seeded(1)).shape
    (1, 2)
    """

    unit: Fraction
    rate: Fraction
    steepest: Fraction
    cells: int

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_CELLS:
            raise ValueError(f"cells must be between 1 and {MOST_CELLS}: {self}")
        if not 2**-64 <= self.unit <= 2**64 or not self.cells < self.rate <= 2**64:
            raise ValueError(f"unit must be in [2^-64, 2^64] and rate above the number of cells: {self}")
        if self.steepest <= self.rate - self.cells:
            raise ValueError(f"steepest must be above rate less the number of cells: {self}")

    @cached_property
    def radii(self) -> Radii:
        """The norms, in scales."""
        pieces = bell_pieces(inner=self.rate - self.cells, outer=self.rate + 1, steepest=self.steepest)
        return Radii(pieces=pieces, cells=self.cells)

    @cached_property
    def marginal(self) -> OneCell:
        """The noise of one cell by itself, in its scale."""
        return OneCell(radii=self.radii, tail=hull_tail(self.cells))

    def expected_magnitude(self, multiples: Integers) -> Floats:
        """The mean absolute noise of a cell after rounding."""
        scales: Floats = np.asarray(multiples, dtype=np.float64) * float(self.unit)
        return self.marginal.expected_magnitude(scales)

    def sample(self, multiples: Integers, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """One row of d whole numbers for every row of d multiples; a magnitude beyond 2^62 is given as 2^62.

        A caller must cut the *sum* of count and noise well inside 2^62. `first_bits` is for tests.
        """
        if multiples.ndim != 2 or multiples.shape[1] != self.cells or (multiples.size and int(multiples.min()) < 1):
            raise ValueError(f"multiples must be rows of {self.cells} positive whole numbers")
        noise = np.empty(multiples.shape, dtype=np.int64)

        def attempt(rows: Integers) -> Flags:
            heads = heads_of(word_blocks(len(rows), self.cells, randomness), first_bits)
            points = Corners.draw(len(rows), self.cells, randomness, bits=first_bits)
            chosen, scales = self.radii.choose(len(rows), randomness), multiples[rows]
            found, doubtful = self.first_pass(scales, chosen, heads, points)
            if len(doubtful):
                found[doubtful] = settled_rows(
                    np.concatenate([heads, points.heads], axis=1)[doubtful],
                    randomness,
                    first_bits=first_bits,
                    second_pass=lambda some, _: nothing_certain(some, self.cells + 1),
                    bounds=lambda i: self.row_bounds(
                        scales[doubtful[i]].tolist(),
                        int(chosen[doubtful[i]]),
                        (int(points.zero[doubtful[i]]), int(points.one[doubtful[i]])),
                    ),
                )
            noise[rows] = found[:, 1:]
            accepted: Flags = found[:, 0] > 0
            return accepted

        until_accepted(len(multiples), self.cells, attempt)
        return noise

    def first_pass(
        self, multiples: Integers, chosen: Integers, heads: Integers, points: Corners
    ) -> tuple[Integers, Integers]:
        """Rows of acceptance and rounded noise in floating point, and which rows further bits may change.

        |V_c − V_0| ≤ 1, so an error of the radius counts at most fully, and one of a coordinate, below 2^−bits, as many
        times as the radius says.
        """
        radii, slope, error, unknown = (found[:, -1:] for found in self.radii.first_radii(chosen, heads, points.bits))
        with np.errstate(invalid="ignore", over="ignore"):
            below = error + slope * unknown
            accepted, decided = self.radii.accepted(chosen, radii[:, 0], below[:, 0], error[:, 0])
            scale = multiples * float(self.unit)
            noise = scale * radii * points.coordinates
            doubt = scale * (below + radii * (2.0**-points.bits + 8 * _UNIT)) + (np.abs(noise) + 1) * (8 * _UNIT)
            low, high = np.floor(noise - doubt + 0.5), np.floor(noise + doubt + 0.5)
            certain = (low == high).all(axis=1)
        sure = decided & (certain | ~accepted)
        values = np.where((sure & accepted)[:, None], high, 0)
        found = np.concatenate([(sure & accepted)[:, None], values], axis=1)
        return found.astype(np.int64), np.flatnonzero(~sure)

    def row_bounds(
        self, multiples: Sequence[int], chosen: int, corner: tuple[int, int]
    ) -> Callable[[Sequence[int], int], VectorBounds]:
        """What is known of acceptance and of the noise of one row, in many digits."""

        def bounds(heads: Sequence[int], bits: int) -> VectorBounds:
            with many_digits(bits) as share:
                _, radius, accepted = self.radii.exact_radii(chosen, heads[: self.cells], bits, share)
                found = [accepted]
                for multiple, (low, high) in zip(
                    multiples, corner_bounds(heads[self.cells :], *corner, bits), strict=True
                ):
                    s = exactly(self.unit * multiple)
                    least = _times(low, radius[0] if low > 0 else radius[1]) * s
                    most = _times(high, radius[1] if high > 0 else radius[0]) * s
                    found.append((nearest(least - abs(least) * share), nearest(most + abs(most) * share)))
                return found

        return bounds

    def log_density(self, z: Floats, scales: Floats) -> Floats:
        """The logarithm of the density of Z at rows of d coordinates, before rounding."""
        d = self.cells
        # The unit ball has volume d + 1, and shells of it d times that of w^(d−1).
        constant = -log(d) - log(d + 1) - self.radii.log_mass - np.log(scales).sum(axis=-1)
        density: Floats = constant + self.radii.log_height(hull_norm(z / scales))
        return density


def _times(coordinate: Decimal, radius: Decimal) -> Decimal:
    # A coordinate of zero is zero at every radius, also at one without a bound.
    return coordinate * radius if coordinate else Decimal(0)
