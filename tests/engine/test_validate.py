"""Bad data get a clear error before anything is charged; confidential values are never shown."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engine import faults
from sfumato.engine.connect import connect
from sfumato.engine.validate import check_columns, read_public_codes, validate
from sfumato.errors import DataError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from tests.conftest import tiny_frame, write
from tests.engine.test_tabulate import joined_frame
from tests.tiny import TINY


def check(frame: Frame) -> None:
    with connect(frame) as tables:
        check_columns(frame, tables)
        validate(frame, tables, read_public_codes(frame, tables))


def spoilt(table: str, column: str, row: int, value: Any) -> dict[str, list[Any]]:
    columns = {name: list(values) for name, values in TINY[table].items()}
    columns[column][row] = value
    return columns


def test_good_data_pass(tiny: Path, engine: str) -> None:
    check(tiny_frame(tiny, engine=engine))


BAD = {
    "duplicate workplace": ("workplaces", "workplace", 3, 102, "1 rows that repeat the key"),
    "duplicate worker": ("workers", "worker", 6, 1, "1 rows that repeat the key"),
    "workplace without key": ("workplaces", "workplace", 3, None, "1 rows without one"),
    "job without workplace": ("jobs", "workplace", 0, 999, "1 jobs whose 'workplace' is not in workplaces.parquet"),
    "job without worker": ("jobs", "worker", 6, 99, "1 jobs whose 'worker' is not in workers.parquet"),
    "job with empty workplace": ("jobs", "workplace", 2, None, "1 rows without one"),
    "worker twice at a workplace": ("jobs", "worker", 1, 1, "1 rows that repeat the worker and workplace"),
    "null in a public dimension": ("workplaces", "place", 0, None, "1 rows without one"),
    "null in a confidential dimension": ("workers", "sex", 0, None, "1 rows without one"),
    "unknown public code": ("workplaces", "place", 0, "Cburg", "1 rows with 1 other values: 'Cburg'"),
    "negative measure": ("jobs", "earnings", 0, -5, "1 below 0"),
    "empty measure": ("jobs", "earnings", 0, None, "1 empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused_with_what_was_found(tiny: Path, engine: str, case: str) -> None:
    table, column, row, value, found = BAD[case]
    write(tiny / f"{table}.parquet", spoilt(table, column, row, value))
    with pytest.raises(DataError) as error:
        check(tiny_frame(tiny, engine=engine))
    assert found in error.value.found
    assert column in error.value.where


def test_a_confidential_value_outside_its_codelist_is_counted_but_never_shown(tiny: Path, engine: str) -> None:
    write(tiny / "workers.parquet", spoilt("workers", "sex", 0, "secret-value"))
    with pytest.raises(DataError) as error:
        check(tiny_frame(tiny, engine=engine))
    assert error.value.found == "1 rows with 1 other values"
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_measure_that_is_not_finite_is_refused(tiny: Path, engine: str, value: float) -> None:
    rows = spoilt("jobs", "earnings", 0, value)
    write(tiny / "jobs.parquet", rows | {"earnings": [float(v) for v in rows["earnings"]]})
    with pytest.raises(DataError, match="1 not finite"):
        check(tiny_frame(tiny, engine=engine))


def test_decimals_must_be_whole_too(tiny: Path, engine: str) -> None:
    cents = pa.array([Decimal(n) / 100 for n in (150, 100, 200, 300, 400, 500, 600, 700)], pa.decimal128(10, 2))
    write(tiny / "jobs.parquet", TINY["jobs"] | {"earnings": cents})
    with pytest.raises(DataError, match="1 not whole"):
        check(tiny_frame(tiny, engine=engine))


def test_more_values_than_are_fetched_are_still_all_checked(
    tiny: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "_MOST_VALUES", 1)
    check(tiny_frame(tiny, engine=engine))
    write(tiny / "workers.parquet", TINY["workers"] | {"age": ["1", "2", "3", "1", "2", "9", None]})
    with pytest.raises(DataError, match="1 rows without one"):
        check(tiny_frame(tiny, engine=engine))
    write(tiny / "workers.parquet", TINY["workers"] | {"age": ["1", "2", "3", "1", "2", "9", "9"]})
    with pytest.raises(DataError, match="2 rows with 1 other values"):
        check(tiny_frame(tiny, engine=engine))
    bare = {name: described for name, described in tiny_frame(tiny).attributes.items() if name != "place"}
    with pytest.raises(DataError, match="at most 1 codes where they are read off the data"):
        check(tiny_frame(tiny, engine=engine, attributes=bare))


def test_names_that_engines_do_not_tell_apart_are_refused(tiny: Path) -> None:
    described = {name: {"codes": ["1", "2"]} for name in ("place", "industry", "age", "Age")}
    with pytest.raises(ValueError, match="'age' and 'Age' differ in case only"):
        tiny_frame(tiny, attributes=described)
    with pytest.raises(ValueError, match="'Worker' and 'worker' differ in case only"):
        tiny_frame(tiny, jobs={"path": "jobs.parquet", "worker": "Worker", "workplace": "worker"})
    with pytest.raises(ValueError, match="control characters"):
        Codelist.of(["A", "B\x00"])


def test_a_measure_must_be_whole_and_below_its_maximum(tiny: Path) -> None:
    write(tiny / "jobs.parquet", TINY["jobs"] | {"earnings": [0.5, 1, 2, 3, 4, 5, 6, 7]})
    with pytest.raises(DataError, match="1 not whole"):
        check(tiny_frame(tiny))
    write(tiny / "jobs.parquet", TINY["jobs"])
    with pytest.raises(DataError, match="2 above 60"):
        check(tiny_frame(tiny, measures={"earnings": {"maximum": 60}}))


@pytest.mark.parametrize("table", ["jobs", "workers", "workplaces"])
def test_text_keys_are_checked_as_well_as_numbers(tiny: Path, engine: str, table: str) -> None:
    as_text = {
        name: {c: [str(v) for v in vs] if c in ("worker", "workplace") else vs for c, vs in columns.items()}
        for name, columns in TINY.items()
    }
    for name, columns in as_text.items():
        write(tiny / f"{name}.parquet", columns)
    check(tiny_frame(tiny, engine=engine))
    key = "workplace" if table == "workplaces" else "worker"
    broken = {c: list(vs) for c, vs in as_text[table].items()}
    broken[key][0] = broken[key][1] if table != "jobs" else "nobody"
    write(tiny / f"{table}.parquet", broken)
    with pytest.raises(DataError, match=r"1 rows that repeat|1 jobs whose"):
        check(tiny_frame(tiny, engine=engine))


def test_sparse_integer_keys_are_checked_as_well_as_dense_ones(tiny: Path) -> None:
    far = {1: 1, 2: 10**15, 3: -(10**14), 4: 4, 5: 5, 6: 6, 7: 7}
    write(tiny / "workers.parquet", TINY["workers"] | {"worker": [far[w] for w in TINY["workers"]["worker"]]})
    write(tiny / "jobs.parquet", TINY["jobs"] | {"worker": [far[w] for w in TINY["jobs"]["worker"]]})
    check(tiny_frame(tiny))
    twice = [far[w] for w in [2, 2, *TINY["jobs"]["worker"][2:]]]
    write(tiny / "jobs.parquet", TINY["jobs"] | {"worker": twice})
    with pytest.raises(DataError, match="1 rows that repeat the worker"):
        check(tiny_frame(tiny))


def test_a_missing_file_names_the_path_and_how_it_is_read(tiny: Path) -> None:
    (tiny / "workers.parquet").unlink()
    with pytest.raises(DataError, match=r"nothing at .*workers\.parquet(.|\n)*relative to the release file"):
        check(tiny_frame(tiny))


def test_a_file_that_is_not_parquet_is_refused(tiny: Path, engine: str) -> None:
    (tiny / "jobs.parquet").write_text("worker,workplace\n1,100\n")
    with pytest.raises(DataError, match=r"expected: a readable Parquet file"):
        check(tiny_frame(tiny, engine=engine))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"jobs": {"path": "jobs.parquet", "worker": "worker", "workplace": "plant"}}, "a column 'plant'"),
        ({"workers": {"path": "workers.parquet", "key": "person"}}, "a column 'person'"),
        ({"measures": {"salary": {}}}, "a column 'salary'"),
        ({"public": ["place", "industry", "sex"]}, "a column 'sex' in workplaces"),
        (
            {"public": ["place"], "attributes": {"industry": {"codes": ["11"]}}},
            "a column 'industry' in workers or jobs",
        ),
    ],
)
def test_a_missing_column_is_named_with_those_there_are(tiny: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(DataError, match="found:    the columns ") as error:
        check(tiny_frame(tiny, **changes))
    assert error.value.expected == expected


def test_columns_of_an_unsuitable_type_are_refused(tiny: Path) -> None:
    write(tiny / "workers.parquet", TINY["workers"] | {"age": [1.5] * 7})
    with pytest.raises(DataError, match="a column of type double"):
        check(tiny_frame(tiny))
    write(tiny / "workers.parquet", TINY["workers"] | {"worker": [float(w) for w in TINY["workers"]["worker"]]})
    with pytest.raises(DataError, match="the same kind of key"):
        check(tiny_frame(tiny))


@pytest.mark.parametrize("key", ["workplace", "worker"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(25, 2), pa.bool_()])
def test_keys_of_a_joined_table_are_whole_numbers_or_text(tmp_path: Path, key: str, kind: pa.DataType) -> None:
    # Permanent factors are made of the text of a key, and 17.0 is another one than 17.
    frame = joined_frame(tmp_path)
    check(frame)
    jobs = pq.read_table(tmp_path / "joined.parquet")
    at = jobs.schema.get_field_index(key)
    pq.write_table(jobs.set_column(at, key, jobs[key].cast(kind)), tmp_path / "joined.parquet")
    with pytest.raises(DataError, match="whole numbers or text, which name"):
        check(frame)


def test_whole_numbers_link_to_their_usual_texts_and_to_no_others(tiny: Path) -> None:
    for table, key in (("workers", "worker"), ("jobs", "workplace")):
        write(tiny / f"{table}.parquet", TINY[table] | {key: [str(one) for one in TINY[table][key]]})
        check(tiny_frame(tiny))
    write(tiny / "workers.parquet", TINY["workers"] | {"worker": [f"0{one}" for one in TINY["workers"]["worker"]]})
    with pytest.raises(DataError, match="8 jobs whose 'worker' is not in"):
        check(tiny_frame(tiny))


def test_codes_of_a_public_attribute_are_read_off_the_workplaces_when_not_given(tiny: Path) -> None:
    frame = tiny_frame(tiny, public=["place", "industry"], attributes={}, measures={})
    with connect(frame) as tables:
        assert read_public_codes(frame, tables)["industry"].codes == ("11", "62")


def test_a_joined_table_needs_one_value_of_a_public_attribute_per_workplace(tmp_path: Path, engine: str) -> None:
    frame = joined_frame(tmp_path, engine=engine)
    check(frame)
    rows = TINY["jobs"] | {
        "place": ["A", "B", "A", "A", "A", "B", "B", "B"],
        "industry": [11, 11, 11, 62, 62, 62, 62, 62],
        "sex": ["F"] * 8,
        "age": [1] * 8,
    }
    write(tmp_path / "joined.parquet", rows)
    with pytest.raises(DataError, match="1 workplaces with several values"):
        check(frame)


def test_an_empty_table_of_jobs_is_no_error(tiny: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    empty = pq.read_table(tiny / "jobs.parquet").slice(0, 0)
    pq.write_table(pa.Table.from_batches([], schema=empty.schema), tiny / "jobs.parquet")
    check(tiny_frame(tiny))


def test_a_text_without_a_heading_says_so_and_quotes_no_record(tiny: Path) -> None:
    (tiny / "jobs.csv").write_text("SECRET,100\nOTHER,100\n")
    with pytest.raises(DataError, match="a heading with names of columns") as refused:
        check(tiny_frame(tiny, jobs={"path": "jobs.csv", "worker": "worker"}))
    assert "SECRET" not in str(refused.value)
