"""A survey of persons with design weights, as files, and what is true of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HEAD = """\
[release]
title = "A survey of persons"
population = "persons"
period = "2025"
budget = { epsilon = 50, definition = "individuals", conditional = true }
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
engine = "duckdb"
records = { path = "persons.parquet", unit = "person", weight = "final wt." }

[data.attributes]
sex = { codes = ["F", "M"] }
school = { codes = ["1", "2", "3"] }

[data.measures]
pay = { minimum = 0, maximum = 500000, outside = "clip" }
rank = { minimum = 0, maximum = 100 }
"""
LARGEST = 500
STATISTICS = {
    "laplace": 'count = "records"',
    "noisy-quantiles": 'quantiles = { of = "pay", at = [25, 50, 75], bins = { median = 40000, sigma = 0.7, '
    "number = 40 } }\ndecimals = 0",
    "noisy-regression": 'predict = { outcome = "pay", on = "rank", at = [25, 75] }',
    "global-sensitivity": 'mean = "pay"',
    "mose": 'mean = "pay"',
    "theil-sen": 'predict = { outcome = "pay", on = "rank", at = [25] }\nunknown_errors = "published"',
    "local-sensitivity": 'mean = "pay"\nunknown_errors = "published"',
}
"""What each method is asked for."""


def table(method: str, options: str = f"largest_weight = {LARGEST}", *, name: str = "people", epsilon: int = 2) -> str:
    """A table by sex and school."""
    protect = f'method = "{method}", epsilon = {epsilon}' + (f", {options}" if options else "")
    return f'\n[[table]]\nname = "{name}"\n{STATISTICS[method]}\nby = ["sex", "school"]\nprotect = {{ {protect} }}\n'


def drawn(people: int, seed: int = 3) -> dict[str, Any]:
    """Persons of four strata, of whom few stand for many and many for few."""
    rng = np.random.default_rng(seed)
    school = rng.choice(["1", "2", "3"], people, p=[0.3, 0.5, 0.2])
    sex = rng.choice(["F", "M"], people)
    design = rng.choice([20.0, 80.0, 200.0, 450.0], people, p=[0.4, 0.35, 0.2, 0.05])
    logs = 10.5 + 0.3 * (school == "3") + 0.2 * (sex == "M") - 0.001 * design + 0.6 * rng.standard_normal(people)
    return {
        "person": np.arange(people),
        "sex": sex,
        "school": school,
        "final wt.": np.round(design * rng.uniform(0.9, 1.1, people), 3),
        "pay": np.minimum(np.exp(logs), 499_000).astype(np.int64),
        "rank": rng.integers(0, 101, people),
    }


def write(folder: Path, columns: dict[str, Any], tables: str, *, head: str = HEAD) -> Path:
    """The records and a release file; its path."""
    pq.write_table(pa.table(columns), folder / "persons.parquet")
    path = folder / "release.toml"
    path.write_text(head + tables, encoding="utf-8")
    return path


def weighted_percentiles(values: Any, weights: Any, shares: Sequence[float]) -> Any:
    """Where so much of the weight is below, halfway between neighbours."""
    order = np.argsort(values)
    values, weights = np.asarray(values)[order], np.asarray(weights)[order]
    return np.interp(shares, (np.cumsum(weights) - weights / 2) / weights.sum(), values)
