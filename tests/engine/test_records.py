"""Bad records get a clear error before anything is done with them; no message shows a record."""

from pathlib import Path
from typing import Any

import pytest

from sfumato.engine.records import (
    check_record_columns,
    connect_records,
    read_record_codes,
    replicate_columns,
    validate_records,
)
from sfumato.errors import DataError
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata
from tests.engine.businesses import RECORDS, REPLICATES, SURVEY, Columns, by_hand, microdata

WITH_REPLICATES = {**SURVEY, "replicates": REPLICATES}


def check(data: Microdata) -> None:
    with connect_records(data) as tables:
        check_record_columns(data, tables)
        validate_records(data, tables, read_record_codes(data, tables))


def spoilt(column: str, row: int, value: Any) -> Columns:
    columns = by_hand()
    columns[column][row] = value
    return columns


@pytest.mark.parametrize("records", [RECORDS, SURVEY, WITH_REPLICATES])
def test_good_records_pass(tmp_path: Path, engine: str, records: dict[str, Any]) -> None:
    check(microdata(tmp_path, by_hand(), records=records, engine=engine))


BAD = {
    "unit twice": ("business", 1, 11, "1 rows that repeat the unit"),
    "no unit": ("business", 1, None, "1 rows without one"),
    "no larger unit": ("enterprise", 1, None, "1 rows without one"),
    "weight of nothing": ("weight", 0, 0.0, "1 not above 0"),
    "weight below a millionth": ("weight", 0, 0.0000004, "1 not above 0"),
    "negative weight": ("weight", 0, -1.0, "1 not above 0"),
    "no weight": ("weight", 0, None, "1 empty"),
    "infinite weight": ("weight", 0, float("inf"), "1 not finite"),
    "weight that is no number": ("weight", 0, float("nan"), "1 not finite"),
    "weights that are together too large": ("weight", 3, 5e12, "a larger sum"),
    "negative replicate weight": ("rw_2", 0, -0.5, "1 below 0"),
    "replicate weight that is no number": ("rw_1", 0, float("nan"), "1 not finite"),
    "no consent": ("asked", 4, None, "1 rows without"),
    "no value": ("profit", 4, None, "1 empty"),
    "value times weight too large": ("profit", 5, 2 * 10**12, "1 rows with more"),
    "value times replicate weight too large": ("profit", 5, -(10**12), "1 rows with more"),
    "no code": ("state", 0, None, "1 rows without one"),
    "unknown code": ("state", 0, "secret-value", "1 rows with 1 other values"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_records_are_refused_with_what_was_found(tmp_path: Path, engine: str, case: str) -> None:
    column, row, value, found = BAD[case]
    data = microdata(tmp_path, spoilt(column, row, value), records=WITH_REPLICATES, engine=engine)
    with pytest.raises(DataError) as error:
        check(data)
    assert found in error.value.found
    assert column in error.value.where
    assert "secret-value" not in str(error.value)


def test_a_value_below_its_minimum_is_refused_and_none_below_zero_by_default(tmp_path: Path, engine: str) -> None:
    with pytest.raises(DataError) as error:
        check(microdata(tmp_path, by_hand(), measures={"profit": {}}, engine=engine))
    assert "2 below 0" in error.value.found
    assert "a `minimum` that all of them may have" in error.value.do
    assert "clip" not in error.value.do, "totals publish values as they are"


def test_a_value_that_is_not_whole_is_refused(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    columns["profit"] = [float(profit) for profit in columns["profit"]]
    columns["profit"][0] = 70.5
    with pytest.raises(DataError) as error:
        check(microdata(tmp_path, columns, engine=engine))
    assert "1 not whole" in error.value.found


def test_values_that_are_together_too_large_are_refused(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    columns["profit"] = [3 * 10**18] * 7
    columns["weight"] = [0.000001] * 7
    with pytest.raises(DataError) as error:
        check(microdata(tmp_path, columns, engine=engine))
    assert error.value.found == "more in all"


def test_a_smaller_unit_in_two_larger_ones_is_refused(tmp_path: Path, engine: str) -> None:
    columns = by_hand() | {"establishment": ["a", "a", "b", "b", "a", "c", "c"]}
    records = {**RECORDS, "levels": ["establishment", "enterprise"]}
    with pytest.raises(DataError) as error:
        check(microdata(tmp_path, columns, records=records, engine=engine))
    assert error.value.found == "1 that belong to several"
    assert "'establishment' and 'enterprise'" in error.value.where


COLUMNS = {
    "unit of a strange type": ({"business": [1.5] * 7}, {}, "business"),
    "no unit": ({}, {"unit": "firm"}, "firm"),
    "no level": ({}, {"levels": ["group"]}, "group"),
    "weight of text": ({"weight": ["1"] * 7}, {}, "weight"),
    "no weight": ({}, {"weight": "w"}, "w"),
    "consent of numbers": ({"asked": [1] * 7}, {}, "asked"),
    "no consent": ({}, {"consent": "agreed"}, "agreed"),
    "measure of text": ({"profit": ["1"] * 7}, {}, "profit"),
    "attribute of a strange type": ({"state": [1.5] * 7}, {}, "state"),
    "replicate of text": ({"rw_1": ["1"] * 7}, {}, "rw_1"),
    "no replicates": ({}, {"replicates": {**REPLICATES, "columns": "rep_*"}}, "rep_*"),
    "one replicate": ({}, {"replicates": {**REPLICATES, "columns": "rw_1"}}, "replicate weights"),
    "replicates of something else": (
        {},
        {"replicates": {**REPLICATES, "columns": ["rw_1", "w*"]}},
        "replicate weights",
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, case: str) -> None:
    columns, records, where = COLUMNS[case]
    data = microdata(tmp_path, by_hand() | columns, records={**WITH_REPLICATES, **records})
    with pytest.raises(DataError) as error, connect_records(data) as tables:
        check_record_columns(data, tables)
    assert where in error.value.where


def test_replicate_weights_are_found_by_pattern_in_the_order_of_the_table(tmp_path: Path) -> None:
    columns = by_hand() | {"rw_10": [1.0] * 7}
    for pattern, found in (("rw_*", ("rw_1", "rw_2", "rw_10")), (["rw_10", "rw_?"], ("rw_10", "rw_1", "rw_2"))):
        records = {**SURVEY, "replicates": {**REPLICATES, "columns": pattern}}
        data = microdata(tmp_path, columns, records=records)
        with connect_records(data) as tables:
            assert replicate_columns(data, tables) == found


def test_public_codes_are_read_off_the_records_and_others_are_declared(tmp_path: Path, engine: str) -> None:
    attributes = {"industry": {"codes": {"Y": "Yarn", "X": "Xylophones"}}}
    data = microdata(tmp_path, by_hand(), engine=engine, public=["state"], attributes=attributes)
    with connect_records(data) as tables:
        codes = read_record_codes(data, tables)
    assert codes == {"state": Codelist.of(["A", "B"]), "industry": Codelist.of({"Y": "Yarn", "X": "Xylophones"})}


@pytest.mark.parametrize("public", [["state"], []])
def test_an_unknown_code_of_a_record_is_refused_and_not_shown(tmp_path: Path, engine: str, public: list[str]) -> None:
    data = microdata(tmp_path, spoilt("state", 0, "Cburg"), engine=engine, public=public)
    with pytest.raises(DataError, match="1 rows with 1 other values") as error:
        check(data)
    assert "Cburg" not in str(error.value)


def test_data_without_rows_pass(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = microdata(tmp_path, by_hand(), records=WITH_REPLICATES)
    pq.write_table(pa.table(by_hand()).slice(0, 0), tmp_path / "records.parquet")
    check(data)
