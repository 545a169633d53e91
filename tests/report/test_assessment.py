"""The confidential report of a release: complete, readable by its owner only, and harmless to what was published."""

import hashlib
import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.checking import check
from sfumato.cli.release import assessment_summary
from sfumato.measures.drawing import error_by_size, true_against_protected
from sfumato.measures.risk import attack
from sfumato.measures.utility import FEW_CODES, measure_utility
from sfumato.measures.views import View
from sfumato.release import load
from sfumato.report.assess import Assessment, assess
from sfumato.running import run
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.views import views
from tests.report.economies import factors, noise_infusion, workplaces
from tests.running.same_draws import same_draws


def hashes(folder: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def assessed(release_folder: Path) -> Assessment:
    release = load(release_folder / "release.toml")
    with same_draws():  # much noise in one industry changes the ranks of the others
        run(release)
    before = hashes(release_folder)
    found = assess(release)
    assert {path: hashes(release_folder)[path] for path in before} == before, "assessing changes no other file"
    return found


def test_the_report_shows_every_measure_and_is_its_owners_only(assessed: Assessment) -> None:
    page = assessed.report.read_text(encoding="utf-8")
    for words in (
        "CONFIDENTIAL",
        "Error by true size of the cell",
        "Error by population of the place",
        "rank correlation (Spearman)",
        "Jensen-Shannon distance",
        "Hellinger distance",
        "root integrated squared error",
        "Cramér&#x27;s V of industry and place_size",
        "cells with a single job",
        "cells moved from 0 to another value",
        "Cells that suppression would hide",
        "10 or 11 workers",
    ):
        assert words in page, words
    assert "nan" not in page
    assert page.count("<svg") >= 3 * 2 + 2, "two charts a table, and one for each stratification"
    assert assessed.report.stat().st_mode & 0o077 == 0


def test_charts_show_every_cell_and_both_errors_of_every_class(assessed: Assessment) -> None:
    for utility in assessed.utilities:
        cells = true_against_protected(utility)
        assert f">true {utility.unit}<" in cells
        assert f">published {utility.unit}<" in cells
        dots = re.findall(r'd="([^"]*)" class="s0"', cells)
        assert sum(shape.count("M") for shape in dots) == min(utility.cells, 2_500)
        errors = error_by_size(utility)
        assert all(f">{escape(word)}<" in errors for word in ("observed", "expected", utility.by_size[0].label))
        columns = re.findall(r'd="([^"]*)" class="s[01]"', errors)
        assert [shape.count("M") for shape in columns] == [len(utility.by_size)] * 2


def test_the_figures_of_a_table_agree_with_each_other(assessed: Assessment) -> None:
    for utility, exposure in zip(assessed.utilities, assessed.exposures, strict=True):
        assert utility.name == exposure.name
        for parts in (utility.by_size, *(part.strata for part in utility.by_stratum)):
            assert sum(part.cells for part in parts) == utility.cells
            total = sum(part.cells * part.mean_error for part in parts)
            assert total == pytest.approx(utility.cells * utility.mean_error)
        assert utility.spearman is not None
        assert utility.spearman > 0.95
        assert exposure.suppression.cells == int((utility.true > 0).sum())
        assert exposure.uniques.true == int((utility.true == 1).sum())
        assert exposure.odds[0].steps == 1


def test_only_public_attributes_with_few_codes_make_strata(assessed: Assessment) -> None:
    strata = {utility.name: [part.attribute for part in utility.by_stratum] for utility in assessed.utilities}
    assert strata == {"jobs_by_place_industry": ["ownership"], "jobs_by_industry": ["place_size"], "jobs_by_place": []}
    for utility in assessed.utilities:
        assert all(len(part.strata) <= FEW_CODES for part in utility.by_stratum)
    labels = [part.label for part in assessed.utilities[1].by_stratum[0].strata]
    assert labels[0] == "Fewer than 100 inhabitants"


def test_the_summary_for_machines_is_valid_json_without_cells(assessed: Assessment) -> None:
    _, data = assessment_summary(assessed)
    text = json.dumps(data, allow_nan=False)
    table = json.loads(text)["tables"][0]
    assert {"spearman", "hellinger", "by_stratum", "suppression", "odds", "attacks", "uniques"} <= table.keys()
    assert not {"true", "protected"} & table.keys()


def jobs_by_industry(folder: Path) -> PublishedTable:
    plan = check(load(folder / "release.toml"), data=False).plan
    return next(planned for planned in plan.tables if planned.table.name == "jobs_by_industry")


def cells_of(planned: PublishedTable, **columns: list[int]) -> Cells:
    arrays = {name: np.array(values, dtype=np.int64) for name, values in columns.items()}
    length = len(next(iter(arrays.values())))
    return Cells(dimensions=planned.question.by, positions=np.arange(length), columns=arrays)


def view(planned: PublishedTable, counted: Cells, answer: Cells) -> View:
    (found,) = views(planned, counted, answer)
    return found


def test_values_raised_to_zero_are_measured_as_readers_get_them(release_folder: Path) -> None:
    planned = jobs_by_industry(release_folder)
    counted = cells_of(planned, count=[0, 4], largest=[0, 3])
    answer = cells_of(planned, value=[-6, 4])
    assert measure_utility(view(planned, counted, answer)).mean_error == 3
    raised = replace(planned, section=planned.table.model_copy(update={"nonnegative": True}))
    found = measure_utility(view(raised, counted, answer))
    assert found.mean_error == 0
    assert found.total_protected == 4


def test_a_table_of_one_or_of_no_cell_leaves_out_what_it_does_not_define(release_folder: Path) -> None:
    planned = jobs_by_industry(release_folder)
    one = measure_utility(view(planned, cells_of(planned, count=[0], largest=[0]), cells_of(planned, value=[0])))
    assert (one.spearman, one.relative_error, one.hellinger) == (None, None, None)
    assert one.associations[0].true is None
    none = measure_utility(view(planned, cells_of(planned, count=[], largest=[]), cells_of(planned, value=[])))
    assert (none.cells, none.mean_error, none.by_size) == (0, 0, ())


def test_an_answer_about_other_cells_is_refused(release_folder: Path) -> None:
    planned = jobs_by_industry(release_folder)
    with pytest.raises(ValueError, match="other cells"):
        measure_utility(view(planned, cells_of(planned, count=[1], largest=[1]), cells_of(planned, value=[1, 2])))


def test_a_release_whose_tables_agree_is_assessed_as_it_is_published(release_folder: Path) -> None:
    path = release_folder / "release.toml"
    text = path.read_text(encoding="utf-8").replace('by = ["industry", "place_size"]', 'by = ["industry"]')
    text = text.replace("epsilon = 1.0", "epsilon = 0.3")  # so much noise that agreeing moves values out of intervals
    path.write_text(text.replace('period = "2025"', 'period = "2025"\nreconcile = true'), encoding="utf-8")
    release = load(path)
    bundle = run(release).bundle
    found = assess(release)
    for utility in found.utilities:
        shown = pq.read_table(bundle / "tables" / f"{utility.name}.parquet").to_pandas().query("establishments > 0")
        assert utility.protected.tolist() == shown.value.tolist()
        high = shown.high.fillna(np.inf).to_numpy()
        inside = (shown.low.to_numpy() <= utility.true) & (utility.true <= high)
        assert utility.covered == pytest.approx(inside.mean())
    assert any(utility.agreed for utility in found.utilities)
    assert "expected before the tables were made to agree" in found.report.read_text(encoding="utf-8")


def legacy_table() -> tuple[Cells, np.ndarray]:
    """Workplaces by sex and education under the legacy protection, in whole jobs."""
    places = workplaces(8, cells=8_000)
    true = places.cells()
    dimensions = (
        Dimension(name="place", codes=tuple(map(str, range(len(true))))),
        Dimension(name="sex", codes=("F", "M"), public=False),
        Dimension(name="education", codes=("college", "none"), public=False),
    )
    establishments = np.repeat(places.establishments, true.shape[1])
    columns = {"count": true.ravel(), "largest": true.ravel(), "establishments": establishments}
    counted = Cells(dimensions=dimensions, positions=np.arange(true.size), columns=columns)
    published = noise_infusion(places, factors(places, 9), decimals=0, seed=10)
    return counted, published.astype(np.int64).ravel()


def test_a_legacy_table_is_attacked_and_disclosed() -> None:
    counted, published = legacy_table()
    found = {result.attack: result for result in attack(counted, published)}
    assert found.keys() == {"shape", "size", "re-identification"}
    for result in found.values():
        assert result.targets > 20
        assert result.success_rate == 1
        assert result.baseline_rate < 0.8


def test_tables_that_tell_no_workers_apart_or_no_establishments_are_not_attacked() -> None:
    counted, published = legacy_table()
    joined = Cells(
        dimensions=counted.dimensions,
        positions=counted.positions,
        columns={name: counted[name] for name in ("count", "largest")},
    )
    assert attack(joined, published) == ()
    place = Dimension(name="place", codes=("A",))
    column = np.array([5])
    whole = {"count": column, "largest": column, "establishments": np.array([1])}
    assert attack(Cells(dimensions=(place,), positions=np.array([0]), columns=whole), column) == ()


def test_the_report_of_a_table_by_worker_attributes_shows_the_attacks(release_folder: Path) -> None:
    file = release_folder / "workers.toml"
    text = (release_folder / "release.toml").read_text(encoding="utf-8")
    start = text.index("# Each table states")
    file.write_text(
        text[:start].replace("epsilon = 4.0 }", 'epsilon = 4.0, definition = "weak" }')
        + '[[table]]\nname = "by_sex"\ncount = "jobs"\nby = ["place", "industry", "ownership", "sex"]\n'
        + 'protect = { method = "smooth-pareto", epsilon = 4.0 }\n',
        encoding="utf-8",
    )
    release = load(file)
    run(release)
    found = assess(release)
    names = [result.attack for result in found.exposures[0].attacks]
    assert names == ["shape", "size"], "with one attribute nothing is left to re-identify"
    assert "Attacks on establishments" in found.report.read_text(encoding="utf-8")
