"""What a user waits for at a prompt: whole commands, each in a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from cases import Case
from foundation import Tell
from gate import Truth

_HERE = Path(__file__).parent
_SFUMATO = Path(sys.executable).with_name("sfumato")
_IMPORTS = {
    "sfumato": "import sfumato",
    "what publishing needs": "import sfumato.release_file, sfumato.run",
}


def make_economy(folder: Path, *, jobs: int) -> float:
    """Seconds of `sfumato economy`; its data are what everything else is measured on."""
    return _seconds(_SFUMATO, "economy", folder, "--jobs", jobs)


def demo_seconds() -> float:
    """Seconds of `sfumato demo` in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return _seconds(_SFUMATO, "demo", "--out", Path(folder) / "demo")


def command_seconds(
    folder: Path, cases: Sequence[Case], truth: Truth, *, repeat: int, tell: Tell
) -> dict[str, list[float]]:
    """Seconds of whole commands in turn, interpreter start and imports included; every result is checked."""
    seconds: dict[str, list[float]] = {name: [] for name in ("floor", *(case.name for case in cases))}
    for number in range(1, repeat + 1):
        tell(f"whole commands, round {number} of {repeat}")
        seconds["floor"].append(_seconds(sys.executable, _HERE / "floor.py", folder))
        for case in cases:
            release = case.prepare()
            os.sync()
            seconds[case.name].append(_seconds(_SFUMATO, "run", case.file))
            truth.check_published(release)
    return seconds


def peak_memory(folder: Path, cases: Sequence[Case], truth: Truth) -> dict[str, int]:
    """Bytes that the floor and each case held at most, each in a fresh process."""
    peak = {"floor": int(_output(sys.executable, _HERE / "peak.py", "floor", folder))}
    for case in cases:
        release = case.prepare()
        peak[case.name] = int(_output(sys.executable, _HERE / "peak.py", "release", case.file))
        truth.check_published(release)
    return peak


def import_seconds(*, times: int = 10) -> dict[str, float]:
    """Seconds an import adds to the start of Python: the best of several processes, less the best without it."""
    bare = min(_seconds(sys.executable, "-c", "pass") for _ in range(times))
    return {
        name: min(_seconds(sys.executable, "-c", code) for _ in range(times)) - bare for name, code in _IMPORTS.items()
    }


def _seconds(*command: object) -> float:
    begin = perf_counter()
    _output(*command)
    return perf_counter() - begin


def _output(*command: object) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
