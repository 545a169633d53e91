"""Files that people download: nothing in them runs, nothing is lost, rows and columns as wished."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.model import Column, ServedTable, TableAnswer
from sfumato.serve.core.selection import everything, select
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.json_stat import write_json_stat
from sfumato.serve.formats.layout import Options
from sfumato.serve.formats.px import write_json_px, write_px
from sfumato.serve.formats.sheets import write_csv, write_html, write_parquet, write_xlsx

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x")', '<script>alert("x")</script>')


def relabelled(table: ServedTable, texts: tuple[str, ...]) -> ServedTable:
    """The same table, whose first codes have these labels."""
    first, *others = table.dimensions
    labels = (*texts, *first.labels[len(texts) :])
    return replace(table, title=texts[0], dimensions=(replace(first, labels=labels), *others))


@pytest.fixture
def hostile(catalogue: Catalogue) -> TableAnswer:
    table = relabelled(catalogue["jobs_by_place"], FORMULAS)
    return table.answer(select(table, {"place": [f"top({len(FORMULAS)})"]}))


def read_csv(content: bytes, **options: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline=""), **options))


def test_no_text_of_a_csv_file_begins_as_a_formula(hostile: TableAnswer) -> None:
    rows = read_csv(write_csv(hostile, Options(title=True)))
    assert rows[0] == [f"'{FORMULAS[0]}"]
    assert all(not row[0].startswith(("=", "+", "-", "@", "\t")) for row in rows)


def test_no_cell_of_a_workbook_is_a_formula(hostile: TableAnswer) -> None:
    book = openpyxl.load_workbook(io.BytesIO(write_xlsx(hostile, Options(title=True))))
    texts = [cell for sheet in book for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]
    assert {cell.data_type for cell in texts} == {"s"}
    assert set(FORMULAS[1:4]) <= {cell.value for cell in texts}
    assert not any(cell.hyperlink for cell in texts)


def test_no_text_of_a_page_is_a_tag(hostile: TableAnswer) -> None:
    page = write_html(hostile, Options()).decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_options_of_csv(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    answer = table.answer(select(table, {"place": ["top(2)"], "contents": ["value"]}))
    codes = write_csv(answer, Options.read(["UseCodes", "SeparatorSemicolon", "ByteOrderMark"]))
    assert codes.startswith("\ufeff".encode())
    assert read_csv(codes.removeprefix("\ufeff".encode()), delimiter=";")[0] == ["place", "jobs", "status"]
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
    assert head == ["industry", *(f"{size} {metric}" for size in sizes for metric in ("jobs", "low")), "status"]
    assert [line[0] for line in lines] == list(industries)
    values = answer.columns[0].values
    assert [[int(cell) for cell in line[1:-1:2]] for line in lines] == values.tolist()
    turned = Options(texts="codes", heading=("industry",), stub=("contents", "place_size"))
    _, *rows = read_csv(write_csv(answer, turned))
    assert [[int(cell) for cell in row[2:-1]] for row in rows[: len(sizes)]] == values.T.tolist()


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
        if tag == "sup":
            return
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
            assert written in ('"-"', '"."', '".."', '"..."', '"...."')
        else:
            assert float(written) == pytest.approx(value, abs=1e-6)
    if table.time:
        assert found[f'TIMEVAL("{table.time.label}")'][0] == "20101"


@pytest.mark.slow
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


TURNOVER = "turnover_by_state_industry"
"""Some of its errors are beyond their scale."""
ENDS = ("low", "high", "rse")


@pytest.fixture
def turnover(catalogue: Catalogue) -> TableAnswer:
    table = catalogue[TURNOVER]
    return table.answer(everything(table))


@pytest.fixture
def symbols(bundles: dict[str, Path]) -> list[dict[str, str]]:
    """Of every cell, in order, the symbols of its value, the ends of its interval and its error, from the bundle."""
    rows = pq.read_table(bundles["business"] / f"tables/{TURNOVER}.parquet").to_pylist()
    found = []
    for row in rows:
        if row["value"] is None:
            found.append(dict.fromkeys(("turnover", *ENDS), ".."))
            continue
        mark = "**" if None in map(row.get, ENDS) or row["rse"] >= 50 else "*" if row["rse"] >= 25 else ""
        own = " ".join(filter(None, ("p" if row["status"] else "", mark)))
        found.append({"turnover": own, **{name: "" if row[name] is not None else ">" for name in ENDS}})
    assert {cell["rse"] for cell in found} == {"", "..", ">"}
    assert {"", "*", "**"} <= {cell["turnover"] for cell in found}
    return found


def test_json_stat_marks_values_and_says_which_errors_are_beyond_the_scale(
    turnover: TableAnswer, symbols: list[dict[str, str]]
) -> None:
    found = json.loads(write_json_stat(turnover, Options()))
    metrics = found["dimension"]["contents"]["category"]["index"]
    status = [found["status"].get(str(place), "") for place in range(len(found["value"]))]
    for metric, at in metrics.items():
        assert status[at :: len(metrics)] == [cell[metric] for cell in symbols]
    assert found["extension"]["status"]["label"].keys() == set(found["status"].values())
    assert found["extension"]["status"]["label"][">"].startswith("beyond the scale")
    assert "50 % or more" in found["extension"]["status"]["label"]["**"]


def test_a_value_is_marked_where_its_error_was_not_asked_for(
    catalogue: Catalogue, symbols: list[dict[str, str]]
) -> None:
    table = catalogue[TURNOVER]
    answer = table.answer(select(table, {"state": ["*"], "industry": ["*"], "contents": ["value"]}))
    assert [answer.symbols().get(place, "") for place in range(len(symbols))] == [cell["turnover"] for cell in symbols]


def test_csv_says_of_a_row_what_its_symbols_say(turnover: TableAnswer, symbols: list[dict[str, str]]) -> None:
    words = {"..": "suppressed", "p": "mostly perturbation", "*": "error 25 % or more"}
    words |= {"**": "error 50 % or more or beyond the scale"}
    _, *rows = read_csv(write_csv(turnover, Options(texts="codes")))
    for row, cell in zip(rows, symbols, strict=True):
        said = [words[symbol] for symbol in cell["turnover"].split()]
        ends = [f"{name}: beyond the scale" for name in ENDS if cell[name] == ">"]
        assert row[-1] == "; ".join(filter(None, (", ".join(said), *ends)))


def test_csv_names_the_value_that_is_meant_where_a_row_has_several(
    turnover: TableAnswer, symbols: list[dict[str, str]]
) -> None:
    options = Options(texts="codes", heading=("industry", "contents"), stub=("state",))
    head, *rows = read_csv(write_csv(turnover, options))
    industries = turnover.dimensions[1].codes
    for row, cells in zip(rows, zip(*[iter(symbols)] * len(industries), strict=True), strict=True):
        said = dict(part.split(": ") for part in row[-1].split("; "))
        assert said.keys() <= set(head)
        marked = [f"{industry} turnover" for industry, cell in zip(industries, cells, strict=True) if cell["turnover"]]
        assert [name for name in said if name.endswith("turnover")] == marked


def test_a_page_shows_the_symbols_and_explains_them(turnover: TableAnswer, symbols: list[dict[str, str]]) -> None:
    text = write_html(turnover, Options()).decode()
    page = Cells()
    page.feed(text)
    codes = [metric.code for metric in turnover.metrics]
    figures = [dict(zip(codes, row[2:], strict=True)) for row in page.rows[1 : len(symbols) + 1]]
    for name in ("turnover", *ENDS):
        shown = [re.sub(r"^-?[\d,.]*\d ?", "", row[name]) for row in figures]
        assert shown == [cell[name] for cell in symbols]
    assert "<dt>&gt;</dt><dd>beyond the scale" in text
    assert "<dt>**</dt><dd>too uncertain" in text
    assert "<dt>.</dt>" not in text


def test_a_px_file_has_dots_for_the_symbols_of_missing_figures_and_marks_cells(
    turnover: TableAnswer, symbols: list[dict[str, str]]
) -> None:
    found = read_px(write_px(turnover, Options()).decode())
    codes = [metric.code for metric in turnover.metrics]
    dots = {"..": '".."', ">": '"...."'}
    for name in ("turnover", *ENDS):
        written = found["DATA"][codes.index(name) :: len(codes)]
        assert [text if text.startswith('"') else "" for text in written] == [
            dots.get(cell[name], "") for cell in symbols
        ]
    assert found["DATASYMBOL4"] == [">"]
    assert "> beyond the scale" in found["NOTE"][0]
    keys = [(state, industry) for state in turnover.dimensions[0].codes for industry in turnover.dimensions[1].codes]
    for (state, industry), cell in zip(keys, symbols, strict=True):
        mark = found.get(f'DATANOTECELL("{state}","{industry}","turnover")', [""])
        assert mark == [cell["turnover"] if cell["turnover"] != ".." else ""]


def test_the_first_version_says_of_which_figures_and_of_which_rows_a_comment_is(
    turnover: TableAnswer, symbols: list[dict[str, str]]
) -> None:
    found = json.loads(write_json_px(turnover, Options()))
    said = {column["code"]: column.get("comment", "") for column in found["columns"]}
    assert {code for code, words in said.items() if "beyond the scale:" in words} == set(ENDS)
    assert {code for code, words in said.items() if "50 % or more" in words} == {"turnover"}
    for row, cell in zip(found["data"], symbols, strict=True):
        words = row.get("comment", "")
        assert ("not published" in words) == (cell["turnover"] == "..")
        assert ("beyond the scale:" in words) == any(cell[name] == ">" for name in ENDS)
        assert ("comment" in row) == any(cell.values())


def test_r_can_list_the_comments_of_an_answer(turnover: TableAnswer) -> None:
    """As its pxweb_data_comments() does: it looks up the column of every comment, and stops where there is none."""
    found = json.loads(write_json_px(turnover, Options()))
    columns = {column["code"] for column in found["columns"]}
    assert all(comment["variable"] in columns for comment in found["comments"])
    assert any("comment" in row for row in found["data"])
    assert all(isinstance(one.get("comment", ""), str) for one in (*found["columns"], *found["data"]))


def test_parquet_has_the_reliability_beside_the_status(turnover: TableAnswer, symbols: list[dict[str, str]]) -> None:
    found = pq.read_table(pa.BufferReader(write_parquet(turnover, Options()))).to_pydict()
    marks = {"": "", "*": "error 25 % or more", "**": "error 50 % or more or beyond the scale"}
    assert found["reliability"] == [marks[cell["turnover"].strip("p .")] for cell in symbols]


@pytest.mark.parametrize("title", [False, True])
@pytest.mark.parametrize("heading", [None, ("industry", "contents"), ("contents", "state"), ("industry",), ()])
def test_a_workbook_has_the_status_of_every_figure_in_the_same_cell_of_another_sheet(
    heading: tuple[str, ...] | None, title: bool, turnover: TableAnswer
) -> None:
    options = Options(heading=heading, title=title)
    book = openpyxl.load_workbook(io.BytesIO(write_xlsx(turnover, options)))
    table, status, notes = book["Table"], book["Status"], book["Notes"]
    assert table.dimensions == status.dimensions
    stub = 3 - (1 if heading is None else len(heading))
    top = 4 if title else 2
    found: list[tuple[Any, str]] = []
    columns = len(turnover.values()) // (table.max_row - top + 1)
    for row in range(1, table.max_row + 1):
        for column in range(1, table.max_column + 1):
            figure, said = table.cell(row, column), status.cell(row, column)
            if row < top or not stub < column <= stub + columns:
                assert figure.value == said.value
                continue
            assert said.data_type in ("s", "n" if said.value is None else "s")
            assert figure.data_type == ("s" if said.value in ("..", ">") else "n")
            found.append((None if figure.data_type == "s" else figure.value, said.value or ""))
    values, symbols = turnover.values(), turnover.symbols()
    expected = [(value, symbols.get(place, "")) for place, value in enumerate(values)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    meanings = {row[0]: row[1] for row in notes.iter_rows(values_only=True)}
    assert {symbol for _, said in found for symbol in said.split()} <= meanings.keys()
    assert "in the cell of every figure" in meanings["Status"]


def test_a_column_of_words_is_there_only_where_a_row_has_one_value(turnover: TableAnswer) -> None:
    def heads(heading: tuple[str, ...] | None) -> list[Any]:
        book = openpyxl.load_workbook(io.BytesIO(write_xlsx(turnover, Options(heading=heading))))
        return [cell.value for cell in book["Table"][1]]

    assert heads(None)[-1] == heads(())[-1] == "status"
    assert "status" not in heads(("industry", "contents")) + heads(("industry",))


@pytest.mark.slow
@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
@settings(deadline=None)
def test_figures_of_a_workbook_have_all_their_digits(numbers: list[float], catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    answer = table.answer(select(table, {"place": ["top(2)"], "contents": ["value"]}))
    exact = replace(answer, columns=(Column(values=np.array(numbers)),))
    book = openpyxl.load_workbook(io.BytesIO(write_xlsx(exact, Options())))
    assert [float(row[1]) for row in book["Table"].iter_rows(min_row=2, values_only=True)] == numbers
