"""Scales hold what they show, and labels fit and tell apart."""

from itertools import pairwise
from math import log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.charts.svg import PAPER, SERIES, distinct, number, percent, scale, wide

TEXTS = st.text(alphabet="ab ,…", max_size=60) | st.builds("{} {}".format, st.just("Common " * 8), st.text(max_size=5))


@given(labels=st.lists(st.tuples(TEXTS, TEXTS), max_size=12), width=st.integers(20, 250), lines=st.integers(1, 2))
def test_no_two_labels_look_the_same(labels: list[tuple[str, str]], width: int, lines: int) -> None:
    found = distinct(labels, width, lines)
    seen = [" ".join(" ".join(some).split()) for some in found]
    assert len(set(seen)) == len(labels)
    assert all(len(some) <= lines for some in found)


@given(labels=st.lists(st.tuples(TEXTS), max_size=12, unique=True), width=st.integers(80, 250))
def test_labels_fit_into_their_width(labels: list[tuple[str]], width: int) -> None:
    assert all(wide(line) <= width for some in distinct(labels, width, 2) for line in some)


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


def light(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_stands_out_from_the_paper() -> None:
    for colour in SERIES:
        assert (light(PAPER) + 0.05) / (light(colour) + 0.05) >= 3, "as WCAG 2.2 asks of graphics"
