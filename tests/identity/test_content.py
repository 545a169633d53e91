"""Data are known by what is in them: files that were saved in another way are the same, others are not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.content import Content
from sfumato.engine.content import ContentReader
from sfumato.engine.data_files import data_files
from sfumato.engine.memory import Memory
from sfumato.frame.data import Data
from sfumato.frame.records import Microdata
from tests.conftest import tiny_frame, write
from tests.tiny import TINY

ASKED = (("place", "sex"), ("industry", "age"))


def content(data: Data, memory: Path | None = None) -> Content:
    """What data are known by, read off their files."""
    reader = ContentReader(data, data_files(data), Memory(memory or data.folder / "no memory.json"))
    return reader.read(ASKED)


def _split(table: pa.Table, path: Path) -> None:
    path.unlink()
    path.mkdir()
    for at in range(0, len(table), 2):
        pq.write_table(table.slice(at, 2), path / f"{at}.parquet")


def _as(table: pa.Table, path: Path, before: pa.DataType, after: pa.DataType) -> None:
    fields = [field.with_type(after) if field.type == before else field for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), path)


SAVED: dict[str, Callable[[pa.Table, Path], object]] = {
    "compression": lambda table, path: pq.write_table(table, path, compression="gzip"),
    "row groups": lambda table, path: pq.write_table(table, path, row_group_size=2),
    "no dictionary": lambda table, path: pq.write_table(table, path, use_dictionary=False, data_page_version="2.0"),
    "metadata": lambda table, path: pq.write_table(table.replace_schema_metadata({"by": "the office"}), path),
    "order of rows": lambda table, path: pq.write_table(table.take(list(range(len(table)))[::-1]), path),
    "order of columns": lambda table, path: pq.write_table(table.select(table.column_names[::-1]), path),
    "a column more": lambda table, path: pq.write_table(table.append_column("note", [["x"] * len(table)]), path),
    "several files": _split,
    "categories": lambda table, path: _as(table, path, pa.string(), pa.dictionary(pa.int32(), pa.string())),
    "large text": lambda table, path: _as(table, path, pa.string(), pa.large_string()),
    "smaller integers": lambda table, path: _as(table, path, pa.int64(), pa.int16()),
    "floating-point numbers": lambda table, path: _as(table, path, pa.int64(), pa.float64()),
    "decimals": lambda table, path: _as(table, path, pa.int64(), pa.decimal128(21, 1)),
    "pandas": lambda table, path: table.to_pandas().to_parquet(path),
    "DuckDB": lambda table, path: duckdb.from_arrow(table).write_parquet(str(path)),
}


@pytest.mark.parametrize("way", SAVED)
def test_data_that_were_saved_in_another_way_are_the_same(tiny: Path, way: str) -> None:
    before = content(tiny_frame(tiny))
    paths = [tiny / f"{name}.parquet" for name in TINY]
    bytes_before = [path.read_bytes() for path in paths]
    for path in paths:
        SAVED[way](pq.read_table(path), path)
    assert [None if path.is_dir() else path.read_bytes() for path in paths] != bytes_before
    after = content(tiny_frame(tiny))
    assert after == before
    assert after.digest == before.digest


def test_the_content_of_the_tiny_data_is_what_the_first_version_found(tiny: Path) -> None:
    assert content(tiny_frame(tiny)).digest == "8a2b5cc7f5c001fced46997b706f565029ccbcc7292d60be472501921def9f5a"


@pytest.mark.parametrize(
    ("table", "column", "values", "words"),
    [
        ("workers", "sex", ["M", "F", "F", "M", "F", "F", "M"], ["workers: other values in sex"]),  # two swapped
        ("workers", "age", [1, 1, 2, 3, 3, 2, 3], ["workers: other values in age"]),
        ("workplaces", "place", ["A", "A", "B", "B"], ["workplaces: other values in place"]),
        (
            "jobs",
            "workplace",
            [100, 100, 101, 101, 101, 102, 102, 102],
            ["jobs: rows were added, removed or have other keys"],
        ),
    ],
)
def test_a_value_that_changes_or_moves_is_noticed_and_named(
    tiny: Path, table: str, column: str, values: list[Any], words: list[str]
) -> None:
    before = content(tiny_frame(tiny))
    write(tiny / f"{table}.parquet", TINY[table] | {column: values})
    after = content(tiny_frame(tiny))
    assert after.digest != before.digest
    assert not after.same_as(before)
    assert after.changed_since(before) == words


def test_a_row_less_and_a_row_twice_are_noticed(tiny: Path) -> None:
    before, rows = content(tiny_frame(tiny)), pq.read_table(tiny / "jobs.parquet")
    for changed in (rows.slice(1), pa.concat_tables([rows, rows.slice(0, 1)])):
        pq.write_table(changed, tiny / "jobs.parquet")
        assert content(tiny_frame(tiny)).tables["jobs"].keys != before.tables["jobs"].keys


def test_what_no_question_looks_at_plays_no_part(tiny: Path) -> None:
    before = content(tiny_frame(tiny))
    write(tiny / "jobs.parquet", TINY["jobs"] | {"earnings": [0] * 8})
    assert content(tiny_frame(tiny)) == before


def joined(folder: Path, sex: list[str], age: list[str]) -> Data:
    """One table of jobs without workers, so that nothing names a row."""
    write(folder / "joined.parquet", {"workplace": [1, 1, 2, 2], "place": ["A", "A", "B", "B"], "sex": sex, "age": age})
    return tiny_frame(
        folder,
        jobs={"path": "joined.parquet", "workplace": "workplace"},
        workplaces=None,
        workers=None,
        public=["place"],
        attributes={"place": {"codes": ["A", "B"]}, "sex": {"codes": ["F", "M"]}, "age": {"codes": ["1", "2"]}},
        measures={},
    )


def test_where_no_key_names_a_row_values_that_share_one_are_known_together(tmp_path: Path) -> None:
    asked = [["sex", "age"], ["sex"]]

    def found(sex: list[str], age: list[str]) -> Content:
        data = joined(tmp_path, sex, age)
        return ContentReader(data, data_files(data), Memory(tmp_path / "none.json")).read(asked)

    one, other = found(["F", "M", "F", "M"], ["1", "2", "1", "2"]), found(["M", "F", "F", "M"], ["1", "2", "1", "2"])
    both, alone = {"jobs": ("age", "sex")}, {"jobs": ("sex",)}
    assert one.part(both) != other.part(both)
    assert one.part(alone) == other.part(alone)
    assert found(["M", "F", "M", "F"], ["2", "1", "2", "1"]) == one  # the same rows in another order


def records(folder: Path, **changes: list[Any]) -> Microdata:
    columns = {"unit": [1, 2, 3], "weight": [1.5, 2.0, 0.25], "rw_1": [1.0, 2.0, 3.0], "place": ["A", "B", "B"]}
    write(folder / "records.parquet", columns | {"pay": [10, 20, 30]} | changes)
    return Microdata.model_validate(
        {
            "records": {
                "path": "records.parquet",
                "unit": "unit",
                "weight": "weight",
                "replicates": {"columns": "rw_*", "rule": "jackknife"},
            },
            "attributes": {"place": {"codes": ["A", "B"]}},
            "measures": {"pay": {}},
            "folder": folder,
        }
    )


@pytest.mark.parametrize("column", ["weight", "rw_1", "pay", "place"])
def test_of_records_every_column_that_is_described_counts(tmp_path: Path, column: str) -> None:
    before = content(records(tmp_path))
    values = pq.read_table(tmp_path / "records.parquet")[column].to_pylist()
    after = content(records(tmp_path, **{column: values[1:] + values[:1]}))
    assert after.tables["records"].differing(before.tables["records"]) == [column]


def test_two_surveys_whose_units_are_numbered_alike_are_not_the_same(tmp_path: Path) -> None:
    one, other = content(records(tmp_path)), content(records(tmp_path, pay=[5, 6, 7]))
    assert one.tables["records"].keys == other.tables["records"].keys
    assert not one.same_as(other)


def test_keys_are_the_same_numbers_in_every_type_also_beside_empty_ones(tmp_path: Path) -> None:
    units: list[Any] = [pa.array([1, None, 3], kind) for kind in (pa.int64(), pa.float64(), pa.decimal128(9, 2))]
    found = [content(records(tmp_path, unit=unit)) for unit in units]
    assert found[0] == found[1] == found[2]


def test_records_are_the_same_under_another_unit_of_the_same_file_and_no_other(tmp_path: Path) -> None:
    def by(unit: str, **changes: list[Any]) -> Content:
        described = records(tmp_path, number=[7, 8, 9], **changes)
        data = described.model_copy(update={"records": described.records.model_copy(update={"unit": unit})})
        return content(data)

    assert by("number").same_as(by("unit"))
    assert not by("number").same_as(by("unit", pay=[5, 6, 7]))


def test_content_that_was_noted_is_read_as_it_was(tiny: Path) -> None:
    found = content(tiny_frame(tiny))
    again, more = Content.read(found.text(names=["a"]))
    assert (again, more) == (found, {"names": ["a"]})
    assert again.text() == found.text()


def test_workers_play_no_part_where_nothing_of_theirs_is_asked(tiny: Path) -> None:
    data = tiny_frame(tiny)
    reader = ContentReader(data, data_files(data), Memory(tiny / "none.json"))
    assert reader.read([["place"]]).tables.keys() == {"jobs", "workplaces"}
    assert reader.read([["sex"]]).tables.keys() == {"jobs", "workplaces", "workers"}


def test_measures_are_the_same_numbers_in_every_type(tmp_path: Path) -> None:
    whole, float32 = content(records(tmp_path)), pa.array([10, 20, 30], pa.float32())
    assert content(records(tmp_path, pay=[10.0, 20.0, 30.0])) == whole
    assert content(records(tmp_path, pay=float32)) == whole


def test_an_unchanged_file_is_not_read_again_and_a_written_one_is(tiny: Path) -> None:
    data, memory = tiny_frame(tiny), tiny / "memory.json"
    right = content(data)
    remembered = Memory(memory)
    ContentReader(data, data_files(data), remembered).read(ASKED)
    remembered.keep()
    known = json.loads(memory.read_text(encoding="utf-8"))
    for sums in known["sums"].values():
        sums[-1]["keys"][0] += 1  # whoever reads the file again finds other sums
    memory.write_text(json.dumps(known), encoding="utf-8")
    assert content(data, memory) != right
    for name in TINY:
        (tiny / f"{name}.parquet").touch()
    assert content(data, memory) == right


def test_a_column_that_is_asked_for_later_is_added_to_what_is_known(tiny: Path) -> None:
    data, memory = tiny_frame(tiny), Memory(tiny / "memory.json")
    first = ContentReader(data, data_files(data), memory).read([["sex"]])
    both = ContentReader(data, data_files(data), memory).read([["sex"], ["age"]])
    assert set(both.tables["workers"].columns) == {"sex", "age"}
    assert both.same_as(first)
    assert both.tables["workers"].columns["sex"] == first.tables["workers"].columns["sex"]
