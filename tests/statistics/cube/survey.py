"""A small survey with weights and replicates, and a release file that publishes a cube of it."""

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.cells import Dimension
from tests.conftest import write

CODES = {"region": ("N", "E", "S", "W"), "job": ("a", "b", "c"), "level": ("1", "2")}
DIMENSIONS = tuple(Dimension(name=name, codes=codes) for name, codes in CODES.items())

RELEASE = """\
[release]
title = "A survey"
population = "people"
period = "2025"
budget = { alpha = 1, epsilon = 8, delta = 0.01, definition = "individuals" }

[data]
engine = "duckdb"
records = { path = "records.parquet", unit = "id", weight = "weight", replicates = { columns = "rw_*", rule = \
"successive-difference" } }

[data.attributes]
region = { codes = ["N", "E", "S", "W"] }
job = { codes = ["a", "b", "c"] }
level = { codes = ["1", "2"] }

[data.measures]
pay = { unit = "dollars" }

"""
CUBE = """\
[[cube]]
name = "people"
title = "People by region, job and level"
by = ["region", "job", "level"]
epsilon = 2
cap = 7
controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]
measures = ["pay"]
"""


def records(n: int = 400, seed: int = 1, replicates: int = 8) -> dict[str, list[Any]]:
    """Columns of so many records; nobody has job c at level 2 in the west."""
    rng = np.random.default_rng(seed)
    region, job, level = (rng.integers(0, len(codes), n) for codes in CODES.values())
    level[(region == 3) & (job == 2)] = 0
    weight = np.round(rng.lognormal(3, 0.7, n) + 1, 4)
    columns: dict[str, Any] = {
        "id": list(range(n)),
        **{
            name: [CODES[name][place] for place in places]
            for name, places in (("region", region), ("job", job), ("level", level))
        },
        "pay": rng.integers(0, 5_000, n).tolist(),
        "weight": weight.tolist(),
    }
    for r in range(replicates):
        columns[f"rw_{r + 1}"] = np.round(weight * rng.choice([0.293, 1.0, 1.707], n), 4).tolist()
    return columns


def release(folder: Path, *changes: tuple[str, str], text: str = RELEASE + CUBE, **columns: list[Any]) -> Path:
    """The survey and its release file in a folder, with changes to either; returns the release file."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "records.parquet", records() | columns)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "release.toml"
    file.write_text(text, encoding="utf-8")
    return file
