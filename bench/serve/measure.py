"""The server under load from a second process, beside an address of its own that does nothing; and ad-hoc tables."""

import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import duckdb
import pyarrow as pa

from bench.serve import stampede
from bench.shared.gate import WrongResultError
from bench.shared.processes import SFUMATO, Tell, in_turn, module, output_of
from bench.shared.report import Results
from bench.totals.floor import BARE, SAME, Floor
from bench.totals.measure import answer_seconds
from bench.totals.records import ATTRIBUTES, write_records
from sfumato.live import GuardedSession, open_guarded
from sfumato.release import load
from sfumato.serve.core.selection import everything
from sfumato.serve.formats.json_stat import write_json_stat
from sfumato.serve.formats.layout import Options
from sfumato.serve.live.answer_table import answer_table
from sfumato.serve.live.question import LiveQuestion

CONNECTIONS, CLIENTS = 200, 50
SECONDS = 3
ROUNDS = 9
JOBS, QUOTES = 100_000, 60_000
FRESH, REPEATED = 30_000, 50
"""Different questions: more than are asked in one round, so that none is answered from what was kept, and few."""
_HERE = Path(__file__).parent
_EMPTY = "/health"
_PLAIN = f"select {', '.join(ATTRIBUTES)}, sum(turnover) as total from read_parquet('{{path}}') group by all"

LABELS = {
    "empty": "An address that does nothing",
    "bundle": "A published table, always other codes",
    "cube": "A cube, always other codes",
    "bundle_again": "A published table, 50 questions again and again",
    "cube_again": "A cube, 50 questions again and again",
}


def measure_server(folder: Path, *, records: int, repeat: int, tell: Tell) -> Results:
    """Throughput, latency and errors of every kind of question; and ad-hoc tables beside the bare aggregate."""
    bundles = _bundles(folder, tell)
    with _serving(folder, bundles) as (port, process):
        files = _questions(folder, port)
        tell("warming up")
        for name in LABELS:
            _load(port, files[name][0], seconds=1)
        waiting = {name: iter(paths[1:]) for name, paths in files.items()}

        def loaded(name: str) -> dict[str, float]:
            before = _cpu_seconds(process)
            found = _load(port, next(waiting[name]), seconds=SECONDS)
            return {**found, "cpu": _cpu_seconds(process) - before}

        turns = {name: partial(loaded, name) for name in LABELS}
        rounds = in_turn(turns, repeat=ROUNDS, tell=tell, what=f"{SECONDS} seconds of each kind of question")
        tell("fifty clients")
        identical = _identical(port, files["bundle_again"][0], files["cube_again"][0])
    return {
        "labels": LABELS,
        "connections": CONNECTIONS,
        "clients": CLIENTS,
        "client": "wrk" if shutil.which("wrk") else "a client of ours",
        "rounds": rounds,
        "identical": identical,
        "rush": _rush(bundles, tell),
        "live": _measure_live(folder, records=records, repeat=repeat, tell=tell),
    }


def _bundles(folder: Path, tell: Tell) -> list[Path]:
    """A bundle of tables of jobs, and one with a cube."""
    tell("publishing")
    output_of(SFUMATO, "economy", folder / "jobs", "--jobs", JOBS)
    output_of(SFUMATO, "economy", "requirements", folder / "cube", "--quotes", QUOTES)
    for name in ("jobs", "cube"):
        output_of(SFUMATO, "run", folder / name / "release.toml")
    return [folder / name / "bundle" for name in ("jobs", "cube")]


def _rush(bundles: list[Path], tell: Tell) -> Results:
    """Many readers of one new page, and workbooks while others ask."""
    tell(f"{stampede.READERS} readers at a time, and workbooks")
    found: Results = stampede.measure(bundles, {"now": None})["now"]
    return {**found, "readers": stampede.READERS, "cells": stampede.CELLS}


