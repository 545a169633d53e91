"""The confidential report about a cube: figures that a count by hand confirms, in a file only its owner can read."""

import json
from dataclasses import dataclass
from fractions import Fraction
from math import comb, exp, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.bundle.read import open_cube
from sfumato.cells import Dimension
from sfumato.checking import checked
from sfumato.engine.data import OpenRecords
from sfumato.errors import LedgerError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.cube import assess as cubes
from sfumato.statistics.cube.assess import (
    CubeAssessment,
    assess_cube,
    cells_only,
    reference_cube,
    sampled,
    without_noise,
)
from sfumato.statistics.cube.assess_measures import SHARES, Replicates, replicate_errors, replicates_of
from sfumato.statistics.cube.assess_report import cube_data, cube_section
from sfumato.statistics.cube.attacks import cell_risk
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import Rules
from sfumato.statistics.cube.figures import Estimates, Sampling
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.statistic import CubeStatistic
from sfumato.statistics.cube.tabulate import replicate_estimates
from tests.cli.call import call
from tests.statistics.cube.survey import CODES, records, release

RULES = ("cap = 7", "cap = 7\nleast_count = 10\nlargest_cv = 0.3")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """A survey whose cube was published, with everything that the assessment is made of."""

    file: Path
    planned: CubeStatistic
    true: Cube
    sampling: Sampling | None
    published: PublishedCube
    replicates: Replicates
    cells: Estimates
    """Replicate variances of the cells of the cube itself."""

    def assessed(self, published: PublishedCube | None = None) -> CubeAssessment:
        return assess_cube(
            self.planned,
            self.true,
            self.sampling,
            published or self.published,
            self.replicates,
            randomness=Seeded(1),
        )


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    file = release(tmp_path_factory.mktemp("survey"), RULES)
    bundle = run(load(file)).bundle
    with checked(load(file)) as ready:
        assert isinstance(ready.opened, OpenRecords)
        planned = ready.plan.cubes[0]
        true, sampling = ready.count({planned.name: planned})[planned.name]
        return Survey(
            file=file,
            planned=planned,
            true=true,
            sampling=sampling,
            published=open_cube(bundle, "people"),
            replicates=replicates_of(ready.opened, planned),
            cells=replicate_estimates(ready.opened.data, ready.opened.tables, planned.question.by, ("pay",)),
        )


@pytest.fixture(scope="module")
def found(survey: Survey) -> CubeAssessment:
    return survey.assessed()


def test_the_report_is_for_its_owner_and_about_a_cube_that_was_published(tmp_path: Path) -> None:
    file = release(tmp_path, RULES)
    with pytest.raises(LedgerError, match="cube 'people'"):
        assess(load(file))
    run(load(file))
    made = assess(load(file))
    assert oct(made.report.stat().st_mode)[-3:] == "600"
    page = made.report.read_text()
    for words in ("CONFIDENTIAL", "Cramér", "Hellinger", "Jensen-Shannon", "Spearman", "|P|/Y", "newly publishable"):
        assert words in page
    assert [part.tables for part in made.cubes[0].by_dimension] == [1, 3, 3, 1]


def test_every_dimension_has_totals_records_proportions_and_means(found: CubeAssessment) -> None:
    kinds = ["weighted totals", "records", "proportions", "means of pay"]
    assert [[kind.figure for kind in part.figures] for part in found.by_dimension[1:]] == [kinds] * 3
    assert [part.kind("weighted totals").all.cells for part in found.by_dimension] == [1, 9, 26, 24]
    assert [part.kind("records").all.cells for part in found.by_dimension] == [1, 9, 26, 24]
    assert len(found.associations) == 3


def test_errors_are_those_counted_by_hand(survey: Survey, found: CubeAssessment) -> None:
    true = survey.true.values("weighted").ravel()
    noisy = survey.published.totals(["region", "job", "level"]).values.ravel()
    off, some = np.abs(noisy - true), true > 0
    kind = found.by_dimension[3].kind("weighted totals")
    assert kind.all.mean_error == pytest.approx(off.mean())
    assert kind.all.total_error == pytest.approx(off.sum())
    assert kind.all.mean_square_error == pytest.approx((off**2).mean())
    assert kind.all.utility_loss == pytest.approx((off[some] / true[some]).mean())
    assert kind.all.within == pytest.approx((off <= 0.1 * true).mean())
    reference = reference_cube(survey.planned, survey.true, Seeded(1)).values("weighted").ravel()
    assert kind.all.reference_ratio == pytest.approx(off.sum() / np.abs(reference - true).sum())
    p, q = true / true.sum(), np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
    assert kind.distances is not None
    assert kind.distances.hellinger == pytest.approx(np.sqrt(1 - np.sqrt(p * q).sum()), abs=1e-7)
    assert kind.distances.root_integrated_squared_error == pytest.approx(np.linalg.norm(p - q))
    assert kind.distances.root_mean_squared_error == pytest.approx(np.sqrt(((p - q) ** 2).mean()))
    both = p + q > 0
    assert kind.all.share_difference * len(p) == pytest.approx((2 * (p - q)[both] / (p + q)[both]).sum())


