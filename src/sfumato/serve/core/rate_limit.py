"""Who counts as one client, and how often a client may ask."""

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from time import monotonic

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.serve.core.access import Access
from sfumato.serve.core.http import problem

MOST_CLIENTS = 100_000
"""Clients that are remembered; whoever asked least recently is forgotten first."""
UNKNOWN = "unknown"


class Buckets:
    """Calls that are left to each client.

    A client that keeps to `calls` in every `window` seconds is never refused; one that does not may save up `calls`.

    >>> time = 0.0
    >>> buckets = Buckets(calls=2, window=10, clock=lambda: time)
    >>> buckets.wait("a"), buckets.wait("a"), buckets.wait("a"), buckets.wait("b")
    (0.0, 0.0, 5.0, 0.0)
    >>> time = 5.0
    >>> buckets.wait("a"), buckets.wait("a")
    (0.0, 5.0)
    """

    def __init__(
        self, *, calls: int, window: float, most: int = MOST_CLIENTS, clock: Callable[[], float] = monotonic
    ) -> None:
        self._calls, self._per_second, self._most, self._clock = calls, calls / window, most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def wait(self, client: str) -> float:
        """Take a call from a client's bucket; if there is none, how many seconds until there is one."""
        now = self._clock()
        left, when = self._left.pop(client, (float(self._calls), now))
        left = min(left + (now - when) * self._per_second, float(self._calls))
        granted = left >= 1
        self._left[client] = (left - granted, now)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return 0.0 if granted else (1 - left) / self._per_second


class RateLimit:
    """An application that refuses clients who ask too often, and says when to come back."""

    def __init__(self, app: ASGIApp, *, access: Access, calls: int, window: int) -> None:
        self._app, self._access, self._calls, self._window = app, access, calls, window
        self._buckets = Buckets(calls=calls, window=window)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its client has calls left."""
        wait = self._buckets.wait(client_of(self._access, scope)) if scope["type"] == "http" else 0.0
        if not wait:
            await self._app(scope, receive, send)
            return
        seconds = ceil(wait)
        refusal = problem(
            Request(scope),
            429,
            f"More than {self._calls:,} calls in {self._window} seconds. To do: ask again in {seconds} s.",
            {"Retry-After": str(seconds)},
        )
        await refusal(scope, receive, send)


def client_of(access: Access, scope: Scope) -> str:
    """Who counts as one client: a user, or else everybody at an address."""
    user = access.user(scope)
    return f"user {user.name.lower()}" if user else f"address {address_of(scope)}"


def address_of(scope: Scope) -> str:
    """What counts as one address: in version 6 the network that a household or an office has."""
    return network(address(scope), 32, 64)


def address(scope: Scope) -> str:
    """The address that asks."""
    client = scope.get("client")
    return client[0] if client else UNKNOWN


@lru_cache(maxsize=10_000)
def network(text: str, fourth: int, sixth: int) -> str:
    """The network that an address is in, by so many bits of version 4 or 6.

    >>> network("192.0.2.77", 24, 48), network("2001:db8:1:2:3::4", 24, 64), network("::ffff:192.0.2.77", 32, 64)
    ('192.0.2.0/24', '2001:db8:1:2::/64', '192.0.2.77/32')
    """
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is None:
            return str(ip_network((found, sixth), strict=False))
        found = found.ipv4_mapped
    return str(ip_network((found, fourth), strict=False))
