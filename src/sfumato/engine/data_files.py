"""The data files of a frame: on a disk, or in object storage behind an address such as s3://bucket/jobs/*.parquet."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast
from urllib.parse import quote, unquote, urlsplit

from sfumato.errors import DataError
from sfumato.frame.data import Data
from sfumato.frame.sources import Format, Source, format_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
_STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss", "hdfs": "hdfs"}
"""What Spark and people call a kind of storage, and what Arrow calls it."""
_PATTERN = frozenset("*?[]{}")
_Path = TypeVar("_Path", str, Path)


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file: where it is, and through what it is read."""

    address: str
    """What Spark is given: a path on this machine, or an address as the release file writes it."""
    path: str
    """Its path on the disk or in the storage."""
    storage: "FileSystem | None" = field(default=None, repr=False, compare=False)
    """What reads it; none for a file on a disk."""
    read_from: "tuple[DataFile, ...]" = ()
    """The files that it was read from, where they are no Parquet: it is known by them."""
    reading: str = ""
    """How they were read."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    @property
    def origin(self) -> "tuple[DataFile, ...]":
        """The files as the release file names them, also where they were read into this one."""
        return self.read_from or (self,)

    @property
    def is_database(self) -> bool:
        """Whether it is the address of a database, and no file."""
        return format_of(self.path) == "postgresql"

    @property
    def is_parquet(self) -> bool:
        """Whether its name says that it is Parquet."""
        return format_of(self.path) == "parquet"

    def state(self) -> list[int | str]:
        """What changes when a file is written again.

        On a disk its size, times and place; in object storage its size, its time and what the storage tells of it,
        such as its entity tag and version.
        """
        if self.read_from:
            return [self.reading, *(known for file in self.read_from for known in file.state())]
        if self.is_database:  # what it answered is in how the table was read
            return [0, 0, self.path]
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

    def footer(self) -> "pq.FileMetaData":
        """What a Parquet file says of itself."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self.seekable() as source:
            try:
                return pq.read_metadata(source)
            except (OSError, pa.ArrowException) as error:
                raise DataError(
                    f"data file {self.name}",
                    expected="a readable Parquet file",
                    found=str(error).strip().splitlines()[0],
                    do="write the file again",
                ) from error

    def columns(self) -> list[str]:
        """The names of the columns of a Parquet file, as they are written there."""
        names: list[str] = self.footer().schema.to_arrow_schema().names
        return names

    def _opened(self) -> AbstractContextManager[Any]:
        if self.is_database:
            return BytesIO(self.path.encode())
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


def data_files(frame: Data, names: Collection[str] | None = None) -> dict[str, list[DataFile]]:
    """The files of each table of a frame, or of some."""
    sources = frame.sources()
    return {name: files(frame, sources[name]) for name in (sources if names is None else names)}


def files(frame: Data, source: Source) -> list[DataFile]:
    """The files behind a path of the release file, which may be one file, a folder or a pattern; all of one format."""
    path = source.path
    if (source.format or format_of(path)) == "postgresql":
        return [DataFile(address=path, path=path)]
    found = _stored(path, source.format) if is_stored(path) else _on_disk(local_path(frame.folder, path), source.format)
    if not found:
        raise DataError(
            f"data file {path}",
            expected="a file, a folder of files, or a pattern such as jobs/*.parquet",
            found=f"nothing at {path if is_stored(path) else local_path(frame.folder, path)}",
            do="check the path; it is relative to the release file",
        )
    _refuse_several_formats(path, source.format, found)
    ends = {PurePosixPath(name).suffix if (name := file.name.lower()).endswith(".txt") else "" for file in found}
    if len(ends) > 1 and source.format is None:  # what says something of the data, more likely than data
        raise DataError(
            f"data file {path}",
            expected="files that end alike, so that a description in .txt is never read as data",
            found=next(file.name for file in found if file.name.lower().endswith(".txt")),
            do='take it out of the folder, name the data by a pattern such as "deliveries/*.csv", or give the `format` '
            "if it is data too",
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


def _refuse_several_formats(path: str, written: Format | None, found: Sequence[DataFile]) -> None:
    """Refuse files whose names tell several formats, or none: to leave some of them out would lose records."""
    told = {format_of(file.name): file.name for file in reversed(found)}
    unknown = None if written else told.get(None)
    known = {name: kind for kind, name in told.items() if kind is not None}
    if unknown or len(known) > 1:
        raise DataError(
            f"data file {path}",
            expected="files of one format, which their names tell: .parquet, .csv, .tsv, .xlsx, .dta, .sas7bdat, .sav, "
            ".sqlite and others",
            found=unknown or " and ".join(f"{name} ({known[name]})" for name in sorted(known)),
            do='give the format, such as format = "csv"'
            if unknown
            else "keep them in folders of their own, or name those that are meant by a pattern such as jobs/*.parquet",
        )


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


def _on_disk(whole: Path, written: Format | None) -> list[DataFile]:
    if whole.is_dir():
        given, found = whole, _data_among((path for path in whole.rglob("*") if path.is_file()), written)
    elif whole.exists():
        given, found = whole.parent, [whole]
    else:
        given = next((folder for folder in whole.parents if not set(str(folder)) & _PATTERN), Path(whole.anchor))
        found = list(Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))))
    within = {path.relative_to(given).as_posix(): str(path) for path in found}
    for inside in within:
        _refuse_passed_over(inside)
    return [DataFile(address=within[inside], path=within[inside]) for inside in _in_order(within)]


_LEFT_BEHIND = re.compile(r"~\$.*|thumbs\.db|desktop\.ini", re.IGNORECASE)
"""Files that programs of an office leave in folders: locks of workbooks that are open, and pictures."""


def _data_among(paths: Iterable[_Path], written: Format | None) -> list[_Path]:
    """The files of a folder that are data by their names; descriptions and checksums may lie beside them.

    Where a release file says what they are, all files are data; Parquet may have other files beside it then, too.
    """
    listed = [path for path in paths if not _LEFT_BEHIND.fullmatch(PurePosixPath(path).name)]
    known = [path for path in listed if format_of(str(path))]
    is_parquet = any(format_of(str(path)) == "parquet" for path in known)
    return listed if written and not (written == "parquet" and is_parquet) else known


def _stored(address: str, written: Format | None) -> list[DataFile]:
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
    found = _in_order(within)
    if "*" in rest:
        found = [inside for inside in found if _matches(inside, pattern)]
    elif alone.type != FileType.File:
        found = _data_among(found, written)
    for inside in found:
        _refuse_passed_over(inside or PurePosixPath(within[inside]).name)
    return [DataFile(address=f"{scheme}://{folder}{i}", path=within[i], storage=storage) for i in found]


def _in_order(within: Iterable[str]) -> list[str]:
    """Paths below what the release file names, in the order of their texts, slashes included.

    The fingerprint of the data depends on this order: it is the same on a disk and in object storage.
    """
    return sorted(within)


def _refuse_passed_over(inside: str) -> None:
    """Refuse a file that Spark would silently leave out, by its path below what the release file names."""
    if any(step.startswith(("_", ".")) for step in inside.strip("/").split("/")):
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
