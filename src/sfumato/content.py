"""What data are known by: digests of their columns, whatever the order of their rows and however files were written."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

MAIN = ("jobs", "records")
"""The table whose rows are protected; every frame has one of them."""


def together(columns: Iterable[str]) -> str:
    """The name of several columns that are known together, where no key tells which values share a row.

    >>> together(["sex", "age"])
    'age, sex'
    """
    return ", ".join(sorted(columns))


@dataclass(frozen=True, kw_only=True)
class TableContent:
    """One table: a digest of the keys of its rows, and of every column beside these keys."""

    keys: str
    columns: Mapping[str, str]
    keyed: bool = True
    """Whether the keys tell rows apart. Where they do not, columns that are asked for together are known together."""
    key_columns: tuple[str, ...] = field(default=(), compare=False)
    """The columns that were described as keys. What follows knows a table again that is described by other keys."""
    levels: tuple[str, ...] = field(default=(), compare=False)
    """The permanent names of larger units, where their columns are called otherwise."""
    alone: Mapping[str, str] = field(default_factory=dict, compare=False)
    """A digest of each key column whose values, without any other, tell data from all others."""
    files: str = field(default="", compare=False)
    """A digest of the size, the beginning and the end of every file."""
    heads: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The columns of a register that count workers, by their codes."""
    source: str = field(default="", compare=False)
    """Of a panel in a series: what `files` would be if all its rows had been read."""
    period: str = field(default="", compare=False)
    """Of a panel in a series: the period that its rows were read for."""

    def part(self, columns: Iterable[str]) -> "TableContent | None":
        """The same of some columns; None when one of them was not read."""
        asked = tuple(columns)
        names = asked if self.keyed or not asked else (together(asked),)
        if any(name not in self.columns for name in names):
            return None
        return TableContent(keys=self.keys, columns={name: self.columns[name] for name in names}, keyed=self.keyed)

    def agrees_with(self, other: "TableContent") -> bool:
        """Whether the keys are the same, and every column that is known of both."""
        return self.keys == other.keys and not self.differing(other)

    def described_as(self, other: "TableContent") -> bool:
        """Whether the same columns are the keys of both, so that other digests mean other data."""
        return self.key_columns == other.key_columns

    def has_rows_of(self, other: "TableContent") -> bool:
        """Whether the rows are the same, also where one is described with a key more, one less, or another."""
        if self.agrees_with(other) or (self.files != "" and self.files == other.files):
            return True
        return not self.described_as(other) and not set(self.alone.values()).isdisjoint(other.alone.values())

    def is_from_source_of(self, other: "TableContent") -> bool:
        """Whether both have rows of one period of one panel: which of its rows are read follows from what is asked."""
        one, two = self.source or self.files, other.source or other.files
        periods = {self.period, other.period} - {""}
        return bool(self.source or other.source) and one != "" and one == two and len(periods) < 2

    def counts_others(self, other: "TableContent") -> bool:
        """Whether both count the workers of establishments by the same codes, in other columns with other numbers."""
        if not self.heads or self.heads.keys() != other.heads.keys():
            return False
        apart = set(self.heads.values()).isdisjoint(other.heads.values())
        return apart and any(self.columns.get(self.heads[c]) != other.columns.get(other.heads[c]) for c in self.heads)

    def differing(self, other: "TableContent") -> list[str]:
        """The columns that are known of both and differ."""
        return sorted(n for n in self.columns.keys() & other.columns.keys() if self.columns[n] != other.columns[n])


@dataclass(frozen=True, kw_only=True)
class Content:
    """All tables of a frame by name, as far as they were read; it holds no value, and no number of rows."""

    tables: Mapping[str, TableContent]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    @property
    def digest(self) -> str:
        """One name of all that was read."""
        return sha256(json.dumps(self._described(), sort_keys=True).encode()).hexdigest()

    def part(self, columns: Mapping[str, Iterable[str]]) -> "Content | None":
        """What a question looks at: the keys of some tables, and columns beside them; None when one was not read."""
        if not columns.keys() <= self.tables.keys():
            return None
        parts = {name: self.tables[name].part(asked) for name, asked in columns.items()}
        found = {name: part for name, part in parts.items() if part is not None}
        return Content(tables=found) if len(found) == len(parts) else None

    def with_more(self, other: "Content") -> "Content":
        """The same data with the columns that were read in another pass."""
        more = {
            name: replace(table, columns={**table.columns, **other.tables[name].columns})
            for name, table in self.tables.items()
            if name in other.tables
        }
        return Content(tables={**self.tables, **other.tables, **more})

    def same_as(self, other: "Content") -> bool:
        """Whether both are about the same records: the same keys, and the same values wherever both looked.

        Two releases that look at different columns of the same files know each other by the keys alone. Digests that
        were made with different keys cannot be compared: such tables are known again by their files, and jobs by
        their workplaces or workers. Rows of one panel are known again by its files, however many of them were read.
        """
        here, there = self._main, other._main
        if here is None or there is None:
            return False
        of_panel = here.is_from_source_of(there)
        if not (of_panel or here.has_rows_of(there)):
            return False
        common = (self.tables.keys() & other.tables.keys()) - (set(MAIN) if of_panel else set())
        both = [(self.tables[name], other.tables[name]) for name in common]
        return all(one.agrees_with(two) or not one.described_as(two) for one, two in both)

    def counts_others(self, other: "Content") -> bool:
        """Whether both count the workers of a register in other columns, as one with a column for every year has."""
        here, there = self._main, other._main
        return here is not None and there is not None and here.counts_others(there)

    @property
    def _main(self) -> TableContent | None:
        return next((self.tables[name] for name in MAIN if name in self.tables), None)

    @property
    def unit_names(self) -> frozenset[str]:
        """The permanent names that units of records may have had: that of a record, and of columns of larger units."""
        table = self.tables.get("records")
        return frozenset() if table is None else frozenset((*table.key_columns[:1], *(table.levels or table.columns)))

    def changed_since(self, other: "Content") -> list[str]:
        """What differs from other data, table by table, in words that name columns and quote nothing."""
        words = []
        for name in self.tables.keys() & other.tables.keys():
            here, there = self.tables[name], other.tables[name]
            if here.keys != there.keys:
                words.append(f"{name}: rows were added, removed or have other keys")
            elif columns := here.differing(there):
                words.append(f"{name}: other values in {', '.join(columns)}")
        return sorted(words)

    def text(self, **more: Any) -> str:
        """All digests as text for the ledger, with what else is to be noted beside them."""
        tables = self._described()
        for name, table in self.tables.items():
            again = {"key_columns": list(table.key_columns), "alone": dict(table.alone), "files": table.files}
            again |= {"levels": list(table.levels), "heads": dict(table.heads)}
            again |= {"source": table.source, "period": table.period}
            tables[name] |= {key: value for key, value in again.items() if value}
        return json.dumps({"tables": tables, **more}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> "tuple[Content, dict[str, Any]]":
        """The content that a text describes, and what was noted beside it."""
        described = json.loads(text)
        tables = {
            name: TableContent(**table | {told: tuple(table.get(told, ())) for told in ("key_columns", "levels")})
            for name, table in described.pop("tables").items()
        }
        return cls(tables=tables), described

    def _described(self) -> dict[str, Any]:
        return {
            name: {"keys": table.keys, "columns": dict(table.columns), "keyed": table.keyed}
            for name, table in self.tables.items()
        }
