"""The paper's own form of a cube, one draw for both columns: what it is, what it gives away, and what is said of it."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.bundle.statement import compared, statement
from sfumato.checking import check
from sfumato.cli.run import run_summary
from sfumato.errors import SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.cube.attacks import attack_cube, weights_attack, without_shared_noise
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import Figures
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.tabulate import Chunk, tabulated
from sfumato.statistics.cube.truncated_laplace import cube_method
from tests.statistics.cube.survey import DIMENSIONS, release

SHARED = ("cap = 7", 'cap = 7\ndraws = "shared"')
WITHOUT_MEASURES = ('measures = ["pay"]\n', "")
CONTROLS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "noisy": [{"by": ["region"], "epsilon": "0.5"}, {"by": ["level", "job"], "epsilon": "0.5"}],
    "exact": [{"by": ["region"], "exact": True}, {"by": ["job"], "epsilon": "0.5"}],
}


@pytest.fixture(scope="module")
def true() -> Cube:
    """Sixteen records in 24 cells, some of them alone."""
    rng = np.random.default_rng(5)
    weights = rng.integers(1_000_000, 90_000_000, 16)
    return tabulated(DIMENSIONS, [Chunk(positions=rng.integers(0, 24, 16), weights=weights)])


def protected(true: Cube, seed: int = 1, **changes: Any) -> tuple[Cube, Figures, CubeSection]:
    described: dict[str, Any] = {"name": "c", "by": ["region", "job", "level"], "epsilon": 1, "cap": 20} | changes
    section = CubeSection.model_validate(described)
    method = cube_method(section, alpha=Fraction(1))
    cube, figures = protected_cube(true, method, Seeded(seed), calibration=section.calibration)
    return cube, figures, section


def test_weighted_noise_is_the_noise_of_the_count_times_the_average_weight(true: Cube) -> None:
    cube, figures, _ = protected(true, draws="shared")
    noise = cube["count"] // 1_000_000 - true["count"]
    assert np.any(noise)
    assert np.array_equal(cube["weighted"] - true["weighted"], noise * figures.noise["weighted"].scale.overall)
    assert figures.noise["weighted"].rounding == 0


@pytest.mark.parametrize("controls", CONTROLS)
def test_both_columns_together_have_no_noise_whatever_the_controls_are(true: Cube, controls: str) -> None:
    cube, figures, section = protected(true, draws="shared", controls=CONTROLS[controls])
    left = without_shared_noise(cube, figures)
    expected = true["weighted"] - figures.noise["weighted"].scale.overall * true["count"]
    assert np.all(np.abs(left.difference - expected) <= left.rounding)
    (found,) = [part for part in attack_cube(cube, figures, true, section) if part.attack == "difference"]
    assert (found.told, found.found) == (found.holding, found.holding) == (int((true["count"] > 0).sum()),) * 2
    _, known = weights_attack(cube, figures, true)
    assert known.successes == known.targets == int((true["count"] == 1).sum()) > 3
    assert known.guessed == 0


@pytest.mark.parametrize("controls", CONTROLS)
def test_draws_of_their_own_give_no_weight_away(true: Cube, controls: str) -> None:
    for seed in range(20):
        cube, figures, _ = protected(true, seed, controls=CONTROLS[controls])
        assert all(found.successes == 0 for found in weights_attack(cube, figures, true))


def test_a_release_says_that_it_has_no_guarantee_and_charges_nothing(tmp_path: Path) -> None:
    release_ = load(release(tmp_path, SHARED, WITHOUT_MEASURES))
    plan = check(release_).plan
    assert plan.guarantee.bound is None
    assert plan.cubes[0].guarantee.bound is None
    assert compared(plan) == ()
    published = run(release_)
    assert published.balance is None or published.balance.spent_epsilon == 0
    words = statement(plan)
    assert "no formal guarantee" in words
    assert "has no noise at all" in words
    assert "hides one record" not in words
    assert "charged" not in words.split("## How the numbers were changed")[1].split("##")[0]
    (described,) = json.loads((published.bundle / "structure.json").read_text())["cubes"]
    assert described["guarantee"]["definition"] == "none"
    assert (described["guarantee_covers"], described["draws"]) == ("nothing", "shared")


def test_a_run_says_what_was_published_without_a_charge(tmp_path: Path) -> None:
    for changes, said in (
        ((SHARED, WITHOUT_MEASURES), "Published without a charge (no formal guarantee): people."),
        ((WITHOUT_MEASURES,), "Charged: people."),
    ):
        words, _ = run_summary(run(load(release(tmp_path / str(len(changes)), *changes))))
        assert [line for line in words.plain.splitlines() if line.endswith(": people.")] == [said]


def test_the_confidential_report_reads_the_weights_of_the_shared_form_and_none_of_the_other(tmp_path: Path) -> None:
    folders = {"shared": (SHARED, WITHOUT_MEASURES), "own": (WITHOUT_MEASURES,)}
    jobs = ["a", *["b"] * 398, "c"]  # one record alone in its cell, at least
    rates = {}
    for name, changes in folders.items():
        made = load(release(tmp_path / name, *changes, job=jobs))
        run(made)
        found = assess(made)
        (cube,) = found.cubes
        rates[name] = [part.success_rate for part in cube.weights]
        assert "Weights of records that are alone in their cell" in found.report.read_text(encoding="utf-8")
    assert rates["shared"][1] == 1
    assert rates["own"] == [0, 0]


def test_the_shared_form_is_another_question_and_the_default_keeps_its_name(tmp_path: Path) -> None:
    own, same, shared = (
        check(load(release(tmp_path / name, *changes, WITHOUT_MEASURES))).plan.cubes[0].digest("d")
        for name, changes in (("a", []), ("b", [("cap = 7", 'cap = 7\ndraws = "own"')]), ("c", [SHARED]))
    )
    assert own == same != shared


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((SHARED,), "counts and weighted counts alone"),
        ((("cap = 7", 'cap = 7\ndraws = "shared"\nsensitivity = "weight"\nlargest_weight = 99'),), "bottom-up"),
        ((SHARED, WITHOUT_MEASURES, (', weight = "weight", replicates = { columns = "rw_*", rule = '
                                     '"successive-difference" }', "")), "no second column"),
    ],
)  # fmt: skip
def test_it_is_refused_where_there_is_nothing_to_share(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], words: str
) -> None:
    with pytest.raises(SfumatoError, match=words):
        check(load(release(tmp_path, *changes)))
