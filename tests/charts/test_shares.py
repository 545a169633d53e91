"""Bars of shares are as long as what they stand for, and say it in words."""

import re
from xml.etree import ElementTree as ET

import pytest

from sfumato.charts.shares import Row, draw_grid, draw_shares

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [Row("as written", (0.5, 0.2, 0.3), (0.25, None)), Row("<b>", (0.0, 1.0, 0.0), (1.0, 0.001))]


def drawn() -> ET.Element:
    return ET.fromstring(
        draw_shares(
            ROWS, whole="cells", parts=("used", "off", "gone"), above="found", beside=("one", "two"), name="All"
        )
    )


def bars(root: ET.Element) -> list[tuple[float, float]]:
    """The left end and the width of every bar."""
    found = [rect for rect in root.iter(f"{SVG}rect") if rect.get("stroke-width") == "0.5"]
    return [(float(rect.attrib["x"]), float(rect.attrib["width"])) for rect in found]


def test_the_parts_of_a_whole_lie_end_to_end_and_fill_it() -> None:
    used, off, gone, beside, *_ = bars(drawn())
    whole = used[1] + off[1] + gone[1]
    assert [width / whole for _, width in (used, off, gone)] == pytest.approx([0.5, 0.2, 0.3], abs=0.01)
    assert off[0] == pytest.approx(used[0] + used[1], abs=0.2)
    assert gone[0] == pytest.approx(off[0] + off[1], abs=0.2)
    assert beside[0] > used[0] + whole, "what stands beside it has a place of its own"


def test_a_share_of_nothing_is_told_apart_from_a_share_of_none_that_was_found() -> None:
    texts = [text.text for text in drawn().iter(f"{SVG}text")]
    assert "no target" in texts
    assert "under 1%" in texts
    said = drawn().findtext(f"{SVG}desc") or ""
    assert said == (
        "as written: used 50%, off 20%, gone 30%, one 25%, two no target; "
        "<b>: used 0%, off 100%, gone 0%, one 100%, two under 1%."
    )


@pytest.mark.parametrize(("wanted", "dark"), [(True, ["0.10", "0.60"]), (False, ["0.20", "1.00"])])
def test_a_grid_is_darker_where_shares_are_larger_and_dashed_where_there_are_none(
    wanted: bool, dark: list[str]
) -> None:
    rows = [("a", (0.1, 0.6)), ("b", (None, None))]
    grid = draw_grid(rows, ["x", "y"], title="Used", over="by size", name="Used", wanted=wanted)
    shades = [one for one in re.findall(r'fill-opacity="([\d.]+)"', grid) if one != "0.5"]
    assert shades == dark
    assert grid.count("stroke-dasharray") == 2
