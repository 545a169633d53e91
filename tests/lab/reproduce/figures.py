"""What the tests of all reproductions look for: rows of a kind, and the frame that page, CSV file and object share."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, Any]


class Reproduced(Protocol):
    def rows(self) -> Iterator[Row]: ...


def rows(found: Reproduced, quantity: str, **about: object) -> list[Row]:
    """The rows of a quantity about something."""
    return [
        row
        for row in found.rows()
        if row["quantity"] == quantity and all(row.get(name) == value for name, value in about.items())
    ]


def written(
    found: Reproduced, write: Callable[..., Any], summary: Callable[..., Any], folder: Path, *, paper: str, charts: int
) -> tuple[dict[str, Any], str]:
    """The object for machines and the text of the page, after a look at what all of them have."""
    page, table = write(found, folder)
    assert (page.name, table.name) == (f"{paper}.html", f"{paper}.csv")
    _, data = summary(found, page, table)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["paper"] == paper
    assert all({"quantity", "published", "ours"} <= row.keys() for row in data["rows"])
    with table.open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == len(data["rows"]) == len(list(found.rows()))
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == charts
    assert "<script" not in text
    return data, text
