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
SFUMATO = Path(sys.executable).with_name("sfumato")
_IMPORTS = {
    "sfumato": "import sfumato",
    "what publishing needs": "import sfumato.release, sfumato.running",
}


def make_economy(folder: Path, *, jobs: int) -> float:
    """Seconds of `sfumato economy`; its data are what everything else is measured on."""
    return seconds_of(SFUMATO, "economy", folder, "--jobs", jobs)


def demo_seconds() -> float:
    """Seconds of `sfumato demo` in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds_of(SFUMATO, "demo", "--out", Path(folder) / "demo")


def command_seconds(
    folder: Path, cases: Sequence[Case], truth: Truth, *, repeat: int, tell: Tell
) -> dict[str, list[float]]:
    """Seconds of whole commands in turn, interpreter start and imports included; every result is checked."""
    seconds: dict[str, list[float]] = {name: [] for name in ("floor", *(case.name for case in cases))}
    for number in range(1, repeat + 1):
        tell(f"whole commands, round {number} of {repeat}")
        seconds["floor"].append(seconds_of(sys.executable, _HERE / "floor.py", folder))
        for case in cases:
            release = case.prepare()
            os.sync()
            seconds[case.name].append(seconds_of(SFUMATO, "run", case.file))
            truth.check_published(release)
    return seconds


def peak_memory(folder: Path, cases: Sequence[Case], truth: Truth) -> dict[str, int]:
    """Bytes that the floor and each case held at most, each in a fresh process."""
    peak = {"floor": int(output_of(sys.executable, _HERE / "peak.py", "floor", folder))}
    for case in cases:
        release = case.prepare()
        peak[case.name] = int(output_of(sys.executable, _HERE / "peak.py", "release", case.file))
        truth.check_published(release)
    return peak


def import_seconds(*, times: int = 10) -> dict[str, float]:
    """Seconds an import adds to the start of Python: the best of several processes, less the best without it."""
    bare = min(seconds_of(sys.executable, "-c", "pass") for _ in range(times))
    return {
        name: min(seconds_of(sys.executable, "-c", code) for _ in range(times)) - bare
        for name, code in _IMPORTS.items()
    }


def seconds_of(*command: object) -> float:
    """Seconds of a command that must succeed."""
    begin = perf_counter()
    output_of(*command)
    return perf_counter() - begin


def output_of(*command: object) -> str:
    """What a command prints; it must succeed."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
