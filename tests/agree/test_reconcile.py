"""Reconciliation: tables that share margins agree afterwards, at no cost, and margins are nearer the truth."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize

from sfumato.agree.published import agreed_answers
from sfumato.agree.reconcile import Protected, largest_detail, reconcile, rounded, shared_margins
from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.noise.randomness import Seeded
from sfumato.plan import Plan
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.jobs.tabulate import tabulate
from sfumato_lab.economy.jobs.generate import generate

PLACE = Dimension(name="place", codes=("A", "B", "C"))
INDUSTRY = Dimension(name="industry", codes=("1", "2"))
SEX = Dimension(name="sex", codes=("F", "M"), public=False)


def table(dimensions: tuple[Dimension, ...], values: list[int], errors: list[float], **more: object) -> Protected:
    cells = Cells(dimensions=dimensions, positions=np.arange(len(values)), columns={"value": np.array(values)})
    return Protected(cells=cells, errors=np.array(errors), **more)


def three() -> dict[str, Protected]:
    return {
        "both": table((PLACE, INDUSTRY), [10, 3, -2, 7, 0, 5], [1, 2, 1, 3, 1, 1]),
        "place": table((PLACE,), [15, 3, 8], [1, 1, 2]),
        "industry": table((INDUSTRY,), [6, 18], [4, 1]),
    }


def test_values_are_the_nearest_ones_whose_margins_agree() -> None:
    tables = three()
    found = reconcile(tables)
    # Every consistent set of tables is given by its finest one: minimise over that by a general method.
    value = {name: t.cells["value"] for name, t in tables.items()}

    def loss(detail: np.ndarray) -> float:
        grid = detail.reshape(3, 2)
        made = {"both": detail, "place": grid.sum(axis=1), "industry": grid.sum(axis=0)}
        return sum(float((((made[n] - value[n]) / tables[n].errors) ** 2).sum()) for n in tables)

    best = minimize(loss, value["both"].astype(float), method="BFGS", options={"gtol": 1e-9}).x
    assert found["both"] == pytest.approx(best, abs=1e-4)
    assert found["both"].reshape(3, 2).sum(axis=1) == pytest.approx(found["place"])
    assert found["both"].reshape(3, 2).sum(axis=0) == pytest.approx(found["industry"])


def test_tables_that_only_cross_agree_in_the_margin_they_share() -> None:
    tables = {
        "a": table((PLACE, INDUSTRY), [10, 3, 2, 7, 0, 5], [1] * 6),
        "b": table((SEX, PLACE), [9, 1, 5, 9, 1, 5], [2] * 6),
    }
    (margin,) = shared_margins(tables)
    assert margin.dimensions == ("place",)
    found = reconcile(tables)
    assert found["a"].reshape(3, 2).sum(axis=1) == pytest.approx(found["b"].reshape(2, 3).sum(axis=0))


def test_tables_that_agree_already_stay_as_they_are_and_so_do_other_populations() -> None:
    tables = {
        "both": table((PLACE, INDUSTRY), [1, 2, 3, 4, 5, 6], [1] * 6),
        "place": table((PLACE,), [3, 7, 11], [1] * 3),
        "other": table((PLACE,), [0, 0, 50], [1] * 3, population="women"),
    }
    for name, values in reconcile(tables).items():
        assert values == pytest.approx(tables[name].cells["value"])


def test_whole_numbers_of_nested_tables_add_up_exactly() -> None:
    tables = three()
    whole = rounded(tables, reconcile(tables))
    assert np.array_equal(whole["both"].reshape(3, 2).sum(axis=1), whole["place"])
    assert np.array_equal(whole["both"].reshape(3, 2).sum(axis=0), whole["industry"])


def test_no_value_is_negative_where_that_is_asked_and_margins_still_agree() -> None:
    asked = {name: Protected(cells=t.cells, errors=t.errors, nonnegative=True) for name, t in three().items()}
    found = reconcile(asked)
    assert all(values.min() >= 0 for values in found.values())
    assert found["both"].reshape(3, 2).sum(axis=1) == pytest.approx(found["place"], abs=1e-6)


def test_a_cell_without_an_error_figure_stays_as_it_is() -> None:
    tables = three()
    tables["place"] = table((PLACE,), [15, 3, 8], [np.nan] * 3)
    assert reconcile(tables)["place"] == pytest.approx([15, 3, 8])


def test_cells_that_are_not_listed_are_zero_in_every_margin() -> None:
    cells = Cells(dimensions=(PLACE, INDUSTRY), positions=np.array([0, 5]), columns={"value": np.array([4, 8])})
    listed = Cells(dimensions=(PLACE,), positions=np.array([0, 2]), columns={"value": np.array([6, 8])})
    found = reconcile(
        {"both": Protected(cells=cells, errors=np.ones(2)), "place": Protected(cells=listed, errors=np.ones(2))}
    )
    assert found["both"] == pytest.approx([5, 8])
    assert found["place"] == pytest.approx([5, 8])


def test_the_largest_establishment_is_bounded_by_finer_tables_of_workplaces_only() -> None:
    tables = three()
    assert list(largest_detail(tables, "place")) == [10, 3, 5]
    assert list(largest_detail(tables, "both")) == [10, 3, 0, 7, 0, 5]
    tables["sex"] = table((PLACE, SEX), [1, 1, 1, 1, 1, 1], [1] * 6)
    assert list(largest_detail(tables, "place")) == [10, 3, 5]


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, dict[str, Cells]]:
    """The release of an economy with nested tables, and its true cells."""
    made = generate(tmp_path_factory.mktemp("nested") / "economy", jobs=300_000)
    text = made.release.read_text(encoding="utf-8").replace('by = ["industry", "place_size"]', 'by = ["industry"]')
    made.release.write_text(text.replace('period = "2025"', 'period = "2025"\nreconcile = true'), encoding="utf-8")
    release = load(made.release)
    plan = run(release).plan
    with connect(release.frame) as tables:
        return plan, tabulate(release.frame, tables, {t.table.name: t.question for t in plan.tables})


def test_margins_of_nested_tables_come_nearer_the_truth(nested: tuple[Plan, dict[str, Cells]]) -> None:
    plan, true = nested
    before, after = dict.fromkeys(true, 0.0), dict.fromkeys(true, 0.0)
    for trial in range(10):
        answers = {
            t.table.name: t.method.protect(true[t.table.name], Seeded(100 * trial + i))
            for i, t in enumerate(plan.tables)
        }
        agreed = agreed_answers(plan.tables, plan.reconciled, answers)
        for name, cells in true.items():
            before[name] += float(np.abs(answers[name]["value"] - cells["count"]).mean())
            after[name] += float(np.abs(agreed[name]["value"] - cells["count"]).mean())
    # The finest table has most of the budget, so its cells have little to learn from the margins.
    assert after["jobs_by_place_industry"] < 1.1 * before["jobs_by_place_industry"]
    assert after["jobs_by_place"] < 0.7 * before["jobs_by_place"]
    assert after["jobs_by_industry"] < 0.9 * before["jobs_by_industry"]


def test_published_tables_agree_and_stored_answers_stay_as_they_were_drawn(
    nested: tuple[Plan, dict[str, Cells]],
) -> None:
    release = nested[0].release
    published = run(release)
    assert published.charged == ()
    sums = pq.read_table(published.bundle / "tables/jobs_by_place_industry.parquet").group_by("place")
    fine = {row["place"]: row["value_sum"] for row in sums.aggregate([("value", "sum")]).to_pylist()}
    coarse = pq.read_table(published.bundle / "tables/jobs_by_place.parquet").to_pylist()
    assert all(fine[row["place"]] == row["value"] for row in coarse)
    statement = (published.bundle / "statement.md").read_text(encoding="utf-8")
    assert "## How the tables were made to agree" in statement
    assert "widened where they would contradict the new one" in statement
    for path in (published.bundle / "tables").glob("*.parquet"):
        shown = pq.read_table(path).to_pandas().query("establishments > 0")
        assert (shown.low <= shown.value.clip(lower=0)).all()
        assert (shown.value <= shown.high.fillna(np.inf)).all()
        assert (shown.low < shown.high.fillna(np.inf)).all()
        assert (shown.error >= -shown.value).all()
    stored = release.ledger.with_suffix(".store") / "answers"
    raw = {tuple(pq.read_table(path)["value"].to_pylist()) for path in stored.glob("*.parquet")}
    assert len(raw) == 3
    assert tuple(row["value"] for row in coarse) not in raw


def test_without_the_key_nothing_is_changed(release_folder: Path) -> None:
    published = run(load(release_folder / "release.toml"))
    answers = {t.table.name: Cells(dimensions=t.question.by, positions=np.arange(0)) for t in published.plan.tables}
    assert agreed_answers(published.plan.tables, published.plan.reconciled, answers) == answers
    assert "made to agree" not in (published.bundle / "statement.md").read_text(encoding="utf-8")
