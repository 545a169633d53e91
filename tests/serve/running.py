"""A server as a user starts it: `sfumato serve` in a process of its own, on a free port of this machine."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.cli.call import SFUMATO
from tests.serve import patient


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where a server listens, and its process."""

    url: str
    process: subprocess.Popen[str]

    @property
    def v2(self) -> str:
        return f"{self.url}/api/v2"

    def get(self, path: str, **parameters: str) -> httpx.Response:
        """Ask for a path of PxWebApi 2; brackets in names of parameters are written with `params`."""
        return patient.get(f"{self.v2}{path}", params=parameters)

    def data(self, table: str, written: str = "json-stat2", **codes: str) -> httpx.Response:
        """Figures of a table: codes by dimension."""
        selected = {f"valueCodes[{name}]": text for name, text in codes.items()}
        return self.get(f"/tables/{table}/data", outputFormat=written, **selected)


@contextmanager
def serving(*arguments: str | Path) -> Iterator[Server]:
    """Start a server, wait until it says where it listens, and stop it at the end."""
    process = subprocess.Popen(
        [*SFUMATO, "serve", *map(str, arguments), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"},
    )
    assert process.stdout
    assert process.stderr
    try:
        said = process.stdout.readline()
        found = re.search(r"http://\S+:\d+", said)
        assert found, said + process.stderr.read()
        yield Server(url=found[0], process=process)
    finally:
        process.send_signal(signal.SIGTERM)
        if not process.stdout.closed:
            process.communicate(timeout=120)
