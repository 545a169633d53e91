"""A release of people over two years: counts, means, predictions and percentiles, written to a folder."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PEOPLE = 600
HEAD = """
[release]
title = "People who left"
population = "people who left"
period = "2001-2002"
budget = { epsilon = 10, definition = "individuals", conditional = true }

[data]
records = { path = "people.parquet", unit = "person", period = "year" }

[data.attributes]
year = { codes = ["2001", "2002"] }
title = { codes = ["faculty", "staff"] }
sector = { codes = ["a", "b", "c"] }
place = { codes = ["north", "south"] }

[data.measures]
rank = { unit = "percentiles", minimum = 0, maximum = 100 }
score = { minimum = 0, maximum = 100, outside = "clip" }
earnings = { unit = "dollars a year", minimum = 0, maximum = 200000, outside = "clip" }
"""
EMPLOYMENT = """
[[table]]
name = "employment"
count = "records"
by = ["title", "sector", "year"]
protect = { method = "laplace", epsilon = 2 }
"""
EARNINGS = """
[[table]]
name = "earnings"
mean = "earnings"
by = ["title", "sector", "year"]
decimals = 1
protect = { method = "mose", epsilon = 3, count_epsilon = 0.5, chi = 200000 }
"""
SCORES = """
[[table]]
name = "scores"
predict = { outcome = "score", on = "rank", at = [25, 75] }
by = ["title", "sector"]
where = { year = "2001" }
protect = { method = "mose", epsilon = 3, classes = ["title"] }
"""
PERCENTILES = """
[[table]]
name = "percentiles"
quantiles = { of = "earnings", at = [25, 50, 75], bins = { median = 40000, sigma = 0.6, number = 16 } }
by = ["year", "title"]
decimals = 0
protect = { method = "noisy-quantiles", epsilon = 2 }
"""
ALL = HEAD + EMPLOYMENT + EARNINGS + SCORES + PERCENTILES


def people(seed: int = 1) -> dict[str, np.ndarray]:
    """Everybody has a record in both years; a few earn more than the largest value that counts."""
    chance = np.random.default_rng(seed)
    person = np.repeat(np.arange(PEOPLE), 2)
    rank = np.repeat(chance.integers(0, 101, PEOPLE), 2)
    earned = np.rint(np.exp(chance.normal(np.log(40_000), 0.6, 2 * PEOPLE))).astype(np.int64)
    earned[:4] = 900_000
    return {
        "person": person,
        "year": np.tile(["2001", "2002"], PEOPLE),
        "title": np.repeat(chance.choice(["faculty", "staff"], PEOPLE), 2),
        "sector": chance.choice(["a", "b", "c"], 2 * PEOPLE),
        "place": np.repeat(chance.choice(["north", "south"], PEOPLE), 2),
        "rank": rank,
        "score": np.rint(0.5 * rank + chance.normal(25, 15, 2 * PEOPLE)).astype(np.int64),
        "earnings": earned,
    }


def written(folder: Path, text: str = ALL, *changes: tuple[str, str]) -> Path:
    """Write the data, if they are not there, and a release file with changes."""
    if not (folder / "people.parquet").exists():
        pq.write_table(pa.table(people()), folder / "people.parquet")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = folder / "release.toml"
    path.write_text(text, encoding="utf-8")
    return path
