"""A table larger than memory: made in parts in a fresh process, checked, with its steps, its pace and its peak."""

import json
import sys
from pathlib import Path
from typing import Any

from foundation import Tell
from large_data import METHODS, write_large
from large_gate import check_large
from processes import make_economy, output_of

_HERE = Path(__file__).parent


def measure_large(folder: Path, *, jobs: int, cells: int, tell: Tell) -> dict[str, Any]:
    """Make the economy and its register, and publish the table once with each method."""
    tell("making an economy")
    make_economy(folder, jobs=jobs)
    tell("making the register")
    large = write_large(folder, cells=cells)
    runs = {}
    for name in METHODS:
        tell(f"the table in parts: {name}")
        runs[name] = json.loads(output_of(sys.executable, _HERE / "large_run.py", folder / f"{name}.toml"))
        tell(f"checking: {name}")
        runs[name] |= check_large(large, name)
    return {"jobs": jobs, "cells": large.cells, "runs": runs}
