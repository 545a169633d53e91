"""Answers: protected tables kept beside the ledger, so that a repeated question gets the same answer."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Cells, Dimension
from sfumato.durable import create_durably
from sfumato.errors import LedgerError


class Answers:
    """A folder with one Parquet file for every question that was answered; it holds protected values only.

    An answer is published only from here: noise that was drawn but not kept was never seen by anyone, so a run that
    was interrupted may draw again without a second charge.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __bool__(self) -> bool:
        return next(self._folder.glob("*.parquet"), None) is not None

    def keep(self, question: str, answer: Cells) -> None:
        """Keep an answer for good; when another process was faster, its answer stands and this one is forgotten."""
        columns = {"position": answer.positions, **answer.columns}
        dimensions = [{"name": d.name, "codes": d.codes} for d in answer.dimensions]
        table = pa.table(columns).replace_schema_metadata({"dimensions": json.dumps(dimensions)})
        content = pa.BufferOutputStream()
        pq.write_table(table, content, compression="zstd")
        create_durably(self._path(question), content.getvalue().to_pybytes())

    def has(self, question: str, sha256: str | None = None) -> bool:
        """Whether a question was answered; an answer that the ledger knows of (by its digest) must not be missing."""
        if self._path(question).is_file():
            return True
        if sha256 is None:
            return False
        raise LedgerError(
            f"stored answer {self._path(question).name}",
            expected="the answer that the ledger says was given",
            found="no such file",
            do="restore the folder of answers from its backup; a new draw would spend the budget again",
        )

    def read(self, question: str, sha256: str | None = None) -> tuple[Cells, str]:
        """The answer to a question and its digest; when the ledger knows the digest, the answer must have it."""
        path = self._path(question)
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if sha256 not in (None, digest):
            raise LedgerError(
                f"stored answer {path.name}",
                expected=f"the answer with the digest {sha256} that the ledger holds",
                found=f"one with the digest {digest}",
                do="restore the file from its backup",
            )
        table = pq.read_table(pa.BufferReader(content))
        dimensions = json.loads(table.schema.metadata[b"dimensions"])
        columns = {name: table[name].to_numpy().astype(np.int64) for name in table.column_names}
        cells = Cells(
            dimensions=tuple(Dimension(name=d["name"], codes=tuple(d["codes"])) for d in dimensions),
            positions=columns.pop("position"),
            columns=columns,
        )
        return cells, digest

    def _path(self, question: str) -> Path:
        return self._folder / f"{question}.parquet"
