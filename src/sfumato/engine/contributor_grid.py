"""The cells of a table with its totals, and how finer cells add up to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Dimension
from sfumato.engine.positions import strides
from sfumato.engine.unit_keys import PRIME
from sfumato.noise.factors import ONE

Pair = tuple[Integers, Integers]
"""Whole units, and millionths from 0 to below a unit."""
_HALF = 32
_LOW = 2**_HALF - 1


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of codes; with margins the last code of each dimension stands for all others together."""

    by: tuple[Dimension, ...]
    margins: bool

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(np.prod([len(dimension) for dimension in self.by], dtype=np.int64))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that tell cells apart."""
        return tuple(dimension.name for dimension in self.by)

    def inner(self) -> tuple[Dimension, ...]:
        """The dimensions without the codes of totals."""
        if not self.margins:
            return self.by
        return tuple(Dimension(name=d.name, codes=d.codes[:-1], public=d.public) for d in self.by)

    def kept(self) -> list[tuple[str, ...]]:
        """The attributes that still tell cells apart in each kind of total; first all, which is no total."""
        if not self.margins:
            return [self.names]
        return [
            tuple(name for name, keep in zip(self.names, keeps, strict=True) if keep)
            for keeps in product((True, False), repeat=len(self.by))
        ]

    def codes(self, found: pa.Table, numbered: Mapping[str, tuple[str, ...]]) -> dict[str, Integers]:
        """The places in the dimensions of an answer's codes, which are numbered otherwise."""
        places = {}
        for dimension in self.inner():
            if dimension.name not in found.column_names:
                continue
            at = {code: place for place, code in enumerate(dimension.codes)}
            place = np.array([at.get(code, -1) for code in numbered[dimension.name]], dtype=np.int64)
            places[dimension.name] = place[found[dimension.name].to_numpy()]
            if (places[dimension.name] < 0).any():
                raise ValueError(f"a value of {dimension.name!r} is not in its codelist")
        return places

    def positions(self, codes: Mapping[str, Integers], kept: Sequence[str], rows: int) -> Integers:
        """Which cell rows count in; where an attribute is not kept, that is a total."""
        step = strides(self.by)
        at = np.zeros(rows, dtype=np.int64)
        for dimension in self.by:
            at += step[dimension.name] * (codes[dimension.name] if dimension.name in kept else len(dimension) - 1)
        return at

    def everywhere(self, codes: Mapping[str, Integers], rows: int) -> list[Integers]:
        """All cells rows count in: their own, and then each kind of total."""
        return [self.positions(codes, kept, rows) for kept in self.kept()]


def added(size: int, everywhere: Iterable[Integers], values: NDArray[Any]) -> NDArray[Any]:
    """What values add up to in every cell they count in."""
    sums = np.zeros(size, dtype=values.dtype)
    for positions in everywhere:
        np.add.at(sums, positions, values)
    return sums


def added_pair(size: int, everywhere: Sequence[Integers], values: Pair) -> Pair:
    """What whole units and millionths add up to, each sum in one way only."""
    whole, part = (added(size, everywhere, of) for of in values)
    return whole + part // ONE, part % ONE


def added_modulo(size: int, everywhere: Sequence[Integers], values: Integers) -> Integers:
    """What values below 2⁶¹ − 1 add up to modulo that."""
    high = added(size, everywhere, values >> _HALF)
    low = added(size, everywhere, values & _LOW)
    # 2³² · (a·2²⁹ + b) is a + b·2³², as 2⁶¹ is 1.
    high = (high >> 29) + ((high & (2**29 - 1)) << _HALF)
    sums: Integers = (high % PRIME + low % PRIME) % PRIME
    return sums


def ranked(positions: Integers, sizes: Integers, numbers: Integers, *, most: int) -> tuple[Integers, Integers]:
    """The rows with the largest sizes in each cell, equal ones by their numbers, and their ranks from 0."""
    order = np.lexsort((numbers, -sizes, positions))
    at = positions[order]
    begins = np.flatnonzero(np.concatenate([np.ones(min(len(at), 1), dtype=np.bool_), at[1:] != at[:-1]]))
    ranks = np.arange(len(at)) - np.repeat(begins, np.diff(np.append(begins, len(at))))
    return order[ranks < most], ranks[ranks < most]
