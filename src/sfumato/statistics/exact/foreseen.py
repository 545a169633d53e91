"""What `check` foretells of true numbers, before anything is published: confidential."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol


class Foreseen(Protocol):
    """What becomes of a table."""

    about: ClassVar[str]
    """What happens to its cells, in a word for machines."""

    def in_words(self) -> str:
        """In a sentence."""
        ...

    def figures(self) -> dict[str, Any]:
        """For machines."""
        ...


def by_what_happens(found: Mapping[str, Foreseen]) -> dict[str, dict[str, Any]]:
    """Figures of all tables, by what happens to their cells."""
    kinds: dict[str, dict[str, Any]] = {}
    for name, one in found.items():
        kinds.setdefault(one.about, {})[name] = one.figures()
    return kinds


@dataclass(frozen=True, kw_only=True)
class Withheld:
    """What would be withheld of a table, or shown as ranges."""

    about: ClassVar[str] = "withheld"
    cells: int
    """Those that are not zero."""
    sensitive: int
    withheld: int
    value: int
    instead: str
    """What becomes of the cells, in words."""

    def in_words(self) -> str:
        """The same in a sentence."""
        are = "is" if self.sensitive == 1 else "are"
        return (
            f"of {self.cells:,} cells and totals that are not zero {self.sensitive:,} {are} sensitive and "
            f"{self.withheld:,} would be {self.instead}, with a value of {self.value:,}. Confidential: how many are "
            "sensitive is not told."
        )

    def figures(self) -> dict[str, Any]:
        """The same for machines."""
        return {name: number for name, number in asdict(self).items() if name != "instead"}


@dataclass(frozen=True, kw_only=True)
class Merged:
    """How coarse a table would be: of every attribute its finest codes, those that are shown, and all groups."""

    about: ClassVar[str] = "merged"
    codes: Mapping[str, tuple[int, int, int]]
    cells: int

    def in_words(self) -> str:
        """The same in a sentence."""
        groups = [
            f"{name} {some:,} ({alone:,} of {all_:,} codes alone)" for name, (all_, alone, some) in self.codes.items()
        ]
        return f"it would have {self.cells:,} cells and totals, of groups of codes: {', '.join(groups)}."

    def figures(self) -> dict[str, Any]:
        """The same for machines."""
        names = ("codes", "alone", "groups")
        return {"cells": self.cells, "by": {one: dict(zip(names, n, strict=True)) for one, n in self.codes.items()}}


@dataclass(frozen=True, kw_only=True)
class Rounded:
    """How far the numbers of a table would be from the truth, so that all sums hold."""

    about: ClassVar[str] = "rounded"
    cells: int
    beyond: int
    at_most: int

    def in_words(self) -> str:
        """The same in a sentence."""
        if not self.beyond:
            return f"all {self.cells:,} numbers would be next to the true ones, and all sums hold."
        return (
            f"{self.beyond:,} of {self.cells:,} numbers would not be next to the true ones, so that all sums hold; "
            f"none would be off by more than {self.at_most:,}."
        )

    def figures(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)
