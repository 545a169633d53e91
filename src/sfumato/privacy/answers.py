"""Answers: protected tables kept beside the ledger, so that a repeated question gets the same one."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Cells, Dimension
from sfumato.chunks import Chunk, listing, read_listing, settled
from sfumato.durable import private_folder, room_for, sync_folder, write_durably
from sfumato.errors import LedgerError

ABOUT = b"sfumato"
"""The entry of a file's metadata that describes a cube."""

# The file of an answer: protected cells and their dimensions, to the bit as they were drawn.


@dataclass(frozen=True, kw_only=True)
class Layout:
    """In which order the answer to a question is stored."""

    by: tuple[Dimension, ...]
    columns: tuple[str, ...]

    def is_by(self, dimensions: Iterable[Dimension]) -> bool:
        """Whether these are the dimensions, with the same codes, in whatever order."""
        return _codes(self.by) == _codes(dimensions)


def _codes(dimensions: Iterable[Dimension]) -> dict[str, frozenset[str]]:
    return {dimension.name: frozenset(dimension.codes) for dimension in dimensions}


def layout_of(content: Any) -> Layout:
    """How the file of an answer is laid out, be it cells or a cube."""
    schema = pq.read_schema(pa.BufferReader(content))
    of_cells = schema.metadata.get(b"dimensions")
    dimensions = json.loads(of_cells) if of_cells else json.loads(schema.metadata[ABOUT])["dimensions"]
    by = tuple(Dimension(name=d["name"], codes=tuple(d["codes"])) for d in dimensions)
    return Layout(by=by, columns=tuple(schema.names))


def content_of(answer: Cells) -> pa.Buffer:
    """An answer as the content of a file."""
    columns = {"position": answer.positions, **answer.columns}
    dimensions = [{"name": d.name, "codes": d.codes, "public": d.public} for d in answer.dimensions]
    table = pa.table(columns).replace_schema_metadata({"dimensions": json.dumps(dimensions)})
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def cells_of(content: Any) -> Cells:
    """The answer that a file holds."""
    table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    dimensions = json.loads(table.schema.metadata[b"dimensions"])
    columns = {name: table[name].to_numpy().astype(np.int64, copy=False) for name in table.column_names}
    return Cells(
        dimensions=tuple(Dimension(name=d["name"], codes=tuple(d["codes"]), public=d["public"]) for d in dimensions),
        positions=columns.pop("position"),
        columns=columns,
    )


LISTING = "listing.json"
"""In the folder of an answer in parts: its files. The digest of this one names the answer."""
_WHOLE = re.compile(r"([0-9a-f]+)\.([0-9a-f]{64})(?:\.parquet)?")
_BEGUN = re.compile(r"\.([0-9a-f]+)\.")


