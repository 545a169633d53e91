"""Write files so that a crash leaves the old file or the new one, never a part."""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
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
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process holds this lock file, and hold it; a process that dies lets go."""
    with room_for(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
