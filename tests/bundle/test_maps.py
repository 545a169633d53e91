"""A map is checked before anything is charged, published small and whole, and changes no number."""

import json
import re
import shutil
from pathlib import Path

import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.checking import check
from sfumato.errors import BundleError, ReleaseError
from sfumato.geography.areas import Geography
from sfumato.plan import Plan
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from tests.geography.shapes import collection, feature, square, written

RELEASE = """
[release]
title = "Moves"
population = "jobs"
period = "2025"
budget = { alpha = 0.1, epsilon = 4 }

[data]
jobs = { path = "jobs.parquet", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place"]

[data.attributes]
place = { codes = ["A", "B"], map = "places.json" }
sex = { codes = ["F", "M"], map = { path = "places.json", key = "sex" } }
age = { codes = ["1", "2", "3"], map = { path = "places.json", key = "age", without = ["3"] } }

[[table]]
name = "t"
count = "jobs"
by = ["place", "age"]
protect = { method = "smooth-pareto", epsilon = 1 }
"""


@pytest.fixture
def mapped(tiny: Path) -> Path:
    """The tiny data with a release by attributes on maps."""
    areas = (
        feature("A", square(0, 0), sex="F", age=1),
        feature("B", square(1, 0), sex="M", age=2),
        feature("Z", square(2, 0), sex="Z", age=9),
    )
    written(tiny / "places.json", collection(*areas))
    return written(tiny / "release.toml", RELEASE)


def test_the_bundle_has_the_maps_of_its_dimensions_with_their_codes_alone(mapped: Path) -> None:
    bundle = run(load(mapped)).bundle
    listed = [name for name in read_manifest(bundle)["files"] if name.startswith("maps/")]
    assert listed == ["maps/age.geojson", "maps/place.geojson"]
    places, ages = (Geography.published((bundle / f"maps/{name}.geojson").read_bytes()) for name in ("place", "age"))
    assert list(places.areas) == ["A", "B"]
    assert list(ages.areas) == ["1", "2"]
    (table,) = json.loads((bundle / "structure.json").read_text())["tables"]
    assert [one["map"] for one in table["dimensions"]] == ["maps/place.geojson", "maps/age.geojson"]
    assert [one["role"] for one in table["dimensions"]] == ["geo", "geo"]


def test_attributes_of_one_file_and_key_are_on_one_map(mapped: Path) -> None:
    mapped.write_text(mapped.read_text().replace(', key = "age"', "").replace('"1", "2", "3"', '"A", "B", "3"'))
    plan: Plan = check(load(mapped), data=False).plan
    assert plan.map_of("place") == plan.map_of("age") == "maps/place.geojson"
    assert plan.map_of("sex") == "maps/sex.geojson"
    assert list(plan.published_maps) == ["maps/place.geojson"]


