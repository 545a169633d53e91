"""One process and all that it starts, watched: how long it took, and how much memory they held together at most."""

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from bench.peers.environments import reason_of

_OFTEN = 0.02
"""Seconds between two looks at a single process."""
_SELDOM = 0.25
"""…and at several, where shared pages have to be told apart, which costs more."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may take before it is ended."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A process that ended, by itself or not."""

    seconds: float
    peak_bytes: int
    failure: str = ""
    """Why it did not finish; empty when it did."""


def watch(command: Sequence[object], *, variables: Mapping[str, str], folder: Path, limits: Limits) -> Watched:
    """Run a command in a folder of its own, and end it with all its children when it goes beyond the limits."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        begin = perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=dict(variables),
            cwd=folder,
            start_new_session=True,
        )
        looker = _Looker(process.pid, limits.peak_bytes)
        looker.start()
        failure = ""
        try:
            process.wait(timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            failure = f"ended after {limits.seconds:,.0f} s, the limit"
        finally:
            seconds = perf_counter() - begin
            looker.stop()
            end_tree(process.pid)
            process.wait()
        if looker.beyond:
            failure = f"ended at {limits.peak_bytes / 1e9:.0f} GB of memory, the limit"
        elif process.returncode < 0 and not failure:
            failure = f"ended by {signal.Signals(-process.returncode).name}"
        elif process.returncode and not failure:
            errors.seek(0)
            failure = reason_of(errors.read())
    return Watched(seconds=seconds, peak_bytes=looker.peak, failure=failure)


class _Looker(Thread):
    """Looks at a tree of processes again and again."""

    def __init__(self, root: int, limit: int) -> None:
        super().__init__(daemon=True)
        self.peak, self.beyond = 0, False
        self._root, self._limit, self._done = root, limit, Event()

    def run(self) -> None:
        """Until it is stopped: remember the most, and end the tree when that is too much."""
        while True:
            processes = tree(self._root)
            self.peak = max(self.peak, held(processes))
            if self.peak > self._limit:
                self.beyond = True
                end_tree(self._root)
                return
            if self._done.wait(_OFTEN if len(processes) == 1 else _SELDOM):
                return

    def stop(self) -> None:
        """No more looks."""
        self._done.set()
        self.join()


def tree(root: int) -> list[int]:
    """A process and all its descendants that are alive."""
    found, todo = [], [root]
    while todo:
        process = todo.pop()
        found.append(process)
        for thread in _threads(process):
            todo += [int(child) for child in _text(thread / "children").split()]
    return found


def _threads(process: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{process}/task").iterdir())
    except OSError:  # it has ended meanwhile
        return []


def held(processes: Sequence[int]) -> int:
    """Bytes: the most that a single process ever held; of several, what they hold now, shared pages shared out."""
    if len(processes) == 1:
        return _field(Path(f"/proc/{processes[0]}/status"), "VmHWM:")
    return sum(_field(Path(f"/proc/{process}/smaps_rollup"), "Pss:") for process in processes)


def _field(file: Path, name: str) -> int:
    return next((int(line.split()[1]) * 1024 for line in _text(file).splitlines() if line.startswith(name)), 0)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:  # it has ended meanwhile
        return ""


def end_tree(root: int) -> None:
    """End a process, its descendants and its group, and come back when none of those descendants runs any more."""
    handles = [handle for process in tree(root) if (handle := _handle(process)) is not None]
    with suppress(ProcessLookupError):
        os.killpg(root, signal.SIGKILL)
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        select.select([handle], [], [])
        os.close(handle)


def _handle(process: int) -> int | None:
    """A handle that stays with this very process, even when its number is given to another one."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        return None
