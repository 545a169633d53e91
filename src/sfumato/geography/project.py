"""Maps on paper: areas keep their proportions, whatever part of the world they are of."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Floats
from sfumato.geography.areas import Geography, Polygon, signed_area

_WIDEST = 180.0
"""Degrees of longitude from which on a map is one of the world."""
_CONIC = 0.12
"""Cones flatter than this are cylinders."""
_WORLD = 37.5
"""The parallel at which a cylinder touches a map of the world, in degrees."""
_SLACK = 1e-6
"""Degrees by which a position may lie west of where the map begins, for all that arithmetic rounds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Projected:
    """A map on paper: positions across and down, in any unit."""

    geography: Geography

    @classmethod
    def of(cls, geography: Geography) -> "Projected":
        """Project a map: an equal-area cone or cylinder for degrees; other positions are on paper already."""
        flat = projection(geography)
        return cls(geography=geography.with_rings([flat(ring) * (1, -1) for ring in geography.rings]))

    @cached_property
    def boxes(self) -> dict[str, tuple[float, float, float, float]]:
        """Of every area its left, upper, right and lower end."""
        found = {}
        for code, area in self.geography.areas.items():
            corners = np.concatenate([polygon[0] for polygon in area])
            (left, top), (right, bottom) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
            found[code] = (left, top, right, bottom)
        return found

    @cached_property
    def middles(self) -> dict[str, tuple[float, float]]:
        """Of every area a point in its middle, which lines begin and end at."""
        found = {}
        for code, area in self.geography.areas.items():
            (x, y), (left, top, right, bottom) = _middle(area), self.boxes[code]
            # The halves of a ring that crosses itself nearly cancel out, and their centre may be anywhere.
            found[code] = (min(max(x, left), right), min(max(y, top), bottom))
        return found


def projection(geography: Geography) -> Callable[[Floats], Floats]:
    """What puts positions on paper: an equal-area cone or cylinder that suits the extent of the map."""
    if not geography.in_degrees:
        return lambda positions: positions
    west, wide = _span(geography.corners[:, 0])
    south, north = (float(ends) for ends in np.quantile(geography.corners[:, 1], (0, 1)))
    # Of a cone, the parallels a sixth from both ends keep their lengths.
    first, second = np.radians([south + (north - south) / 6, north - (north - south) / 6])
    cone = float(np.sin(first) + np.sin(second)) / 2
    if wide > _WIDEST or abs(cone) < _CONIC:
        touching = np.cos(np.radians(_WORLD if wide > _WIDEST else (south + north) / 2))
        return lambda positions: _cylinder(*_angles(positions, west, wide), touching)
    constant = float(np.cos(first) ** 2 + 2 * cone * np.sin(first))
    return lambda positions: _cone(*_angles(positions, west, wide), cone, constant)


def _span(longitudes: Floats) -> tuple[float, float]:
    """Where a map begins in the west and how wide it is; one that lies across the date line is in one piece."""
    west, wide = float(longitudes.min()), float(np.ptp(longitudes))
    around = np.unique(np.mod(longitudes, 360))
    gaps = np.diff(around, append=around[0] + 360)
    widest = int(np.argmax(gaps))
    if wide <= _WIDEST or 360 - gaps[widest] > _WIDEST:
        return west, wide
    return float(around[(widest + 1) % len(around)]), 360 - float(gaps[widest])


def _angles(positions: Floats, west: float, wide: float) -> tuple[Floats, Floats]:
    """Longitudes from the middle of the map and latitudes, as angles."""
    longitudes = positions[:, 0]
    if wide <= _WIDEST:  # on the same side of the date line
        longitudes = np.mod(longitudes - west + _SLACK, 360) - _SLACK + west
    return np.radians(longitudes - west - wide / 2), np.radians(positions[:, 1])


def _cylinder(across: Floats, up: Floats, touching: float) -> Floats:
    return np.column_stack([across * touching, np.sin(up) / touching])


def _cone(across: Floats, up: Floats, cone: float, constant: float) -> Floats:
    distance = np.sqrt(np.maximum(constant - 2 * cone * np.sin(up), 0)) / cone
    return np.column_stack([distance * np.sin(cone * across), -distance * np.cos(cone * across)])


def _middle(area: tuple[Polygon, ...]) -> tuple[float, float]:
    """The centre of gravity of the largest polygon of an area."""
    ring = max((polygon[0] for polygon in area), key=lambda ring: abs(signed_area(ring)))
    (x, y), (right, down) = (ring - ring[0]).T, np.roll(ring - ring[0], -1, axis=0).T
    cross = x * down - right * y
    total = float(cross.sum())
    if not total:
        return float(ring[:, 0].mean()), float(ring[:, 1].mean())
    across, along = float(((x + right) * cross).sum()), float(((y + down) * cross).sum())
    return float(ring[0, 0]) + across / (3 * total), float(ring[0, 1]) + along / (3 * total)
