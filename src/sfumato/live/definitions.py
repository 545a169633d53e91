"""What cells are about: for every attribute the set of codes that their records may have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.cells import Dimension
from sfumato.engine.question import TOTAL

Sets = NDArray[np.int32]
Where = Mapping[str, Sequence[str]]

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The places of the first cells and of the second ones."""

EVERYTHING = 0
"""The number of the set of all codes of an attribute."""
UNDEFINED = -1
"""In place of the set of a cell of which it is not known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Definitions:
    """Numbers for sets of codes, attribute by attribute: the same set has the same number however it was asked for."""

    codes: Mapping[str, tuple[str, ...]]
    """All codes of every attribute."""
    _numbers: dict[str, dict[frozenset[str], int]] = field(default_factory=dict, repr=False)

    def of_cells(self, by: Sequence[Dimension], where: Where, codes: Sequence[NDArray[np.intp]]) -> Sets:
        """The sets that define cells, a row each; `codes` are the places of the cells in every dimension."""
        found = np.full((len(codes[0]) if codes else 1, len(self.codes)), EVERYTHING, dtype=np.int32)
        dimensions = {dimension.name: (dimension, places) for dimension, places in zip(by, codes, strict=True)}
        for column, name in enumerate(self.codes):
            among = self._number(name, where.get(name, self.codes[name]))
            found[:, column] = among
            if name in dimensions:
                dimension, places = dimensions[name]
                single = [among if code == TOTAL else self._number(name, (code,)) for code in dimension.codes]
                found[:, column] = np.array(single, dtype=np.int32)[places]
        return found

    def meeting(self, first: Sets, second: Sets, pairs: Pairs) -> Pairs:
        """Those of some pairs of cells that can share records; a cell that is not defined can with all."""
        one, other = pairs
        # Attributes with many sets leave the fewest pairs to look at.
        for name in sorted(self.codes, key=lambda name: -len(self._sets(name))):
            column, (_, meets) = self._columns[name], self._matrices(name)
            kept = meets[first[one, column], second[other, column]]
            one, other = one[kept], other[kept]
        return one, other

    def nested(self, first: Sets, second: Sets) -> Flags:
        """Whether one cell of each pair lies within the other by definition; none that is not defined does."""
        below, above = (np.ones(len(first), dtype=np.bool_) for _ in range(2))
        for name, column in self._columns.items():
            within, _ = self._matrices(name)
            one, other = first[:, column], second[:, column]
            below &= within[one, other]
            above &= within[other, one]
        return below | above

    @property
    def _columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.codes)}

    def shared(self, first: Sets, second: Sets) -> list[dict[str, tuple[str, ...]]]:
        """What both cells of each pair are about, as a filter."""
        filters: list[dict[str, tuple[str, ...]]] = [{} for _ in first]
        for column, name in enumerate(self.codes):
            sets = list(self._sets(name))
            for place, (one, other) in enumerate(zip(first[:, column], second[:, column], strict=True)):
                if one != EVERYTHING or other != EVERYTHING:
                    filters[place][name] = tuple(sorted(sets[one] & sets[other]))
        return filters

    def _sets(self, name: str) -> dict[frozenset[str], int]:
        return self._numbers.setdefault(name, {frozenset(self.codes[name]): EVERYTHING})

    def _number(self, name: str, codes: Sequence[str]) -> int:
        known = self._sets(name)
        return known.setdefault(frozenset(codes), len(known))

    def _matrices(self, name: str) -> tuple[Flags, Flags]:
        """Of every two sets, whether the first lies within the second, and whether they share a code."""
        sets = list(self._sets(name))
        place = {code: at for at, code in enumerate(dict.fromkeys(code for one in sets for code in one))}
        held = np.zeros((len(sets), len(place)), dtype=np.int64)
        for row, codes in enumerate(sets):
            held[row, [place[code] for code in codes]] = 1
        common = held @ held.T
        # The last row and column are of cells that are not defined, whose number is −1.
        within, meets = (np.full((len(sets) + 1, len(sets) + 1), whole) for whole in (False, True))
        within[:-1, :-1] = common == held.sum(axis=1)[:, None]
        meets[:-1, :-1] = common > 0
        return within, meets
