"""A table in parts has, all parts together, the cells of the table in one piece, each once."""

from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.chunks import Chunk
from sfumato.engine.chunks import CELLS_OF_A_CHUNK, IN_ONE_PIECE, Chunked, ChunkLayout, cut, each_chunk
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.noise.factors import Factors
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import parted, tabulate
from tests.conftest import tiny_frame, write
from tests.engine.test_tabulate import QUESTIONS, joined_frame

FACTORS = Factors(key=bytes(16), least=Fraction("0.15"), most=Fraction("0.25"))
EVERYTHING = frozenset({"count", "largest_employer", "count_below_threshold", "distorted", "remainder"})


def asked(question: Question, frame: Frame) -> Question:
    """The question with every column that can be counted, its dimensions told apart as a release does."""
    by = tuple(replace(dimension, public=frame.is_public(dimension.name)) for dimension in question.by)
    return replace(question, by=by, needs=EVERYTHING, threshold=3)


def together(parts: list[Cells]) -> Cells:
    positions = np.concatenate([part.positions for part in parts])
    order = np.argsort(positions)
    columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0].columns}
    return Cells(dimensions=parts[0].dimensions, positions=positions[order], columns=columns)


def counted(table: Chunked) -> list[Cells]:
    rows = table.rows.fetch()
    return [table.layout.cells(rows.filter(pc.equal(rows["_part"], part))) for part in range(table.layout.parts)]


@pytest.mark.parametrize("joined", [False, True], ids=["linked", "joined"])
@pytest.mark.parametrize("parts", [1, 2, 3, None])
def test_parts_together_are_the_table_in_one_piece(tiny: Path, engine: str, parts: int | None, joined: bool) -> None:
    frame = joined_frame(tiny, engine=engine) if joined else tiny_frame(tiny, engine=engine)
    questions = {name: asked(question, frame) for name, question in QUESTIONS.items()}
    with connect(frame) as tables:
        whole = tabulate(frame, tables, questions, FACTORS)
        with parted(frame, tables, questions, dict.fromkeys(questions, parts), FACTORS) as cut_up:
            found = {name: counted(table) for name, table in cut_up.items()}
    assert {name for name, cells in found.items() if not together(cells).equals(whole[name])} == set()
    assert max(map(len, found.values())) == (parts or 1)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_table_alone_is_cut_as_among_others(tiny: Path, name: str) -> None:
    frame = tiny_frame(tiny)
    question = replace(asked(QUESTIONS[name], frame), needs=frozenset())
    with connect(frame) as tables:
        whole = tabulate(frame, tables, {name: question})[name]
        with parted(frame, tables, {name: question}, {name: 2}) as cut_up:
            assert together(counted(cut_up[name])).equals(whole)


def test_every_part_is_worked_on_once_with_its_own_rows(tiny: Path) -> None:
    frame = tiny_frame(tiny)
    question = asked(QUESTIONS["two public attributes"], frame)
    seen: list[tuple[int, set[int]]] = []

    def work(rows: pa.Table) -> Chunk:
        numbers = set(rows["_part"].to_pylist())
        seen.append((min(numbers), numbers))
        return Chunk(number=min(numbers), name="", rows=len(rows), sha256="", bytes=0)

    with connect(frame) as tables, parted(frame, tables, {"q": question}, {"q": 3}, FACTORS) as cut_up:
        told = list(each_chunk(tables.engine, cut_up["q"], work))
    assert sorted(seen) == [(number, {number}) for number in range(3)]
    assert sorted(part.number for part in told) == [0, 1, 2]