@contextmanager
def _serving(folder: Path, bundles: list[Path]) -> Iterator[tuple[int, int]]:
    """The port and process of `sfumato serve` on this machine, without limits of rate: one client stands for many."""
    command = [SFUMATO, "serve", *bundles, "--port", "0", "--rate", "0", "--state", folder / "state"]
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"}
    )
    assert process.stdout
    try:
        said = process.stdout.readline()
        found = re.search(r"http://localhost:(\d+)", said)
        if not found:
            raise WrongResultError(f"the server did not start: {said}")
        yield int(found[1]), process.pid
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _questions(folder: Path, port: int) -> dict[str, list[Path]]:
    """For every kind the files of paths: one to warm up with, and one for each round."""
    chance = random.Random(1)
    places = _codes(port, "jobs_by_place", "place")
    occupations = _codes(port, "requirements", "occupation")

    def bundle() -> str:
        return f"/api/v2/tables/jobs_by_place/data?valueCodes[place]={','.join(chance.sample(places, 5))}"

    def cube() -> str:
        some = ",".join(chance.sample(occupations, 5))
        kinds = "weighted,weighted_error"
        return f"/api/v2/tables/requirements/data?valueCodes[occupation]={some}&valueCodes[contents]={kinds}"

    def written(name: str, paths: list[str]) -> Path:
        file = folder / f"{name}.txt"
        file.write_text("\n".join(paths) + "\n", encoding="utf-8")
        return file

    files: dict[str, list[Path]] = {"empty": [written("empty", [_EMPTY])] * (ROUNDS + 1)}
    for name, ask in (("bundle", bundle), ("cube", cube)):
        fresh = (FRESH for _ in range(ROUNDS + 1))
        files[name] = [written(f"{name}-{at}", [ask() for _ in range(size)]) for at, size in enumerate(fresh)]
        files[f"{name}_again"] = [written(f"{name}-again", [ask() for _ in range(REPEATED)])] * (ROUNDS + 1)
    return files


def _codes(port: int, table: str, dimension: str) -> list[str]:
    found = json.loads(_get(port, f"/api/v2/tables/{table}/metadata"))
    return list(found["dimension"][dimension]["category"]["index"])


def _load(port: int, paths: Path, *, seconds: float) -> dict[str, float]:
    """What a second process finds when it asks over many connections."""
    if shutil.which("wrk"):
        said = output_of(
            *("wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", "-s", _HERE / "load.lua"),
            *(f"http://127.0.0.1:{port}", "--", paths),
        )
    else:
        said = output_of(*module("serve.client", port, paths, CONNECTIONS, seconds))
    found: dict[str, float] = json.loads(said.strip().splitlines()[-1])
    return found


def _cpu_seconds(process: int) -> float:
    """Seconds of processor time a process used so far, in user and in system mode."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _identical(port: int, *files: Path) -> int:
    """How many different questions fifty clients at a time got one and the same answer to."""
    paths = [path for file in files for path in file.read_text(encoding="utf-8").split()]

    def ask(number: int) -> dict[str, bytes]:
        turn = number * len(paths) // CLIENTS
        return {path: _get(port, path) for path in paths[turn:] + paths[:turn]}

    with ThreadPoolExecutor(CLIENTS) as pool:
        first, *others = pool.map(ask, range(CLIENTS))
    if any(other != first for other in others):
        raise WrongResultError("two clients got different answers to one question")
    return len(first)


def _get(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        content: bytes = answer.read()
        return content


def _measure_live(folder: Path, *, records: int, repeat: int, tell: Tell) -> Results:
    """Seconds of the sum alone, of the file and in memory, of the same aggregate, and of the whole answer."""
    tell("making records")
    files = write_records(folder, records=records)
    floor = Floor(files.records)
    with (
        duckdb.connect() as plain,
        open_guarded(load(files.plain), lambda step: tell(f"opening the records: {step}")) as live,
    ):
        turns = {
            "file": lambda: plain.execute(_PLAIN.format(path=files.records)).to_arrow_table(),
            "bare": lambda: floor.answer(BARE),
            "floor": lambda: floor.answer(SAME),
            "live": lambda: _answered(live),
        }
        seconds = answer_seconds(turns, repeat=repeat, tell=tell, what="ad-hoc tables")
    floor.close()
    return {"records": records, "seconds": seconds}


def _answered(live: GuardedSession) -> pa.Table:
    """Everything the server does with a question, but for reading the request and sending the answer."""
    question = LiveQuestion(statistic="total", measure="turnover", by=list(ATTRIBUTES))
    statistic = question.plan(live)
    table = answer_table(live, statistic, live.answer(statistic))
    content = write_json_stat(table.answer(everything(table)), Options())
    return pa.table({"answer": [content]})
