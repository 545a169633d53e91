"""A server under good and hostile questions for an hour, while its bundles are published anew: is its memory flat?

`python -m bench.serve.soak BUNDLE… [--minutes 60] [--share 0.4] [--seed 1] [--out FILE]`. Copies of the bundles are
served from a folder, each under a name of its own. Everything stays on this machine, and ends by itself.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import fmean, linear_regression
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from urllib.request import urlopen

from bench.serve.questions import AskedTable, Question, Questions

ASKERS, SLOW = 12, 24
"""Connections that ask one question after the other, and those of readers and senders that take their time."""
PATIENCE = 90
DOCUMENTED = (501, 503)
"""What the server may say of itself: a part of a standard is left out, or it has too much to do."""
FLAT = 0.05
"""Growth in an hour, as a share of all memory, that counts as none."""
_SAMPLE, _CHANGE, _LINGER = 1.0, 20.0, 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(eq=False)
class Tally:
    """What happened in some time."""

    statuses: Counter[str] = field(default_factory=Counter)
    by_kind: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    changes: int = 0

    def add(self, kind: str, status: str, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        self.by_kind.setdefault(kind, Counter())[status] += 1
        self.seconds.append(seconds)

    def report(self) -> dict[str, Any]:
        """The figures, latencies in milliseconds."""
        ordered = sorted(self.seconds) or [0.0]
        return {
            "requests": len(self.seconds),
            "statuses": dict(sorted(self.statuses.items())),
            "p50_ms": round(1_000 * ordered[len(ordered) // 2], 1),
            "p99_ms": round(1_000 * ordered[len(ordered) * 99 // 100], 1),
            "changes": self.changes,
        }


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a process holds at a moment."""

    at: float
    megabytes: float
    files: int
    threads: int
    processor: float

    @classmethod
    def of(cls, process: int, began: float) -> "Held":
        """Read it from the system."""
        root = Path(f"/proc/{process}")
        status = dict(line.split(":", 1) for line in (root / "status").read_text(encoding="utf-8").splitlines())
        if "VmRSS" not in status:
            raise RuntimeError("the server has ended")
        fields = (root / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return cls(
            at=monotonic() - began,
            megabytes=int(status["VmRSS"].split()[0]) / 1_024,
            files=len(list((root / "fd").iterdir())),
            threads=int(status["Threads"]),
            processor=(int(fields[11]) + int(fields[12])) / _TICKS,
        )


class Soak:
    """One run against a server that listens on a port, over bundles in a folder."""

    def __init__(self, port: int, process: int, folder: Path, *, seed: int, share: float) -> None:
        self._port, self._process, self._folder, self._share = port, process, folder, share
        self._chance = random.Random(seed)
        self._questions = Questions(seed, list(tables_of(port)))
        self._asked = iter(self._questions)
        self._pause, self._began = 0.02, monotonic()
        self.minute, self.whole = Tally(), Tally()
        self.held: list[Held] = []
        self.faults: list[dict[str, str]] = []
        self._first: dict[bytes, bytes] = {}
        self._fixed = [one.sent for one in (next(self._asked) for _ in range(400)) if one.kind in ("data", "page")][:40]
        self.wrong = 0

    async def run(self, seconds: float) -> list[dict[str, Any]]:
        """Ask for so long; a report for every minute."""
        minutes = []
        tasks = [asyncio.ensure_future(one()) for one in (*[self._ask] * ASKERS, *[self._slow] * SLOW)]
        tasks += [asyncio.ensure_future(one()) for one in (self._watch, self._change, self._same)]
        try:
            for at in range(max(round(seconds / 60), 1)):
                await asyncio.sleep(min(seconds, 60))
                if any(task.done() for task in tasks):
                    next(task for task in tasks if task.done()).result()
                held, report = self.held[-1], self.minute.report()
                minutes.append(
                    {
                        "minute": at + 1,
                        **report,
                        "megabytes": round(held.megabytes, 1),
                        "files": held.files,
                        "threads": held.threads,
                    }
                )
                print(json.dumps(minutes[-1]), file=sys.stderr, flush=True)
                self.minute = Tally()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return minutes

    async def _ask(self) -> None:
        while True:
            question = next(self._asked)
            await self._answered(question)
            await asyncio.sleep(self._pause * self._chance.uniform(0.5, 1.5) * ASKERS)

    async def _answered(self, question: Question) -> bytes:
        """Ask, read all of the answer, and keep its first bytes."""
        began, status, head = monotonic(), "none", b""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    with suppress(ConnectionError):
                        writer.write(question.sent)
                        await writer.drain()
                    while part := await reader.read(65_536):
                        head += part if len(head) < 300_000 else b""
                finally:
                    writer.close()
        if head.startswith(b"HTTP/1.1 "):
            status = head[9:12].decode()
        self._count(question, status, monotonic() - began)
        if question.kind == "save" and status == "201":
            found = re.search(rb'"id":"([0-9a-f]+)"', head)
            self._questions.saved = [*self._questions.saved[-200:], *([found[1].decode()] if found else [])]
        return head

    def _count(self, question: Question, status: str, seconds: float) -> None:
        for tally in (self.minute, self.whole):
            tally.add(question.kind, status, seconds)
        fault = status >= "500" and status != "none" and int(status) not in DOCUMENTED
        if (fault or (status == "none" and question.good)) and len(self.faults) < 100:
            self.faults.append({"kind": question.kind, "status": status, "sent": repr(question.sent[:2_000])})
            print(json.dumps(self.faults[-1]), file=sys.stderr, flush=True)

    async def _slow(self) -> None:
        """Read slowly, leave half way, send slowly, or several questions at once."""
        while True:
            question = next(self._asked)
            way = self._chance.choice((self._read_slowly, self._leave, self._send_slowly, self._pipeline))
            began = monotonic()
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(_LINGER):
                    reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2_048)
                    try:
                        await way(question.sent, reader, writer)
                    finally:
                        writer.transport.abort()
            name = way.__name__.strip("_").replace("_", " ")
            for tally in (self.minute, self.whole):
                tally.add(name, "slow", monotonic() - began)
            await asyncio.sleep(self._pause * SLOW * self._chance.random())

    async def _read_slowly(self, sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        while await reader.read(1_024):
            await asyncio.sleep(0.1)

    async def _leave(self, sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await reader.read(self._chance.choice((1, 1_000)))

    async def _send_slowly(self, sent: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for at in range(self._chance.randrange(1, 100)):
            writer.write(sent[at : at + 1])
            await asyncio.sleep(0.1)

    async def _pipeline(self, sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent.replace(b"Connection: close\r\n", b"") * self._chance.randrange(2, 20))
        for _ in range(200):
            if not await reader.read(65_536):
                return

    async def _watch(self) -> None:
        """Note what the server holds, and keep both of us within our share of the processor."""
        before, own = Held.of(self._process, self._began), Held.of(os.getpid(), self._began)
        while True:
            await asyncio.sleep(_SAMPLE)
            now, mine = Held.of(self._process, self._began), Held.of(os.getpid(), self._began)
            used = (now.processor - before.processor + mine.processor - own.processor) / (now.at - before.at)
            self._pause = min(max(self._pause * (1.15 if used > self._share else 0.9), 0.001), 2.0)
            self.held.append(now)
            before, own = now, mine

    async def _change(self) -> None:
        """Publish a bundle anew, or put a damaged one there and take it away."""
        bundles = sorted(path for path in self._folder.iterdir() if path.is_dir())
        for at in count():
            await asyncio.sleep(_CHANGE * self._chance.uniform(0.5, 1.5))
            bundle = self._chance.choice(bundles)
            if at % 3 == 2:
                await asyncio.to_thread(shutil.copytree, bundle, self._folder / "damaged")
                victim = self._chance.choice([path for path in (self._folder / "damaged").rglob("*") if path.is_file()])
                victim.write_bytes(victim.read_bytes()[:-10] + b"0123456789")
                await asyncio.sleep(_CHANGE / 2)
                await asyncio.to_thread(shutil.rmtree, self._folder / "damaged")
            else:
                draft, old = (self._folder / f".{name}" for name in ("draft", "old"))
                await asyncio.to_thread(shutil.copytree, bundle, draft)
                (draft / "manifest.json").touch()
                bundle.rename(old)
                draft.rename(bundle)
                await asyncio.to_thread(shutil.rmtree, old)
            self.minute.changes += 1
            self.whole.changes += 1

    async def _same(self) -> None:
        """Ask some questions again and again: whatever was published anew has the same figures, and the same answer."""
        while True:
            sent = self._chance.choice(self._fixed)
            said = await self._answered(Question(kind="again", sent=sent, good=True))
            head, _, body = said.partition(b"\r\n\r\n")
            # Half an answer, where patience or the server ended, is no other answer.
            whole = f"content-length: {len(body)}\r\n".encode() in head.lower() + b"\r\n"
            if said.startswith(b"HTTP/1.1 200") and whole and self._first.setdefault(sent, body) != body:
                self.wrong += 1
                print(json.dumps({"changed": repr(sent[:2_000])}), file=sys.stderr, flush=True)
            await asyncio.sleep(self._pause * ASKERS)


def tables_of(port: int) -> Iterator[AskedTable]:
    """Every table of a server, as it describes them."""
    for one in _json(port, "/api/v2/tables?pageSize=1000")["tables"]:
        files = [file["address"] for file in _json(port, f"/tables/{one['id']}/files")["files"]]
        yield AskedTable.of(one["id"], _json(port, f"/api/v2/tables/{one['id']}/metadata"), files)


def _json(port: int, path: str) -> Any:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)


@contextmanager
def _serving(folder: Path, state: Path, errors: Path) -> Iterator[tuple[int, int]]:
    """The port and process of a server that believes this machine who asks."""
    command = [sys.executable, "-m", "sfumato", "serve", str(folder), "--port", "0", "--state", str(state)]
    with errors.open("w", encoding="utf-8") as said_wrong:
        process = subprocess.Popen(
            [*command, "--metrics", "--mcp", "--trusted-proxy", "127.0.0.1"],
            stdout=subprocess.PIPE,
            stderr=said_wrong,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
        )
        try:
            assert process.stdout
            said = process.stdout.readline()
            found = re.search(r"http://localhost:(\d+)", said)
            if not found:
                raise RuntimeError(f"the server did not start: {said} {errors.read_text(encoding='utf-8')}")
            yield int(found[1]), process.pid
        finally:
            process.terminate()
            process.communicate(timeout=60)


def verdict(held: Sequence[Held]) -> dict[str, Any]:
    """Whether memory, files and threads stayed flat: a line through the second half, and the outer quarters."""
    half, quarter = held[len(held) // 2 :], max(len(held) // 4, 1)
    first, last = held[:quarter], held[-quarter:]
    slope = 3_600 * linear_regression([one.at for one in half], [one.megabytes for one in half]).slope
    mean = fmean(one.megabytes for one in half)
    found: dict[str, Any] = {"slope_mb_per_hour": round(slope, 2), "flat": slope <= FLAT * mean}
    for name in ("megabytes", "files", "threads"):
        found[f"{name}_first_quarter"] = round(fmean(getattr(one, name) for one in first), 1)
        found[f"{name}_last_quarter"] = round(fmean(getattr(one, name) for one in last), 1)
        found[f"{name}_most"] = round(max(getattr(one, name) for one in held), 1)
    return found


def soak(bundles: Sequence[Path], *, seconds: float, share: float, seed: int) -> dict[str, Any]:
    """Everything that was found."""
    with TemporaryDirectory() as scratch:
        root = Path(scratch)
        for at, bundle in enumerate(bundles):
            shutil.copytree(bundle, root / "served" / f"b{at}")
        with _serving(root / "served", root / "state", root / "errors.txt") as (port, process):
            run = Soak(port, process, root / "served", seed=seed, share=share)
            minutes = asyncio.run(run.run(seconds))
            rested = Held.of(process, 0.0)
        logged = (root / "errors.txt").read_text(encoding="utf-8", errors="replace")
    found = verdict(run.held)
    return {
        "seconds": seconds,
        "seed": seed,
        "bundles": len(bundles),
        **run.whole.report(),
        "kinds": {kind: dict(sorted(statuses.items())) for kind, statuses in sorted(run.whole.by_kind.items())},
        "processor_share": round((rested.processor - run.held[0].processor) / seconds, 3),
        "verdict": found,
        "words": words(found, run.whole, len(run.faults), run.wrong),
        "faults": run.faults,
        "answers_that_changed": run.wrong,
        "tracebacks_logged": logged.count("Traceback"),
        "logged": logged[-20_000:],
        "minutes": minutes,
    }


def words(found: dict[str, Any], whole: Tally, faults: int, wrong: int) -> str:
    """The verdict in a sentence."""
    memory = "flat" if found["flat"] else "growing"
    return (
        f"Memory is {memory}: {found['slope_mb_per_hour']:+.1f} MB an hour in the second half, "
        f"{found['megabytes_first_quarter']:.0f} MB in the first quarter and {found['megabytes_last_quarter']:.0f} MB "
        f"in the last; {len(whole.seconds):,} requests, {whole.changes} changes of bundles, {faults} faults, "
        f"{wrong} answers that changed."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundles", nargs="+", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--share", type=float, default=0.4, help="of one core, for the server and the client together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    report = soak(asked.bundles, seconds=60 * asked.minutes, share=asked.share, seed=asked.seed)
    text = json.dumps(report, indent=1)
    if asked.out:
        asked.out.write_text(text + "\n", encoding="utf-8")
    print(report["words"] if asked.out else text)
    sys.exit(0 if report["verdict"]["flat"] and not report["faults"] and not report["answers_that_changed"] else 1)
