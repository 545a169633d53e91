"""Code lists: the public codes of an attribute, in order, each with its label; and where an office keeps them."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TypeVar
from unicodedata import category

from pydantic import Field, ValidationError, model_validator

from sfumato.description import Described
from sfumato.errors import ReleaseError
from sfumato.frame.classifications import Listed
from sfumato.frame.codelist_files import CodesFile, read_listed

Kind = TypeVar("Kind")
_ALL = "all"
"""The level that stands for all of them."""


class Codelist(Described):
    """The public codes of an attribute, in order, each with its label; of a classification with parents and levels."""

    codes: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[str | None, ...] | None = None
    """The code above each, None at the top; parents of codes that were picked from a list may not be picked."""
    levels: tuple[int, ...] | None = None
    """How deep each code is in its classification, from 1 on."""
    nested: bool = False
    """Whether codes are among it that are above others of it, and nobody said that this is meant."""
    below: tuple[tuple[str, str], ...] = ()
    """The codes of its file below those that were picked, each with the picked one that it is counted in."""
    not_chosen: tuple[str, ...] = Field(default=(), repr=False)
    """The codes of its file that were not picked, and are counted in none that was: rows with them are refused."""
    translations: tuple[tuple[str, tuple[str, ...]], ...] = Field(default=(), repr=False)
    """Labels in other languages, each with the code of its language; empty where there is none."""
    reading: str = Field(default="", repr=False)
    """How its file was read, in words; empty where nothing had to be guessed."""

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if not self.codes:
            raise ValueError("a codelist needs at least one code")
        repeated = [code for code, times in Counter(self.codes).items() if times > 1]
        if repeated:
            raise ValueError(f"a codelist lists each code once; repeated: {', '.join(repeated[:5])}")
        if any(not code.strip() for code in self.codes):
            raise ValueError("a code cannot be empty")
        if any(category(sign) == "Cc" for code in self.codes for sign in code):
            raise ValueError("a code cannot have control characters, such as tabs or line ends")
        return self

    @classmethod
    def of(cls, codes: Any) -> "Codelist":
        """Make a codelist of a mapping from code to label, or of codes that are their own labels."""
        if isinstance(codes, dict):
            return cls(codes=tuple(map(str, codes)), labels=tuple(map(str, codes.values())))
        if isinstance(codes, list | tuple):
            return cls(codes=tuple(map(str, codes)), labels=tuple(map(str, codes)))
        raise ValueError("codes are a list, or a table of code = label")

    def with_unknown(self, code: str) -> "Codelist":
        """The same with a code for what is not known, where it has none: at the end, and below no other."""
        if code in self.codes:
            return self
        label = code[0].upper() + code[1:] if any(map(str.isalpha, code)) else "Unknown"
        added: dict[str, Any] = {"codes": (*self.codes, code), "labels": (*self.labels, label)}
        if self.parents is not None:
            added["parents"] = (*self.parents, None)
        if self.levels is not None:
            added["levels"] = (*self.levels, min(self.levels))
        added["translations"] = tuple((language, (*labels, "")) for language, labels in self.translations)
        return Codelist.model_validate({**self.model_dump(), **added})

    @classmethod
    def read(cls, path: Path) -> "Codelist":
        """Read a file of codes as it is, all of them."""
        return CodelistFile.model_validate(path).read(Path())


NO_CODES = Codelist.model_construct(codes=(), labels=())


class CodelistFile(CodesFile):
    """A public file of codes, and which of its codes are meant."""

    level: int | str | None = Field(
        None,
        description="only codes of this level of a classification, counted from 1 at the top, or by its name; rows "
        'with codes below them are counted in them; "all" takes codes of every level as they are',
    )
    digits: int | None = Field(
        None, ge=1, description="only codes of so many letters or digits: 01.11 has four, and 31-33 has two"
    )
    below: str | None = Field(None, description="only codes below this one, however deep")
    leaves: bool = Field(False, description="only codes that have none below them")

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_path(cls, given: Any) -> Any:
        if isinstance(given, str | Path):
            return {"file": given}
        if not isinstance(given, dict | cls):
            raise ValueError('a path such as "nace.csv", or { file = "nace.csv", level = 2 }')
        return given

    def read(self, folder: Path) -> Codelist:
        """The codes that are meant, of a file whose path is relative to a folder."""
        return _read(self, folder, _state(folder / self.file))

    def picked_from(self, listed: Listed, folder: Path) -> Codelist:
        """The codes that are meant, out of all that the file lists."""
        kept = self._picked(listed)
        if not kept:
            raise ReleaseError(
                f"codelist {self.file}",
                expected="codes that fit " + ", ".join(self._choices()),
                found=f"none among {len(listed.codes):,} codes" + self._known_levels(listed),
                do="correct the choice; `sfumato check` says how the file was read",
            )
        words = [listed.reading] if listed.reading else []
        below = _counted_in(listed, kept)
        nested = not self._takes_all(listed) and _nested(listed, kept)
        if self._choices():
            words.append(f"{len(kept):,} of {len(listed.codes):,} codes: {', '.join(self._choices())}")
        if nested:
            words.append(
                f"codes of {len(set(_at(listed.levels or (), kept)))} levels, of which none is chosen (`level` does)"
            )
        try:
            return Codelist(
                codes=_at(listed.codes, kept),
                labels=_at(listed.labels, kept),
                parents=None if listed.parents is None else _at(listed.parents, kept),
                levels=None if listed.levels is None else _at(listed.levels, kept),
                nested=nested,
                below=below,
                not_chosen=_others(listed, kept, below),
                translations=tuple((name, _at(labels, kept)) for name, labels in listed.translations.items()),
                reading="; ".join(words),
            )
        except ValidationError as error:
            raise ReleaseError(
                f"codelist {folder / self.file}",
                expected="each code once, none empty",
                found=str(error.errors()[0]["msg"]).removeprefix("Value error, "),
                do="mend the file",
            ) from error

    @property
    def in_words(self) -> str:
        """The file, and which of its codes are meant."""
        return f"{self.file.name} ({', '.join(self._choices())})"

    def _takes_all(self, listed: Listed) -> bool:
        names = {name.casefold() for name in listed.level_names}
        return str(self.level).strip().casefold() == _ALL and _ALL not in names

    def _choices(self) -> list[str]:
        said = {"level": self.level, "digits": self.digits, "below": self.below}
        return [f"{name} = {chosen}" for name, chosen in said.items() if chosen is not None] + (
            ["leaves"] if self.leaves else []
        )

    def _picked(self, listed: Listed) -> list[int]:
        kept = list(range(len(listed.codes)))
        if self.level is not None and not self._takes_all(listed):
            wanted = self._level(listed)
            kept = [at for at in kept if (listed.levels or ())[at] == wanted]
        if self.digits is not None:
            kept = [at for at in kept if _digits(listed.codes[at]) == self.digits]
        if self.below is not None:
            above = dict(zip(listed.codes, self._parents(listed, "below"), strict=True))
            if self.below not in above:
                raise ReleaseError(
                    f"codelist {self.file}",
                    expected="`below` to be one of its codes",
                    found=f"'{self.below}'",
                    do="correct the code",
                )
            kept = [at for at in kept if self.below in _ancestors(listed.codes[at], above)]
        if self.leaves:
            inner = set(self._parents(listed, "leaves"))
            kept = [at for at in kept if listed.codes[at] not in inner]
        return kept

    def _level(self, listed: Listed) -> int:
        if listed.levels is None:
            raise ReleaseError(
                f"codelist {self.file}",
                expected="a file whose levels are known: by a column with levels or parents, or by how codes begin",
                found=f"codes without levels ({listed.reading or 'columns code and label'})",
                do='name the column: columns = { parent = "…" } or { level = "…" }; or pick codes by `digits`',
            )
        names = {name.casefold(): level for name, level in listed.level_names.items()}
        written = str(self.level).strip()
        if written.casefold() in names:
            return names[written.casefold()]
        return int(written) if written.isdigit() else -1

    def _known_levels(self, listed: Listed) -> str:
        if self.level is None or listed.levels is None:
            return ""
        named = ", ".join(listed.level_names) or ", ".join(map(str, sorted(set(listed.levels))))
        return f", whose levels are {named}"

    def _parents(self, listed: Listed, option: str) -> Sequence[str | None]:
        if listed.parents is None:
            raise ReleaseError(
                f"codelist {self.file}",
                expected=f"a file whose parents are known, for `{option}`",
                found=f"codes without parents ({listed.reading or 'columns code and label'})",
                do='name the column with the parents: columns = { parent = "…" }',
            )
        return listed.parents


# Official lists have many thousands of codes, and are asked for often: each is read once, until its file changes.

_State = tuple[int, ...] | None


def _state(path: Path) -> _State:
    """What tells whether a file is still the same; None where that cannot be told."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


