"""Collections of every month: a unit keeps its key, so that growth between months is right where totals are moved."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.compare import compare_rows
from sfumato.errors import DataError, ReleaseError, SfumatoError
from sfumato.keys import new_key
from sfumato.live import open_guarded
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.serve.core.selection import Selection
from sfumato.serve.live.answer_table import live_tables
from tests.cli.call import call
from tests.conftest import same_key

MONTHS = ("2025-01", "2025-02", "2025-03")
RELEASE = """
[release]
title = "Exports"
period = "2025-Q1"
key = "sfumato.key"

[data]
records = { path = "exports.parquet", unit = "UNIT" PERIOD }

[data.attributes]
month = { codes = ["2025-01", "2025-02", "2025-03"] }
state = { codes = ["A", "B", "C", "D"] }

[data.measures]
paid = { unit = "dollars", minimum = 0 }

[[table]]
name = "exports"
total = "paid"
by = ["month", "state"]
totals = TOTALS
protect = { method = "top-contributors" }
"""


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    rng = np.random.default_rng(1)
    exporters = 60
    size = np.exp(rng.normal(12, 2, exporters))
    state = rng.choice(list("ABCD"), exporters)
    months = [(size * np.exp(rng.normal(0.02 * at, 0.1, exporters))).astype(np.int64) for at in range(len(MONTHS))]
    columns = {
        "row": np.arange(exporters * len(MONTHS)),
        "exporter": np.tile(np.arange(exporters), len(MONTHS)),
        "group": np.tile(np.arange(exporters) // 2, len(MONTHS)),
        "month": np.repeat(MONTHS, exporters),
        "state": np.tile(state, len(MONTHS)),
        "paid": np.concatenate(months),
        "weight": np.tile(np.where(np.arange(exporters) % 3 == 0, 2.5, 1.0), len(MONTHS)),
    }
    pq.write_table(pa.table(columns), folder / "exports.parquet")
    same_key(folder / "sfumato.key")
    return folder


def written(folder: Path, name: str, *, unit: str = "exporter", period: str = "month", totals: bool = False) -> Path:
    text = RELEASE.replace("UNIT", unit).replace("PERIOD", f', period = "{period}"' if period else "")
    text = text.replace("TOTALS", str(totals).lower())
    path = folder / f"{name}.toml"
    path.write_text(text.replace("[data]", f'ledger = "{name}.sqlite"\nbundle = "{name}"\n\n[data]', 1))
    return path


def growth(folder: Path, table: pa.Table) -> np.ndarray:
    """How far published growth from month to month is off, in percentage points, state by state."""
    frame = pq.read_table(folder / "exports.parquet").to_pandas()
    true = frame.pivot_table(index="state", columns="month", values="paid", aggfunc="sum").astype(float)
    found = table.to_pandas().pivot_table(index="state", columns="month", values="value", observed=True).astype(float)
    apart = found.pct_change(axis=1).iloc[:, 1:] - true.pct_change(axis=1).iloc[:, 1:]
    return 100 * np.abs(apart.to_numpy()).ravel()


def published(path: Path) -> pa.Table:
    return pq.read_table(run(load(path)).bundle / "tables/exports.parquet")


def test_growth_is_right_where_a_unit_keeps_its_key_and_far_off_where_every_row_is_a_unit(exports: Path) -> None:
    kept = growth(exports, published(written(exports, "kept")))
    anew = growth(exports, published(written(exports, "anew", unit="row", period="")))
    assert kept.mean() < 3
    assert anew.mean() > 4 * kept.mean()


def test_totals_are_made_of_states_in_every_month_and_never_over_months(exports: Path) -> None:
    table = published(written(exports, "margins", totals=True))
    assert sorted(set(table["month"].to_pylist())) == list(MONTHS)
    assert "total" in table["state"].to_pylist()
    alone = {(row["month"], row["state"]): row["value"] for row in published(written(exports, "alone")).to_pylist()}
    both = {(row["month"], row["state"]): row["value"] for row in table.to_pylist()}
    assert all(both[cell] == value for cell, value in alone.items())


def test_questions_asked_live_have_the_answers_of_the_release_in_every_month(exports: Path) -> None:
    path = written(exports, "live")
    expected = {(row["month"], row["state"]): row["value"] for row in published(path).to_pylist()}
    with open_guarded(load(path)) as live:
        found = live.ask(total="paid", by=["state"], where={"month": ["2025-02"]}).to_pylist()
        assert {row["state"]: row["value"] for row in found} == {
            state: value for (month, state), value in expected.items() if month == "2025-02"
        }
        with pytest.raises(ReleaseError, match="'month' in `by`"):
            live.ask(total="paid", by=["state"])


def test_a_table_that_adds_up_months_of_the_same_units_is_refused_before_anything_is_read(exports: Path) -> None:
    path = written(exports, "over")
    path.write_text(path.read_text().replace('by = ["month", "state"]', 'by = ["state"]'))
    with pytest.raises(ReleaseError, match="'month' in `by`"):
        run(load(path))
    assert not (exports / "over.sqlite").exists()


def test_two_records_of_a_unit_in_one_month_are_refused(exports: Path, tmp_path: Path) -> None:
    table = pq.read_table(exports / "exports.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), tmp_path / "exports.parquet")
    new_key(tmp_path / "sfumato.key")
    with pytest.raises(DataError, match="at most one record for each unit and period"):
        run(load(written(tmp_path, "twice")))


def test_weights_and_larger_units_go_together_with_months(exports: Path) -> None:
    path = written(exports, "weighted")
    text = path.read_text().replace('period = "month"', 'period = "month", levels = ["group"], weight = "weight"')
    path.write_text(text)
    table = published(path).to_pandas()
    frame = pq.read_table(exports / "exports.parquet").to_pandas()
    frame["weighted"] = frame["paid"] * frame["weight"]
    true = frame.groupby(["month", "state"])["weighted"].sum()
    for row in table.itertuples():
        assert abs(row.value / true[row.month, row.state] - 1) < 0.9


def test_the_live_server_offers_no_total_over_months_and_answers_in_each(exports: Path) -> None:
    with open_guarded(load(written(exports, "served"))) as live:
        total = next(table for table in live_tables(live) if table.id == "live_total_paid")
        month, state = total.dimensions
        assert (month.total, month.eliminable, state.total) == (None, False, "total")
        found = total.source.figures(Selection(places=((1,), (4,)), metrics=(0,)))
        alone = live.ask(total="paid", by=["month"]).to_pylist()
        assert found.columns[0].values.ravel().tolist() == [row["value"] for row in alone if row["month"] == "2025-02"]


def test_the_report_tells_how_far_growth_is_off_and_its_interval_holds(exports: Path) -> None:
    path = written(exports, "reported")
    run(load(path))
    (found,) = assess(load(path)).growth
    assert found.pairs == 8
    assert found.mean_error < 3
    assert found.expected_error == pytest.approx(found.mean_error, rel=1)
    assert found.half_width < found.readers_half_width / 4, "the same businesses move both months alike"
    assert found.readers_covered >= 0.8


@pytest.mark.slow
def test_intervals_of_growth_hold_over_keys_as_often_as_they_say(exports: Path, tmp_path: Path) -> None:
    held = []
    for key in range(100):
        folder = tmp_path / str(key)
        folder.mkdir()
        (folder / "exports.parquet").write_bytes((exports / "exports.parquet").read_bytes())
        same_key(folder / "sfumato.key", key)
        run(load(written(folder, "keyed")))
        held += [assess(load(folder / "keyed.toml")).growth[0].covered]
    # Pairs of one key are held together or not: the error of the mean is that of keys.
    assert np.mean(held) >= 0.9 - 3 * np.std(held) / np.sqrt(len(held))


def test_readers_compare_two_months_from_published_figures_alone(exports: Path) -> None:
    bundle = run(load(written(exports, "compared"))).bundle
    rows = {(row["month"], row["state"]): row for row in pq.read_table(bundle / "tables/exports.parquet").to_pylist()}
    found = compare_rows(bundle, "exports", "month", ("2025-01", "2025-03")).rows.to_pylist()
    assert [row["state"] for row in found] == list("ABCD")
    for row in found:
        before, after = rows["2025-01", row["state"]], rows["2025-03", row["state"]]
        assert row["change"] == after["value"] - before["value"]
        assert (row["change_low"], row["change_high"]) == (after["low"] - before["high"], after["high"] - before["low"])
        assert row["growth_low"] <= row["growth"] <= row["growth_high"]
    with pytest.raises(SfumatoError, match="two codes"):
        compare_rows(bundle, "exports", "month", ("2025-01", "2025-01"))
    with pytest.raises(SfumatoError, match="codes of its codelist"):
        compare_rows(bundle, "exports", "month", ("2025-01", "2025-09"))


def test_the_command_compares_two_months_and_refuses_what_is_no_pair(exports: Path) -> None:
    bundle = run(load(written(exports, "asked"))).bundle
    done = call("query", bundle, "exports", "--compare", "month=2025-01,2025-02", "--where", "state=A", "--json")
    told = json.loads(done.stdout)
    assert told["confidence"] == 0.8
    assert [row["state"] for row in told["rows"]] == ["A"]
    refused = call("query", bundle, "exports", "--compare", "month=2025-01", refused=True)
    assert "two of its codes" in refused.stderr