def test_work_that_fails_is_told_and_stops_the_rest(tiny: Path) -> None:
    frame = tiny_frame(tiny)

    def work(rows: pa.Table) -> Chunk:
        raise OSError(f"no space for {len(rows)} rows")

    with (
        connect(frame) as tables,
        parted(frame, tables, {"q": asked(QUESTIONS["worker attributes"], frame)}, {"q": 2}, FACTORS) as cut_up,
        pytest.raises(OSError, match="no space"),
    ):
        list(each_chunk(tables.engine, cut_up["q"], work))


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(1, 5_000_000),
    st.one_of(st.none(), st.integers(1, 60)),
)
def test_parts_are_ranges_of_like_size_that_leave_nothing_out(
    counted: list[int], width: int, cells: int, parts: int | None
) -> None:
    starts = cut(counted, width=width, cells_of_a_block=cells, parts=parts)
    assert starts[0] == 0
    assert list(starts) == sorted(set(starts))
    assert all(start % width == 0 for start in starts)
    ends = [*(start // width for start in starts[1:]), len(counted)]
    sizes = [sum(counted[start // width : end]) for start, end in zip(starts, ends, strict=True)]
    assert sum(sizes) == sum(counted)
    assert len(starts) == 1 or min(sizes) > 0, "no part is empty"
    fair = sum(counted) / parts if parts else max(sum(counted) / 1e9, CELLS_OF_A_CHUNK / cells)
    assert max(sizes) < fair + max(counted) + 1
    if sum(counted) * cells > IN_ONE_PIECE:
        assert max(sizes) * cells < CELLS_OF_A_CHUNK + (max(counted) + 1) * cells, "no wish makes a part too large"
    elif parts:
        assert len(starts) <= parts


@pytest.mark.parametrize(("listed", "parts", "found"), [(10, 1, 1), (11, 1, 11), (11, 4, 11), (11, 22, 22), (10, 3, 3)])
def test_a_large_table_has_no_fewer_parts_than_it_needs_and_a_small_one_what_is_asked_for(
    listed: int, parts: int, found: int
) -> None:
    counted = [1] * (2 * listed)
    assert len(cut(counted, width=1, cells_of_a_block=CELLS_OF_A_CHUNK // 2, parts=parts)) == found


def test_a_question_asked_in_one_part_is_cut_when_it_is_too_large_for_that(tmp_path: Path) -> None:
    codes = tuple(str(code) for code in range(5_000))
    places = {"workplace": list(range(5_000)), "place": list(codes), "industry": ["11"] * 5_000}
    write(tmp_path / "workplaces.parquet", places)
    write(tmp_path / "workers.parquet", {"worker": [1], "sex": ["F"], "age": ["7"]})
    write(tmp_path / "jobs.parquet", {"worker": [1], "workplace": [3], "earnings": [1]})
    frame = tiny_frame(tmp_path)
    by = tuple(Dimension(name=name, codes=codes) for name in ("place", "age"))
    questions = {
        "25 million cells": Question(by=by),
        "20 million cells": Question(by=(by[0], replace(by[1], codes=codes[:4_000]))),
    }
    with connect(frame) as tables, parted(frame, tables, questions, dict.fromkeys(questions, 1)) as cut_up:
        parts = {name: table.layout.parts for name, table in cut_up.items()}
    assert parts == {"25 million cells": 13, "20 million cells": 1}


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=5), st.integers(1, 6))
def test_the_positions_of_all_parts_are_the_whole_domain(shape: list[tuple[int, bool]], parts: int) -> None:
    dimensions = tuple(
        Dimension(name=str(n), codes=tuple(map(str, range(size))), public=public)
        for n, (size, public) in enumerate(shape)
    )
    blocks = prod(size for size, public in shape if public)
    starts = cut([1] * blocks, width=1, cells_of_a_block=1, parts=parts)
    layout = ChunkLayout(dimensions=dimensions, starts=starts, columns=("count",), every_block=True)
    rows = [
        pa.table({name: [value] for name, value in {"_part": n, "_block": 0, "_inside": -2, "_count": 0}.items()})
        for n in range(layout.parts)
    ]
    cells = together([layout.cells(row) for row in rows])
    assert np.array_equal(cells.positions, np.arange(prod(size for size, _ in shape)))
