"""One line of a comparison: what a paper stated, beside what was measured here."""

from dataclasses import dataclass


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
