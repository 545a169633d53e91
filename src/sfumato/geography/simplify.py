"""Maps made small: a border is simplified once, so that both its sides still meet.

Corners are put on a grid. Where the neighbours of a corner are not the same in all rings that have it, borders meet;
rings are cut there into arcs, and every arc is simplified in one direction, whichever ring it is found in.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.geography.areas import Geography, signed_area

FINEST = 1_500
"""What is smaller than one part in so many of the whole extent is not seen on a page."""
MOST_CORNERS = 80_000
"""Coarser, until there are no more corners than this, as far as there are any to spare."""
COARSER = 1.6
_ENOUGH = 0.97
"""Where a coarser map has more than this share of the corners, most are where borders meet and cannot be spared."""
_FEWEST = 3


def simplified(geography: Geography) -> Geography:
    """The map with as many corners as a page can show; every area keeps its largest polygon."""
    if not geography.extent:
        return geography
    arcs = _Arcs(geography)
    tolerance = geography.extent / FINEST
    found, before = arcs.simplified(tolerance), np.inf
    while len(found.corners) > MOST_CORNERS and len(found.corners) < _ENOUGH * before:
        tolerance, before = COARSER * tolerance, len(found.corners)
        found = arcs.simplified(tolerance)
    return found


class _Arcs:
    """The rings of a map on a grid, cut where borders meet."""

    def __init__(self, geography: Geography) -> None:
        self.step = 10.0**-geography.digits
        rings = [_distinct(np.rint(ring / self.step).astype(np.int64)) for ring in geography.rings]
        self.geography = geography
        self.ends = np.cumsum([len(ring) for ring in rings])
        self.corners = np.concatenate(rings)
        self.meets, number = _meeting(self.corners, self.ends)
        begins = self.ends - [len(ring) for ring in rings]
        bent = np.add.reduceat(~self.meets, begins[begins < self.ends]) > 0
        rings_bent = np.flatnonzero(begins < self.ends)[bent]
        self.arcs = [
            arc
            for ring in rings_bent.tolist()
            for arc in _arcs(self.corners, self.meets, number, begins[ring], self.ends[ring])
        ]
        """Places of corners, in a direction that is the same in both rings; straight lines are left out."""

    def simplified(self, tolerance: float) -> Geography:
        """The map with borders within a distance of what they were."""
        most = tolerance / self.step
        kept = self.meets.copy()
        for arc in self.arcs:
            kept[arc[_stay(self.corners[arc].astype(np.float64), most)]] = True
        whole = np.split(self.corners, self.ends[:-1])
        made = [_seen(ring[stays], most) for ring, stays in zip(whole, np.split(kept, self.ends[:-1]), strict=True)]
        # Of islands that are too small to be seen, the largest of an area stays.
        number = 0
        for polygons in self.geography.areas.values():
            outers = np.cumsum([number, *map(len, polygons)])
            number = int(outers[-1])
            if all(made[at] is None for at in outers[:-1]):
                largest = int(outers[np.argmax([abs(signed_area(polygon[0])) for polygon in polygons])])
                place = self.geography.rings[largest][0] / self.step
                made[largest] = _rough(whole[largest], np.rint(place).astype(np.int64))
        return self.geography.with_rings([None if ring is None else np.multiply(ring, self.step) for ring in made])


def _arcs(corners: Integers, meets: Flags, number: Integers, begin: int, end: int) -> Iterator[Integers]:
    """The arcs of a ring that have corners between their ends."""
    length = end - begin
    if length < _FEWEST:
        return
    cuts = np.flatnonzero(meets[begin:end])
    if not len(cuts):  # an island, or what lies alone within another area: cut where both rings would be
        cuts = np.array([int(np.argmin(number[begin:end]))])
    if len(cuts) == 1:
        ring = corners[begin:end]
        away = np.square(ring - ring[cuts[0]]).sum(axis=1)
        furthest = np.flatnonzero(away == away.max())
        cuts = np.sort([cuts[0], furthest[np.argmin(number[begin:end][furthest])]])
    for here, there in pairwise([*cuts.tolist(), int(cuts[0]) + length]):
        if there - here > 1:
            places = begin + np.arange(here, there + 1) % length
            first, last = number[places[:2]].tolist(), number[places[:-3:-1]].tolist()
            yield places[::-1] if last < first else places


def _seen(ring: Integers, most: float) -> Integers | None:
    """A ring, unless it is too small to be seen."""
    if len(ring) < _FEWEST or abs(signed_area(ring.astype(np.float64))) <= most * most:
        return None
    return ring


def _distinct(ring: Integers) -> Integers:
    """A ring without corners that fell together with the one before."""
    found: Integers = ring[(ring != np.roll(ring, 1, axis=0)).any(axis=1)]
    return found


def _meeting(corners: Integers, ends: Integers) -> tuple[Flags, Integers]:
    """Which corners borders meet at, and the number of each corner, the same in all rings."""
    if not len(corners):  # every area is smaller than the grid
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64)
    low, high = corners.min(axis=0), corners.max(axis=0)
    _, number = np.unique((corners - low) @ (high[1] - low[1] + 1, 1), return_inverse=True)
    before, after = np.roll(number, 1), np.roll(number, -1)
    begins = np.concatenate([[0], ends[:-1]])
    filled = begins < ends
    before[begins[filled]], after[ends[filled] - 1] = number[ends[filled] - 1], number[begins[filled]]
    count = int(number.max()) + 1
    pair = np.minimum(before, after) * count + np.maximum(before, after)
    least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(least, number, pair)
    np.maximum.at(most, number, pair)
    return (least != most)[number], number


def _stay(line: Floats, most: float) -> Flags:
    """Which points of a line stay so that no other is further from it than `most` (Douglas and Peucker)."""
    stay = np.zeros(len(line), dtype=np.bool_)
    stay[[0, -1]] = True
    waiting = [(0, len(line) - 1)]
    while waiting:
        here, there = waiting.pop()
        if there - here < 2:
            continue
        away = _distances(line[here + 1 : there], line[here], line[there])
        furthest = int(np.argmax(away))
        if away[furthest] > most:
            place = here + 1 + furthest
            stay[place] = True
            waiting += [(here, place), (place, there)]
    return stay


def _distances(points: Floats, here: Floats, there: Floats) -> Floats:
    """How far points are from a line between two others."""
    along = there - here
    length = float(along @ along)
    share = np.clip((points - here) @ along / length, 0, 1) if length else np.zeros(len(points))
    away: Floats = np.hypot(*(points - here - share[:, None] * along).T)
    return away


def _rough(ring: Integers, place: Integers) -> Integers:
    """The outermost corners of a ring that is too small to be seen; the least there is where the grid has none."""
    if len(ring) < _FEWEST:
        least: Integers = place + np.array([[0, 0], [1, 0], [0, 1]])
        return least
    found = np.unique([*ring.argmin(axis=0), *ring.argmax(axis=0)])
    return ring[found] if len(found) >= _FEWEST else ring
