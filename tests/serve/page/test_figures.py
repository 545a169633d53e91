"""Figures are written as the reader wishes: as their error allows, in thousands, in parts that fit on a page."""

from typing import Any

from sfumato.serve.core.model import ServedTable
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.reading import read
from sfumato.serve.page.sheet import MOST_ACROSS, MOST_SHOWN, Sheet, sheet_of
from sfumato.serve.page.view import View, view_of
from tests.serve.page.made import dimension, table

PLACES = dimension("place", [f"P{at}" for at in range(2_000)])
WIDE = dimension("industry", [f"I{at}" for at in range(40)])


def seen(of: ServedTable, **words: Any) -> tuple[Sheet, View, ReaderQuestion]:
    question = read(of, [(name, str(text)) for name, text in words.items()])
    view = view_of(question, question.selection())
    return sheet_of(view, question), view, question


def texts(sheet: Sheet) -> list[list[str]]:
    return [[cell.text for cell in line.cells] for line in sheet.lines]


def test_digits_are_never_more_than_were_published_and_stay_where_there_is_no_error() -> None:
    made = table(dimension("sex", ("f", "m")), error=0.01)
    assert [row[0] for row in texts(seen(made, digits="fitting")[0])] == ["1", "2"]
    exact = table(dimension("place", [f"P{at}" for at in range(1_234)]), error=0)
    sheet, _, _ = seen(exact, **{"valueCodes[place]": "P1233", "digits": "fitting", "stub": "place"})
    assert texts(sheet)[0][0] == "1,234"


def test_large_figures_are_rounded_to_two_digits_of_their_error() -> None:
    made = table(dimension("place", [f"P{at}" for at in range(12_345)]), error=0.1)
    sheet, _, _ = seen(made, **{"valueCodes[place]": "P12344", "digits": "fitting", "stub": "place"})
    assert texts(sheet) == [["12,300", "1,200"]]
    sheet, _, _ = seen(
        made, **{"valueCodes[place]": "P12344", "digits": "fitting", "scale": "thousands", "stub": "place"}
    )
    assert texts(sheet) == [["12.3", "1.2"]]


def test_a_figure_whose_error_is_beyond_its_scale_is_not_more_exact_than_others() -> None:
    made = table(dimension("place", [f"P{at}" for at in range(12_345)]), untold=12_345)
    sheet, _, _ = seen(made, **{"valueCodes[place]": "P12344", "digits": "fitting", "stub": "place"})
    assert texts(sheet) == [["12,000", ""]]


def test_errors_that_are_whole_numbers_have_no_digits_after_the_point() -> None:
    made = table(dimension("place", ("a", "b")), error=100)
    assert texts(seen(made)[0]) == [["1", "100"], ["2", "200"]]
    assert texts(seen(table(dimension("place", ("a", "b")), error=0.5))[0]) == [["1", "0.5"], ["2", "1.0"]]


def test_thousands_and_millions_are_said_in_the_heads() -> None:
    made = table(dimension("place", [f"P{at}" for at in range(5_000)]))
    for scale, shown in (("thousands", ["5.0", "0.5"]), ("millions", ["0.005", "0.0005"])):
        sheet, _, _ = seen(made, **{"valueCodes[place]": "P4999", "scale": scale, "stub": "place"})
        assert texts(sheet) == [shown]
        assert [head.text for head in sheet.above[-1]] == [f"Jobs, {scale}", f"Standard error, {scale}"]


def test_only_zero_looks_like_zero_in_millions() -> None:
    made = table(dimension("place", [f"P{at}" for at in range(50)]), error=0)
    sheet, _, _ = seen(made, **{"valueCodes[place]": "P0,P48", "scale": "millions", "stub": "place"})
    assert texts(sheet) == [["0.000001", "0.0"], ["0.00005", "0.0"]]


def test_too_uncertain_figures_can_be_left_out_with_their_errors_and_keep_their_mark() -> None:
    sheet, _, _ = seen(table(dimension("sex", ("f", "m")), error=0.6), unsure="hidden")
    assert texts(sheet) == [["", ""], ["", ""]]
    assert [line.cells[0].mark for line in sheet.lines] == ["**", "**"]
    assert [line.cells[1].mark for line in sheet.lines] == ["", ""], (
        "there is an error, so it is not said that there is none"
    )
    assert ("**", 2) in [(symbol, count) for symbol, _, count in sheet.legend]
    shown, _, _ = seen(table(dimension("sex", ("f", "m")), error=0.3), unsure="hidden")
    assert texts(shown)[0][0] == "1"


def test_pages_of_a_large_table_go_on_where_the_one_before_ends() -> None:
    made = table(PLACES, WIDE, error=0)
    asked = {"valueCodes[place]": "*", "valueCodes[industry]": "*", "valueCodes[contents]": "value"}
    first, _, _ = seen(made, **asked, stub="place", heading="industry")
    found: list[str] = []
    for row in (1, first.tall + 1, 2_000 - 2_000 % first.tall + 1):  # the first two and the last
        sheet, _, _ = seen(made, **asked, stub="place", heading="industry", row=row)
        assert sum(len(line.cells) for line in sheet.lines) <= MOST_SHOWN
        assert sheet.part.top == row - 1
        found += [cell.text for line in sheet.lines for cell in line.cells]
    here = [*range(1, 2 * 40 * first.tall + 1), *range(40 * (2_000 - 2_000 % first.tall) + 1, 80_001)]
    assert found == [f"{number:,}" for number in here]


def test_columns_go_by_pages_too_and_keep_their_heads() -> None:
    made = table(dimension("sex", ("f", "m")), dimension("place", [f"P{at}" for at in range(300)]), error=0)
    asked = {"valueCodes[place]": "*", "valueCodes[sex]": "*", "stub": "sex", "heading": "place"}
    first, _, _ = seen(made, **asked)
    assert first.across == MOST_ACROSS
    later, _, _ = seen(made, **asked, column=first.wide + 1)
    assert later.above[0][0].text == f"P{first.wide} in full"
    assert later.lines[0].cells[0].text == str(first.wide + 1)
    assert {cell.headers for line in later.lines for cell in line.cells}.isdisjoint(
        {cell.headers for line in first.lines for cell in line.cells}
    )


def test_beyond_the_end_the_last_row_is_shown() -> None:
    sheet, _, _ = seen(table(dimension("sex", ("f", "m"))), row=999)
    assert [line.cells[0].text for line in sheet.lines] == ["2"]


def test_a_wide_table_is_printed_in_parts_that_have_all_columns() -> None:
    sheet, _, _ = seen(
        table(dimension("place", ("A", "B")), WIDE, error=0.1),
        **{"valueCodes[place]": "*", "valueCodes[industry]": "*", "stub": "place", "heading": "industry"},
    )
    assert len(sheet.printed) > 1
    for number in range(2):
        printed = [cell.text for part in sheet.printed for cell in part.lines[number].cells]
        assert printed == [cell.text for cell in sheet.lines[number].cells]
        assert all(part.lines[number].heads[0].text == sheet.lines[number].heads[0].text for part in sheet.printed)
    narrow, _, _ = seen(table(dimension("sex", ("f", "m"))))
    assert narrow.printed == ()
