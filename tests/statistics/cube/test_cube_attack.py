"""Weighted counts as in the paper tell which cells hold records; those of a published cube do not."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.checking import checked
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.statistics.cube.attacks import CellsFound, attack_cube, cells_by_digits, cells_by_ratios, judged
from sfumato.statistics.cube.calibrate import least_squares, rake
from sfumato.statistics.cube.controls import Control, PublicTotals
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import average_scale
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.tabulate import tabulated_cube
from sfumato.statistics.cube.truncated_laplace import cube_method
from sfumato_lab.economy.requirements.generate import generate_requirements
from tests.cli.call import call
from tests.statistics.cube.survey import CUBE, RELEASE, records, release

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
        return tabulated_cube(
            ready.opened.data, ready.opened.tables, replace(planned.question, by=tuple(named[name] for name in BY))
        )


def as_in_the_paper(
    true: Cube, controls: list[dict[str, Any]], *, nonnegative: bool = False, raking: bool = False
) -> CellsFound:
    """What is told where weighted counts get noise in whole averages and are not rounded to these first."""
    scale = average_scale(true, "weighted", None)
    drawn = TruncatedGeometric(epsilon=Fraction(2), cap=7).sample(len(true), Seeded(1)).reshape(true.shape)
    wanted = []
    for place, control in enumerate(controls):
        by = tuple(control["by"])
        exact = Control(name=str(by), by=by, values=true.project(*by)["weighted"])
        own = TruncatedGeometric(epsilon=Fraction(control.get("epsilon", 1)), cap=60)
        moved = own.sample(exact.values.size, Seeded(place + 2)).reshape(exact.values.shape) * scale.overall
        noisy = replace(exact, values=exact.values + moved, variance=own.variance * float(scale.overall) ** 2)
        wanted.append(exact if "exact" in control else noisy)
    values, axes = true["weighted"] + drawn * scale.overall, [true.axes(control["by"]) for control in controls]
    if raking:
        values = rake(true.dimensions, values, wanted).values
        return judged("ratios", "weighted", cells_by_ratios(values, axes, scale), values, true)
    if wanted:
        values = least_squares(true.dimensions, values, wanted, nonnegative=nonnegative).values
    return judged("digits", "weighted", cells_by_digits(values, axes, scale, nonnegative=nonnegative), values, true)


def attacked(true: Cube, totals: tuple[PublicTotals, ...] = (), **changes: Any) -> list[CellsFound]:
    """What is told by a cube that is protected as a release does it."""
    described: dict[str, Any] = {"name": "c", "by": BY, "epsilon": 2, "cap": 7} | changes
    section = CubeSection.model_validate(described)
    cube, figures = protected_cube(
        true,
        cube_method(section, alpha=Fraction(1)),
        Seeded(1),
        totals=totals,
        stratum=section.stratum,
        calibration=section.calibration,
        nonnegative=section.nonnegative,
    )
    return list(attack_cube(cube, figures, true, section))


def gives_away(found: CellsFound) -> bool:
    """Whether the attack finds more cells with records than chance does."""
    return found.found > found.by_chance + 5 * (found.by_chance + 1) ** 0.5


@pytest.mark.parametrize("controls", CONTROLS)
def test_as_in_the_paper_nearly_all_cells_with_records_would_be_told_whatever_the_controls_are(
    true: Cube, controls: str
) -> None:
    found = as_in_the_paper(true, CONTROLS[controls])
    assert found.holding == int((true["count"] > 0).sum()) > 1_000
    assert found.found > 0.98 * found.holding
    assert found.by_chance < 0.3 * found.holding
    # Of two cells that differ in telework, where every comparison has to change its two codes, it may be either.
    paired = controls == "a table of three"
    assert found.told - found.found < (1.0 if paired else 0.02) * found.holding
    assert gives_away(found)


@pytest.mark.parametrize("how", ["nonnegative", "raking"])
def test_other_calibrations_would_hide_some_of_them_at_best(true: Cube, how: str) -> None:
    found = as_in_the_paper(true, ONE_WAY[:2], nonnegative=how == "nonnegative", raking=how == "raking")
    assert found.found > 0.3 * found.holding
    assert gives_away(found)


@pytest.mark.parametrize("changes", [{}, {"nonnegative": True}, {"calibration": "raking"}], ids=str)
@pytest.mark.parametrize("controls", ["none", "some dimensions", "every dimension"])
def test_a_published_cube_does_not_give_them_away(true: Cube, controls: str, changes: dict[str, Any]) -> None:
    found = attacked(true, controls=CONTROLS[controls], **changes)
    assert {part.column for part in found} == {"weighted", "prep_days"}
    assert not any(map(gives_away, found))


@pytest.mark.parametrize("controls", ["tables that cross", "a table of three"])
def test_neither_does_it_with_other_controls(true: Cube, controls: str) -> None:
    assert not any(map(gives_away, attacked(true, controls=CONTROLS[controls])))


def test_nor_with_averages_of_strata(true: Cube) -> None:
    controls = [{"by": ["strength"], "epsilon": "0.5"}, {"by": ["strength", "telework"], "epsilon": "0.5"}]
    assert not any(map(gives_away, attacked(true, controls=controls, weights="strength")))


def test_nor_with_public_totals(true: Cube) -> None:
    sums = np.rint(true.project("occupation")["weighted"] / 1e6).astype(np.int64)
    public = PublicTotals(name="occupation", by=("occupation",), columns={"weighted": sums + 10}, source="a register")
    controls = [{"by": ["occupation"], "totals": "x.csv"}]
    assert not any(map(gives_away, attacked(true, totals=(public,), controls=controls)))


@pytest.mark.parametrize(("controls", "nonnegative"), [("none", False), ("every dimension", False), ("none", True)])
def test_nor_with_the_strict_option(true: Cube, controls: str, nonnegative: bool) -> None:
    unit = 100 * 1_000_000
    whole = (true["weighted"] + unit // 2) // unit * unit
    rounded = true.only("count", "weighted").with_column("weighted", whole, parts=1_000_000)
    strict = {"sensitivity": "weight", "largest_weight": 20_000, "weight_unit": 100, "nonnegative": nonnegative}
    assert not any(map(gives_away, attacked(rounded, controls=CONTROLS[controls], **strict)))


@pytest.mark.slow
def test_counts_without_weights_tell_nothing(tmp_path: Path) -> None:
    file = release(
        tmp_path,
        (RELEASE[RELEASE.index(", weight =") : RELEASE.index(" }\n\n[data.attributes]")], ""),
        ('measures = ["pay"]\n', ""),
    )
    call("run", file)
    found = json.loads(call("assess", file, "--json").stdout)["cubes"][0]["told"]
    assert found == [], "the count is the only column, and a whole number as its noise is"
    assert "not covered" not in call("check", file).stdout


@pytest.mark.slow
def test_check_and_statement_warn_of_weights_and_the_report_attacks_them(survey: Path) -> None:
    for words in (call("check", survey).stdout, call("run", survey).stdout and _statement(survey)):
        said = " ".join(words.split())
        assert "Weighted counts and totals of measures are not covered by this" in said
        assert 'sensitivity = "weight"' in said
    said = " ".join(call("assess", survey).stdout.split())
    told = json.loads(call("assess", survey, "--json").stdout)["cubes"][0]["told"]
    attacks = [(part["attack"], part["column"]) for part in told]
    assert attacks == [("digits", "weighted"), ("digits", "prep_days"), ("difference", "weighted")]
    for part in told:
        assert not gives_away(CellsFound(**part))
        words = (
            f"The attack by {part['attack']} on '{part['column']}' tells {part['found']:,} of {part['holding']:,} cells"
        )
        assert words in said
    page = survey.with_name("bundle-confidential") / "report.html"
    assert "Which cells hold records, read off digits of a column" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_check_also_warns_where_tables_without_a_guarantee_are_published_beside_a_cube(tmp_path: Path) -> None:
    call("keys", "new", tmp_path / "sfumato.key")
    table = '\n[[table]]\nname = "pay"\ntotal = "pay"\nby = ["region"]\nprotect = { method = "top-contributors" }\n'
    key = ('period = "2025"\n', 'period = "2025"\nkey = "sfumato.key"\n')
    said = call("check", release(tmp_path, key, text=RELEASE + CUBE + table, weight=records()["weight"])).stdout
    assert "No formal guarantee" in said
    assert "Weighted counts and totals of measures are not covered" in " ".join(said.split())


def _statement(survey: Path) -> str:
    return (survey.with_name("bundle") / "statement.md").read_text(encoding="utf-8").replace("**", "").replace("`", "")
