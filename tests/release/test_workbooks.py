"""Sheets of workbooks are read whole, and one that would fill the memory is refused."""

from pathlib import Path

import pytest
import xlsxwriter

from sfumato.errors import DataError
from sfumato.frame.workbooks import read_sheet


def workbook(path: Path, *cells: tuple[int, int, str]) -> Path:
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("codes")
        for cell in cells:
            sheet.write(*cell)
    return path


def test_the_first_sheet_is_read_from_its_first_row(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", (1, 0, "code"), (2, 1, "F"))
    assert read_sheet(path, "codes", None, DataError) == ("codes", [["", ""], ["code", ""], ["", "F"]])


def test_a_cell_far_from_all_others_is_refused_before_memory_is_filled(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", (0, 0, "code"), (1_048_575, 16_383, "stray"))
    with pytest.raises(DataError, match="2 cells over 1,048,576 rows and 16,384 columns"):
        read_sheet(path, "codes", None, DataError)


def test_a_sheet_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the sheet 'data'\n  found:    codes"):
        read_sheet(workbook(tmp_path / "a.xlsx"), "codes", "data", DataError)
