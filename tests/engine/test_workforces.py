"""Workforces are the same on every engine, equal to counting by hand."""

from pathlib import Path

import numpy as np
import pytest

from sfumato.cells import Dimension
from sfumato.engine.connect import connect
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.sparse_laplace import Workforces
from sfumato.statistics.jobs.tabulate import tabulate, workforces
from tests.conftest import tiny_frame

CODES = {"place": ("A", "B"), "industry": ("11", "62"), "sex": ("F", "M"), "age": ("1", "2", "3")}


def asked(*by: str, every_cell: bool = False, **where: tuple[str, ...]) -> Question:
    dimensions = tuple(
        Dimension(name=name, codes=tuple(code for code in CODES[name] if code in where.get(name, CODES[name])))
        for name in by
    )
    return Question(by=dimensions, where=where, every_cell=every_cell)


def counted(folder: Path, engine: str, question: Question) -> Workforces:
    frame = tiny_frame(folder, engine=engine)
    with connect(frame) as tables:
        return dict(workforces(frame, tables, {"": question}))[""]


def rows(found: Workforces) -> list[tuple[int, int, int, int]]:
    """Block, worker cell, size of the establishment and jobs, of every row."""
    columns = (found.blocks[found.block], found.inside, found.size, found.jobs)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_every_establishment_has_its_jobs_by_worker_cell_and_its_whole_size(tiny: Path, engine: str) -> None:
    found = counted(tiny, engine, asked("sex", "place"))
    # 100 in A: two women and a man; 101 in A: one of each; 102 in B: two women, one with a second job, and a man.
    assert rows(found) == [(0, 0, 2, 1), (0, 0, 3, 2), (0, 1, 2, 1), (0, 1, 3, 1), (1, 0, 3, 2), (1, 1, 3, 1)]
    assert found.blocks.tolist() == [0, 1]
    assert found.largest.tolist() == [3, 3]
    assert found.establishments is not None
    assert found.establishments.tolist() == [3, 1], "103 has no jobs and is there all the same"
    assert sorted(set(zip(found.unit.tolist(), found.size.tolist(), strict=True))) == [(0, 3), (1, 2), (2, 3)]


def test_a_filter_leaves_out_workers_and_not_the_size_of_their_establishment(tiny: Path) -> None:
    found = counted(tiny, "duckdb", asked("age", "place", sex=("F",)))
    assert found.size.tolist().count(3) == len(found.size) - 1
    assert found.jobs.sum() == 5
    assert found.largest.tolist() == [3, 3]


@pytest.mark.parametrize("by", [("sex", "place"), ("place", "age", "sex"), ("age", "industry", "sex", "place")])
def test_sums_of_workforces_are_the_cells_with_jobs_of_an_ordinary_table(tiny: Path, by: tuple[str, ...]) -> None:
    frame = tiny_frame(tiny)
    with connect(frame) as tables:
        cells = tabulate(frame, tables, {"": asked(*by)})[""]
    sums = counted(tiny, "duckdb", asked(*by)).counts()
    some = cells["count"] > 0
    assert np.array_equal(sums.positions, cells.positions[some])
    assert np.array_equal(sums["count"], cells["count"][some])


def test_where_establishments_are_not_told_every_workplace_cell_is_a_block(tiny: Path) -> None:
    found = counted(tiny, "duckdb", asked("sex", "place", "industry", every_cell=True))
    assert found.blocks.tolist() == [0, 1, 2, 3]
    assert found.largest.tolist() == [3, 2, 0, 3]
    assert found.establishments is None
