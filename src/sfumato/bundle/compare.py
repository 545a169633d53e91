"""Two cells of a published table compared: their difference and growth with intervals, from published numbers alone."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.bundle.read import Selected, select_rows
from sfumato.errors import SfumatoError
from sfumato.measures.formulas import ratio_interval
from sfumato.method import CONFIDENCE
from sfumato.statistics.cube.cube_query import Where

TOGETHER = round(1 - 2 * (1 - CONFIDENCE), 6)
"""How often both intervals hold, at the least: each may fail as often as it says, whatever the two have in common."""
FIGURES = ("before", "after", "change", "change_low", "change_high", "growth", "growth_low", "growth_high")
"""What is told of a pair; growth is in percent."""


def compare_rows(
    bundle: Path, name: str, dimension: str, codes: tuple[str, str], *, where: Where | None = None
) -> Selected:
    """The cells of two codes of a dimension side by side, with intervals of their difference and of the growth.

    Intervals follow from those of both cells, and hold in four of five cases at least. What two cells have in common,
    such as the directions in which the same businesses move them, makes differences more accurate than that; by how
    much, only the office can tell, because it depends on the businesses (`sfumato assess`).
    """
    if codes[0] == codes[1]:
        raise SfumatoError(
            f"table '{name}'", expected="two codes to compare", found=f"{codes[0]!r} twice", do="name another code"
        )
    # Each by itself, so that one that does not exist is refused in words.
    before, after = (select_rows(bundle, name, where={**(where or {}), dimension: (code,)}) for code in codes)
    if not {"low", "high"} <= set(before.rows.column_names):
        raise SfumatoError(
            f"table '{name}'",
            expected="a table with published intervals, `low` and `high`",
            found=f"the columns {', '.join(before.rows.column_names)}",
            do="compare the values without an interval",
        )
    if "threshold" in before.rows.column_names:
        raise SfumatoError(
            f"table '{name}'",
            expected="a table that lists every cell",
            found="one that lists values from a threshold on",
            do="compare the values that `sfumato query` gives for each code; what is not listed is below the threshold",
        )
    others = [column for column in _dimensions(before.rows) if column != dimension]
    both = _beside(before.rows, after.rows, others)
    ends = {end: [_numbers(rows, end) for rows in both] for end in ("value", "low", "high")}
    (first, second), (low, least), (high, most) = ends["value"], ends["low"], ends["high"]
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.where(first > 0, second / first, np.nan)
    shares = (growth, *ratio_interval((low, high), (least, most)))
    figures = (
        *(first, second, second - first, least - high, most - low),
        *(100 * (share - 1) for share in shares),
    )
    columns = {name: both[0][name] for name in others}
    columns |= {
        name: pa.array(np.round(column, 2), from_pandas=True) for name, column in zip(FIGURES, figures, strict=True)
    }
    return Selected(title=before.title, unit=before.unit, rows=pa.table(columns), summed=())


def _dimensions(rows: pa.Table) -> list[str]:
    names: list[str] = rows.column_names
    return names[: names.index("value")]


def _beside(one: pa.Table, other: pa.Table, by: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The rows of both tables that have the same codes, in the same order."""
    keys = [list(zip(*(rows[name].to_pylist() for name in by), strict=True)) for rows in (one, other)]
    if not by:
        return one, other
    places = {key: at for at, key in enumerate(keys[1])}
    kept = [(at, places[key]) for at, key in enumerate(keys[0]) if key in places]
    first, second = (np.array(column, dtype=np.int64) for column in zip(*kept, strict=True)) if kept else (_NONE, _NONE)
    return one.take(pa.array(first)), other.take(pa.array(second))


_NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def _numbers(rows: pa.Table, column: str) -> Floats:
    """A column as numbers; NaN where nothing was published."""
    numbers: Floats = rows[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
