"""Growth of totals from period to period: how far perturbation moves it, and by how much it may be off; confidential.

A unit moves its cell in one direction in every period, so that growth is more accurate than levels. Intervals come from
the perturbation that was really used: with A and B the totals of two periods, published growth is off by exactly
(P − A/B·P′)/(B + P′). Above, a unit of both periods has one direction, and one noise where both cells have the same
records; below is what was published.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.measures.formulas import ratio_interval
from sfumato.statistics.totals.attacks import Attacked, difference
from sfumato.statistics.totals.perturbation import NoiseSum, widths_around


@dataclass(frozen=True, kw_only=True)
class GrowthUtility:
    """How far published growth is off, over all cells that are published in two periods in a row; in points."""

    title: str
    pairs: int
    mean_error: float
    expected_error: float
    half_width: float
    """Half of the interval from the perturbation that was used, in the middle of all pairs."""
    covered: float
    """How often that interval holds the growth before perturbation."""
    readers_pairs: int
    """How many pairs have an interval that readers can make of those of both cells."""
    readers_half_width: float | None
    """Half of it, in the middle of these pairs; None where there are none."""
    readers_covered: float | None
    """How often it holds, among these pairs."""
    confidence: float

    def rows(self) -> list[tuple[str, str]]:
        """What to say of it, line by line."""
        readers = []
        if self.readers_half_width is not None and self.readers_covered is not None:
            readers = [
                ("readers' interval, ±", f"{self.readers_half_width:.2f} points"),
                ("…holds", f"{self.readers_covered:.1%}"),
            ]
        return [
            ("cells published in two periods in a row", f"{self.pairs:,}"),
            ("growth is off by, on average", f"{self.mean_error:.2f} points ({self.expected_error:.2f} expected)"),
            (f"{self.confidence:.0%} interval of the perturbation, ±", f"{self.half_width:.2f} points"),
            ("…holds", f"{self.covered:.1%}"),
            ("pairs of which readers can make an interval, from those of both cells", f"{self.readers_pairs:,}"),
            *readers,
        ]

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return {name: value for name, value in vars(self).items() if name != "title"}


def measure_growth(table: Attacked, period: str, *, title: str, confidence: float) -> GrowthUtility | None:
    """Compare growth as published with growth as it is; None where no cell is published in two periods in a row."""
    before, after = _in_a_row(table, period)
    told = table.seen[before] & table.seen[after] & (table.total[before] > 0) & (table.published[before] > 0)
    before, after = before[told], after[told]
    if not len(before):
        return None
    base = table.published[before]
    ratio = table.total[after] / table.total[before]
    noise = difference(table, after, table, before, times=ratio)
    off = 100 * np.abs(table.published[after] / base - ratio)
    width = 100 * half_widths_of(noise, confidence) / base
    low, high = readers_interval(table, before, after)
    known = ~np.isnan(low)
    return GrowthUtility(
        title=title,
        pairs=len(before),
        mean_error=float(off.mean()),
        expected_error=float((100 * noise.mean_magnitude() / base).mean()),
        half_width=float(np.median(width)),
        covered=float((off <= width + _ROUNDING / base).mean()),
        readers_pairs=int(known.sum()),
        readers_half_width=float(np.median(100 * (high - low)[known] / 2)) if known.any() else None,
        readers_covered=float(((low <= ratio) & (ratio <= high))[known].mean()) if known.any() else None,
        confidence=confidence,
    )


_ROUNDING = 100.0  # in percent of the base: values are whole numbers


def half_widths_of(noise: NoiseSum, confidence: float) -> Floats:
    """The least number so that each sum is no larger with the given probability; noise is taken as normal."""
    squares = (noise.own**2 + noise.other**2).sum(axis=1) * noise.spread**2 / 6
    normal = np.zeros(len(squares)) if noise.normal is None else noise.normal
    return widths_around(noise.own + noise.other, np.sqrt(squares + normal**2), confidence)


def readers_interval(table: Attacked, before: Integers, after: Integers) -> tuple[Floats, Floats]:
    """The ratio of two cells from their published intervals; NaN where these set no limit."""
    unknown = np.iinfo(np.int64).min
    low, high = (np.where(table.answer[end] == unknown, np.nan, table.answer[end]) for end in ("low", "high"))
    return ratio_interval((low[before], high[before]), (low[after], high[after]))


def _in_a_row(table: Attacked, period: str) -> tuple[Integers, Integers]:
    """The places of cells, and of the same cells one period later."""
    dimensions = table.counted.dimensions
    shape = tuple(map(len, dimensions))
    places = np.full(int(np.prod(shape)), -1, dtype=np.int64)
    places[table.counted.positions] = np.arange(len(table.counted))
    turned = np.moveaxis(places.reshape(shape), [d.name for d in dimensions].index(period), -1)
    before, after = turned[..., :-1].ravel(), turned[..., 1:].ravel()
    there = (before >= 0) & (after >= 0)
    return before[there], after[there]
