"""Maps are read as offices have them, and what is wrong with one is said before anything is charged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ReleaseError
from sfumato.geography import read
from sfumato.geography.areas import Geography, signed_area
from sfumato.geography.read import MapFile
from tests.geography.shapes import collection, feature, square, written


def opened(tmp_path: Path, content: Any, **options: Any) -> Geography:
    written(tmp_path / "map.json", content)
    return MapFile(path=Path("map.json"), **options).read(tmp_path)


def refused(tmp_path: Path, content: Any, **options: Any) -> str:
    with pytest.raises(ReleaseError) as raised:
        opened(tmp_path, content, **options)
    assert raised.value.do
    return str(raised.value)


def test_areas_are_found_by_code_by_id_or_by_the_property_that_is_named(tmp_path: Path) -> None:
    named = feature(None, square(0, 0), GEOID="07")
    for content, options in (
        (feature("07", square(0, 0)), {}),
        ({**feature(None, square(0, 0)), "id": "07"}, {}),
        ({**named, "properties": {"id": "07"}}, {}),
        (named, {"key": "GEOID"}),
    ):
        assert list(opened(tmp_path, collection(content), **options).areas) == ["07"]


def test_whole_numbers_are_codes_and_features_of_one_code_are_one_area(tmp_path: Path) -> None:
    found = opened(tmp_path, collection(feature(7, square(0, 0)), feature(7, square(3, 0)), feature(8, square(5, 0))))
    assert {code: len(area) for code, area in found.areas.items()} == {"7": 2, "8": 1}


def test_topojson_gives_the_areas_that_geojson_gives(tmp_path: Path) -> None:
    # Two squares side by side; their common side is arc 0, which the right one has backwards.
    topology: dict[str, Any] = {
        "type": "Topology",
        "transform": {"scale": [0.5, 0.5], "translate": [10, 20]},
        "arcs": [[[2, 0], [0, 2]], [[2, 2], [-2, 0], [0, -2], [2, 0]], [[2, 0], [2, 0], [0, 2], [-2, 0]]],
        "objects": {
            "other": {"type": "GeometryCollection", "geometries": []},
            "areas": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "properties": {"code": "A"}, "arcs": [[0, 1]]},
                    {"type": "MultiPolygon", "properties": {"code": "B"}, "arcs": [[[2, -1]]]},
                ],
            },
        },
    }
    found = opened(tmp_path, topology, layer="areas")
    expected = opened(tmp_path, collection(feature("A", square(10, 20)), feature("B", square(11, 20))))
    for code in "AB":
        ((ring,),), ((other,),) = found.areas[code], expected.areas[code]
        assert {tuple(corner) for corner in ring.tolist()} == {tuple(corner) for corner in other.tolist()}
        assert abs(signed_area(ring)) == 1
    assert "one of other, areas" in refused(tmp_path, topology)
    assert "'towns'" in refused(tmp_path, topology, layer="towns")
    assert "check it" in refused(tmp_path, {**topology, "arcs": []}, layer="areas")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("no json", "Expecting value"),
        ("[1]", "list"),
        ({"type": "Feature"}, "Feature"),
        ({"type": "FeatureCollection", "features": {}}, "dict"),
        ({"type": "FeatureCollection", "features": [1]}, "1"),
        (collection(), "none"),
        (collection(feature(None, square(0, 0))), "none"),
        (collection(feature(1.5, square(0, 0))), "1.5"),
        (collection(feature("A", [0, 0], "Point")), "Point"),
        (collection(feature("A", "here")), "something else"),
        (collection(feature("A", [[]])), "something else"),
        (collection(feature("A", [[[0, 0], [1, 1]]])), "something else"),
        (collection(feature("A", [[["0", "0"], ["1", "0"], ["1", "1"]]])), "something else"),
        (collection(feature("A", [[[0, 0], [1], [1, 1]]])), "something else"),
        ('{"type": "FeatureCollection", "features": [NaN]}', "NaN"),
        (collection(feature("A", [[[0, 0], [1e999, 0], [1, 1]]])), "no number of JSON"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_map_is_refused_in_words(tmp_path: Path, content: Any, found: str) -> None:
    assert found in refused(tmp_path, content)


def test_numbers_too_large_for_a_position_are_refused(tmp_path: Path) -> None:
    text = '{"type":"FeatureCollection","features":[{"properties":{"code":"A"},"geometry":{"type":"Polygon",'
    assert "finite" in refused(tmp_path, text + '"coordinates":[[[0,0],[1e999,0],[1,1]]]}}]}')


@pytest.mark.parametrize("far", [1e308, 1e200, -1e154, 1.1e9])
def test_positions_are_degrees_or_lengths_that_someone_could_mean(tmp_path: Path, far: float) -> None:
    areas = collection(feature("A", square(0, 0)), feature("B", [[[0, 0], [far, 0], [far, far], [0, far]]]))
    text = refused(tmp_path, areas)
    assert f"{abs(far):g} in the area 'B'" in text
    assert "between -1,000,000,000 and 1,000,000,000" in text


BOW_TIE = [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]


@pytest.mark.parametrize("shape", [BOW_TIE, square(0, 0, 1e-310), [[[0, 0], [1, 1], [2, 2]]]])
def test_an_area_that_encloses_nothing_is_the_fault_of_its_geometry(tmp_path: Path, shape: Any) -> None:
    text = refused(tmp_path, collection(feature("A", shape)))
    assert "enclose nothing in the area of A" in text
    found = opened(tmp_path, collection(feature("A", shape), feature("B", square(0, 0))))
    with pytest.raises(ReleaseError, match="enclose nothing in the area of A"):
        found.refuse_lacking("map", ["A", "B"], [])
    found.refuse_lacking("map", ["B"], [])  # whoever asks for other areas need not mend this one
    found.refuse_lacking("map", ["A", "B"], ["A"])


def test_an_area_keeps_the_polygons_that_enclose_something(tmp_path: Path) -> None:
    found = opened(tmp_path, collection(feature("A", [BOW_TIE, square(0, 0)], "MultiPolygon")))
    assert len(found.areas["A"]) == 1
    assert found.flat == ()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"arcs": [[[0, 0], "x"]]}, "something else in arc 0"),
        ({"arcs": [[[0, 0], [1, 1], [0, 1]], [1, 2]]}, "something else in arc 1"),
        ({"arcs": [["a", "b"]]}, "something else in arc 0"),
        ({"arcs": {"0": 1}}, "dict"),
        ({"transform": {"scale": ["a", 1], "translate": [0, 0]}}, "a scale and a translate"),
        ({"transform": {"scale": [1]}}, "a scale and a translate"),
        ({"transform": 1}, "a scale and a translate"),
        ({"transform": {"scale": [1e308, 1e308], "translate": [0, 0]}}, "finite positions"),
        ({"objects": {"areas": 1}}, "geometries that are objects"),
        ({"objects": {"areas": {"type": "GeometryCollection", "geometries": 1}}}, "geometries that are objects"),
        *(
            ({"objects": {"areas": {"type": "Polygon", "properties": {"code": "A"}, "arcs": arcs}}}, "numbers of arcs")
            for arcs in ("x", [0], [[]], [[1]], [[-2]], [[0.5]], [["0"]], [[True]], None)
        ),
    ],
)
def test_a_broken_topology_is_refused_in_words_of_maps(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    topology: dict[str, Any] = {
        "type": "Topology",
        "arcs": [[[0, 0], [9, 0], [0, 9], [-9, 0], [0, 0]]],
        "objects": {"areas": {"type": "Polygon", "properties": {"code": "A"}, "arcs": [[0]]}},
    }
    assert len(opened(tmp_path, topology)) == 1
    text = refused(tmp_path, topology | changed)
    assert found in text
    assert "Error" not in text


def test_large_files_and_missing_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReleaseError, match=r"nowhere\.json"):
        MapFile(path=Path("nowhere.json")).read(tmp_path)
    monkeypatch.setattr(read, "MOST_CORNERS", 5)
    assert "at most 5 positions" in refused(tmp_path, collection(*(feature(c, square(0, 0)) for c in "AB")))
    monkeypatch.setattr(read, "MOST_BYTES", 10)
    assert "at most 10 bytes" in refused(tmp_path, collection(feature("A", square(0, 0))))


def test_every_code_has_an_area_or_is_listed_as_without(tmp_path: Path) -> None:
    found = opened(tmp_path, collection(feature("A", square(0, 0)), feature("C", square(1, 0))))
    found.refuse_lacking("map", ["A", "B"], ["B"])
    with pytest.raises(ReleaseError, match="no area for B"):
        found.refuse_lacking("map", ["B"], ["B"])  # a map of nothing
    with pytest.raises(ReleaseError, match="no area for B, D"):
        found.refuse_lacking("map", ["A", "B", "D"], [])
    with pytest.raises(ReleaseError, match="leave them out of `without`"):
        found.refuse_lacking("map", ["A", "B"], ["A", "B"])


def test_a_published_map_is_read_back_as_it_was(tmp_path: Path) -> None:
    hole = [square(0, 0, 4)[0], square(1, 1)[0]]
    found = opened(tmp_path, collection(feature("A", [hole, square(9, 9)], "MultiPolygon"), feature("B", square(1, 1))))
    again = Geography.published(found.geojson())
    assert again.geojson() == found.geojson()
    assert [len(polygon) for polygon in again.areas["A"]] == [2, 1]
    assert np.isclose(sum(signed_area(ring) for ring in again.rings), 16 - 1 + 1 + 1)  # holes the other way round
