"""Every column of a table of pairs against looking at each move and each pair by itself."""

from collections import Counter
from itertools import combinations, permutations
from math import sqrt
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells
from sfumato.noise.factors import ONE, chosen_employers, takes_first
from sfumato.noise.keyed import Keyed, hashes
from tests.engine.movers import EMPLOYERS, FACTORS, PERIOD, QUARTERS, WORKERS, Rows, answer, frame_of, names, question

KEYED = Keyed(key=FACTORS.key)


def factor(employer: int) -> int:
    return int(FACTORS.of(hashes([str(employer)]))[0])


def giver(one: int, other: int) -> int:
    (first,) = takes_first([str(one)], [str(other)], rule="keyed", keyed=KEYED)
    return one if first else other


def shared_giver(v: int, w: int, employers: list[int]) -> int:
    n = len(employers)
    rows = (hashes([str(v)] * n), hashes([str(w)] * n), hashes(map(str, employers)))
    return employers[int(np.flatnonzero(chosen_employers(np.zeros(n, np.int64), *rows, keyed=KEYED))[0])]


def check(cells: Cells, labels: dict[tuple[str, int], int], edges: Counter[str]) -> None:
    """Compare every column with the labels that each employer has in each cell."""
    by_cell: dict[str, dict[int, int]] = {}
    for (cell, employer), label in labels.items():
        by_cell.setdefault(cell, {})[employer] = label
    for at, name in enumerate(names(cells)):
        mine = by_cell.pop(name, {})
        micro = sum(label * factor(employer) for employer, label in mine.items())
        assert cells["count"][at] == sum(mine.values())
        assert (cells["distorted"][at], cells["remainder"][at]) == divmod(micro, ONE)
        assert cells["factors"][at] == len(mine)
        spread = FACTORS.deviation * sqrt(sum(label**2 for label in mine.values())) * ONE
        assert abs(cells["deviation"][at] - spread) <= 1
        assert cells["edges"][at] == edges[name]
    assert not by_cell


def unordered(one: str, other: str) -> str:
    return " ".join(sorted([one, other]))


ROWS = st.lists(
    st.tuples(st.sampled_from(sorted(WORKERS)), st.sampled_from(sorted(EMPLOYERS)), st.integers(0, 3)),
    min_size=1,
    max_size=50,
)
ONCE = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def all_moves(rows: Rows) -> list[tuple[int, int, int, int]]:
    had = set(rows)
    return [
        (w, i, j, t)
        for w in WORKERS
        for i, j in permutations(EMPLOYERS, 2)
        for t in (1, 2)
        if {(w, i, t), (w, j, t)} <= had and (w, i, t + 1) not in had and (w, j, t - 1) not in had
    ]


@ONCE
@given(rows=ROWS, weight=st.sampled_from(["edges", "multiplicity"]))
def test_directed_flows_are_those_counted_move_by_move(tmp_path: Path, rows: Rows, weight: str) -> None:
    found = answer(frame_of(tmp_path, rows), question(PERIOD, kind="flow", directed=True, weight=weight))
    links = Counter((i, j, t) for _, i, j, t in all_moves(rows))
    labels: Counter[tuple[str, int]] = Counter()
    edges: Counter[str] = Counter()
    for (i, j, t), number in links.items():
        cell = f"{EMPLOYERS[i]} {EMPLOYERS[j]} {QUARTERS[t]}"
        labels[cell, giver(i, j)] += number if weight == "multiplicity" else 1
        edges[cell] += 1
    check(found, labels, edges)


@ONCE
@given(rows=ROWS, weight=st.sampled_from(["edges", "multiplicity"]))
def test_undirected_flows_are_those_counted_move_by_move(tmp_path: Path, rows: Rows, weight: str) -> None:
    found = answer(frame_of(tmp_path, rows), question(kind="flow", weight=weight))
    links = Counter((min(i, j), max(i, j)) for _, i, j, _ in all_moves(rows))
    labels: Counter[tuple[str, int]] = Counter()
    edges: Counter[str] = Counter()
    for (i, j), number in links.items():
        cell = unordered(EMPLOYERS[i], EMPLOYERS[j])
        labels[cell, giver(i, j)] += number if weight == "multiplicity" else 1
        edges[cell] += 1
    check(found, labels, edges)


@ONCE
@given(rows=ROWS, weight=st.sampled_from(["edges", "multiplicity"]))
def test_graphs_of_employers_are_those_counted_pair_by_pair(tmp_path: Path, rows: Rows, weight: str) -> None:
    found = answer(frame_of(tmp_path, rows), question(kind="graph", weight=weight))
    staff = {e: {w for w, f, _ in rows if f == e} for e in EMPLOYERS}
    labels: Counter[tuple[str, int]] = Counter()
    edges: Counter[str] = Counter()
    for i, j in combinations(EMPLOYERS, 2):
        if shared := len(staff[i] & staff[j]):
            cell = unordered(EMPLOYERS[i], EMPLOYERS[j])
            labels[cell, giver(i, j)] += shared if weight == "multiplicity" else 1
            edges[cell] += 1
    check(found, labels, edges)


@ONCE
@given(rows=ROWS, weight=st.sampled_from(["edges", "multiplicity"]))
def test_graphs_of_workers_are_those_counted_pair_by_pair(tmp_path: Path, rows: Rows, weight: str) -> None:
    asked = question(kind="graph", between="workers", attribute="sex", weight=weight)
    found = answer(frame_of(tmp_path, rows), asked)
    where = {w: {e for v, e, _ in rows if v == w} for w in WORKERS}
    labels: Counter[tuple[str, int]] = Counter()
    edges: Counter[str] = Counter()
    for v, w in combinations(WORKERS, 2):
        if shared := sorted(where[v] & where[w]):
            cell = unordered(WORKERS[v], WORKERS[w])
            labels[cell, shared_giver(v, w, shared)] += len(shared) if weight == "multiplicity" else 1
            edges[cell] += 1
    check(found, labels, edges)
