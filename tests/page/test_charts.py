"""Charts say what the table says, as SVG that any program can read."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from sfumato.serve.catalogue import Catalogue
from sfumato.serve.page.charts import Chart, chart_of
from sfumato.serve.page.drawing import number, scale
from sfumato.serve.page.question import CHARTS
from sfumato.serve.page.reading import read
from sfumato.serve.page.view import view_of
from tests.page.made import dimension, table

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script> & \"so on\""


def drawn(*asked: tuple[str, str], of: object = None) -> Chart:
    made = of or table(
        dimension("place", [f"P{at}" for at in range(40)]), dimension("year", ("2023", "2024"), role="time")
    )
    question = read(made, asked)  # type: ignore[arg-type]
    found = chart_of(view_of(question, question.selection()), question, name="Jobs by place")
    assert found is not None
    return found


def texts(chart: Chart) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(chart.svg).iter(f"{SVG}text")]


def test_every_chart_of_every_table_is_well_formed(catalogue: Catalogue) -> None:
    for served in catalogue:
        for kind in CHARTS:
            question = read(served, [("chart", kind), ("totals", "1")])
            chart = chart_of(view_of(question, question.selection()), question, name=served.title)
            assert (chart is None) == (kind == "none")
            if chart:
                root = ET.fromstring(chart.svg)
                assert root.get("role") == "img"
                assert root.get("aria-label") == served.title
                assert "style" not in chart.svg


@pytest.mark.parametrize("kind", ["bars", "lines", "ranking", "matrix"])
def test_names_are_written_as_text(kind: str) -> None:
    labels = {"labels": (HOSTILE, "b")}
    made = table(dimension("place", ("a", "b"), **labels), dimension("year", ("2023", "2024"), role="time"))
    chart = drawn(("chart", kind), of=made)
    assert "<script" not in chart.svg
    assert any("<script>alert" in text for text in texts(chart))


def test_time_is_drawn_as_lines_and_many_columns_as_a_matrix() -> None:
    assert drawn().kind == "lines"
    flows = table(dimension("origin_state", ("a", "b")), dimension("destination_state", ("a", "b")))
    assert drawn(of=flows).kind == "matrix"
    assert drawn(of=table(dimension("sex", ("f", "m")), dimension("age", ("1", "2", "3")))).kind == "bars"


def test_a_ranking_begins_with_the_largest() -> None:
    chart = drawn(("chart", "ranking"), ("valueCodes[place]", "*"), ("valueCodes[year]", "2024"), ("stub", "place"))
    labels = [text for text in texts(chart) if ". P" in text]
    assert labels[:2] == ["1. P39 in full", "2. P38 in full"]
    assert chart.notes[0] == "The chart shows 25 of 40 figures."


def test_bars_are_as_long_as_their_figures() -> None:
    made = table(dimension("sex", ("f", "m", "x")), error=0)
    chart = drawn(("chart", "bars"), of=made)
    widths = [float(bar.get("width", 0)) for bar in ET.fromstring(chart.svg).iter(f"{SVG}rect")]
    np.testing.assert_allclose(np.array(widths) / widths[0], [1, 2, 3], rtol=0.01)


def test_scales_hold_all_values_and_zero() -> None:
    for values in ([-3.0, 8.0], [0.001, 0.002], [1e9, 3.3e9], [0.0], [-5.0]):
        found = scale(values, 100, 300)
        assert found.low <= min(*values, 0) <= max(*values, 0) <= found.high
        assert 2 <= len(found.ticks) <= 8
        assert 100 <= found.at(values[0]) <= 300
    assert number(1.5e9) == "1.5 billion"
