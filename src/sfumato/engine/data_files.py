"""The data files of a frame: on a disk, or in object storage behind an address such as s3://bucket/jobs/*.parquet."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote, unquote, urlsplit

from sfumato.errors import DataError
from sfumato.frame import Data

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
_STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss", "hdfs": "hdfs"}
"""What Spark and people call a kind of storage, and what Arrow calls it."""
_PATTERN = frozenset("*?[]{}")


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One Parquet file: where it is, and through what it is read."""

    address: str
    """What Spark is given: a path on this machine, or an address as the release file writes it."""
    path: str
    """Its path on the disk or in the storage."""
    storage: "FileSystem | None" = field(default=None, repr=False, compare=False)
    """What reads it; none for a file on a disk."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    def state(self) -> list[int | str]:
        """What changes when a file is written again.

        On a disk its size, times and place; in object storage its size, its time and what the storage tells of it,
        such as its entity tag and version.
        """
        with self._readable():
            if self.storage is None:
                status = Path(self.path).stat()
                return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            info = self.storage.get_file_info(self.path)
            with self.storage.open_input_file(self.path) as file:
                told = file.metadata() or {}
            return [int(info.size or 0), int(info.mtime_ns or 0), repr(sorted(told.items()))]

    def written(self) -> int:
        """When the file was written, in seconds since 1970."""
        return cast(int, self.state()[1]) // 1_000_000_000

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The content of the file, to be read from its beginning."""
        with self._readable(), self._opened() as file:
            yield file

    @contextmanager
    def seekable(self) -> "Iterator[NativeFile]":
        """The same file for Arrow, to be read at any place."""
        from pyarrow.fs import LocalFileSystem

        with self._readable(), (self.storage or LocalFileSystem()).open_input_file(self.path) as file:
            yield file

    def _opened(self) -> AbstractContextManager[Any]:
        if self.storage is None:
            return Path(self.path).open("rb")
        return cast(AbstractContextManager[Any], self.storage.open_input_stream(self.path))

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"data file {self.name}",
                expected="a file that can be read",
                found=str(error),
                do="check the file's permissions",
            ) from error


def data_files(frame: Data) -> dict[str, list[DataFile]]:
    """The files of each table of a frame."""
    return {name: files(frame, path) for name, path in frame.sources().items()}


def files(frame: Data, path: str) -> list[DataFile]:
    """The Parquet files behind a path of the release file, which may be one file, a folder or a pattern."""
    found = _stored(path) if is_stored(path) else _on_disk(local_path(frame.folder, path))
    wrong = next((file.name for file in found if not file.name.endswith(".parquet")), None)
    if not found or wrong:
        raise DataError(
            f"data file {path}",
            expected="a Parquet file, a folder of them, or a pattern such as jobs/*.parquet",
            found=wrong or f"nothing at {path if is_stored(path) else local_path(frame.folder, path)}",
            do="convert the file to Parquet" if wrong else "check the path; it is relative to the release file",
        )
    odd = next((file for file in found if set(file.path) & _PATTERN), None)
    if odd is not None:
        raise DataError(
            f"data file {path}",
            expected="a path without the characters * ? [ ] { }, which engines read as patterns",
            found=odd.path,
            do="rename the file or folder",
        )
    return found


def arrow_dataset(listed: Sequence[DataFile]) -> "Dataset":
    """Files in object storage as one table; all have the same columns, or it is refused."""
    from pyarrow.dataset import dataset

    together = dataset([file.path for file in listed], filesystem=listed[0].storage, format="parquet")
    if any(fragment.physical_schema.names != together.schema.names for fragment in together.get_fragments()):
        raise ValueError("the files do not have the same columns in the same order")
    return together


def is_stored(path: str) -> bool:
    """Whether a path of the release file is the address of something that is not on a disk of this machine."""
    return _SCHEME.match(path) is not None and urlsplit(path).scheme.lower() != "file"


def local_path(folder: Path, path: str) -> Path:
    """Where a path of the release file is on this machine: relative to its folder, or behind file://."""
    if _ONE_SLASH.match(path):
        raise DataError(
            f"data file {path}",
            expected="an address with two slashes after its colon, such as s3://…, and three in file:///…",
            found="one with a single slash",
            do="write all slashes, or give a path; ./ before a folder whose name has a colon makes it one",
        )
    if not _SCHEME.match(path):
        return (folder / path).absolute()
    address = urlsplit(path)
    if address.netloc not in ("", "localhost"):
        raise DataError(
            f"data file {path}",
            expected="file:///… with three slashes: a path on this machine",
            found=f"the machine '{address.netloc}'",
            do="leave the machine out, or mount its folder",
        )
    odd = next((part for part in ("?", "#", "%2F", "%2f") if part in path), None)
    if odd is not None:
        raise DataError(
            f"data file {path}",
            expected="an address file:///… without ?, # and %2F, which do not stand for themselves in addresses",
            found=f"'{odd}'",
            do="give the path without file://, or write %23 for # in a name",
        )
    return Path(unquote(address.path))


