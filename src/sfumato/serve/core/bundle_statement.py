"""What the statement of a bundle says: its promises, what it leaves open, and how figures were changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from sfumato.privacy.guarantee import Definition, read_described


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What the statement of a bundle says, without marks of Markdown."""

    promises: tuple[str, ...]
    """What the release protects, and what that means."""
    not_protected: tuple[str, ...]
    """What the release leaves open."""
    errors: tuple[str, ...]
    """How to read the error figures."""
    changed: Mapping[str, str]
    """How the numbers of a table or cube were changed."""

    @classmethod
    def of(cls, structure: Mapping[str, Any]) -> "Statement":
        """From the fields of a structure."""
        facts = {name: tuple(map(_plain, texts)) for name, texts in structure["statement"].items()}
        described = [*structure.get("tables", ()), *structure.get("cubes", ())]
        return cls(**facts, changed={about["name"]: _plain(about["changes"]) for about in described})

    @classmethod
    def read(cls, text: str, structure: Mapping[str, Any]) -> "Statement":
        """From the text of an earlier version, whose structure had no such fields."""
        sections: dict[str, tuple[str, ...]] = {}
        heading = ""
        for paragraph in text.split("\n\n"):
            if paragraph.startswith("#"):
                heading = paragraph.lstrip("#").strip()
            else:
                sections[heading] = (*sections.get(heading, ()), _plain(paragraph))
        done = sections.get("How the numbers were changed", ())
        names = [about["name"] for about in (*structure.get("tables", ()), *structure.get("cubes", ()))]
        found = {name: [paragraph.partition(f"(`{name}`): ")[2] for paragraph in done] for name in names}
        return cls(
            promises=tuple(text for heading in _PROMISES for text in sections.get(heading, ())),
            not_protected=sections.get("What is not protected", ()),
            errors=sections.get("How to read the error figures", ()),
            changed={name: next(filter(None, parts), "") for name, parts in found.items()},
        )

    def changes(self, name: str) -> tuple[str, ...]:
        """How the numbers of a table or cube were changed."""
        text = self.changed.get(name, "")
        return (text[0].upper() + text[1:],) if text else ()


_PROMISES = (
    *("In short", "What it means for one person", "What it means for one establishment"),
    "Other periods and releases",
)
"""The headings under which earlier versions said what is promised."""


def _plain(text: str) -> str:
    return text.replace("**", "").strip()


def guarantee_in_words(statement: Statement, described: Mapping[str, Any]) -> tuple[str, ...]:
    """What is promised: the statement about all tables together, which is the weaker one, then that of this table."""
    known = described["definition"] in get_args(Definition)
    own = str(read_described(described)) if known else "no formal guarantee"
    return (*statement.promises, f"This table by itself: {own}.")
