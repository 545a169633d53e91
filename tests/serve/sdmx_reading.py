"""What clients of SDMX read, with the codes of the bundle in place of identifiers."""

import re
from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sfumato.bundle.read import open_cube

LETTERS = {
    "": "A",
    "suppressed": "Q",
    "synthesised": "E",
    "not available": "M",
    "mostly perturbation": "U",
    "below": "D",
    "above": "D",
    "error unknown": "Q",
}
"""What docs/serve-sdmx.md calls the statuses of bundles."""
Figures = dict[tuple[str, ...], tuple[float | None, str]]
"""By codes and metric, the figure and its status."""


def code_of(id: str) -> str:  # noqa: A002
    """The code that an identifier stands for, by the rule that docs/serve-sdmx.md states."""
    return re.sub(r"\$([0-9A-F]+)\$", lambda found: chr(int(found[1], 16)), id.removeprefix("_"))


def read(records: Iterable[Mapping[str, Any]], by: Iterable[str], value: str = "OBS_VALUE") -> Figures:
    """The figures of rows that a client made of a message."""
    found: Figures = {}
    for row in records:
        codes = tuple(row[name] if name == "TIME_PERIOD" else code_of(row[name]) for name in (*by, "CONTENTS"))
        assert codes not in found
        figure = None if row[value] in ("", None) or isnan(float(row[value])) else float(row[value])
        status, withheld = (str(getattr(row[name], "value", row[name])) for name in ("OBS_STATUS", "CONF_STATUS"))
        assert withheld == ("C" if status == "Q" else "F")
        found[codes] = (figure, status)
    return found


def of_bundle(bundle: Path, table: str, by: Iterable[str], metrics: Iterable[str], *, value: str) -> Figures:
    """The figures of a published table, with the status that SDMX has for that of the bundle; `value` is called so."""
    rows = pq.read_table(bundle / f"tables/{table}.parquet").to_pylist()
    found: Figures = {}
    for row in rows:
        status = LETTERS[row.get("status") or ""]
        for metric in metrics:
            if row[metric] is None:
                own = status if row["value"] is None or metric == "value" else "O"
            else:
                own = "A" if metric != "value" else "U" if status == "A" and is_uncertain(row) else status
            found[*(row[name] for name in by), value if metric == "value" else metric] = (row[metric], own)
    return found


def is_uncertain(row: Mapping[str, Any]) -> bool:
    """Whether the error of a value is a quarter of it or more, or one of its error figures cannot be told."""
    if any(row.get(name, 0) is None for name in ("rse", "error", "low", "high")):
        return True
    share = row["rse"] if "rse" in row else 100 * row["error"] / abs(row["value"] or 1) if "error" in row else 0
    return bool(share >= 25)


def of_cube(bundle: Path, cube: str, by: list[str], codes: Iterable[tuple[str, ...]]) -> Figures:
    """The weighted counts of a cube with their errors."""
    answer = open_cube(bundle, cube).totals(by)
    pairs = zip(codes, answer.values.ravel().tolist(), answer.errors.ravel().tolist(), strict=True)
    found: Figures = {}
    for cell, value, error in pairs:
        found[*cell, "weighted"] = (value, "U" if 4 * error >= abs(value) else "A")
        found[*cell, "weighted_error"] = (error, "A")
    return found
