"""Parts: a table that is larger than memory is a folder of files, each with its rows, its size and its digest."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.durable import sync_folder, write_durably


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One file of a table in parts: all that is known of it, and all that a worker tells of what it wrote."""

    number: int
    name: str
    """Of the file in its folder."""
    rows: int
    sha256: str
    bytes: int


def write_chunk(folder: Path, number: int, content: Any, *, rows: int) -> Chunk:
    """Put a part on the disk under a name that no other attempt at it has; `settled` gives it its own name.

    A cluster may begin a part twice, when a machine fails or is slow: neither attempt writes over the other.
    """
    if not folder.is_dir():
        raise FileNotFoundError("the folder of a table in parts is gone, and with it the run that asked for this part")
    path = folder / f"{name_of(number)}.{secrets.token_hex(8)}"
    write_durably(path, content)
    digest = hashlib.sha256(content).hexdigest()
    return Chunk(number=number, name=path.name, rows=rows, sha256=digest, bytes=len(memoryview(content)))


def settled(folder: Path, written: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Keep one file of every part, the one a worker told of, under the part's own name; remove all others."""
    told = {part.number: part for part in written}
    if sorted(told) != list(range(len(told))):
        raise ValueError("every part from the first to the last is needed")
    parts = []
    for number in sorted(told):
        part = replace(told[number], name=name_of(number))
        (folder / told[number].name).rename(folder / part.name)
        parts.append(part)
    kept = {part.name for part in parts}
    for path in folder.iterdir():
        if path.name not in kept:
            path.unlink()
    sync_folder(folder)
    return tuple(parts)


def name_of(number: int) -> str:
    """What the file of a part is called."""
    return f"part-{number:05d}.parquet"


def listing(parts: Sequence[Chunk]) -> bytes:
    """What a table in parts consists of; its digest names the whole table."""
    return json.dumps([asdict(part) for part in parts], indent=1).encode() + b"\n"


def read_listing(content: bytes) -> tuple[Chunk, ...]:
    """The parts that a listing names."""
    return tuple(Chunk(**entry) for entry in json.loads(content))
