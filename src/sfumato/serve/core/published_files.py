"""The files of a bundle that have all of a table: offered as they were published, checked again as they are sent.

A file is opened once. What was checked is what is sent, whatever takes its place in the folder meanwhile.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any

from sfumato.bundle.manifest import listed_files
from sfumato.serve.core.errors import RefusedError, not_found, said


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """One file of a bundle, as its manifest lists it."""

    name: str
    bytes: int
    digest: str
    folder: Path = field(repr=False)

    def open(self) -> "OpenFile":
        """The file that lies in its place now, which may be another one than was published."""
        try:
            file = (self.folder / self.name).open("rb")
        except OSError:
            raise self.refusal() from None
        return OpenFile(published=self, file=file)

    def refusal(self) -> RefusedError:
        """What is said where another file lies in its place."""
        return RefusedError(
            f"the file {self.name}",
            expected="the file that was published",
            found="another one, because the tables were published anew",
            do="load the page of the table again",
            status=503,
            said=said("The tables were published anew in the meantime. Load the page again."),
        )


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """A file that is open, so that nothing else can take its place."""

    published: PublishedFile
    file: BufferedReader = field(repr=False)

    @property
    def identity(self) -> tuple[int, ...]:
        """What two who opened the same file have in common."""
        found = os.fstat(self.file.fileno())
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def check(self) -> None:
        """Refuse it where it is not the one that was published."""
        try:
            same = hashlib.file_digest(self.file, "sha256").hexdigest() == self.published.digest
        except OSError:
            same = False
        if not same:
            raise self.published.refusal()


def files_of(folder: Path, about: Mapping[str, Any]) -> tuple[PublishedFile, ...]:
    """The files of a table or cube, those of its codes, and what the bundle says of all of them."""
    return tuple(
        PublishedFile(name=name, bytes=entry["bytes"], digest=entry["sha256"], folder=folder)
        for name, entry in listed_files(folder).items()
        if _belongs(PurePosixPath(name), about)
    )


def _belongs(path: PurePosixPath, about: Mapping[str, Any]) -> bool:
    own = {about["name"], *(PurePosixPath(text).name for text in _paths(about))}
    if path.parts[0] in ("tables", "cubes"):
        return path.parts[1] in own or PurePosixPath(path.parts[1]).stem in own
    return path.name in ("statement.md", "structure.json") or str(path) in {d["codelist"] for d in about["dimensions"]}


def _paths(about: Mapping[str, Any]) -> Iterator[str]:
    for text in about.get("files", {}).values():
        if isinstance(text, str):
            yield text


def file_named(files: tuple[PublishedFile, ...], name: str) -> PublishedFile:
    """The file of this name."""
    found = next((file for file in files if file.name == name), None)
    if found is None:
        raise not_found(
            "file",
            name,
            "choose one of those that the page of the table lists",
            said("This table has no file “{name}”. Its page lists those that it has.", name=name),
        )
    return found
