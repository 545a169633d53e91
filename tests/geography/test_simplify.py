"""Maps are made small without gaps between neighbours, and no area is lost."""

from itertools import pairwise

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.geography import simplify
from sfumato.geography.areas import Geography, signed_area
from sfumato.geography.simplify import simplified


def wavy(start: tuple[float, float], end: tuple[float, float], corners: int, seed: int, size: float = 0.0008) -> Floats:
    """A line of many corners between two points."""
    share = np.linspace(0, 1, corners)[:, None]
    line = (1 - share) * np.array(start) + share * np.array(end)
    line[1:-1] += np.random.default_rng(seed).normal(0, size, (corners - 2, 2))
    return line


def neighbours(corners: int = 200) -> Geography:
    """Four areas around one point, with wavy borders between them and straight ones outside."""
    middle = (1.0, 1.0)
    spokes = [wavy(middle, end, corners, seed) for seed, end in enumerate([(2, 1), (1, 2), (0, 1), (1, 0)])]
    outer = [(2.0, 2.0), (0.0, 2.0), (0.0, 0.0), (2.0, 0.0)]
    areas = {}
    for at, corner in enumerate(outer):
        out, back = spokes[at], spokes[(at + 1) % 4][::-1]
        areas[str(at)] = ((np.concatenate([out, [corner], back[:-1]]),),)
    return Geography(areas=areas)


def sides(geography: Geography) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """All sides of all rings, from the smaller corner to the larger."""
    found = []
    for ring in geography.rings:
        corners = [tuple(corner) for corner in np.round(ring, 9).tolist()]
        found += [tuple(sorted(pair)) for pair in zip(corners, [*corners[1:], corners[0]], strict=True)]
    return found  # type: ignore[return-value]


def test_both_sides_of_a_border_are_simplified_alike() -> None:
    small = simplified(neighbours())
    assert len(small.corners) < len(neighbours().corners) / 2
    shared = [side for side in set(sides(small)) if sides(small).count(side) == 2]
    straight = [side for side in set(sides(small)) if sides(small).count(side) == 1]
    assert len(straight) == 8  # the outside, each half of a side of the whole
    assert len(shared) > 10
    assert np.isclose(sum(abs(signed_area(ring)) for ring in small.rings), 4)


def test_no_border_moves_further_than_can_be_seen() -> None:
    whole, small = neighbours(), simplified(neighbours())
    for before, after in zip(whole.rings, small.rings, strict=True):
        closed = np.concatenate([after, after[:1]])
        away = np.min([simplify._distances(before, *side) for side in pairwise(closed)], axis=0)
        assert away.max() < 1.1 * whole.extent / simplify.FINEST


def test_an_area_within_another_fills_its_hole() -> None:
    turn = np.linspace(0, 2 * np.pi, 500, endpoint=False)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    frame = np.array([[-3.0, -3.0], [3.0, -3.0], [3.0, 3.0], [-3.0, 3.0]])
    # The hole begins elsewhere and runs the other way.
    land = Geography(areas={"land": ((frame, np.roll(circle[::-1], 77, axis=0)),), "lake": ((circle,),)})
    small = simplified(land)
    ((_, hole),), ((lake,),) = small.areas["land"], small.areas["lake"]
    assert {tuple(corner) for corner in hole.tolist()} == {tuple(corner) for corner in lake.tolist()}
    assert 20 < len(lake) < 200


def test_islands_too_small_to_be_seen_go_but_no_area_does() -> None:
    def islet(x: float) -> Floats:
        return np.array([[x, 0.0], [x + 0.01, 0.0], [x + 0.01, 0.01], [x, 0.01]])

    mainland = np.array([[0.0, 1.0], [100.0, 1.0], [100.0, 60.0], [0.0, 60.0]])
    found = simplified(Geography(areas={"main": ((mainland,), (islet(5),)), "tiny": ((islet(50),), (islet(60),))}))
    assert len(found.areas["main"]) == len(found.areas["tiny"]) == 1
    assert abs(signed_area(found.areas["tiny"][0][0])) > 0


def test_maps_of_many_corners_get_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = simplified(neighbours(2_000))
    monkeypatch.setattr(simplify, "MOST_CORNERS", len(fine.corners) // 2)
    assert 20 < len(simplified(neighbours(2_000)).corners) <= len(fine.corners) // 2


def test_what_cannot_be_simplified_further_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplify, "MOST_CORNERS", 3)
    assert len(simplified(neighbours(2)).corners) == 16


def test_an_area_smaller_than_the_grid_keeps_a_place_on_the_map() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    whole = Geography(areas={"large": ((1e6 * corners,),), "dot": ((corners / 10 + 2_000,),)})
    ((dot,),) = Geography.published(simplified(whole).geojson()).areas["dot"]
    assert signed_area(dot) > 0
    assert np.abs(dot - 2_000).max() < 2 * whole.extent / simplify.FINEST


def test_a_map_of_nothing_but_points_is_left_without_corners() -> None:
    point = np.zeros((3, 2))
    assert list(simplified(Geography(areas={"here": ((point,),)})).areas) == ["here"]
