"""Files that people download: nothing in them runs, nothing is lost, rows and columns as wished."""

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.serve.catalogue import Catalogue
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.csv_text import write_csv
from sfumato.serve.formats.html import write_html
from sfumato.serve.formats.options import Options
from sfumato.serve.formats.px import write_px
from sfumato.serve.formats.xlsx import write_xlsx
from sfumato.serve.model import Answer, ServedTable
from sfumato.serve.selection import everything, select

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x")', '<script>alert("x")</script>')


def relabelled(table: ServedTable, texts: tuple[str, ...]) -> ServedTable:
    """The same table, whose first codes have these labels."""
    first, *others = table.dimensions
    labels = (*texts, *first.labels[len(texts) :])
    return replace(table, title=texts[0], dimensions=(replace(first, labels=labels), *others))


@pytest.fixture
def hostile(catalogue: Catalogue) -> Answer:
    table = relabelled(catalogue["jobs_by_place"], FORMULAS)
    return table.answer(select(table, {"place": [f"top({len(FORMULAS)})"]}))


def read_csv(content: bytes, **options: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline=""), **options))


def test_no_text_of_a_csv_file_begins_as_a_formula(hostile: Answer) -> None:
    rows = read_csv(write_csv(hostile, Options(title=True)))
    assert rows[0] == [f"'{FORMULAS[0]}"]
    assert all(not row[0].startswith(("=", "+", "-", "@", "\t")) for row in rows)


def test_no_cell_of_a_workbook_is_a_formula(hostile: Answer) -> None:
    book = openpyxl.load_workbook(io.BytesIO(write_xlsx(hostile, Options(title=True))))
    texts = [cell for sheet in book for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]
    assert {cell.data_type for cell in texts} == {"s"}
    assert set(FORMULAS[1:4]) <= {cell.value for cell in texts}
    assert not any(cell.hyperlink for cell in texts)


def test_no_text_of_a_page_is_a_tag(hostile: Answer) -> None:
    page = write_html(hostile, Options()).decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_options_of_csv(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    answer = table.answer(select(table, {"place": ["top(2)"], "contents": ["value"]}))
    codes = write_csv(answer, Options.read(["UseCodes", "SeparatorSemicolon", "ByteOrderMark"]))
    assert codes.startswith("\ufeff".encode())
    assert read_csv(codes.removeprefix("\ufeff".encode()), delimiter=";")[0] == ["place", "value"]
    both = read_csv(write_csv(answer, Options.read(["usecodesandtexts", "separatortab"])), delimiter="\t")
    code, label = table.dimensions[0].codes[0], table.dimensions[0].labels[0]
    assert both[1][0] == f"{code} {label}"
    assert read_csv(write_csv(answer, Options.read(["IncludeTitle"])))[0] == [table.title]


def test_rows_and_columns_are_as_wished(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_industry"]
    answer = table.answer(select(table, {"industry": ["*"], "place_size": ["*"], "contents": ["value", "low"]}))
    options = Options(texts="codes", heading=("place_size", "contents"), stub=("industry",))
    head, *lines = read_csv(write_csv(answer, options))
    industries, sizes = (dimension.codes for dimension in table.dimensions)
    assert head == ["industry", *(f"{size} {metric}" for size in sizes for metric in ("value", "low"))]
    assert [line[0] for line in lines] == list(industries)
    values = answer.columns[0].values
    assert [[int(cell) for cell in line[1::2]] for line in lines] == values.tolist()
    turned = Options(texts="codes", heading=("industry",), stub=("contents", "place_size"))
    _, *rows = read_csv(write_csv(answer, turned))
    assert [[int(cell) for cell in row[2:]] for row in rows[: len(sizes)]] == values.T.tolist()


class Cells(HTMLParser):
    """Reads the cells of a table, and whether its heads have scopes."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.scopes: set[str | None] = set()
        self.captions = 0
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.captions += tag == "caption"
        if tag == "tr":
            self.rows.append([])
        if tag == "th":
            self.scopes.add(dict(attrs).get("scope"))
        self._open = tag in ("td", "th")
        if self._open:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th")


@pytest.mark.parametrize(
    "heading", [None, ("industry", "contents"), ("industry",), ("contents", "state", "industry"), ()]
)
def test_a_page_has_a_caption_and_heads_with_scopes(heading: tuple[str, ...] | None, catalogue: Catalogue) -> None:
    table = catalogue["turnover_by_state_industry"]
    answer = table.answer(select(table, {"state": ["NSW", "VIC"], "industry": ["*"], "contents": ["value", "rse"]}))
    page = Cells()
    page.feed(write_html(answer, Options(heading=heading)).decode())
    assert page.captions == 1
    assert page.scopes <= {"row", "col", "colgroup"}
    figures = [cell for row in page.rows for cell in row]
    assert f"{answer.columns[0].values[0, 0]:,}" in [figure.split(" ")[0] for figure in figures]


def read_px(text: str) -> dict[str, Any]:
    """Read a PX file with rules of its own: keywords until DATA, texts between quotation marks."""
    head, _, data = text.partition("DATA=")
    found: dict[str, Any] = {}
    for part in re.findall(r'([A-Z0-9-]+(?:\((?:"[^"]*",?)+\))?)=((?:[^";]|"[^"]*")*);', head):
        name, content = part
        joined = re.sub(r'"\n"', "", content)
        texts = re.findall(r'"([^"]*)"', joined)
        found[name] = texts if texts else content
    found["DATA"] = data.strip().removesuffix(";").split()
    return found


@pytest.mark.parametrize("name", ["turnover_by_state_industry", "indicators", "people", "private_by_place_industry"])
def test_a_px_file_says_everything(name: str, catalogue: Catalogue) -> None:
    table = catalogue[name]
    answer = table.answer(everything(table))
    found = read_px(write_px(answer, Options(source="Office", license="CC0-1.0")).decode())
    axes = {axis.label: axis for axis in answer.axes}
    assert [*found["STUB"], *found["HEADING"]] == list(axes)
    for label, axis in axes.items():
        assert tuple(found[f'CODES("{label}")']) == axis.codes
        assert len(found[f'VALUES("{label}")']) == len(axis)
    assert found["SOURCE"] == ["Office"]
    values = answer.values()
    assert len(found["DATA"]) == len(values)
    for written, value in zip(found["DATA"], values, strict=True):
        if value is None:
            assert written in ('"."', '".."', '"..."')
        else:
            assert float(written) == pytest.approx(value, abs=1e-6)
    if table.time:
        assert found[f'TIMEVAL("{table.time.label}")'][0] == "20101"


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.text(max_size=300), min_size=1, max_size=3))
def test_any_label_can_be_written_in_every_format(texts: list[str], catalogue: Catalogue) -> None:
    table = relabelled(catalogue["jobs_by_place"], tuple(texts))
    answer = table.answer(select(table, {"place": ["top(3)"]}))
    for written in FORMATS.values():
        assert written.write(answer, Options(title=True))
    read = read_px(write_px(answer, Options()).decode())
    assert len(read['VALUES("Place")']) == 3


@pytest.mark.parametrize("name", list(FORMATS))
def test_the_same_answer_gives_the_same_bytes(name: str, catalogue: Catalogue) -> None:
    table = catalogue["people"]
    answer = table.answer(select(table, {"job": ["*"]}))
    assert FORMATS[name].write(answer, Options()) == FORMATS[name].write(answer, Options())
