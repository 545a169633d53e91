"""The evaluation of the bottom-up hypercube, done again: every row, every finding, the page and the command."""

import json
from pathlib import Path

import pytest

from sfumato_lab.reproduce.li2020 import Reproduction, reproduce
from sfumato_lab.reproduce.li2020.evaluate import TABLE_4, VARIANTS
from sfumato_lab.reproduce.li2020.levels import APPROACHES, EPSILONS, NUMBERS, SURVEYS, WORKLOADS
from sfumato_lab.reproduce.li2020.page import findings, reproduction_summary, write_reproduction
from sfumato_lab.reproduce.li2020.reproduction import CALIBRATIONS
from tests.cli.call import call
from tests.lab.reproduce.figures import rows, written

RUNS = 100


@pytest.fixture(scope="module")
def found() -> Reproduction:
    return reproduce(runs=RUNS, quotes=2_000)


def test_the_probabilities_of_table_2_are_given_for_each_j(found: Reproduction) -> None:
    table = rows(found, "noise_probability")
    assert [row["j"] for row in table] == list(range(8))
    assert all(abs(row["published"] - row["ours"]) < 1e-5 for row in table)


@pytest.mark.parametrize("variant", VARIANTS)
def test_least_squares_solves_every_run_and_takes_away_at_least_the_published_share(
    found: Reproduction, variant: str
) -> None:
    (runs,) = rows(found, "converged_runs", calibration="least-squares", variant=variant)
    assert (runs["published"], runs["ours"]) == (None, RUNS)
    for suffix in ("", "_within_run"):
        table = rows(found, f"variance_reduction{suffix}", calibration="least-squares", variant=variant)
        assert [row["dimension"] for row in table] == list(TABLE_4)
        assert all(row["ours"] >= row["published"] - 1e-9 for row in table)
        assert all(row["ours"] >= 0 for row in table)


def test_two_sided_noise_and_its_reduction_agree_with_theory_however_it_is_averaged(found: Reproduction) -> None:
    for suffix in ("", "_within_run", "_mean_square", "_by_table", "_by_cell"):
        for quantity, tolerance in (("noise_variance", 0.15), ("variance_reduction", 0.1)):
            table = rows(found, quantity + suffix, calibration="least-squares", variant="two-sided")
            assert len(table) == (0 if quantity == "noise_variance" and "_by_" in suffix else len(TABLE_4))
            for row in table:
                assert row["ours"] == pytest.approx(row["theory"], rel=tolerance, abs=0.001)
    (one_way,) = rows(found, "noise_variance", calibration="least-squares", variant="two-sided", dimension=1)
    assert one_way["published"] == 6.592
    assert one_way["theory"] == pytest.approx(12.43, abs=0.01)


def test_keeping_cells_from_going_negative_halves_the_variance_and_biases_the_sums(found: Reproduction) -> None:
    about = {"calibration": "least-squares", "dimension": 1}
    (two_sided,) = rows(found, "noise_variance", variant="two-sided", **about)
    (kept,) = rows(found, "noise_variance", variant="no-negative", **about)
    (square,) = rows(found, "noise_variance_mean_square", variant="no-negative", **about)
    assert kept["ours"] == pytest.approx(two_sided["ours"] / 2, rel=0.25)
    assert square["ours"] > 3 * two_sided["ours"]


def test_raking_fails_in_most_runs_with_signed_cells_and_raises_variances(found: Reproduction) -> None:
    (runs,) = rows(found, "converged_runs", calibration="raking", variant="two-sided")
    assert runs["published"] == 224
    assert 0.1 * RUNS < runs["ours"] < 0.4 * RUNS
    for row in rows(found, "variance_reduction", calibration="raking", variant="two-sided"):
        if row["dimension"] >= 6:
            assert row["ours"] < 0
    (kept,) = rows(found, "converged_runs", calibration="raking", variant="no-negative")
    assert kept["ours"] > 0.9 * RUNS


def test_rows_of_raking_say_over_how_many_runs_they_are_and_all_runs_are_worse(found: Reproduction) -> None:
    about = {"calibration": "raking", "variant": "two-sided"}
    (converged,) = rows(found, "converged_runs", **about)
    for dimension in range(2, 6):
        (some,) = rows(found, "variance_reduction", dimension=dimension, **about)
        (every,) = rows(found, "variance_reduction_all_runs", dimension=dimension, **about)
        assert (some["runs_used"], every["runs_used"]) == (converged["ours"], RUNS)
        assert every["ours"] < some["ours"] - 0.2
    assert all(row["runs_used"] == RUNS for row in rows(found, "variance_reduction", calibration="least-squares"))


def test_several_levels_are_compared_with_the_cube_alone_at_the_same_budget(found: Reproduction) -> None:
    table = rows(found, "level_error")
    keys = {(row["epsilon"], row["records"], row["dimension"], row["approach"], row["numbers"]) for row in table}
    assert len(keys) == len(table) == len(EPSILONS) * len(SURVEYS) * len(TABLE_4) * len(APPROACHES) * len(NUMBERS)
    for row in table:
        if row["theory"] is not None and row["dimension"] >= 4:
            assert row["ours"] == pytest.approx(row["theory"], rel=0.2)
    for candidate in found.levels.designs.values():
        assert candidate.design.delta <= found.levels.delta
    assert all(candidate.design.epsilon == epsilon for epsilon, candidate in found.levels.designs.items())


