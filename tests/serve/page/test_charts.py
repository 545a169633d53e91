"""Charts say what the table says, as SVG that any program can read."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.page.charts import Chart, chart_of
from sfumato.serve.page.question import CHARTS
from sfumato.serve.page.reading import read
from sfumato.serve.page.view import view_of
from tests.serve.page.made import dimension, table

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
                assert root.get("role") == ("group" if chart.kind == "map" else "img")  # areas have names of their own
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


def test_a_chart_of_one_indicator_is_called_by_its_name() -> None:
    """Figures of several kinds are called Value, and have no common unit."""
    indicator = dimension("indicator", ("jobs", "pay"), labels=("Jobs at the beginning", "Average pay"))
    made = table(dimension("place", ("a", "b")), indicator)
    several = replace(made.metrics[0], label="Value", unit="jobs, or units of earnings")
    made = replace(made, metrics=(several, made.metrics[1]))
    shown = [("valueCodes[place]", "*"), ("stub", "place"), ("heading", "")]
    assert drawn(*shown, ("valueCodes[indicator]", "pay"), of=made).title == "Average pay"
    assert drawn(*shown[:1], ("valueCodes[indicator]", "*"), of=made).title == "Value (jobs, or units of earnings)"


def test_a_unit_is_left_out_only_where_the_label_has_it_as_a_word() -> None:
    made = table(dimension("place", ("a", "b")))
    for label, unit, title in (("Output", "t", "Output (t)"), ("Jobs per worker", "jobs", "Jobs per worker")):
        metric = replace(made.metrics[0], label=label, unit=unit)
        chart = drawn(("valueCodes[place]", "*"), of=replace(made, metrics=(metric, made.metrics[1])))
        assert chart.title == title


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


def whiskers(chart: Chart) -> list[str | None]:
    """The dashes of the lines through bars, in order."""
    lines = [path for path in ET.fromstring(chart.svg).iter(f"{SVG}path") if "H" in (path.get("d") or "")]
    return [path.get("stroke-dasharray") for path in lines if (path.get("class") or "").startswith("whisker")]


@pytest.mark.parametrize("kind", ["bars", "ranking"])
def test_the_line_of_an_error_without_limit_is_open_and_explained(kind: str) -> None:
    made = table(dimension("sex", ("f", "m", "x")), untold=2)
    chart = drawn(("chart", kind), of=made)
    root = ET.fromstring(chart.svg)
    dashes = whiskers(chart)
    assert dashes[-1]  # the one beside the explanation
    assert sorted(map(bool, dashes[:-1])) == [False, True, True]
    ends = [float(path.get("d", "").split("H")[1]) for path in root.iter(f"{SVG}path") if path.get("stroke-dasharray")]
    assert len(set(ends[:2])) == 1
    assert ends[0] >= max(float(bar.get("x", 0)) + float(bar.get("width", 0)) for bar in root.iter(f"{SVG}rect"))
    assert any(text.startswith("Dashed arrows: the error has no limit") for text in texts(chart))
    assert any("Dashed arrows" in note and "are 2" in note for note in chart.notes)
    told = root.findtext(f"{SVG}desc") or ""
    assert "no limit to the error" in told.lower()
    assert ("x in full" in told) == (kind == "ranking")
    assert "f in full" in told
    assert "m in full" in told


def test_a_chart_whose_errors_are_known_has_no_open_lines() -> None:
    chart = drawn(("chart", "bars"), of=table(dimension("sex", ("f", "m", "x"))))
    assert whiskers(chart) == [None] * 3
    assert "limit" not in chart.svg
    assert chart.notes == ()


INDUSTRIES = tuple(
    f"Manufacture of machinery, equipment and other durable goods for the {use} industry, not elsewhere classified"
    for use in ("food", "paper", "textile")
)
LONG = table(
    dimension("industry", ("1", "2", "3"), labels=INDUSTRIES),
    dimension(
        "size", ("a", "b"), labels=("Establishments with fewer than 20 jobs", "Establishments with 20 jobs or more")
    ),
    dimension("year", ("2024",), labels=("Reference year 2024",)),
)
BOTH = [
    ("stub", "industry,year"),
    ("heading", "size"),
    *((f"valueCodes[{name}]", "*") for name in ("industry", "size", "year")),
]


def visible(chart: Chart) -> list[str]:
    """The labels of bars as they are seen, without ranks."""
    found = []
    for text in ET.fromstring(chart.svg).iter(f"{SVG}text"):
        if text.get("class") == "label":
            lines = [text.text or "", *(span.text or "" for span in text.iter(f"{SVG}tspan"))]
            found.append(re.sub(r"^\d+\. ", "", " ".join(filter(None, lines))))
    return found


def test_labels_of_a_ranking_tell_its_bars_apart() -> None:
    chart = drawn(("chart", "ranking"), *BOTH, of=LONG)
    labels = visible(chart)
    assert len(set(labels)) == len(labels) == 6
    for use in ("food", "paper", "textile"):
        assert sum(use in label for label in labels) == 2
    assert "Reference year 2024" in chart.title  # what all bars share
    assert not any("2024" in label for label in labels)
    told = ET.fromstring(chart.svg).findtext(f"{SVG}desc") or ""
    assert f"1. {INDUSTRIES[2]}, Reference year 2024, Establishments with 20 jobs or more: 6" in told


def test_a_label_that_was_cut_is_there_in_full() -> None:
    chart = drawn(("chart", "bars"), *BOTH, of=LONG)
    titles = [title.text or "" for title in ET.fromstring(chart.svg).iter(f"{SVG}title")]
    assert all(any(title.startswith(industry) for title in titles) for industry in INDUSTRIES)


def test_lines_without_a_figure_are_not_said_to_be_left_out() -> None:
    made = table(dimension("place", ("a", "b", "c")), dimension("year", ("2023", "2024"), role="time"))
    question = read(made, [("chart", "lines")])
    view = view_of(question, question.selection())
    some = view.values.copy()
    some[1:] = np.nan
    chart = chart_of(replace(view, values=some), question, name="Jobs by place")
    assert chart is not None
    assert chart.notes == ()
    assert drawn(("chart", "lines")).notes == ("The chart shows the 8 highest of 40 lines.",)
