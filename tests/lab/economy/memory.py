"""The most memory that a process of its own ever held."""

import subprocess
import sys
from pathlib import Path

_TOLD = """
import atexit, sys
sys.path.append({root!r})
from bench.shared.child import peak_bytes
atexit.register(lambda: print(peak_bytes()))
"""
ROOT = Path(__file__).parents[3]


def peak(code: str, *words: object) -> tuple[list[str], int]:
    """What some code prints, run with some words as its arguments, and the bytes that it needed at most."""
    command = [sys.executable, "-c", _TOLD.format(root=str(ROOT)) + code, *map(str, words)]
    *said, most = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return said, int(most)
