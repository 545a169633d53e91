"""What a page shows follows from the answer: published totals, percentages, marks, order, and where it ends."""

import numpy as np
import pytest

from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.reading import read
from sfumato.serve.page.sheet import MOST_SHOWN, sheet_of
from sfumato.serve.page.view import View, view_of
from tests.serve.page.made import dimension, table

SEX = dimension("sex", ("f", "m"))
AGE = dimension("age", ("1", "2", "3"))
PEOPLE = table(SEX, AGE)
"""The figures are 1 2 3 for women and 4 5 6 for men."""
ALL = [("valueCodes[sex]", "*"), ("valueCodes[age]", "*"), ("stub", "sex"), ("heading", "age")]


def seen(*more: tuple[str, str], of: list[tuple[str, str]] = ALL) -> tuple[View, ReaderQuestion]:
    question = read(PEOPLE, [*of, *more])
    return view_of(question, question.selection()), question


def values(view: View) -> list[list[float]]:
    found: list[list[float]] = view.values[..., 0].tolist()
    return found


def test_totals_are_answers_of_their_own() -> None:
    view, _ = seen(("totals", "1"))
    assert values(view) == [[1, 2, 3, 6], [4, 5, 6, 15], [5, 7, 9, 21]]
    assert view.rows[0].texts[-1] == "Total"
    assert view.row_totals().tolist() == [False, False, True]


def test_a_group_of_all_codes_is_the_only_total() -> None:
    """Codes of true numbers may be merged into `total`, as far up as it takes."""
    made = table(dimension("size", ("small", "large", "total"), labels=("Small", "Large", "Total")))
    question = read(made, [("totals", "1")])
    assert view_of(question, question.selection()).rows[0].texts == ("Small", "Large", "Total")


def test_a_total_over_some_codes_says_that_it_is_of_all() -> None:
    view, _ = seen(("totals", "1"), of=[("valueCodes[sex]", "*"), ("valueCodes[age]", "1,2"), *ALL[2:]])
    assert view.columns[0].texts == ("1 in full", "2 in full", "Total of all 3")
    assert values(view)[0] == [1, 2, 6]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("row", [[100 / 6, 200 / 6, 300 / 6], [400 / 15, 500 / 15, 600 / 15]]),
        ("column", [[20, 200 / 7, 300 / 9], [80, 500 / 7, 600 / 9]]),
        ("total", [[100 / 21, 200 / 21, 300 / 21], [400 / 21, 500 / 21, 600 / 21]]),
    ],
)
def test_percentages_are_of_published_totals(of: str, expected: list[list[float]]) -> None:
    view, _ = seen(("percent", of))
    np.testing.assert_allclose(values(view), expected)
    np.testing.assert_allclose(view.values[..., 1], 0.1 * view.values[..., 0])
    assert any("published totals" in note for note in view.notes)


def test_percentages_without_published_totals_are_of_what_is_shown() -> None:
    fixed = table(dimension("sex", ("f", "m", "total"), eliminable=False, total="total"), AGE, totals=False)
    question = read(fixed, [*ALL, ("percent", "column")])
    view = view_of(question, question.selection())
    np.testing.assert_allclose(view.values[:2, 0, 0], [20, 80])  # the total is no part of the sum
    assert any("sum of the figures in this table" in note for note in view.notes)


@pytest.mark.parametrize(("error", "mark"), [(0.249, ""), (0.25, "*"), (0.499, "*"), (0.5, "**"), (3, "**")])
def test_marks_begin_at_a_quarter_and_at_a_half(error: float, mark: str) -> None:
    made = table(SEX, AGE, error=error)
    question = read(made, [*ALL, ("valueCodes[contents]", "value")])
    sheet = sheet_of(view_of(question, question.selection()), question)
    assert {cell.mark for line in sheet.lines for cell in line.cells} == {mark}
    assert [(symbol, count) for symbol, _, count in sheet.legend] == ([(mark, 6)] if mark else [])


def test_an_error_that_cannot_be_told_has_a_symbol_of_its_own_and_marks_its_value() -> None:
    made = table(SEX, AGE, untold=2)
    question = read(made, [*ALL, ("valueCodes[contents]", "value,error")])
    sheet = sheet_of(view_of(question, question.selection()), question)
    cells = [(cell.text, cell.mark) for cell in sheet.lines[0].cells]
    assert cells == [("1", "**"), ("", ">"), ("2", "**"), ("", ">"), ("3", ""), ("0.3", "")]
    assert {cell.spoken for cell in sheet.lines[0].cells} == {
        "",
        "beyond the scale",
        "error 50 % or more or beyond the scale",
    }
    legend = {symbol: (meaning, count) for symbol, meaning, count in sheet.legend}
    assert legend.keys() == {">", "**"}
    assert [count for _, count in legend.values()] == [2, 2]
    assert "without an upper limit" in legend[">"][0]


def test_errors_are_shown_in_percent_on_request() -> None:
    view, question = seen(("errors", "relative"))
    sheet = sheet_of(view, question)
    assert [cell.text for cell in sheet.lines[0].cells] == ["1", "10.0", "2", "10.0", "3", "10.0"]


def test_rows_are_ordered_by_their_first_figure_and_totals_stay_last() -> None:
    view, _ = seen(("order", "largest"), ("totals", "1"))
    assert view.order == (1, 0, 2)
    view, _ = seen(("chart", "ranking"))
    assert view.order == (1, 0)
    view, _ = seen(("order", "smallest"))
    assert view.order == (0, 1)


def test_filters_show_one_combination_at_a_time() -> None:
    view, _ = seen(("page", "2"), of=[*ALL[:2], ("stub", "age"), ("heading", "contents")])
    assert view.page_count == 2
    assert view.page_texts == (("Sex", "m in full"),)
    assert values(view) == [[4], [5], [6]]


def test_heads_span_what_belongs_to_them() -> None:
    view, question = seen()
    sheet = sheet_of(view, question)
    assert [(head.text, head.span) for head in sheet.above[0]] == [(f"{age} in full", 2) for age in "123"]
    assert [head.text for head in sheet.above[1]] == ["Jobs", "Standard error"] * 3
    ids = {head.id for heads in sheet.above for head in heads} | {h.id for line in sheet.lines for h in line.heads}
    assert all(set(cell.headers.split()) <= ids for line in sheet.lines for cell in line.cells)


def test_a_long_table_ends_where_the_page_does() -> None:
    long = table(dimension("place", [f"P{number}" for number in range(5_000)]), SEX)
    question = read(long, [("valueCodes[place]", "*"), ("valueCodes[sex]", "*"), ("stub", "place"), ("heading", "sex")])
    sheet = sheet_of(view_of(question, question.selection()), question)
    assert sheet.cut
    assert (sheet.rows, len(sheet.lines) * sheet.across) == (5_000, MOST_SHOWN)
    question = question.turned()
    sheet = sheet_of(view_of(question, question.selection()), question)
    assert sheet.cut
    assert sheet.columns == 10_000
    assert sum(head.span for head in sheet.above[0]) == sheet.across < 200
