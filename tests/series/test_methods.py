"""Every method in a series: keys that last over periods, monthly surveys, cubes, sparse tables and tables in parts."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from sfumato.bundle.read import open_cube, select_rows
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato_lab.economy.jobs.generate import generate
from tests.cli.call import call
from tests.conftest import same_key
from tests.series.office import QUARTERS, RELEASE, make_office
from tests.statistics.cube import survey

pytestmark = pytest.mark.slow

INFUSED = """
[release]
title = "Jobs, {period}"
key = "sfumato.key"

[series]
first = "2026-Q1"

[data]
jobs = { path = "jobs_{period}.parquet", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
public = ["place"]

[[table]]
name = "jobs_by_place"
count = "jobs"
by = ["place"]
protect = { method = "noise-infusion" }
"""


def test_an_establishment_has_the_same_factor_in_every_period(tmp_path: Path) -> None:
    workplaces = [f"w{number}" for number in range(20)]
    columns = {"workplace": workplaces, "place": workplaces}
    pq.write_table(pa.table(columns), tmp_path / "workplaces.parquet")
    sizes = {"2026-Q1": 400, "2026-Q2": 800, "2026-Q3": 1200}
    for quarter, size in sizes.items():
        pq.write_table(pa.table({"workplace": np.repeat(workplaces, size)}), tmp_path / f"jobs_{quarter}.parquet")
    same_key(tmp_path / "sfumato.key")
    (tmp_path / "release.toml").write_text(INFUSED, encoding="utf-8")
    factors = {}
    for quarter, size in sizes.items():
        run(load(tmp_path / "release.toml", quarter))
        rows = sfumato.open_bundle(tmp_path / "bundle").rows("jobs_by_place", where={"quarter": (quarter,)})
        factors[quarter] = np.array(rows["value"].to_pylist()) / size
        assert np.all(np.abs(factors[quarter] - 1) > 0.04), "every value is distorted"
    for quarter, size in sizes.items():
        assert np.all(np.abs(factors[quarter] - factors["2026-Q3"]) < 10 / size), "but for rounding"
    assert "no formal guarantee" in (tmp_path / "bundle/statement.md").read_text(encoding="utf-8")


TOTALS = """
[release]
title = "Exports, {period}"
population = "exporters"
key = "sfumato.key"

[series]
first = "2026-01"
column = "month"

[data]
records = { path = "exports.parquet", unit = "exporter" }

[data.attributes]
state = { codes = ["A", "B", "C", "D"] }

[data.measures]
paid = { unit = "dollars", minimum = 0 }

[[table]]
name = "exports"
total = "paid"
by = ["state"]
protect = { method = "METHOD" }
"""


@pytest.mark.parametrize("method", ["top-contributors", "perturbed-values"])
def test_a_business_is_moved_in_the_same_direction_every_month(tmp_path: Path, method: str) -> None:
    exporters, months = 12, ("2026-01", "2026-02", "2026-03")
    states = np.array(list("ABCD") * 3)
    sizes = np.where(np.arange(exporters) < 4, 1_000_000, 100)  # one business dominates each state
    columns = {
        "exporter": np.tile(np.arange(exporters), len(months)),
        "month": np.repeat([month.replace("-", "M") for month in months], exporters),
        "state": np.tile(states, len(months)),
        "paid": np.concatenate([sizes * (at + 1) for at in range(len(months))]),
    }
    pq.write_table(pa.table(columns), tmp_path / "exports.parquet")
    same_key(tmp_path / "sfumato.key")
    (tmp_path / "release.toml").write_text(TOTALS.replace("METHOD", method), encoding="utf-8")
    for month in months:
        run(load(tmp_path / "release.toml", month))
    rows = sfumato.open_bundle(tmp_path / "bundle").rows("exports")
    assert rows.column_names[:2] == ["month", "state"]
    found = {(row["month"], row["state"]): row["value"] for row in rows.to_pylist()}
    true = {state: int(sizes[states == state].sum()) for state in "ABCD"}
    moved = {
        state: [found[month, state] / (true[state] * (at + 1)) - 1 for at, month in enumerate(months)]
        for state in "ABCD"
    }
    for shares in moved.values():
        assert min(map(abs, shares)) > 0.01
        assert max(shares) - min(shares) < 0.005, "the same key, the same direction and size"
    table = open_catalogue([BundleSource(folder=tmp_path / "bundle")])["exports"]
    assert table.time is not None
    assert table.time.codes == months


def test_a_cube_is_published_for_every_period(tmp_path: Path) -> None:
    file = survey.release(
        tmp_path,
        ('period = "2025"\n', ""),
        ('path = "records.parquet"', 'path = "{period}.parquet"'),
        ("[data]\n", '[series]\nfirst = "2025"\n\n[data]\n'),
    )
    for seed, year in enumerate(("2025", "2026")):
        pq.write_table(pa.table(survey.records(seed=seed)), tmp_path / f"{year}.parquet")
        run(load(file, year))
    bundle = sfumato.open_bundle(tmp_path / "bundle")
    assert [part.name for part in bundle.contents] == ["people_2025", "people_2026"]
    answers = [open_cube(tmp_path / "bundle", f"people_{year}").totals(["region"]).to_arrow() for year in (2025, 2026)]
    assert not answers[0].equals(answers[1])
    served = open_catalogue([BundleSource(folder=tmp_path / "bundle")])
    assert [table.id for table in served] == ["people_2025", "people_2026"]
    assert bundle.structure["guarantee"]["epsilon"] == 2 * bundle.version("2025-v1").structure["guarantee"]["epsilon"]


def test_a_table_in_parts_is_read_over_all_periods(tmp_path: Path) -> None:
    text = RELEASE.replace('by = ["place"]\n', 'by = ["place"]\nparts = 2\n')
    file = make_office(tmp_path / "o", text)
    for quarter in QUARTERS[:2]:
        run(load(file, quarter))
    bundle = sfumato.open_bundle(file.parent / "bundle")
    rows = bundle.rows("jobs_by_place")
    assert set(rows["quarter"].to_pylist()) == set(QUARTERS[:2])


def test_the_report_of_a_quarter_takes_an_earlier_one_along(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    for quarter in QUARTERS[:2]:
        run(load(file, quarter))
    assessed = assess(load(file, "2026-Q2"), earlier=load(file, "2026-Q1"))
    assert assessed.report.parent.name == "2026-Q2"
    done = call("assess", file, "--period", "2026Q2", "--earlier", "2026Q1", "--json")
    assert any(attack["attack"] for table in json.loads(done.stdout)["tables"] for attack in table["attacks"])


def test_the_commands_tell_a_series_in_words_and_as_json(tmp_path: Path) -> None:
    file = make_office(tmp_path / "o")
    assert "2026-Q1" in call("run", file, refused=True).stderr
    first = json.loads(call("run", file, "--period", "2026q1", "--json").stdout)
    assert first["version"]["name"] == "2026-Q1-v1"
    assert "--period 2026-Q2" in call("run", file, refused=True).stderr
    again = json.loads(call("run", file, "--period", "2026Q1", "--json").stdout)
    assert again["unchanged"]
    assert again["charged"] == []
    call("run", file, "--period", "2026-Q2")
    chart = file.parent / "budget.svg"
    facts = json.loads(call("budget", "--ledger", file, "--chart", chart, "--json").stdout)
    assert facts["populations"][0]["over_time"] == [
        {"period": "2026-Q1", "epsilon": 2, "sum_epsilon": 2},
        {"period": "2026-Q2", "epsilon": 2, "sum_epsilon": 4},
    ]
    assert "2026-Q2" in chart.read_text(encoding="utf-8")
    shown = json.loads(call("query", file, "jobs_by_place", "--version", "2026-Q1-v1", "--json").stdout)
    assert {row["quarter"] for row in shown["rows"]} == {"2026-Q1"}
    assert "2026-Q1-v1" in call("query", file, "jobs_by_place", "--version", "2026-Q3-v1", refused=True).stderr


def test_what_a_sparse_table_does_not_list_is_told_period_by_period(tmp_path: Path) -> None:
    made = generate(tmp_path / "e", jobs=20_000, residence=True, seed=3)
    text = made.release.read_text(encoding="utf-8").replace('period = "2025"\n', "")
    text = text.replace("[data]\n", '[series]\nfirst = "2025"\n\n[data]\n').replace("jobs.parquet", "{period}.parquet")
    made.release.write_text(text, encoding="utf-8")
    jobs = pq.read_table(made.folder / "jobs.parquet")
    for year, begin in (("2025", 0), ("2026", 1_000)):
        pq.write_table(jobs.slice(begin, 19_000), made.folder / f"{year}.parquet")
        run(load(made.release, year))
    for year in ("2025", "2026"):
        alone = select_rows(made.folder / f"bundle/periods/{year}-v1", "commuting")
        within = select_rows(made.folder / "bundle", "commuting", where={"year": (year,)})
        assert within.rows.num_rows == alone.rows.num_rows
        assert within.notes == alone.notes
    table = open_catalogue([BundleSource(folder=made.folder / "bundle")])["commuting"]
    assert [dimension.role for dimension in table.dimensions] == ["time", "geo", "geo"]
