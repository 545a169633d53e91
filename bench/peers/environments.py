"""The environments of the peers: one virtual environment each, because what they pin conflicts."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
SCRIPTS = _HERE / "scripts"
_REQUIREMENTS = _HERE / "requirements"
_ENVIRONMENTS = _HERE.parent / ".environments"
_LIMIT = 1200
"""Seconds that an installation may take."""
_LONGEST = 200
OURS = "sfumato"
"""The environment that the benchmark itself runs in."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A Python with the packages of one peer, or the reason why there is none."""

    name: str
    python: Path | None
    versions: Mapping[str, str]
    reason: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a process in it; where modules of ours are found is kept from the peers."""
        hidden = set() if self.name == OURS else {"PYTHONPATH"}
        return {name: value for name, value in os.environ.items() if name not in hidden}


def environment(name: str) -> Environment:
    """The environment of a peer, made when its requirements are new and kept outside of the repository's history."""
    if name == OURS:
        return Environment(name=name, python=Path(sys.executable), versions={})
    requirements = _REQUIREMENTS / f"{name}.txt"
    text = requirements.read_text(encoding="utf-8") + sys.version
    folder = _ENVIRONMENTS / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    python, ready = folder / "bin" / "python", folder / "ready"
    try:
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", folder)
            _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements)
            ready.touch()
        versions = _versions(python)
    except subprocess.TimeoutExpired:
        return Environment(name=name, python=None, versions={}, reason=f"not installed within {_LIMIT} s")
    except subprocess.CalledProcessError as error:
        return Environment(name=name, python=None, versions={}, reason=f"not installed: {reason_of(error.stderr)}")
    return Environment(name=name, python=python, versions=versions)


def reason_of(text: str) -> str:
    """The last line of an error that says something, without addresses or paths of this machine."""
    text = re.sub(r"^(Error in .*) : *\n +", r"\1: ", text, flags=re.MULTILINE)  # R breaks the line before what it says
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*[\w.]*(Error|Exception|ERROR)\b", line)]
    line = (lines or [line.strip() for line in text.splitlines() if line.strip()] or ["it said nothing"])[-1]
    line = re.sub(r"\w+://\S+", "…", line)
    return re.sub(r"(?<![\w.])/[^\s'\":,)]+", "…", line)[:_LONGEST]


def _versions(python: Path) -> dict[str, str]:
    """What is really installed, which is what the results tell."""
    listed = json.loads(_run(python, "-m", "pip", "list", "--disable-pip-version-check", "--format", "json"))
    return {row["name"]: row["version"] for row in listed if row["name"] not in {"pip", "setuptools", "wheel"}}


def _run(*command: object) -> str:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, timeout=_LIMIT, env=variables
    ).stdout
