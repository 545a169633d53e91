"""A client that sends whatever it likes, byte by byte: what a browser or library would refuse to send."""

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.serve.patient import PATIENCE
from tests.serve.running import Server


@dataclass(frozen=True, kw_only=True)
class Said:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        """The problem that the server describes, which has every field and nothing of the inside of the server."""
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        assert set(found) == {"type", "title", "status", "detail", "instance"}
        assert found["status"] == self.status
        assert "Traceback" not in found["detail"]
        return found


@contextmanager
def connected(server: Server, *, buffer: int | None = None) -> Iterator[socket.socket]:
    """A connection to the server, which can be told to take in only so many bytes."""
    parts = urlsplit(server.url)
    with socket.socket() as connection:
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.settimeout(PATIENCE)
        connection.connect((parts.hostname, parts.port))
        yield connection


def heard(connection: socket.socket) -> Said:
    """Read one answer and nothing of the next."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += _more(connection, 1)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    body, length = b"", int(headers.get("content-length", "0"))
    while len(body) < length:
        body += _more(connection, length - len(body))
    return Said(status=int(first.split()[1]), headers=headers, body=body)


def said_to(server: Server, *parts: bytes) -> Said:
    """Send parts and read the answer; a server that refuses need not read all of them."""
    with connected(server) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return heard(connection)


def closed(connection: socket.socket) -> bool:
    """Wait for the server to close a connection, reading whatever it still sends."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


def request(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    """The bytes of a request, with whatever headers are given."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body


def posted(target: str, body: bytes, *headers: str) -> bytes:
    """The bytes of a POST with a body."""
    more = (f"Content-Length: {len(body)}", "Content-Type: application/json")
    return request("POST", target, *more, *headers, body=body)


def chunked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """A body in chunks, which does not say how long it will be."""
    for part in parts:
        yield f"{len(part):x}\r\n".encode() + part + b"\r\n"
    yield b"0\r\n\r\n"


def _more(connection: socket.socket, most: int) -> bytes:
    content = connection.recv(most)
    assert content, "the server closed the connection without an answer"
    return content
