"""Live tables: data opened once and asked many questions; docs/serve-live.md describes them."""

from sfumato.live.charged import ChargedSession, open_charged
from sfumato.live.guarded import GuardedSession, open_guarded
from sfumato.live.session import Session

__all__ = ["ChargedSession", "GuardedSession", "Session", "open_charged", "open_guarded"]
