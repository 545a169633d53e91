"""A small client for machines without wrk: `bench.serve.client PORT PATHS CONNECTIONS SECONDS` asks as fast as it can.

It says in one line of JSON how many answers came, how long they took, and how many were errors.
"""

import asyncio
import json
import sys
from itertools import cycle
from pathlib import Path
from time import perf_counter


class Load:
    """Connections to this machine that ask for paths in turn until the time is over."""

    def __init__(self, port: int, paths: list[str], seconds: float) -> None:
        self._port, self._paths = port, cycle(paths)
        self._end = perf_counter() + seconds
        self.latencies: list[float] = []
        self.errors = 0

    async def connection(self) -> None:
        """Ask over one connection; a broken one counts as an error and ends."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            while perf_counter() < self._end:
                begin = perf_counter()
                writer.write(f"GET {next(self._paths)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
                await reader.readexactly(int(fields[b"content-length"]))
                self.latencies.append(perf_counter() - begin)
                self.errors += not head.startswith(b"HTTP/1.1 200")
            writer.close()
        except (OSError, asyncio.IncompleteReadError, KeyError):
            self.errors += 1


async def main(port: int, paths: Path, connections: int, seconds: float) -> None:
    """Load the server and print the figures."""
    load = Load(port, paths.read_text(encoding="utf-8").splitlines(), seconds)
    begin = perf_counter()
    await asyncio.gather(*(load.connection() for _ in range(connections)))
    taken, ordered = perf_counter() - begin, sorted(load.latencies)
    print(
        json.dumps(
            {
                "requests": len(ordered),
                "seconds": taken,
                "p50": ordered[len(ordered) // 2],
                "p99": ordered[len(ordered) * 99 // 100],
                "errors": load.errors,
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
