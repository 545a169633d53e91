"""The folder for what does not fit into memory: only its owner can read it, and it does not outlive a killed run."""

import atexit
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

_NAME = re.compile(r"sfumato-(\d+)-\w+")
_LOCK = "in-use"
"""A file in the folder that its process holds locked: the number of a process says nothing to other machines."""


@contextmanager
def spill_folder() -> Iterator[str]:
    """A folder of this process in the system's temporary folder; those that killed runs left there are removed."""
    _remove_left_over()
    # What another program still writes there while it is removed is left to the next run.
    with TemporaryDirectory(prefix=f"sfumato-{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        early = Path(folder) / f".{_LOCK}"
        descriptor = os.open(early, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            early.rename(early.with_name(_LOCK))  # under this name nobody ever finds it without its lock
            yield folder
        finally:
            os.close(descriptor)


@cache
def spill_folder_of_process() -> str:
    """The folder of an engine that cannot change it once it has started: one for the process, removed at its end."""
    held = ExitStack()
    folder = held.enter_context(spill_folder())
    atexit.register(held.close)
    return folder


def _remove_left_over() -> None:
    """Remove the folders of this user that no process holds."""
    for folder in Path(gettempdir()).glob("sfumato-*"):
        named = _NAME.fullmatch(folder.name)
        if named and _is_own(folder) and not _is_in_use(folder, int(named[1])):
            shutil.rmtree(folder, ignore_errors=True)  # another run may be removing it too


def _is_in_use(folder: Path, process: int) -> bool:
    """Whether the lock is held, or a process of this number runs where there is no lock yet.

    Numbers of processes come again, in containers at every start: where there is a lock, it alone decides.
    """
    held = _is_held(folder / _LOCK)
    return _runs(process) if held is None else held


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


def _is_held(lock: Path) -> bool | None:
    """Whether a process, of this machine or of another that shares the folder, holds the lock; None without a lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
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
