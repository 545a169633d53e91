"""What the ledger knows data by: every name under which they were charged, and the content these names stand for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.content import Content
from sfumato.privacy.entry import Entry


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """An entry of the ledger that says what data are known by."""

    entry: Entry
    content: Content
    names: frozenset[str]
    """What charges call parts of these data: the columns that a question looks at."""
    fingerprint: str
    """Of the bytes of their files, by which they were charged before they were known by content; empty if never."""

    @classmethod
    def of(cls, entry: Entry) -> "KnownData":
        """What an entry says."""
        content, more = Content.read(entry.note)
        return cls(
            entry=entry, content=content, names=frozenset(more["names"]), fingerprint=str(more.get("fingerprint", ""))
        )

    @property
    def all_names(self) -> frozenset[str]:
        """Every name of these data in charges."""
        return self.names | {self.fingerprint} - {""}


def known_data(entries: Iterable[Entry]) -> tuple[KnownData, ...]:
    """What the entries of a ledger say of data, in their order."""
    return tuple(KnownData.of(entry) for entry in entries if entry.kind == "data")


def names_of(content: Content, known: Iterable[KnownData]) -> frozenset[str]:
    """Every name under which the same data were charged."""
    return frozenset().union(*(one.all_names for one in known if one.content.same_as(content)))


def old_names(entries: Sequence[Entry]) -> frozenset[str]:
    """The names of data in charges that were made before data were known by content: fingerprints of bytes."""
    by_content = frozenset().union(*(one.names for one in known_data(entries)))
    # A charge that stands for those of a lost ledger names no data.
    return frozenset(entry.data for entry in entries if entry.kind == "charge" and entry.data) - by_content


def note(content: Content, names: Iterable[str], fingerprint: str = "") -> str:
    """What an entry says of data, as its note."""
    return content.text(names=sorted(names), **({"fingerprint": fingerprint} if fingerprint else {}))
