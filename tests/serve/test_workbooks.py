"""Workbooks: two readers find in them what was written, whatever it was, and Excel's bounds are kept."""

import io
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zipfile import ZipFile

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Column, TableAnswer
from sfumato.serve.core.selection import select
from sfumato.serve.formats.layout import Options
from sfumato.serve.formats.sheets import write_xlsx
from sfumato.serve.formats.workbook import LONGEST, PLAIN, Pane, Workbook

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def written(*texts: str) -> bytes:
    book = Workbook("T", WHEN)
    row = f'<row r="1">{book.labels(texts, 1, PLAIN)}</row>'
    book.add("Sheet", [row], widths=[(0, 0, 10)], pane=Pane(0, 0))
    return book.content()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=8))
def test_every_text_is_read_as_it_was_written(texts: list[str]) -> None:
    (cells,) = openpyxl.load_workbook(io.BytesIO(written(*texts)))["Sheet"].iter_rows()
    # The reader turns the escapes of Excel back itself, and ends of lines as XML does.
    found = [openpyxl.utils.escape.unescape(cell.value or "") for cell in cells]
    assert {cell.data_type for cell in cells} <= {"s", "n"}
    assert [text.replace("\r", "\n") for text in found] == [text.replace("\r", "\n") for text in texts]


@pytest.mark.parametrize("text", ["=1+1", "a\x00b\x0bc", "_x0041_", "]]>&<!--", "\ufffe\uffff", " two  blanks ", "😀"])
def test_hostile_texts_are_inert_in_two_readers(text: str) -> None:
    content = written(text)
    assert openpyxl.load_workbook(io.BytesIO(content))["Sheet"]["A1"].data_type == "s"
    assert len(CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_name("Sheet").to_python()) == 1
    with ZipFile(io.BytesIO(content)) as archive:
        assert not any("<f>" in archive.read(name).decode() for name in archive.namelist())


def test_texts_that_excel_has_no_room_for_are_cut() -> None:
    assert len(openpyxl.load_workbook(io.BytesIO(written("a" * 40_000)))["Sheet"]["A1"].value) == LONGEST


@pytest.fixture
def answer(catalogue: Catalogue) -> TableAnswer:
    table = catalogue["jobs_by_place"]
    return table.answer(select(table, {"place": ["*"]}))


def test_the_same_answer_gives_the_same_bytes_and_says_when_it_was_published(answer: TableAnswer) -> None:
    first, second = (write_xlsx(answer, Options(title=True)) for _ in range(2))
    assert first == second
    properties = openpyxl.load_workbook(io.BytesIO(first)).properties
    assert (properties.title, properties.created) == (
        answer.table.title,
        answer.table.updated.replace(microsecond=0, tzinfo=None),
    )


def test_two_readers_find_the_same_figures(answer: TableAnswer) -> None:
    content = write_xlsx(answer, Options())
    book = CalamineWorkbook.from_filelike(io.BytesIO(content))
    for sheet in openpyxl.load_workbook(io.BytesIO(content)):
        rows = [[cell if cell is not None else "" for cell in row] for row in sheet.iter_rows(values_only=True)]
        assert book.get_sheet_by_name(sheet.title).to_python() == rows
        assert sheet.freeze_panes == (None if sheet.title == "Notes" else "B2")


def test_more_columns_than_excel_has_are_refused(answer: TableAnswer) -> None:
    codes = tuple(str(code) for code in range(16_385))
    place = replace(answer.dimensions[0], codes=codes, labels=codes)
    numbers: Any = np.ones(len(codes))
    wide = replace(answer, dimensions=(place,), columns=tuple(Column(values=numbers) for _ in answer.metrics))
    with pytest.raises(RefusedError, match="16,384 columns"):
        write_xlsx(wide, Options(heading=("place",)))
