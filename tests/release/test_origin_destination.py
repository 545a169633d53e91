"""Jobs by place of residence and place of work, from the release file to the bundle and the report."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.checking import _declared_codes, check
from sfumato.errors import ReleaseError
from sfumato.frame import Codelist
from sfumato.plan import MOST_CELLS, make_plan
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import Published, run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.model import Selection
from sfumato.statistics.jobs.tune import read_accuracy, tune_table
from sfumato.statistics.jobs.tune_thresholds import tune_thresholds
from sfumato_lab.economy.jobs.generate import generate

Edited = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Published:
    made = generate(tmp_path_factory.mktemp("commuting") / "economy", jobs=20_000, residence=True, seed=3)
    return run(load(made.release))


@pytest.fixture(scope="module")
def folder(done: Published) -> Path:
    return done.bundle.parent


@pytest.fixture
def edited(folder: Path) -> Edited:
    def edit(old: str, new: str) -> Path:
        text = (folder / "release.toml").read_text(encoding="utf-8")
        assert old in text
        path = folder / "edited.toml"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return path

    return edit


def test_one_charge_covers_pairs_beside_the_margin(done: Published) -> None:
    assert done.charged == ("jobs_by_place_industry", "jobs_by_industry", "jobs_by_place", "commuting")
    assert done.plan.guarantee.epsilon == 6
    assert done.plan.guarantee.definition == "strong"


def test_the_structure_says_which_dimensions_are_origin_and_destination(done: Published) -> None:
    described = json.loads((done.bundle / "structure.json").read_text(encoding="utf-8"))
    (about,) = (table for table in described["tables"] if table["name"] == "commuting")
    assert about["flow"] == {"origin": "residence", "destination": "place"}
    assert about["sparse"]
    codes = [(done.bundle / f"codelists/{name}.csv").read_text(encoding="utf-8") for name in ("residence", "place")]
    assert codes[0] == codes[1]
    assert not any("flow" in table for table in described["tables"] if table["name"] != "commuting")


def test_rows_are_values_from_the_threshold_on_and_one_zero_at_most_for_a_place_of_work(done: Published) -> None:
    rows = pq.read_table(done.bundle / "tables/commuting.parquet").to_pydict()
    value, threshold = np.array(rows["value"]), np.array(rows["threshold"])
    assert np.all((value >= threshold) | (value == 0))
    zeros = [place for place, number in zip(rows["place"], value, strict=True) if number == 0]
    assert len(zeros) == len(set(zeros))
    register = pq.read_table(done.bundle.parent / "workplaces.parquet", columns=["place"])
    assert set(rows["place"]) == set(register["place"].unique().to_pylist()), "every place of work tells its threshold"
    assert all(low <= number <= high for low, number, high in zip(rows["low"], value, rows["high"], strict=True))
    assert set(rows) == {"residence", "place", "value", "error", "low", "high", "threshold", "establishments"}


def test_a_pair_without_a_row_is_served_as_zero_whose_error_is_not_told(done: Published) -> None:
    table = open_catalogue([BundleSource(folder=done.bundle)])["commuting"]
    rows = pq.read_table(done.bundle / "tables/commuting.parquet").to_pydict()
    every = tuple(tuple(range(len(dimension))) for dimension in table.dimensions)
    codes = [metric.kind for metric in table.metrics]
    found = table.source.figures(Selection(places=every, metrics=(codes.index("value"), codes.index("error"))))
    value, error = found.columns
    assert value.values.shape == (50, 50)
    assert value.missing is None
    assert value.values.sum() == sum(rows["value"])
    assert error.missing is not None
    assert (~error.missing).sum() == len(rows["value"])


def test_the_report_has_false_cells_and_lost_ones_by_size_beside_the_legacy(folder: Path) -> None:
    found = assess(load(folder / "release.toml"))
    (sparse,) = found.sparse
    assert sparse.listed - sparse.false + sparse.lost == sparse.with_jobs
    assert sparse.with_jobs == sum(part.cells for part in sparse.by_size)
    assert sparse.jobs == 20_000
    small, large = sparse.by_size[0], sparse.by_size[-1]
    assert small.listed < large.listed
    assert sparse.legacy_error < sparse.error, "nothing hides what the legacy does not"
    page = found.report.read_text(encoding="utf-8")
    assert "false positives" in page
    assert "false zeros" in page
    (utility,) = (utility for utility in found.utilities if utility.name == "commuting")
    assert utility.covered is not None
    assert utility.covered > 0.9


def test_a_table_that_does_not_tell_of_establishments_has_a_row_of_every_place_of_work(edited: Edited) -> None:
    silent = edited('name = "commuting"', 'name = "commuting"\nestablishments = false')
    text = silent.read_text(encoding="utf-8").replace(
        'period = "2025"', 'period = "2025"\nbundle = "silent"\nledger = "silent.sqlite"'
    )
    silent.write_text(text, encoding="utf-8")
    rows = pq.read_table(run(load(silent)).bundle / "tables/commuting.parquet")
    assert "establishments" not in rows.column_names
    assert len(rows["place"].unique()) == 50


def test_thresholds_are_told_before_any_data_are_read_and_grow_with_the_largest_establishment(folder: Path) -> None:
    plan = check(load(folder / "release.toml"), data=False).plan
    found = tune_thresholds(plan, largest=(10, 1_000), epsilons=(Fraction(2), Fraction(4)))
    by = {(row.largest, row.epsilon): row.threshold for row in found.expected}
    assert by[10, 2] > by[10, 4]
    assert by[1_000, 2] > 50 * by[10, 2]


def test_an_accuracy_of_every_cell_is_not_asked_of_a_table_that_lists_some(folder: Path) -> None:
    with pytest.raises(ReleaseError, match="tune thresholds"):
        tune_table(load(folder / "release.toml"), "commuting", accuracy=read_accuracy("mean error below 2 jobs"))


def test_persons_alone_need_a_budget_that_says_so(edited: Edited) -> None:
    alone = edited('"sparse-laplace", epsilon = 2.0', '"sparse-laplace", epsilon = 2.0, employers = false')
    with pytest.raises(Exception, match="individuals"):
        run(load(alone))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('origin_of = "place"', 'origin_of = "sex"', "public"),
        ('origin_of = "place"', 'origin_of = "industry"', "same codes"),
        ('origin_of = "place"', 'origin_of = "plaice"', "public"),
        ('name = "commuting"', 'name = "commuting"\nparts = 4', "one piece"),
        ('name = "commuting"', 'name = "commuting"\nstructural_zeros = "listed"', "threshold"),
        ('"sparse-laplace", epsilon = 2.0', '"sparse-laplace", epsilon = 2.0, false_cells = 0', "false_cells"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(edited: Edited, old: str, new: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        check(load(edited(old, new)), data=False)


def test_places_squared_beyond_memory_are_planned(edited: Edited) -> None:
    release = load(edited(', map = "place.geojson"', ""))  # which has the places of the economy alone
    many = Codelist.of([f"P{place}" for place in range(30_000)])
    plan = make_plan(release, {**_declared_codes(release), "place": many, "residence": many})
    (commuting,) = (table for table in plan.tables if table.name == "commuting")
    assert commuting.cells == 900_000_000 > MOST_CELLS
