"""Radii of noise whose density falls ever faster at first and as a power far out: drawn exactly, and their law."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import inf, lgamma, log
from typing import Literal

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.box_pareto import Tail
from sfumato.noise.passes import FIRST_BITS
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import WORD, exactly, minus_log, precise

# Pieces: a radius w has density ∝ w^(d−1)·h(w), and h is (1−w)^κ, e^(−σw) and (1+w)^(−γ) one after the other.

Bend = Literal[-1, 0, 1]
"""How a piece falls: as (1−w)^κ, e^(−σw) or (1+w)^(−γ)."""

_UNIT = 2.0**-52
_WIDENED = 1 + 2.0**-30
_NODES, _PANELS = 24, 3  # of the quadrature, between knots
_NEAR = 2.0**-40  # of a threshold, where floating point does not decide which piece is chosen


@dataclass(frozen=True, kw_only=True)
class Piece:
    """h from `low` to `high`, up to a factor: (1−w)^power, e^(−power·w) or (1+w)^(−power)."""

    bend: Bend
    power: Fraction
    low: Fraction
    high: Fraction | None
    """None is no end."""

    def shares(self, cells: int) -> list[Fraction]:
        """By what each −ln U is multiplied, so that Y is their sum and w is 1 − e^(−Y), Y or e^Y − 1.

        The increments of w, one for each uniform, then have the density h in their sum, over all w ≥ 0.
        """
        if self.bend < 0:
            return [1 / (self.power + cells - i) for i in range(cells)]
        if self.bend == 0:
            return [1 / self.power] * cells
        return [1 / (self.power - cells + i) for i in range(cells)]

    def log_fall(self, w: Floats) -> Floats:
        """The logarithm of h up to a constant."""
        power = float(self.power)
        found: Floats = power * np.log1p(-w) if self.bend < 0 else -power * (np.log1p(w) if self.bend else w)
        return found

    def exact_fall(self, w: Decimal) -> Decimal:
        """h up to the factor, to the digits in force."""
        power = exactly(self.power)
        exponent = power * (1 - w).ln() if self.bend < 0 else -power * ((1 + w).ln() if self.bend else w)
        return exponent.exp()

    def exact_mass(self, cells: int) -> Decimal:
        """∫ w^(d−1)·h over all w ≥ 0 that h is positive for, over (d−1)!: the product of the shares."""
        mass = Decimal(1)
        for share in self.shares(cells):
            mass *= exactly(share)
        return mass

    def radius(self, exponent: Floats) -> Floats:
        """w at Y."""
        if self.bend == 0:
            return exponent
        found: Floats = np.expm1(exponent) if self.bend > 0 else -np.expm1(-exponent)
        return found

    def exact_radius(self, exponent: Decimal) -> Decimal:
        """w at Y, to the digits in force; at an infinite Y it is 1, or has no bound."""
        if self.bend == 0:
            return exponent
        return exponent.exp() - 1 if self.bend > 0 else 1 - (-exponent).exp()

    def exact_increment(self, before: Decimal, own: Decimal) -> Decimal:
        """By what w grows when Y, which was `before`, grows by `own`."""
        return self.exact_radius(own) * ((before * self.bend).exp() if self.bend else 1)


@dataclass(frozen=True, kw_only=True)
class Radii:
    """Radii in d dimensions, of a density w^(d−1)·h(w) whose pieces join without a jump.

    A radius is drawn from one of the pieces as if it were without ends, and drawn anew where it lies outside its ends.
    How often each is chosen makes the pieces join: docs/methods/bell.md has the proof.
    """

    pieces: tuple[Piece, ...]
    cells: int

    def factors(self) -> list[Decimal]:
        """What each piece is multiplied by, so that h is continuous: to the digits in force."""
        found = [Decimal(1)]
        for before, after in pairwise(self.pieces):
            knot = exactly(after.low)
            found.append(found[-1] * before.exact_fall(knot) / after.exact_fall(knot))
        return found

    def thresholds(self, digits: int) -> list[tuple[Decimal, Decimal]]:
        """Between which numbers a uniform chooses each piece but the last: their upper ends, from below and above."""
        with localcontext(precise(digits + 60)):
            masses = [f * piece.exact_mass(self.cells) for f, piece in zip(self.factors(), self.pieces, strict=True)]
            total, found, margin = sum(masses), list[tuple[Decimal, Decimal]](), Decimal(10) ** -digits
            reached = Decimal(0)
            for mass in masses[:-1]:
                reached += mass / total
                found.append((reached - margin, reached + margin))
        return found

    def choose(self, rows: int, randomness: Randomness) -> Integers:
        """A piece for every row, each exactly as likely as its share of the mass."""
        words = randomness.words(rows)
        uniforms = (words >> np.uint64(64 - FIRST_BITS)).astype(np.float64) * 2.0**-FIRST_BITS
        ends = np.array([float(low) for low, _ in self._coarse])
        chosen = np.searchsorted(ends, uniforms).astype(np.int64)
        for row in np.flatnonzero((np.abs(uniforms[:, None] - ends) < _NEAR).any(axis=1)):
            chosen[row] = self._chosen_exactly(int(words[row]), randomness)
        return chosen

    def _chosen_exactly(self, head: int, randomness: Randomness) -> int:
        bits = WORD
        while True:
            ends = self.thresholds(bits // 3 + 10)
            with localcontext(precise(bits + 60)):
                low, high = Decimal(head) / (1 << bits), Decimal(head + 1) / (1 << bits)
                first, last = sum(low > below for below, _ in ends), sum(high > above for _, above in ends)
                if first == last and not any(below <= high and low <= above for below, above in ends):
                    return int(first)
            head, bits = head << WORD | int(randomness.words(1)[0]), bits + WORD

    @cached_property
    def _coarse(self) -> list[tuple[Decimal, Decimal]]:
        return self.thresholds(20)

    @cached_property
    def shares(self) -> Floats:
        """The shares of every piece, in rows."""
        return np.array([[float(share) for share in piece.shares(self.cells)] for piece in self.pieces])

    def first_radii(self, chosen: Integers, heads: Integers, bits: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Running radii after each uniform in floating point, their slopes in Y, errors, and what is not drawn yet.

        Write u = 2^−52. As in SimplexPareto each Y is within (22 + d)u of itself if the library's `log` is within 20u,
        and w, whose slope in Y is at most 1 + w, within (128 + 4d)(1 + Y)(1 + w)u. The bits not drawn yet lower Y by at
        most Σ share/h, and w by at most its slope times that.
        """
        shares = self.shares[chosen]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            exponent = np.cumsum(np.log(heads * 2.0**-bits) * -shares, axis=1)
            unknown = np.cumsum(shares / heads, axis=1) * _WIDENED
            radii = np.empty_like(exponent)
            for place, piece in enumerate(self.pieces):
                rows = chosen == place
                radii[rows] = piece.radius(exponent[rows])
            slope = 1 + radii
            error = slope * (exponent + 1) * ((128 + 4 * self.cells) * _UNIT)
        return radii, slope, error, unknown

    def accepted(self, chosen: Integers, last: Floats, below: Floats, above: Floats) -> tuple[Flags, Flags]:
        """Whether radii are within the ends of their pieces, and where that is certain."""
        lows = np.array([float(piece.low) for piece in self.pieces])[chosen]
        highs = np.array([inf if piece.high is None else float(piece.high) for piece in self.pieces])[chosen]
        margin = (1 + last) * (4 * _UNIT)  # of the ends as floats
        least, most = last - below - margin, last + above + margin
        inside = ((least > lows) | (lows == 0)) & (most < highs)
        outside = (most < lows) | (least > highs)
        return inside, inside | outside

    def exact_radii(
        self, chosen: int, heads: Sequence[int], bits: int, share: Decimal
    ) -> tuple[list[tuple[Decimal, Decimal]], tuple[Decimal, Decimal], tuple[int, int]]:
        """The least and the greatest of all increments, of their sum and of acceptance, which is 0 or 1.

        `share` is by what decimal arithmetic may err, as a share of (1 + Y) times a result.
        """
        piece, before = self.pieces[chosen], (Decimal(0), Decimal(0))
        found: list[tuple[Decimal, Decimal]] = []
        for head, factor in zip(heads, piece.shares(self.cells), strict=True):
            own = [end * exactly(factor) for end in minus_log(head, bits)]
            # Where the piece bends down, an increment falls with what came before.
            least, most = before if piece.bend > 0 else before[::-1]
            ends = piece.exact_increment(least, own[0]), piece.exact_increment(most, own[1])
            before = before[0] + own[0], before[1] + own[1]
            found.append(_widened(ends, before[1], share))
        low, high = _widened((piece.exact_radius(before[0]), piece.exact_radius(before[1])), before[1], share)
        bottom, top = exactly(piece.low), None if piece.high is None else exactly(piece.high)
        surely = (not piece.low or low > bottom) and (top is None or high < top)
        never = high < bottom or (top is not None and low > top)
        return found, (low, high), (int(surely), int(not never))

    # The law of a radius, and of what is made of it: by quadrature, for figures that are published and nothing else.

    def log_height(self, w: Floats) -> Floats:
        """The logarithm of h, up to the same constant for all w."""
        height = np.full(np.shape(w), -inf)
        for factor, piece in zip(self._log_factors, self.pieces, strict=True):
            rows = (w >= float(piece.low)) & (w <= (inf if piece.high is None else float(piece.high)))
            height[rows] = piece.log_fall(w[rows]) + factor
        return height

    @cached_property
    def _log_factors(self) -> list[float]:
        with localcontext(precise(120)):
            return [float(factor.ln()) for factor in self.factors()]

    @cached_property
    def log_mass(self) -> float:
        """The logarithm of ∫ w^(d−1)·h."""
        nodes, weights = self._panels(np.zeros(1))
        logs = (self.cells - 1) * np.log(nodes[0]) + self.log_height(nodes[0])
        return float(logs.max() + log(float((np.exp(logs - logs.max()) * weights[0]).sum())))

    @cached_property
    def mean(self) -> float:
        """The mean radius."""
        nodes, weights = self._panels(np.zeros(1))
        logs = self.cells * np.log(nodes[0]) + self.log_height(nodes[0]) - self.log_mass
        return float((np.exp(logs) * weights[0]).sum())

    @cached_property
    def second_moment(self) -> float:
        """The mean square of a radius."""
        nodes, weights = self._panels(np.zeros(1))
        logs = (self.cells + 1) * np.log(nodes[0]) + self.log_height(nodes[0]) - self.log_mass
        return float((np.exp(logs) * weights[0]).sum())

    def beyond(self, tail: Tail, x: Floats) -> Floats:
        """The probability that a quantity exceeds x whose tail is `tail` where radii have a gamma distribution.

        Given the radius w, such a quantity exceeds x with the probability Σ b_j·u^j·(1−u)^(d−1−j), u = x/w, where b_j =
        c_j·j!·C(d−1, j) and the c_j are the coefficients of the tail: docs/methods/bell.md.
        """
        x, d = np.atleast_1d(np.asarray(x, dtype=np.float64)), self.cells
        logs = [c + lgamma(d) - lgamma(d - j) for j, c in enumerate(tail.logs)]
        found = np.empty(x.shape)
        for start in range(0, len(x), 64):
            part = x[start : start + 64]
            nodes, weights = self._panels(part)
            with np.errstate(divide="ignore", invalid="ignore"):
                heights = np.exp(self.log_height(nodes) + (d - 1) * np.log(nodes) - self.log_mass) * weights
                ratio = np.minimum(part[:, None] / nodes, 1.0)
                up, down = np.log(ratio), np.log1p(-ratio)
            total = np.zeros(nodes.shape)
            for j, b in enumerate(logs):
                with np.errstate(invalid="ignore"):
                    term = b + (j * up if j else 0.0) + ((d - 1 - j) * down if d - 1 - j else 0.0)
                total += np.exp(term)
            found[start : start + 64] = (total * heights).sum(axis=1)
        return np.minimum(found, 1.0)

    def _panels(self, x: Floats) -> tuple[Floats, Floats]:
        """Nodes and weights from each x on, within which all but e^−60 of the mass lies; they meet at the knots."""
        low, high = self._range
        start = np.maximum(x, low)
        knots = [low, *(float(piece.low) for piece in self.pieces[1:] if low < float(piece.low) < high)]
        # Beyond what holds the bulk, panels grow with 1 + w.
        far = self.mean_guess * 2
        if far < high:
            knots += list(np.expm1(np.linspace(np.log1p(far), np.log1p(high), 9)))
        else:
            knots.append(high)
        knots = sorted({knot for knot in knots if knot <= high} | {high})
        base, weight = np.polynomial.legendre.leggauss(_NODES)
        nodes, weights = [], []
        for left, right in pairwise(knots):
            for piece in range(_PANELS):
                begin = left + (right - left) * piece / _PANELS
                end = left + (right - left) * (piece + 1) / _PANELS
                first = np.minimum(np.maximum(start, begin), end)
                half = (end - first) / 2
                nodes.append(first[:, None] + half[:, None] * (base + 1))
                weights.append(half[:, None] * weight)
        return np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)

    @property
    def mean_guess(self) -> float:
        """Where about the bulk of radii is: where w^(d−1)·h is greatest, or a little beyond."""
        return self._peak + 1 / float(self.pieces[-1].power - self.cells + 1)

    @property
    def _grid(self) -> Floats:
        """Radii far below and far above the usual ones."""
        found: Floats = np.geomspace(1e-9, 1e15, 40_001) * (self.cells / float(self.pieces[-1].power))
        return found

    @cached_property
    def _peak(self) -> float:
        grid = self._grid
        return float(grid[np.argmax((self.cells - 1) * np.log(grid) + self.log_height(grid))])

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Beyond these ends w^d·h is below e^−60 of its most."""
        grid = self._grid
        logs = self.cells * np.log(grid) + self.log_height(grid)
        kept = np.flatnonzero(logs > logs.max() - 60)
        low = 0.0 if kept[0] == 0 or self.cells == 1 else float(grid[kept[0] - 1])
        return low, float(grid[min(kept[-1] + 1, len(grid) - 1)])


def _widened(ends: tuple[Decimal, Decimal], exponent: Decimal, share: Decimal) -> tuple[Decimal, Decimal]:
    """An interval moved outward by what decimal arithmetic may err."""
    if not exponent.is_finite():
        return max(ends[0] * (1 - share) - share, Decimal(0)), ends[1]
    margin = share * (1 + exponent)
    return max(ends[0] - (1 + ends[0]) * margin, Decimal(0)), ends[1] + (1 + ends[1]) * margin
