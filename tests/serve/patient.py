"""Requests as httpx sends them, which wait for an answer however busy the machine is."""

from functools import partial

import httpx

PATIENCE = 120.0
"""Seconds after which a server that says nothing has failed the test."""
get = partial(httpx.get, timeout=PATIENCE)
post = partial(httpx.post, timeout=PATIENCE)
head = partial(httpx.head, timeout=PATIENCE)
options = partial(httpx.options, timeout=PATIENCE)
delete = partial(httpx.delete, timeout=PATIENCE)
