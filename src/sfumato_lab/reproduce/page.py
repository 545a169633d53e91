"""What every reproduction shares: findings beside what was published, charts, tables, one page."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, Protocol, TypeVar

from rich.text import Text

from sfumato.cli.screen import Table, printed_table
from sfumato.durable import write_durably
from sfumato_lab.economy.files import RELEASE

# Where the economy of a reproduction is: kept in a folder, or made for this once.


@contextmanager
def economy_folder(data: Path | None, make: Callable[[Path], object], *, release: str = RELEASE) -> Iterator[Path]:
    """The folder `data` if it holds an economy, which is made there otherwise; a temporary one where none is named.

    `release` is the file by which a folder is known to be whole: it is written last.
    """
    if data is not None and (data / release).exists():
        yield data
        return
    with TemporaryDirectory() as temporary:
        folder = data or Path(temporary)
        make(folder)
        yield folder


# One line of a comparison: what a paper stated, beside what was measured here.


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is meant, what was stated about it, what was measured here."""

    source: str
    what: str
    stated: str
    ours: str
    holds: bool | None
    """None where what was stated sets no limit, and readers judge for themselves."""
    note: str = ""
    is_order: bool = False
    """Whether it is about an order of methods or places, and not about one figure."""

    @property
    def verdict(self) -> str:
        """Whether it agrees, in a word; none where readers judge."""
        return "" if self.holds is None else "yes" if self.holds else "no"


# Tables that reproductions print.


def printed_findings(findings: Iterable[Finding], *, starred: bool = False) -> Table:
    """What was stated and what was found; those with a note, which the page has, may be starred."""
    table = printed_table("source", "what", "stated", "here", "agrees")
    for line in findings:
        mark = Text(line.verdict, style="green" if line.holds else "bold red")
        table.add_row(line.source, line.what + ("*" if starred and line.note else ""), line.stated, line.ours, mark)
    return table


# The frame of every reproduction: one page with charts and tables, and a CSV file with all rows.

_STYLE = """
:root { --ink: #33312e; --paper: #faf7f2; --line: #d9d2c5; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 68rem; padding: 1.5rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.number { text-align: right; } .no { color: #7a1f1f; font-weight: 600; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
figure { margin: 0 0 1.5rem; background: #fffdf9; border-radius: .4rem; padding: .5rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
"""
_WRONG = "✗"
"""Marks a figure that breaks a rule."""


class Reproduced(Protocol):
    """What was computed again."""

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""


Found = TypeVar("Found", bound=Reproduced)


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Found]):
    """What a reproduction writes: a page named like its paper, and a CSV file with these columns."""

    paper: str
    heading: str
    columns: Sequence[str]
    body: Callable[[Found], str]
    """The page below its heading."""

    def write(self, found: Found, folder: Path) -> tuple[Path, Path]:
        """Write the page and the CSV file into a folder, over those of an earlier run."""
        folder.mkdir(parents=True, exist_ok=True)
        page, table = folder / f"{self.paper}.html", folder / f"{self.paper}.csv"
        write_durably(table, _csv(self.columns, found.rows()).encode())
        write_durably(page, _html(self.paper, self.heading, self.body(found)).encode())
        return page, table


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return lines.getvalue()


def _html(paper: str, heading: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{paper}: {heading}</title><style>{_STYLE}</style></head><body>
<h1>{heading}</h1>
{body}
</body></html>
"""


def rows_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = ()) -> str:
    """A table of texts; the columns at some places are numbers."""
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(_cell(cell, number=place in numbers) for place, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(text: str, *, number: bool) -> str:
    kinds = [name for name, applies in (("number", number), ("no", _WRONG in text)) if applies]
    return f'<td class="{" ".join(kinds)}">{escape(text)}</td>' if kinds else f"<td>{escape(text)}</td>"


def findings_table(findings: Iterable[Finding]) -> str:
    """What was stated and what was found."""
    head = "".join(f"<th scope='col'>{name}</th>" for name in ("source", "what", "stated", "here", "agrees", "note"))
    rows = "".join(
        f"<tr><td>{escape(line.source)}</td><td>{escape(line.what)}</td><td>{escape(line.stated)}</td>"
        f"<td>{escape(line.ours)}</td><td{' class=no' if line.holds is False else ''}>{line.verdict}</td>"
        f"<td>{escape(line.note)}</td></tr>"
        for line in findings
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def bullets(sentences: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"
