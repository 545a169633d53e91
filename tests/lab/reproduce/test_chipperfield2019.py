"""The figures about perturbed business totals, computed again: every row, every erratum, the page and the command."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.errors import DataError
from sfumato_lab.economy.business.generate import generate_business
from sfumato_lab.reproduce.chipperfield2019 import Reproduction, reproduce
from sfumato_lab.reproduce.chipperfield2019.evaluate import QUANTITIES, survey_tables
from sfumato_lab.reproduce.chipperfield2019.page import reproduction_summary, write_reproduction
from sfumato_lab.reproduce.chipperfield2019.published import TABLE_5
from sfumato_lab.reproduce.chipperfield2019.reproduction import errata, open_questions
from sfumato_lab.reproduce.chipperfield2019.table_5 import employees_of
from tests.cli.call import call
from tests.lab.reproduce.figures import rows, written


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_business(tmp_path_factory.mktemp("survey") / "data", businesses=5_000).folder


@pytest.fixture(scope="module")
def found(survey: Path) -> Reproduction:
    return reproduce(data=survey, keys=3)


def test_the_worked_example_is_exact(found: Reproduction) -> None:
    example = rows(found, "perturbation")
    assert len(example) == 7
    assert all(row["published"] == row["ours"] for row in example)


def test_every_panel_of_the_figure_has_its_published_loss_and_risk_beside_ours(found: Reproduction) -> None:
    for contributors, v, published, ours in (
        ("90,5,5", 0.11, 0.10, 0.009),
        ("90,5,5", 0.18, 0.90, 0.94),
        ("30,30,30,10", 0.11, 0.30, 0.30),
        ("30,30,30,10", 0.18, 0.64, 0.66),
    ):
        (row,) = [
            row
            for row in rows(found, "risk", contributors=contributors, m="0.15,0.1,0.1", attack=2, v=v)
            if str(row["source"]).startswith("figure")
        ]
        assert row["published"] == published
        assert row["ours"] == pytest.approx(ours, abs=0.006)


def test_attack_two_is_held_by_every_published_optimum_and_the_others_are_not(found: Reproduction) -> None:
    broken = {
        (row["contributors"], row["attack"])
        for row in rows(found, "risk", source="table 2")
        if row["published"] is not None and row["ours"] > row["published"]
    }
    assert broken == {
        ("90,5,5", 1),
        ("80,10,5,5", 1),
        *((sizes, 3) for sizes in ("90,5,5", "80,10,5,5", "70,20,10", "60,20,10,10")),
    }


def test_optimal_magnitudes_are_given_under_all_attacks_and_under_attack_two(found: Reproduction) -> None:
    optimal = rows(found, "optimal_m")
    assert {(row["attacks"], row["falling"]) for row in optimal} == {
        (attacks, falling) for attacks in ("1,2,3", "2") for falling in (False, True)
    }
    assert len(optimal) == 9 * 4
    (row,) = rows(found, "optimal_m", contributors="90,5,5", attacks="2", falling=False)
    assert (row["published"], row["ours"]) == ("0.15,0.1,0.1", "0.15,0.05,0.05")
    (row,) = rows(found, "optimal_m", contributors="90,5,5", attacks="1,2,3", falling=False)
    assert row["ours"] == "0.35,0.05,0.05"
    for line in found.optima:
        assert line.under(1, 2, 3).is_met
        assert line.under(2).loss <= line.ours.loss + 1e-6, "attack 2 alone never needs more than was published"


def test_the_errata_name_the_variance_the_impossible_noise_and_every_broken_limit(found: Reproduction) -> None:
    sentences = errata(found)
    text = "\n".join(sentences)
    assert "b²/6 = 0.015" in text
    assert "h = 1.54" in text
    assert sum("breaks the limit" in sentence for sentence in sentences) == 4
    assert "Figure 1" not in text, "it is open, and no contradiction"
    assert "from 0.014 to 0.50" in text
    assert "the sum of its perturbed states" in text


def test_figure_1_is_open_and_the_widths_that_explain_most_of_it_stand_beside(found: Reproduction) -> None:
    (sentence,) = open_questions(found)
    assert "which width was used is open" in sentence
    assert "No width fits all four" in sentence
    for spread, near, far in ((0.4, 0.06, 0.87), (0.45, 0.08, 0.84)):
        risks = [rows(found, "risk", source=f"figure 1{panel}", spread=spread)[0]["ours"] for panel in "AB"]
        assert risks == pytest.approx([near, far], abs=0.015)


def test_protecting_employees_alone_leaves_their_establishment_exposed(found: Reproduction) -> None:
    told = {row["what"]: row for row in rows(found, "establishment", table=5)}
    for words, least, most in (("employees protected", 0.5, 1), ("establishments protected too", 0, 0.11)):
        for within in ("11%", "18%"):
            assert least <= told[f"attack 3 within {within}, {words}"]["ours"] <= most
    assert told["attack 3 within 18%, employees protected"]["relation"] == "above"
    by_sampling = told["contribution within 18% of the true earnings, by sampling alone"]
    assert by_sampling["ours"] == pytest.approx(by_sampling["published"], abs=0.005)
    samples = [employees_of(one) for one in TABLE_5]
    for one, earnings in zip(TABLE_5, samples, strict=True):
        assert earnings.mean() * one.employees == pytest.approx(one.contribution, rel=0.001)
        error = earnings.std(ddof=1) / earnings.mean() / len(earnings) ** 0.5 * (1 - one.sampled / one.employees) ** 0.5
        assert error == pytest.approx(one.error, rel=0.02)


def test_the_example_of_section_3_2_is_within_a_seventh(found: Reproduction) -> None:
    (row,) = rows(found, "example")
    assert (row["published"], row["ours"]) == (0.15, 1 / 7)


def test_tables_of_perturbed_values_add_up_and_those_of_perturbed_cells_do_not(found: Reproduction) -> None:
    gaps = {row["approach"]: row for row in rows(found, "gap_of_total", table=6)}
    assert gaps["I/III"]["ours"] == pytest.approx(0, abs=len(found.survey.table(6).cells))  # weighted: each is rounded
    assert gaps["I/III"]["published"] == 0
    assert abs(gaps["II"]["ours"]) > 1_000


def test_tables_on_synthetic_data_have_every_cell_with_its_impact(found: Reproduction) -> None:
    assert len(rows(found, "impact", table=3)) == 9 * 3
    assert len(rows(found, "impact", table=4)) == 20 * 3
    for approach in ("II", "I/III", "II for those who asked"):
        assert len(rows(found, "impact", table=6, approach=approach)) == 9
        assert len(rows(found, "impact", table=7, approach=approach)) == 20
    for row in rows(found, "impact"):
        assert row["published"] is None
        if row["ours"] is not None:
            assert row["ours"] == pytest.approx(100 * (row["perturbed"] / row["true"] - 1))


def test_unperturbed_estimates_are_those_of_the_survey(found: Reproduction, survey: Path) -> None:
    businesses, employees = (pq.read_table(survey / f"{name}.parquet") for name in ("businesses", "employees"))
    turnover = pc.sum(pc.multiply(businesses["turnover"], businesses["weight"])).as_py()
    wage = pc.sum(pc.multiply(employees["wage"], employees["weight"])).as_py() / pc.sum(employees["weight"]).as_py()
    for table, code in ((6, {"state": "total"}), (7, {"industry": "total"})):
        for row in rows(found, "impact", table=table, **code):
            assert row["true"] == pytest.approx(turnover, rel=1e-9)
    for row in rows(found, "impact", sex="total", occupation="total"):
        assert row["true"] == pytest.approx(wage, rel=1e-6)


def test_the_same_employees_are_perturbed_alike_in_both_tables_unlike_in_the_paper(found: Reproduction) -> None:
    for sex in ("F", "M", "total"):
        (one,) = rows(found, "impact", table=3, occupation="total", sex=sex)
        (other,) = rows(found, "impact", table=4, industry="total", sex=sex)
        assert one["perturbed"] == other["perturbed"]
    (sentence,) = [sentence for sentence in errata(found) if sentence.startswith("Tables 3 and 4")]
    assert "1325.6 (-0.9%) and 1352.6 (+1.1%)" in sentence


def test_perturbing_only_who_asked_costs_less(found: Reproduction) -> None:
    for table in (6, 7):
        every, asked = (
            rows(found, "mean_absolute_impact", table=table, approach=approach)[0] for approach in ("II", "I/III")
        )
        assert asked["ours"] < every["ours"]


@pytest.mark.parametrize(("approach", "everyone"), [("II", True), ("II for those who asked", False)])
def test_no_cell_moves_further_than_its_largest_protected_businesses_allow(
    found: Reproduction, survey: Path, approach: str, everyone: bool
) -> None:
    businesses = pq.read_table(survey / "businesses.parquet").to_pandas()
    protected = businesses if everyone else businesses[businesses["consent"]]
    for row in rows(found, "impact", table=6, approach=approach):
        here = protected if row["state"] == "total" else protected[protected["state"] == row["state"]]
        largest = here.nlargest(3, "turnover")
        most = (largest["turnover"] * largest["weight"] * [0.4, 0.3, 0.2][: len(largest)]).sum() * 1.3
        assert 0 < abs(row["perturbed"] - row["true"]) <= most + 1


def test_utility_is_compared_with_the_same_figures_of_the_printed_cells(found: Reproduction) -> None:
    published = {(row["table"], row.get("approach")): row["published"] for row in rows(found, "mean_absolute_impact")}
    assert published[6, "II"] == pytest.approx((3.1 + 0.2 + 1.5 + 5.1 + 3.6 + 7.4 + 15.4 + 35.4 + 0.6) / 9)
    assert published[6, "I/III"] == pytest.approx((0.5 + 0.4 + 0.6 + 0.5 + 0.3) / 9)
    assert published[7, "II"] == pytest.approx((0.6 + 0.6 + 0.3 + 1.8 + 0.3 + 3.4 + 3.2 + 42.4 + 0.1) / 9)
    assert published[7, "I/III"] is None
    (row,) = rows(found, "share_within_1_percent", table=3)
    assert row["published"] == 36 / 45, "the paper: in most cases less than 1%"
    for row in found.rows():
        if row["quantity"] in QUANTITIES:
            assert row["low"] - 1e-9 <= row["ours"] <= row["high"] + 1e-9
            assert row["keys"] == 3


def test_the_same_seed_gives_the_same_impacts_and_another_key_moves_them(survey: Path) -> None:
    one, again, other = (survey_tables(data=survey, businesses=1_000, keys=1, seed=seed).table(6) for seed in (1, 1, 2))
    assert [cell.perturbed for cell in one.cells] == [cell.perturbed for cell in again.cells]
    assert [cell.perturbed for cell in one.cells] != [cell.perturbed for cell in other.cells]
    assert [cell.true for cell in one.cells] == [cell.true for cell in other.cells]


def test_data_of_another_kind_are_refused(release_folder: Path) -> None:
    with pytest.raises(DataError, match="sfumato economy business"):
        survey_tables(data=release_folder, businesses=1_000, keys=1, seed=1)


def test_the_object_for_machines_the_csv_and_the_page_hold_every_row(found: Reproduction, tmp_path: Path) -> None:
    _, text = written(found, write_reproduction, reproduction_summary, tmp_path, paper="chipperfield2019", charts=4)
    assert "Like Table 7" in text


def test_the_command_writes_the_page_and_prints_one_object(tmp_path: Path) -> None:
    asked = ("--quick", "--businesses", "1000", "--seed", "2", "--data", tmp_path / "data")
    done = call("reproduce", "chipperfield2019", *asked, "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["paper"] == "chipperfield2019"
    assert pq.read_metadata(tmp_path / "data" / "businesses.parquet").num_rows == 1_000
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "chipperfield2019.csv",
        "chipperfield2019.html",
    ]
