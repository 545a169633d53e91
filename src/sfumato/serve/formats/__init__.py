"""The formats of an answer, by the names that PxWebApi gives them; each is written in a file of its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import PurePosixPath

from sfumato.serve.core.model import Selection, ServedTable, TableAnswer
from sfumato.serve.formats.json_stat import write_json_stat
from sfumato.serve.formats.layout import Options, placement
from sfumato.serve.formats.px import json_px_parts, write_json_px, write_px
from sfumato.serve.formats.sheets import csv_parts, write_csv, write_html, write_parquet, write_xlsx


@dataclass(frozen=True, kw_only=True)
class Format:
    """How an answer becomes bytes."""

    media_type: str
    extension: str
    write: Callable[[TableAnswer, Options], bytes]
    download: bool = True
    """Whether a browser should save it rather than show it."""
    slow: bool = False
    """Whether even a small answer takes long."""
    parts: Callable[[Iterator[TableAnswer], Options], Iterator[bytes]] | None = None
    """How parts of an answer are written one after the other, where the format can be."""

    placed: bool = True
    """Whether clients may choose what goes into rows; otherwise a row has all metrics of a cell."""

    def order(self, table: ServedTable, selection: Selection, options: Options) -> list[int]:
        """The axes of a table along which an answer may be cut into rows, the one that changes slowest first."""
        kept = [axis for axis, places in enumerate((*selection.places, selection.metrics)) if places is not None]
        if not self.placed:
            return kept[:-1]
        rows, _ = placement([table.axes[axis].name for axis in kept], options.heading, options.stub)
        return [kept[place] for place in rows]


FORMATS = {
    "json-stat2": Format(media_type="application/json", extension="json", write=write_json_stat, download=False),
    "csv": Format(media_type="text/csv; charset=utf-8", extension="csv", write=write_csv, parts=csv_parts),
    "xlsx": Format(
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        extension="xlsx",
        write=write_xlsx,
        slow=True,
    ),
    "html": Format(media_type="text/html; charset=utf-8", extension="html", write=write_html, download=False),
    "px": Format(media_type="application/octet-stream", extension="px", write=write_px),
    "json-px": Format(
        media_type="application/json",
        extension="json",
        write=write_json_px,
        download=False,
        parts=json_px_parts,
        placed=False,
    ),
    "parquet": Format(media_type="application/vnd.apache.parquet", extension="parquet", write=write_parquet, slow=True),
}
"""By name, the one that is used when nothing is said first."""


def media_type_of(name: str) -> str:
    """What kind of file has this name; Parquet files have a type of their own, so that nobody compresses them again."""
    path = PurePosixPath(name)
    kinds = {f".{one.extension}": one.media_type for one in FORMATS.values()}
    return kinds.get(path.suffix) or guess_type(path)[0] or "application/octet-stream"
