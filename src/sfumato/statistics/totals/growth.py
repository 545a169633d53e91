"""Growth of totals from period to period: how far perturbation moves it, by how much it may be off, whom it shows.

A unit moves its cell in one direction in every period, so that growth is more accurate than levels. With A and B the
totals of two periods, P and P′ what they are moved by, published growth is off by exactly (P − A/B·P′)/(B + P′). A unit
of both periods has one direction, and one noise where both cells have the same records. What the office measures is
made of the true contributors and is confidential; what is published is made of contributors after perturbation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.frame.periods import in_time
from sfumato.measures.attacks import AttackResult
from sfumato.measures.formulas import ratio_interval
from sfumato.statistics.totals.attacks import Attacked, difference
from sfumato.statistics.totals.perturbation import NoiseSum, widths_around

DISCLOSED = 1.0
"""In percentage points: who knows the growth of a unit to within this knows it."""
DOMINANT = 0.5
"""A unit with more than this share of a cell in both periods is attacked."""

# Which cells are one period, or a year, apart.


def earlier_places(codes: Sequence[str], since: str) -> tuple[int, ...]:
    """The place of the period that each is compared with; −1 where it is not among them.

    Codes that are no years, quarters or months are taken in their order, and have no year before.

    >>> earlier_places(("2025-01", "2025-02", "2026-01"), "previous"), earlier_places(("2025-01", "2026-01"), "year")
    ((-1, 0, -1), (-1, 0))
    """
    periods = in_time(codes)
    if not periods:
        return tuple(range(-1, len(codes) - 1)) if since == "previous" else (-1,) * len(codes)
    places = {period.number: place for place, period in enumerate(periods)}
    back = 1 if since == "previous" else periods[0].in_a_year
    return tuple(places.get(period.number - back, -1) for period in periods)


def cells_apart(counted: Cells, period: str, earlier: Sequence[int]) -> tuple[Integers, Integers]:
    """The places of cells, and of the same cells in the period that each is compared with: those before, and after."""
    dimensions = counted.dimensions
    shape = tuple(map(len, dimensions))
    places = np.full(int(np.prod(shape)), -1, dtype=np.int64)
    places[counted.positions] = np.arange(len(counted))
    turned = np.moveaxis(places.reshape(shape), [d.name for d in dimensions].index(period), -1)
    known = np.array([place >= 0 for place in earlier])
    before, after = turned[..., np.array(earlier)[known]].ravel(), turned[..., known].ravel()
    there = (before >= 0) & (after >= 0)
    return before[there], after[there]


# How far it is off: confidential.


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
    since: str = "previous"
    median_error: float = 0.0

    @property
    def words(self) -> str:
        """What is measured."""
        return "growth" if self.since == "previous" else "growth over a year"

    def rows(self) -> list[tuple[str, str]]:
        """What to say of it, line by line."""
        readers = []
        if self.readers_half_width is not None and self.readers_covered is not None:
            readers = [
                ("readers' interval, ±", f"{self.readers_half_width:.2f} points"),
                ("…holds", f"{self.readers_covered:.1%}"),
            ]
        when = "two periods in a row" if self.since == "previous" else "two periods a year apart"
        return [
            (f"cells published in {when}", f"{self.pairs:,}"),
            ("growth is off by, on average", f"{self.mean_error:.2f} points ({self.expected_error:.2f} expected)"),
            ("…in the middle of all cells", f"{self.median_error:.2f} points"),
            (f"{self.confidence:.0%} interval of the perturbation, ±", f"{self.half_width:.2f} points"),
            ("…holds", f"{self.covered:.1%}"),
            ("pairs of which readers can make an interval, from those of both cells", f"{self.readers_pairs:,}"),
            *readers,
        ]

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return {name: value for name, value in vars(self).items() if name != "title"}


def measure_growth(
    table: Attacked, period: str, *, title: str, confidence: float, since: str = "previous"
) -> GrowthUtility | None:
    """Compare growth as published with growth as it is; None where no cell is published in two such periods."""
    before, after = seen_apart(table, period, since)
    if not len(before):
        return None
    base = table.published[before]
    ratio = table.total[after] / table.total[before]
    noise = difference(table.moves, after, table.moves, before, times=ratio, spread=table.method.spread_of_noise)
    off = 100 * np.abs(table.published[after] / base - ratio)
    width = 100 * half_widths_of(noise, confidence) / base
    low, high = readers_interval(table, before, after)
    known = ~np.isnan(low)
    return GrowthUtility(
        title=title,
        pairs=len(before),
        mean_error=float(off.mean()),
        median_error=float(np.median(off)),
        expected_error=float((100 * noise.mean_magnitude() / base).mean()),
        half_width=float(np.median(width)),
        covered=float((off <= width + _ROUNDING / base).mean()),
        readers_pairs=int(known.sum()),
        readers_half_width=float(np.median(100 * (high - low)[known] / 2)) if known.any() else None,
        readers_covered=float(((low <= ratio) & (ratio <= high))[known].mean()) if known.any() else None,
        confidence=confidence,
        since=since,
    )


_ROUNDING = 100.0  # in percent of the base: values are whole numbers


def seen_apart(table: Attacked, period: str, since: str) -> tuple[Integers, Integers]:
    """The cells that are published in two such periods, and from something on."""
    codes = next(d.codes for d in table.counted.dimensions if d.name == period)
    before, after = cells_apart(table.counted, period, earlier_places(codes, since))
    told = table.seen[before] & table.seen[after] & (table.total[before] > 0) & (table.published[before] > 0)
    return before[told], after[told]


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


# Whom it shows.


def attack_growth(table: Attacked, period: str) -> tuple[AttackResult, ...]:
    """Take the growth of a cell for that of the unit that dominates it: the same key moves both periods alike.

    The guess is what the growth of the true totals tells of it: what perturbation of levels was never meant to hide.
    """
    before, after = seen_apart(table, period, "previous")
    first, second = (table.weighted(0, 1)[places] for places in (before, after))
    same = (table.words(0)[before, 0] == table.words(0)[after, 0]) & (first > 0)
    for size, places in ((first, before), (second, after)):
        same &= size > DOMINANT * table.total[places]
    before, after, first, second = before[same], after[same], first[same], second[same]
    if not len(before):
        return ()
    grown = second / first
    told, true = (figures[after] / figures[before] for figures in (table.published, table.total))
    successes, guessed = (int((100 * np.abs(one - grown) <= DISCLOSED).sum()) for one in (told, true))
    name = f"growth of a cell taken for that of the unit with most of it (within {DISCLOSED:g} point)"
    return (AttackResult(attack=name, targets=len(before), successes=successes, guessed=guessed),)
