"""The full cross of worker attributes is published end to end: 768 worker cells in every workplace cell."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sfumato.bundle.rows import all_rows
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import generate

WORKERS = ("sex", "age", "race", "ethnicity", "education")
RELEASE = """
[[table]]
name = "cross"
count = "jobs"
by = {by}
structural_zeros = "implied"
protect = {{ method = "vector-pareto", epsilon = 2 }}
"""


def true_counts(folder: Path, by: tuple[str, ...]) -> pa.Table:
    """The jobs of every combination that has some, counted by DuckDB alone."""
    data = {name: f"'{folder / name}.parquet'" for name in ("jobs", "workplaces", "workers")}
    return duckdb.sql(
        f"SELECT {', '.join(by)}, count(*) AS true FROM {data['jobs']} JOIN {data['workplaces']} USING (workplace) "
        f"JOIN {data['workers']} USING (worker) GROUP BY ALL"
    ).to_arrow_table()


@pytest.mark.slow
def test_jobs_by_industry_and_all_attributes_of_workers_are_published_with_the_errors_that_are_stated(
    tmp_path: Path,
) -> None:
    folder, by = generate(tmp_path / "economy", jobs=200_000, seed=1).folder, ("industry", *WORKERS)
    head, _ = (folder / "release.toml").read_text(encoding="utf-8").split("# Each table states")
    head = head.replace("alpha = 0.1, epsilon = 4.0", "alpha = 0.001, epsilon = 2")
    path = folder / "cross.toml"
    path.write_text(head + RELEASE.format(by=json.dumps(by)), encoding="utf-8")
    release = load(path)
    published = run(release)
    assert published.balance.remaining_epsilon == 0
    assert published.plan.guarantee.definition == "strong"

    (about,) = json.loads((published.bundle / "structure.json").read_text(encoding="utf-8"))["tables"]
    rows = all_rows(published.bundle, about)
    named = zip(rows.column_names, rows.columns, strict=True)
    rows = pa.table({name: c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for name, c in named})
    assert len(rows) == 20 * 768
    found = rows.join(true_counts(folder, by), keys=list(by))
    true = pc.fill_null(found["true"], 0).to_numpy()
    assert true.sum() == 200_000
    value, low, high = (found[name].to_numpy() for name in ("value", "low", "high"))
    covered = (low <= true) & ~(high < true)
    # Cells of one industry share a draw of their scale; an interval misses one time in ten on average, and rarely more.
    assert covered.mean() > 0.85
    assert np.abs(value - true).mean() < 1.2 * found["error"].to_numpy().mean()
    assert assess(release).report.exists()
    assert run(release).charged == ()
