"""Economies come with a map on which every code has an area, and neighbours meet."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sfumato.geography.areas import Geography, signed_area
from sfumato.geography.read import MapFile
from sfumato_lab.economy.business import states
from sfumato_lab.economy.federal import codes
from sfumato_lab.economy.maps import write_island, write_tiles


def island(folder: Path, count: int) -> Geography:
    write_island(folder / "island.geojson", [f"P{at:05}" for at in range(count)])
    return MapFile(path=Path("island.geojson")).read(folder)


@pytest.mark.parametrize("count", [1, 50, 700])
def test_every_code_has_an_area_of_about_the_same_size(tmp_path: Path, count: int) -> None:
    sizes = [abs(signed_area(ring)) for ring in island(tmp_path, count).rings]
    assert len(sizes) == count
    assert max(sizes) < 6 * min(sizes)


def test_borders_have_two_sides_and_the_coast_one(tmp_path: Path) -> None:
    sides: Counter[frozenset[tuple[float, ...]]] = Counter()
    for ring in island(tmp_path, 200).rings:
        corners = [tuple(corner) for corner in ring.tolist()]
        sides.update(frozenset(pair) for pair in zip(corners, [*corners[1:], corners[0]], strict=True))
    assert set(sides.values()) == {1, 2}
    assert sum(times == 1 for times in sides.values()) < len(sides) / 4


def test_codes_that_follow_each_other_are_near_each_other(tmp_path: Path) -> None:
    found = island(tmp_path, 700)
    middles = np.array([ring.mean(axis=0) for ring in found.rings])
    steps = np.hypot(*np.diff(middles, axis=0).T)
    assert np.median(steps) < found.extent / 15


@pytest.mark.parametrize(("tiles", "codelist"), [(codes.TILES, codes.STATE), (states.TILES, states.STATE)])
def test_every_state_has_a_tile(tmp_path: Path, tiles: str, codelist: codes.Codelist) -> None:
    write_tiles(tmp_path / "tiles.geojson", tiles)
    found = MapFile(path=Path("tiles.geojson")).read(tmp_path)
    found.refuse_lacking("tiles", codelist.codes, [])
    assert len(found) == len(codelist)
    assert not found.in_degrees
