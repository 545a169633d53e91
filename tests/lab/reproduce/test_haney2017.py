"""The published evaluation done again: what it must show at any size of the economy."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.release import load
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.reproduce.haney2017.evaluate import Grid, Tabulated, draw_legacy, tabulate_workloads
from sfumato_lab.reproduce.haney2017.reproduction import (
    QUICK,
    Reproduction,
    reproduce,
    reproduction_summary,
    write_reproduction,
)
from tests.cli.test_cli import call
from tests.lab.economy.conftest import JOBS
from tests.lab.reproduce.figures import rows, written

BASE = (Fraction("0.1"), Fraction(2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("haney") / "economy", jobs=JOBS).folder


@pytest.fixture(scope="module")
def found(folder: Path) -> Reproduction:
    return reproduce(data=folder, grid=QUICK)


@pytest.fixture(scope="module")
def tabulated(folder: Path) -> Tabulated:
    return tabulate_workloads(load(folder / "release.toml"))


def ratio(
    found: Reproduction, workload: int, method: str, setting: tuple[Fraction, Fraction] = BASE, stratum: str = "all"
) -> float:
    (row,) = [
        row
        for row in found.measured
        if (row.quantity, row.workload, row.method, row.stratum) == ("l1_ratio", workload, method, stratum)
        and (row.alpha, row.epsilon) == setting
    ]
    assert row.ours is not None, row.reason
    return row.ours


def test_smooth_laplace_is_better_than_the_legacy_and_smooth_pareto_nearly_twice_as_good(found: Reproduction) -> None:
    assert ratio(found, 1, "smooth-laplace") < 1
    assert ratio(found, 1, "smooth-pareto") <= 0.40
    assert ratio(found, 1, "smooth-laplace") >= 1.8 * ratio(found, 1, "smooth-pareto")
    assert ratio(found, 1, "smooth-gamma") <= 5
    assert ratio(found, 1, "log-laplace") <= 5


def test_one_draw_for_all_worker_cells_beats_sharing_epsilon_among_them(found: Reproduction) -> None:
    twentieth, fine = Fraction("0.05"), Fraction("0.01")
    assert ratio(found, 3, "vector-pareto", (twentieth, Fraction(2))) <= 2.2
    assert ratio(found, 3, "vector-pareto", (fine, Fraction(2))) <= 0.6
    assert ratio(found, 3, "vector-pareto", (twentieth, Fraction(4))) <= 0.9
    assert ratio(found, 3, "auto") <= 3.9
    assert ratio(found, 3, "auto", (BASE[0], Fraction(4))) <= 1.5
    assert ratio(found, 3, "auto", (twentieth, Fraction(2))) <= 1.9
    assert ratio(found, 3, "vector-bell") <= 4
    assert ratio(found, 3, "auto-bell") <= 2.0
    for setting in (BASE, (twentieth, Fraction(2)), (twentieth, Fraction(4))):
        assert ratio(found, 3, "vector-bell", setting) < ratio(found, 3, "vector-pareto", setting)
        assert ratio(found, 3, "auto-bell", setting) < ratio(found, 3, "auto", setting)
        assert ratio(found, 3, "auto", setting) < ratio(found, 3, "smooth-laplace", setting)


def test_each_attack_succeeds_on_the_legacy_and_beats_no_guess_on_methods_that_hide_employers(
    found: Reproduction,
) -> None:
    attacks = [row for row in found.rows() if row["quantity"] == "attack_success"]
    legacy = {row["attack"]: row["ours"] for row in attacks if row["method"] == "noise-infusion"}
    assert legacy.keys() == {"shape", "size", "re-identification", "growth", "growth of totals"}
    assert all(rate is None or rate > 0.99 for rate in legacy.values())
    assert legacy["re-identification"] == 1
    for row in attacks:
        if row["method"] not in ("noise-infusion", "laplace") and row["ours"] is not None and row["targets"] >= 20:
            assert row["ours"] <= max(row["guess"], 0.05), row


def test_a_method_that_does_not_exist_says_which_inequality_it_breaks(found: Reproduction) -> None:
    skipped = [row for row in found.measured if row.ours is None and row.method == "smooth-gamma"]
    assert skipped
    assert all("ln(1 + alpha)" in row.reason for row in skipped if row.stratum == "all")


def test_a_curve_without_a_guarantee_is_shown_only_where_the_paper_shows_it_and_says_so(found: Reproduction) -> None:
    open_rows = [row for row in found.measured if row.reason and row.ours is not None]
    assert {(row.method, row.workload) for row in open_rows} == {("smooth-laplace", 3)}
    assert all(row.reason.startswith("no guarantee") for row in open_rows)


def test_the_figures_are_one_object_a_page_and_a_csv_with_what_was_published_beside(
    found: Reproduction, tmp_path: Path
) -> None:
    data, _ = written(found, write_reproduction, reproduction_summary, tmp_path, paper="haney2017", charts=10)
    for row in data["rows"]:
        if row["quantity"] in ("l1_ratio", "spearman"):
            assert {"workload", "method", "alpha", "epsilon", "stratum"} <= row.keys()
    stated = [row for row in data["rows"] if row["published"] is not None]
    measured = {"l1_ratio", "spearman", "share_within_10_points", "share_within_10_points_either_way"}
    assert {row["quantity"] for row in stated if "source" not in row} == measured
    assert {row["source"] for row in stated if "source" in row} == {
        *("Table 1", "Table 2", "Figure 1", "Figure 2", "Section 6", "Theorem 7.1", "Theorem 7.2", "Theorem 7.5")
    }
    assert all("relation" in row for row in stated)


def test_what_is_within_ten_points_either_way_is_within_them(found: Reproduction) -> None:
    shares = {
        quantity: rows(found, quantity) for quantity in ("share_within_10_points", "share_within_10_points_either_way")
    }
    for one_sided, two_sided in zip(*shares.values(), strict=True):
        assert (one_sided["ours"] is None) == (two_sided["ours"] is None)
        assert one_sided["ours"] is None or one_sided["ours"] >= two_sided["ours"]


def test_shapes_and_worker_cells_lose_more_than_the_theorems_say_and_no_more_than_their_steps(
    found: Reproduction,
) -> None:
    shapes = rows(found, "shape_loss")
    assert {row["method"] for row in shapes} == {"vector-pareto", "scalar", "smooth-box", "log-box"}
    assert all(row["published"] < row["ours"] <= row["steps"] * row["epsilon"] for row in shapes)
    (parallel,) = rows(found, "parallel_loss")
    assert parallel["ours"] > 2 * parallel["published"]


def test_drawing_small_cells_from_their_posterior_costs_the_legacy_little(found: Reproduction) -> None:
    assert all(0.8 < row["ours"] < 1.05 for row in rows(found, "legacy_posterior_ratio"))


def test_the_same_seed_gives_the_same_figures_with_any_number_of_threads(folder: Path) -> None:
    small = Grid(alphas=(BASE[0],), epsilons=(BASE[1],), trials=1)
    one, two = (reproduce(data=folder, grid=small, threads=threads) for threads in (1, 2))
    assert one == two
    assert reproduce(data=folder, grid=small, seed=2) != one


@pytest.mark.slow
def test_every_aim_is_reached_on_as_many_jobs_as_were_published() -> None:
    aims = [line for line in reproduce(grid=QUICK).findings if line.source == "aim"]
    assert len(aims) == 13
    assert all(line.holds for line in aims), aims


def test_the_command_writes_the_page_and_prints_one_object(folder: Path, tmp_path: Path) -> None:
    done = call("reproduce", "haney2017", "--quick", "--data", folder, "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["paper"] == "haney2017"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["haney2017.csv", "haney2017.html"]


def test_data_that_are_no_economy_are_refused(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    file.write_text(
        file.read_text().replace('public = ["place", ', 'public = ["town", "place", ').replace("sex = ", "s = ")
    )
    assert (
        "as `sfumato economy` writes it"
        in call("reproduce", "haney2017", "--data", release_folder, refused=True).stderr
    )


def test_workloads_agree_with_each_other_and_with_what_establishments_contribute(tabulated: Tabulated) -> None:
    first, second, third = (tabulated.workloads[n] for n in (1, 2, 3))
    inside = third.worker_cells
    assert inside == 8
    for column in ("count", "count_below_threshold"):
        assert np.array_equal(third.cells[column].reshape(-1, inside).sum(axis=1), first.cells[column])
    assert np.array_equal(second.cells["count"], third.cells["count"])
    assert len(second.ranked) == len(first.cells)
    ones = np.ones(len(tabulated.contributions.units), dtype=np.int64)
    assert np.array_equal(tabulated.contributions.sums(ones), third.cells["count"])
    assert tabulated.jobs == JOBS


def test_the_legacy_keeps_zeros_redraws_ones_and_twos_and_moves_the_rest_by_a_tenth_to_a_quarter(
    tabulated: Tabulated,
) -> None:
    legacy = draw_legacy(tabulated, trials=2, seed=1)
    true, establishments = (tabulated.workloads[1].cells[name] for name in ("count", "establishments"))
    for values in legacy.values[1]:
        assert np.all(values[true == 0] == 0)
        assert set(values[(true > 0) & (true <= 2)]) == {1, 2}
        alone = (establishments == 1) & (true > 100)
        moved = np.abs(values[alone] / true[alone] - 1)
        assert moved.min() >= 0.10 - 0.005
        assert moved.max() <= 0.25 + 0.005
    assert not np.array_equal(*legacy.values[1])
