"""Pairs by attributes of both ends: as counted by hand, the same on both engines and for ever."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.errors import DataError, MethodError, ReleaseError
from sfumato.frame.data import Frame
from sfumato.noise.factors import ONE, Factors, takes_first
from sfumato.noise.keyed import Keyed, hashes
from sfumato.statistics.panel import tabulate_workers as worker_pairs
from sfumato.statistics.panel.question import SUMS, PairQuestion
from sfumato.statistics.panel.tabulate_pairs import available_periods, moves, pairs
from sfumato.statistics.panel.tabulate_workers import PairSums, refuse_too_many
from tests.conftest import write
from tests.engine.movers import (
    EMPLOYERS,
    FACTORS,
    PANEL,
    PERIOD,
    PLACES,
    QUARTERS,
    SEX,
    WORKERS,
    answer,
    frame_of,
    named,
    question,
)


def test_every_move_of_the_panel(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, PANEL, engine=engine)
    with connect(frame) as tables, moves(frame, tables) as moved:
        found = moved.fetch().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (1, 7, 8, "2024-Q2"),
        (2, 8, 7, "2024-Q3"),
        (3, 8, 10, "2024-Q2"),
        (3, 10, 9, "2024-Q3"),
        (4, 7, 8, "2024-Q2"),
    ]
    assert available_periods(frame) == ("2024-Q2", "2024-Q3")


def test_directed_flows_by_hand(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, PANEL, engine=engine)
    moved = question(kind="flow", directed=True, weight="multiplicity")
    edges = question(kind="flow", directed=True)
    with connect(frame) as tables:
        found = pairs(frame, tables, {"moved": moved, "edges": edges}, FACTORS)
    assert named(found["moved"]) == {"A A": 1, "A B": 2, "B A": 2}
    assert named(found["moved"], "edges") == named(found["edges"]) == {"A A": 1, "A B": 2, "B A": 1}
    assert found["edges"].positions.tolist() == list(range(9))


def test_undirected_flows_add_both_ways_and_count_a_pair_once(tmp_path: Path, engine: str) -> None:
    found = answer(frame_of(tmp_path, PANEL, engine=engine), question(kind="flow", weight="multiplicity"))
    assert named(found) == {"A A": 1, "A B": 4}
    assert named(found, "edges") == {"A A": 1, "A B": 2}  # 7 and 8 are one pair, 9 and 10 another
    assert found.positions.tolist() == [0, 1, 2, 4, 5, 8]


def test_flows_by_period_and_sex_and_their_ends_are_not_available(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, PANEL, engine=engine)
    found = answer(frame, question(PERIOD, SEX, kind="flow", directed=True, weight="multiplicity"))
    assert named(found) == {
        "B A 2024-Q2 F": 1,
        "B A 2024-Q2 M": 1,
        "A A 2024-Q2 F": 1,
        "A B 2024-Q3 F": 1,
        "A B 2024-Q3 M": 1,
    }
    assert len(found) == found.domain == 3 * 3 * 4 * 2
    expected = np.isin(found.codes("quarter"), [1, 2]).astype(np.int64)
    assert np.array_equal(found["available"], expected)


def test_flows_among_some_workers_and_periods(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, PANEL, engine=engine)
    women = question(kind="flow", directed=True, weight="multiplicity", where={"sex": ("F",)})
    third = question(kind="flow", directed=True, weight="multiplicity", where={"quarter": ("2024-Q3",)})
    never = question(kind="flow", where={"quarter": ("2024-Q4",)})
    with connect(frame) as tables:
        found = pairs(frame, tables, {"women": women, "third": third, "never": never}, FACTORS)
    assert named(found["women"]) == {"A A": 1, "A B": 1, "B A": 1}
    assert named(found["third"]) == {"A B": 2}
    assert named(found["never"]) == {}
    assert found["third"]["available"].all()
    assert not found["never"]["available"].any()


def test_the_graph_of_employers_by_hand(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, PANEL, engine=engine)
    edges, shared = question(kind="graph"), question(kind="graph", weight="multiplicity")
    with connect(frame) as tables:
        found = pairs(frame, tables, {"edges": edges, "shared": shared}, FACTORS)
    # 7-8 shared by 1, 2, 4; 8-10, 10-9 and 8-9 by 3; 9-10 by 5 too; 9-7 by 6
    assert named(found["edges"]) == {"A A": 1, "A B": 3, "B B": 1}
    assert named(found["shared"]) == {"A A": 1, "A B": 6, "B B": 1}
    assert named(found["shared"], "edges") == named(found["edges"])
    assert set(found["edges"].columns) == SUMS | {"edges"}


def test_the_graph_of_workers_by_hand(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, PANEL, engine=engine)
    edges = question(kind="graph", between="workers", attribute="sex")
    shared = question(kind="graph", between="workers", attribute="sex", weight="multiplicity")
    with connect(frame) as tables:
        found = pairs(frame, tables, {"edges": edges, "shared": shared}, FACTORS)
    # 7: 1F 2M 4M 6F, 8: 1F 2M 3F 4M, 9: 3F 5M 6F, 10: 3F 5M; 1, 2, 4 share 7 and 8, and 3, 5 share 9 and 10
    assert named(found["shared"]) == {"F F": 3, "F M": 11, "M M": 2}
    assert named(found["edges"]) == named(found["shared"], "edges") == {"F F": 3, "F M": 8, "M M": 1}


# What must not matter --------------------------------------------------------------------------------------------

WEIGHTS = ("edges", "multiplicity")
ALL = {
    "edges": question(kind="graph"),
    "shared": question(kind="graph", weight="multiplicity"),
    "colleagues": question(kind="graph", between="workers", attribute="sex"),
    "flow": question(PERIOD, SEX, kind="flow", directed=True, weight="multiplicity"),
    "both ways": question(PERIOD, kind="flow"),
}


def all_answers(frame: Frame, asked: dict[str, PairQuestion] = ALL) -> dict[str, Cells]:
    with connect(frame) as tables:
        return pairs(frame, tables, asked, FACTORS)


def test_the_order_of_rows_and_employers_and_repeated_rows_change_nothing(tmp_path: Path, engine: str) -> None:
    here = all_answers(frame_of(tmp_path / "here", PANEL, engine=engine))
    frame = frame_of(tmp_path / "there", [*PANEL[::-1], *PANEL[:7]], engine=engine)
    for name in ("workplaces", "workers"):
        columns = {
            "workplaces": {"workplace": list(EMPLOYERS)[::-1], "place": list(EMPLOYERS.values())[::-1]},
            "workers": {"worker": list(WORKERS)[::-1], "sex": list(WORKERS.values())[::-1]},
        }[name]
        write(tmp_path / "there" / f"{name}.parquet", columns)
    there = all_answers(frame)
    assert all(here[name].equals(there[name]) for name in ALL)


@pytest.mark.spark
def test_both_engines_give_exactly_the_same(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    draws = zip(generator.choice(list(WORKERS), 60), generator.choice(list(EMPLOYERS), 60), strict=True)
    rows = [(int(w), int(e), int(q)) for (w, e), q in zip(draws, generator.integers(0, 4, 60), strict=True)]
    one = all_answers(frame_of(tmp_path, rows))
    other = all_answers(frame_of(tmp_path, rows, engine="spark"))
    assert all(one[name].equals(other[name]) for name in ALL)


def test_flows_there_and_back_take_the_same_factor(tmp_path: Path) -> None:
    # Nobody else moves: 1 and 2 change places between 7 in B and 8 in A.
    found = answer(frame_of(tmp_path, [row for row in PANEL if row[0] in (1, 2)]), question(kind="flow", directed=True))
    assert named(found) == {"A B": 1, "B A": 1}
    micro = found["distorted"] * ONE + found["remainder"]
    (first,) = takes_first(["7"], ["8"], rule="keyed", keyed=Keyed(key=FACTORS.key))
    assert micro[1] == micro[3] == FACTORS.of(hashes(["7" if first else "8"]))[0]


@pytest.mark.slow
def test_two_processes_with_one_key_agree_and_another_key_does_not(tmp_path: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; "
        "from tests.engine.movers import PANEL, frame_of; from tests.engine.test_pairs import all_answers; "
        "found = all_answers(frame_of(Path(sys.argv[1]), PANEL)); "
        "print(json.dumps({n: {c: v.tolist() for c, v in cells.columns.items()} for n, cells in found.items()}))"
    )
    root = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / str(run))], capture_output=True, text=True, check=True, cwd=root
        ).stdout
        for run in (1, 2)
    ]
    here = {
        n: {c: v.tolist() for c, v in cells.columns.items()}
        for n, cells in all_answers(frame_of(tmp_path, PANEL)).items()
    }
    assert json.loads(runs[0]) == json.loads(runs[1]) == here
    other = answer(
        frame_of(tmp_path, PANEL), ALL["shared"], Factors(key=bytes(16), least=FACTORS.least, most=FACTORS.most)
    )
    assert other["count"].tolist() == here["shared"]["count"]
    assert other["remainder"].tolist() != here["shared"]["remainder"]


def test_classes_of_several_attributes_are_listed_once_for_each_unordered_pair(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, PANEL)
    write(
        tmp_path / "workplaces.parquet",
        {"workplace": list(EMPLOYERS), "place": list(EMPLOYERS.values()), "kind": ["x", "y", "y", "x"]},
    )
    kinds = ("x", "y")
    by = tuple(
        Dimension(name=f"{end}_{name}", codes=codes)
        for end in ("first", "second")
        for name, codes in (("place", PLACES), ("kind", kinds))
    )
    asked = PairQuestion(by=by, attributes=("place", "kind"), kind="graph", weight="multiplicity")
    found = answer(frame, asked)
    assert len(found) == asked.cells == 6 * 7 // 2
    # 7 is Bx, 8 Ay, 9 By, 10 Ax
    assert named(found) == {"A y B x": 3, "A x A y": 1, "A y B y": 1, "A x B y": 2, "B x B y": 1}


def test_the_rule_for_twelve_characters_decides_by_the_ids(tmp_path: Path) -> None:
    # All ids agree in the eighth and ninth characters, '00': the smaller id gives its factor.
    asked = question(kind="graph", rule="twelve-characters")
    found = answer(frame_of(tmp_path, PANEL, text=True), asked)
    factors = dict(zip(EMPLOYERS, FACTORS.of(hashes(f"48000000{e:04d}" for e in EMPLOYERS)).tolist(), strict=True))
    micro = dict(zip(found.positions.tolist(), (found["distorted"] * ONE + found["remainder"]).tolist(), strict=True))
    assert micro == {0: factors[8], 1: factors[7] + factors[8] + factors[9], 4: factors[7], 2: 0, 5: 0, 8: 0}
    with pytest.raises(DataError, match="4 employers whose id has another length"):
        answer(frame_of(tmp_path, PANEL), asked)


def test_data_without_any_pair_give_zeros(tmp_path: Path, engine: str) -> None:
    found = all_answers(frame_of(tmp_path, [(1, 7, 0), (2, 8, 0)], engine=engine))
    assert all(not cells[name].any() for cells in found.values() for name in cells.columns if name != "available")


def test_a_panel_longer_than_the_bits_of_a_number_has_all_its_moves(tmp_path: Path, engine: str) -> None:
    years = [str(year) for year in range(1900, 2030)]
    changes = range(1, len(years) - 1)
    # In every year someone leaves 7, joined that year or long ago, for 8: the worker is named after the year.
    rows = [(t, 7, s) for t in changes for s in {max(t - 1, 0), t}] + [(t, 8, s) for t in changes for s in (t, t + 1)]
    rows += [(200, 7, s) for s in range(len(years))]  # and one stays for ever
    frame = frame_of(tmp_path, PANEL, engine=engine)
    jobs = {"worker": [w for w, _, _ in rows], "workplace": [e for _, e, _ in rows]}
    write(tmp_path / "jobs.parquet", jobs | {"year": [years[s] for _, _, s in rows], "pay": [1] * len(rows)})
    panel = {"period": "year", "first": "1900", "last": "2029", "earnings": "pay"}
    described = {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"} | panel
    frame = frame.model_copy(update={"jobs": type(frame.jobs)(**described)})
    with connect(frame) as tables, moves(frame, tables) as moved:
        found = moved.fetch().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(t, 7, 8, years[t]) for t in changes]


# Refusals --------------------------------------------------------------------------------------------------------


def test_flows_need_a_panel_and_worker_attributes_a_table_of_workers(tmp_path: Path) -> None:
    jobs = {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"}
    with pytest.raises(ReleaseError, match="a panel"):
        answer(frame_of(tmp_path, PANEL, jobs=jobs), question(kind="flow"))
    with pytest.raises(ReleaseError, match="table of workers"):
        answer(frame_of(tmp_path, PANEL, workers=None), question(SEX, kind="flow"))


@pytest.mark.parametrize(
    "asked",
    [
        question(kind="graph", between="workers", attribute="sex", directed=True),
        question(kind="graph", between="workers", attribute="sex", weight="earnings"),
        question(kind="flow", loops=True),
        question(kind="flow", between="workers", attribute="sex"),
        PairQuestion(by=(SEX,), attributes=(), kind="graph"),
    ],
)
def test_questions_without_sense_are_refused(tmp_path: Path, asked: PairQuestion) -> None:
    with pytest.raises(ValueError, match=r"no direction|between two employers|begins with"):
        answer(frame_of(tmp_path, PANEL), asked)


def crowd_at_two_employers(folder: Path, *, engine: str = "duckdb") -> tuple[Frame, int]:
    """So many workers, all of whom have the same two employers."""
    frame, crowd = frame_of(folder, PANEL, engine=engine), 300
    write(folder / "workers.parquet", {"worker": list(range(crowd)), "sex": ["F", "M"] * (crowd // 2)})
    jobs = {"worker": list(range(crowd)) * 2, "workplace": [7] * crowd + [8] * crowd}
    write(folder / "jobs.parquet", jobs | {"quarter": [QUARTERS[0]] * 2 * crowd, "pay": [1] * 2 * crowd})
    return frame, crowd


def test_too_many_pairs_of_workers_who_share_several_employers_are_refused(tmp_path: Path, engine: str) -> None:
    frame, crowd = crowd_at_two_employers(tmp_path, engine=engine)
    pairs_in_all = crowd * (crowd - 1) // 2
    with connect(frame) as tables:
        refuse_too_many(frame, tables, ALL["colleagues"], limit=pairs_in_all)
        refuse_too_many(frame, tables, ALL["edges"], limit=0)  # about employers: nothing is looked at one by one
        with pytest.raises(MethodError, match="share several employers") as refusal:
            refuse_too_many(frame, tables, ALL["colleagues"], limit=pairs_in_all - 1)
    assert f"{pairs_in_all:,}" not in str(refusal.value)


def test_nobody_shares_employers_where_everybody_has_one(tmp_path: Path, engine: str) -> None:
    frame = frame_of(tmp_path, [(1, 7, 0), (2, 8, 0)], engine=engine)
    with connect(frame) as tables:
        refuse_too_many(frame, tables, ALL["colleagues"], limit=0)


# Large numbers ---------------------------------------------------------------------------------------------------


def test_labels_that_are_summed_as_they_come_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, crowd = crowd_at_two_employers(tmp_path)
    asked = {weight: question(kind="graph", between="workers", attribute="sex", weight=weight) for weight in WEIGHTS}
    at_once = all_answers(frame, asked)
    assert at_once["edges"]["count"].sum() == crowd * (crowd - 1) // 2
    assert at_once["multiplicity"]["count"].sum() == crowd * (crowd - 1)
    monkeypatch.setattr(worker_pairs, "_DENSE", 0)  # as with more employers and cells than fit in one array
    monkeypatch.setattr(worker_pairs, "_AT_A_TIME", 1_000)
    in_parts = all_answers(frame, asked)
    assert all(at_once[weight].equals(in_parts[weight]) for weight in WEIGHTS)


@given(
    labels=st.lists(st.integers(0, 2**50), min_size=1, max_size=6),
    factor=st.integers(1, 2 * ONE - 1),
)
def test_products_of_labels_and_factors_are_exact_beyond_64_bits(labels: list[int], factor: int) -> None:
    n = len(labels)
    sums = PairSums.of(
        np.zeros(n, np.int64), np.arange(n), np.array(labels), factors=np.full(n, factor, np.int64), cells=1
    )
    columns = sums.columns(deviation=0.18, edges=np.zeros(1, np.int64), available=np.ones(1, np.int64))
    assert (columns["distorted"][0], columns["remainder"][0]) == divmod(sum(labels) * factor, ONE)
    assert columns["deviation"][0] >= 0


def test_a_deviation_that_no_column_holds_is_cut() -> None:
    sums = PairSums.of(*np.array([[0], [0], [2**60]]), factors=np.array([ONE]), cells=1)
    columns = sums.columns(deviation=0.18, edges=np.zeros(1, np.int64), available=np.ones(1, np.int64))
    assert 0.99 * 2**63 < columns["deviation"][0] < 2**63
