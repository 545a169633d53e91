"""Remember which files were read before: their fingerprints, and the frames they were validated against."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sfumato.durable import write_durably
from sfumato.errors import DataError


class Memory:
    """What is known about data files, kept beside the ledger; losing it costs time, never privacy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            self._files: dict[str, list[Any]] = dict(known["files"])
            self._validated: set[str] = set(known["validated"])
        except (OSError, ValueError, KeyError, TypeError):
            self._files, self._validated = {}, set()

    def fingerprint(self, tables: Mapping[str, Iterable[Path]]) -> str:
        """One digest of the content of all files; an unchanged file is not read again."""
        listed = [(name, path) for name, paths in tables.items() for path in paths]
        with ThreadPoolExecutor() as pool:
            digests = list(pool.map(self._digest, (path for _, path in listed)))
        named = [[name, digest] for (name, _), digest in zip(listed, digests, strict=True)]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()

    def validated(self, key: str) -> bool:
        """Whether data with this key passed validation before."""
        return key in self._validated

    def remember(self, key: str) -> None:
        """Note that data with this key passed validation, and keep what is known."""
        self._validated.add(key)
        content = {"files": self._files, "validated": sorted(self._validated)}
        write_durably(self._path, json.dumps(content).encode())

    def _digest(self, path: Path) -> str:
        state = file_state(path)
        known = self._files.get(str(path))
        if isinstance(known, list) and known[:-1] == state:
            return str(known[-1])
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(
                f"data file {path.name}",
                expected="a file that can be read",
                found=str(error),
                do="check the file's permissions",
            ) from error
        self._files[str(path)] = [*state, digest]
        return digest


def file_state(path: Path) -> list[int]:
    """What changes when a file is written again: its size, time and place on the disk."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
