"""The graph of jobs and its projections: the worked example exactly, and small graphs against counting pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.statistics.panel.graph import Bipartite, Edges

# The worked example of Abowd and McKinney (2016): five workers, three employers.
B = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]])
PF = [[2, 0, 2], [0, 2, 1], [2, 1, 4]]
PW = [[2, 0, 1, 1, 2], [0, 1, 1, 0, 0], [1, 1, 2, 1, 1], [1, 0, 1, 1, 1], [2, 0, 1, 1, 2]]

Jobs = list[tuple[int, int]]
JOBS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=40)


def graph_of(matrix: np.ndarray) -> Bipartite:
    worker, employer = np.nonzero(matrix)
    return Bipartite.of(worker, employer, workers=matrix.shape[0], employers=matrix.shape[1])


def graph(jobs: Jobs) -> Bipartite:
    return Bipartite.of([w for w, _ in jobs], [e for _, e in jobs], workers=8, employers=6)


def as_dict(edges: Edges) -> dict[tuple[int, int], int]:
    columns = (edges.first, edges.second, edges.multiplicity)
    return {(i, j): m for i, j, m in zip(*(column.tolist() for column in columns), strict=True)}


def staff(jobs: Jobs) -> dict[int, set[int]]:
    return {employer: {w for w, e in jobs if e == employer} for employer in range(6)}


def test_the_worked_example_has_the_published_projections() -> None:
    example = graph_of(B)
    assert np.array_equal(example.incidence.toarray(), B)
    assert example.employer_projection().toarray().tolist() == PF
    assert example.worker_projection().toarray().tolist() == PW


def test_the_worked_example_has_the_published_degrees_and_multiplicities() -> None:
    example = graph_of(B)
    assert example.employer_degrees().tolist() == [1, 1, 2]
    assert as_dict(example.employer_edges()) == {(0, 2): 2, (1, 2): 1}
    assert example.employer_loops().tolist() == [0, 1, 1]
    assert example.components().number == 1
    assert (example.workers, example.employers, example.jobs) == (5, 3, 8)


def test_a_job_listed_twice_counts_once() -> None:
    once, twice = [(0, 0), (0, 1), (1, 1)], [(0, 1), (0, 0), (0, 1), (1, 1), (1, 1)]
    assert np.array_equal(graph(once).employer_projection().toarray(), graph(twice).employer_projection().toarray())
    assert graph(twice).jobs == 3


@given(jobs=JOBS)
def test_edges_and_multiplicities_are_those_counted_pair_by_pair(jobs: Jobs) -> None:
    shared = {(i, j): len(staff(jobs)[i] & staff(jobs)[j]) for i, j in combinations(range(6), 2)}
    assert as_dict(graph(jobs).employer_edges()) == {pair: workers for pair, workers in shared.items() if workers}
    degrees = [sum(1 for pair, workers in shared.items() if workers and e in pair) for e in range(6)]
    assert graph(jobs).employer_degrees().tolist() == degrees


@given(jobs=JOBS)
def test_worker_edges_are_the_employer_edges_of_the_graph_turned_round(jobs: Jobs) -> None:
    turned = Bipartite.of([e for _, e in jobs], [w for w, _ in jobs], workers=6, employers=8)
    assert as_dict(graph(jobs).worker_edges()) == as_dict(turned.employer_edges())


@given(jobs=JOBS)
def test_a_worker_with_z_employers_adds_z_times_z_minus_one_halves_edges(jobs: Jobs) -> None:
    held = graph(jobs).employers_of_workers()
    assert graph(jobs).employer_edges().multiplicity.sum() == (held * (held - 1) // 2).sum()


@given(jobs=JOBS)
def test_the_diagonals_are_the_sizes_and_loops_count_those_with_one_employer(jobs: Jobs) -> None:
    here = graph(jobs)
    assert np.array_equal(here.employer_projection().diagonal(), here.workers_of_employers())
    assert np.array_equal(here.worker_projection().diagonal(), here.employers_of_workers())
    everyone = {w: {e for v, e in jobs if v == w} for w, _ in jobs}
    assert here.employer_loops().tolist() == [sum(1 for where in everyone.values() if where == {e}) for e in range(6)]


@given(jobs=JOBS)
def test_components_join_exactly_those_that_a_chain_of_jobs_joins(jobs: Jobs) -> None:
    parts = [{("worker", w)} for w in range(8)] + [{("employer", e)} for e in range(6)]
    for w, e in jobs:
        touched = [part for part in parts if ("worker", w) in part or ("employer", e) in part]
        parts = [part for part in parts if part not in touched] + [set().union(*touched)]
    found = graph(jobs).components()
    members: dict[int, set[tuple[str, int]]] = {}
    for kind, labels in (("worker", found.workers), ("employer", found.employers)):
        for index, label in enumerate(labels.tolist()):
            members.setdefault(label, set()).add((kind, index))
    assert found.number == len(parts)
    assert sorted(map(sorted, members.values())) == sorted(map(sorted, parts))


def test_an_empty_graph_has_no_edges() -> None:
    assert len(graph([]).employer_edges()) == 0
    assert graph([]).employer_degrees().tolist() == [0] * 6
    assert graph([]).components().number == 14


def test_a_projection_that_would_not_fit_is_refused_before_it_is_made() -> None:
    size = 100_000  # one employer of so many has 10 billion pairs
    crowd = Bipartite.of(np.arange(size), np.zeros(size, np.int64), workers=size, employers=1)
    with pytest.raises(MethodError, match="at most 50,000,000 pairs") as refusal:
        crowd.worker_projection()
    assert "10,000,000,000" not in str(refusal.value)
    assert crowd.employer_projection().toarray().tolist() == [[size]]
    with pytest.raises(MethodError, match="onto employers"):
        graph_of(B).employer_projection(limit=8)


@pytest.mark.parametrize(("worker", "employer"), [([0, 1], [0]), ([5], [0]), ([0], [3]), ([-1], [0])])
def test_indices_outside_the_graph_are_refused(worker: list[int], employer: list[int]) -> None:
    with pytest.raises(ValueError, match="worker"):
        Bipartite.of(worker, employer, workers=5, employers=3)


@given(jobs=JOBS)
def test_pairs_of_workers_who_share_several_employers_come_once_each_with_all_of_these(jobs: Jobs) -> None:
    everyone = {worker: {e for w, e in jobs if w == worker} for worker in range(8)}
    expected = {
        (v, w): everyone[v] & everyone[w] for v, w in combinations(range(8), 2) if len(everyone[v] & everyone[w]) > 1
    }
    found: dict[tuple[int, int], set[int]] = {}
    for some in graph(jobs).sharing_several():
        for v, w in zip(some.first.tolist(), some.second.tolist(), strict=True):
            assert found.setdefault((v, w), set()) == set()
        for pair, employer in zip(some.pair.tolist(), some.employer.tolist(), strict=True):
            found[int(some.first[pair]), int(some.second[pair])].add(employer)
    assert found == expected


def test_pairs_that_share_several_employers_come_in_parts_where_they_are_many() -> None:
    size = 2_500  # all share both employers: three million pairs
    everyone = np.tile(np.arange(size), 2)
    crowd = Bipartite.of(everyone, np.repeat([0, 1], size), workers=size, employers=2)
    parts = list(crowd.sharing_several())
    assert len(parts) > 1
    pairs = np.concatenate([part.first * size + part.second for part in parts])
    assert np.array_equal(np.sort(pairs), np.flatnonzero(np.triu(np.ones((size, size), np.int8), k=1)))
    assert max(len(part.first) for part in parts) < 100_000  # never all in memory
    pairs_in_all = size * (size - 1) // 2
    next(crowd.sharing_several(limit=pairs_in_all))
    with pytest.raises(MethodError, match="share many workers") as refusal:
        next(crowd.sharing_several(limit=pairs_in_all - 1))
    assert "graph between employers" in refusal.value.do
