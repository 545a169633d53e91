"""Permanent chance of cells: a keyed word for every cell, the same in every table, order and release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Cells
from sfumato.noise.keyed import Keyed, hashes


@dataclass(kw_only=True, eq=False)
class CellWords:
    """Randomness for the cells of one table, one word each whenever as many are asked for; it shows nothing.

    A cell is known by what it is about: the code of each of its attributes and the codes it was filtered by. How the
    table is laid out, which other cells it has, and what else is published play no part, so that a number which is
    rounded twice is rounded alike.
    """

    keyed: Keyed = field(repr=False)
    cells: Cells = field(repr=False)
    topic: str
    where: Mapping[str, Iterable[str]]
    lasting: frozenset[str] = frozenset()
    """Dimensions that play no part: their cells share a word."""
    _asked: int = 0

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next word of every cell."""
        if n != len(self.cells):
            raise ValueError("every cell has one word at a time")
        self._asked += 1
        return self.keyed.words(self._names(), purpose=f"{self.topic} {self._asked}")

    def _names(self) -> NDArray[np.uint64]:
        """The cells' names: attributes in the order of their own names, each with its code, one after the other."""
        known = {dimension.name: dimension.codes for dimension in self.cells.dimensions}
        filtered = {name: tuple(sorted(codes)) for name, codes in self.where.items() if name not in known}
        names = np.zeros(len(self.cells), dtype=np.uint64)
        for name in sorted(known.keys() | filtered.keys()):
            if name in self.lasting:
                continue
            if name in known:
                codes = hashes([f"{name}={code}" for code in known[name]])[self.cells.codes(name)]
            else:
                codes = np.broadcast_to(hashes([f"{name}={'|'.join(filtered[name])}"]), names.shape)
            names = self.keyed.words_of_pairs(names, codes, purpose="cell")
        return names
