"""An application that a test put together, listening on a free port of this machine in a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from sfumato.serve.run import listening
from tests.serve.patient import PATIENCE


@contextmanager
def asking(app: FastAPI, **options: Any) -> Iterator[httpx.Client]:
    """A client of the application; it follows no redirections. Options are those of uvicorn."""
    bound = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", proxy_headers=False, **options))
    thread = Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{bound.getsockname()[1]}", timeout=PATIENCE) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        bound.close()
