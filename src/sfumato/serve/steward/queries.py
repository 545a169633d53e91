"""Who asks what: counted from the end of the log of questions."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from sfumato.users import PUBLIC

TAIL = 4_000_000
"""Bytes at the end of each file that are counted."""
TOP = 20
LATEST = 50


class Counted(BaseModel):
    """A question, and how often it was asked."""

    table: str
    asked: dict[str, Any]
    times: int
    users: list[str] = Field(description="who asked; `public` stands for everybody without a token")


class Latest(BaseModel):
    """One request of a user."""

    time: str
    user: str
    path: str
    table: str
    asked: dict[str, Any]
    status: int


class Queries(BaseModel):
    """What was asked most often, and by users lately, as far as the end of the log reaches."""

    since: str
    top: list[Counted]
    latest: list[Latest]


def queries(folder: Path | None) -> Queries:
    """Count the questions at the end of the log; without a log there is nothing to count."""
    entries = [] if folder is None else [*_end(folder / "public.jsonl"), *_end(folder / "users.jsonl")]
    times: Counter[tuple[str, str]] = Counter()
    users: dict[tuple[str, str], set[str]] = {}
    for entry in entries:
        if entry.get("table") and isinstance(entry.get("asked"), dict):
            key = (str(entry["table"]), json.dumps(entry["asked"], sort_keys=True))
            times[key] += 1
            users.setdefault(key, set()).add(str(entry.get("user")))
    latest = [entry for entry in entries if entry.get("user") != PUBLIC]
    return Queries(
        since=min((str(entry.get("time", "")) for entry in entries), default=""),
        top=[
            Counted(table=key[0], asked=json.loads(key[1]), times=number, users=sorted(users[key]))
            for key, number in times.most_common(TOP)
        ],
        latest=[_latest(entry) for entry in reversed(latest[-LATEST:])],
    )


def _latest(entry: dict[str, Any]) -> Latest:
    asked = entry.get("asked")
    return Latest(
        time=str(entry.get("time", "")),
        user=str(entry.get("user", "")),
        path=f"{entry.get('method', '')} {entry.get('path', '')}".strip(),
        table=str(entry.get("table", "")),
        asked=asked if isinstance(asked, dict) else {},
        status=int(entry.get("status", 0)),
    )


def _end(path: Path) -> Iterator[dict[str, Any]]:
    """The entries at the end of a file, in order; what is not whole is left out."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - TAIL, 0))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines[1 if size > TAIL else 0 :]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
