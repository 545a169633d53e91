"""How totals are moved by their largest contributors: shapes, magnitudes, noise and intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil, isfinite, pi, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.noise.factors import ONE

# The shape of a cell: how large its contributors are beside each other, which decides risk and loss.

_WHERE = "contributors"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a cell's contributors, largest first, in any unit; `rest` is what all smaller ones add to the total.

    Order is by absolute value: a large loss counts like a large profit. All weights are one, and attackers know it.

    >>> Shape.read("5,90,5").sizes
    (90.0, 5.0, 5.0)
    """

    sizes: tuple[float, ...]
    rest: float = 0.0

    def __post_init__(self) -> None:
        sizes = tuple(sorted(self.sizes, key=abs, reverse=True))
        object.__setattr__(self, "sizes", sizes)
        if not sizes or not all(map(isfinite, (*sizes, self.rest, self.total))) or sizes[0] == 0 or self.total == 0:
            raise MethodError(
                _WHERE,
                expected="at least one number that is not 0, and a total that is not 0",
                found=f"{self} with a rest of {self.rest:g}",
                do="give the sizes of the largest contributors, such as 90,5,5",
            )

    @classmethod
    def read(cls, text: str, *, rest: float = 0.0) -> "Shape":
        """The shape written as numbers with commas between them."""
        return cls(sizes=read_numbers(_WHERE, text), rest=rest)

    def __str__(self) -> str:
        return ",".join(f"{size:g}" for size in self.sizes)

    @property
    def total(self) -> float:
        """The total of the cell."""
        return sum(self.sizes) + self.rest

    def to_largest(self, n: int) -> NDArray[np.float64]:
        """The sizes of the n largest contributors as multiples of the largest; 0 where there are fewer."""
        kept = np.array(self.sizes[:n])
        return np.pad(kept, (0, n - len(kept))) / self.sizes[0]


