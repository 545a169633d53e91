"""Answers: protected tables kept beside the ledger, so that a repeated question gets the same answer."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.cells import Cells
from sfumato.durable import sync_folder, write_durably
from sfumato.errors import LedgerError
from sfumato.parts import Part, listing, read_listing, settled
from sfumato.privacy.answer_file import Layout, cells_of, content_of, layout_of

LISTING = "listing.json"
"""In the folder of an answer in parts: its files. The digest of this one names the answer."""


@dataclass(frozen=True, kw_only=True)
class AnswerParts:
    """An answer in parts; a plain value, which may be sent to another process."""

    folder: Path
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> int:
        """The number of cells in all parts."""
        return sum(part.rows for part in self.parts)

    def read(self, number: int) -> Cells:
        """One part of the answer, as it was kept."""
        part = self.parts[number]
        return cells_of(_kept(self.folder / part.name, part.sha256))


class Answers:
    """A folder of protected tables, each named by its question and its own digest; it holds protected values only.

    The ledger records the digest of the one answer that counts. A run that was killed before that leaves a draw that
    was never published: the next run removes it and draws again, without a second charge. A table in parts is a folder,
    which has another name until it is whole.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __bool__(self) -> bool:
        return next(self._folder.glob("*.parquet"), None) is not None or next(self._listings(), None) is not None

    def keep(self, question: str, answer: Cells) -> str:
        """Write an answer to the disk and return its digest, for the ledger to record."""
        return self.keep_file(question, content_of(answer))

    def keep_file(self, question: str, content: Any) -> str:
        """The same for an answer that is a file already, such as a cube."""
        digest = hashlib.sha256(content).hexdigest()
        write_durably(self._path(question, digest), content)
        return digest

    def draft(self, question: str) -> Path:
        """An empty folder for the parts of an answer, which counts for nothing until they are kept."""
        draft = self._draft(question)
        draft.mkdir(parents=True)
        return draft

    def keep_parts(self, question: str, written: Iterable[Part]) -> str:
        """Keep what was drawn in the draft, one file of every part, and return its digest, for the ledger to record."""
        draft = self._draft(question)
        content = listing(settled(draft, written))
        digest = hashlib.sha256(content).hexdigest()
        write_durably(draft / LISTING, content)
        draft.rename(self._path(question, digest).with_suffix(""))
        sync_folder(self._folder)
        return digest

    def forget(self, question: str) -> None:
        """Remove draws for a question that the ledger has no answer to: a run was killed before it recorded one."""
        for path in self._folder.glob(f"*{question}.*"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def read(self, question: str, sha256: str) -> Cells:
        """The answer that the ledger recorded for a question, as a whole."""
        found = self.in_parts(question, sha256)
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

    def in_parts(self, question: str, sha256: str) -> AnswerParts | None:
        """The parts of an answer that was kept in parts; None when it is one file."""
        folder = self._path(question, sha256).with_suffix("")
        if not folder.is_dir():
            return None
        return AnswerParts(folder=folder, parts=read_listing(_kept(folder / LISTING, sha256)))

    def layout(self, question: str, sha256: str) -> Layout:
        """In which order of dimensions and codes an answer is stored."""
        found = self.in_parts(question, sha256)
        if found is None:
            return layout_of(self.read_file(question, sha256))
        return layout_of(_kept(found.folder / found.parts[0].name, found.parts[0].sha256))

    def _listings(self) -> Iterator[Path]:
        return self._folder.glob(f"*/{LISTING}")

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
