"""The gate of a nation: errors of one sign are refused, and so is a floor that lost a job."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from bench.jobs.floor import floor
from bench.nation.measure import check_release
from bench.nation.releases import RELEASES, Nation
from bench.shared.gate import WrongResultError
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import generate
from tests.running.same_draws import same_draws

JOBS = 30_000
NAME = "jobs_by_workplace"
Numbers = NDArray[np.int64]


@pytest.fixture
def nation(tmp_path: Path) -> Nation:
    """A release of one table, and what the floor counted."""
    generate(tmp_path, jobs=JOBS)
    nation = Nation(folder=tmp_path)
    nation.write()
    pq.write_table(floor(tmp_path, RELEASES["workplace"][NAME]), tmp_path / f"{NAME}.true.parquet")
    with same_draws():
        run(load(nation.file("workplace")))
    return nation


def rewritten(file: Path, column: str, change: Callable[[Numbers], Numbers]) -> None:
    table = pq.read_table(file)
    values = pa.array(change(table[column].to_numpy()))
    pq.write_table(table.set_column(table.column_names.index(column), column, values), file)


def with_values(nation: Nation, change: Callable[[Numbers], Numbers]) -> None:
    bundle = load(nation.file("workplace")).bundle
    file = bundle / "tables" / f"{NAME}.parquet"
    rewritten(file, "value", change)
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    content = file.read_bytes()
    manifest["files"][f"tables/{NAME}.parquet"] |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_right_release_passes(nation: Nation) -> None:
    observed, expected = check_release(nation, "workplace", jobs=JOBS)[NAME]
    assert observed == pytest.approx(expected, rel=0.5)


def test_errors_that_are_all_positive_are_refused(nation: Nation) -> None:
    by = ", ".join(RELEASES["workplace"][NAME])
    published = load(nation.file("workplace")).bundle / "tables" / f"{NAME}.parquet"
    with duckdb.connect() as connection:
        truth = connection.execute(
            f"select coalesce(count, 0) as count from read_parquet('{published}', file_row_number = true) as published "
            f"left join '{nation.folder / NAME}.true.parquet' using ({by}) order by published.file_row_number"
        ).fetchnumpy()["count"]
    with_values(nation, lambda values: truth + np.abs(values - truth))
    with pytest.raises(WrongResultError, match="signed errors"):
        check_release(nation, "workplace", jobs=JOBS)


def test_counts_that_are_twice_as_large_are_refused(nation: Nation) -> None:
    with_values(nation, lambda values: 2 * values)
    with pytest.raises(WrongResultError):
        check_release(nation, "workplace", jobs=JOBS)


def test_a_floor_that_does_not_count_every_job_is_refused(nation: Nation) -> None:
    def one_less(counts: Numbers) -> Numbers:
        return np.concatenate([counts[:1] - 1, counts[1:]])

    rewritten(nation.folder / f"{NAME}.true.parquet", "count", one_less)
    with pytest.raises(WrongResultError, match=f"{JOBS - 1:,} jobs"):
        check_release(nation, "workplace", jobs=JOBS)
