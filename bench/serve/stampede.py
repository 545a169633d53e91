"""Many readers of one new page at a time, and workbooks while others ask.

`python -m bench.serve.stampede BUNDLE… [--beside SRC]`, of which one bundle has the cube `requirements`. With
`--beside` the code in another folder `src` answers the same in turn, for figures side by side of one run.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

READERS = 400
ROUNDS = 5
PATIENCE = 120
"""Seconds after which a reader has waited long enough."""
PAGE = (
    "/tables/requirements?valueCodes[occupation]=top({})&valueCodes[strength]=*&valueCodes[education]=*"
    "&valueCodes[contents]=weighted&valueCodes[contents]=weighted_error"
)
CELLS = 80_000
WORKBOOK = (
    "/api/v2/tables/requirements/data?outputFormat=xlsx&outputFormatParams={}&valueCodes[occupation]=*"
    "&valueCodes[strength]=*&valueCodes[education]=*&valueCodes[contents]=weighted,weighted_error,count,count_error"
)
"""800 × 5 × 5 × 4 figures."""
SPELLINGS = ("UseCodes", "UseTexts", "UseCodesAndTexts", "UseCodes,IncludeTitle", "UseTexts,IncludeTitle")
"""Other workbooks of the same figures, so that none is answered from what was kept."""
_EVERY = 0.005


async def _asked(port: int, path: str, reader: int) -> tuple[int, float]:
    """The status that one reader gets, from an address of its own, and when all of the answer was there."""
    source = f"127.1.{reader // 250}.{reader % 250 + 1}"
    began = perf_counter()
    incoming, outgoing = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    outgoing.write(head.encode())
    content = await asyncio.wait_for(incoming.read(), PATIENCE)
    outgoing.close()
    return int(content[9:12]), perf_counter() - began


async def stampede(port: int, path: str) -> dict[str, object]:
    """What readers get who ask for one page at the same moment."""
    found = await asyncio.gather(*(_asked(port, path, reader) for reader in range(READERS)))
    return {"statuses": dict(Counter(status for status, _ in found)), "last": max(seconds for _, seconds in found)}


async def workbook(port: int, path: str) -> dict[str, float]:
    """How long a workbook takes, and how long others wait meanwhile for an answer that is given at once."""
    waits: list[float] = []

    async def others() -> None:
        while True:
            waits.append((await _asked(port, "/health", len(waits) % 200))[1])
            await asyncio.sleep(_EVERY)

    task = asyncio.ensure_future(others())
    try:
        status, seconds = await _asked(port, path, 300)
    finally:
        task.cancel()
    if status != 200:
        raise RuntimeError(f"the workbook was answered with {status}")
    ordered = sorted(waits)
    return {"seconds": seconds, "p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]}


@contextmanager
def serving(bundles: Sequence[str | Path], source: Path | None, state: str) -> Iterator[int]:
    """The port of a server of this code, or of that in another folder."""
    own = {} if source is None else {"PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "sfumato", "serve", *map(str, bundles), "--port", "0", "--rate", "0"]
    process = subprocess.Popen(
        [*command, "--state", state], stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"} | own
    )
    assert process.stdout
    try:
        said = process.stdout.readline()
        found = re.search(r"http://localhost:(\d+)", said)
        if not found:
            raise RuntimeError(f"the server did not start: {said}")
        yield int(found[1])
    finally:
        process.terminate()
        process.communicate(timeout=30)


def measure(bundles: Sequence[str | Path], sources: dict[str, Path | None]) -> dict[str, dict[str, list[object]]]:
    """Rounds of both, of each code in turn, on servers that know no answer yet."""
    found: dict[str, dict[str, list[object]]] = {name: {"stampede": [], "workbook": []} for name in sources}
    with TemporaryDirectory() as folder:
        for at in range(ROUNDS):
            for name, source in sources.items():
                with serving(bundles, source, f"{folder}/{name}") as port:
                    asyncio.run(_asked(port, "/tables/requirements", 0))  # the first page of all reads the templates
                    found[name]["stampede"].append(asyncio.run(stampede(port, PAGE.format(400 + at))))
                    found[name]["workbook"].append(asyncio.run(workbook(port, WORKBOOK.format(SPELLINGS[at]))))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--beside", type=Path)
    asked = parser.parse_args()
    beside: dict[str, Path | None] = {} if asked.beside is None else {"earlier": asked.beside}
    print(json.dumps(measure(asked.bundles, {**beside, "now": None}), indent=1))