def test_means_and_proportions_are_compared_as_they_are_asked_for(survey: Survey, found: CubeAssessment) -> None:
    means = survey.true.project("job").values("pay") / survey.true.project("job").values("weighted")
    told = survey.published.means("pay", ["job"]).values
    cells = found.by_dimension[1].kind("means of pay").cells
    assert cells.true[4:7] == pytest.approx(means)
    assert cells.published[4:7] == pytest.approx(told)
    shares = survey.true.project("region", "level").values("weighted")
    shares = (shares / shares.sum(axis=1, keepdims=True)).ravel()
    assert found.by_dimension[2].kind("proportions").cells.true[12:20] == pytest.approx(shares)


def test_classes_of_size_are_all_cells_once(found: CubeAssessment) -> None:
    for part in found.by_dimension:
        for kind in part.figures:
            assert sum(size.cells for size in kind.by_size) == kind.all.cells
            assert sum(size.total_error for size in kind.by_size) == pytest.approx(kind.all.total_error)
    labels = [size.label for size in found.by_dimension[3].kind("records").by_size]
    assert labels == ["0", "1–9", "10–99"]


def test_the_reference_spends_the_same_budget_on_cells_alone(survey: Survey) -> None:
    method = cells_only(survey.planned.method)
    ours, theirs = survey.planned.guarantee, method.guarantee()
    assert method.controls == ()
    assert theirs.epsilon == ours.epsilon == Fraction(3)
    assert theirs.delta <= ours.delta


def test_a_cube_without_noise_loses_nothing(survey: Survey) -> None:
    same = survey.assessed(_as_it_is(survey))
    for part in same.by_dimension:
        for kind in part.figures:
            assert kind.all.total_error == kind.all.mean_square_error == kind.all.utility_loss == 0
            assert kind.all.within == kind.all.near_reference == 1
            assert kind.all.newly_publishable == kind.all.newly_marked == 0
            assert kind.all.cells == 1 or kind.all.spearman == pytest.approx(1)
            if kind.figure != "records":
                assert kind.all.overlap == pytest.approx(1)
                assert kind.all.error_ratio == pytest.approx(1)
                assert kind.all.cv_after == pytest.approx(kind.all.cv_before)
            if kind.distances is not None:
                assert kind.distances.hellinger == pytest.approx(0, abs=1e-7)
                assert kind.distances.bottom_tail == kind.distances.top_tail == 1
        assert part.risk.exact == 1
    changes = same.risk.zero_changes
    assert changes.to_zero == changes.to_nonzero == 0
    assert all(pair.true == pytest.approx(pair.published) for pair in same.associations)


def test_replicate_errors_are_those_of_the_replicate_weights_themselves(survey: Survey, found: CubeAssessment) -> None:
    columns = {name: np.array(values) for name, values in records().items()}
    weights = np.stack([columns["weight"], *(columns[f"rw_{r}"] for r in range(1, 9))])
    inside = columns["region"] == np.array(CODES["region"])[:, None]
    totals = weights @ inside.T
    sums = (weights * columns["pay"]) @ inside.T
    errors = {}
    for name, estimates in {"weighted totals": totals, "means of pay": sums / totals}.items():
        errors[name] = np.sqrt(4 / 8 * ((estimates[1:] - estimates[0]) ** 2).sum(axis=0))
    by_region = {part.figure: part for part in found.replicates if part.table == ("region",)}
    assert by_region["weighted totals"].errors == pytest.approx(errors["weighted totals"])
    assert by_region["means of pay"].errors == pytest.approx(errors["means of pay"])
    answer = survey.published.totals(["region"])
    paper = np.sqrt(errors["weighted totals"] ** 2 + (answer.values - totals[0]) ** 2)
    assert by_region["weighted totals"].published_ratio == pytest.approx(np.median(answer.errors / paper))
    assert by_region["weighted totals"].replicate_cv == pytest.approx(np.median(errors["weighted totals"] / totals[0]))
    assert {part.table for part in found.replicates} == {("region",), ("job",), ("level",), ("level", "job")}


