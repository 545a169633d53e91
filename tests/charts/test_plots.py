"""Charts show each series at its values, and are SVG that needs nothing else."""

import re
from itertools import pairwise
from math import inf, nan
from xml.etree import ElementTree as ET

import pytest

from sfumato.charts.plots import Axis, Bar, Group, Mark, Panel, draw_bars, draw_lines, draw_panels
from sfumato.charts.svg import on_paper, scale

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script> & \"so on\""
SIZE = (200.0, 100.0)


def drawn(*marks: Mark, x: Axis | None = None, y: Axis | None = None, series: tuple[str, ...] = ()) -> ET.Element:
    panel = Panel(x or Axis(title="size"), y or Axis(title="error"), marks)
    return ET.fromstring(draw_panels([panel], title="Errors", series=series, size=SIZE))


def shapes(root: ET.Element, kind: str) -> list[str]:
    """The shapes of a class inside of panels, not those of the key."""
    return [path.get("d", "") for path in root.iterfind(f"{SVG}g/{SVG}path") if path.get("class") == kind]


def starts(shape: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.e+-]+) ([\d.e+-]+)", shape)]


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_texts_in_place_of_bars_do_not_touch() -> None:
    gone = Bar(nan, nan, nan, "not published")
    drawing = ET.fromstring(draw_bars([Group(("a",), [gone] * 3, "a")], ["x", "y", "z"], title="Jobs", name="Jobs"))
    lines = [float(text.attrib["y"]) for text in drawing.iter(f"{SVG}text") if text.text == "not published"]
    assert [later - before for before, later in pairwise(lines)] == [14, 14]


@pytest.mark.parametrize("kind", ["linear", "log", "symlog"])
def test_points_are_at_their_values(kind: str) -> None:
    values = [3.0, 70.0, 900.0]
    axes = [Axis(title=title, kind=kind) for title in ("size", "error")]  # type: ignore[arg-type]
    root = drawn(Mark(kind="points", x=values, y=values[::-1], series=0), x=axes[0], y=axes[1])
    across, up = scale(values, 0, 200, kind=kind), scale(values, 100, 0, kind=kind)  # type: ignore[arg-type]
    (shape,) = shapes(root, "s0")
    assert starts(shape) == [(across.at(x), up.at(y)) for x, y in zip(values, values[::-1], strict=True)]


def test_a_cloud_shows_every_point_once() -> None:
    root = drawn(Mark(kind="points", x=range(100), y=range(100), series=0))
    found = [point for shape in shapes(root, "s0") for point in starts(shape)]
    assert sorted(found) == [(2.0 * at, 100.0 - at) for at in range(100)]


def test_columns_are_as_high_as_their_values_beside_each_other() -> None:
    classes = Axis(title="size", classes=("small", "large"))
    marks = [Mark(kind="columns", x=(0, 1), y=heights, series=at) for at, heights in enumerate(((1, 4), (2, nan)))]
    root = drawn(*marks, x=classes, series=("observed", "expected"))
    up = scale([1, 4, 2], 100, 0)
    for at, heights in enumerate(((1, 4), (2,))):
        (shape,) = shapes(root, f"s{at}")
        assert re.findall(r"V([\d.]+)h", shape) == [f"{up.at(height):g}" for height in heights]
    first, second = (starts(shapes(root, f"s{at}")[0])[0][0] for at in (0, 1))
    assert second - first == pytest.approx(200 / 2 * 0.8 / 2)
    assert {"observed", "expected", "small", "large"} <= set(texts(root))


def test_lines_have_gaps_and_steps_have_corners() -> None:
    root = drawn(
        Mark(kind="line", x=range(5), y=(0, 1, nan, 1, 2), series=0), Mark(kind="steps", x=(0, 4), y=(1, 2), series=1)
    )
    (line,), (steps,) = shapes(root, "l0"), shapes(root, "l1")
    assert (line.count("M"), line.count("L")) == (2, 2)
    assert re.fullmatch(r"M0 [\d.]+H[\d.]+V[\d.]+", steps)


def test_a_band_goes_there_and_back() -> None:
    (band,) = shapes(drawn(Mark(kind="band", x=(0, 1), y=(0, 1), top=(2, 4), series=0)), "s0")
    assert band == "M0 100L200 75L200 0L0 50z"


