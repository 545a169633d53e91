"""The page shows a map where a variable is on one, and says of every area what the table says of its row."""

import re
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from sfumato.geography.areas import Geography
from sfumato.geography.project import Projected
from sfumato.serve.core.model import Grouping, ServedTable, grouped
from sfumato.serve.page import maps
from sfumato.serve.page.charts import Chart, chart_of
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.reading import read
from sfumato.serve.page.sheet import sheet_of
from sfumato.serve.page.table_page import _displays
from sfumato.serve.page.view import view_of
from tests.serve.page.made import dimension, table

PLACES = tuple(f"P{at}" for at in range(6))


def grid(codes: tuple[str, ...]) -> Projected:
    side = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [0.0, 100.0]])
    return Projected.of(
        Geography(areas={code: ((side + np.array([1_000 + 100 * at, 0]),),) for at, code in enumerate(codes)})
    )


MAP = grid((*PLACES, "P9"))


def on_map(name: str, codes: tuple[str, ...] = PLACES, **changes: Any) -> Any:
    return dimension(name, codes, geography=MAP, **changes)


def asked(of: ServedTable, query: str = "") -> ReaderQuestion:
    return read(of, parse_qsl(query))


def shown(of: ServedTable, query: str = "", *, linked: bool = True) -> Chart:
    question = asked(of, query)
    chart = chart_of(view_of(question, question.selection()), question, name="Name", linked=linked)
    assert chart is not None
    return chart


def areas(chart: Chart) -> dict[str, str]:
    """What is said of areas, by the row they lead to, in their order."""
    found = re.findall(r'<a class="(?:area|flow)" href="#([^"]*)" aria-label="([^"]*)"', chart.svg)
    assert len(found) == len(set(found))
    return dict(found)


def test_a_table_by_areas_opens_as_a_map_and_other_tables_do_not() -> None:
    assert shown(table(on_map("place"))).kind == "map"
    assert shown(table(dimension("place", PLACES))).kind == "bars"
    assert "map" in dict(_displays(table(on_map("place")))[0][2])
    assert "map" not in dict(_displays(table(dimension("place", PLACES)))[0][2])


def test_every_area_says_what_its_row_says_and_leads_there() -> None:
    of = table(on_map("place"), error=0.3)
    question = asked(of, "order=largest")
    view = view_of(question, question.selection())
    sheet, found = sheet_of(view, question), areas(shown(of, "order=largest"))
    assert list(found) == [line.heads[-1].id for line in sheet.lines]
    for line, said in zip(sheet.lines, found.values(), strict=True):
        value, error = line.cells
        assert said == f"{line.heads[-1].text}: {value.text}, error {error.text}; {value.spoken}"
    assert "hatched" in " ".join(shown(of).notes)
    assert "url(#map-h1-" in shown(of).svg


def test_reliable_figures_are_not_hatched() -> None:
    chart = shown(table(on_map("place"), error=0.1))
    assert "url(#map-h" not in chart.svg
    assert chart.notes == ("Highest: P5 in full: 6. Lowest: P0 in full: 1.",)


def test_totals_and_codes_without_an_area_are_not_on_the_map() -> None:
    of = table(on_map("place", (*PLACES, "abroad", "total"), total="total", eliminable=True))
    chart = shown(of, "totals=1")
    assert len(areas(chart)) == len(PLACES)
    assert "Not on the map: abroad in full." in chart.notes


def test_few_columns_are_maps_side_by_side_and_many_a_matrix() -> None:
    few, many = (table(on_map("place"), dimension("sex", tuple("abcdefghij"[:count]))) for count in (3, 10))
    chart = shown(few)
    assert chart.kind == "map"
    assert chart.svg.count('class="area"') == 3 * len(PLACES)
    assert "b in full" in chart.svg
    assert shown(many).kind == "matrix"
    assert f"The chart shows {maps.MOST_PANELS} of 10 maps" in " ".join(shown(many, "chart=map").notes)


def test_where_another_variable_shows_its_total_alone_the_map_is_of_that() -> None:
    sex, alone = (
        dimension("sex", ("F", "M", "total"), total="total"),
        "valueCodes[sex]=total&heading=sex&totals=1&chart=map",
    )
    chart = shown(table(on_map("place"), sex), f"valueCodes[place]=*&stub=place&{alone}")
    assert len(areas(chart)) == len(PLACES)
    flows = table(on_map("origin_place"), on_map("destination_place"), sex)
    ends = "valueCodes[origin_place]=*&valueCodes[destination_place]=*&stub=origin_place,destination_place"
    assert len(areas(shown(flows, f"{ends}&{alone}"))) > 0