def test_replicate_errors_stay_with_their_cells_where_some_are_empty(survey: Survey) -> None:
    by, held = survey.true.names, survey.true["count"] > 0
    totals, _ = replicate_errors({by: survey.cells}, _as_it_is(survey), survey.published)
    assert totals.cells == int(held.sum()) == 23 < len(survey.true)
    assert totals.errors == pytest.approx(np.sqrt(survey.cells.variances))
    assert totals.published_errors == pytest.approx(survey.published.totals(by).errors[held])
    assert survey.cells.totals == pytest.approx(survey.true.values("weighted")[held])


def test_risks_are_those_counted_by_hand() -> None:
    true = np.array([0, 0, 0, 1, 1, 2, 3, 40])
    risk = cell_risk(true, np.array([0.0, 0.2, 1.1, 1.0, 0.3, 2.6, 3.0, 41.0]))
    assert (risk.cells, risk.empty) == (8, 3)
    assert (risk.zero_changes.to_nonzero, risk.zero_changes.to_zero) == (1, 1)
    assert risk.exact == 3 / 8
    assert risk.exact_with_records == 2 / 5
    assert (risk.uniques.true, risk.uniques.published, risk.uniques.both) == (2, 2, 1)
    assert (risk.suppression.threshold, risk.suppression.p_percent, risk.suppression.dominance) == (3, 3, 2)
    assert [(one.published, one.cells) for one in risk.meanings] == [(0, 3), (1, 2), (2, 0), (3, 2)]
    assert (risk.meanings[0].holding, risk.meanings[1].right, risk.meanings[3].right) == (1 / 3, 1 / 2, 1 / 2)


def test_the_odds_are_those_of_the_guarantee(found: CubeAssessment) -> None:
    assert [odds.larger for odds in found.odds] == [1, 2, 3, 5, 10]
    assert found.odds[0].factor == pytest.approx(exp(3))
    assert found.odds[1].factor == pytest.approx(exp(6))
    assert found.odds[0].belief == pytest.approx(exp(3) / (1 + exp(3)))


def test_tables_are_sampled_from_all_attributes_and_no_more_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    dimensions = tuple(Dimension(name=f"a{at}", codes=("x", "y")) for at in range(9))
    cube = Cube(dimensions=dimensions, columns={"count": np.zeros((2,) * 9, dtype=np.int64)})
    chosen = sampled(cube, 3)
    assert len(chosen) == cubes.MOST_TABLES < comb(9, 3)
    assert {name for by in chosen for name in by} == set(cube.names)
    monkeypatch.setattr(cubes, "MOST_CELLS", 100)
    assert sum(prod((2,) * len(by)) for by in sampled(cube, 3)) <= 100
    assert sampled(cube, 7) == []


def test_machines_get_every_figure_and_no_cell(found: CubeAssessment) -> None:
    data: dict[str, Any] = cube_data(found)
    json.dumps(data, allow_nan=False)
    kind = data["by_dimension"][2]["figures"][0]
    assert kind["figure"] == "weighted totals"
    assert "cells" not in kind
    assert set(kind["differences"]) == {f"{share:g}" for share in SHARES}
    assert data["odds"][0]["belief"] == found.odds[0].belief
    assert data["replicates"][0]["table"] == ["region"]
    assert "errors" not in data["replicates"][0]
    page = cube_section(found)
    assert f"{found.by_dimension[2].kind('weighted totals').all.utility_loss:.2%}" in page
    # A chart each of four kinds: values, differences, relative differences; errors of three; and the replicates'.
    assert page.count("<figure>") == 4 * 3 + 3 + 1


@pytest.mark.slow
def test_the_command_line_plans_publishes_and_assesses_a_cube(tmp_path: Path) -> None:
    file = release(tmp_path, RULES)
    planned = call("check", file).stdout
    assert "0.28 records" in planned
    assert "Weighted counts and totals of measures are not covered" in planned
    published = json.loads(call("run", file, "--json").stdout)
    assert published["charged"] == ["people"]
    assert published["cubes"][0]["charge_epsilon"] == 3
    assert "1 cube" in call("run", file).stdout
    assessed = json.loads(call("assess", file, "--json").stdout)
    assert [part["dimensions"] for part in assessed["cubes"][0]["by_dimension"]] == [0, 1, 2, 3]


def _as_it_is(survey: Survey) -> PublishedCube:
    exact = survey.true.with_column("count", survey.true["count"] * MILLION, parts=MILLION)
    return without_noise(exact, survey.sampling, Rules(least_count=10, largest_cv=0.3))
