"""A business register with women and men in two columns, in several files, and a release of two tables of each."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench.shared.release import numbered

ESTABLISHMENTS = 8_000_000
"""The size that the target is about."""
COUNTIES, INDUSTRIES = 3_000, 20
KINDS = {
    "text": "texts for keys, Parquet",
    "whole": "whole numbers for keys, Parquet",
    "text_csv": "texts for keys, CSV",
    "whole_csv": "whole numbers for keys, CSV",
}
TABLES = {"by_industry": ("county", "industry"), "by_sex": ("county", "sex")}
_MOST = 20_000

_RELEASE = """\
[release]
title = "Jobs of a register"
period = "2025"
budget = {{ alpha = 0.1, epsilon = 4.0 }}
ledger = "{kind}.sqlite"
bundle = "{kind}.bundle"

[data]
jobs = {{ path = "{file}", workplace = "id", employees = {{ F = "women", M = "men" }} }}
public = ["county", "industry"]

[data.attributes]
{attributes}

[[table]]
name = "by_industry"
count = "jobs"
by = ["county", "industry"]
protect = {{ method = "smooth-pareto", epsilon = 1.0 }}

[[table]]
name = "by_sex"
count = "jobs"
by = ["county", "sex"]
protect = {{ method = "smooth-pareto", epsilon = 1.0 }}
"""


def write_registers(folder: Path, *, establishments: int) -> dict[str, Path]:
    """Draw a register, the same one every time, and write it in every kind of file, each with its release."""
    rng = np.random.default_rng(18)
    codes = {"county": _codes("C", COUNTIES), "industry": _codes("I", INDUSTRIES)}
    columns: dict[str, object] = {"number": rng.permutation(establishments) + 1}
    for name, listed in codes.items():
        drawn = rng.integers(len(listed), size=establishments, dtype=np.int32)
        columns[name] = pa.DictionaryArray.from_arrays(drawn, listed)
    for name in ("women", "men"):  # a third of the establishments without, and a few with thousands
        columns[name] = np.minimum(rng.pareto(1.2, establishments) * 1.8, _MOST).astype(np.int32)
    register, found = pa.table(columns), {}
    with duckdb.connect() as connection:
        connection.register("register", register)
        for kind in KINDS:
            key = "'B-' || lpad(number::varchar, 9, '0')" if kind.startswith("text") else "number"
            file = folder / (f"{kind}.csv" if kind.endswith("csv") else f"{kind}.parquet")
            connection.execute(
                f"copy (select {key} as id, county::varchar as county, industry::varchar as industry, women, men "
                f"from register) to '{file}'"
            )
            found[kind] = folder / f"{kind}.toml"
            attributes = numbered([*codes.items(), ("sex", ["F", "M"])])
            text = _RELEASE.format(kind=kind, file=file.name, attributes=attributes)
            found[kind].write_text(text, encoding="utf-8")
    return found


def _codes(letter: str, number: int) -> list[str]:
    return [f"{letter}{place:04d}" for place in range(number)]
