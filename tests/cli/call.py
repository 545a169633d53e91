"""Call the command `sfumato` as a user does, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

REFUSED = range(2, 11)
SFUMATO = [sys.executable, "-m", "sfumato"]


def call(
    *arguments: str | Path,
    code: int = 0,
    refused: bool = False,
    cwd: Path | None = None,
    typed: str = "",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run the command with an answer typed to its questions, and see that it ends with this exit code.

    What is refused ends with the exit code of an error that sfumato foresees; which one, tests of exit codes say.
    """
    done = subprocess.run(
        [*SFUMATO, *map(str, arguments)],
        input=typed,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"} | environment,
        check=False,
    )
    expected = REFUSED if refused else (code,)
    assert done.returncode in expected, f"{done.returncode}\n{done.stdout}{done.stderr}"
    assert environment or "Traceback" not in done.stderr
    return done
