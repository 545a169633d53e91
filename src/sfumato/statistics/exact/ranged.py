"""Ranges instead of numbers in all tables together, with the proof; and what readers can work out of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.exact.ranges import Classes, Ranged, bounded, publish_ranges
from sfumato.exact.rules import Protection
from sfumato.exact.system import System
from sfumato.keys import Secret
from sfumato.method import SUPPRESSED
from sfumato.statistic import Busy
from sfumato.statistics.exact.contributions import ABOUT_PARTS
from sfumato.statistics.exact.decide import (
    Batch,
    Decision,
    Known,
    link,
    part_of,
    shares_in,
    with_differences_of,
)
from sfumato.statistics.exact.linked import Linked

NO_END = -1
"""What stands for the upper end of a range that has none."""


def ranged(
    batch: Batch,
    known: Known,
    secret: Secret | None,  # noqa: ARG001 (there is no chance)
    busy: Busy,
    last: Mapping[str, Cells],  # noqa: ARG001 (classes are the same in all periods)
) -> Decision:
    """Ranges for the tables of every measure together; others share no sum with them."""
    measures = dict.fromkeys(one.question.measure for one, _ in batch.values())
    return Decision.together(
        _of_measure(
            {name: one for name, one in batch.items() if one[0].question.measure == measure},
            {name: one for name, one in known.items() if one[0].question.measure == measure},
            part_of(busy, "making ranges", at, len(measures)),
        )
        for at, measure in enumerate(measures)
    )


def _of_measure(batch: Batch, known: Known, told: Any) -> Decision:
    tables = [*(one for one, _ in batch.values()), *(one for one, _, _ in known.values())]
    _refuse_other_classes(tables)
    method, cells = next(iter(batch.values()))[0].method, next(iter(batch.values()))[1]
    parts = int(cells[ABOUT_PARTS][0]) if len(cells) else 1
    found, protection = link(batch, known)
    seen = known_to_readers(found, {name: (cells, answer) for name, (_, cells, answer) in known.items()})
    sensitive = np.flatnonzero(protection.sensitive & ~seen.fixed)
    every = with_differences_of({**batch, **{name: (one, cells) for name, (one, cells, _) in known.items()}})
    made = publish_ranges(
        found.system,
        method.declared,
        sensitive,
        _asked_below(tables, found.system, protection, sensitive, parts),
        protection.up[sensitive],
        everywhere=any(one.method.everywhere for one in tables),
        parts=parts,
        seen=seen,
        joined=_joined_before(method.declared, found, known, parts),
        owner=protection.owner,
        shares=shares_in(found, every, protection.sensitive),
        told=told,
    )
    if not made.proved:
        raise MethodError(
            "ranges",
            expected="ranges and numbers that leave every sensitive cell an interval as wide as the rules ask for",
            found=f"{len(made.open)} sensitive cells that sums tell closer, to readers or those alone in other "
            "cells, whatever is a range",
            do="publish fewer or coarser tables, or choose weaker rules; or, if an earlier release tells too much "
            "already, leave out what is linked to it",
        )
    return Decision(
        answers={name: _answer(cells, found.places[name], made) for name, (_, cells) in batch.items()},
        sensitive={name: found.of(name, protection.sensitive) for name in batch},
    )


def _asked_below(tables: Iterable[Any], system: System, protection: Protection, cells: Integers, parts: int) -> Floats:
    """How far below its value every cell has to reach: not to zero, where everybody sees which cells are zero."""
    least = parts - parts // 2 if all(one.method.zeros == "published" for one in tables) else 0
    found: Floats = np.minimum(protection.down[cells], np.maximum(system.value[cells] - least, 0.0))
    return found


def _refuse_other_classes(tables: Iterable[Any]) -> None:
    """Ranges of other classes would cross, and tell more together than either."""
    methods = {one.name: one.method for one in tables}
    if len({one.declared for one in methods.values()}) > 1:
        raise MethodError(
            f"ranges of {', '.join(methods)}",
            expected="the same classes for all tables of a measure: ranges that cross tell more together",
            found="others",
            do="write the same `classes` or `width` in every table, as they were published",
        )


def known_to_readers(found: Linked, published: Mapping[str, tuple[Cells, Cells]]) -> System:
    """What readers know of every cell from published numbers and ranges, given with the true cells."""
    known = found.system
    for name, (cells, answer) in published.items():
        at = found.places[name]
        inside = at >= 0
        low, high = np.full(len(known), -np.inf), np.full(len(known), np.inf)
        parts, shown = np.ones(len(known), dtype=np.int64), np.zeros(len(known), dtype=bool)
        low[at[inside]], high[at[inside]] = answer["low"][inside], _ends(answer)[inside]
        parts[at[inside]], shown[at[inside]] = cells[ABOUT_PARTS][inside], answer["status"][inside] != SUPPRESSED
        known = bounded(known, shown, low, high, parts)
    return known


def _ends(answer: Cells) -> Floats:
    found: Floats = np.where(answer["high"] == NO_END, np.inf, answer["high"].astype(np.float64))
    return found


def _joined_before(classes: Classes, found: Linked, known: Known, parts: int) -> Integers:
    """How many times classes were joined for the cells that earlier releases show as ranges, and −1 for others."""
    joined = np.full(len(found.system), -1, dtype=np.int64)
    for name, (_, _, answer) in known.items():
        at = found.places[name]
        mine = (at >= 0) & (answer["status"] == SUPPRESSED)
        whole = (np.rint(found.system.value[at[mine]]).astype(np.int64) + parts // 2) // parts
        was = classes.joined(whole, answer["low"][mine].astype(np.float64), _ends(answer)[mine])
        joined[at[mine]] = np.maximum(joined[at[mine]], was)
    return joined


def _answer(cells: Cells, at: Integers, made: Ranged) -> Cells:
    """True values where they are shown, and the ends of ranges; known zeros are no cells of the system."""
    place, inside = np.maximum(at, 0), at >= 0
    ranges: Flags = inside & ~made.shown[place] if len(made.shown) else np.zeros(len(at), dtype=bool)
    low, high = (end[place] if len(end) else np.zeros(len(at)) for end in (made.low, made.high))
    ends = [np.where(ranges, end, cells["count"]) for end in (low, np.where(np.isinf(high), NO_END, high))]
    columns = {
        "value": np.where(ranges, 0, cells["count"]),
        "status": np.where(ranges, SUPPRESSED, 0).astype(np.int64),
        "low": ends[0].astype(np.int64),
        "high": ends[1].astype(np.int64),
    }
    if "establishments" in cells.columns:
        columns["establishments"] = cells["establishments"]
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)
