"""People typed by hand over two years, and a plain reckoning of what their groups add up to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.cells import Dimension
from sfumato.frame.records import Microdata
from sfumato.statistics.people.question import BoundedMeasure
from tests.conftest import write

# Tract t1 is in state A, t2 and t3 in B; nobody of t3 was there in 2001.
#         person year tract state  x     y
PEOPLE = """
               1 2001   t1     A   0    10
               2 2001   t1     A  40    30
               3 2001   t1     A 100   900
               4 2001   t2     B  50   -70
               1 2002   t1     A   0    20
               2 2002   t2     B  60    20
               4 2002   t3     B  90    40
               5 2002   t3     B 140    41
"""
CODES = {"year": ("2001", "2002"), "tract": ("t1", "t2", "t3"), "state": ("A", "B")}
YEAR, TRACT, STATE = (Dimension(name=name, codes=codes) for name, codes in CODES.items())
X, Y = BoundedMeasure(name="x", low=0, high=100), BoundedMeasure(name="y", low=0, high=100)
RECORDS = {"path": "people.parquet", "unit": "person", "period": "year"}


def by_hand() -> dict[str, list[Any]]:
    """The people typed above, as the columns of a file."""
    rows = [line.split() for line in PEOPLE.strip().splitlines()]
    person, year, tract, state, x, y = (list(column) for column in zip(*rows, strict=True))
    return {
        "person": list(map(int, person)),
        "year": list(map(int, year)),
        "tract": tract,
        "state": state,
        "x": list(map(int, x)),
        "y": list(map(int, y)),
    }


def described(folder: Path, columns: Mapping[str, list[Any]] | None = None, **changes: Any) -> Microdata:
    """Write people to a file and describe them, their values clipped into 0 to 100."""
    write(folder / "people.parquet", dict(columns or by_hand()))
    bounded = {"minimum": 0, "maximum": 100, "outside": "clip"}
    known: dict[str, Any] = {
        "records": RECORDS,
        "attributes": {name: {"codes": list(codes)} for name, codes in CODES.items()},
        "measures": {"x": bounded, "y": bounded},
        "folder": folder,
    }
    return Microdata(**(known | changes))
