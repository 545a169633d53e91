"""Small registers of businesses, whose cells can be counted by hand."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HEAD = """
[release]
title = "{title}"
population = "businesses"
period = "2025"
ledger = "ledger.sqlite"
bundle = "{bundle}"
{about}

[data]
records = {{ path = "records.parquet", unit = "business"{records} }}

[data.attributes]
place = {{ codes = ["A", "B", "C", "D"], levels = {{ region = {{ N = ["A", "B"], S = ["C", "D"] }} }} }}
sector = {{ codes = ["1", "2", "3"] }}

[data.measures]
turnover = {{ unit = "dollars" }}

"""
RULES = 'method = "suppression", minimum_units = 3, p = 15'


def write_records(folder: Path) -> None:
    """Sixty businesses: two in the cell A × 1, one large one in B × 2, and many in all others."""
    rows = [("A", "1", 50), ("A", "1", 40), ("B", "2", 900), ("B", "2", 10), ("B", "2", 8), ("B", "2", 7)]
    for place, sector in [(p, s) for p in "ABCD" for s in "123"]:
        if (place, sector) not in (("A", "1"), ("B", "2")):
            rows += [(place, sector, 20 + 3 * at + ord(place) % 7) for at in range(5)]
    pq.write_table(
        pa.table(
            {
                "business": [f"b{at}" for at in range(len(rows))],
                "group": [f"g{at // 2}" for at in range(len(rows))],
                "place": [place for place, *_ in rows],
                "sector": [sector for _, sector, _ in rows],
                "turnover": [value for *_, value in rows],
                "asked": [value != 900 for *_, value in rows],
                "weight": [1.0 + (at % 4) / 8 for at in range(len(rows))],
            }
        ),
        folder / "records.parquet",
    )


def release_file(
    folder: Path,
    tables: Sequence[str],
    *,
    name: str = "release",
    about: str = "",
    records: str = "",
    rules: str = RULES,
) -> Path:
    """Write a release file with sections such as `name; total = "turnover"; by = […]`, all under the same rules."""
    text = HEAD.format(title=name, bundle=f"{name}_bundle", about=about, records=f", {records}" if records else "")
    for table in tables:
        keys = [part.strip() for part in table.split(";")]
        own = "" if any(key.startswith("protect") for key in keys) else f"protect = {{ {rules} }}"
        text += "\n".join([f'[[table]]\nname = "{keys[0]}"', *keys[1:], own, "", ""])
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path
