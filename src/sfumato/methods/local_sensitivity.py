"""By how much one more person can change a statistic of the people at hand; docs/methods/small-samples.md proves it."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.methods.regression import LineSums


@dataclass(frozen=True, kw_only=True, eq=False)
class Reach:
    """The least and the greatest change of a statistic that adding one legal record can make, by group.

    >>> Reach(least=np.array([-3.0]), most=np.array([2.0])).sensitivity().tolist()
    [3.0]
    """

    least: Floats
    most: Floats

    def sensitivity(self) -> Floats:
        """The local sensitivity: the larger of the two."""
        return np.maximum(np.abs(self.least), np.abs(self.most))

    def clipped(self, value: Floats, low: float, high: float) -> "Reach":
        """The same for the statistic moved into its bounds; clipping keeps order, so the ends stay the ends."""
        before = np.clip(value, low, high)
        ends = (np.clip(value + change, low, high) - before for change in (self.least, self.most))
        least, most = ends
        return Reach(least=least, most=most)


def prediction_reach(line: LineSums, rank: Fraction, *, low_x: int, high_x: int, low_y: int, high_y: int) -> Reach:
    """How far one added record (x, y) of whole numbers within the bounds can move α + β·rank; NaN without a line.

    With everything centred, the change is

        (y − ȳ − β(x − x̄)) · (S + n·ρ·(x − x̄)) / ((n + 1)·S + n·(x − x̄)²),   S = Σ(x − x̄)²,  ρ = rank − x̄.

    It is linear in y, so y is at an end. In x it is a quotient of quadratics with two stationary points, one on each
    side of x̄; it is monotone between them. Its extremes over the whole numbers are next to these, or at the ends: the
    four corners alone are not enough, above all in small groups.
    """
    defined = line.is_defined()
    # Everything is multiplied by n, so that each number is exact until it becomes a float: no digits cancel.
    n = line.n.astype(np.float64)
    spread = np.where(defined, line.spread.astype(np.float64), np.nan)
    slope = line.joint.astype(np.float64) / spread
    rho = (line.n * rank.numerator - line.x * rank.denominator).astype(np.float64) / rank.denominator
    mass = (n + 1) * spread

    def change(x: Floats, u: Floats) -> Floats:
        d = n * x - line.x.astype(np.float64)
        with np.errstate(invalid="ignore"):
            found: Floats = (u - slope * d) / n * (spread + rho * d) / (mass + d * d)
        return found

    least, most = np.full(len(n), np.inf), np.full(len(n), -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = line.x.astype(np.float64) / n
        for y in (low_y, high_y):
            u = (line.n * y - line.y).astype(np.float64)
            places = [np.full(len(n), float(low_x)), np.full(len(n), float(high_x))]
            for root in _stationary(a=-slope * rho, b=u * rho - slope * spread, c=u * spread, e=mass):
                place = np.clip(np.nan_to_num(root / n + mean, nan=low_x), low_x, high_x)
                places += [np.floor(place), np.ceil(place)]
            for x in places:
                moved = change(x, u)
                least, most = np.fmin(least, moved), np.fmax(most, moved)
    return Reach(least=np.where(defined, least, np.nan), most=np.where(defined, most, np.nan))


def mean_reach(cells: Cells, *, low_y: int, high_y: int) -> Reach:
    """How far one added record can move a mean: (y − ȳ)/(n + 1) at the ends of y; NaN for empty groups."""
    n = cells["count"].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, cells["sum_y"] / n, np.nan)
    return Reach(least=(low_y - mean) / (n + 1), most=(high_y - mean) / (n + 1))


def _stationary(*, a: Floats, b: Floats, c: Floats, e: Floats) -> tuple[Floats, Floats]:
    """Where (a·d² + b·d + c)/(d² + e) has slope 0: the roots of b·d² − 2(a·e − c)·d − b·e, found without cancellation.

    Their product is −e: one is on each side of 0, and at b = 0 one is 0 and the other infinitely far out.
    """
    p = a * e - c
    q = p + np.where(p < 0, -1.0, 1.0) * np.hypot(p, b * np.sqrt(e))
    return q / b, -b * e / q
