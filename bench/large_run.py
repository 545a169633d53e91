"""Publish one release in this process: `python large_run.py FILE` prints seconds by step and the peak, as JSON."""

import json
import sys
from pathlib import Path
from time import perf_counter

import ibis.backends.duckdb  # noqa: F401 (loaded by `run` on first use: only so is it outside of the clock)
from peak import peak_bytes

from sfumato.release import load
from sfumato.running import run


def main() -> None:
    """Run the release and tell how long each step took."""
    begun: list[tuple[str, float]] = []
    run(load(Path(sys.argv[1])), progress=lambda step: begun.append((step, perf_counter())))
    ends = [*(at for _, at in begun[1:]), perf_counter()]
    seconds = {step: end - at for (step, at), end in zip(begun, ends, strict=True)}
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()
