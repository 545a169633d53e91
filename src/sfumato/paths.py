"""What lies at a path, in words: a wrong file is named for what it is, and a missing one with what is near it."""

import os
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from sfumato.errors import UsageError

_BEGINNINGS = {
    b"SQLite format 3\0": "a database of SQLite, as a ledger is",
    b"PAR1": "a data file (Parquet)",
    b"PK\x03\x04": "a workbook or an archive",
}
"""How files begin that are not text."""
_DATA = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".dta", ".sas7bdat", ".sav", ".gz", ".zst")
NEAR = 5
"""As many names are told."""


def is_bundle(path: Path) -> bool:
    """Whether `sfumato run` published this folder; what is in it is not looked at."""
    return (path / "manifest.json").is_file() and (path / "structure.json").is_file()


def is_release(path: Path) -> bool:
    """Whether a file is called like a release file."""
    return path.suffix == ".toml" and path.is_file()


def is_ledger(path: Path) -> bool:
    """Whether a file is called like a ledger."""
    return path.suffix == ".sqlite" and path.is_file()


def described(path: Path) -> str:
    """What lies at a path.

    >>> described(Path("/nowhere/release.toml"))
    'no such file or folder'
    """
    try:
        if path.is_dir():
            return "a bundle, which `sfumato run` published" if is_bundle(path) else "a folder"
        with path.open("rb") as file:
            beginning = file.read(16)
    except FileNotFoundError:
        return "no such file or folder"
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()
    known = [words for signature, words in _BEGINNINGS.items() if beginning.startswith(signature)]
    usual = {".toml": "a release file", ".key": "a key file"} | dict.fromkeys(_DATA, "a data file")
    return known[0] if known else usual.get(path.suffix, "a file of another kind") if beginning else "an empty file"


def nearby(path: Path, wanted: Callable[[Path], bool]) -> list[Path]:
    """What is wanted and lies where the path leads, beside it or in a folder below: the most alike first."""
    folder = path if path.is_dir() else next(parent for parent in (path.absolute().parents) if parent.is_dir())
    try:
        beside = sorted(folder.iterdir())
        found = [each for each in beside if wanted(each) and each.absolute() != path.absolute()]
        found = found or [
            each for below in beside if below.is_dir() for each in sorted(below.iterdir()) if wanted(each)
        ]
    except OSError:  # a folder that may not be looked into has nothing to tell
        return []
    alike = get_close_matches(path.name, [each.name for each in found], n=NEAR)
    found.sort(key=lambda each: alike.index(each.name) if each.name in alike else NEAR)
    return found[:NEAR]


def typed(path: Path) -> str:
    """A path as a person would type it from here."""
    here = Path.cwd()
    found = path if path.is_absolute() else here / path
    return os.path.relpath(found) if found.is_relative_to(here) else str(path)


def meant(path: Path, wanted: Callable[[Path], bool], otherwise: str) -> str:
    """What to do about a path that is not what is wanted: the ones near it that are, or something else."""
    names = [typed(each) for each in nearby(path, wanted)]
    if not names:
        return otherwise
    return f"did you mean {names[0]}?" if len(names) == 1 else f"name one of those near it: {', '.join(names)}"


def refuse_other(path: Path, option: str, kind: str, begins: bytes, *, planned: Path | None = None) -> Path:
    """A path to write to: neither in a bundle, which is published, nor what is there and of another kind.

    `planned` is the folder of a bundle that may not be there yet.
    """
    folders = path.resolve().parents
    bundle = any(is_bundle(one) or (planned is not None and one == planned.resolve()) for one in folders)
    try:
        with path.open("rb") as file:
            other = file.read(len(begins))
    except OSError:  # what cannot be read is left to whoever writes
        other = b""
    if bundle or path.is_dir() or (other and other != begins):
        raise UsageError(
            f"{option} {typed(path)}",
            expected=f"a new file, or an earlier {kind}",
            found="a place in a bundle, which is published" if bundle else described(path),
            do="name another file",
        )
    return path
