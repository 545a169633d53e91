"""Answers: protected tables kept beside the ledger, so that a repeated question gets the same answer."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Cells, Dimension
from sfumato.durable import write_durably
from sfumato.errors import LedgerError


class Answers:
    """A folder of protected tables, each named by its question and its own digest; it holds protected values only.

    The ledger records the digest of the one answer that counts. A run that was killed before that leaves a draw that
    was never published: the next run removes it and draws again, without a second charge.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __bool__(self) -> bool:
        return next(self._folder.glob("*.parquet"), None) is not None

    def keep(self, question: str, answer: Cells) -> str:
        """Write an answer to the disk and return its digest, for the ledger to record."""
        columns = {"position": answer.positions, **answer.columns}
        dimensions = [{"name": d.name, "codes": d.codes, "public": d.public} for d in answer.dimensions]
        table = pa.table(columns).replace_schema_metadata({"dimensions": json.dumps(dimensions)})
        content = pa.BufferOutputStream()
        pq.write_table(table, content, compression="zstd")
        return self.keep_file(question, content.getvalue().to_pybytes())

    def keep_file(self, question: str, content: bytes) -> str:
        """The same for an answer that is a file already, such as a cube."""
        digest = hashlib.sha256(content).hexdigest()
        write_durably(self._path(question, digest), content)
        return digest

    def forget(self, question: str) -> None:
        """Remove draws for a question that the ledger has no answer to: a run was killed before it recorded one."""
        for path in self._folder.glob(f"*{question}.*"):
            path.unlink()

    def read(self, question: str, sha256: str) -> Cells:
        """The answer that the ledger recorded for a question."""
        table = pq.read_table(pa.BufferReader(self.read_file(question, sha256)))
        dimensions = json.loads(table.schema.metadata[b"dimensions"])
        columns = {name: table[name].to_numpy().astype(np.int64) for name in table.column_names}
        return Cells(
            dimensions=tuple(
                Dimension(name=d["name"], codes=tuple(d["codes"]), public=d["public"]) for d in dimensions
            ),
            positions=columns.pop("position"),
            columns=columns,
        )

    def read_file(self, question: str, sha256: str) -> bytes:
        """The content of the file that holds the answer."""
        path = self._path(question, sha256)
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

    def _path(self, question: str, sha256: str) -> Path:
        return self._folder / f"{question}.{sha256}.parquet"
