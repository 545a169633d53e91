"""Jobs by place of residence and place of work, from the release file to the bundle and the report."""

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import isqrt
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cells import Cells, Dimension
from sfumato.checking import _declared_codes, check
from sfumato.cli import app
from sfumato.engine.chunks import MOST_CELLS
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.method import CONFIDENCE
from sfumato.plan import make_plan, plan_table
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import Published, run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Column, Selection, ServedTable
from sfumato.serve.page.reading import read
from sfumato.serve.page.view import view_of
from sfumato.statistics.jobs.sparse import MOST_BLOCKS, SparseCounts
from sfumato.statistics.jobs.tune import read_accuracy, tune_table
from sfumato.statistics.jobs.tune_thresholds import tune_thresholds
from sfumato_lab.economy.jobs.generate import generate
from tests.running.same_draws import same_draws

Edited = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Published:
    made = generate(tmp_path_factory.mktemp("commuting") / "economy", jobs=20_000, residence=True, seed=3)
    with same_draws():
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


@pytest.fixture(scope="module")
def by_industry(folder: Path) -> tuple[Published, ServedTable]:
    """The same with industries, so that there are workplace cells without any establishment; and as it is served."""
    text = (folder / "release.toml").read_text(encoding="utf-8")
    text = text.replace('period = "2025"', 'period = "2025"\nbundle = "finer"\nledger = "finer.sqlite"')
    path = folder / "finer.toml"
    path.write_text(text.replace('by = ["residence", "place"]', 'by = ["place", "residence", "industry"]'))
    with same_draws():
        finer = run(load(path))
    return finer, open_catalogue([BundleSource(folder=finer.bundle)])["commuting"]


def served(table: ServedTable) -> dict[str, Column]:
    every = tuple(tuple(range(len(dimension))) for dimension in table.dimensions)
    found = table.answer(Selection(places=every, metrics=tuple(range(len(table.metrics)))))
    return dict(zip((metric.code for metric in table.metrics), found.columns, strict=True))


def test_a_cell_without_a_row_is_served_with_the_figures_of_a_zero_in_its_workplace_cell(
    by_industry: tuple[Published, ServedTable],
) -> None:
    done, table = by_industry
    (commuting,) = (one for one in done.plan.tables if one.name == "commuting")
    protection = cast(SparseCounts, commuting).protection
    caps = protection.ladder[1:]
    each = Dimension(name="cap", codes=tuple(map(str, caps)))
    zeros = Cells(dimensions=(each,), positions=np.arange(len(caps)))
    zeros = zeros.with_column("value", np.zeros_like(caps)).with_column("cap", caps)
    ends = set(zip(protection.thresholds(caps), protection.published_figures(zeros, CONFIDENCE).high, strict=True))
    rows = pq.read_table(done.bundle / "tables/commuting.parquet")
    columns = served(table)
    places, industries = (table.dimensions[at].places for at in (0, 2))
    listed = {(r["place"], r["residence"], r["industry"]): r["value"] for r in rows.to_pylist()}
    told = {(row["place"], row["industry"]): row for row in rows.to_pylist()}
    assert columns["jobs"].values.sum() == sum(listed.values())
    assert any(listed.values())
    for (place, industry), row in told.items():
        at = (places[place], slice(None), industries[industry])
        free = np.array([not listed.get((place, home, industry), 0) for home in table.dimensions[1].codes])
        assert set(columns["error"].values[at][free]) == {row["threshold"]}
        (high,) = set(columns["high"].values[at][free])
        assert (row["threshold"], high) in ends
        assert high == row["high"] or row["value"] > 0
        assert set(columns["low"].values[at][free]) == {0}
        assert set(columns["threshold"].values[at]) == {row["threshold"]}
        assert set(columns["establishments"].values[at]) == {row["establishments"]}
        assert columns["jobs"].marks is not None
        assert columns["jobs"].marks[at][free].all(), "nobody takes it for a true zero"


def test_where_no_establishment_is_a_cell_is_served_as_exactly_zero(
    by_industry: tuple[Published, ServedTable],
) -> None:
    done, table = by_industry
    rows = pq.read_table(done.bundle / "tables/commuting.parquet")
    somewhere = np.zeros((50, len(table.dimensions[2])), dtype=np.bool_)
    for place, industry in zip(rows["place"].to_pylist(), rows["industry"].to_pylist(), strict=True):
        somewhere[table.dimensions[0].places[place], table.dimensions[2].places[industry]] = True
    assert not somewhere.all()
    for column in served(table).values():
        nowhere = np.moveaxis(column.values, 1, -1)[~somewhere]
        assert not nowhere.any()
        assert column.missing is None
        assert column.marks is None or not np.moveaxis(column.marks, 1, -1)[~somewhere].any()


