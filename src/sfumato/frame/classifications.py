"""Classifications: which code is above which, and how deep each is, where a file says it in one way or another."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.errors import ReleaseError

_RANGE = re.compile(r"(\d+)\s*[-–]\s*(\d+)")


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The codes of a file in its order, as far as it tells what they are."""

    named: str
    """What messages call the file."""
    codes: Sequence[str]
    labels: Sequence[str]
    places: Sequence[str]
    """Where each is in the file, for messages, such as row 7."""
    parents: Sequence[str | None] | None = None
    levels: Sequence[int] | None = None
    level_names: Mapping[str, int] = field(default_factory=dict)
    """Words for levels, such as Division, where the file has words."""
    translations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Labels in other languages, by the code of the language."""
    reading: str = ""
    """How the file was read, in words."""

    def complete(self) -> "Listed":
        """The same codes with the parents and levels that follow from each other, or from how codes begin."""
        found, words = self, []
        if self.parents is not None:
            self._refuse_unknown_parents(self.parents)
        else:
            for parents, why in ((self._by_beginning(), "how codes begin"), (self._by_order(), "levels and order")):
                if parents is not None:
                    found, words = replace(self, parents=parents), [f"parents by {why}"]
                    break
        if found.parents is not None:
            depths = self._depths(found.parents)  # refuses circles
            found = found if found.levels is not None else replace(found, levels=depths)
        return replace(found, reading="; ".join(filter(None, (self.reading, *words))))

    def _refuse_unknown_parents(self, parents: Sequence[str | None]) -> None:
        known = set(self.codes)
        for code, parent, place in zip(self.codes, parents, self.places, strict=True):
            if parent is not None and (parent not in known or parent == code):
                raise ReleaseError(
                    f"{self.named}, {place}",
                    expected=f"the parent of '{code}' to be another code of the list",
                    found=f"'{parent}'",
                    do="add the parent to the list, or mend the row",
                )

    def _depths(self, parents: Sequence[str | None]) -> list[int]:
        above = dict(zip(self.codes, parents, strict=True))
        depths: dict[str, int] = {}
        for code, place in zip(self.codes, self.places, strict=True):
            path: list[str] = []
            here: str | None = code
            while here is not None and here not in depths:
                if here in path:
                    raise ReleaseError(
                        f"{self.named}, {place}",
                        expected="parents that lead to the top of the list",
                        found=f"'{code}', which is below itself",
                        do="mend the parents",
                    )
                path.append(here)
                here = above[here]
            depth = 0 if here is None else depths[here]
            for step in reversed(path):
                depth += 1
                depths[step] = depth
        return [depths[code] for code in self.codes]

    def _by_beginning(self) -> list[str | None] | None:
        """Parents by how codes begin, 0111 below 011 and 311 below 31-33; None unless all but the shortest have one."""
        begins: dict[str, str] = {}
        for code in self.codes:
            if found := _RANGE.fullmatch(code):
                low, high = int(found[1]), int(found[2])
                begins |= {str(one).zfill(len(found[1])): code for one in range(low, min(high, low + 99) + 1)}
            else:
                begins.setdefault(_bare(code), code)
        lengths = {len(begin) for begin in begins}
        if len(lengths) < 2 or any(not begin.isdigit() for begin in begins):
            return None
        parents: list[str | None] = []
        for code in self.codes:
            own = _RANGE.fullmatch(code)[1] if _RANGE.fullmatch(code) else _bare(code)  # type: ignore[index]
            shorter = (begins.get(own[:length]) for length in range(len(own) - 1, 0, -1))
            parent = next(filter(None, shorter), None)
            if parent is None and len(own) > min(lengths):
                return None
            parents.append(parent)
        return parents

    def _by_order(self) -> list[str | None] | None:
        """Parents by levels, where each code follows the one above it; None unless all but the deepest have some."""
        if self.levels is None or len(set(self.levels)) < 2:
            return None
        parents: list[str | None] = []
        path: list[tuple[int, str]] = []
        for code, level in zip(self.codes, self.levels, strict=True):
            while path and path[-1][0] >= level:
                path.pop()
            parents.append(path[-1][1] if path else None)
            path.append((level, code))
        above, deepest, top = set(parents), max(self.levels), min(self.levels)
        complete = all(
            (code in above or level == deepest) and ((parent is None) == (level == top))
            for code, level, parent in zip(self.codes, self.levels, parents, strict=True)
        )
        return parents if complete else None


def _bare(code: str) -> str:
    return code.replace(".", "").strip()


def levels_of(words: Sequence[str]) -> tuple[list[int], dict[str, int]] | None:
    """Levels that a column has as numbers or as words, which are counted as they first come; None where one is empty.

    >>> levels_of(["Section", "Division", "Division"])
    ([1, 2, 2], {'Section': 1, 'Division': 2})
    """
    bare = [word.strip().removesuffix(".0") for word in words]
    if not all(bare):
        return None
    if all(re.fullmatch(r"\d{1,2}", word) for word in bare):
        return [int(word) for word in bare], {}
    names = {name: place for place, name in enumerate(dict.fromkeys(bare), 1)}
    return [names[word] for word in bare], names
