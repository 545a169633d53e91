"""Write files so that a crash leaves the old file or the new one, never a part."""

import ctypes
import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import DiskError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a system says when there is no room: on the disk, in the quota of a user, or below the limit for a file."""


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file by new content, on the disk when this returns."""
    with room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)  # a part of a confidential file is of no use, and is confidential too
            raise
        sync_folder(path.parent)


def write_new(path: Path, content: bytes, *, check: Callable[[Path], object] = lambda _: None) -> None:
    """Write a file that must not be there yet, whole or not at all, and only if it passes a check."""
    with room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # says that somebody is at work on it
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                check(Path(name))
                os.link(name, path)  # unlike a rename it fails where there is a file by now
        finally:
            Path(name).unlink(missing_ok=True)
        sync_folder(path.parent)


def remove_abandoned(path: Path) -> None:
    """Remove what a process that was killed left beside a new file; what another is at work on stays."""
    left = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")  # as `tempfile` names files
    for found in path.parent.glob(".*") if path.parent.is_dir() else ():
        if left.fullmatch(found.name) and found.is_file() and not found.is_symlink():
            with suppress(OSError), found.open("rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.unlink()


def append_line(path: Path, line: str) -> None:
    """Add a line to a file for its owner alone, on the disk when this returns; a part that a crash left is replaced."""
    with room_for(path), os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b") as file:
        file.seek(file.read().rfind(b"\n") + 1)
        file.truncate()
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Say in words that there is no room for what is written at a path."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise no_room(str(path), found=error.strerror or str(error)) from error


def no_room(where: str, *, found: str) -> DiskError:
    """The error of a full disk."""
    return DiskError(
        where,
        expected="room on the disk",
        found=found[:1].lower() + found[1:],
        do="free space on the disk, or have the quota raised, and run again: nothing was half-written, what was "
        "charged stays charged, and the next run goes on",
    )


def private_folder(path: Path) -> Path:
    """Make a folder that its owner alone can look into, and close one of this user that others can."""
    with room_for(path):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = path.stat()
        if stat.S_IMODE(found.st_mode) & 0o077 and found.st_uid == os.geteuid():
            path.chmod(0o700)  # made by an earlier version
    return path


@contextmanager
def alone(path: Path, busy: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Wait until no other process holds this lock file, and hold it; a process that dies lets go.

    `busy` is called before waiting for another: it may say so, or refuse to wait.
    """
    with room_for(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


_EXCHANGE = 2
"""What Linux calls an exchange of two names, in linux/fs.h."""


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders take each other's names at once; False where the system cannot do that."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = -100  # paths are from where the process works
    return bool(rename(here, os.fsencode(one.absolute()), here, os.fsencode(other.absolute()), _EXCHANGE) == 0)


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    with suppress(OSError, AttributeError):
        sync_file(path)
