"""Many pairs of neighbouring databases in one cube, and how far its published numbers tell them apart.

A place is one pair: its side `a` has some records in level 1, its side `b` one more. All noise of a place is its own,
so that places are independent draws of the whole publication about one database.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.stats import beta

from sfumato.arrays import Floats
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from sfumato.running import run
from tests.conftest import write

HEAD = """\
[release]
title = "Pairs"
population = "records"
period = "2025"
budget = { epsilon = 100, delta = 0.1, definition = "individuals" }

[data]
records = { path = "records.parquet", unit = "id" }

[data.attributes]
place = { codelist = "places.csv" }
side = { codes = ["a", "b"] }
level = { codes = ["1", "2"] }

[data.measures]
pay = { minimum = 0 }

[[cube]]
name = "cube"
by = ["place", "side", "level"]
"""
CHANCE_OF_ERROR = 1e-6
"""Of either Clopper-Pearson bound."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What was published: for every place and side one row of numbers, of both levels and all columns."""

    guarantee: EmployerEmployee
    columns: tuple[str, ...]
    first: Floats
    second: Floats

    def loss(self) -> float:
        """A lower bound of the privacy loss: the event is searched on one half of the places, and tried on the other.

        Beside the event is δ, which the guarantee allows for.
        """
        half = len(self.first) // 2
        events = [(likely, *event) for likely in (0, 1) for event in _events(self.first[:half])]
        best = max(events, key=lambda event: self._bound(slice(half), *event))
        return self._bound(slice(half, None), *best)

    def _bound(self, places: slice, likely: int, direction: int, threshold: float) -> float:
        """What one event shows of some places, by Clopper-Pearson bounds of its two chances."""
        sides = (self.first[places], self.second[places])
        more, less = (int(_inside(sides[at], direction, threshold).sum()) for at in (likely, 1 - likely))
        n = len(sides[0])
        least = beta.ppf(CHANCE_OF_ERROR, more, n - more + 1) - float(self.guarantee.delta) if more else 0.0
        return log(least / beta.ppf(1 - CHANCE_OF_ERROR, less + 1, n - less)) if least > 0 and less < n else 0.0


def _events(rows: Floats) -> Iterator[tuple[int, float]]:
    levels = np.unique(np.quantile(rows[:, 0], np.linspace(0.02, 0.98, 33)))
    return ((direction, float(level)) for direction in (-1, 0, 1) for level in levels)


def _inside(rows: Floats, direction: int, threshold: float) -> NDArray[np.bool_]:
    """Where the numbers of level 1 are all at most, all about, or all at least so large."""
    if direction == 0:
        return np.asarray((np.abs(rows - threshold) < 0.25).all(axis=1))
    return np.asarray((direction * (rows - threshold) >= -0.25).all(axis=1))


def published_pairs(
    folder: Path, cube: str, *, places: int, records: int = 3, weight: float | None = None, pay: int | None = None
) -> Pairs:
    """Run a release of as many pairs, with so many records or one more; every record has the same weight and pay."""
    folder.mkdir(parents=True, exist_ok=True)
    codes = [f"p{number:06}" for number in range(places)]
    (folder / "places.csv").write_text("code\n" + "\n".join(codes) + "\n", encoding="utf-8")
    per_place = [("a", "1")] * records + [("b", "1")] * (records + 1) + [("a", "2"), ("b", "2")] * 3
    n = places * len(per_place)
    columns = {
        "id": np.arange(n),
        "place": np.repeat(codes, len(per_place)),
        "side": np.tile([side for side, _ in per_place], places),
        "level": np.tile([level for _, level in per_place], places),
        "pay": np.full(n, 0 if pay is None else pay),
    }
    text = HEAD + cube
    if weight is not None:
        columns["weight"] = np.full(n, weight)
        text = text.replace('unit = "id"', 'unit = "id", weight = "weight"')
    write(folder / "records.parquet", columns)
    (folder / "release.toml").write_text(text, encoding="utf-8")
    published = run(load(folder / "release.toml"))
    table = pq.read_table(published.bundle / "cubes/cube.parquet")
    planned = published.plan.cubes[0]
    names = tuple(name for name in table.column_names if name not in planned.section.by)
    # In units of one record; the average pay is one unit of the noise of its total.
    units = {"count": 1e6, "weighted": 1e6 * (weight or 1.0), "pay": 1e3 * (pay or 1) * (weight or 1.0)}
    told = [table[name].to_numpy().reshape(places, 2, 2)[:, :, 0] / units[name] for name in names]
    return Pairs(
        guarantee=planned.guarantee,
        columns=names,
        first=np.stack([column[:, 0] for column in told], axis=1),
        second=np.stack([column[:, 1] for column in told], axis=1),
    )
