"""The privacy statement of a bundle, taken apart: what holds for all its tables, and what was done to each."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from sfumato.privacy.guarantee import Definition, EmployerEmployee


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The paragraphs of a statement by the heading of their section, without marks of Markdown."""

    sections: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, text: str) -> "Statement":
        """Take a statement apart at its headings and empty lines."""
        sections: dict[str, tuple[str, ...]] = {}
        heading = ""
        for paragraph in text.split("\n\n"):
            if paragraph.startswith("#"):
                heading = paragraph.lstrip("#").strip()
            else:
                sections[heading] = (*sections.get(heading, ()), paragraph.replace("**", "").strip())
        return cls(sections=sections)

    @property
    def promises(self) -> tuple[str, ...]:
        """What the release protects, and what that means."""
        headings = (
            *("In short", "What it means for one person", "What it means for one establishment"),
            "Other periods and releases",
        )
        return tuple(paragraph for heading in headings for paragraph in self.sections.get(heading, ()))

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the release leaves open."""
        return self.sections.get("What is not protected", ())

    @property
    def errors(self) -> tuple[str, ...]:
        """How to read the error figures."""
        return self.sections.get("How to read the error figures", ())

    def changes(self, name: str) -> tuple[str, ...]:
        """How the numbers of a table or cube were changed."""
        changed = self.sections.get("How the numbers were changed", ())
        parts = [paragraph.partition(f"(`{name}`): ")[2] for paragraph in changed]
        return tuple(part[0].upper() + part[1:] for part in parts if part)


def guarantee_in_words(statement: Statement, described: Mapping[str, Any]) -> tuple[str, ...]:
    """What is promised: the statement about all tables together, which is the weaker one, then that of this table."""
    if described["definition"] in get_args(Definition):
        alpha, epsilon, delta = (Fraction(str(described[name])) for name in ("alpha", "epsilon", "delta"))
        condition = described.get("condition", "")
        own = str(
            EmployerEmployee(
                definition=described["definition"], alpha=alpha, epsilon=epsilon, delta=delta, condition=condition
            )
        )
    else:
        own = "no formal guarantee"
    return (*statement.promises, f"This table by itself: {own}.")
