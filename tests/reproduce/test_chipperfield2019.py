"""The figures about perturbed business totals, computed again: every row, every erratum, the page and the command."""

import csv
import json
from pathlib import Path

import pytest

from sfumato.reproduce.chipperfield2019 import Reproduction, reproduce
from sfumato.reproduce.chipperfield2019.errata import errata
from sfumato.reproduce.chipperfield2019.page import write_reproduction
from sfumato.reproduce.chipperfield2019.summary import reproduction_summary
from tests.cli.call import call


@pytest.fixture(scope="module")
def found() -> Reproduction:
    return reproduce()


def rows(found: Reproduction, quantity: str, **about: object) -> list[dict[str, object]]:
    return [
        row
        for row in found.rows()
        if row["quantity"] == quantity and all(row.get(name) == value for name, value in about.items())
    ]


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
    assert "Figure 1A: the risk is 0.009, not 0.1" in text
    assert "Figure 1C" not in text
    assert "from 0.014 to 0.50" in text


def test_the_object_for_machines_the_csv_and_the_page_hold_every_row(found: Reproduction, tmp_path: Path) -> None:
    page, table = write_reproduction(found, tmp_path)
    _, data = reproduction_summary(found, page, table)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["paper"] == "chipperfield2019"
    assert all({"quantity", "published", "ours"} <= row.keys() for row in data["rows"])
    with table.open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == len(data["rows"])
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 4
    assert "<script" not in text


def test_the_command_writes_the_page_and_prints_one_object(tmp_path: Path) -> None:
    done = call("reproduce", "chipperfield2019", "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["paper"] == "chipperfield2019"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "chipperfield2019.csv",
        "chipperfield2019.html",
    ]
