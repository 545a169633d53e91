"""Remember which files were read before: what they are known by, and the frames they were validated against."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
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
        self._path, self._kept = path, b""
        try:
            self._kept = path.read_bytes()
            known = json.loads(self._kept)
            self._files: dict[str, list[Any]] = dict(known["files"])
            self._validated = {key: DataTotals(**totals) for key, totals in dict(known["validated"]).items()}
            self._sums: dict[str, list[Any]] = dict(known.get("sums", {}))
        except (OSError, ValueError, KeyError, TypeError):
            self._files, self._validated, self._sums = {}, {}, {}

    def fingerprint(self, tables: Mapping[str, Iterable[DataFile]]) -> str:
        """One digest of all bytes of all files, by which data were known before they were known by their content."""
        listed = [(name, file) for name, files in tables.items() for file in files]
        with ThreadPoolExecutor() as pool:
            digests = list(pool.map(self._digest, (file for _, file in listed)))
        named = [[name, digest] for (name, _), digest in zip(listed, digests, strict=True)]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()

    def sums(self, name: str, state: Sequence[Any]) -> dict[str, Any] | None:
        """The sums of a file that were remembered under a name, if the file is still as it was."""
        known = self._sums.get(name)
        return known[-1] if isinstance(known, list) and known[:-1] == list(state) else None

    def remember_sums(self, name: str, state: Sequence[Any], sums: Mapping[str, Any]) -> None:
        """Note the sums of a file in this state."""
        self._sums[name] = [*state, dict(sums)]

    def validated(self, key: str) -> DataTotals | None:
        """What was counted when data with this key passed validation; None when they never did."""
        return self._validated.get(key)

    def remember(self, key: str, totals: DataTotals) -> None:
        """Note that data with this key passed validation, and what was counted."""
        self._validated[key] = totals

    def keep(self) -> None:
        """Put what is known on the disk, if it is more than before."""
        validated = {key: known.figures() for key, known in self._validated.items()}
        content = json.dumps({"files": self._files, "validated": validated, "sums": self._sums}).encode()
        if content != self._kept:
            write_durably(self._path, content)
            self._kept = content

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
