"""Protect a table part by part: true rows in, a file of protected cells out, in this process or another."""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from sfumato.engine.part_layout import PartLayout
from sfumato.keys import Secret
from sfumato.parts import Part, write_part
from sfumato.plan import PlannedTable
from sfumato.privacy.answer_file import content_of


@dataclass(frozen=True, kw_only=True)
class ProtectPart:
    """The work on one part of a charged table: a plain value, which may be sent to another process.

    Formal noise is drawn from the operating system of the process that works; keyed noise follows from the cells alone,
    and is the same wherever they are worked on. Nothing of the true rows leaves but through the protection.
    """

    planned: PlannedTable
    secret: Secret | None = field(repr=False)
    layout: PartLayout
    folder: Path
    """Where the file goes: a draft, of which nothing counts until all parts are there."""

    def __call__(self, rows: pa.Table) -> Part:
        """Protect the cells of one part and put them on the disk."""
        answer = self.planned.answer(self.layout.cells(rows), self.secret)
        return write_part(self.folder, rows["_part"][0].as_py(), content_of(answer), rows=len(answer))
