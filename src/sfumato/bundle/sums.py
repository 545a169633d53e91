"""Published tables added up over dimensions: sums of cells with errors and intervals, from published numbers alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa

from sfumato.agree.published import MEASURED
from sfumato.arrays import Flags, Floats, Integers
from sfumato.bundle.levels import Ascent
from sfumato.bundle.rows import Places, each_rows, places_of, together, with_codes
from sfumato.cells import Cells, Dimension
from sfumato.method import (
    CONFIDENCE,
    FOR_THE_LARGEST,
    SCALE,
    AddsUp,
    PublishedFigures,
    bought_widening,
    published_figures,
)
from sfumato.noise.sums import spread
from sfumato.statistics.registry import built_again

NO_ASCENTS: Mapping[str, Ascent] = MappingProxyType({})
"""Every dimension is added up by its own codes."""
_ROUNDING = 0.005
"""Published errors are rounded to hundredths."""
_WORTH = 0.95
"""Another table is named where its errors are at most so many times as large."""
_RAISED = (
    "Negative values of this table were published as 0, so sums come out too high: `error` has what that adds on "
    "average, and `low` is 0."
)
_RAISED_AND_AGREED = (
    "Negative values of this table were published as 0, and tables were made to agree: sums may be too high or too "
    "low. `error` has what cells at 0 add on average, and `low` is 0; `high` takes no notice of what is too low."
)
_SUMMED = (
    "Every cell has noise of its own: `error`, `low` and `high` follow from the noise of all cells of a sum, with a "
    f"confidence of {CONFIDENCE:.0%}."
)


@dataclass(frozen=True, kw_only=True)
class Better:
    """Another table of the bundle that has the same figures with smaller errors."""

    table: str
    error: float
    """Its mean error."""
    instead_of: float
    """The mean error of the sums."""

    def __str__(self) -> str:
        return (
            f"Table '{self.table}' has the same figures with smaller errors, {self.error:,.4g} on average instead of "
            f"{self.instead_of:,.4g}."
        )


def adds_up(about: Mapping[str, Any]) -> bool:
    """Whether a table is one of counts or totals of whose sums the noise is known."""
    return bool(about.get("noise")) and not {"count", "total"}.isdisjoint(about["statistic"])


def time_of(about: Mapping[str, Any]) -> frozenset[str]:
    """The dimensions of a table that are periods."""
    return frozenset(dimension["name"] for dimension in about["dimensions"] if dimension["role"] == "time")


def summed_rows(
    bundle: Path,
    about: Mapping[str, Any],
    asked: Sequence[str],
    codes: Mapping[str, Sequence[str]],
    kept: Mapping[str, Sequence[str]],
    *,
    ascents: Mapping[str, Ascent] = NO_ASCENTS,
) -> tuple[pa.Table, tuple[str, ...], bool]:
    """The cells of a table with the codes that are kept added up by some dimensions, and what is to be said of it.

    `codes` has those of every dimension of the table, and of every level that `ascents` lead to. The last value is
    whether every cell is in a sum.
    """
    cells = PublishedCells.read(bundle, about, codes, kept)
    chosen, places, lost = cells.chosen, [], []
    for name in asked:
        way = ascents.get(name)
        place = cells.places[name if way is None else way.dimension]
        if way is not None:
            own_codes = codes[way.dimension]
            lost += way.note(own_codes[at] for at in np.unique(place[cells.chosen]))
            places_above = {code: at for at, code in enumerate(codes[name])}
            above = [places_above.get(way.parents.get(code, ""), -1) for code in own_codes]
            place = np.array(above, dtype=np.int64)[place]
            chosen = chosen & (place >= 0)
        places.append(np.maximum(place, 0))
    lengths = tuple(len(codes[name]) for name in asked)
    own = np.ravel_multi_index(places, lengths) if places else np.zeros(len(cells.value), dtype=np.int64)
    found, figures = cells.summed(np.where(chosen, own, -1))
    at = np.unravel_index(found, lengths) if lengths else ()
    columns: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), pa.array(codes[name], pa.string()))
        for name, place in zip(asked, at, strict=True)
    }
    return pa.table(columns | figures), (*cells.notes, *lost, *_absent(about, asked, kept)), not lost


def better_table(rows: pa.Table, asked: Sequence[str], others: Mapping[str, pa.Table]) -> Better | None:
    """The table among others by the same dimensions whose figures have the smallest errors, if these are smaller."""
    found = []
    own = _errors(rows, asked)
    for name, other in others.items():
        errors = _errors(other, asked)
        if own.keys() <= errors.keys():
            one, two = (np.array([some[key] for key in own], dtype=np.float64) for some in (errors, own))
            found.append(Better(table=name, error=float(one.mean()), instead_of=float(two.mean())))
    best = min(found, key=lambda better: better.error, default=None)
    return best if best is not None and best.error < _WORTH * best.instead_of else None


def _errors(rows: pa.Table, by: Sequence[str]) -> dict[tuple[str, ...], float]:
    keys = zip(*(rows[name].cast(pa.string()).to_pylist() for name in by), strict=True) if by else [()] * len(rows)
    return dict(zip(keys, rows["error"].to_pylist(), strict=False))


@dataclass(frozen=True, kw_only=True)
class PublishedCells:
    """The cells of a table as a bundle has them, whole workplace cells side by side."""

    method: AddsUp
    cells: Cells
    """Those with noise."""
    noisy: Flags
    """Which rows these are."""
    value: Integers
    agreed: bool
    """Whether tables were made to agree: errors are then those of agreed values, and follow no single cell's noise."""
    figures: PublishedFigures
    places: Mapping[str, Places]
    chosen: Flags
    """Which rows are asked for, in workplace cells that are."""
    establishments: Integers | None
    raised: bool
    """Whether negative values were published as 0, and are not known any more."""
    confidence: float

    @classmethod
    def read(
        cls,
        bundle: Path,
        about: Mapping[str, Any],
        codes: Mapping[str, Sequence[str]],
        kept: Mapping[str, Sequence[str]],
    ) -> "PublishedCells":
        """The cells of all workplace cells that have the codes that are kept; every one of them, for its noise."""
        names = [dimension["name"] for dimension in about["dimensions"]]
        public = {*about["noise"]["workplace"], *time_of(about)}
        inside = {name: some for name, some in kept.items() if name in public}
        rows = together(with_codes(some, inside) for some in each_rows(bundle, about))
        places = dict(zip(names, places_of(rows, names, codes), strict=True))
        positions = np.ravel_multi_index([*places.values()], tuple(len(codes[name]) for name in names))
        order = np.argsort(positions)
        rows, places = rows.take(order), {name: place[order] for name, place in places.items()}
        chosen = np.ones(len(rows), dtype=bool)
        for name, some in kept.items():
            if name not in public:
                chosen &= np.isin(places[name], [list(codes[name]).index(code) for code in some])
        value = _numbers(rows, "value").astype(np.int64)
        number = _numbers(rows, "establishments").astype(np.int64) if "establishments" in rows.column_names else None
        error = _numbers(rows, "error")
        noisy = error > 0  # others are exact
        columns = {"value": value} | ({} if number is None else {"establishments": number})
        if SCALE in rows.column_names:
            columns[SCALE] = np.nan_to_num(_numbers(rows, SCALE)).astype(np.int64)
        dimensions = tuple(Dimension(name=name, codes=tuple(codes[name]), public=name in public) for name in names)
        return cls(
            method=cast(AddsUp, built_again(about["method"], about["noise"]["parameters"])),
            cells=Cells(
                dimensions=dimensions,
                positions=positions[order][noisy],
                columns={name: column[noisy] for name, column in columns.items()},
            ),
            noisy=noisy,
            value=value,
            agreed=MEASURED in rows.column_names,
            figures=PublishedFigures(error=error, low=_numbers(rows, "low"), high=_numbers(rows, "high")),
            places=places,
            chosen=chosen,
            establishments=number,
            raised=about["nonnegative"],
            confidence=CONFIDENCE
            + (FOR_THE_LARGEST if about.get("largest_from") or about.get("bought_steps") else 0.0),
        )

    def summed(self, own: Integers) -> tuple[Integers, dict[str, pa.Array]]:
        """Sums of the cells that have the same number, none of those below 0: the numbers, and the figures of each."""
        found, sums = np.unique(own[own >= 0], return_inverse=True)
        which = np.full(len(own), -1, dtype=np.int64)
        which[own >= 0] = sums
        value, figures = sum_figures(self, which, len(found))
        columns = {"value": pa.array(value), "error": pa.array(np.round(figures.error, 2))}
        columns |= {end: pa.array(getattr(figures, end), from_pandas=True).cast(pa.int64()) for end in ("low", "high")}
        if self.establishments is not None:
            columns["establishments"] = pa.array(_establishments(self, which, len(found)))
        return found, columns

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of sums of them."""
        raised = _RAISED_AND_AGREED if self.agreed else _RAISED
        return (_SUMMED, *([raised] if self.raised else []))


def _numbers(rows: pa.Table, column: str) -> Floats:
    """A column as numbers; NaN where nothing is said."""
    numbers: Floats = rows[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def sum_figures(cells: PublishedCells, which: Integers, sums: int) -> tuple[Integers, PublishedFigures]:
    """The sums of values and how far they are off, given the sum that each cell is in, or −1."""
    inside = which >= 0
    value = _added(cells.value[inside], which[inside], sums)
    noisy = cells.noisy & inside
    number = np.bincount(which[noisy], minlength=sums)
    error = cells.figures.error[cells.noisy] + _ROUNDING
    if not cells.agreed:  # what is published may be widened, but not narrowed
        error = np.minimum(published_figures(cast(Any, cells.method), cells.cells, cells.confidence).error, error)
    own = which[cells.noisy]
    found = spread(cells.method.noise_parts(cells.cells, own, error), sums, cells.confidence)
    wider = error * _widened(cells, error, own)
    if (wider > error).any():
        ends = spread(cells.method.noise_parts(cells.cells, own, wider), sums, cells.confidence)
        found = replace(found, below=ends.below, above=ends.above)
    no_limit = np.bincount(which[noisy], np.isnan(cells.figures.high[noisy]), minlength=sums) > 0
    low = np.maximum(np.ceil(value - found.below), 0.0)
    high = np.where(no_limit, np.nan, np.floor(np.maximum(value, 0) + found.above))
    off = found.error
    if cells.raised:
        zero = noisy & (cells.value == 0)
        off = off + np.bincount(which[zero], cells.figures.error[zero], minlength=sums)
        low = np.zeros(sums)
    figures = PublishedFigures(error=off, low=low, high=high).beside(value)
    # What is exact stays so, and a sum with the noise of one cell has the figures of that cell.
    only = np.flatnonzero(noisy & (number[which] == 1))
    for name in ("error", "low", "high"):
        column = getattr(figures, name)
        column[number == 0] = value[number == 0] if name != "error" else 0.0
        column[which[only]] = getattr(cells.figures, name)[only]
    return value, figures


def _widened(cells: PublishedCells, error: Floats, which: Integers) -> Floats:
    """By what the error of each cell is multiplied for the interval of its sum: 1, but where scales were bought.

    Errors suppose a scale that is exceeded in one of ten cases. Among many cells that is far more than enough; of the
    workplace cell with the largest error, which may have most of the noise, as much is supposed as for intervals of
    its own.
    """
    factors: Floats = np.ones(len(error))
    inside = np.flatnonzero(which >= 0)
    widening = bought_widening(cast(Any, cells.method))
    if widening == 1 or not len(inside):
        return factors
    order = inside[np.lexsort((error[inside], which[inside]))]
    last = order[np.append(which[order][1:] != which[order][:-1], True)]
    block = np.empty(len(error), dtype=np.int64)
    rows = cells.cells.blocks()
    block[rows] = np.arange(len(rows))[:, None]
    chosen = np.full(which.max() + 1, -1, dtype=np.int64)
    chosen[which[last]] = block[last]
    factors[inside[chosen[which[inside]] == block[inside]]] = widening
    return factors


def _added(column: Integers, which: Integers, sums: int) -> Integers:
    total = np.zeros(sums, dtype=np.int64)
    np.add.at(total, which, column)
    return total


def _establishments(cells: PublishedCells, which: Integers, sums: int) -> Integers:
    """The establishments of the workplace cells of every sum: all worker cells of one show the same number."""
    block = np.zeros(len(which), dtype=np.int64)
    for dimension in cells.cells.dimensions:
        if dimension.public:
            block = block * len(dimension) + cells.places[dimension.name]
    inside = np.flatnonzero(which >= 0)
    _, first = np.unique(np.stack([block[inside], which[inside]]), axis=1, return_index=True)
    return _added(cast(Integers, cells.establishments)[inside][first], which[inside][first], sums)


def _absent(about: Mapping[str, Any], asked: Sequence[str], kept: Mapping[str, Sequence[str]]) -> list[str]:
    """Codes that periods of a series did not have, and that sums lack there."""
    (time,) = time_of(about) or ("",)
    lacking = [
        f"{period} ({name} {', '.join(lost)})"
        for period, unknown in about.get("absent", {}).items()
        for name, codes in unknown.items()
        if period in kept.get(time, [period]) and name not in asked
        if (lost := [code for code in codes if code in kept.get(name, codes)])
    ]
    return [f"Periods that did not have all codes are added up without them: {'; '.join(lacking)}."] if lacking else []