def test_a_map_of_columns_leads_to_the_heads_of_columns() -> None:
    query = "valueCodes[place]=*&valueCodes[sex]=*&stub=sex&heading=place&chart=map"
    of = table(on_map("place"), dimension("sex", ("F", "M")))
    question = asked(of, query)
    sheet = sheet_of(view_of(question, question.selection()), question)
    assert set(areas(shown(of, query))) == {head.id for head in sheet.above[0]}


def test_groups_of_codes_keep_the_map_and_the_areas_they_are_made_of() -> None:
    groups = {"west": ("West", PLACES[:3]), "east": ("East", PLACES[3:])}
    whole = on_map("place", groupings=(Grouping(id="halves", label="Halves", groups=groups),))
    found = grouped(whole, "halves")
    assert found.geography is MAP
    assert [found.members(at) for at in range(2)] == [PLACES[:3], PLACES[3:]]


def test_a_chart_by_itself_has_no_links() -> None:
    chart = shown(table(on_map("place")), linked=False)
    assert "<a " not in chart.svg
    assert chart.svg.count('class="area"') == len(PLACES)


def test_two_variables_on_one_map_are_flows() -> None:
    chart = shown(table(on_map("origin_place"), on_map("destination_place")))
    assert chart.kind == "map"
    # Figures are 1, 2, 3, … by row; the largest that moves is from the last to the last but one.
    assert chart.notes[0].startswith("Largest: P5 in full to P4 in full: 35")
    assert chart.svg.count('class="flow"') == 36
    assert chart.svg.count("<circle") == len(PLACES) + 1  # what stays, and one in the key
    assert shown(table(on_map("home"), on_map("work"))).svg.count('class="flow"') == 36


def test_flows_go_the_same_way_when_rows_and_columns_are_swapped() -> None:
    of = table(on_map("work"), on_map("home", destination="work"))
    chart = shown(of)
    assert chart.notes[0].startswith("Largest: P4 in full to P5 in full: 35")
    assert asked(of).placed("rows")[0].name == "home"
    question = asked(of).turned()
    turned = chart_of(view_of(question, question.selection()), question, name="Name")
    assert turned is not None
    assert turned.notes == chart.notes
    said = [set(re.findall(r'aria-label="([^"]* to [^"]*)"', one.svg)) for one in (chart, turned)]
    assert said[0] == said[1]
    assert len(said[0]) == 30


def test_pairs_without_a_direction_are_drawn_once() -> None:
    chart = shown(table(on_map("first_place"), on_map("second_place")))
    assert chart.svg.count('class="flow"') == 21
    assert "P0 in full and P5 in full" in chart.svg


def test_a_pair_that_is_shown_one_way_only_is_drawn() -> None:
    query = "valueCodes[first_place]=P4,P5&valueCodes[second_place]=P0,P1&stub=first_place&heading=second_place"
    chart = shown(table(on_map("first_place"), on_map("second_place")), query)
    assert chart.svg.count('class="flow"') == 4


def test_variables_on_different_maps_are_no_flows() -> None:
    other = dimension("work", PLACES, geography=grid(PLACES))
    assert "flow" not in shown(table(on_map("home"), other)).svg


def test_only_the_largest_flows_are_drawn() -> None:
    codes = tuple(f"P{at}" for at in range(12))
    big = grid(codes)
    of = table(*(dimension(name, codes, geography=big) for name in ("origin_place", "destination_place")))
    chart = shown(of)
    assert chart.svg.count('class="flow"') == 40 + 12
    assert "Lines are the 40 largest of 132 flows." in chart.notes


def test_too_many_areas_are_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST_AREAS", 5)
    assert shown(table(on_map("place"))).kind == "bars"
    assert shown(table(on_map("place")), "chart=map").kind == "bars"
    assert shown(table(on_map("place")), "chart=map&valueCodes[place]=P0,P1,P2").kind == "map"
    monkeypatch.setattr(maps, "MOST_AREAS", 12)
    several = shown(table(on_map("place"), dimension("sex", ("a", "b", "c"))), "chart=map")
    assert several.svg.count('class="area"') == 2 * len(PLACES)
    assert "The chart shows 2 of 3 maps" in " ".join(several.notes)