def _on_disk(whole: Path) -> list[DataFile]:
    if whole.is_dir():
        given, found = whole, list(whole.rglob("*.parquet"))
    elif whole.exists():
        given, found = whole.parent, [whole]
    else:
        given = next((folder for folder in whole.parents if not set(str(folder)) & _PATTERN), Path(whole.anchor))
        found = list(Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))))
    within = {path.relative_to(given).as_posix(): str(path) for path in found}
    for inside in within:
        _refuse_passed_over(inside)
    return [DataFile(address=within[inside], path=within[inside]) for inside in _in_order(within)]


def _stored(address: str) -> list[DataFile]:
    """The files in object storage behind an address, listed by Arrow whatever engine reads them."""
    import pyarrow as pa
    from pyarrow.fs import FileSelector, FileSystem, FileType

    scheme, _, rest = address.partition("://")
    _refuse_address(address, scheme, rest)
    folder = rest.split("*", maxsplit=1)[0].rpartition("/")[0] if "*" in rest else rest.rstrip("/")
    try:
        storage, begin = FileSystem.from_uri(f"{_STORES[scheme.lower()]}://{quote(folder, safe='/@:')}")
        begin = begin.rstrip("/")
        alone = storage.get_file_info(begin)
        listed = [alone]
        if alone.type != FileType.File:
            listed = storage.get_file_info(FileSelector(begin, recursive=True, allow_not_found=True))
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"data file {address}",
            expected="object storage that can be reached",
            found=str(error).splitlines()[0],
            do="check the address, and the credentials in the environment; see docs/cluster.md",
        ) from error
    pattern = rest.removeprefix(folder)
    within = {info.path.removeprefix(begin): info.path for info in listed if info.type == FileType.File}
    found = [
        inside
        for inside in _in_order(within)
        if (_matches(inside, pattern) if "*" in rest else inside == "" or inside.endswith(".parquet"))
    ]
    for inside in found:
        _refuse_passed_over(inside or PurePosixPath(within[inside]).name)
    return [DataFile(address=f"{scheme}://{folder}{i}", path=within[i], storage=storage) for i in found]


def _in_order(within: Iterable[str]) -> list[str]:
    """Paths below what the release file names, in the order of their texts, slashes included.

    The fingerprint of the data depends on this order: it is the same on a disk and in object storage.
    """
    return sorted(within)


def _refuse_passed_over(inside: str) -> None:
    """Refuse a Parquet file that Spark would silently leave out, by its path below what the release file names."""
    if inside.endswith(".parquet") and any(step.startswith(("_", ".")) for step in inside.strip("/").split("/")):
        raise DataError(
            f"data file {inside.strip('/')}",
            expected="names of files and folders that do not begin with _ or ., which mark what is not finished: "
            "engines do not agree on reading it",
            found="one that does",
            do="rename it, or remove what is left over",
        )


def _refuse_address(address: str, scheme: str, rest: str) -> None:
    if scheme.lower() not in _STORES:
        raise DataError(
            f"data file {address}",
            expected=f"a path, or an address that begins with one of {', '.join(f'{known}://' for known in _STORES)}",
            found=f"'{scheme}://'",
            do="copy or mount the files, and give their path",
        )
    if ":" in rest.partition("@")[0] and "@" in rest:
        raise DataError(
            f"data file {scheme}://…",
            expected="an address without a password: release files are read by many",
            found="one with a password",
            do="give credentials in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    if set(rest) & (_PATTERN - {"*"}):
        raise DataError(
            f"data file {address}",
            expected="an address without the characters ? [ ] { }; the pattern * is understood",
            found=", ".join(sorted(set(rest) & (_PATTERN - {"*"}))),
            do="use *, or name the folder",
        )


def _matches(inside: str, pattern: str) -> bool:
    """Whether the steps of a path match those of a pattern; ** stands for any number of steps."""
    return _steps_match(inside.strip("/").split("/"), pattern.strip("/").split("/"))


def _steps_match(steps: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not steps
    if patterns[0] == "**":
        return any(_steps_match(steps[skipped:], patterns[1:]) for skipped in range(len(steps) + 1))
    return bool(steps) and fnmatchcase(steps[0], patterns[0]) and _steps_match(steps[1:], patterns[1:])
