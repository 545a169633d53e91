"""A cube that keeps the tables it was asked for: sums are exact, so a sum of a kept table is the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from sfumato.cube.cube import Cube

MOST_CELLS = 4_000_000
"""How many cells all kept tables have together, at the most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RememberingCube(Cube):
    """The same cube; the first question by some dimensions takes the time of all its cells, later ones do not."""

    _kept: dict[frozenset[str], Cube] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def of(cls, cube: Cube) -> "RememberingCube":
        """A cube that remembers, over the same arrays."""
        return cls(dimensions=cube.dimensions, columns=cube.columns, parts=cube.parts)

    def table(
        self, *names: str, where: Mapping[str, Iterable[str]] | None = None, columns: Sequence[str] | None = None
    ) -> Cube:
        """The table by these dimensions of the part that has these codes, with some of the columns or all."""
        asked = frozenset(names) | frozenset(where or ())
        if not asked < frozenset(self.names):
            return super().table(*names, where=where, columns=columns)
        return self._margin(asked).table(*names, where=where, columns=columns)

    def _margin(self, asked: frozenset[str]) -> Cube:
        kept = self._kept.get(asked)
        if kept is None:
            kept = self.project(*(name for name in self.names if name in asked))
            with self._lock:
                if sum(map(len, self._kept.values())) + len(kept) <= MOST_CELLS:
                    self._kept[asked] = kept
        return kept
