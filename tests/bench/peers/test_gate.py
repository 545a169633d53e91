"""The gate of the peers: every cell once and in its place, and what is to be exact is exact."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from bench.peers.gate import check_exact, check_floor, values_of, withheld
from bench.shared.gate import WrongResultError


def test_what_is_to_be_exact_must_be_withheld_in_the_same_cells() -> None:
    true = np.array([5.0, np.nan, 7.0])
    check_exact(true, true)
    with pytest.raises(WrongResultError):
        check_exact(np.array([5.0, 6.0, 7.0]), true)


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return written(tmp_path / "truth.parquet", "(0, 'a', 3), (1, 'b', 0), (2, 'c', 8)", "cell, place, value")


def written(path: Path, rows: str, columns: str = "place, value") -> Path:
    duckdb.sql(f"copy (from (values {rows}) as cells({columns})) to '{path}'")
    return path


def test_values_come_in_the_order_of_the_true_cells(truth: Path, tmp_path: Path) -> None:
    result = written(tmp_path / "result.parquet", "('c', 8), ('a', 4), ('b', null), ('y', null), ('z', 0)")
    assert np.array_equal(values_of(result, truth, ["place"]), [4, np.nan, 8], equal_nan=True)
    assert withheld(result, truth, ["place"]) == 1


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("('a', 3), ('c', 8)", "1 cells are missing"),
        ("('a', 3), ('b', 1), ('c', 8), ('c', 8)", "twice"),
        ("('a', 3), ('b', 1), ('c', 8), ('z', 2)", "nothing is to be published"),
    ],
    ids=["a cell is missing", "a cell is there twice", "a cell too many"],
)
def test_a_table_with_other_cells_is_refused(rows: str, says: str, truth: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongResultError, match=says):
        values_of(written(tmp_path / "result.parquet", rows), truth, ["place"])


def test_the_floor_must_be_right_to_the_last_job_and_has_no_empty_cells(truth: Path, tmp_path: Path) -> None:
    check_floor(written(tmp_path / "right.parquet", "('c', 8), ('a', 3)"), truth, ["place"])
    for number, rows in enumerate(("('c', 8), ('a', 4)", "('c', 8)", "('c', 8), ('a', 3), ('b', 1)")):
        with pytest.raises(WrongResultError):
            check_floor(written(tmp_path / f"{number}.parquet", rows), truth, ["place"])
