"""Maps say in shades and words what figures say in numbers."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from sfumato.charts.maps import (
    CAUTION,
    COLOURS,
    MOST_FLOWS,
    SURE,
    UNCERTAIN,
    Area,
    Flow,
    MapPanel,
    classify,
    draw_flows,
    draw_map,
)
from sfumato.geography.areas import Geography
from sfumato.geography.project import Projected

SVG = "{http://www.w3.org/2000/svg}"


def grid(count: int) -> Projected:
    """Squares side by side, ten in a row, in positions that are on paper already."""
    corners = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [0.0, 100.0]])
    places = [(1_000 + 100 * (at % 10), 1_000 - 100 * (at // 10)) for at in range(count)]
    return Projected.of(Geography(areas={f"A{at}": ((corners + place,),) for at, place in enumerate(places)}))


def drawn(areas: dict[str, Area], count: int = 20, panels: int = 1) -> ET.Element:
    text = draw_map(
        grid(count),
        [MapPanel(f"map {number}" if panels > 1 else "", areas) for number in range(panels)],
        title="Jobs",
        name="Jobs by place",
        description="In words.",
    )
    return ET.fromstring(text)


def fills(drawing: ET.Element) -> list[str]:
    """How areas are filled, in their order."""
    return [group[1].attrib["fill"] for group in drawing.iter() if group.attrib.get("class") == "area"]


def test_classes_hold_about_as_many_figures_each_between_round_numbers() -> None:
    values = np.random.default_rng(1).lognormal(5, 2, 1_000).tolist()
    classes = classify(values)
    sizes = [sum(classes.of(value) == colour for value in values) for colour in classes.colours]
    assert len(sizes) == 5
    assert all(150 < size < 250 for size in sizes)
    assert all(float(f"{bound:.2g}") == bound for bound in classes.breaks)


def test_the_few_figures_beside_many_that_are_alike_have_classes_of_their_own() -> None:
    """A map of rare industries was one shade: all quantiles were 0."""
    values = [0.0] * 180 + [float(at) ** 2 for at in range(1, 21)]
    classes = classify(values)
    assert len(classes.breaks) == 4
    assert len({classes.of(value) for value in values}) == 5


@pytest.mark.parametrize(("values", "colours"), [([], 1), ([7], 1), ([7, 7, 7], 1), ([1, 2], 2), ([1, 2, 3], 3)])
def test_there_are_never_more_classes_than_different_figures(values: list[float], colours: int) -> None:
    assert len(classify(values).colours) == colours


def test_figures_on_both_sides_of_zero_have_colours_for_both() -> None:
    classes = classify([-30, -20, -10, -5, 5, 10, 20, 30])
    assert 0.0 in classes.breaks
    assert classes.of(-30).startswith("n")
    assert classes.of(30).startswith("q")
    assert len(classes.colours) == len(classes.breaks) + 1 == len(set(classes.colours))
    # A few counts below zero are noise, and no side of their own.
    assert not any(colour.startswith("n") for colour in classify([-1, *range(100)]).colours)


def test_higher_figures_are_darker_uncertain_ones_hatched_and_missing_ones_dotted() -> None:
    areas = {f"A{at}": Area(float(at), SURE, f"A{at}: {at}") for at in range(10)}
    areas |= {"A10": Area(9.0, CAUTION, "a"), "A11": Area(9.0, UNCERTAIN, "b"), "A12": Area(np.nan, SURE, "c")}
    drawing = drawn(areas)
    found = fills(drawing)
    order = [list(COLOURS.values()).index(fill) for fill in found[:10]]
    assert order == sorted(order)
    assert order[0] < order[-1]
    assert re.fullmatch(r"url\(#map-h1-q\d\)", found[10])
    assert re.fullmatch(r"url\(#map-h2-q\d\)", found[11])
    assert found[12] == "url(#map-gone)"
    defined = {pattern.attrib["id"] for pattern in drawing.iter(f"{SVG}pattern")}
    assert {re.sub(r"url\(#(.*)\)", r"\1", fill) for fill in found[10:]} <= defined
    said = [text.text for text in drawing.iter(f"{SVG}text")]
    assert {"use with caution", "too uncertain for most uses", "not published", "not selected"} <= set(said)


def test_the_key_names_nothing_that_is_not_there() -> None:
    drawing = drawn({f"A{at}": Area(float(at), SURE, str(at)) for at in range(20)})
    said = {text.text for text in drawing.iter(f"{SVG}text")}
    assert not said & {"use with caution", "too uncertain for most uses", "not published", "not selected"}
    assert {"0", "19"} <= said


def test_areas_have_names_and_lead_to_their_rows_and_the_map_is_a_group() -> None:
    drawing = drawn({"A0": Area(1.0, SURE, 'Ford & "Mill": 1', "r0-0"), "A1": Area(2.0, SURE, "Mill: 2")})
    assert drawing.attrib["role"] == "group"
    assert drawing.attrib["aria-label"] == "Jobs by place"
    linked, alone = (one for one in drawing.iter() if one.attrib.get("class") == "area")
    assert (linked.tag, linked.attrib["href"]) == (f"{SVG}a", "#r0-0")
    assert linked.attrib["aria-label"] == 'Ford & "Mill": 1'
    assert (alone.tag, alone.attrib["role"]) == (f"{SVG}g", "img")


def test_chosen_areas_are_enlarged_where_they_are_a_small_part_of_the_map() -> None:
    def width(areas: dict[str, Area]) -> float:
        (first, *_) = (one for one in drawn(areas, count=100).iter() if one.attrib.get("class") == "area")
        return max(abs(float(step)) for step in re.findall(r"-?[\d.]+", first[1].attrib["d"])[2:])

    few = {f"A{at}": Area(1.0, SURE, "") for at in (0, 1, 10)}
    assert width(few) > 3 * width({f"A{at}": Area(1.0, SURE, "") for at in range(100)})


def test_several_maps_have_the_same_classes() -> None:
    drawing = drawn({f"A{at}": Area(float(at), SURE, "") for at in range(20)}, panels=3)
    assert fills(drawing)[:20] == fills(drawing)[40:]
    assert {"map 0", "map 2"} <= {text.text for text in drawing.iter(f"{SVG}text")}


def flows(*given: Flow, directed: bool = True) -> ET.Element:
    text = draw_flows(
        grid(20),
        given,
        codes=["A0", "A5", "A19"],
        directed=directed,
        title="Moves",
        name="Moves",
        description="In words.",
    )
    return ET.fromstring(text)


def test_flows_are_as_wide_as_they_are_large_and_there_and_back_are_two() -> None:
    there, back = Flow("A0", "A19", 100, "there", "r0-1"), Flow("A19", "A0", 50, "back")
    drawing = flows(there, back, Flow("A5", "A5", 10, "stays"))
    lines = [one for one in drawing.iter() if one.attrib.get("class") == "flow"]
    assert [line.attrib["aria-label"] for line in lines] == ["stays", "there", "back"]
    assert lines[0][1].tag == f"{SVG}circle"
    widths = [float(line[1].attrib["stroke-width"]) for line in lines[1:]]
    assert widths[0] == 2 * widths[1]
    assert [len(line) for line in lines[1:]] == [3, 3]  # a title, a line and a head
    bends = [re.search(r"Q(\S+ \S+) ", line[1].attrib["d"]) for line in lines[1:]]
    assert len({bend[1] for bend in bends if bend}) == 2


def test_pairs_without_a_direction_are_plain_lines() -> None:
    (line,) = (one for one in flows(Flow("A0", "A5", 1, ""), directed=False).iter() if one.get("class") == "flow")
    assert len(line) == 2


def test_thousands_of_areas_are_a_map_of_a_size_that_browsers_bear() -> None:
    areas = {f"A{at}": Area(float(at), SURE, f"Area {at}: {at}", f"r0-{at}") for at in range(5_000)}
    text = draw_map(grid(5_000), [MapPanel("", areas)], title="t", name="n", description="d")
    assert len(text) < 1_500_000
    assert MOST_FLOWS == 40
