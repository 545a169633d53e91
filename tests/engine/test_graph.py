"""The graph of jobs from the records: the same on every engine, as counted by hand, in whatever order rows come."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engine.connect import connect
from sfumato.errors import ReleaseError
from sfumato.frame.data import Frame
from sfumato.statistics.panel.tabulate_graph import bipartite, employer_edges
from tests.conftest import write

# The worked example: five workers, three employers, whose keys as numbers and as text stand in different orders.
WORKERS = [1, 1, 2, 3, 3, 4, 5, 5]
EMPLOYERS = [9, 100, 20, 20, 100, 100, 9, 100]
EDGES = {("100", "9"): 2, ("100", "20"): 1}

Jobs = list[tuple[int, int]]


def frame_of(folder: Path, jobs: dict[str, list[Any]], *, engine: str = "duckdb", **panel: str) -> Frame:
    write(folder / "jobs.parquet", jobs)
    write(folder / "workplaces.parquet", {"workplace": sorted(set(jobs["workplace"])) or [0]})
    described = {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"} | panel
    return Frame(
        engine=engine, jobs=described, workplaces={"path": "workplaces.parquet", "key": "workplace"}, folder=folder
    )


def edges_of(frame: Frame) -> dict[tuple[str, str], int]:
    with connect(frame) as tables, employer_edges(frame, tables) as edges:
        found = edges.fetch()
    assert found.column_names == ["_first", "_second", "_workers"]
    return {(str(r["_first"]), str(r["_second"])): r["_workers"] for r in found.to_pylist()}


def test_edges_of_the_worked_example(tmp_path: Path, engine: str) -> None:
    assert edges_of(frame_of(tmp_path, {"worker": WORKERS, "workplace": EMPLOYERS}, engine=engine)) == EDGES


def test_keys_of_text_and_the_order_of_rows_change_nothing(tmp_path: Path, engine: str) -> None:
    text = [str(key) for key in reversed(EMPLOYERS)]
    jobs = {"worker": WORKERS[::-1], "workplace": text}
    assert edges_of(frame_of(tmp_path, jobs, engine=engine)) == EDGES


def test_the_bipartite_graph_of_the_worked_example(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, {"worker": WORKERS, "workplace": EMPLOYERS}, engine=engine)
    with connect(frame) as tables:
        found = bipartite(frame, tables)
    assert found.employers.to_pylist() == ["100", "20", "9"]
    assert found.workers.to_pylist() == ["1", "2", "3", "4", "5"]
    assert found.graph.employer_projection().toarray().tolist() == [[4, 1, 2], [1, 2, 0], [2, 0, 2]]
    assert found.graph.employer_degrees().tolist() == [2, 1, 1]


def test_a_panel_links_over_all_periods_where_there_are_earnings(tmp_path: Path, engine: str) -> None:
    panel = {
        "worker": [1, 1, 1, 1, 2, 2, 3, 3],
        "workplace": [7, 7, 8, 8, 7, 8, 8, 9],
        "quarter": ["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4", "2024-Q1", "2024-Q1", "2024-Q2", "2024-Q3"],
        "pay": [10, 10, 10, 10, 5, 0, 3, 3],  # worker 2 earned nothing at 8
    }
    described = {"period": "quarter", "first": "2024-Q1", "last": "2024-Q4", "earnings": "pay"}
    assert edges_of(frame_of(tmp_path, panel, engine=engine, **described)) == {("7", "8"): 1, ("8", "9"): 1}


def test_a_job_listed_twice_counts_once(tmp_path: Path, engine: str) -> None:
    twice = {"worker": WORKERS + WORKERS, "workplace": EMPLOYERS + EMPLOYERS}
    assert edges_of(frame_of(tmp_path, twice, engine=engine)) == EDGES


def test_jobs_without_a_worker_have_no_graph(tmp_path: Path) -> None:
    write(tmp_path / "jobs.parquet", {"workplace": [1]})
    frame = Frame(jobs={"path": "jobs.parquet"}, folder=tmp_path)
    with (
        connect(frame) as tables,
        pytest.raises(ReleaseError, match="names the worker"),
        employer_edges(frame, tables),
    ):
        pass


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=st.lists(st.tuples(st.integers(0, 9), st.integers(5, 15)), min_size=1, max_size=40), shuffled=st.randoms())
def test_the_engine_and_the_sparse_matrix_find_the_same_edges(tmp_path: Path, jobs: Jobs, shuffled: Any) -> None:
    shuffled.shuffle(jobs)
    frame = frame_of(tmp_path, {"worker": [w for w, _ in jobs], "workplace": [e for _, e in jobs]})
    with connect(frame) as tables:
        found = bipartite(frame, tables)
    names, edges = np.array(found.employers.to_pylist()), found.graph.employer_edges()
    pairs = zip(names[edges.first].tolist(), names[edges.second].tolist(), strict=True)
    assert edges_of(frame) == dict(zip(pairs, edges.multiplicity.tolist(), strict=True))
    everyone = {w: {str(e) for v, e in jobs if v == w} for w, _ in jobs}
    by_hand = {
        (a, b): shared
        for a in names
        for b in names
        if a < b and (shared := sum(1 for where in everyone.values() if {a, b} <= where))
    }
    assert edges_of(frame) == by_hand
