"""Graphs and flows of some jobs, workers and ends, with loops, directions and earnings: as counted by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Dimension
from sfumato.engine.connect import connect
from sfumato.errors import DataError
from sfumato.frame.data import Frame
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import hashes
from sfumato.statistics.panel.question import BEHIND
from sfumato.statistics.panel.tabulate_graph import refuse_large_earnings
from sfumato.statistics.panel.tabulate_pairs import pairs
from tests.conftest import write
from tests.engine.movers import EMPLOYERS, FACTORS, PANEL, PERIOD, QUARTERS, SEX, answer, frame_of, named, question

KINDS = {7: "x", 8: "y", 9: "y", 10: "x"}
KIND = Dimension(name="kind", codes=("x", "y"))
BOTH, ONE_END, OTHER_END = (True, True), (True, False), (False, True)


def panel(folder: Path, *, engine: str = "duckdb", more: list[tuple[int, int, int]] | None = None) -> Frame:
    """The panel of movers, with a second attribute of employers and pay that tells jobs and quarters apart."""
    rows = [*PANEL, *(more or [])]
    frame = frame_of(folder, rows, engine=engine, public=["place", "kind"])
    register = {"workplace": list(EMPLOYERS), "place": list(EMPLOYERS.values()), "kind": list(KINDS.values())}
    write(folder / "workplaces.parquet", register)
    jobs = {
        "worker": [w for w, _, _ in rows],
        "workplace": [e for _, e, _ in rows],
        "quarter": [QUARTERS[q] for _, _, q in rows],
        "pay": [1000 * w + 10 * e + q for w, e, q in rows],
    }
    write(folder / "jobs.parquet", jobs)
    attributes = {**frame.attributes, "kind": type(frame.attributes["place"])(codes=["x", "y"])}
    return frame.model_copy(update={"attributes": attributes})


def pay(*jobs: tuple[int, int, int]) -> int:
    """What some workers earned at an employer in a quarter."""
    return sum(1000 * w + 10 * e + q for w, e, q in jobs)


def earned(worker: int, employer: int) -> int:
    return pay(*(row for row in PANEL if row[:2] == (worker, employer)))


# Selections ------------------------------------------------------------------------------------------------------


def test_a_graph_of_some_workers_by_hand(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine)
    women = question(kind="graph", weight="multiplicity", where={"sex": ("F",)})
    by_sex = question(SEX, kind="graph", weight="multiplicity")
    edges = question(SEX, kind="graph")
    with connect(frame) as tables:
        found = pairs(frame, tables, {"women": women, "by": by_sex, "edges": edges}, FACTORS)
    # 1 links 7-8, 3 links 8-10, 10-9 and 8-9, 6 links 9-7; men: 2 and 4 link 7-8, 5 links 9-10
    assert named(found["women"]) == {"A A": 1, "A B": 3, "B B": 1}
    assert named(found["by"]) == {"A A F": 1, "A B F": 3, "B B F": 1, "A B M": 3}
    assert named(found["edges"])["A B M"] == 2


def test_a_graph_of_some_periods_links_employers_that_workers_had_in_these(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine)
    first = question(kind="graph", weight="multiplicity", where={"quarter": (QUARTERS[0], QUARTERS[1])})
    each = question(PERIOD, kind="graph", weight="multiplicity")
    with connect(frame) as tables:
        found = pairs(frame, tables, {"first": first, "each": each}, FACTORS)
    # In the first half 1 and 4 link 7-8, 3 links 8-10 and 6 links 7-9.
    assert named(found["first"]) == {"A A": 1, "A B": 2, "B B": 1}
    assert named(found["each"]) == {"A A 2024-Q2": 1, "A B 2024-Q2": 2, "A B 2024-Q3": 2, "B B 2024-Q1": 1}
    assert found["each"]["available"].all()


@pytest.mark.parametrize(
    ("where", "filters", "expected"),
    [
        ({"kind": ("y",)}, {"kind": ("kind", BOTH)}, {"A B": 1}),  # only 8-9
        ({"first_kind": ("x",)}, {"first_kind": ("kind", ONE_END)}, {"A A": 1, "A B": 5, "B B": 1}),
        (
            {"first_kind": ("x",), "second_kind": ("y",)},
            {"first_kind": ("kind", ONE_END), "second_kind": ("kind", OTHER_END)},
            {"A A": 1, "A B": 5, "B B": 1},
        ),
        ({"place": ("A",)}, {"place": ("place", BOTH)}, {"A A": 1}),
    ],
)
def test_a_graph_of_employers_of_some_kind(tmp_path: Path, where: Any, filters: Any, expected: dict[str, int]) -> None:
    asked = question(kind="graph", weight="multiplicity", where=where, filters=filters)
    assert asked.looks_at <= {"place", "kind"}
    assert named(answer(panel(tmp_path), asked)) == expected


def test_flows_from_one_kind_of_employer_to_another(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine)
    kept = {"origin_kind": ("x",), "destination_kind": ("y",)}
    filters = {"origin_kind": ("kind", ONE_END), "destination_kind": ("kind", OTHER_END)}
    asked = question(kind="flow", directed=True, weight="multiplicity", where=kept, filters=filters)
    # 1 and 4 move from 7 to 8, and 3 from 10 to 9.
    assert named(answer(frame, asked)) == {"A B": 1, "B A": 2}


def test_a_graph_of_workers_at_some_employers_and_in_some_periods(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine)
    at = question(kind="graph", between="workers", attribute="sex", where={"kind": ("y",)})
    by_kind = question(KIND, kind="graph", between="workers", attribute="sex", weight="multiplicity")
    last = question(kind="graph", between="workers", attribute="sex", where={"quarter": (QUARTERS[3],)})
    women = question(
        kind="graph", between="workers", attribute="sex", where={"sex": ("F",)}, filters={"sex": ("sex", BOTH)}
    )
    with connect(frame) as tables:
        found = pairs(frame, tables, {"at": at, "by": by_kind, "last": last, "women": women}, FACTORS)
    # y: 8 has 1F 2M 3F 4M, 9 has 3F 5M 6F; x: 7 has 1F 2M 4M 6F, 10 has 3F 5M
    assert named(found["at"]) == {"F F": 2, "F M": 6, "M M": 1}
    assert named(found["by"]) == {"F F x": 1, "F M x": 5, "M M x": 1, "F F y": 2, "F M y": 6, "M M y": 1}
    assert named(found["last"]) == {"F M": 2}  # 1 and 4 at 8, 2 and 6 at 7
    assert named(found["women"]) == {"F F": 3}


# Loops -----------------------------------------------------------------------------------------------------------


def test_workers_with_one_employer_are_its_loop(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine, more=[(8, 9, 0), (9, 9, 1), (10, 10, 0)])
    write(tmp_path / "workers.parquet", {"worker": [*range(1, 7), 8, 9, 10], "sex": list("FMFMMFFMF")})
    edges, shared = (question(kind="graph", loops=True, weight=weight) for weight in ("edges", "multiplicity"))
    women = question(SEX, kind="graph", loops=True, weight="multiplicity")
    with connect(frame) as tables:
        found = pairs(frame, tables, {"edges": edges, "shared": shared, "women": women}, FACTORS)
    assert named(found["edges"]) == {"A A": 2, "A B": 3, "B B": 2}
    assert named(found["shared"]) == {"A A": 2, "A B": 6, "B B": 3}
    assert named(found["women"]) == {
        "A A F": 2, "A B F": 3, "B B F": 2, "A B M": 3, "B B M": 1,
    }  # fmt: skip
    without = answer(frame, question(kind="graph", weight="multiplicity"))
    micro = [cells["distorted"] * ONE + cells["remainder"] for cells in (found["shared"], without)]
    nine, ten = FACTORS.of(hashes(["9", "10"]))
    assert (micro[0] - micro[1]).tolist() == [ten, 0, 0, 2 * nine, 0, 0]  # a loop has its own employer's factor


def test_a_worker_who_is_alone_at_employers_is_a_loop_once(tmp_path: Path, engine: str) -> None:
    rows = [(1, 7, 0), (1, 8, 0), (2, 9, 0), (3, 9, 0)]
    frame = frame_of(tmp_path, rows, engine=engine)
    write(tmp_path / "jobs.parquet", {
        "worker": [w for w, _, _ in rows], "workplace": [e for _, e, _ in rows],
        "quarter": [QUARTERS[0]] * 4, "pay": [1] * 4,
    })  # fmt: skip
    asked = {
        weight: question(kind="graph", between="workers", attribute="sex", loops=True, weight=weight)
        for weight in ("edges", "multiplicity")
    }
    with connect(frame) as tables:
        found = pairs(frame, tables, asked, FACTORS)
    assert named(found["edges"]) == {"F F": 1, "F M": 1}
    assert named(found["multiplicity"]) == {"F F": 2, "F M": 1}
    assert named(found["multiplicity"], "edges") == named(found["edges"])
    at = found["edges"]["distorted"] * ONE + found["edges"]["remainder"]
    assert at[0] in FACTORS.of(hashes(["7", "8"]))


# Directions and earnings -----------------------------------------------------------------------------------------


def test_a_directed_graph_goes_from_the_employer_a_worker_had_first(tmp_path: Path, engine: str) -> None:
    found = answer(panel(tmp_path, engine=engine), question(kind="graph", directed=True, weight="multiplicity"))
    # 1 and 4: 7 to 8; 2: 8 to 7; 3: 8 to 10 to 9, and 8 to 9; 5: 9 to 10; 6 began at 9 and 7 together
    assert named(found) == {"A A": 1, "A B": 3, "B A": 3}


def test_earnings_of_movers_are_those_of_the_period_of_the_move(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine)
    weights = ("earnings", "origin-earnings", "destination-earnings")
    asked = {weight: question(kind="flow", directed=True, weight=weight) for weight in weights}
    with connect(frame) as tables:
        found = pairs(frame, tables, {**asked, "both ways": question(kind="flow", weight="earnings")}, FACTORS)
    origin = {"A A": pay((3, 8, 1)), "A B": pay((2, 8, 2), (3, 10, 2)), "B A": pay((1, 7, 1), (4, 7, 1))}
    there = {"A A": pay((3, 10, 1)), "A B": pay((2, 7, 2), (3, 9, 2)), "B A": pay((1, 8, 1), (4, 8, 1))}
    assert named(found["origin-earnings"]) == origin
    assert named(found["destination-earnings"]) == there
    assert named(found["earnings"]) == {cell: origin[cell] + there[cell] for cell in origin}
    assert named(found["both ways"])["A B"] == sum(origin[cell] + there[cell] for cell in ("A B", "B A"))


def test_earnings_of_edges_are_those_of_shared_workers_at_both_employers(tmp_path: Path, engine: str) -> None:
    frame = panel(tmp_path, engine=engine, more=[(7, 10, 1)])
    write(tmp_path / "workers.parquet", {"worker": [*range(1, 8)], "sex": list("FMFMMFF")})
    found = answer(frame, question(kind="graph", weight="earnings", loops=True))
    shared = {"A A": [(3, 8), (3, 10), (7, 10)], "B B": [(6, 7), (6, 9)]}
    between = [(w, e) for w in (1, 2, 4) for e in (7, 8)]
    shared["A B"] = [*between, (3, 8), (3, 9), (3, 9), (3, 10), (5, 9), (5, 10)]
    every = {**{(w, e): earned(w, e) for w, e, _ in PANEL}, (7, 10): pay((7, 10, 1))}
    assert named(found) == {cell: sum(every[job] for job in jobs) for cell, jobs in shared.items()}
    assert found[BEHIND].sum() > 0


def test_earnings_of_loops_are_those_of_the_one_job_at_either_end_and_count_once_at_both(
    tmp_path: Path, engine: str
) -> None:
    frame = panel(tmp_path, engine=engine, more=[(7, 10, 1), (7, 10, 2)])
    write(tmp_path / "workers.parquet", {"worker": [*range(1, 8)], "sex": list("FMFMMFF")})
    weights = ("earnings", "origin-earnings", "destination-earnings")
    asked = {
        f"{weight} {loops}": question(kind="graph", directed=True, weight=weight, loops=loops)
        for weight in weights
        for loops in (True, False)
    }
    with connect(frame) as tables:
        found = {name: named(cells) for name, cells in pairs(frame, tables, asked, FACTORS).items()}
    for weight in weights:
        added = {at: found[f"{weight} True"].get(at, 0) - found[f"{weight} False"].get(at, 0) for at in ("A A", "B B")}
        assert added == {"A A": pay((7, 10, 1), (7, 10, 2)), "B B": 0}, weight


def test_earnings_that_64_bits_do_not_hold_are_refused_before_anything_is_answered(tmp_path: Path) -> None:
    frame = panel(tmp_path)
    jobs = {"worker": [1, 1, 1], "workplace": [7, 8, 9], "quarter": [QUARTERS[0]] * 3, "pay": [2**58, 2**57, 2**57]}
    write(tmp_path / "jobs.parquet", jobs)
    with connect(frame) as tables:
        refuse_large_earnings(frame, tables, question(kind="graph", weight="earnings", where={"sex": ("M",)}).selection)
        with pytest.raises(DataError, match="over all pairs of employers") as refusal:
            refuse_large_earnings(frame, tables, question(kind="graph", weight="earnings").selection)
    assert str(2**58) not in str(refusal.value)


def test_earnings_take_one_factor_for_each_edge(tmp_path: Path) -> None:
    frame = panel(tmp_path)
    asked = {weight: question(kind="flow", directed=True, weight=weight) for weight in ("multiplicity", "earnings")}
    with connect(frame) as tables:
        found = pairs(frame, tables, asked, FACTORS)
    for cells in found.values():  # B to A is the edge 7-8 alone, in both tables
        at = 3
        assert (cells["distorted"][at] * ONE + cells["remainder"][at]) % cells["count"][at] == 0
    ratio = {
        name: (int(cells["distorted"][3]) * ONE + int(cells["remainder"][3])) // int(cells["count"][3])
        for name, cells in found.items()
    }
    assert ratio["multiplicity"] == ratio["earnings"]
    assert np.array_equal(found["earnings"][BEHIND], found["multiplicity"]["distorted"])
