"""A cube that keeps the tables it was asked for: sums are exact, so a sum of a kept table is the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from sfumato.cube.cube import Cube
from sfumato.cube.margins import Axes, within

MOST_CELLS = 4_000_000
"""How many cells all kept tables have together, at the most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RememberingCube(Cube):
    """The same cube; the first question by some dimensions takes the time of all its cells, later ones do not."""

    _kept: dict[Axes, Cube] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def of(cls, cube: Cube) -> "RememberingCube":
        """A cube that remembers, over the same arrays."""
        return cls(dimensions=cube.dimensions, columns=cube.columns, parts=cube.parts)

    def sums(self, by: Axes, kept: Mapping[int, Sequence[int]], columns: Sequence[str] | None = None) -> Cube:
        """The table by some dimensions of the part that has some codes, all told by their places."""
        asked = tuple(sorted({*by, *kept}))
        if len(asked) == len(self.dimensions):
            return super().sums(by, kept, columns)
        places = {asked.index(axis): places for axis, places in kept.items()}
        return self._margin(asked).sums(within(by, asked), places, columns)

    def _margin(self, asked: Axes) -> Cube:
        kept = self._kept.get(asked)
        if kept is None:
            kept = super().sums(asked, {})
            with self._lock:
                if sum(map(len, self._kept.values())) + len(kept) <= MOST_CELLS:
                    self._kept[asked] = kept
        return kept
