"""Call the command `sfumato` as a user does, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

SFUMATO = [sys.executable, "-m", "sfumato"]


def call(
    *arguments: str | Path, code: int = 0, cwd: Path | None = None, typed: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command with an answer typed to its questions, and see that it ends with this exit code."""
    done = subprocess.run(
        [*SFUMATO, *map(str, arguments)],
        input=typed,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"} | environment,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert environment or "Traceback" not in done.stderr
    return done