def read_numbers(where: str, text: str) -> tuple[float, ...]:
    """Numbers with commas between them, as in `.15,.1,.1`."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise MethodError(
            where, expected="numbers with commas between them, such as 90,5,5", found=repr(text), do="correct the list"
        ) from error


LEAST_RELIEF = 0.5
"""Sampling error never takes the place of more than half of the perturbation."""

# The perturbation of a total by its largest contributors; docs/methods/magnitudes.md says how it is chosen.

Numbers = NDArray[np.int64] | NDArray[np.float64]


def contributions(
    *, values: Numbers, weights: Numbers, magnitudes: Floats, directions: Integers, noise: Integers
) -> Floats:
    """What each of a cell's largest contributors adds to its total: m·d·h·y·w, the noise h being in millionths.

    All arrays are cells × contributors, or broadcast to that; a contributor that does not exist has the value 0. Every
    product is of two floats and is rounded once, in this order, so that every machine gets the same.
    """
    moved: Floats = magnitudes * (directions * noise) / ONE * values * weights
    return moved


def perturbation(
    *, values: Numbers, weights: Numbers, magnitudes: Floats, directions: Integers, noise: Integers
) -> Floats:
    """What is added to each cell's total: P* = Σ m·d·h·y·w over its largest contributors.

    >>> perturbation(
    ...     values=np.array([[72.1, 65.3, 65.3, 50.1]]),
    ...     weights=np.array([[458.2, 185.7, 752.7, 612.6]]),
    ...     magnitudes=np.array([0.6, 0.4, 0.3, 0.2]),
    ...     directions=np.array([1, -1, -1, -1]),
    ...     noise=np.array([950_000, 1_020_000, 1_540_000, 1_540_000]),
    ... ).round().tolist()
    [-18278.0]
    """
    moved = contributions(values=values, weights=weights, magnitudes=magnitudes, directions=directions, noise=noise)
    total = np.zeros(len(moved))
    for rank in range(moved.shape[1]):  # from the largest on: the order of a sum of floats matters
        total = total + moved[:, rank]
    return total


def perturbation_variance(*, values: Numbers, weights: Numbers, magnitudes: Floats, spread: float) -> Floats:
    """The variance of P*: Σ m²·(1 + b²/6)·w²·y², because Var(d·h) = E h² = 1 + b²/6.

    The paper's b²/12 is the variance of a uniform noise of half the width; a triangular one on 1 ± b has b²/6.
    """
    weighted = magnitudes * values * weights
    variance: Floats = (1 + spread**2 / 6) * (weighted * weighted).sum(axis=-1)
    return variance


def parity(contributors: Integers) -> Integers:
    """The sign q of the parity rule: +1 in cells with an odd number of contributors, −1 with an even number.

    >>> parity(np.array([3, 4])).tolist()
    [1, -1]
    """
    return ((contributors & 1) << 1) - 1


# How the noise of several contributors adds up: its whole distribution by a Fourier series, without simulation.

ACCURACY = 0.00002
"""No probability is farther off than this."""
_TERMS, _LEAST_TERMS = 60, 200  # the former divided by the spread, or the latter: enough for that
_AT_ONCE = 1 << 20  # numbers in one array: 8 MB


@dataclass(frozen=True, kw_only=True)
class NoiseSum:
    """Sums S = Σ d·(own·h + other·h′), one in each row, with a contributor in each column.

    The directions d are ±1 with equal probability, h and h′ triangular on 1 ± spread, and all of them independent. S is
    symmetric and bounded, so on an interval that holds all its values it is a Fourier series whose coefficients are its
    characteristic function Π cos((own + other)t)·sinc²(own·spread·t/2)·sinc²(other·spread·t/2).
    """

    own: Floats
    other: Floats
    spread: float
    normal: Floats | None = None
    """The standard deviation of what is added besides, normal and independent: sampling, or many small contributors."""

    def __post_init__(self) -> None:
        if self.own.shape != self.other.shape or self.own.ndim != 2:
            raise ValueError("own and other must be rows × contributors, both alike")
        if not 0 < self.spread < 1:
            raise ValueError("the spread must be above 0 and below 1")

    @property
    def reach(self) -> Floats:
        """The largest value each sum can take, or a little more."""
        own, other = self.own, self.other
        reach: Floats = (np.abs(own + other) + self.spread * (np.abs(own) + np.abs(other))).sum(axis=1)
        return reach if self.normal is None else reach + _FAR * self.normal

    def probability(self, low: float | Floats, high: float | Floats) -> Floats:
        """The probability that each sum lies between two numbers, the same of all or each its own."""
        reach = self.reach
        lows, highs = (np.broadcast_to(np.asarray(end, dtype=np.float64), reach.shape) for end in (low, high))
        found = ((lows <= 0) & (highs >= 0)).astype(np.float64)  # of a sum that is always nothing
        for rows, frequencies, coefficients in self._series(reach):
            ends = [np.clip(e[rows], -reach[rows], reach[rows])[:, None] / reach[rows, None] for e in (lows, highs)]
            waves = (np.sin(frequencies * ends[1]) - np.sin(frequencies * ends[0])) / frequencies
            whole = (ends[1] - ends[0])[:, 0] + 2 * (coefficients * waves).sum(axis=1)
            found[rows] = np.clip(whole / 2, 0, 1)
        return found

    def mean_magnitude(self) -> Floats:
        """E|S| of each sum, from the series of |x|."""
        reach = self.reach
        found = np.zeros(len(reach))
        for rows, frequencies, coefficients in self._series(reach):
            odd = coefficients[:, ::2] / frequencies[::2] ** 2
            found[rows] = reach[rows] * (0.5 - 4 * odd.sum(axis=1))
        return found

    def _series(self, reach: Floats) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
        """Some rows at a time, in multiples of their reach: frequencies πk and the characteristic function there."""
        frequencies: Floats = pi * np.arange(1.0, max(ceil(_TERMS / self.spread), _LEAST_TERMS) + 1)
        moving = np.flatnonzero(reach > 0)
        size = max(_AT_ONCE // len(frequencies), 1)
        for start in range(0, len(moving), size):
            rows = moving[start : start + size]
            coefficients = np.ones((len(rows), len(frequencies)))
            for terms in zip(self.own[rows].T, self.other[rows].T, strict=True):
                own, other = (scale[:, None] / reach[rows, None] for scale in terms)
                coefficients *= np.cos((own + other) * frequencies)
                for scale in (own, other):
                    if scale.any():
                        coefficients *= np.sinc(scale * self.spread / (2 * pi) * frequencies) ** 2
            if self.normal is not None:
                coefficients *= np.exp(-((self.normal[rows, None] / reach[rows, None] * frequencies) ** 2) / 2)
            yield rows, frequencies, coefficients


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What moves each cell: the sizes of its terms, whose directions belong to the units with these words."""

    scales: Floats
    words: Integers
    keys: Integers
    """The noise of a unit is the same in two cells that have the same of these."""
    normal: Floats
    """The standard deviation of what many others add, of which each by itself is small."""


# How far an estimate may be off: quantiles of the perturbation that was really used, with sampling error beside it.
#
# Perturbation is bimodal: a cell with one large contributor is moved up or down by about the same amount, never by
# little. So the interval is not ±1.645 standard deviations but comes from the distribution itself: for every choice of
# directions the amount is nearly normal around its mean, with the variance of the noise and of sampling.

