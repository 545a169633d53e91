"""Data for tests: a tiny frame typed by hand, and a small synthetic economy."""

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

from sfumato.economy.generate import Economy, generate
from sfumato.frame import Frame
from tests.tiny import TINY

settings.register_profile("sfumato", deadline=None)  # how long an example takes says nothing about whether it is right
settings.load_profile("sfumato")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder with three tables: four workplaces, one of them without jobs, and eight jobs."""
    for name, columns in TINY.items():
        write(tmp_path / f"{name}.parquet", columns)
    return tmp_path


@pytest.fixture(scope="session")
def economy(tmp_path_factory: pytest.TempPathFactory) -> Economy:
    """An economy of 10,000 jobs; tests that publish work on a copy."""
    return generate(tmp_path_factory.mktemp("economy"), jobs=10_000)


@pytest.fixture
def release_folder(economy: Economy, tmp_path: Path) -> Path:
    """A fresh copy of the economy with its release file and no ledger."""
    return Path(shutil.copytree(economy.folder, tmp_path / "economy"))


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn; Spark is left out where there is no Java, except under CI."""
    if request.param == "spark":
        need_java()
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.sql.shuffle.partitions=2 pyspark-shell"  # the data are tiny
    return str(request.param)


def need_java() -> None:
    """Leave a test out where there is no Java, except under CI."""
    if shutil.which("java") is None and os.environ.get("CI") != "true":
        pytest.skip("Spark needs Java 17 or 21: install a Java runtime to run this test")


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    """Write columns to a Parquet file."""
    pq.write_table(pa.table(columns), path)
    return path


def tiny_frame(folder: Path, **changes: Any) -> Frame:
    """The frame of the tiny data, with changes."""
    described: dict[str, Any] = {
        "jobs": {"path": "jobs.parquet", "worker": "worker", "workplace": "workplace"},
        "workplaces": {"path": "workplaces.parquet", "key": "workplace"},
        "workers": {"path": "workers.parquet", "key": "worker"},
        "public": ["place", "industry"],
        "attributes": {
            "place": {"codes": {"A": "Aville", "B": "Btown"}},
            "industry": {"codes": {"11": "Farms", "62": "Health"}},
            "sex": {"codes": {"F": "Female", "M": "Male"}},
            "age": {"codes": ["1", "2", "3"]},
        },
        "measures": {"earnings": {"unit": "dollars"}},
        "folder": folder,
    }
    return Frame(**(described | changes))
