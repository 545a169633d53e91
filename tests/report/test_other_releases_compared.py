"""The report with more than one release: growth between two periods, errors beside a reference, strata of any kind."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.errors import ReleaseError
from sfumato.measures.drawing import odds_by_size
from sfumato.measures.formulas import error_ratio, share_near_reference
from sfumato.measures.risk import posterior, sensitivity
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from sfumato.report.assess import Assessment, assess
from sfumato.running import run
from tests.conftest import same_key, write
from tests.running.same_draws import same_draws
from tests.statistics.methods.cells import cells_of

PLACES = 12
SIZES = ("small", "large")
ABOUT = """\
[release]
title = "Jobs"
period = "PERIOD"
bundle = "NAME_bundle"
ledger = "NAME.sqlite"
PAYS

[data]
jobs = { path = "jobs_PERIOD.parquet", worker = "worker" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
public = ["place", "size", "quarter"]

[data.attributes]
sex = { codes = ["F", "M"] }

[[table]]
name = "jobs"
count = "jobs"
by = ["place", "sex"]
protect = { PROTECT }
"""
LEGACY = ('key = "sfumato.key"', 'method = "noise-infusion", rounding = 1')
EPSILON = 1
FORMAL = (f"budget = {{ alpha = 0.05, epsilon = {EPSILON} }}", f"epsilon = {EPSILON}")


def release_file(folder: Path, name: str, period: str, pays: str, protect: str) -> Path:
    text = ABOUT.replace("PERIOD", period).replace("NAME", name).replace("PAYS", pays).replace("PROTECT", protect)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve places, the first ten with one employer each, and two years in which all grow by their own rate."""
    folder = tmp_path_factory.mktemp("two_years")
    workplace = list(range(PLACES + 2))
    place = [min(number, PLACES - 1) if number < PLACES else number - 2 for number in workplace]
    write(
        folder / "workplaces.parquet",
        {
            "workplace": workplace,
            "place": [f"p{number:02}" for number in place],
            "size": [SIZES[number >= 6] for number in place],
            "quarter": ["east" if number % 2 != (number >= PLACES) else "west" for number in workplace],
        },
    )
    rng = np.random.default_rng(1)
    women, men = rng.integers(600, 1_500, (2, len(workplace)))
    for period in ("2024", "2025"):
        at = np.concatenate([np.repeat(workplace, women), np.repeat(workplace, men)])
        sex = np.repeat(["F", "M"], [women.sum(), men.sum()])
        jobs = {"worker": list(range(len(at))), "workplace": at.tolist(), "sex": sex.tolist()}
        write(folder / f"jobs_{period}.parquet", jobs)
        women, men = (np.round(some * rng.uniform(0.85, 1.2, len(some))).astype(int) for some in (women, men))
    same_key(folder / "sfumato.key")
    for name, (pays, protect) in (("legacy", LEGACY), ("formal", FORMAL)):
        for period in ("2024", "2025"):
            with same_draws(int(period)):  # once in a hundred a place with one employer comes out below zero
                run(load(release_file(folder, f"{name}_{period}", period, pays, protect)))
    return folder


def assessed(folder: Path, name: str, **options: object) -> Assessment:
    return assess(load(folder / f"{name}.toml"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["legacy", "formal"])
def test_growth_is_read_off_two_periods_of_factors_and_not_of_noise(folder: Path, name: str) -> None:
    found = assessed(folder, f"{name}_2025", earlier=load(folder / f"{name}_2024.toml"))
    growth = {result.attack: result for result in found.exposures[0].attacks}["growth"]
    assert growth.targets == 10
    if name == "legacy":
        assert growth.successes == 10
    else:
        assert growth.successes <= 3  # each is a guess that is right in fewer than 1 of 100 draws
    assert growth.guessed == 0
    assert "growth" in found.report.read_text(encoding="utf-8")


def test_without_an_earlier_release_growth_is_not_attacked(folder: Path) -> None:
    assert "growth" not in {result.attack for result in assessed(folder, "legacy_2025").exposures[0].attacks}


def test_a_release_without_such_a_table_is_refused(folder: Path) -> None:
    other = release_file(folder, "other", "2024", *FORMAL)
    other.write_text(other.read_text().replace('name = "jobs"', 'name = "others"'))
    run(load(other))
    with pytest.raises(ReleaseError, match="same name, attributes and codes"):
        assessed(folder, "formal_2025", earlier=load(other))


def test_errors_beside_a_reference_are_those_of_both_published_tables(folder: Path) -> None:
    found = assessed(folder, "formal_2025", reference=load(folder / "legacy_2025.toml")).utilities[0]
    legacy = assessed(folder, "legacy_2025").utilities[0]
    both = {"true": found.true, "protected": found.protected, "reference": legacy.protected}
    assert found.reference is not None
    assert found.reference.error_ratio == error_ratio(**both)
    assert found.reference.near == share_near_reference(**both)
    assert found.reference.near_either_way == share_near_reference(**both, two_sided=True)
    assert sum(part.cells for part in found.by_size) == found.cells
    assert all(part.error_ratio is not None for part in found.by_size)


def test_a_reference_of_other_data_is_refused(folder: Path) -> None:
    with pytest.raises(ReleaseError, match="the same table of the same data"):
        assessed(folder, "formal_2025", reference=load(folder / "legacy_2024.toml"))


def test_errors_are_broken_down_by_an_attribute_that_the_table_does_not_have(folder: Path) -> None:
    found = assessed(folder, "formal_2025", strata=("size", "quarter")).utilities[0]
    strata = {part.attribute: {one.label: one for one in part.strata} for part in found.by_stratum}
    # Two worker cells in each of the twelve places; the last two have employers in both quarters.
    assert {label: one.cells for label, one in strata["size"].items()} == {"small": 12, "large": 12}
    assert {label: one.cells for label, one in strata["quarter"].items()} == {
        "east": 10,
        "west": 10,
        "in several of these": 4,
    }
    small = np.abs(found.true - found.protected)[:12]
    assert strata["size"]["small"].mean_error == pytest.approx(small.mean())


@pytest.mark.parametrize("attribute", ["sex", "towns"])
def test_strata_by_what_is_not_public_are_refused(folder: Path, attribute: str) -> None:
    with pytest.raises(ReleaseError, match="public are: place, size, quarter"):
        assessed(folder, "formal_2025", strata=(attribute,))


@pytest.mark.parametrize("name", ["formal_2025", "legacy_2025"])
def test_growth_within_one_period_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ReleaseError, match="another period than 2025"):
        assessed(folder, "formal_2025", earlier=load(folder / f"{name}.toml"))


def test_a_release_is_no_reference_for_itself(folder: Path) -> None:
    with pytest.raises(ReleaseError, match="protected otherwise"):
        assessed(folder, "formal_2025", reference=load(folder / "formal_2025.toml"))


def test_a_strong_step_grows_one_cell_by_a_share_of_whole_workforces(folder: Path) -> None:
    release = load(folder / "formal_2025.toml")
    jobs = pq.read_table(folder / "jobs_2025.parquet").to_pandas()
    largest = jobs.groupby("workplace").size()
    found = assess(release).exposures[0].sensitivity
    assert found is not None
    assert found.step is not None
    assert found.step[-1] == pytest.approx(0.05 * largest.max())
    assert found.largest[-1] < 0.9 * largest.max()  # of one sex only


def test_a_weak_step_grows_a_cell_by_a_share_of_what_is_in_it() -> None:
    weak = EmployerEmployee(definition="weak", alpha=Fraction("0.1"), epsilon=Fraction(1))
    cells = cells_of(count=[100], largest=[65], largest_employer=[400])
    found = [sensitivity(cells, guarantee) for guarantee in (weak, replace(weak, definition="strong"))]
    assert [one.step[-1] for one in found if one is not None and one.step is not None] == [6.5, 40]


def test_the_sensitivity_of_cells_is_that_of_their_largest_establishments() -> None:
    guarantee = EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(1))
    found = sensitivity(cells_of(count=[0, 4, 10, 100], largest=[0, 4, 5, 65]), guarantee)
    assert found is not None
    middle = len(found.share) // 2
    assert (found.cells, found.share[0], found.share[middle], found.share[-1]) == (3, 0.5, 0.65, 1.0)
    assert found.step is not None
    assert (found.step[0], found.step[middle], found.step[-1]) == (1, 1, 6.5)
    assert sensitivity(cells_of(count=[0], largest=[0]), guarantee) is None


