"""Tuning employee reports and percentiles: what is found is met when drawn, and is the least."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.checking import check, checked
from sfumato.errors import DataError, MethodError, ReleaseError, SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import Release, load
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.percentiles import CURVES, planned
from sfumato.statistics.people.tune import (
    EPSILONS,
    ReportCells,
    Reported,
    Target,
    TunedReport,
    assumed_cells,
    assumed_mean,
    declared_cells,
    reported,
    true_cells,
    tune_percentiles,
    tune_report,
)
from sfumato_lab.economy.graduates.generate import generate_graduates
from sfumato_lab.economy.university.generate import generate_university
from tests.cli.call import call

TENTH = Target(threshold=Fraction(1, 10), share=Fraction(9, 10))
DRAWS = 60_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_university(tmp_path_factory.mktemp("reports") / "u", employees=4_000, institutions=1).release


@pytest.fixture(scope="module")
def release(file: Path) -> Release:
    return load(file)


def tuned(release: Release, cells: ReportCells, target: Target = TENTH) -> TunedReport:
    return tune_report(release, reported(check(release, data=False).plan), target, cells)


def share_drawn(method: Reported, cells: ReportCells, target: Target) -> float:
    """The share of cells within the threshold when the method itself protects many copies of them."""
    copies = -(-DRAWS // len(cells))
    people = np.tile(cells.people, copies)
    columns = {"count": people, "class": np.zeros_like(people)}
    true = people.astype(np.float64)
    if isinstance(method, Mose):
        assert cells.mean is not None
        columns["sum_y"] = np.rint(np.tile(cells.mean, copies) * people).astype(np.int64)
        true = columns["sum_y"] / people * method.grid
    place = Dimension(name="cell", codes=tuple(map(str, range(len(people)))))
    held = Cells(dimensions=(place,), positions=np.arange(len(people)), columns=columns)
    value = method.protect(held, Seeded(4))["value"]
    return float(np.mean(np.abs(value - true) <= float(target.threshold) * true))


@pytest.mark.parametrize("place", [0, 1], ids=["counts", "means"])
@pytest.mark.parametrize(
    ("people", "target"),
    [
        ((100,), TENTH),
        ((40,), Target(threshold=Fraction(1, 20), share=Fraction(3, 4))),
        ((20, 60, 400), Target(threshold=Fraction(1, 5), share=Fraction(19, 20))),
    ],
)
def test_the_share_is_met_at_the_epsilon_that_is_found_and_missed_a_tenth_below(
    release: Release, place: int, people: tuple[int, ...], target: Target
) -> None:
    cells = assumed_cells(people, Fraction(50_000))
    table = tuned(release, cells, target).tables[place]
    spread = 3 * np.sqrt(float(target.share) * (1 - float(target.share)) / DRAWS)
    drawn = share_drawn(table.method, cells, target)
    assert drawn >= float(target.share) - spread
    assert drawn == pytest.approx(table.share, abs=spread)
    below = replace(table.method, epsilon=table.epsilon * Fraction(9, 10))
    assert share_drawn(below, cells, target) < float(target.share) - spread


def test_the_report_spends_the_sum_over_years_of_what_both_tables_spend_in_one(release: Release) -> None:
    found = tuned(release, assumed_cells([100], Fraction(40_000)))
    employment, earnings = found.tables
    # By hand: noise is beyond 10 with the chance exp(−10.5·ε)/cosh(ε/2), which is 0.0994 at 0.219 and 0.1005 at 0.218.
    assert employment.period_epsilon == Fraction("0.219")
    # And of a mean: noise of scale 4,000/ε is within 4,000.5 with the chance 1 − exp(−1.0001·ε): ln(10)/1.0001 = 2.302.
    # 0.2 are for the number of people.
    assert earnings.period_epsilon == Fraction("2.31") + Fraction("0.2")
    assert found.epsilon == 10 * (employment.period_epsilon + earnings.period_epsilon)
    assert found.periods == tuple(map(str, range(1, 11)))


@pytest.mark.slow
def test_the_lines_make_a_release_that_spends_what_they_say(file: Path) -> None:
    out = json.loads(call("tune", "report", file, "--people", "200", "--mean", "50000", "--json").stdout)
    text, lines = file.read_text(encoding="utf-8"), iter(out["lines"].values())
    new = [next(lines) if line.startswith(("budget = ", "protect = ")) else line for line in text.splitlines()]
    written = file.with_name("tuned.toml")
    written.write_text("\n".join(new), encoding="utf-8")
    plan = check(load(written)).plan
    assert isinstance(plan.guarantee, EmployerEmployee)
    assert plan.guarantee.epsilon == Fraction(str(out["epsilon"]))
    assert [str(float(table.table.protect.epsilon or 0)) for table in plan.tables] == [
        str(float(table["epsilon"])) for table in out["tables"]
    ]
    years = [sum(map(Fraction, map(str, year["epsilon"].values()))) for year in out["periods"]]
    assert sum(years) == Fraction(str(out["epsilon"]))


@pytest.mark.slow
def test_no_data_are_read_unless_that_is_told(file: Path, tmp_path: Path) -> None:
    for path in (file, *file.parent.rglob("*.csv")):
        (tmp_path / path.relative_to(file.parent)).parent.mkdir(exist_ok=True)
        (tmp_path / path.relative_to(file.parent)).write_bytes(path.read_bytes())
    assert "Assumed, not read off any data" in call("tune", "report", tmp_path / file.name).stdout
    call("tune", "report", tmp_path / file.name, "--from-confidential-data", refused=True)


@pytest.mark.slow
def test_true_cells_are_used_when_that_is_told_and_the_finding_is_marked(file: Path, release: Release) -> None:
    found = call("tune", "report", file, "--from-confidential-data").stdout
    assert "CONFIDENTIAL" in found
    with checked(release) as ready:
        cells = true_cells(ready.count, reported(check(release, data=False).plan))
    assert cells.confidential
    assert cells.mean is not None
    assert 10_000 < cells.mean.min() < cells.mean.max() < 400_000
    assert len(cells) <= 150


def test_cells_of_an_earlier_report_may_be_declared(file: Path, release: Release, tmp_path: Path) -> None:
    declared = tmp_path / "cells.csv"
    declared.write_text("people,mean\n100,40000\n", encoding="utf-8")
    found = tuned(release, declared_cells(declared, None))
    assert found.epsilon == tuned(release, assumed_cells([100], Fraction(40_000))).epsilon
    assert (
        found.epsilon
        == tuned(release, assumed_cells([100], assumed_mean(reported(check(release, data=False).plan)))).epsilon
    )
    assert "cells.csv" in call("tune", "report", file, "--cells", declared).stdout
    for text in ("size\n3\n", "people\nmany\n", "people,mean\n3\n"):
        declared.write_text(text, encoding="utf-8")
        with pytest.raises(DataError):
            declared_cells(declared, None)


def test_a_sensitivity_that_would_be_observed_is_bounded_by_the_range_of_the_outcome(file: Path) -> None:
    observed = file.with_name("observed.toml")
    observed.write_text(file.read_text(encoding="utf-8").replace(", chi = 400000", ""), encoding="utf-8")
    tables = tuned(load(observed), assumed_cells([100], Fraction(40_000))).tables
    assert isinstance(tables[1].method, Mose)
    assert tables[1].method.chi == 400_000
    assert tables[1].options["chi"] == 400_000


def test_what_cannot_be_met_or_meant_is_refused(release: Release, release_folder: Path) -> None:
    for wrong in ((Fraction(0), Fraction(1, 2)), (Fraction(1, 10), Fraction(1))):
        with pytest.raises(MethodError, match="above 0 and below 1"):
            Target(threshold=wrong[0], share=wrong[1])
    for people in ([], [0], [-3]):
        with pytest.raises(SfumatoError):
            assumed_cells(people, None)
    with pytest.raises(MethodError, match="published"):
        tuned(release, assumed_cells([2], Fraction(40_000)))
    with pytest.raises(MethodError, match="--mean"):
        tuned(release, assumed_cells([20], None))
    tight = Target(threshold=Fraction(1, 10**9), share=Fraction(99, 100))
    with pytest.raises(MethodError, match="9990"):
        tuned(release, assumed_cells([20], Fraction(40_000)), tight)
    with pytest.raises(ReleaseError, match="employee report"):
        reported(check(load(release_folder / "release.toml"), data=False).plan)


@pytest.mark.slow
def test_percentiles_are_planned_for_every_size_and_epsilon_and_the_best_curve_is_named(tmp_path: Path) -> None:
    file = generate_graduates(tmp_path / "graduates", people=2_000).release
    found = tune_percentiles(check(load(file), data=False).plan, people=[30, 300])
    assert {line.epsilon for line in found.expected} == set(EPSILONS)
    for line in found.expected:
        assert [plan.error for plan in line.plans] == sorted(plan.error for plan in line.plans)
        assert {plan.curve for plan in line.plans} == set(CURVES)
    by_size = {(line.people, line.epsilon): line.best.error for line in found.expected}
    assert by_size[30, Fraction(1)] > by_size[300, Fraction(1)]
    assert by_size[30, Fraction(1, 2)] > by_size[30, Fraction(3)]
    method = found.method
    assert by_size[300, Fraction(1)] == min(
        planned(curve, bins=method.bins, at=method.at, epsilon=Fraction(1), size=300).error for curve in CURVES
    )
    assert found.recommended == "adaptive"
    data = json.loads(call("tune", "percentiles", file, "--people", "30,100", "--epsilon", "2", "--json").stdout)
    assert [(row["people"], row["epsilon"]) for row in data["rows"]] == [(30, 2), (100, 2)]
    assert data["rows"][0]["error"] == min(data["rows"][0]["by_curve"].values())
    assert 'curve = "adaptive"' in data["lines"]["percentiles"]


def test_percentiles_of_a_release_without_them_are_refused(release: Release) -> None:
    with pytest.raises(ReleaseError, match="no quantiles table"):
        tune_percentiles(check(release, data=False).plan)


def test_accuracy_of_jobs_is_not_for_people_and_says_what_is(file: Path) -> None:
    words = ("--table", "employment", "--accuracy", "mean error below 5%")
    assert "sfumato tune report" in call("tune", "table", file, *words, refused=True).stderr


@pytest.mark.slow
def test_every_year_gets_the_epsilon_that_meets_the_target_in_it(file: Path, tmp_path: Path) -> None:
    declared = tmp_path / "cells.csv"
    years = [f"{year},{people}" for year in range(1, 11) for people in (400 // year, 800 // year)]
    declared.write_text("years,people\n" + "\n".join(years) + "\n", encoding="utf-8")
    told = json.loads(
        call("tune", "report", file, "--cells", declared, "--mean", "60000", "--each-period", "--json").stdout
    )
    spent = [period["epsilon"]["employment"] for period in told["periods"]]
    assert spent == sorted(spent)  # fewer people in later years, and more ε for the same share
    assert spent[-1] > 5 * spent[0]
    assert told["epsilon"] == pytest.approx(sum(sum(period["epsilon"].values()) for period in told["periods"]))
    text = file.read_text(encoding="utf-8")
    for table in ("employment", "earnings"):
        before = next(line for line in text.split(f'name = "{table}"')[1].splitlines() if line.startswith("protect"))
        text = text.replace(before, told["lines"][table])
    again = file.with_name("each.toml")
    again.write_text(
        text.replace(next(line for line in text.splitlines() if line.startswith("budget")), told["lines"]["[release]"]),
        encoding="utf-8",
    )
    assert float(check(load(again), data=False).plan.guarantee.epsilon) == pytest.approx(told["epsilon"])


def test_cells_that_do_not_say_their_year_give_no_epsilon_of_a_year(file: Path) -> None:
    assert "cells that do not say their period" in call("tune", "report", file, "--each-period", refused=True).stderr
