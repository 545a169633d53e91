"""Magnitudes cell by cell: interpolated between the optima of a few shapes by the relative sizes of contributors."""

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats

_POWER = 4  # the nearest shapes decide; a smaller power lets far ones in
_NEAREST = 1e-9
_AT_ONCE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Optima:
    """Shapes (one in a row, the sizes of contributors from the largest on) and the magnitudes found best for each.

    A magnitude is NaN where a shape has no such contributor, and then takes no part.
    """

    shapes: Floats
    magnitudes: Floats

    def __post_init__(self) -> None:
        shapes, magnitudes = self.shapes, self.magnitudes
        if shapes.ndim != 2 or magnitudes.ndim != 2 or len(shapes) != len(magnitudes) or not len(shapes):
            raise ValueError("shapes and magnitudes need a row for every optimum")
        if not (np.isfinite(shapes).all() and (shapes >= 0).all() and (shapes[:, 0] > 0).all()):
            raise ValueError("sizes must be numbers from 0 on, and the first above 0")
        if not (np.isnan(magnitudes) | (magnitudes >= 0)).all() or np.isnan(magnitudes).all(axis=0).any():
            raise ValueError("magnitudes must not be negative, and every contributor needs one in some shape")


def interpolated_magnitudes(shares: Floats, optima: Optima) -> Floats:
    """The magnitudes of every cell's contributors: a mean of the optima, weighted by how near their shapes are.

    A row of `shares` has the absolute sizes of a cell's contributors, the largest first, in any unit and with as many
    columns as the shapes; only their proportions count. Nearness is the inverse fourth power of the distance between
    proportions, so that a cell of exactly one of the shapes has its magnitudes and no cell has more than the largest or
    less than the least of all. A cell of nothing but zeros has the magnitudes of equal contributors.

    >>> optima = Optima(shapes=np.array([[90.0, 10.0], [50.0, 50.0]]), magnitudes=np.array([[0.1, 0.1], [0.5, 0.3]]))
    >>> interpolated_magnitudes(np.array([[9.0, 1.0], [7.0, 3.0]]), optima).round(3).tolist()
    [[0.1, 0.1], [0.3, 0.2]]
    """
    if shares.ndim != 2 or shares.shape[1] != optima.shapes.shape[1]:
        raise ValueError(f"a cell needs the sizes of {optima.shapes.shape[1]} contributors, 0 where there are fewer")
    found = np.empty((len(shares), optima.magnitudes.shape[1]))
    shapes, present = _proportions(optima.shapes), ~np.isnan(optima.magnitudes)
    values = np.where(present, optima.magnitudes, 0.0)
    for begin in range(0, len(shares), _AT_ONCE):
        piece = slice(begin, begin + _AT_ONCE)
        apart = _proportions(shares[piece])[:, None, :] - shapes[None, :, :]
        nearness = np.maximum(np.sqrt((apart * apart).sum(axis=2)), _NEAREST) ** -_POWER
        found[piece] = (nearness @ values) / (nearness @ present)
    return found


def _proportions(sizes: Floats) -> Floats:
    total = sizes.sum(axis=1, keepdims=True)
    proportions: Floats = np.where(total > 0, sizes / np.where(total > 0, total, 1), 1 / sizes.shape[1])
    return proportions
