"""Live tables: data opened once and asked many questions; docs/serve-live.md describes them."""

from sfumato.live.formal import FormalLive, open_formal
from sfumato.live.tables import Live, open_live

__all__ = ["FormalLive", "Live", "open_formal", "open_live"]