def test_belief_in_another_size_falls_by_a_factor_with_every_step_of_whole_workers() -> None:
    guarantee = EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(2))
    found = np.log(posterior(guarantee, size=100, others=[100, 101, 110, 111, 121, 122]))
    assert found == pytest.approx([0, -2, -2, -4, -4, -6])
    weak = EmployerEmployee(definition="weak", alpha=Fraction("0.1"), epsilon=Fraction(2))
    assert np.log(posterior(weak, size=100, others=[103])) == pytest.approx([-6])
    drawn = odds_by_size(guarantee, 100, 150)
    assert "100 and 150 workers" in drawn
    assert "slope" not in odds_by_size(weak, 100)


def test_check_bounds_and_draws_the_odds_of_two_sizes(folder: Path) -> None:
    chart = folder / "odds.svg"
    words = ["check", str(folder / "formal_2025.toml"), "--sizes", "100,110", "--chart", str(chart), "--json"]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert [(odds["table"], odds["steps"], round(odds["factor"], 3)) for odds in found["odds"]] == [
        ("jobs", 2, round(float(np.exp(2 * EPSILON)), 3)),
        ("all tables together", 2, round(float(np.exp(2 * EPSILON)), 3)),
    ]
    assert chart.read_text().startswith("<svg")
    unbounded = ["check", str(folder / "legacy_2025.toml"), "--sizes", "100,110", "--json"]
    assert json.loads(CliRunner().invoke(app, unbounded).stdout)["odds"][0]["factor"] is None
    assert CliRunner().invoke(app, ["check", str(folder / "formal_2025.toml"), "--sizes", "many"]).exit_code != 0
