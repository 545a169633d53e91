"""Remember which files were read before: their fingerprints, and the frames they were validated against."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sfumato.durable import write_durably
from sfumato.engine.data_files import DataFile
from sfumato.engine.data_totals import DataTotals

_PIECE = 1 << 22
"""Bytes that are read at a time."""


class Memory:
    """What is known about data files, kept beside the ledger; losing it costs time, never privacy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            self._files: dict[str, list[Any]] = dict(known["files"])
            self._validated = {key: DataTotals(**totals) for key, totals in dict(known["validated"]).items()}
        except (OSError, ValueError, KeyError, TypeError):
            self._files, self._validated = {}, {}

    def fingerprint(self, tables: Mapping[str, Iterable[DataFile]]) -> str:
        """One digest of the content of all files; an unchanged file is not read again."""
        listed = [(name, file) for name, files in tables.items() for file in files]
        with ThreadPoolExecutor() as pool:
            digests = list(pool.map(self._digest, (file for _, file in listed)))
        named = [[name, digest] for (name, _), digest in zip(listed, digests, strict=True)]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()

    def validated(self, key: str) -> DataTotals | None:
        """What was counted when data with this key passed validation; None when they never did."""
        return self._validated.get(key)

    def remember(self, key: str, totals: DataTotals) -> None:
        """Note that data with this key passed validation and what was counted, and keep what is known."""
        self._validated[key] = totals
        content = {"files": self._files, "validated": {key: known.figures() for key, known in self._validated.items()}}
        write_durably(self._path, json.dumps(content).encode())

    def _digest(self, file: DataFile) -> str:
        state = file.state()
        known = self._files.get(file.address)
        if isinstance(known, list) and known[:-1] == state:
            return str(known[-1])
        with file.open() as content:
            digest = hashlib.sha256()
            while piece := content.read(_PIECE):
                digest.update(piece)
        self._files[file.address] = [*state, digest.hexdigest()]
        return digest.hexdigest()
