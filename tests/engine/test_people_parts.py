"""Counts of people in parts are, all parts together, the counts in one piece; on a cluster the executors protect."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cells import Dimension
from sfumato.checking import checked
from sfumato.chunks import Chunk
from sfumato.engine.chunks import CELLS_OF_A_CHUNK, IN_ONE_PIECE, each_chunk
from sfumato.engine.records import connect_records
from sfumato.release import load
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.tabulate import people_in_chunks, sampled
from tests.engine.cluster import MASTER, drive
from tests.engine.people import STATE, TRACT, YEAR, described
from tests.engine.test_cell_parts import counted, together
from tests.release.people import EMPLOYMENT, HEAD, written
from tests.running.answered import answered

QUESTIONS = {
    "all": SampleQuestion(groups=(YEAR, TRACT, STATE), statistic="count"),
    "another order": SampleQuestion(groups=(STATE, YEAR), statistic="count"),
    "where": SampleQuestion(groups=(TRACT,), statistic="count", where={"year": ("2002",), "state": ("B",)}),
    "nobody": SampleQuestion(groups=(TRACT, YEAR), statistic="count", where={"state": ("none",)}),
}


@pytest.mark.parametrize("parts", [1, 2, 5, 1_000, None])
def test_parts_together_are_the_counts_in_one_piece(tmp_path: Path, engine: str, parts: int | None) -> None:
    with connect_records(described(tmp_path, engine=engine)) as tables:
        whole = sampled(tables, QUESTIONS)
        cut = people_in_chunks(tables, QUESTIONS, dict.fromkeys(QUESTIONS, parts))
        found = {name: counted(table) for name, table in cut.items()}
    assert {name for name, cells in found.items() if not together(cells).equals(whole[name])} == set()
    assert len(found["all"]) == {1: 1, 2: 2, 5: 4, 1_000: 12, None: 1}[parts]


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@st.composite
def asked_of_people(draw: st.DrawFn) -> tuple[dict[str, list[Any]], dict[str, Any], SampleQuestion]:
    """People in random cells, as they are described, and a question that may leave out attributes, codes or people."""
    codes = {f"a{at}": [f"c{code}" for code in range(size)] for at, size in enumerate(draw(SIZES))}
    number = draw(st.integers(0, 40))
    drawn = {name: draw(st.lists(st.sampled_from(c), min_size=number, max_size=number)) for name, c in codes.items()}
    columns = {name: pa.array(column, pa.string()) for name, column in drawn.items()}
    filtered = draw(st.sets(st.sampled_from(sorted(codes))))
    where = {name: tuple(draw(st.sets(st.sampled_from(codes[name]), min_size=1))) for name in sorted(filtered)}
    by = draw(st.permutations(sorted(codes)))[: draw(st.integers(1, len(codes)))]
    groups = [Dimension(name=name, codes=tuple(c for c in codes[name] if c in where.get(name, (c,)))) for name in by]
    described_as = {"attributes": {name: {"codes": listed} for name, listed in codes.items()}, "measures": {}}
    return (
        {"person": pa.array(range(number), pa.int64()), **columns},
        {"records": {"path": "people.parquet", "unit": "person"}, **described_as},
        SampleQuestion(groups=tuple(groups), statistic="count", where=where),
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(asked_of_people(), st.integers(1, 30))
def test_whoever_the_people_are_and_whatever_is_asked_the_parts_are_the_whole(
    made: tuple[dict[str, list[Any]], dict[str, Any], SampleQuestion], parts: int
) -> None:
    columns, changes, question = made
    with (
        TemporaryDirectory() as folder,
        connect_records(described(Path(folder), columns, **changes)) as tables,
    ):
        whole = sampled(tables, {"q": question})["q"]
        cells = counted(people_in_chunks(tables, {"q": question}, {"q": parts})["q"])
    assert together(cells).equals(whole)
    assert len(cells) <= parts
    sizes = [len(part) for part in cells]
    assert max(sizes[:-1], default=sizes[-1]) == min(sizes[:-1], default=sizes[-1]) >= sizes[-1] > 0


def test_people_with_a_code_that_the_question_leaves_out_are_in_no_cell(tmp_path: Path) -> None:
    fewer = replace(TRACT, codes=("t3", "t1"))
    with connect_records(described(tmp_path)) as tables:
        question = SampleQuestion(groups=(fewer, YEAR), statistic="count")
        cells = together(counted(people_in_chunks(tables, {"q": question}, {"q": 2})["q"]))
    assert cells["count"].tolist() == [0, 2, 3, 1]


def test_every_part_is_worked_on_once_also_one_without_any_people(tmp_path: Path) -> None:
    def work(rows: pa.Table) -> Chunk:
        (number,) = set(rows["_part"].to_pylist())
        return Chunk(number=number, name="", rows=len(rows), sha256="", bytes=0)

    with connect_records(described(tmp_path)) as tables:
        cut = people_in_chunks(tables, {"q": QUESTIONS["nobody"]}, {"q": 3})["q"]
        told = list(each_chunk(tables.engine, cut, work))
    assert sorted((part.number, part.rows) for part in told) == [(0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("cells", "parts", "found"),
    [(25, None, 13), (25, 1, 13), (25, 40, 40), (20, 1, 1), (20, None, 10), (1_000, None, 500)],
)
def test_a_large_table_has_parts_of_two_million_cells_at_most_and_a_small_one_what_is_asked_for(
    tmp_path: Path, cells: int, parts: int | None, found: int
) -> None:
    groups = tuple(
        Dimension(name=name, codes=tuple(map(str, range(size))))
        for name, size in (("year", cells), ("tract", 1_000), ("state", 1_000))
    )
    with connect_records(described(tmp_path)) as tables:
        layout = people_in_chunks(tables, {"q": SampleQuestion(groups=groups, statistic="count")}, {"q": parts})[
            "q"
        ].layout
    assert layout.parts == found
    largest = max(len(layout.all_blocks(part)) for part in (0, layout.parts - 1))
    assert largest <= (CELLS_OF_A_CHUNK if cells * 10**6 > IN_ONE_PIECE or parts is None else IN_ONE_PIECE)


@pytest.mark.spark
def test_on_a_cluster_executors_protect_people_and_only_metadata_return(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    setting = f'\n[data.spark]\nmaster = "{MASTER}"\nspark.executor.memory = "512m"\nspark.sql.shuffle.partitions = 2\n'
    parts = EMPLOYMENT + "parts = 4\n"
    file = written(tmp_path, HEAD + setting + parts, ("[data]\n", '[data]\nengine = "spark"\n'))
    returned = drive(file, "returned").printed["returned"]
    assert {frozenset(columns) for columns in returned} == {frozenset(Chunk.__dataclass_fields__)}
    assert len(returned) == 2, "drawn and published"
    release = load(file)
    file.write_text(file.read_text(encoding="utf-8").replace('engine = "spark"\n', ""), encoding="utf-8")
    with checked(load(file)) as here:
        (planned,) = here.plan.tables
        true = here.count({planned.name: planned})[planned.name]
    answer = answered(release, "employment")
    assert answer.dimensions == true.dimensions
    assert answer.positions.tolist() == true.positions.tolist()
    assert abs(answer["value"] - true["count"]).max() < 50, "noise of scale 1 around the counts of DuckDB"
