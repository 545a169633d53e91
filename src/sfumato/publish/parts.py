"""Publish a table part by part: a file of protected cells in, a file of published rows out."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.laid_out import as_asked
from sfumato.parts import Part, write_part
from sfumato.plan import PlannedTable
from sfumato.privacy.answers import AnswerParts
from sfumato.publish.table import published_table


@dataclass(frozen=True, kw_only=True)
class PublishPart:
    """The work on one stored part: a plain value, which may be sent to another process."""

    planned: PlannedTable
    answer: AnswerParts
    folder: Path
    """Where the file goes: a draft of the bundle."""

    def __call__(self, number: int) -> Part:
        """Lay out one part as readers get it and put it on the disk."""
        table = published_table(self.planned, as_asked(self.answer.read(number), self.planned), listed=False)
        return write_part(self.folder, number, parquet(table), rows=len(table))


def parquet(table: pa.Table) -> pa.Buffer:
    """A published table as the content of a file."""
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()