def test_where_workers_come_from_is_on_the_map_of_where_they_go_to(mapped: Path) -> None:
    home = 'home = { codes = ["A", "B"], origin_of = "place" }\nsex ='
    mapped.write_text(mapped.read_text().replace("sex =", home).replace('"place", "age"', '"home", "place"'))
    plan: Plan = check(load(mapped), data=False).plan
    assert plan.map_of("home") == plan.map_of("place") == "maps/place.geojson"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (', without = ["3"]', "", "no area for 3"),
        ('key = "age"', 'key = "GEOID"', "the property 'GEOID'"),
        ('map = "places.json"', 'map = "nowhere.json"', "nowhere.json"),
        ('map = "places.json"', "map = 1", 'a path such as "places.geojson"'),
        ('map = "places.json"', 'map = { file = "places.json" }', "file"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_before_anything_is_charged(
    mapped: Path, before: str, after: str, found: str
) -> None:
    mapped.write_text(mapped.read_text().replace(before, after))
    with pytest.raises(ReleaseError, match=found):
        run(load(mapped))
    assert not (mapped.parent / "ledger.sqlite").exists()


def ring(far: float) -> list[list[list[float]]]:
    return [[[-far, -far], [far, -far], [far, far], [-far, far], [-far, -far]]]


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        (ring(1e308), "between -1,000,000,000 and"),
        (ring(1e300), "between -1,000,000,000 and"),
        (square(1e8, 1e8, 1e-3), "together reach over 0.1 or more"),
        (square(0, 0, 1e-150), "together reach over 1e-06 or more"),
        (square(0, 0, 1e-310), "enclose nothing in the area of A"),
    ],
)
def test_no_map_that_is_checked_stops_a_run_that_was_charged(
    mapped: Path, shape: list[list[list[float]]], found: str
) -> None:
    """Neither positions that overflow nor areas that fall together; the map of a part may be smaller than the whole."""
    mapped.write_text(mapped.read_text().replace('codes = ["A", "B"], map', 'codes = ["A"], map'))
    areas = (feature("A", shape, sex="F", age=1), feature("B", square(1, 0), sex="M", age=2))
    written(mapped.parent / "places.json", collection(*areas))
    for refusing in (lambda release: check(release, data=False), run):
        with pytest.raises(ReleaseError, match=re.escape(found)):
            refusing(load(mapped))
    assert not (mapped.parent / "ledger.sqlite").exists()


def test_areas_that_cannot_be_seen_on_a_large_map_are_published(mapped: Path) -> None:
    areas = (feature("A", ring(1e9), sex="F", age=1), feature("B", square(1, 0), sex="M", age=2))
    written(mapped.parent / "places.json", collection(*areas))
    bundle = run(load(mapped)).bundle
    (table,) = open_catalogue([BundleSource(folder=bundle)])
    assert table.dimensions[0].geography is not None
    assert set(table.dimensions[0].geography.middles) == {"A", "B"}


def test_a_map_is_added_replaced_and_left_out_without_a_charge(mapped: Path) -> None:
    bundle = run(load(mapped)).bundle
    values = (bundle / "tables/t.csv").read_bytes()
    charged = Ledger.open(load(mapped).ledger).history()
    text = mapped.read_text()
    areas = (feature("A", square(5, 5), age=1, sex="F"), feature("B", square(6, 5), age=2, sex="M"))
    written(mapped.parent / "places.json", collection(*areas))
    assert run(load(mapped)).charged == ()
    assert "6" in (bundle / "maps/place.geojson").read_text()
    mapped.write_text(re.sub(r", map = .*", " }", text))
    assert run(load(mapped)).charged == ()
    assert not (bundle / "maps").exists()
    assert (bundle / "tables/t.csv").read_bytes() == values
    assert Ledger.open(load(mapped).ledger).history() == charged


def test_a_map_inside_the_bundle_folder_is_refused(mapped: Path) -> None:
    (mapped.parent / "bundle").mkdir()
    shutil.move(mapped.parent / "places.json", mapped.parent / "bundle/places.json")
    mapped.write_text(mapped.read_text().replace('"places.json"', '"bundle/places.json"'))
    with pytest.raises(ReleaseError, match="a folder that holds places"):
        load(mapped)


def test_both_ends_of_flows_are_served_on_the_map_of_their_attribute(bundles: dict[str, Path]) -> None:
    catalogue = open_catalogue([BundleSource(folder=bundles["federal"])])
    origin, destination, *_ = catalogue["flows_between_states"].dimensions
    assert origin.geography is not None
    assert origin.geography is destination.geography
    assert set(origin.geography.boxes) == set(origin.codes)
    survey = open_catalogue([BundleSource(folder=bundles["survey"])])
    assert all(dimension.geography is None for table in survey for dimension in table.dimensions)


def test_a_map_that_was_changed_is_not_served(mapped: Path) -> None:
    bundle = run(load(mapped)).bundle
    content = (bundle / "maps/place.geojson").read_text()
    (bundle / "maps/place.geojson").write_text(content.replace('"A"', '"B"'))
    with pytest.raises(BundleError, match="was changed"):
        open_catalogue([BundleSource(folder=bundle)])
