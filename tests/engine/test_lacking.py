"""A column that is not in the files is told as the release file writes it, with the columns that the files have."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sfumato.engine.data import open_data
from sfumato.errors import DataError
from sfumato.frame.data import Frame
from sfumato.frame.records import Microdata

SECRET = "Zimtstern"


def refused(data: Frame | Microdata) -> DataError:
    with pytest.raises(DataError) as error, open_data(data) as opened:
        opened.check_columns()
    return error.value


def register(folder: Path, heading: str = "Nr;Kreis;Beschäftigte", **changes: Any) -> Frame:
    (folder / "reg.csv").write_text(f"{heading}\n1;05315;7\n2;05314;9\n", encoding="utf-8")
    jobs = {"path": "reg.csv", "workplace": "Nr", "employees": "Beschäftigte"} | changes.pop("jobs", {})
    attributes = changes.pop("attributes", {"kreis": {"column": "Kreis"}})
    return Frame.model_validate(
        {"jobs": jobs, "public": list(attributes), "attributes": attributes, "folder": folder, **changes}
    )


MISSPELT: dict[str, tuple[dict[str, Any], str, str]] = {
    "letters": ({"jobs": {"employees": "Beschaeftigte"}}, "Beschaeftigte", "Beschäftigte"),
    "case": ({"jobs": {"employees": "beschäftigte"}}, "beschäftigte", "Beschäftigte"),
    "a key": ({"jobs": {"workplace": "Nr."}}, "Nr.", "Nr"),
    "the column of an attribute": ({"attributes": {"kreis": {"column": "Kries"}}}, "Kries", "Kreis"),
}


@pytest.mark.parametrize("case", MISSPELT)
def test_a_misspelt_column_is_told_with_all_columns_of_a_text_and_the_one_that_is_meant(
    tmp_path: Path, case: str
) -> None:
    changes, written, meant = MISSPELT[case]
    error = refused(register(tmp_path, **changes))
    assert f"a column '{written}'" in error.expected
    assert error.found == "the columns Nr, Kreis, Beschäftigte"
    assert error.do.startswith(f"did you mean '{meant}'?")


def test_a_measure_is_told_by_its_column_and_attributes_are_not_taken_for_columns(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("Firma Nr.;Kreis [AGS];Umsatz (T.€)\n1;05315;7,5\n", encoding="utf-8")
    measured = {
        "records": {"path": "f.csv", "unit": "Firma Nr."},
        "attributes": {"kreis": {"column": "Kreis [AGS]", "codes": ["05315"]}},
        "measures": {"umsatz": {"column": "Umsatz"}},
        "folder": tmp_path,
    }
    error = refused(Microdata.model_validate(measured))
    assert error.where == "records, column 'Umsatz'"
    assert error.found == "the columns Firma Nr., Kreis [AGS], Umsatz (T.€)"
    assert "'Umsatz (T.€)'" in error.do


def test_a_record_where_the_heading_should_be_is_not_told(tmp_path: Path) -> None:
    error = refused(register(tmp_path, heading=f"Nr;{SECRET};17"))
    assert SECRET not in str(error)
    assert error.found == "the columns Nr"


def test_of_very_many_columns_some_are_told_and_the_one_that_is_meant(tmp_path: Path) -> None:
    names = [f"v{n}" for n in range(300)]
    (tmp_path / "f.csv").write_text(f"id,{','.join(names)},turnover\n" + "1," * 301 + "1\n", encoding="utf-8")
    wide = {"records": {"path": "f.csv", "unit": "id"}, "measures": {"turnovr": {}}, "folder": tmp_path}
    error = refused(Microdata.model_validate(wide))
    assert error.found.startswith("the columns turnover, id, v0")
    assert error.found.endswith("others")
    assert "'turnover'" in error.do


def test_columns_that_are_on_another_sheet_are_told_with_the_sheets(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.worksheets[0].title = "Info"
    book.worksheets[0].append(["Firms", SECRET])
    for row in (["id", "pay"], [1, 7]):
        (book["Data"] if "Data" in book else book.create_sheet("Data")).append(row)
    book.save(tmp_path / "f.xlsx")
    sheet = {"records": {"path": "f.xlsx", "unit": "id"}, "measures": {"pay": {}}, "folder": tmp_path}
    error = refused(Microdata.model_validate(sheet))
    assert "sheet 'Info'" in error.where
    assert error.do.startswith("name another sheet with `sheet`: Data")
    assert SECRET not in str(error)


def test_a_table_that_is_not_in_a_database_is_told_with_those_that_are(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "f.sqlite")) as database, database:
        database.execute("CREATE TABLE firms (id TEXT, pay INTEGER)")
        database.execute("CREATE TABLE notes (words TEXT)")
    named = {"path": "f.sqlite", "table": "firma", "unit": "id"}
    error = refused(Microdata.model_validate({"records": named, "measures": {"pay": {}}, "folder": tmp_path}))
    assert (error.expected, error.found) == ("the table 'firma'", "the tables firms, notes")
