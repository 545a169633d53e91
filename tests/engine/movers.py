"""A small panel of movers, described, asked about and answered, for the tests of pairs and flows."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.noise.factors import Factors
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.panel.tabulate_pairs import pairs
from tests.conftest import write

FACTORS = Factors(key=bytes(range(16)), least=Fraction("0.15"), most=Fraction("0.25"))
PLACES, SEXES = ("A", "B", "C"), ("F", "M")
QUARTERS = ("2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4")

EMPLOYERS = {7: "B", 8: "A", 9: "B", 10: "A"}
WORKERS = {1: "F", 2: "M", 3: "F", 4: "M", 5: "M", 6: "F"}
Rows = list[tuple[int, int, int]]  # worker, employer, quarter from 0
PANEL: Rows = [
    *((1, 7, q) for q in (0, 1)),  # 1 leaves 7 and joins 8 in the second quarter
    *((1, 8, q) for q in (1, 2, 3)),
    *((2, 8, q) for q in (0, 1, 2)),  # 2 moves the other way in the third
    *((2, 7, q) for q in (2, 3)),
    *((3, 8, q) for q in (0, 1)),  # 3 moves within A, then to B
    *((3, 10, q) for q in (1, 2)),
    *((3, 9, q) for q in (2, 3)),
    *((4, 7, q) for q in (0, 1)),  # 4 does what 1 did
    *((4, 8, q) for q in (1, 2, 3)),
    *((5, 9, q) for q in (0, 1)),  # 5 has a quarter between two jobs, which is no move
    *((5, 10, q) for q in (3,)),
    *((6, 9, q) for q in (0,)),  # 6 changes in the first quarter, where nobody can tell
    *((6, 7, q) for q in (0, 1, 2, 3)),
]


def frame_of(folder: Path, rows: Rows, *, engine: str = "duckdb", text: bool = False, **changes: Any) -> Frame:
    folder.mkdir(exist_ok=True)
    named = (lambda e: f"48000000{e:04d}") if text else (lambda e: e)
    jobs = {
        "worker": [w for w, _, _ in rows],
        "workplace": [named(e) for _, e, _ in rows],
        "quarter": [QUARTERS[q] for _, _, q in rows],
        "pay": [100] * len(rows),
    }
    # Rows without earnings are no jobs.
    unpaid = {"worker": [1, 6], "workplace": [named(9), named(10)], "quarter": [QUARTERS[1]] * 2, "pay": [0, 0]}
    write(folder / "jobs.parquet", {name: column + unpaid[name] for name, column in jobs.items()})
    write(
        folder / "workplaces.parquet",
        {"workplace": [named(e) for e in EMPLOYERS], "place": list(EMPLOYERS.values())},
    )
    write(folder / "workers.parquet", {"worker": list(WORKERS), "sex": list(WORKERS.values())})
    panel = {"period": "quarter", "first": QUARTERS[0], "last": QUARTERS[-1], "earnings": "pay"}
    described: dict[str, Any] = {
        "engine": engine,
        "jobs": {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"} | panel,
        "workplaces": {"path": "workplaces.parquet", "key": "workplace"},
        "workers": {"path": "workers.parquet", "key": "worker"},
        "public": ["place"],
        "attributes": {"place": {"codes": list(PLACES)}, "sex": {"codes": list(SEXES)}},
        "folder": folder,
    }
    return Frame(**(described | changes))


def question(*others: Dimension, attribute: str = "place", **asked: Any) -> PairQuestion:
    codes = PLACES if attribute == "place" else SEXES
    ends = tuple(Dimension(name=f"{end}_{attribute}", codes=codes) for end in ("first", "second"))
    return PairQuestion(by=(*ends, *others), attributes=(attribute,), **asked)


def answer(frame: Frame, asked: PairQuestion, factors: Factors = FACTORS) -> Cells:
    with connect(frame) as tables:
        return pairs(frame, tables, {"t": asked}, factors)["t"]


def names(cells: Cells) -> list[str]:
    """The codes of every cell."""
    codes = np.stack([cells.codes(d.name) for d in cells.dimensions], axis=1)
    return [" ".join(d.codes[c] for d, c in zip(cells.dimensions, row, strict=True)) for row in codes]


def named(cells: Cells, column: str = "count") -> dict[str, int]:
    """The cells that are not zero, by their codes."""
    return {name: value for name, value in zip(names(cells), cells[column].tolist(), strict=True) if value}


PERIOD = Dimension(name="quarter", codes=QUARTERS)
SEX = Dimension(name="sex", codes=SEXES, public=False)
