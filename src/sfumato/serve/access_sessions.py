"""Who is signed in with a browser: a random name in a cookie stands for a token, until it expires or is revoked.

Sessions live in memory: a restart of the server signs everybody out. A cookie goes to this server only, from its own
pages only, and no script can read it.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from time import monotonic

from sfumato.users import User

LASTS = 12 * 60 * 60
"""Seconds after which a session ends: a working day."""
MOST = 10_000
"""Sessions that are kept; the oldest ends when one more begins."""


@dataclass(frozen=True, kw_only=True)
class _Session:
    user: User
    ends: float


class Sessions:
    """The sessions of a server; what is kept cannot be used as a cookie."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, _Session] = OrderedDict()
        self._lock = Lock()

    def begin(self, user: User) -> str:
        """Begin a session, and return the name that the cookie has."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._kept[_key(name)] = _Session(user=user, ends=monotonic() + LASTS)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return name

    def user(self, name: str) -> User | None:
        """Whose session this is."""
        with self._lock:
            found = self._kept.get(_key(name))
            if found is not None and found.ends < monotonic():
                del self._kept[_key(name)]
                return None
        return None if found is None else found.user

    def end(self, name: str) -> None:
        """End a session."""
        with self._lock:
            self._kept.pop(_key(name), None)


def _key(name: str) -> bytes:
    return sha256(name.encode("utf-8", "surrogatepass")).digest()
