"""Scales hold what they show, and labels fit and tell apart."""

import re
from itertools import combinations, pairwise
from math import log10
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfumato
from sfumato.arrays import Floats
from sfumato.charts.svg import (
    PAPER,
    SERIES,
    by_itself,
    distinct,
    number,
    percent,
    room,
    scale,
    shortened,
    svg,
    wide,
    words,
)

TEXTS = st.text(alphabet="ab ,…", max_size=60) | st.builds("{} {}".format, st.just("Common " * 8), st.text(max_size=5))


@given(labels=st.lists(st.tuples(TEXTS, TEXTS), max_size=12), width=st.integers(20, 250), lines=st.integers(1, 2))
@example(labels=[("", ", aaa"), (", aa", "a")], width=20, lines=2)
def test_no_two_labels_look_the_same(labels: list[tuple[str, str]], width: int, lines: int) -> None:
    found = distinct(labels, width, lines)
    seen = [" ".join(" ".join(some).split()) for some in found]
    assert len(set(seen)) == len(labels)
    assert all(len(some) <= lines for some in found)


@given(labels=st.lists(st.tuples(TEXTS), max_size=12, unique=True), width=st.integers(80, 250))
def test_labels_fit_into_their_width(labels: list[tuple[str]], width: int) -> None:
    assert all(wide(line) <= width for some in distinct(labels, width, 2) for line in some)


def test_a_label_by_itself_is_cut_at_its_end() -> None:
    """It has all of its words in common with all others, of which there are none."""
    assert shortened(["Population of the place"], 80) == ["Population…"]


def test_there_is_room_for_the_widest_letters() -> None:
    assert room(["W"], 100) - 14 >= 24
    assert room([""], 100) == 14


@pytest.mark.parametrize("description", ["", "Highest: a < b."])
def test_a_drawing_by_itself_has_its_title_and_where_it_is_from(description: str) -> None:
    """Torn from its page, a picture in slides said neither what it showed nor who published it."""
    drawing = svg([words(5, 20, "inside")], width=300, height=40, name="Jobs & pay", description=description)
    root = ElementTree.fromstring(by_itself(drawing, title="Jobs & pay " * 6, source="Source: an office."))
    space = "{http://www.w3.org/2000/svg}"
    assert (root[0].tag, root.findtext(f"{space}title")) == (f"{space}title", "Jobs & pay")
    assert (root.findtext(f"{space}desc") or "") == description
    tall = float(root.attrib["height"])
    assert root.attrib["viewBox"] == f"0 0 324 {tall:g}"
    *heads, foot = [(text.text, float(text.attrib["y"])) for text in root.findall(f"{space}text")]
    assert (" ".join(str(text) for text, _ in heads), foot[0]) == (" ".join(["Jobs & pay"] * 6), "Source: an office.")
    (inner,) = root.findall(f"{space}g")
    down = float(str(inner.attrib["transform"]).split()[-1].rstrip(")"))
    assert heads[-1][1] < down
    assert down + 40 < foot[1] < tall


def test_labels_that_fit_are_left_alone() -> None:
    assert distinct([("One", "two"), ("One", "three")], 200) == [["One, two"], ["One, three"]]


def test_scales_hold_all_values_and_zero() -> None:
    for values in ([-3.0, 8.0], [0.001, 0.002], [1e9, 3.3e9], [0.0], [-5.0]):
        found = scale(values, 100, 300)
        assert found.low <= min(*values, 0) <= max(*values, 0) <= found.high
        assert 2 <= len(found.ticks) <= 8
        assert 100 <= found.at(values[0]) <= 300
    assert number(1.5e9) == "1.5 billion"


@pytest.mark.parametrize("kind", ["linear", "log", "symlog"])
@given(values=st.lists(st.floats(1e-6, 1e15) | st.integers(1, 10**9), min_size=1, max_size=5))
def test_ticks_are_round_and_their_texts_do_not_touch(kind: str, values: list[float]) -> None:
    found = scale(values, 0, 300, kind=kind)  # type: ignore[arg-type]
    assert found.low <= min(values) * 1.001
    assert found.high >= max(values) * 0.999
    assert found.ticks
    if kind != "linear":
        assert all(f"{tick:e}"[0] in "0125" for tick in found.ticks)
    for across, needed in ((True, wide), (False, lambda _: 12)):
        shown = found.few(number, across=across)
        assert shown
        for one, other in pairwise(shown):
            assert abs(found.at(one) - found.at(other)) >= (needed(number(one)) + needed(number(other))) / 2


def test_a_logarithmic_scale_has_equal_steps_for_equal_ratios() -> None:
    found = scale([2, 4_000], 0, 300, kind="log")
    steps = [found.at(10 * value) - found.at(value) for value in (3, 20, 400)]
    assert steps == pytest.approx([300 / log10(found.high / found.low)] * 3, abs=0.2)


def test_a_scale_on_both_sides_of_zero_is_the_same_on_both() -> None:
    found = scale([-500, 500], 0, 300, kind="symlog", constant=3)
    assert found.at(0) == 150
    for value in (1, 10, 400):
        assert found.at(value) - 150 == pytest.approx(150 - found.at(-value), abs=0.2)
    assert [tick for tick in found.ticks if tick > 0] == [10, 100]


def test_numbers_at_an_axis_are_short() -> None:
    assert percent(0.025) == "2.5%"
    assert percent(-0.3) == "-30%"


VISION = {
    "any": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
"""How people see who lack a kind of cones: Machado, Oliveira and Fernandes (2009), severity 1."""
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def xyz(colour: str, vision: object = VISION["any"]) -> Floats:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return XYZ @ np.clip(np.array(vision) @ linear, 0, 1)


def lab(colour: str, vision: object) -> Floats:
    share = xyz(colour, vision) / [0.95047, 1, 1.08883]
    x, y, z = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


STYLE = (Path(sfumato.__file__).parent / "serve/page/static/page.css").read_text(encoding="utf-8")
LIGHT, DARK = (tuple(line) for line in (re.findall(r"--s\d: (#\w+)", line) for line in STYLE.splitlines()) if line)


@pytest.mark.parametrize(("colours", "paper"), [(SERIES, PAPER), (LIGHT, "#ffffff"), (DARK, "#1d2123")])
def test_series_are_told_apart_by_people_who_are_colour_blind(colours: tuple[str, ...], paper: str) -> None:
    for vision in VISION.values():
        for one, other in combinations(colours, 2):
            assert np.linalg.norm(lab(one, vision) - lab(other, vision)) > 15, (one, other)
    for colour in colours:
        dark, bright = sorted((xyz(colour)[1], xyz(paper)[1]))
        assert (bright + 0.05) / (dark + 0.05) >= 3, "as WCAG 2.2 asks of graphics"


def test_a_page_in_light_colours_has_those_of_a_chart_by_itself() -> None:
    assert LIGHT == SERIES
