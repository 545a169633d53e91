"""Several Parquet files are one table whose values are those of the files, or they are refused before any charge."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engine.connect import open_tables
from sfumato.engine.content import ContentReader
from sfumato.engine.data_files import files
from sfumato.engine.memory import Memory
from sfumato.errors import DataError
from sfumato.frame.records import Microdata
from sfumato.frame.series import OnlyPeriod
from tests.engine.test_data_files import in_bucket

DAY, HOUR = date(2026, 3, 31), datetime(2026, 3, 31, 12)
DATA: dict[str, pa.Array] = {
    "firm": pa.array([1, 2]),
    "place": pa.array(["01", "02"]),
    "quarter": pa.array(["2026-Q1", "2026-Q2"]),
    "pay": pa.array([5, 6]),
}


def microdata(folder: Path, *, path: str = "in", engine: str = "duckdb", only: OnlyPeriod | None = None) -> Microdata:
    """Records in a folder of files."""
    described = {"place": {"codes": ["01", "02"]}, "quarter": {"codes": ["2026-Q1", "2026-Q2"]}}
    return Microdata.model_validate(
        {
            "folder": folder,
            "engine": engine,
            "records": {"unit": "firm", "path": path},
            "attributes": described,
            "measures": {"pay": {}},
            "only": only,
        }
    )


def put(folder: Path, **columns: list[Any] | pa.Array) -> Path:
    """One more file of the table, in which some columns are others."""
    (folder / "in").mkdir(exist_ok=True)
    number = len(list((folder / "in").iterdir()))
    made = {"firm": pa.array([2 * number + 1, 2 * number + 2])}
    pq.write_table(pa.table({**DATA, **made, **columns}), folder / "in" / f"{number}.parquet")
    return folder


def read(data: Microdata) -> list[dict[str, Any]]:
    """The records of all files."""
    with open_tables(data) as (_, opened, _):
        found: list[dict[str, Any]] = opened["records"].fetch().sort_by("firm").to_pylist()
        return found


def content(data: Microdata, folder: Path) -> Any:
    """What the data are known by."""
    listed = {"records": files(data, data.records)}
    found = ContentReader(data, listed, Memory(folder / "memory.json")).read([["pay", "place", "quarter"]])
    return found.tables["records"].columns, found.tables["records"].keys


LOSSY = {
    "decimals after whole numbers": ("pay", pa.array([1, 1]), pa.array([1.49, 2.5])),
    "whole numbers after decimals": ("pay", pa.array([1.49, 2.5]), pa.array([1, 2**60 + 1])),
    "single and double precision": ("pay", pa.array([1.5, 2.5], pa.float32()), pa.array([1.1, 2.1])),
    "decimals of several scales": ("pay", pa.array([Decimal("1.1")] * 2), pa.array([Decimal("1.155")] * 2)),
    "amounts as texts": ("pay", pa.array([1, 2]), pa.array(["1", "2"])),
    "whole numbers of 64 bits, with a sign and without": ("pay", pa.array([1, 2]), pa.array([1, 2**63], pa.uint64())),
    "codes with zeros after whole numbers": ("place", pa.array([1, 2]), pa.array(["01", "2"])),
    "codes with and without zeros": ("place", pa.array(["01", "2"]), pa.array([1, 2])),
    "keys as texts and numbers": ("firm", pa.array([1, 2]), pa.array(["03", "4"])),
    "days and times": ("quarter", pa.array([DAY, DAY]), pa.array([HOUR, HOUR])),
    "codes that are true or false": ("place", pa.array(["1", "2"]), pa.array([True, False])),
}


@pytest.mark.parametrize("path", ["in", "s3://office/in"])
@pytest.mark.parametrize("case", LOSSY.values(), ids=list(LOSSY))
def test_a_column_of_types_that_are_not_one_is_refused_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, case: tuple[str, pa.Array, pa.Array]
) -> None:
    column, one, other = case
    put(put(tmp_path, **{column: one}), **{column: other})
    in_bucket(tmp_path, monkeypatch)
    with pytest.raises(DataError, match=f"column '{column}'") as refused:
        read(microdata(tmp_path, path=path))
    assert refused.value.found == f"{one.type} in 0.parquet and {other.type} in 1.parquet"
    with pytest.raises(DataError, match=f"column '{column}'"):
        read(microdata(tmp_path, path=path, only=OnlyPeriod(column="quarter", period="2026-Q1")))


EXACT = {
    "sizes of whole numbers": ("pay", pa.array([1, 2], pa.int16()), pa.array([2**40, 3])),
    "sizes the other way round": ("pay", pa.array([2**40, 3]), pa.array([1, 2], pa.int16())),
    "whole numbers without a sign": ("pay", pa.array([1, 2], pa.int32()), pa.array([2**32 - 1, 3], pa.uint32())),
    "decimals of one scale": ("pay", pa.array([Decimal("7.0"), Decimal("8.0")]), pa.array([Decimal("7000.0")] * 2)),
    "texts in a list": ("place", pa.array(["01", "02"]), pa.array(["01", "02"]).dictionary_encode()),
    "large texts": ("place", pa.array(["01", "02"], pa.large_string()), pa.array(["01", "02"])),
    "no value in the first file": ("place", pa.nulls(2), pa.array(["01", "02"])),
    "no value in another file": ("pay", pa.array([1, 2]), pa.nulls(2)),
    "no day in the first file": ("quarter", pa.nulls(2), pa.array([DAY, DAY])),
    "times of several precisions": (
        "quarter",
        pa.array([HOUR, HOUR], pa.timestamp("ms")),
        pa.array([HOUR, HOUR], pa.timestamp("us")),
    ),
}


@pytest.mark.parametrize("path", ["in", "s3://office/in"])
@pytest.mark.parametrize("case", EXACT.values(), ids=list(EXACT))
def test_types_that_are_one_keep_every_value_and_are_the_same_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, path: str, case: tuple[str, pa.Array, pa.Array]
) -> None:
    column, one, other = case
    if engine == "spark" and path != "in":
        pytest.skip("the bucket is one to Arrow alone")
    mixed, alike = tmp_path, tmp_path / "alike"
    alike.mkdir()
    put(put(mixed, **{column: one}), **{column: other})
    kind = next(kind for kind in (one.type, other.type) if kind != pa.null())
    kind = {"pay": kind if pa.types.is_decimal(kind) else pa.int64(), "place": pa.string()}.get(column, kind)
    kind = pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else kind
    put(put(alike, **{column: one.cast(kind)}), **{column: other.cast(kind)})
    in_bucket(tmp_path, monkeypatch)
    assert read(microdata(mixed, path=path, engine=engine)) == read(microdata(alike, engine=engine))
    assert content(microdata(mixed), mixed) == content(microdata(alike), alike)


def test_what_no_release_looks_at_may_be_anything(tmp_path: Path, engine: str) -> None:
    put(put(tmp_path, note=[1, 2], other=["a", "b"]), note=["x", "y"])
    assert [row["pay"] for row in read(microdata(tmp_path, engine=engine))] == [5, 6, 5, 6]


@pytest.mark.parametrize("path", ["in", "s3://office/in"])
def test_a_file_that_lacks_a_column_is_named_and_no_name_is_quoted_that_the_release_file_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    put(tmp_path)
    pq.write_table(pa.table({"firm": [3], "SECRET": ["01"], "quarter": ["2026-Q1"]}), tmp_path / "in" / "b.parquet")
    in_bucket(tmp_path, monkeypatch)
    with pytest.raises(DataError, match="other files of the table have: place, pay") as refused:
        read(microdata(tmp_path, path=path))
    assert refused.value.where.endswith("b.parquet")
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("path", ["in", "s3://office/in"])
def test_the_rows_of_a_period_are_found_whatever_the_order_of_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    put(tmp_path, pay=pa.array([5, 6], pa.int32()))
    turned = dict(reversed([*DATA.items()])) | {"firm": pa.array([3, 4]), "pay": pa.array([2**40, 8])}
    pq.write_table(pa.table(turned), tmp_path / "in" / "b.parquet")
    in_bucket(tmp_path, monkeypatch)
    only = OnlyPeriod(column="quarter", period="2026-Q1")
    found = read(microdata(tmp_path, path=path, only=only))
    assert [(row["firm"], row["pay"], row["quarter"]) for row in found] == [(1, 5, "2026-Q1"), (3, 2**40, "2026-Q1")]
