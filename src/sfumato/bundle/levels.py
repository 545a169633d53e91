"""Levels of published dimensions: what a bundle says lies in what, and which dimension a level is added up from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.frame.levels import AT, published_name
from sfumato.statistics.cube.cube_query import unknown

_NAMED = 5
"""So many codes without one above them are named."""


@dataclass(frozen=True, kw_only=True)
class Ascent:
    """A dimension of a table that is added up by the codes of one above it."""

    dimension: str
    level: str
    parents: Mapping[str, str] = field(repr=False)
    """The code above, by code; codes may have none."""

    def note(self, codes: Iterable[str]) -> list[str]:
        """Which of some codes are in no sum, if any are."""
        lost = [code for code in codes if code not in self.parents]
        if not lost:
            return []
        listed = ", ".join(lost[:_NAMED]) + (f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else "")
        return [f"In no sum, because the bundle has no code of {self.level} above them: {self.dimension} {listed}."]


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """What lies in what, as the structure of a bundle says it."""

    structure: Mapping[str, Any] = field(repr=False)

    @cached_property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """The dimensions of the bundle, by their names."""
        every = (*self.structure["tables"], *self.structure.get("cubes", ()))
        return {dimension["name"]: dimension for about in reversed(every) for dimension in about["dimensions"]}

    @cached_property
    def parents(self) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """By dimension and the dimension above it, the code above every code; bundles of earlier versions have none."""
        found: dict[str, dict[str, Mapping[str, str]]] = {}
        for told in self.structure.get("hierarchies", ()):
            if told["above"] in self.described:
                found.setdefault(told["dimension"], {})[told["above"]] = told["parents"]
        return found

    def paths(self, dimension: str) -> Mapping[str, tuple[str, ...]]:
        """The shortest way up to every level above a dimension, by that level; nearer ones come first."""
        found: dict[str, tuple[str, ...]] = {}
        ends: list[tuple[str, ...]] = [()]
        while ends:
            further: dict[str, tuple[str, ...]] = {}
            for path in ends:
                for level in self.parents.get(path[-1] if path else dimension, ()):
                    if level not in (dimension, *found):
                        further.setdefault(level, (*path, level))
            found |= further
            ends = list(further.values())
        return found

    def parents_along(self, dimension: str, path: Sequence[str], codes: Iterable[str]) -> dict[str, str]:
        """The code at the end of a way up, by code; codes without one are left out."""
        found = {code: code for code in codes}
        for level in path:
            above = self.parents[dimension][level]
            found = {code: above[at] for code, at in found.items() if at in above}
            dimension = level
        return found

    def ascent(self, table: str, names: Sequence[str], asked: str, codes: Mapping[str, Sequence[str]]) -> Ascent | None:
        """How a table by some dimensions is added up to a dimension or level; None where the dimension is its own.

        A level is named by the dimension that is published at it, or as a release file does: place@county, or county.
        """
        if asked in names or (AT in asked and published_name(asked) in names):
            return None
        ways = {name: self.paths(name) for name in names}
        found = [(name, level) for name, paths in ways.items() for level in paths if self._is(asked, name, level)]
        if not found:
            known = dict.fromkeys([*names, *(level for paths in ways.values() for level in paths)])
            raise unknown(f"table '{table}'", "one of its dimensions, or a level above one", asked, tuple(known))
        if len(found) > 1:
            raise SfumatoError(
                f"table '{table}'",
                expected=f"one level that is called {asked}",
                found=" and ".join(f"{level} above {name}" for name, level in found),
                do=f"write {' or '.join(f'{name}{AT}{level}' for name, level in found)}",
            )
        [(name, level)] = found
        return Ascent(dimension=name, level=level, parents=self.parents_along(name, ways[name][level], codes[name]))

    def _is(self, asked: str, name: str, level: str) -> bool:
        """Whether a level above a dimension is the one that is asked for."""
        told = self.described[level].get("level", {})
        of, at, wanted = asked.rpartition(AT)
        if at and of not in (name, told.get("of")):
            return False
        return (
            wanted == level
            or wanted.casefold() == str(told.get("name", "")).casefold()
            or (bool(at) and published_name(asked) == level)
        )