def test_a_query_says_what_cells_without_a_row_are(by_industry: tuple[Published, ServedTable]) -> None:
    done, table = by_industry
    rows = pq.read_table(done.bundle / "tables/commuting.parquet").to_pylist()
    zero = next(row for row in rows if row["value"] == 0)
    at = {"place": zero["place"], "industry": zero["industry"]}
    homes = {row["residence"] for row in rows if at.items() <= row.items()}
    below = next(home for home in table.dimensions[1].codes if home not in homes)
    somewhere = {(row["place"], row["industry"]) for row in rows}
    every = set(product(table.dimensions[0].codes, table.dimensions[2].codes))
    place, industry = min(every - somewhere)
    asked: dict[str, tuple[dict[str, str], list[str]]] = {
        "below": (
            {**at, "residence": below},
            [f"0: 1 below the threshold of the workplace cell ({zero['threshold']:,})"],
        ),
        "nowhere": ({"place": place, "industry": industry}, ["exactly 0: 50 in workplace cells without any estab"]),
        "listed": ({**at, "residence": zero["residence"]}, []),
        "all": ({}, [f"0: {len(somewhere) * 50 - len(rows):,} below", f"0: {len(every - somewhere) * 50:,} in"]),
    }
    for name, (where, said) in asked.items():
        options = [word for dimension, code in where.items() for word in ("--where", f"{dimension}={code}")]
        found = CliRunner().invoke(app, ["query", str(done.bundle), "commuting", *options, "--json"])
        told = json.loads(found.stdout).get("notes", [])
        assert len(told) == len(said), name
        for note, words in zip(told, said, strict=True):
            assert words in note, name


def test_what_a_sparse_table_lists_is_not_added_up(done: Published) -> None:
    described = json.loads((done.bundle / "structure.json").read_text(encoding="utf-8"))
    assert {about["name"]: about["additive"] for about in described["tables"]} == {
        "jobs_by_place_industry": True, "jobs_by_industry": True, "jobs_by_place": True, "commuting": False,
    }  # fmt: skip
    table = open_catalogue([BundleSource(folder=done.bundle)])["commuting"]
    assert not table.adds_up
    question = read(table, [("percent", "column")])
    view = view_of(question, question.selection())
    assert "not parts of a whole" in " ".join(view.notes)
    with pytest.raises(RefusedError, match="do not add up"):
        table.source.figures(Selection(places=(None, (0,)), metrics=(0,)))


def test_the_scale_of_noise_is_said_to_be_public_where_it_is(done: Published) -> None:
    table = open_catalogue([BundleSource(folder=done.bundle)])["commuting"]
    (error,) = (metric for metric in table.metrics if metric.kind == "error")
    assert error.label == "Error"
    said = " ".join(table.notes)
    assert "In tables that list values of any size the noise that was really drawn, and its scale, are" in said
    assert "listed the scale of the noise is public" in said


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
    jobs = pq.read_table(folder / "jobs.parquet").group_by("workplace").aggregate([("worker", "count")])
    (exposure,) = (exposure for exposure in found.exposures if exposure.name == "commuting")
    assert exposure.sensitivity is not None
    assert exposure.sensitivity.step is not None
    assert exposure.sensitivity.cells == sparse.with_jobs
    assert exposure.sensitivity.step[-1] == pytest.approx(0.1 * max(jobs["worker_count"].to_pylist()))
    assert exposure.sensitivity.largest[-1] <= max(jobs["worker_count"].to_pylist())


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
        ('name = "commuting"', 'name = "commuting"\nstructural_zeros = "listed"', "leave it out: what has no row"),
        ('name = "commuting"', 'name = "commuting"\nnonnegative = true', "leave it out: no listed value is below 0"),
        ('"sparse-laplace", epsilon = 2.0', '"sparse-laplace", epsilon = 0.06', "epsilon ≥ 0.0602, at alpha = 0.1"),
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


@pytest.mark.parametrize("establishments", ["true", "false"])
def test_very_many_workplace_cells_are_refused_where_each_would_have_a_row(edited: Edited, establishments: str) -> None:
    by = f'by = ["sex", "place", "industry"]\nestablishments = {establishments}'
    release = load(edited('by = ["residence", "place"]', by))
    (commuting,) = (table for table in release.tables if table.name == "commuting")
    many = Codelist.of([f"{code}" for code in range(isqrt(MOST_BLOCKS) + 1)])
    codes = {**_declared_codes(release), "place": many, "industry": many}
    if establishments == "true":
        assert plan_table(release, commuting, codes).cells >= 2 * MOST_BLOCKS
    else:
        with pytest.raises(ReleaseError, match="each has a row"):
            plan_table(release, commuting, codes)
