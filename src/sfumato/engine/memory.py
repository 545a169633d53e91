"""Remember which files were read before, what they are known by, and how much was in them."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato.durable import write_durably
from sfumato.engine.data_files import DataFile
from sfumato.errors import DataError
from sfumato.frame.data import Data
from sfumato.frame.jobs import NO_JOBS, ONE_JOB_EACH
from sfumato.frame.records import NO_RECORDS

# How much was read: confidential totals for the eyes of whoever runs a release, in no bundle.


@dataclass(frozen=True, kw_only=True)
class DataTotals:
    """Totals of the data of a release, counted while they were validated; None is what such data do not have."""

    jobs: int | None = None
    """Of a panel, each worker at each employer once."""
    establishments: int | None = None
    empty_establishments: int | None = None
    """Establishments without any job; not known where jobs and workplaces are one table."""
    workers: int | None = None
    records: int | None = None
    """Rows of a table of records, or of a panel of jobs."""
    units: int | None = None
    periods: int | None = None
    """Periods that have rows."""

    def figures(self) -> dict[str, int]:
        """The totals that there are, by name."""
        return {name: number for name, number in asdict(self).items() if number is not None}

    def in_words(self) -> str:
        """The totals as a sentence.

        >>> DataTotals(jobs=8, establishments=4, empty_establishments=1, workers=7).in_words()
        'Read: 8 jobs, 4 establishments (1 of them without jobs), 7 workers.'
        """
        empty = "" if self.empty_establishments is None else f" ({self.empty_establishments:,} of them without jobs)"
        listed = [
            f"{number:,} {name if number != 1 else name.removesuffix('s')}{empty if name == 'establishments' else ''}"
            for name, number in self.figures().items()
            if name != "empty_establishments"
        ]
        return f"Read: {', '.join(listed)}."

    def refuse_unlikely(self, data: Data) -> None:
        """Refuse no rows at all, and one job at every workplace, unless the description says that this is meant."""
        if 0 in (self.jobs, self.records) and data.accepted not in (NO_JOBS, NO_RECORDS):
            what, accept = ("records", NO_RECORDS) if self.jobs is None else ("jobs", NO_JOBS)
            raise DataError(
                what,
                expected=f"{what} in {data.sources()[what].path}",
                found="none at all",
                do=f'write the file again, or correct `path`; if there are none, write accept = "{accept}" in '
                f"{what} = {{ … }}",
            )
        several = self.jobs is not None and self.jobs > 1
        if several and self._at_workplaces() == self.jobs and data.accepted != ONE_JOB_EACH:
            raise DataError(
                "jobs",
                expected=f"one row a job in {data.sources()['jobs'].path}, and several jobs at some workplace",
                found=f"{self.jobs:,} jobs at {self.jobs:,} workplaces, one at each, as in a file of establishments",
                do="give the file with one row a job, or name the column that has the number of workers, employees = "
                f'"…"; if every workplace has one job, write accept = "{ONE_JOB_EACH}" in jobs = {{ … }}',
            )

    def _at_workplaces(self) -> int:
        """The workplaces that have a job."""
        return (self.establishments or 0) - (self.empty_establishments or 0)


# Remember which files were read before: what they are known by, and the frames they were validated against.

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
