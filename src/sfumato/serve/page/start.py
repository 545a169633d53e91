"""The start page's list of tables: found by words, narrowed by release, period and variable."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from sfumato.serve.model import ServedTable
from sfumato.serve.pxweb.listing import found

PAGE = 40
"""Tables on a page."""
FILTERS = {"release": "Topic", "period": "Period", "variable": "Variable"}
_LONGEST = 200


class Option(NamedTuple):
    """A word that the list can be narrowed by, and how many tables it leaves."""

    text: str
    tables: int


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The tables that were found, a page of them, and how to narrow them further."""

    words: str
    chosen: Mapping[str, str]
    options: Mapping[str, tuple[Option, ...]]
    tables: tuple[ServedTable, ...]
    count: int
    page: int
    pages: int

    def link(self, page: int) -> str:
        """The query of another page of the list."""
        asked = {"q": self.words, **self.chosen, "page": str(page) if page > 1 else ""}
        return urlencode({name: text for name, text in asked.items() if text})


def listing(tables: Iterable[ServedTable], asked: Mapping[str, str]) -> Listing:
    """Find tables; a filter's numbers are of the tables that the other filters leave."""
    words = asked.get("q", "")[:_LONGEST].strip()
    chosen = {name: asked.get(name, "")[:_LONGEST] for name in FILTERS}
    candidates = found(list(tables), query=words)
    left = [table for table in candidates if _fits(table, chosen)]
    options = {
        name: _options(name, [table for table in candidates if _fits(table, {**chosen, name: ""})], chosen[name])
        for name in FILTERS
    }
    pages = max(-(-len(left) // PAGE), 1)
    number = asked.get("page", "1")
    page = min(int(number), pages) if number.isdecimal() and number.isascii() and 0 < len(number) < 7 else 1
    page = max(page, 1)
    return Listing(
        words=words,
        chosen=chosen,
        options=options,
        tables=tuple(left[(page - 1) * PAGE : page * PAGE]),
        count=len(left),
        page=page,
        pages=pages,
    )


def _texts(name: str, table: ServedTable) -> Sequence[str]:
    if name == "variable":
        return [dimension.label for dimension in table.dimensions]
    return [table.release if name == "release" else table.period]


def _fits(table: ServedTable, chosen: Mapping[str, str]) -> bool:
    return all(not text or text in _texts(name, table) for name, text in chosen.items())


def _options(name: str, tables: Sequence[ServedTable], chosen: str) -> tuple[Option, ...]:
    counts = Counter(text for table in tables for text in _texts(name, table))
    if chosen:
        counts.setdefault(chosen, 0)
    return tuple(Option(text, counts[text]) for text in sorted(counts))