_FAR = 6.0  # standard deviations: as good as certain
_HALVINGS = 40
"""Widths are right to this many binary digits of the farthest that a cell may be off."""
_TANGENTS = 12
"""Steps along the tangent, of which five to nine are enough nearly always; after these the rest is halved."""
_AT_ONCE_CONTRIBUTOR_INTERVAL = 1 << 13  # cells: their arrays stay in the processor's cache
_NEVER = 9.0  # standard deviations: beyond them the probability is lost in rounding


def half_widths(scales: Floats, sampling: Floats, *, spread: float, confidence: float) -> Floats:
    """The least number so that each cell is off by no more with the given probability.

    A row of `scales` has m·y·w of the contributors that move the cell; `sampling` is its standard error by sampling.
    The triangular noise is taken as normal of its variance b²/6, which is right to about one percent of coverage.
    """
    return widths_around(scales, np.sqrt(sampling**2 + spread**2 / 6 * (scales * scales).sum(axis=1)), confidence)


def widths_around(scales: Floats, deviation: Floats, confidence: float) -> Floats:
    """The same of sums Σ ±scale with normal noise of a given deviation around them."""
    scales = scales[:, scales.any(axis=0)]  # where a contributor moves no cell, its direction does not matter
    moving = np.flatnonzero(deviation > 0)
    found = np.zeros(len(scales))
    for begin in range(0, len(moving), _AT_ONCE_CONTRIBUTOR_INTERVAL):
        rows = moving[begin : begin + _AT_ONCE_CONTRIBUTOR_INTERVAL]
        found[rows] = _half_widths(scales[rows], deviation[rows], confidence)
    return found


def _half_widths(scales: Floats, deviation: Floats, confidence: float) -> Floats:
    """Two ends close in on each width; the upper one, which is never too narrow, is returned."""
    # By symmetry the largest contributor moves up.
    others = product((1, -1), repeat=max(scales.shape[1] - 1, 0))
    signs = np.array([(1, *choice)[: scales.shape[1]] for choice in others], dtype=np.float64)
    centres = np.abs(scales @ signs.T)
    low = np.zeros(len(scales))
    high: Floats = np.abs(scales).sum(axis=1) + _FAR * deviation
    near = high * 2.0**-_HALVINGS
    # Where choices of directions lie apart, only the farthest goes beyond the width; elsewhere this is not far from it.
    share = min((1 - confidence) * len(signs), 0.5)
    at = np.minimum(centres.max(axis=1) + scipy.special.ndtri(1 - share) * deviation, high)
    active = np.arange(len(scales))
    for step in range(_TANGENTS + _HALVINGS):
        inside, density = _inside(at, centres[active], deviation[active])
        enough = inside >= confidence
        high[active] = np.where(enough, at, high[active])
        low[active] = np.where(enough, low[active], at)
        left = high[active] - low[active] > near[active]
        active, at, enough = active[left], at[left], enough[left]
        if not len(active):
            break
        within = high[active] - low[active]
        at_next = low[active] + within / 2
        if step < _TANGENTS:
            missing, slope = confidence - inside[left], density[left]
            # A little farther than the tangent says, so that the other end comes as close as this one.
            beyond = np.where(enough, -near[active] / 2, near[active] / 2)
            along = slope * within > np.abs(missing)
            tangent = at + np.divide(missing, slope, out=np.zeros(len(at)), where=along) + beyond
            along &= (low[active] < tangent) & (tangent < high[active])
            at_next = np.where(along, tangent, at_next)
        at = at_next
    return high


