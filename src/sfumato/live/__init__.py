"""Live tables: records opened once and asked many questions; docs/methods/top-contributors.md describes them."""

from sfumato.live.tables import Live, open_live

__all__ = ["Live", "open_live"]
