"""The folder for what does not fit into memory: only its owner can read it, and it does not outlive a killed run."""

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

_NAME = re.compile(r"sfumato-(\d+)-\w+")
_LOCK = "in-use"
"""A file in the folder that its process holds locked: the number of a process says nothing to other machines."""


@contextmanager
def spill_folder() -> Iterator[str]:
    """A folder of this process in the system's temporary folder; those that killed runs left there are removed."""
    _remove_left_over()
    with TemporaryDirectory(prefix=f"sfumato-{os.getpid()}-") as folder:
        descriptor = os.open(Path(folder) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield folder
        finally:
            os.close(descriptor)


def _remove_left_over() -> None:
    """Remove the folders of this user whose process has ended."""
    for folder in Path(gettempdir()).glob("sfumato-*"):
        named = _NAME.fullmatch(folder.name)
        if named and _is_own(folder) and not _runs(int(named[1])) and not _is_held(folder / _LOCK):
            shutil.rmtree(folder, ignore_errors=True)  # another run may be removing it too


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it runs, for someone else
    return True


def _is_held(lock: Path) -> bool:
    """Whether a process, of this machine or of another that shares the folder, holds the lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
