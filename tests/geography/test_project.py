"""On paper areas keep their proportions, wherever they lie."""

import numpy as np
import pytest

from sfumato.geography.areas import Geography, signed_area
from sfumato.geography.project import Projected


def cells(west: float, south: float, wide: float, tall: float) -> Geography:
    """A grid of four by four cells of a degree net."""
    areas = {}
    for at, (row, column) in enumerate(np.ndindex(4, 4)):
        x, y = west + column * wide / 4, south + row * tall / 4
        across, up = np.linspace(x, x + wide / 4, 20), np.linspace(y, y + tall / 4, 20)
        sides = [
            np.column_stack([across, np.full(20, y)]),
            np.column_stack([np.full(20, x + wide / 4), up]),
            np.column_stack([across[::-1], np.full(20, y + tall / 4)]),
            np.column_stack([np.full(20, x), up[::-1]]),
        ]
        ring = np.concatenate([side[:-1] for side in sides])
        areas[str(at)] = (((np.where(ring > 180, ring - 360, ring) if wide < 200 else ring),),)
    return Geography(areas=areas)


@pytest.mark.parametrize(
    ("where", "extent"),
    [
        ("the middle of Europe", (5, 45, 15, 10)),
        ("the south of South America", (-75, -55, 20, 35)),
        ("across the equator", (95, -10, 40, 20)),
        ("across the date line", (170, -22, 25, 15)),
        ("the world", (-180, -60, 360, 140)),
    ],
)
def test_areas_are_as_large_as_on_the_globe(where: str, extent: tuple[float, float, float, float]) -> None:
    geography = cells(*extent)
    projected = Projected.of(geography)
    _, south, wide, tall = extent
    on_paper = [abs(signed_area(area[0][0])) for area in projected.geography.areas.values()]
    edges = np.sin(np.radians(south + np.arange(5) * tall / 4))
    on_globe = np.repeat(np.diff(edges) * np.radians(wide / 4), 4)
    assert np.allclose(on_paper, on_globe, rtol=0.01), where
    left, _, right, bottom = projected.boxes["0"]
    assert bottom > projected.boxes["15"][3], "north is up"
    assert right - left < np.radians(wide), "in one piece"


def test_positions_that_are_no_degrees_are_on_paper_already() -> None:
    ring = np.array([[500_000.0, 4_000_000.0], [600_000.0, 4_000_000.0], [600_000.0, 4_100_000.0]])
    projected = Projected.of(Geography(areas={"A": ((ring,),)}))
    assert np.array_equal(projected.geography.rings[0], ring * (1, -1))


def test_the_middle_of_an_area_is_in_its_largest_part() -> None:
    small, large = ((x, 0.0, side) for x, side in ((500.0, 10.0), (1_000.0, 100.0)))
    parts = [np.array([[x, y], [x + s, y], [x + s, y + s], [x, y + s]]) for x, y, s in (small, large)]
    found = Projected.of(Geography(areas={"A": tuple((part,) for part in parts)}))
    assert np.allclose(found.middles["A"], (1_050, -50))


def test_the_middle_of_a_ring_that_crosses_itself_lies_within_its_box() -> None:
    crossing = np.array([[0.0, 0.0], [1_000.0, 1_000.0], [1_000.0, 0.0], [0.0, 1_000.000_001]])
    projected = Projected.of(Geography(areas={"A": ((crossing,),)}))
    (x, y), (left, top, right, bottom) = projected.middles["A"], projected.boxes["A"]
    assert left <= x <= right
    assert top <= y <= bottom
