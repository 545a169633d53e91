"""A codelist is shared by all tables of a release: each is served with the codes that it has."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.release import load
from sfumato.running import run
from tests.conftest import same_key
from tests.serve.running import serving

MONTHS = ["2024-01", "2025-01", "2025-02"]
RELEASE = """
[release]
title = "Turnover"
population = "firms"
period = "2025-02"
key = "sfumato.key"

[data]
public = ["state"]
records = { path = "firms.parquet", unit = "firm", period = "month" }

[data.attributes]
state = { label = "State", codes = ["A", "B"] }
month = { label = "Month", codes = ["2024-01", "2025-01", "2025-02"] }

[data.measures]
turnover = { label = "Turnover of firms", unit = "dollars", minimum = 0 }
"""
TABLES = {
    "turnover": 'total = "turnover"\ntotals = true',
    "firms": 'count = "records"',
    "growth": 'growth = { of = "turnover", since = ["previous", "year"] }\ntotals = true',
    "last": 'growth = { of = "turnover", since = ["previous"] }',
}


@pytest.mark.slow
def test_tables_with_and_without_totals_are_served_from_one_bundle(tmp_path: Path) -> None:
    firms = range(400)
    rows = [(firm, "AB"[firm % 2], month, 50 + firm) for firm in firms for month in MONTHS]
    names = ("firm", "state", "month", "turnover")
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), tmp_path / "firms.parquet")
    same_key(tmp_path / "sfumato.key")
    sections = [
        f'[[table]]\nname = "{name}"\n{asked}\nby = ["state", "month"]\nprotect = {{ method = "top-contributors" }}\n'
        for name, asked in TABLES.items()
    ]
    (tmp_path / "release.toml").write_text("\n".join([RELEASE, *sections]))
    bundle = run(load(tmp_path / "release.toml")).bundle
    with serving(bundle) as server:
        described = {name: server.get(f"/tables/{name}/metadata").json()["dimension"] for name in TABLES}
        counted = server.data("firms", state="*", month="*").json()
    listed = {name: list(found["state"]["category"]["index"]) for name, found in described.items()}
    assert listed == {
        "turnover": ["A", "B", "total"],
        "firms": ["A", "B"],
        "growth": ["A", "B", "total"],
        "last": ["A", "B"],
    }
    assert list(described["last"]["since"]["category"]["index"]) == ["previous"]
    heading = described["turnover"]["contents"]["category"]["label"]
    assert heading["turnover"] == "Turnover of firms, total", "the label of the measure"
    firms_of = pq.read_table(bundle / "tables/firms.parquet")["value"].to_pylist()
    width = len(counted["value"]) // len(firms_of)
    assert counted["value"][::width] == firms_of
    totals = pq.read_table(bundle / "tables/turnover.parquet")
    assert set(totals["status"].to_pylist()) == {""}, "without weights all error is perturbation, which is not marked"
    assert "mostly perturbation" not in (bundle / "statement.md").read_text(encoding="utf-8")
