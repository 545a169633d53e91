"""Maps as offices have them, GeoJSON or TopoJSON: read, with everything that could be wrong with them refused."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sfumato.arrays import Floats
from sfumato.errors import ReleaseError
from sfumato.geography.areas import FURTHEST, Geography, Polygon, Ring, enclosing_nothing, signed_area

MOST_BYTES = 100_000_000
MOST_CORNERS = 3_000_000
KEYS = ("code", "id")
"""Properties that are looked for when a map does not say which one has the codes; then the feature's own `id`."""
_TOO_LARGE = "simplify it first: a page shows about a thousand points across"
_MEND = "check it, or write the topology again"


class MapFile(BaseModel):
    """The map of an attribute: a public file with an area for every code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(description="GeoJSON or TopoJSON file with polygons, in degrees or already projected")
    key: str | None = Field(None, description="property with the code; `code`, `id` or the feature's id when not given")
    layer: str | None = Field(None, description="which object of a TopoJSON file, where it has several")
    without: tuple[str, ...] = Field((), description="codes that have no area, such as abroad or not known")

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_path(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"path": given}
        if not isinstance(given, Mapping | BaseModel):
            raise ValueError('a path such as "places.geojson", or { path = "places.geojson", key = "code" }')
        return given

    @property
    def source(self) -> tuple[Path, str | None, str | None]:
        """What two attributes have in common that are on the same map."""
        return self.path, self.key, self.layer

    def read(self, folder: Path) -> Geography:
        """All areas of the file, whose path is relative to a folder."""
        return _Reader(folder / self.path, self.key, self.layer).geography()


class _Reader:
    """Reads one file; every refusal names it."""

    def __init__(self, path: Path, key: str | None, layer: str | None) -> None:
        self.where, self.path, self.key, self.layer = f"map {path}", path, key, layer
        self.corners = 0
        self.flat: dict[str, None] = {}

    def geography(self) -> Geography:
        """The areas of the file."""
        content = self._content()
        areas: dict[str, list[Polygon]] = {}
        for feature in self._features(content):
            code = self._code(feature)
            if code is not None:
                areas.setdefault(code, []).extend(self._polygons(code, feature.get("geometry")))
        found = {code: tuple(polygons) for code, polygons in areas.items() if polygons}
        flat = tuple(code for code in self.flat if code not in found)
        if flat and not found:
            self._refuse(**enclosing_nothing(flat))
        if not found:
            named = f"the property '{self.key}'" if self.key else f"a property {' or '.join(map(repr, KEYS))}, or an id"
            self._refuse(f"areas with {named}", "none", 'name the property with the code: map = { …, key = "…" }')
        return Geography(areas=found, flat=flat)

    def _refuse(self, expected: str, found: str, do: str) -> NoReturn:
        raise ReleaseError(self.where, expected=expected, found=found, do=do)

    def _content(self) -> Mapping[str, Any]:
        try:
            size = self.path.stat().st_size
            if size > MOST_BYTES:
                self._refuse(f"a file of at most {MOST_BYTES:,} bytes", f"{size:,}", _TOO_LARGE)
            content = json.loads(self.path.read_text(encoding="utf-8-sig"), parse_constant=_no_constant)
        except (OSError, ValueError, RecursionError) as error:
            self._refuse("GeoJSON or TopoJSON in UTF-8", str(error)[:200], "check the path and the file")
        if not isinstance(content, dict) or content.get("type") not in ("FeatureCollection", "Topology"):
            kind = content.get("type") if isinstance(content, dict) else type(content).__name__
            self._refuse(
                "a FeatureCollection (GeoJSON) or a Topology (TopoJSON)",
                str(kind)[:60],
                "convert the map; shapefiles and GeoPackages are written as GeoJSON by every program for maps",
            )
        return content

    def _features(self, content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        features = content.get("features") if content["type"] == "FeatureCollection" else self._of_topology(content)
        if not isinstance(features, list):
            self._refuse("a list of features", type(features).__name__, "check the file")
        for feature in features:
            if not isinstance(feature, dict) or not isinstance(feature.get("properties") or {}, dict):
                self._refuse("features that are objects with properties", repr(feature)[:60], "check the file")
            yield feature

    def _code(self, feature: Mapping[str, Any]) -> str | None:
        properties = feature.get("properties") or {}
        names = (self.key,) if self.key else KEYS
        code = next((properties[name] for name in names if properties.get(name) is not None), None)
        code = feature.get("id") if code is None and self.key in (None, "id") else code
        if code is None:
            return None
        if isinstance(code, bool) or not isinstance(code, str | int):
            self._refuse("codes that are texts or whole numbers", repr(code)[:60], "mend the property")
        return str(code)

    def _polygons(self, code: str, geometry: Any) -> Iterator[Polygon]:
        if geometry is None:
            return
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        if kind not in ("Polygon", "MultiPolygon"):
            self._refuse(
                f"a Polygon or MultiPolygon as the area '{code}'",
                str(kind)[:60],
                "take lines and points out",
            )
        coordinates = geometry.get("coordinates")
        every = [coordinates] if kind == "Polygon" else coordinates
        if not isinstance(every, list) or not all(isinstance(one, list) and one for one in every):
            self._refuse(f"lists of rings as the area '{code}'", "something else", "check the file")
        for polygon in every:
            outer, *holes = (self._ring(code, ring) for ring in polygon)
            if signed_area(outer):
                yield (outer, *(hole for hole in holes if signed_area(hole)))
            else:
                self.flat[code] = None

    def _ring(self, code: str, ring: Any) -> Ring:
        corners = _numbers(ring)
        if corners.ndim != 2 or corners.shape[1] < 2 or len(corners) < 3:
            self._refuse(
                f"rings of at least three positions, each of two numbers, in the area '{code}'",
                "something else",
                "check the geometry of this area",
            )
        self.corners += len(corners)
        if self.corners > MOST_CORNERS:
            self._refuse(f"a map of at most {MOST_CORNERS:,} positions", "more", _TOO_LARGE)
        corners = corners[:, :2]
        if not np.isfinite(corners).all():
            self._refuse(f"finite positions in the area '{code}'", "one that is not", "check this area")
        furthest = np.abs(corners).max()
        if furthest > FURTHEST:
            self._refuse(
                f"positions between -{FURTHEST:,.0f} and {FURTHEST:,.0f}: degrees, metres or the like",
                f"{furthest:g} in the area '{code}'",
                "check this area, or choose a larger unit",
            )
        return corners[:-1] if (corners[0] == corners[-1]).all() else corners

    # TopoJSON: borders are stored once, as arcs, which rings name by their numbers.

    def _of_topology(self, content: Mapping[str, Any]) -> list[Any]:
        objects = content.get("objects")
        if not isinstance(objects, dict) or not objects:
            self._refuse("objects in the topology", "none", "check the file")
        named = self.layer or next(iter(objects))
        if named not in objects or (self.layer is None and len(objects) > 1):
            self._refuse(
                f"one object, or `layer` with the name of one of {', '.join(objects)}"[:300],
                f"'{self.layer}'" if self.layer else f"{len(objects)} objects",
                'say which one has the areas: map = { …, layer = "…" }',
            )
        chosen, arcs = objects[named], self._arcs(content)
        is_collection = isinstance(chosen, dict) and chosen.get("type") == "GeometryCollection"
        geometries = chosen.get("geometries") if is_collection else [chosen]
        if not isinstance(geometries, list) or not all(isinstance(one, dict) for one in geometries):
            self._refuse(f"geometries that are objects in the object '{named}'", "something else", _MEND)
        return [self._feature(geometry, arcs) for geometry in geometries]

    def _arcs(self, content: Mapping[str, Any]) -> list[Floats]:
        """All arcs; where there is a transform, they are written as steps from one position to the next."""
        arcs, transform = content.get("arcs"), content.get("transform")
        if not isinstance(arcs, list):
            self._refuse("a list of arcs in the topology", type(arcs).__name__, _MEND)
        found = [_numbers(arc) for arc in arcs]
        wrong = next((at for at, arc in enumerate(found) if arc.ndim != 2 or arc.shape[1] < 2), None)
        if wrong is not None:
            self._refuse(
                "arcs that are lists of positions, each of two numbers",
                f"something else in arc {wrong}, counted from 0",
                _MEND,
            )
        if transform is None:
            return [arc[:, :2] for arc in found]
        named = transform if isinstance(transform, dict) else {}
        scale, translate = (_numbers(named.get(name)) for name in ("scale", "translate"))
        if scale.shape != (2,) or translate.shape != (2,):
            self._refuse("a transform with a scale and a translate of two numbers each", "something else", _MEND)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused with its area
            return [np.cumsum(arc[:, :2], axis=0) * scale + translate for arc in found]

    def _feature(self, geometry: Mapping[str, Any], arcs: Sequence[Floats]) -> dict[str, Any]:
        found = {name: geometry[name] for name in ("id", "properties") if name in geometry}
        kind, numbers = geometry.get("type"), geometry.get("arcs")
        if kind not in ("Polygon", "MultiPolygon"):
            return {**found, "geometry": None if kind is None else {"type": kind}}
        polygons = [numbers] if kind == "Polygon" else numbers
        if not isinstance(polygons, list) or not all(isinstance(rings, list) for rings in polygons):
            self._refuse_ring(arcs)
        shape = [[self._joined(ring, arcs) for ring in rings] for rings in polygons]
        return {**found, "geometry": {"type": "MultiPolygon", "coordinates": shape}}

    def _joined(self, numbers: Any, arcs: Sequence[Floats]) -> list[list[float]]:
        """The ring of some arcs, one after the other; those with a negative number (~number) run backwards."""
        if not isinstance(numbers, list) or not numbers:
            self._refuse_ring(arcs)
        if not all(type(number) is int and -len(arcs) <= number < len(arcs) for number in numbers):
            self._refuse_ring(arcs)
        parts = [arcs[~number][::-1] if number < 0 else arcs[number] for number in numbers]
        corners: list[list[float]] = np.concatenate([part[:-1] for part in parts]).tolist()
        return corners

    def _refuse_ring(self, arcs: Sequence[Floats]) -> NoReturn:
        self._refuse(
            f"rings that are lists of numbers of arcs, of which there are {len(arcs):,}",
            "something else, or a number that no arc has",
            _MEND,
        )


def _numbers(given: Any) -> Floats:
    """What JSON has as numbers; nothing where it has something else."""
    try:
        found = np.array(given)
    except ValueError:
        return np.zeros(0)
    return found.astype(np.float64) if found.dtype.kind in "iuf" else np.zeros(0)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text}, which is no number of JSON")
