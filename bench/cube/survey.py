"""Records of a survey with ten attributes, and a release that publishes a cube of them with eleven controls."""

from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.shared.release import listed, numbered

CUBE = "survey"
QUOTES = 2_000_000
"""The size that the targets are about."""
ATTRIBUTES = {
    "occupation": 75,
    "strength": 5,
    "education": 4,
    "keyboarding": 4,
    "credentials": 4,
    "hazards": 3,
    "standing": 3,
    "pace": 3,
    "experience": 5,
    "telework": 2,
}
"""How many codes each has: 6.48 million cells in all."""
CELLS = prod(ATTRIBUTES.values())
THREE_WAY = ("occupation", "strength", "education")

_RELEASE = """\
[release]
title = "What jobs require"
period = "2025"
budget = {{ alpha = 1, epsilon = 5, delta = 1e-4, definition = "individuals" }}

[data]
records = {{ path = "records.parquet", unit = "quote", weight = "weight" }}

[data.attributes]
{attributes}

[[cube]]
name = "{cube}"
by = {by}
epsilon = 2
cap = 7
controls = [
{controls}
]
least_count = 10
largest_cv = 0.3
"""


def write_survey(folder: Path, *, records: int) -> Path:
    """Draw the records, the same ones every time, and write them with their release file, which is returned."""
    rng = np.random.default_rng(6)
    columns: dict[str, object] = {"quote": np.arange(1, records + 1)}
    for name, size in ATTRIBUTES.items():
        share = np.arange(1, size + 1) ** -0.5  # some codes are several times as frequent as others
        drawn = rng.choice(size, records, p=share / share.sum()).astype(np.int32)
        columns[name] = pa.DictionaryArray.from_arrays(drawn, codes_of(name))
    columns["weight"] = np.round(rng.lognormal(3.0, 0.6, records) + 1, 4)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "records.parquet", compression="zstd")
    controls = [*((name,) for name in ATTRIBUTES), THREE_WAY]
    text = _RELEASE.format(
        cube=CUBE,
        by=listed(ATTRIBUTES),
        attributes=numbered((name, codes_of(name)) for name in ATTRIBUTES),
        controls="\n".join(f"    {{ by = {listed(by)}, epsilon = 0.2 }}," for by in controls),
    )
    file = folder / "release.toml"
    file.write_text(text, encoding="utf-8")
    return file


def codes_of(attribute: str) -> list[str]:
    """The codes of an attribute, which end in their number."""
    return [f"{attribute[:2]}{number:02d}" for number in range(ATTRIBUTES[attribute])]