def test_a_line_without_an_end_goes_from_side_to_side() -> None:
    root = drawn(Mark(kind="line", x=(-inf, inf), y=(1, 1), dash="4 3"), Mark(kind="points", x=(0, 3), y=(0, 2)))
    assert "M0 50L200 50" in shapes(root, "zero")


def test_panels_that_share_an_axis_have_the_same_ends() -> None:
    x, shared = Axis(title="size"), Axis(title="error")
    marks = [[Mark(kind="points", x=(0, 1), y=(0, top), series=0)] for top in (1, 1000)]
    same = [Panel(x, shared, some) for some in marks]
    own = [Panel(x, Axis(title="error"), some) for some in marks]
    heights = []
    for panels in (same, own):
        root = ET.fromstring(draw_panels(panels, title="Errors", size=SIZE))
        heights.append([starts(shape)[1][1] for shape in shapes(root, "s0")])
    assert heights == [[99.9, 0], [0, 0]]


def test_series_differ_in_more_than_their_colour() -> None:
    names = tuple(f"series {at}" for at in range(10))
    root = drawn(*(Mark(kind="line", x=(0, 1), y=(at, at), series=at) for at in range(10)), series=names)
    assert set(names) <= set(texts(root))
    lines = [path for path in root.iterfind(f"{SVG}g/{SVG}path") if (path.get("class") or "").startswith("l")]
    marks = [path.get("d", "") for path in root.iterfind(f"{SVG}g/{SVG}path") if path.get("class", "")[0] == "s"]
    looks = {
        (line.get("stroke"), line.get("stroke-dasharray"), mark.partition("m")[2].partition("M")[0])
        for line, mark in zip(lines, marks, strict=True)
    }
    assert len(looks) == 10
    assert len({(dash, mark) for _, dash, mark in looks}) == 10, "without any colour, too"


def test_long_names_of_classes_are_turned_and_there_in_full() -> None:
    classes = tuple(
        f"Manufacture of machinery and other goods for the {use} industry" for use in ("food", "paper", "oil")
    )
    root = drawn(Mark(kind="columns", x=range(3), y=(1, 2, 3), series=0), x=Axis(title="industry", classes=classes))
    assert {title.text for title in root.iter(f"{SVG}title")} >= set(classes)
    assert sum("rotate" in (group.get("transform") or "") for group in root.iter(f"{SVG}g")) == 3
    assert float(root.get("height", 0)) > SIZE[1] + 100


def hostile_charts() -> list[str]:
    x = Axis(title=HOSTILE, classes=(HOSTILE, "b"))
    marks = [Mark(kind="points", x=(0, 1), y=(1, 2), series=0, texts=(HOSTILE, HOSTILE))]
    bars = draw_bars([Group((HOSTILE,), [Bar(1, 0, 2, HOSTILE)], HOSTILE)], [HOSTILE], title=HOSTILE, name=HOSTILE)
    lines = draw_lines([(HOSTILE, (1, 2))], (HOSTILE, "b"), title=HOSTILE, name=HOSTILE)
    panels = draw_panels([Panel(x, Axis(title=HOSTILE), marks, HOSTILE)], title=HOSTILE, series=(HOSTILE,))
    return [bars, lines, panels, on_paper(panels)]


@pytest.mark.parametrize("chart", hostile_charts())
def test_a_chart_needs_nothing_else_and_says_what_it_is(chart: str) -> None:
    root = ET.fromstring(chart)
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext(f"{SVG}title") == HOSTILE
    assert not {"script", "style", "image", "use", "a"} & {element.tag.removeprefix(SVG) for element in root.iter()}
    assert not re.search(r"(href|src|url|http)", chart.replace("http://www.w3.org/2000/svg", ""))
    assert any("<script>alert" in text for text in texts(root))


def test_panels_are_described_in_words() -> None:
    root = drawn(Mark(kind="points", x=(0, 1), y=(1, 2), series=0), series=("observed",))
    assert root.findtext(f"{SVG}desc") == "error by size; series: observed."
    assert {"size", "error", "Errors", "observed"} <= set(texts(root))
