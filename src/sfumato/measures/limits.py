"""What it costs to hide whole units: the records that a limit leaves out, and the noise that hides as many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.measures.drawing import table

_LIMITS = (2, 3, 5, 10, 20, 50)
"""Limits of records of a unit that are compared."""


@dataclass(frozen=True, kw_only=True)
class LimitTried:
    """A limit of records of a unit: what it leaves out, and the noise that hides as many."""

    most: int
    """1 stands for protecting a record: nothing is left out."""
    left_out: int
    noise: float
    """The mean absolute noise of a cell at the same ε and δ."""


@dataclass(frozen=True, kw_only=True)
class LimitCost:
    """What it costs to hide whole units, beside hiding one record."""

    unit: str
    most: int
    units: int
    above: int
    """How many units have more records than are counted."""
    records: int
    left_out: int
    weight_left_out: float | None
    """The share of all weights; None without weights."""
    missing: float
    """By how much a cell with records is too low on average, because some are left out."""
    error: float
    """The mean absolute difference of published counts from those of all records, in cells with records."""
    tried: tuple[LimitTried, ...]


def limit_cost(
    limit: Any,
    sizes: Mapping[int, int],
    *,
    everything: Integers,
    counted: Integers,
    published: Floats,
    noise: Callable[[int], float],
    weights: tuple[int, int] | None = None,
) -> LimitCost:
    """Compare cells of the records that are counted with those of all records, and with what is published of them.

    `sizes` is how many units have so many records, `noise` the mean absolute noise that hides so many, and `weights`
    what counted and all records weigh.
    """
    held = everything > 0

    def left_out(most: int) -> int:
        return sum((size - most) * units for size, units in sizes.items() if size > most)

    return LimitCost(
        unit=limit.column,
        most=limit.most,
        units=sum(sizes.values()),
        above=sum(units for size, units in sizes.items() if size > limit.most),
        records=sum(size * units for size, units in sizes.items()),
        left_out=left_out(limit.most),
        weight_left_out=None if weights is None else 1 - weights[0] / max(weights[1], 1),
        missing=float((everything - counted)[held].mean()) if held.any() else 0.0,
        error=float(np.abs(published - everything)[held].mean()) if held.any() else 0.0,
        tried=tuple(
            LimitTried(most=most, left_out=0 if most == 1 else left_out(most), noise=noise(most))
            for most in sorted({1, limit.most, *_LIMITS})
        ),
    )


def limit_words(limit: LimitCost) -> str:
    """What hiding whole units costs, in a sentence or two."""
    weight = "" if limit.weight_left_out is None else f", with {limit.weight_left_out:.2%} of all weights"
    one = next(part for part in limit.tried if part.most == 1)
    own = next(part for part in limit.tried if part.most == limit.most)
    return (
        f"At most {limit.most:,} records of one {limit.unit} are counted: {limit.above:,} of {limit.units:,} have "
        f"more, and {limit.left_out:,} of {limit.records:,} records are left out{weight}. A cell with records is too "
        f"low by {limit.missing:.3g} on average, and off by {limit.error:.3g} with its noise; noise alone is "
        f"{own.noise:.3g}, and it would be {one.noise:.3g} if a record was hidden and not a whole {limit.unit}. All "
        "further figures compare with the records that are counted."
    )


def limit_section(limit: LimitCost | None) -> str:
    """The same for the report, with other limits beside it; nothing where all records are counted."""
    if limit is None:
        return ""
    rows = (
        (
            "a record" if part.most == 1 else f"a {limit.unit}, at most {part.most:,} records",
            f"{part.left_out:,}",
            f"{part.left_out / max(limit.records, 1):.2%}",
            f"{part.noise:.4g}",
        )
        for part in limit.tried
    )
    headings = ("what is hidden", "records left out", "share", "mean absolute noise of a cell")
    words = f"<p>{escape(limit_words(limit))}</p>"
    return words + table("Hiding whole units, at the same epsilon and delta", headings, rows)
