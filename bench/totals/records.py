"""Records of businesses with three attributes and values with a heavy tail, and releases that ask for their total."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.shared.release import listed, numbered
from sfumato.keys import new_key

RECORDS = 10_000_000
"""The size that the target is about."""
ATTRIBUTES = {"region": 10, "industry": 20, "product": 25}
"""How many codes each has: 5,000 cells in all."""
TABLE = "turnover"

_RELEASE = """\
[release]
title = "Turnover by region, industry and product"
period = "2025"
key = "sfumato.key"
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
records = {{ path = "records.parquet", unit = "business"{weight} }}

[data.attributes]
{attributes}

[data.measures]
turnover = {{ unit = "dollars", minimum = 0 }}

[[table]]
name = "{table}"
total = "turnover"
by = {by}
protect = {{ method = "top-contributors" }}
"""


@dataclass(frozen=True, kw_only=True)
class RecordFiles:
    """The records, and two releases of the same table: every record counting once, and with weights."""

    records: Path
    plain: Path
    weighted: Path


def write_records(folder: Path, *, records: int) -> RecordFiles:
    """Draw the records, the same ones every time, and write them with a key and both releases."""
    rng = np.random.default_rng(5)
    columns: dict[str, object] = {"business": np.arange(1, records + 1)}
    for name, size in ATTRIBUTES.items():
        # Cells of very different sizes: the first code of each attribute is several times as frequent as the last.
        share = np.arange(1, size + 1) ** -0.5
        drawn = rng.choice(size, records, p=share / share.sum()).astype(np.int32)
        columns[name] = pa.DictionaryArray.from_arrays(drawn, codes_of(name))
    columns["turnover"] = np.floor(np.exp(rng.normal(10.0, 1.6, records))).astype(np.int64)
    columns["weight"] = np.round(rng.uniform(1.0, 50.0, records), 2)
    path = folder / "records.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    new_key(folder / "sfumato.key")
    return RecordFiles(
        records=path, plain=_write(folder, "plain", ""), weighted=_write(folder, "weighted", ', weight = "weight"')
    )


def codes_of(attribute: str) -> list[str]:
    """The codes of an attribute, which end in their number."""
    return [f"{attribute[0].upper()}{number:02d}" for number in range(ATTRIBUTES[attribute])]


def _write(folder: Path, name: str, weight: str) -> Path:
    path = folder / f"{name}.toml"
    attributes = numbered((attribute, codes_of(attribute)) for attribute in ATTRIBUTES)
    text = _RELEASE.format(name=name, weight=weight, attributes=attributes, table=TABLE, by=listed(ATTRIBUTES))
    path.write_text(text, encoding="utf-8")
    return path