@dataclass(frozen=True, kw_only=True)
class AnswerChunks:
    """An answer in parts; a plain value, which may be sent to another process."""

    folder: Path
    parts: tuple[Chunk, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> int:
        """The number of cells in all parts."""
        return sum(part.rows for part in self.parts)

    def __iter__(self) -> Iterator[Cells]:
        return map(self.read, range(len(self)))

    def read(self, number: int) -> Cells:
        """One part of the answer, as it was kept."""
        part = self.parts[number]
        return cells_of(_kept(self.folder / part.name, part.sha256))


class Answers:
    """A folder of protected tables, each named by its question and its own digest; it holds protected values only.

    The ledger records the digest of the one answer that counts. A run that was killed before that leaves an answer
    which the next run records: nothing that was drawn is drawn again. A table in parts is a folder, which has another
    name until it is whole, as a file has; what is not whole was never published, and is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def questions(self) -> dict[str, frozenset[str]]:
        """The digests of all answers that are kept, by question; of one that was only begun there are none."""
        found: dict[str, set[str]] = {}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if named := _WHOLE.fullmatch(path.name):
                found.setdefault(named[1], set()).add(named[2])
            elif named := _BEGUN.match(path.name):
                found.setdefault(named[1], set())
        return {question: frozenset(digests) for question, digests in found.items()}

    def kept(self, question: str) -> str | None:
        """The digest of the one answer that is kept for a question, whether or not a ledger recorded it."""
        digests = self.questions().get(question, frozenset())
        if len(digests) > 1:
            raise LedgerError(
                f"stored answers to question {question}",
                expected="one answer",
                found=f"{len(digests)}",
                do="restore the ledger and the folder of answers from the newest backup: the ledger says which counts",
            )
        return next(iter(digests), None)

    def set_aside(self, question: str, sha256: str, folder: Path) -> None:
        """Move an answer to another folder, where it answers nothing any more."""
        path = self._path(question, sha256)
        path = path if path.exists() else path.with_suffix("")
        path.rename(private_folder(folder) / path.name)
        sync_folder(folder)
        sync_folder(self._folder)

    def keep(self, question: str, answer: Cells) -> str:
        """Write an answer to the disk and return its digest, for the ledger to record."""
        return self.keep_file(question, content_of(answer))

    def keep_file(self, question: str, content: Any) -> str:
        """The same for an answer that is a file already, such as a cube."""
        digest = hashlib.sha256(content).hexdigest()
        private_folder(self._folder)
        write_durably(self._path(question, digest), content)
        return digest

    def draft(self, question: str) -> Path:
        """An empty folder for the parts of an answer, which counts for nothing until they are kept."""
        draft = self._draft(question)
        private_folder(self._folder)
        with room_for(draft):
            draft.mkdir(mode=0o700)
        return draft

    def keep_chunks(self, question: str, written: Iterable[Chunk]) -> str:
        """Keep what was drawn in the draft, one file of every part, and return its digest, for the ledger to record."""
        draft = self._draft(question)
        content = listing(settled(draft, written))
        digest = hashlib.sha256(content).hexdigest()
        write_durably(draft / LISTING, content)
        draft.rename(self._path(question, digest).with_suffix(""))
        sync_folder(self._folder)
        return digest

    def sweep(self, question: str) -> None:
        """Remove what a killed run began to write for a question: it was never whole, and never published."""
        for path in self._folder.glob(f".{question}.*"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def read(self, question: str, sha256: str) -> Cells:
        """The answer that the ledger recorded for a question, as a whole."""
        found = self.in_chunks(question, sha256)
        if found is None:
            return cells_of(self.read_file(question, sha256))
        cells = [found.read(number) for number in range(len(found))]
        positions = np.concatenate([part.positions for part in cells])
        order = np.argsort(positions, kind="stable")
        return Cells(
            dimensions=cells[0].dimensions,
            positions=positions[order],
            columns={name: np.concatenate([part[name] for part in cells])[order] for name in cells[0].columns},
        )

    def read_file(self, question: str, sha256: str) -> bytes:
        """The content of the file that holds the answer."""
        return _kept(self._path(question, sha256), sha256)

    def in_chunks(self, question: str, sha256: str) -> AnswerChunks | None:
        """The parts of an answer that was kept in parts; None when it is one file."""
        folder = self._path(question, sha256).with_suffix("")
        if not folder.is_dir():
            return None
        return AnswerChunks(folder=folder, parts=read_listing(_kept(folder / LISTING, sha256)))

    def layout(self, question: str, sha256: str) -> Layout:
        """In which order of dimensions and codes an answer is stored."""
        found = self.in_chunks(question, sha256)
        if found is None:
            return layout_of(self.read_file(question, sha256))
        return layout_of(_kept(found.folder / found.parts[0].name, found.parts[0].sha256))

    def _draft(self, question: str) -> Path:
        return self._folder / f".{question}.draft"

    def _path(self, question: str, sha256: str) -> Path:
        return self._folder / f"{question}.{sha256}.parquet"


def _kept(path: Path, sha256: str) -> bytes:
    """The content of a file that was kept, when it is still what it was."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise LedgerError(
            f"stored answer {path.name}",
            expected="the answer that the ledger says was given",
            found="no such file",
            do="restore the folder of answers from its backup; a new draw would spend the budget again",
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise LedgerError(
            f"stored answer {path.name}",
            expected=f"the answer with the digest {sha256} that the ledger holds",
            found=f"one with the digest {digest}",
            do="restore the file from its backup",
        )
    return content