@lru_cache(maxsize=64)
def _read(meant: CodelistFile, folder: Path, state: _State) -> Codelist:
    whole = meant.model_copy(update={"level": None, "digits": None, "below": None, "leaves": False})
    return meant.picked_from(_listed(whole, folder, state), folder)


@lru_cache(maxsize=8)
def _listed(whole: CodelistFile, folder: Path, state: _State) -> Listed:  # noqa: ARG001 (another state is read again)
    return read_listed(folder / whole.file, whole)


def _at(values: Sequence[Kind], places: Sequence[int]) -> tuple[Kind, ...]:
    return tuple(values[place] for place in places)


def _nested(listed: Listed, kept: Sequence[int]) -> bool:
    """Whether one of these codes is above another; of several levels, where parents are not known."""
    if listed.parents is None:
        return len(set(_at(listed.levels or (), kept))) > 1 if listed.levels else False
    codes, above = set(_at(listed.codes, kept)), dict(zip(listed.codes, listed.parents, strict=True))
    return any(not codes.isdisjoint(_ancestors(code, above)) for code in codes)


def _counted_in(listed: Listed, kept: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Every code that is not kept and is below one that is, with the nearest such."""
    if listed.parents is None:
        return ()
    codes, above = set(_at(listed.codes, kept)), dict(zip(listed.codes, listed.parents, strict=True))
    found = {
        code: next((upper for upper in _ancestors(code, above) if upper in codes), None)
        for code in listed.codes
        if code not in codes
    }
    return tuple((code, upper) for code, upper in found.items() if upper is not None)


def _others(listed: Listed, kept: Sequence[int], below: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The codes that are neither kept nor counted in one that is."""
    used = {*_at(listed.codes, kept), *(code for code, _ in below)}
    return tuple(code for code in listed.codes if code not in used)


def _digits(code: str) -> int:
    """How many letters and digits a code has; of a range such as 31-33, those of its first code."""
    return sum(sign.isalnum() for sign in code.partition("-")[0])


def _ancestors(code: str, above: dict[str, str | None]) -> list[str]:
    found: list[str] = []
    parent = above.get(code)
    while parent is not None:
        found.append(parent)
        parent = above.get(parent)
    return found
