"""A cube measured at several levels, through a release: the same budget, whole numbers, and what is said of it."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.bundle.read import open_cube
from sfumato.checking import checked
from sfumato.errors import SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.cube.cube import MILLION
from sfumato.statistics.cube.levels import compared
from tests.cli.call import call
from tests.statistics.cube.survey import release

CONTROLS = 'controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]'
LEVELS = 'approach = "several-levels"\nlevels = [["region"], ["level", "job"]]\nlevels_share = 0.4'


def test_the_cube_and_its_levels_share_one_epsilon(tmp_path: Path) -> None:
    published = run(load(release(tmp_path, (CONTROLS, LEVELS))))
    (cube,) = published.plan.cubes
    assert cube.guarantee.epsilon == 2
    assert published.balance is not None
    assert published.balance.spent_epsilon == 2
    assert cube.method.counts.epsilon == Fraction(6, 5)
    assert [(control.by, control.counts.epsilon) for control in cube.method.controls if control.counts] == [
        (("region",), Fraction(2, 5)),
        (("level", "job"), Fraction(2, 5)),
    ]
    text = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert "region (epsilon 0.4)" in text
    assert "Cells can be negative" in text


def test_with_nonnegative_every_count_is_a_whole_number_of_records_and_every_weight_of_averages(tmp_path: Path) -> None:
    published = run(load(release(tmp_path, (CONTROLS, LEVELS + "\nnonnegative = true"))))
    cube = open_cube(published.bundle, "people")
    for name, noise in cube.figures.noise.items():
        values = cube.cube[name]
        assert values.min() >= 0
        assert not np.any(values % noise.scale.overall)
    structure = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))
    assert structure["cubes"][0]["approach"] == "several-levels"
    assert structure["cubes"][0]["whole_numbers"] is True
    text = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert "whole numbers" in text
    assert "Cells can be negative" not in text


@pytest.mark.slow
def test_errors_of_tables_are_as_expected_and_removing_negative_numbers_makes_them_no_larger(tmp_path: Path) -> None:
    squares = {}
    for whole in (False, True):
        lines = f"{LEVELS}\nnonnegative = {str(whole).lower()}"
        with checked(load(release(tmp_path / str(whole), (CONTROLS, lines)))) as ready:
            (planned,) = ready.plan.cubes
            true, _ = ready.count({planned.name: planned})[planned.name]
        off = []
        for seed in range(200):
            found, _ = planned.protect(true, Seeded(seed))
            off.append(
                [
                    float(np.square(found.project(*by)["count"] / MILLION - true.project(*by)["count"]).mean())
                    for by in (["region"], ["job"], ["level"])
                ]
            )
        squares[whole] = np.mean(off)
    expected = compared(planned.question.by, planned.method).planned[1] ** 2
    assert squares[False] == pytest.approx(expected, rel=0.15)
    assert squares[True] < 1.2 * expected


WRONG = {
    "levels without the approach": ('levels = [["region"]]', "several-levels"),
    "the approach without levels": ('approach = "several-levels"', "levels"),
    "a level by another attribute": ('approach = "several-levels"\nlevels = [["place"]]', "'place'"),
    "the cube as a level": ('approach = "several-levels"\nlevels = [["job", "region", "level"]]', "and not all"),
    "a level twice": ('approach = "several-levels"\nlevels = [["job", "region"], ["region", "job"]]', "listed twice"),
    "nothing for the cube": (LEVELS.replace("0.4", "1"), "below 1"),
    "controls, too": (LEVELS + "\n" + CONTROLS, "goes without"),
    "raking": (LEVELS + '\ncalibration = "raking"', "goes without"),
    "strata": (LEVELS + '\nweights = "region"', "goes without"),
    "few empty cells": (LEVELS + "\nempty_cells = 0.5", "goes without"),
    "a ring of whole numbers": (
        LEVELS.replace('["region"], ["level", "job"]', '["region", "job"], ["job", "level"], ["region", "level"]')
        + "\nnonnegative = true",
        "ring",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_levels_that_make_no_sense_are_refused_before_anything_is_charged(tmp_path: Path, case: str) -> None:
    new, words = WRONG[case]
    with pytest.raises(SfumatoError, match=words):
        run(load(release(tmp_path, (CONTROLS, new))))
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.slow
def test_check_compares_both_approaches_at_the_same_budget_and_recommends_one_by_dimension(tmp_path: Path) -> None:
    file = release(tmp_path)
    found = json.loads(call("check", file, "--json").stdout)["expected_cube_errors"]["people"]
    assert [row["dimension"] for row in found["by_dimension"]] == [1, 2, 3]
    for row in found["by_dimension"]:
        better = "bottom-up" if row["bottom_up"] <= row["several_levels"] else "several-levels"
        assert row["recommended"] == better
    text = call("check", file).stdout
    assert "several levels" in text
    assert "recommended" in text
    alone = json.loads(call("check", release(tmp_path / "b", (CONTROLS, "")), "--json").stdout)
    for row in alone["expected_cube_errors"]["people"]["by_dimension"]:
        assert row["planned"] == row["bottom_up"]