def test_whole_numbers_from_several_levels_have_smaller_errors_at_every_dimension_when_epsilon_is_small(
    found: Reproduction,
) -> None:
    def error(epsilon: int, records: int, dimension: int, approach: str, numbers: str) -> float:
        about = {"epsilon": epsilon, "records": records, "dimension": dimension}
        (row,) = rows(found, "level_error", approach=approach, numbers=numbers, **about)
        return row["ours"]

    for dimension in TABLE_4:
        for records in SURVEYS:
            several = error(1, records, dimension, "several-levels", "whole-nonnegative")
            assert several < error(1, records, dimension, "bottom-up", "signed")
            assert error(7, records, dimension, "several-levels", "signed") > 0.9 * error(
                7, records, dimension, "bottom-up", "signed"
            )


def test_the_levels_recommended_depend_on_the_tables_asked_for(found: Reproduction) -> None:
    best = {
        (row["epsilon"], row["workload"]): row["approach"] for row in rows(found, "workload_error", recommended=True)
    }
    assert len(best) == len(EPSILONS) * len(WORKLOADS)
    assert best[1, "one-way"] == best[1, "one- to three-way"] == best[7, "one-way"] == "several-levels"
    assert best[1, "the cube"] == best[7, "the cube"] == best[7, "two-way"] == "bottom-up"
    for epsilon, workload in best:
        errors = [row["ours"] for row in rows(found, "workload_error", epsilon=epsilon, workload=workload)]
        assert errors == sorted(errors)


def test_table_4_comes_out_as_the_variance_within_a_run_of_raked_two_sided_noise(found: Reproduction) -> None:
    for dimension in range(1, 7):
        about = {"calibration": "raking", "variant": "two-sided", "dimension": dimension}
        (before,) = rows(found, "noise_variance_within_run", **about)
        (after,) = rows(found, "noise_variance_calibrated_within_run", **about)
        assert before["ours"] == pytest.approx(before["published"], rel=0.2)
        assert after["ours"] == pytest.approx(after["published"], rel=0.2, abs=1e-3)


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    first, again, other = (list(reproduce(runs=2, seed=seed, quotes=1_000).rows()) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_findings_name_the_erratum_and_what_table_4_is(found: Reproduction) -> None:
    text = "\n".join(findings(found))
    assert "8 of 8 probabilities" in text
    assert "0.182%, not 23.5%" in text
    assert f"{RUNS} of {RUNS} runs meet every control exactly" in text
    assert "mean square" in text


def test_few_tables_are_better_asked_by_themselves_and_many_are_not(found: Reproduction) -> None:
    for epsilon in (1.0, 7.0):
        errors = {row["tables"]: row["ours"] for row in rows(found, "interactive_error", epsilon=epsilon)}
        cube = {row["dimension"]: row["ours"] for row in rows(found, "bottom_up_error", epsilon=epsilon)}
        even = {row["dimension"]: row["ours"] for row in rows(found, "tables_better_asked", epsilon=epsilon)}
        assert errors[1] == pytest.approx(cube[10]), "the cube is one table"
        assert list(even.values()) == sorted(even.values(), reverse=True)
        assert (errors[10] < cube[1]) == (even[1] >= 10)
        assert errors[1023] > cube[1]


def test_tables_asked_by_themselves_do_not_add_up_and_those_of_a_cube_do(found: Reproduction) -> None:
    apart = {row["approach"]: row["ours"] for row in rows(found, "cells_that_do_not_add_up")}
    assert apart["bottom-up"] == 0
    assert apart["interactive"] > 0.9


def test_one_draw_gives_weights_away_and_two_do_not(found: Reproduction) -> None:
    read = {(row["draws"], row["attack"]): row["ours"] for row in rows(found, "weights_read")}
    assert read["shared", "weight, known to be alone"] > 0.95
    assert read["own", "weight, known to be alone"] == read["own", "weight, published as alone"] == 0


def test_intruders_get_more_than_a_guess_and_less_than_without_noise(found: Reproduction) -> None:
    for row in rows(found, "disclosed", attack="linked records"):
        about = {"attack": row["attack"], "known": row["known"]}
        (guess,), (plain,) = (
            rows(found, name, **about) for name in ("right_by_guessing", "disclosed_without_protection")
        )
        assert guess["ours"] - 0.05 < row["ours"] < plain["ours"] == 1


def test_relaxed_rules_make_more_estimates_publishable_than_they_lose(found: Reproduction) -> None:
    for row in rows(found, "newly_publishable"):
        (lost,) = rows(found, "newly_marked", dimension=row["dimension"])
        assert row["ours"] >= lost["ours"]
    assert sum(row["ours"] for row in rows(found, "newly_publishable")) > 50


def test_the_object_for_machines_the_csv_and_the_page_hold_every_row(found: Reproduction, tmp_path: Path) -> None:
    data, text = written(found, write_reproduction, reproduction_summary, tmp_path, paper="li2020", charts=3)
    for quantity in ("noise_variance", "noise_variance_calibrated", "variance_reduction"):
        keys = {
            (row["dimension"], row["calibration"], row["variant"])
            for row in data["rows"]
            if row["quantity"] == quantity
        }
        assert keys == {(d, c, v) for d in TABLE_4 for c in CALIBRATIONS for v in VARIANTS}
    assert "Several levels instead of one" in text


def test_the_command_writes_the_page_and_prints_one_object(tmp_path: Path) -> None:
    done = call("reproduce", "li2020", "--runs", "2", "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["paper"] == "li2020"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["li2020.csv", "li2020.html"]
