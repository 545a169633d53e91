"""The published table of protected edges done again: what it must show at any size, and at the published one."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato_lab.reproduce.abowd2016
from sfumato.errors import DataError
from sfumato.release import load
from sfumato_lab.economy.federal.generate import generate_federal
from sfumato_lab.reproduce.abowd2016.evaluate import (
    LEAST,
    LOOPED,
    MOST,
    Edges,
    Measured,
    edge_factors,
    read_edges,
)
from sfumato_lab.reproduce.abowd2016.graph_figures import MINIMUM
from sfumato_lab.reproduce.abowd2016.reproduction import (
    ALL,
    CLASS_ENDS,
    CLASSES,
    FURTHER,
    PUBLISHED,
    SIZE_CLASSES,
    TABLES,
    Reproduction,
    findings,
    reproduce,
    reproduction_summary,
    write_reproduction,
)
from tests.cli.call import call
from tests.lab.reproduce.figures import written

PERSONS = 100_000
KEYS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_federal(tmp_path_factory.mktemp("abowd") / "federal", persons=PERSONS).folder


@pytest.fixture(scope="module")
def linked(folder: Path) -> Edges:
    return read_edges(load(folder / "release.toml"))


@pytest.fixture(scope="module")
def edges(linked: Edges) -> Edges:
    return linked.without_loops()


@pytest.fixture(scope="module")
def found(folder: Path) -> Reproduction:
    return reproduce(data=folder, keys=KEYS)


def measured(quantity: str, table: str, size_class: str, *by_key: float) -> Measured:
    return Measured(quantity=quantity, table=table, size_class=size_class, by_key=by_key)


def ours(found: Reproduction, quantity: str, table: str, size_class: str = ALL) -> float:
    (row,) = [r for r in found.rows() if (r["quantity"], r["table"], r["size_class"]) == (quantity, table, size_class)]
    return row["ours"]


def test_edges_are_the_pairs_of_employers_that_share_workers(edges: Edges, folder: Path) -> None:
    jobs = pq.read_table(folder / "jobs.parquet").to_pydict()
    employers_of: dict[int, list[str]] = {}
    for worker, employer in zip(jobs["worker"], jobs["employer"], strict=True):
        employers_of.setdefault(worker, []).append(employer)
    shared: dict[tuple[str, str], int] = {}
    for held in employers_of.values():
        for pair in ((a, b) for a in held for b in held if a < b):
            shared[pair] = shared.get(pair, 0) + 1
    names = edges.employers.to_pylist()
    pairs = zip(edges.first.tolist(), edges.second.tolist(), strict=True)
    assert {(names[a], names[b]) for a, b in pairs} == set(shared)
    assert edges.workers.sum() == sum(shared.values())


def test_loops_have_the_workers_of_one_employer_alone(linked: Edges, folder: Path) -> None:
    worker = pq.read_table(folder / "jobs.parquet")["worker"].to_numpy()
    jobs = np.bincount(worker)
    loops = linked.first == linked.second
    assert linked.workers[loops].sum() == np.count_nonzero(jobs == 1)
    assert (linked.persons, linked.jobs) == (np.count_nonzero(jobs), len(worker))


def test_a_cell_is_a_pair_of_states_whichever_comes_first(edges: Edges) -> None:
    state = [name[:2] for name in edges.employers.to_pylist()]
    pairs = [frozenset((state[a], state[b])) for a, b in zip(edges.first, edges.second, strict=True)]
    assert edges.cells == 1_326
    assert edges.cell.min() >= 0
    assert edges.cell.max() < edges.cells
    assert len(set(zip(pairs, edges.cell.tolist(), strict=True))) == len(set(pairs)) == edges.filled


def test_an_edge_takes_the_factor_of_one_of_its_employers_by_the_rule_for_twelve_characters(edges: Edges) -> None:
    factors = edge_factors(edges, key=bytes(range(16)), rule="twelve-characters")
    distortion = np.abs(factors / 1_000_000 - 1)
    assert distortion.min() >= LEAST
    assert distortion.max() <= MOST
    # The employer with the smaller office number decides, so that all its edges with greater numbers share a factor.
    number = np.array([int(name[7:9]) for name in edges.employers.to_pylist()])
    one, other = number[edges.first], number[edges.second]
    decider = np.where(one < other, edges.first, edges.second)[one != other]
    taken = factors[one != other]
    for employer in np.unique(decider)[:200]:
        assert len(np.unique(taken[decider == employer])) == 1


def test_every_figure_of_the_published_table_stands_beside_ours(found: Reproduction, tmp_path: Path) -> None:
    data, _ = written(found, write_reproduction, reproduction_summary, tmp_path, paper="abowd2016", charts=2)
    assert len(PUBLISHED) == 2 * (2 * 8 + 2)
    for row in data["rows"][: len(PUBLISHED)]:
        assert {"table", "size_class"} <= row.keys()
        assert row["quantity"] in ("c_mean", "c_sd", "jsd", "rimse")
        assert row["table"] in TABLES
        assert row["size_class"] in ((ALL,) if row["quantity"] in ("jsd", "rimse") else SIZE_CLASSES)
        assert PUBLISHED[row["quantity"], row["table"], row["size_class"]] == row["published"]
        assert row["ours"] is None or row["low"] <= row["ours"] <= row["high"]


def test_every_figure_of_the_text_stands_beside_ours(found: Reproduction) -> None:
    rows = {(r["quantity"], r["table"], r["size_class"]): r for r in found.rows()}
    of_table = {key for key in FURTHER if key[1].endswith(LOOPED)}
    assert FURTHER.keys() - of_table <= rows.keys()
    assert len(rows) == len(list(found.rows()))
    for key, published in FURTHER.items():
        if key[0] == "example":
            assert rows[key]["ours"] == published
    assert rows["factor", "ramp", "least distortion"]["ours"] == pytest.approx(0.15, abs=1e-3)
    assert rows["factor", "ramp", "greatest distortion"]["ours"] == pytest.approx(0.25, abs=1e-3)
    assert rows["factor", "ramp", "distance from the distribution"]["ours"] < 0.006  # 1.9 times 1/√n
    assert rows["workforce", ALL, "share with one employer"]["ours"] == pytest.approx(0.85, abs=0.005)
    # The published total, scaled to the persons of this workforce, counts workers with one employer too.
    scale = PERSONS / FURTHER["workforce", ALL, "persons"]
    total = rows["workforce", ALL, "workers on edges and loops"]
    assert total["ours"] == pytest.approx(scale * total["published"], rel=0.05)


def test_the_convergence_ratio_is_above_one_and_grows_with_the_cell(found: Reproduction) -> None:
    for table in TABLES:
        rising = [ours(found, "convergence_ratio", table, size) for size in SIZE_CLASSES[:6]]
        assert rising == sorted(rising)
        assert rising[0] >= 1
    assert ours(found, "convergence_ratio", "job") > 100


def test_small_cells_are_better_synthesised_than_suppressed(found: Reproduction) -> None:
    limit = f"below {MINIMUM}"
    assert ours(found, "jsd", "edge, synthesised", limit) < ours(found, "jsd", "edge, suppressed", limit)


def test_factors_move_centralities_little_and_steps_not_at_all(found: Reproduction) -> None:
    for table in TABLES:
        assert ours(found, "steps", table, "true") == ours(found, "steps", table, "protected")
        assert ours(found, "rank_correlation", table, "degree") == pytest.approx(1)
        for centrality in ("strength", "closeness", "eigenvector"):
            assert ours(found, "rank_correlation", table, centrality) > 0.97
            assert 0 < ours(found, "off_by", table, centrality) < 0.1


def test_single_edges_keep_the_minimum_distortion_and_large_cells_lose_it(found: Reproduction) -> None:
    for table in TABLES:
        assert ours(found, "c_sd", table, "1-6") > 2 * ours(found, "c_sd", table, "36-75")
    assert ours(found, "c_sd", "edge", "1-6") < 0.26
    assert 0 < ours(found, "rimse", "edge") < ours(found, "jsd", "edge") < 0.1
    assert ours(found, "jsd", "edge") < ours(found, "jsd", "worker")


def test_a_cell_belongs_to_the_class_of_its_edges() -> None:
    assert len(CLASS_ENDS) == len(SIZE_CLASSES) - 1
    named = {edges: SIZE_CLASSES[place] for edges, place in zip((1, 6, 7, 272, 273), CLASSES.of(
        np.array([1, 6, 7, 272, 273])), strict=True)}  # fmt: skip
    assert named == {1: "1-6", 6: "1-6", 7: "7-9", 272: "162-272", 273: "272+"}


def test_the_same_seed_gives_the_same_figures_and_another_seed_other_keys(folder: Path, found: Reproduction) -> None:
    assert reproduce(data=folder, keys=KEYS) == found
    assert reproduce(data=folder, keys=KEYS, seed=2).measured != found.measured
    fewer = reproduce(data=folder, keys=1)
    assert [row.by_key[0] for row in fewer.measured] == [row.by_key[0] for row in found.measured]


def test_the_keyed_rule_chooses_other_factors_for_the_same_edges(folder: Path, found: Reproduction) -> None:
    keyed = reproduce(data=folder, keys=KEYS, rule="keyed")
    assert (keyed.edges, keyed.cells) == (found.edges, found.cells)
    assert keyed.measured != found.measured


def test_a_finding_that_does_not_hold_is_reported_as_such() -> None:
    rows = [
        measured("jsd", "edge", ALL, 0.03, 0.04),
        measured("jsd", "worker", ALL, 0.02, 0.03),
        measured("c_mean", "edge", "1-6", 0.02, 0.03),
        *(measured("c_sd", "edge", size, deviation) for size, deviation in (("1-6", 0.1), ("7-9", 0.2))),
        *(measured("c_sd", "worker", size, deviation) for size, deviation in (("1-6", 0.2), ("7-9", 0.1))),
    ]
    holds = {line.what: line.holds for line in findings(rows)}
    assert holds["edge table: Jensen-Shannon distance"] is False
    assert holds["worker table: Jensen-Shannon distance"] is True
    assert holds["edge table: mean of c in every class, mean over the keys"] is False
    assert holds["edge table: dispersion of c falls with the size of the cell"] is False
    assert holds["dispersion of c is higher in the worker table, in every class"] is False


def test_what_was_not_measured_is_not_reported() -> None:
    assert findings([]) == []


def test_published_figures_are_used_for_printing_only() -> None:
    room = Path(sfumato_lab.reproduce.abowd2016.__file__).parent
    assert "published import" not in (room / "evaluate.py").read_text(encoding="utf-8")


def test_the_command_writes_the_page_and_prints_one_object(folder: Path, tmp_path: Path) -> None:
    done = call("reproduce", "abowd2016", "--quick", "--data", folder, "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["paper"] == "abowd2016"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["abowd2016.csv", "abowd2016.html"]
    assert "Jensen-Shannon distance" in call("reproduce", "abowd2016", "--quick", "--data", folder, cwd=tmp_path).stdout


def test_the_workforce_is_made_where_there_is_none(tmp_path: Path) -> None:
    made = reproduce(data=tmp_path / "new", persons=5_000, keys=1)
    assert (tmp_path / "new" / "jobs.parquet").is_file()
    assert made.employers == 100


def test_data_of_another_kind_are_refused(release_folder: Path) -> None:
    with pytest.raises(DataError, match="sfumato economy federal"):
        read_edges(load(release_folder / "release.toml"))


@pytest.fixture(scope="module")
def whole() -> Reproduction:
    """The reproduction at the published size, as the command does it."""
    return reproduce()


@pytest.mark.slow
def test_distances_and_means_at_the_published_size_are_where_they_must_be(whole: Reproduction) -> None:
    assert 0.005 <= ours(whole, "jsd", "edge") <= 0.02
    assert 0.015 <= ours(whole, "jsd", "worker") <= 0.045
    assert ours(whole, "rimse", "edge") == pytest.approx(0.002, abs=0.001)
    assert ours(whole, "rimse", "worker") == pytest.approx(0.010, abs=0.005)
    for table, most in (("edge", 0.01), ("worker", 0.03)):
        assert all(abs(ours(whole, "c_mean", table, size)) <= most for size in SIZE_CLASSES)


@pytest.mark.slow
def test_dispersion_falls_with_the_size_of_the_cell_to_the_decimals_of_the_paper(whole: Reproduction) -> None:
    (line,) = [line for line in whole.findings if line.what.startswith("edge table: dispersion")]
    assert line.holds, line.ours
    assert ours(whole, "c_sd", "edge", "1-6") > 3 * ours(whole, "c_sd", "edge", "272+")


ABOVE = pytest.mark.xfail(strict=True, reason="the largest cells disperse over a third more than published")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "size"),
    [
        pytest.param(table, size, marks=ABOVE if (table, size) == ("edge", "272+") else ())
        for table in TABLES
        for size in SIZE_CLASSES
    ],
)
def test_dispersion_is_within_35_percent_of_the_published_one(whole: Reproduction, table: str, size: str) -> None:
    assert ours(whole, "c_sd", table, size) == pytest.approx(PUBLISHED["c_sd", table, size], rel=0.35)