def _inside(width: Floats, centres: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The probability of being off by at most the width, averaged over directions, and its derivative."""
    up, down = ((end[:, None] - centres) / deviation[:, None] for end in (width, -width))
    inside, density = scipy.special.ndtr(up), np.exp(up * up / -2)
    if down.max() > -_NEVER:
        inside -= scipy.special.ndtr(down)
        density += np.exp(down * down / -2)
    return inside.mean(axis=1), density.mean(axis=1) / (deviation * sqrt(2 * pi))


# Magnitudes cell by cell: interpolated between the optima of a few shapes by the relative sizes of contributors.

_POWER = 4  # the nearest shapes decide; a smaller power lets far ones in
_NEAREST = 1e-9
_AT_ONCE_CONTRIBUTOR_MAGNITUDES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Optima:
    """Shapes (one in a row, the sizes of contributors from the largest on) and the magnitudes found best for each.

    A magnitude is NaN where a shape has no such contributor, and then takes no part.
    """

    shapes: Floats
    magnitudes: Floats

    def __post_init__(self) -> None:
        shapes, magnitudes = self.shapes, self.magnitudes
        if shapes.ndim != 2 or magnitudes.ndim != 2 or len(shapes) != len(magnitudes) or not len(shapes):
            raise ValueError("shapes and magnitudes need a row for every optimum")
        if not (np.isfinite(shapes).all() and (shapes >= 0).all() and (shapes[:, 0] > 0).all()):
            raise ValueError("sizes must be numbers from 0 on, and the first above 0")
        if not (np.isnan(magnitudes) | (magnitudes >= 0)).all() or np.isnan(magnitudes).all(axis=0).any():
            raise ValueError("magnitudes must not be negative, and every contributor needs one in some shape")


def interpolated_magnitudes(shares: Floats, optima: Optima) -> Floats:
    """The magnitudes of every cell's contributors: a mean of the optima, weighted by how near their shapes are.

    A row of `shares` has the absolute sizes of a cell's contributors, the largest first, in any unit and with as many
    columns as the shapes; only their proportions count. Nearness is the inverse fourth power of the distance between
    proportions, so that a cell of exactly one of the shapes has its magnitudes and no cell has more than the largest or
    less than the least of all. A cell of nothing but zeros has the magnitudes of equal contributors.

    >>> optima = Optima(shapes=np.array([[90.0, 10.0], [50.0, 50.0]]), magnitudes=np.array([[0.1, 0.1], [0.5, 0.3]]))
    >>> interpolated_magnitudes(np.array([[9.0, 1.0], [7.0, 3.0]]), optima).round(3).tolist()
    [[0.1, 0.1], [0.3, 0.2]]
    """
    if shares.ndim != 2 or shares.shape[1] != optima.shapes.shape[1]:
        raise ValueError(f"a cell needs the sizes of {optima.shapes.shape[1]} contributors, 0 where there are fewer")
    found = np.empty((len(shares), optima.magnitudes.shape[1]))
    shapes, present = _proportions(optima.shapes), ~np.isnan(optima.magnitudes)
    values = np.where(present, optima.magnitudes, 0.0)
    for begin in range(0, len(shares), _AT_ONCE_CONTRIBUTOR_MAGNITUDES):
        piece = slice(begin, begin + _AT_ONCE_CONTRIBUTOR_MAGNITUDES)
        apart = _proportions(shares[piece])[:, None, :] - shapes[None, :, :]
        nearness = np.maximum(np.sqrt((apart * apart).sum(axis=2)), _NEAREST) ** -_POWER
        found[piece] = (nearness @ values) / (nearness @ present)
    return found


def _proportions(sizes: Floats) -> Floats:
    total = sizes.sum(axis=1, keepdims=True)
    proportions: Floats = np.where(total > 0, sizes / np.where(total > 0, total, 1), 1 / sizes.shape[1])
    return proportions


# The magnitudes that Chipperfield and others (2019) found best for nine shapes of a cell.

PUBLISHED_OPTIMA: dict[str, tuple[float, ...]] = {
    "90,5,5": (0.15, 0.1, 0.1),
    "80,10,5,5": (0.15, 0.1, 0.1),
    "70,20,10": (0.15, 0.1, 0.1),
    "60,20,10,10": (0.2, 0.1, 0.1),
    "60,40": (0.25, 0.15),
    "50,20,20,10": (0.25, 0.15, 0.1),
    "40,30,30": (0.3, 0.2, 0.1),
    "30,30,30,10": (0.4, 0.3, 0.2),
    "25,25,25,25": (0.5, 0.4, 0.3),
}
"""By the relative sizes of a cell's contributors; for the three largest, where there are so many."""
CONTRIBUTORS = 3
"""How many contributors these magnitudes are for."""


def magnitudes_by_shape(shape: Shape) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The magnitudes that `by_shape` gives a cell of a shape, and the same cell without its largest contributor.

    >>> magnitudes_by_shape(Shape.read("60,40"))[0][:2]
    (0.25, 0.15)
    """
    sizes = [abs(size) for size in shape.sizes] + [0.0] * CONTRIBUTORS
    cells = []
    for begin in (0, 1):
        largest = sizes[begin : begin + CONTRIBUTORS]
        cells.append([*largest, sum(sizes[begin + CONTRIBUTORS :]) + abs(shape.rest)])
    found = interpolated_magnitudes(np.array(cells), published_optima()).round(6)
    return tuple(found[0].tolist()), tuple(found[1].tolist())


def published_optima() -> Optima:
    """The nine shapes, each as its three largest contributors and all others together, with their magnitudes."""
    shapes = np.zeros((len(PUBLISHED_OPTIMA), CONTRIBUTORS + 1))
    magnitudes = np.full((len(PUBLISHED_OPTIMA), CONTRIBUTORS), np.nan)
    for row, (shape, found) in enumerate(PUBLISHED_OPTIMA.items()):
        sizes = [float(size) for size in shape.split(",")]
        shapes[row, : len(sizes)] = sizes
        magnitudes[row, : len(found)] = found
    return Optima(shapes=shapes, magnitudes=magnitudes)
