"""Maps of economies that exist nowhere: an island of as many areas as there are codes, or tiles in a given order."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers

# Areas are the cells of a honeycomb. Cells, sides and corners are known by whole numbers, so that neighbours share them
# exactly: a side by the sum of two cells and a corner by the sum of three, each counted six times.

_AROUND = np.array([(1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1)])
"""The neighbours of a cell, in order."""
_CENTRE, _DEGREES = (-28.0, 44.0), 9.0
"""Where the island lies, in the middle of an ocean, and how large it is."""
_CORNERS_MOVE, _SIDES_MOVE = 0.24, 0.13
"""How far corners and middles of sides lie from where a honeycomb has them, in widths of a cell, at most."""
_PLAIN = 5_000
"""Islands of more areas have straight sides."""
_TILE = 100.0
"""Tiles are on paper already, which large numbers say."""


def write_island(path: Path, codes: Sequence[str]) -> None:
    """An island with an area for every code; codes that follow each other are near each other."""
    cells = _in_order(_island(len(codes)))
    straight = len(codes) > _PLAIN
    outline = _moved(_outline(cells, straight=straight))
    scale = _DEGREES / max(float(np.ptp(outline[..., 0])), float(np.ptp(outline[..., 1])))
    middle = (outline.reshape(-1, 2).min(axis=0) + outline.reshape(-1, 2).max(axis=0)) / 2
    placed = (outline - middle) * scale
    placed[..., 0] /= np.cos(np.radians(_CENTRE[1]))
    _write(path, codes, np.round(placed + _CENTRE, 4))


def island_positions(count: int) -> Floats:
    """Where the areas of an island of so many lie, in the order of their codes; neighbours are about 1 apart."""
    return _position(6 * _in_order(_island(count)))


def write_tiles(path: Path, rows: str) -> None:
    """A tile for every code: `rows` has them as they lie, from north to south, a point where there is none."""
    lines = [line.split() for line in rows.strip().splitlines()]
    placed = [(code, row, column) for row, line in enumerate(lines) for column, code in enumerate(line) if code != "."]
    # Every second row is half a tile further to the east.
    cells = np.array([(column - row // 2, row) for _, row, column in placed])
    outline = _position(_outline(cells, straight=True)) * (_TILE, -_TILE)
    _write(path, [code for code, *_ in placed], np.round(outline, 1))


def _island(count: int) -> Integers:
    """The cells of an island with bays: those nearest to its middle, as far as its outline reaches there."""
    reach = int(1.6 * np.sqrt(count)) + 3
    side = np.arange(-reach, reach + 1)
    cells = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    x, y = _position(6 * cells).T
    turn = np.arctan2(y, x)
    outline = 1 + 0.16 * np.sin(2 * turn + 2.6) + 0.12 * np.sin(3 * turn + 3.9) + 0.05 * np.sin(5 * turn + 1)
    return cells[np.argsort(np.round(np.hypot(x, y * 1.25) / outline, 9), kind="stable")[:count]]


def _in_order(cells: Integers) -> Integers:
    """Cells along a curve that fills the plane (Hilbert's), so that what follows in order is near."""
    x, y = (cells - cells.min(axis=0)).T
    size = 1 << int(max(x.max(), y.max(), 1)).bit_length()
    place = np.zeros(len(cells), dtype=np.int64)
    while size > 1:
        size //= 2
        right, up = (x & size) > 0, (y & size) > 0
        place += size * size * ((3 * right) ^ up)
        mirrored = right & ~up
        x, y = (
            np.where(mirrored, size - 1 - (x & (size - 1)), x & (size - 1)),
            np.where(mirrored, size - 1 - (y & (size - 1)), y & (size - 1)),
        )
        x, y = np.where(up, x, y), np.where(up, y, x)
    found: Integers = cells[np.argsort(place, kind="stable")]
    return found


def _outline(cells: Integers, *, straight: bool) -> Integers:
    """The corners of every cell, and the middles of its sides between them, sixfold."""
    here, next_one = cells[:, None] + _AROUND, cells[:, None] + np.roll(_AROUND, -1, axis=0)
    corners: Integers = 2 * (cells[:, None] + here + next_one)
    if straight:
        return corners
    sides = 3 * (cells[:, None] + next_one)
    return np.stack([corners, sides], axis=2).reshape(len(cells), -1, 2)


def _position(sixfold: NDArray[np.int64]) -> Floats:
    """Where a point lies, in widths of a cell."""
    q, r = sixfold[..., 0] / 6, sixfold[..., 1] / 6
    return np.stack([q + r / 2, r * np.sqrt(3) / 2], axis=-1)


def _moved(sixfold: Integers) -> Floats:
    """Points moved a little, each always to the same place."""
    is_side = (sixfold % 2 != 0).any(axis=-1, keepdims=True)
    chance = np.stack([_chance(sixfold, salt) for salt in (1, 2)], axis=-1)
    return _position(sixfold) + (2 * chance - 1) * np.where(is_side, _SIDES_MOVE, _CORNERS_MOVE)


def _chance(points: Integers, salt: int) -> Floats:
    """A number from 0 to 1 that a point has for ever: bits mixed as in splitmix64."""
    with np.errstate(over="ignore"):
        mixed = (points[..., 0].astype(np.uint64) << np.uint64(32)) ^ (points[..., 1] + salt * 7_919).astype(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    found: Floats = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
    return found


def _write(path: Path, codes: Sequence[str], outlines: Floats) -> None:
    lines = ",\n".join(_features(codes, outlines))
    path.write_text(f'{{"type":"FeatureCollection","features":[\n{lines}\n]}}\n', encoding="utf-8")


def _features(codes: Sequence[str], outlines: Floats) -> Iterator[str]:
    for code, outline in zip(codes, outlines.tolist(), strict=True):
        geometry = {"type": "Polygon", "coordinates": [[*outline, outline[0]]]}
        feature = {"type": "Feature", "properties": {"code": code}, "geometry": geometry}
        yield json.dumps(feature, separators=(",", ":"))
