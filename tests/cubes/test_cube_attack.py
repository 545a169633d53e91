"""Digits of weighted counts tell which cells hold records, whatever a cube is calibrated to, unless they are strict."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.adjust.protected_cube import protected_cube
from sfumato.assess.cube_attack import CellsTold, read_digits
from sfumato.check import checked
from sfumato.cube.cube import Cube
from sfumato.cube.public_totals import PublicTotals
from sfumato.cube.section import CubeSection
from sfumato.economy.requirements.generate import generate_requirements
from sfumato.noise.randomness import Seeded
from sfumato.planned_cube import cube_method
from sfumato.release_file import load
from tests.cli.call import call
from tests.cubes.survey import CUBE, RELEASE, records, release

BY = ["occupation", "strength", "education", "telework"]
ONE_WAY = [{"by": [name], "epsilon": "0.2"} for name in BY]
CONTROLS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "the grand total": [{"by": [], "epsilon": "0.5"}],
    "some dimensions": [{"by": ["occupation"], "epsilon": "0.5"}, {"by": ["strength", "education"], "exact": True}],
    "every dimension": ONE_WAY,
    "tables that cross": [{"by": ["occupation", name], "epsilon": "0.2"} for name in BY[1:]],
    "a table of three": [{"by": BY[:3], "epsilon": "0.2"}, {"by": ["telework"], "exact": True}],
}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_requirements(tmp_path_factory.mktemp("survey"), quotes=8_000, replicates=False).release


@pytest.fixture(scope="module")
def true(survey: Path) -> Cube:
    """The true cube of a survey of requirements: 40,000 cells, nearly all of them empty."""
    with checked(load(survey)) as ready:
        planned = ready.plan.cubes[0]
        named = {dimension.name: dimension for dimension in planned.question.by}
        return ready.opened.table(replace(planned.question, by=tuple(named[name] for name in BY)))


def attacked(true: Cube, seed: int = 1, totals: tuple[PublicTotals, ...] = (), **changes: Any) -> dict[str, CellsTold]:
    described: dict[str, Any] = {"name": "c", "by": BY, "epsilon": 2, "cap": 7} | changes
    section = CubeSection.model_validate(described)
    cube, figures = protected_cube(
        true,
        cube_method(section, alpha=Fraction(1)),
        Seeded(seed),
        totals=totals,
        stratum=section.stratum,
        calibration=section.calibration,
        nonnegative=section.nonnegative,
    )
    return {found.column: found for found in read_digits(cube, figures, true, section)}


@pytest.mark.parametrize("weights", ["average", "strength"])
@pytest.mark.parametrize("controls", CONTROLS)
def test_calibration_does_not_hide_which_cells_hold_records(true: Cube, controls: str, weights: str) -> None:
    found = attacked(true, controls=CONTROLS[controls], weights=weights)["weighted"]
    assert found.holding == int((true["count"] > 0).sum()) > 1_000
    assert found.found > 0.98 * found.holding
    assert found.by_chance < 0.3 * found.holding
    # Of two cells that differ in telework, where every comparison has to change its two codes, it may be either.
    paired = controls == "a table of three" or (controls == "tables that cross" and weights == "strength")
    assert found.told - found.found < (1.0 if paired else 0.02) * found.holding


def test_neither_does_calibration_to_public_totals(true: Cube) -> None:
    sums = np.rint(true.project("occupation")["weighted"] / 1e6).astype(np.int64)
    public = PublicTotals(name="occupation", by=("occupation",), columns={"weighted": sums + 10}, source="a register")
    controls = [{"by": ["occupation"], "totals": "x.csv"}]
    found = attacked(true, totals=(public,), controls=controls)["weighted"]
    assert found.found > 0.98 * found.holding
    assert found.told - found.found < 0.02 * found.holding


def test_measures_tell_the_same(true: Cube) -> None:
    found = attacked(true, controls=ONE_WAY)["prep_days"]
    holding = int((true["prep_days"] > 0).sum())
    assert found.found > 0.98 * holding


@pytest.mark.parametrize("changes", [{"nonnegative": True}, {"calibration": "raking"}], ids=lambda c: next(iter(c)))
def test_other_calibrations_hide_some_of_them_at_best(true: Cube, changes: dict[str, Any]) -> None:
    found = attacked(true, controls=ONE_WAY[:2], **changes)["weighted"]
    assert found.found > 0.3 * found.holding
    assert found.found > 3 * found.by_chance


@pytest.mark.parametrize(
    ("controls", "nonnegative"),
    [*((controls, False) for controls in CONTROLS), ("some dimensions", True), ("every dimension", True)],
)
def test_noise_of_their_own_leaves_digits_that_tell_nothing(true: Cube, controls: str, nonnegative: bool) -> None:
    unit = 100 * 1_000_000
    whole = (true["weighted"] + unit // 2) // unit * unit
    rounded = true.only("count", "weighted").with_column("weighted", whole, parts=1_000_000)
    strict = {"sensitivity": "weight", "largest_weight": 20_000, "weight_unit": 100, "nonnegative": nonnegative}
    found = attacked(rounded, controls=CONTROLS[controls], **strict)["weighted"]
    assert found.found <= found.by_chance + 5 * (found.by_chance + 1) ** 0.5
    assert found.by_chance < 0.1 * found.holding, "what is told is rounding, in few cells"


def test_counts_without_weights_tell_nothing(tmp_path: Path) -> None:
    file = release(
        tmp_path,
        (RELEASE[RELEASE.index(", weight =") : RELEASE.index(" }\n\n[data.attributes]")], ""),
        ('measures = ["pay"]\n', ""),
    )
    call("run", file)
    found = json.loads(call("assess", file, "--json").stdout)["cubes"][0]["told"]
    assert [(part["column"], part["told"]) for part in found] == [("weighted", 0)]
    assert "tell which cells" not in call("check", file).stdout


def test_check_statement_and_report_warn_of_it(survey: Path) -> None:
    for words in (call("check", survey).stdout, call("run", survey).stdout and _statement(survey)):
        said = " ".join(words.split())
        assert "Weighted counts are not covered by this, and neither are totals of measures" in said
        assert "whoever looks at the digits can tell nearly all cells with records from empty ones" in said
        assert 'sensitivity = "weight"' in said
    said = " ".join(call("assess", survey).stdout.split())
    weighted, measure = json.loads(call("assess", survey, "--json").stdout)["cubes"][0]["told"]
    assert weighted["column"] == "weighted"
    assert weighted["found"] > 0.98 * weighted["holding"]
    assert weighted["told"] - weighted["found"] < 0.02 * weighted["holding"]
    assert measure["column"] == "prep_days"
    assert f"The digits of 'weighted' tell {weighted['found']:,} of {weighted['holding']:,} cells with records" in said
    page = survey.with_name("bundle-confidential") / "report.html"
    assert "Which cells hold records, read off the digits of a column" in page.read_text(encoding="utf-8")


def test_check_also_warns_where_tables_without_a_guarantee_are_published_beside_a_cube(tmp_path: Path) -> None:
    call("keys", "new", tmp_path / "sfumato.key")
    table = '\n[[table]]\nname = "pay"\ntotal = "pay"\nby = ["region"]\nprotect = { method = "top-contributors" }\n'
    key = ('period = "2025"\n', 'period = "2025"\nkey = "sfumato.key"\n')
    said = call("check", release(tmp_path, key, text=RELEASE + CUBE + table, weight=records()["weight"])).stdout
    assert "No formal guarantee" in said
    assert "They tell which cells hold a record" in " ".join(said.split())


def _statement(survey: Path) -> str:
    return (survey.with_name("bundle") / "statement.md").read_text(encoding="utf-8").replace("**", "").replace("`", "")
