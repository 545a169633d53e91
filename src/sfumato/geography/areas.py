"""Areas by their codes, and the one form in which a bundle publishes them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from typing import TypedDict

import numpy as np

from sfumato.arrays import Floats
from sfumato.errors import ReleaseError

Ring = Floats
"""The corners of a ring, a row each: across and up. The first is not repeated at the end."""
Polygon = tuple[Ring, ...]
"""An outer ring, and its holes."""

STEPS = 20_000
"""Positions are published to one part in so many of the whole map's extent."""
FURTHEST = 1e9
"""No position of a map lies further out: neither degrees nor metres, feet or tenths of millimetres on paper do."""
SMALLEST = 1e-6
"""A map reaches at least so far: ten centimetres, were it in degrees."""
FINEST = 1e-9
"""And at least this part of how far out it lies, or its positions would not be told apart."""
_LISTED = 5
"""Codes that a message names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Geography:
    """A map: of every area, by its code, the polygons it is made of."""

    areas: Mapping[str, tuple[Polygon, ...]]
    flat: tuple[str, ...] = ()
    """Codes whose geometry encloses nothing, and which therefore have no area."""

    def __len__(self) -> int:
        return len(self.areas)

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """All rings, those of one area after those of the other."""
        return tuple(ring for area in self.areas.values() for polygon in area for ring in polygon)

    @cached_property
    def corners(self) -> Floats:
        """All corners of all rings."""
        return np.concatenate(self.rings) if self.rings else np.zeros((0, 2))

    @property
    def extent(self) -> float:
        """How far the map reaches, in its longer direction."""
        return float(np.ptp(self.corners, axis=0).max()) if len(self.corners) else 0.0

    @property
    def in_degrees(self) -> bool:
        """Whether positions are longitudes and latitudes: on maps that were projected before, they are larger."""
        across, up = np.abs(self.corners).max(axis=0)
        return bool(across <= 360 and up <= 90)

    def only(self, codes: Iterable[str]) -> "Geography":
        """The map of some areas, in their order."""
        return Geography(areas={code: self.areas[code] for code in codes if code in self.areas})

    def with_rings(self, rings: Sequence[Ring | None]) -> "Geography":
        """The same map with other rings, in the order of `rings`; those that are None are left out with their holes."""
        left = iter(rings)
        areas: dict[str, tuple[Polygon, ...]] = {}
        for code, polygons in self.areas.items():
            made = [tuple(next(left) for _ in polygon) for polygon in polygons]
            areas[code] = tuple(
                (outer, *(hole for hole in holes if hole is not None)) for outer, *holes in made if outer is not None
            )
        return Geography(areas=areas)

    def refuse_lacking(self, where: str, codes: Sequence[str], without: Sequence[str]) -> None:
        """Refuse codes that have no area, unless they are listed as such, and lists that say what is not so."""
        known = [code for code in codes if code in self.areas]
        flat = [code for code in self.flat if code in codes and code not in without]
        if flat:
            raise ReleaseError(where, **enclosing_nothing(flat))
        lacking = [code for code in codes if code not in self.areas and (code not in without or not known)]
        if lacking:
            raise ReleaseError(
                where,
                expected="an area for every code, or the code in `without`",
                found=f"no area for {_some(lacking, len(codes))}; the map has areas such as {_some([*self.areas], 0)}",
                do="check `key`, which names the property with the code (001 is not 1), add the areas, or list the "
                'codes that have none: map = { …, without = ["…"] }',
            )
        strange = [code for code in without if code in self.areas or code not in codes]
        if strange:
            raise ReleaseError(
                where,
                expected="in `without`, codes of the attribute that have no area",
                found=_some(strange, 0),
                do="leave them out of `without`",
            )

    def refuse_too_small(self, where: str) -> None:
        """Refuse a map on which areas could not be told apart."""
        reaches = float(np.abs(self.corners).max())
        least = max(SMALLEST, FINEST * reaches)
        if self.extent < least:
            raise ReleaseError(
                where,
                expected=f"areas that together reach over {least:g} or more, at positions up to {reaches:g}",
                found=f"{self.extent:g}",
                do="write positions in degrees, metres or another unit that suits the map",
            )

    # The form in which a bundle has it: GeoJSON, with the code of each area and nothing else.

    @property
    def digits(self) -> int:
        """After how many digits positions may end: fewer than none for large numbers."""
        return -floor(log10(self.extent / STEPS)) if self.extent else 0

    def geojson(self) -> bytes:
        """The map as GeoJSON, the same bytes for the same areas; an area on each line."""
        digits = max(self.digits, 0)
        lines = ",\n".join(
            json.dumps(
                {
                    "type": "Feature",
                    "properties": {"code": code},
                    "geometry": {"type": "MultiPolygon", "coordinates": [_written(one, digits) for one in area]},
                },
                separators=(",", ":"),
                ensure_ascii=False,
            )
            for code, area in self.areas.items()
        )
        return f'{{"type":"FeatureCollection","features":[\n{lines}\n]}}\n'.encode()

    @classmethod
    def published(cls, content: bytes) -> "Geography":
        """The map of a bundle, whose file was checked against the manifest."""
        features = json.loads(content)["features"]
        return cls(
            areas={
                feature["properties"]["code"]: tuple(
                    tuple(np.array(ring[:-1], dtype=np.float64) for ring in polygon)
                    for polygon in feature["geometry"]["coordinates"]
                )
                for feature in features
            }
        )


def _written(polygon: Polygon, digits: int) -> list[list[list[float]]]:
    """A polygon as GeoJSON has it: closed rings, the outer one anticlockwise and holes clockwise."""
    turned = [ring if (signed_area(ring) > 0) == (at == 0) else ring[::-1] for at, ring in enumerate(polygon)]
    return [_short(np.concatenate([ring, ring[:1]]), digits) for ring in turned]


def _short(corners: Floats, digits: int) -> list[list[float]]:
    rounded = np.round(corners, digits) + 0.0  # no -0
    return [[int(number) if number == int(number) else number for number in pair] for pair in rounded.tolist()]


def signed_area(ring: Ring) -> float:
    """The area within a ring, negative if its corners go clockwise.

    >>> signed_area(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]))
    2.0
    """
    x, y = (ring - ring[0]).T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2  # from the first corner, which the last side leads back to


class Wrong(TypedDict):
    """What is wrong with areas, as an error says it."""

    expected: str
    found: str
    do: str


def enclosing_nothing(codes: Sequence[str]) -> Wrong:
    """What is wrong with areas that enclose nothing."""
    return {
        "expected": "rings that enclose something",
        "found": f"rings that enclose nothing in the area of {_some(codes, 0)}: all corners on one line, too near each "
        "other to be told apart, or a ring that crosses itself so that its halves cancel out",
        "do": "mend the geometry; programs for maps call it `make valid` or `fix geometries`",
    }


def _some(codes: Sequence[str], of: int) -> str:
    more = len(codes) - _LISTED
    number = f" ({len(codes):,} of {of:,} codes)" if of else ""
    return ", ".join(codes[:_LISTED]) + (f" and {more:,} more" if more > 0 else "") + number
