from pathlib import Path

import duckdb
import pytest

from sfumato_lab import economy
from sfumato_lab.economy import Economy

JOBS = 300_007  # not a multiple of the block of 25 rows: the last block is cut short


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Economy:
    """An economy of 300 thousand jobs, generated once."""
    return economy.generate(tmp_path_factory.mktemp("economy"), jobs=JOBS, seed=1)


@pytest.fixture(scope="session")
def query(small: Economy):
    """Ask SQL questions of the small economy's tables: jobs, workers, workplaces."""
    connection = duckdb.connect()
    for path in Path(small.folder).glob("*.parquet"):
        connection.execute(f"create view {path.stem} as select * from read_parquet('{path}')")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()
