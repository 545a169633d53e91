"""Totals and indicators beside the legacy: every figure has its row, errors are those of the data, attacks are told."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.noise.factors import ONE
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.reproduce.totals import panel, pay
from sfumato_lab.reproduce.totals.pay import ALL, Pay, Setting
from sfumato_lab.reproduce.totals.readers import FORMAL, LEGACY, growth, lattice, shape, size
from sfumato_lab.reproduce.totals.reproduction import (
    METHODS,
    Reproduction,
    reproduce,
    reproduction_summary,
    write_reproduction,
)
from tests.lab.reproduce.figures import rows, written
from tests.running.same_draws import same_draws

FEW = Setting(trials=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("totals")
    generate(made, jobs=20_000)
    return made


@pytest.fixture(scope="module")
def paid(folder: Path) -> Pay:
    return Pay.read(folder)


def test_pay_is_that_of_the_files_and_the_cap_cuts_a_thousandth_of_jobs(paid: Pay, folder: Path) -> None:
    earned = pq.read_table(folder / "jobs.parquet")["earnings"].to_numpy()
    assert paid.pay.sum() == earned.sum()
    assert paid.jobs.sum() == len(earned) == 20_000
    assert (earned > paid.cap).mean() == pytest.approx(0.001, abs=0.0002)
    assert paid.cut.sum() == np.minimum(earned, paid.cap).sum()
    assert (paid.cut <= paid.pay).all()
    assert 0 < paid.share_cut < 0.01


def test_errors_of_pay_are_told_for_every_table_method_and_class(paid: Pay) -> None:
    found = list(pay.errors(paid, FEW, 1, lambda *_: None))
    again = list(pay.errors(paid, FEW, 1, lambda *_: None))
    assert found == again, "the same seed gives the same figures"
    for table in pay.TABLES:
        own = {(one.quantity, one.method): one.ours for one in found if (one.table, one.size_class) == (table, ALL)}
        assert {method for _, method in own} == set(METHODS)
        assert own["error_share_with_cut", FORMAL] > 0.5 * own["error_share", FORMAL]
    legacy = [one.ours for one in found if one.method == LEGACY and one.size_class == ALL]
    assert all(share is not None and 0.005 < share < 0.2 for share in legacy)
    finest = {one.size_class: one.ours for one in found if one.quantity == "error_share" and one.method == FORMAL}
    assert finest["100-999"] < finest["10-99"] < finest["1-9 jobs"]


def test_attacks_on_pay_succeed_on_factors_and_fail_on_noise(paid: Pay) -> None:
    found = {(one.method, one.attack): one for one in pay.attacks(paid, FEW, 1)}
    assert set(found) == {(method, attack) for method in METHODS for attack in ("shape", "size", "growth")}
    for (method, attack), one in found.items():
        assert one.targets > 20
        assert one.succeeded == (1 if method == LEGACY else 0), attack
        assert (one.off < 1e-3) == (method == LEGACY)


def test_growth_of_pay_is_that_of_each_establishment_for_both_sexes(paid: Pay) -> None:
    grown = paid.grown(1)
    both = (paid.pay > 10_000).all(axis=1)
    rates = grown.pay[both] / paid.pay[both]
    assert np.abs(rates[:, 0] / rates[:, 1] - 1).max() < 1e-3
    assert 0.05 < np.log(rates[:, 0]).std() < 0.15


# Attacks on numbers that are made up.

TRUE = np.array([[900, 400], [30_000, 10_000], [500, 2_500]])
SINGLE = np.array([1, 1, 2])


def test_one_factor_hides_nothing_of_shape_size_and_growth_and_others_do() -> None:
    factors = np.array([[1.2], [0.85], [1.1]])
    published, later = np.rint(TRUE * factors * 1_000), np.rint(2 * TRUE * factors * 1_000)
    true, after = TRUE * 1_000, 2 * TRUE * 1_000
    assert shape("x", LEGACY, published, true, SINGLE).succeeded == 1
    assert size("x", LEGACY, published, true, SINGLE).succeeded == 1
    assert growth("x", LEGACY, [published, later], [true, after], SINGLE).succeeded == 1
    noise = np.array([[1.1, 0.8], [0.7, 1.3], [1, 1]])
    told = shape("x", FORMAL, np.rint(true * noise), true, SINGLE)
    assert told.succeeded == 0
    assert told.targets == 2
    assert told.off is not None
    assert told.off > 0.03


def test_a_lattice_tells_factors_above_one_and_noise_has_none() -> None:
    rng = np.random.default_rng(3)
    true = {one: [rng.integers(15, 200, 180) for _ in range(8)] for one in range(4)}
    factors = [1_180_000, 1_217_345, 1_104_002, 870_000]
    published = {one: [some * factors[one] // ONE for some in true[one]] for one in true}
    found = lattice("x", LEGACY, published, true, (100_000, 250_000))
    assert (found.targets, found.succeeded) == (4, 0.75)
    noisy = {one: [some + rng.integers(-9, 10, 180) for some in true[one]] for one in true}
    assert lattice("x", FORMAL, noisy, true, (100_000, 250_000)).succeeded == 0


# The panel, by release files.


def test_release_files_spend_epsilon_in_every_quarter(tmp_path: Path) -> None:
    asked = panel.Asked(name="cells", by=("state",), indicators=("end", "payroll"))
    quarters = ["2010-Q1", "2010-Q2", "2010-Q3"]
    files = panel.release_files(tmp_path, [asked], Setting(epsilon=Fraction(4)), quarters)
    formal, legacy = (files[method].read_text(encoding="utf-8") for method in METHODS)
    assert 'protect = { method = "smooth-pareto", epsilon = 12 }' in formal
    assert 'budget = { alpha = 0.1, epsilon = 12, totals = ["earnings"] }' in formal
    assert "budget" not in legacy
    assert "rounding = 1, earnings_rounding = 1" in legacy
    assert formal.count("[[table]]") == legacy.count("[[table]]") == 1


@pytest.fixture(scope="module")
def found(folder: Path) -> Reproduction:
    with same_draws():
        return reproduce(data=folder, persons=5_000, setting=FEW)


@pytest.mark.slow
def test_page_file_and_object_have_every_figure(found: Reproduction, tmp_path: Path) -> None:
    data, text = written(found, write_reproduction, reproduction_summary, tmp_path, paper="totals", charts=3)
    assert {row["quantity"] for row in data["rows"]} == {
        *(
            "error_share",
            "error_share_with_cut",
            "error_ratio",
            "growth_off",
            "growth_off_90",
            "attack_success",
            "share_cut",
        )
    }
    assert "Growth from quarter to quarter" in text


@pytest.mark.slow
def test_the_legacy_of_a_panel_is_off_by_its_factors_and_not_in_growth(found: Reproduction) -> None:
    for indicator in panel.GROWN:
        (row,) = rows(
            found,
            "error_share",
            part=panel.PART,
            table="state × agency",
            indicator=indicator,
            method=LEGACY,
            size_class=ALL,
        )
        assert 0.05 < row["ours"] < 0.25
        (row,) = rows(found, "growth_off", table="state × agency", indicator=indicator, method=LEGACY, size_class=ALL)
        assert row["ours"] < 0.02
    attacks = {row["attack"]: row for row in rows(found, "attack_success", part=panel.PART, method=LEGACY)}
    assert set(attacks) == {"ratio", "size", "growth"}
    assert all(row["ours"] > 0.9 and row["targets"] > 20 for row in attacks.values())


@pytest.mark.slow
def test_formal_indicators_are_compared_or_it_is_said_why_they_are_not(found: Reproduction) -> None:
    told = [row for row in found.rows() if row.get("part") == panel.PART and row.get("method") == FORMAL]
    assert told
    if found.reason:
        assert all(row["ours"] is None for row in told)
        assert "indicators" in found.reason or "method" in found.reason
        return
    off = [row["ours"] for row in told if row["quantity"] == "error_share" and row["size_class"] == ALL]
    assert all(0 < share < 1 for share in off)
    tried = rows(found, "attack_success", method=FORMAL)
    assert all(row["ours"] is None or row["ours"] <= 0.05 for row in tried)
