"""Connections that wait for a bounded time: for the first lines of a question, and for a client to read its answer.

The server that speaks HTTP waits for both without end, so that a few thousand slow clients would take all connections.
"""

import asyncio
import json
import re
import sys
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfumato.serve.core.http import HEADERS, MEDIA_TYPE, MOST_ADDRESS, MOST_HEADERS

_ADDRESS = re.compile(rb"https?://([^/?#]+)([/?].*|)", re.IGNORECASE)
SLOWEST = 1_000
"""Bytes a second that a client has to read of an answer which is too long to be sent at once."""


class TwoLengthsError(h11.RemoteProtocolError):
    """A request whose end may be found in two ways: what one program takes for its body is a new one to another."""


class OneLength(h11.Connection):
    """HTTP whose requests have one length each."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What came; a request that has two lengths is refused, though the standard allows to guess one of them.

        A target that is a whole address becomes the path in it.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise TwoLengthsError("The request has a length and Transfer-Encoding, or is too old for the latter")
            return in_origin_form(event)
        return event


def in_origin_form(request: h11.Request) -> h11.Request:
    """The request with a path for its target: one with a whole address, as proxies get it, names the host there.

    Such a host counts, whatever the header says (RFC 9112, section 3.2.2).
    """
    whole = _ADDRESS.fullmatch(request.target)
    if whole is None:
        return request
    headers = [(b"Host", whole[1]), *((name, text) for name, text in request.headers if name != b"host")]
    target = whole[2] if whole[2].startswith(b"/") else b"/" + whole[2]
    return h11.Request(method=request.method, target=target, headers=headers, http_version=request.http_version)


class PatientProtocol(H11Protocol):
    """HTTP with a client who has so many seconds to go on."""

    patience: ClassVar[float]
    most: ClassVar[int]
    waiting: ClassVar[dict["PatientProtocol", None]]
    """The connections that wait for a question, the one that waits longest first."""
    most_unread: ClassVar[int]
    unread: ClassVar[dict["PatientProtocol", None]]
    """The connections whose clients have much of an answer left to read, the one that reads longest first."""
    _question: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = OneLength(h11.SERVER, self.config.h11_max_incomplete_event_size or MOST_ADDRESS + MOST_HEADERS)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a question; where there are too many connections, one that has none makes room."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            if not self.waiting:
                self._refuse(503, "The server has as many connections as it can. To do: try again.", "Retry-After: 5")
                return
            idle = next(iter(self.waiting))
            del self.waiting[idle]
            idle.transport.abort()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self._stop_reading()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what came; when a question is complete but for its body, nobody waits for it any more."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next question."""
        before = self.cycle
        super().on_response_complete()
        if self.cycle is before and not self.transport.is_closing():
            self._wait()

    def pause_writing(self) -> None:
        """The client does not read as fast as we write: see that it goes on, and that not too many do so."""
        super().pause_writing()
        self._watch()
        self.unread[self] = None
        sizes = {connection: connection.transport.get_write_buffer_size() for connection in self.unread}
        left = sum(sizes.values())
        for connection, size in sizes.items():
            if left <= self.most_unread:
                break
            left -= size
            del self.unread[connection]
            connection.transport.abort()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._stop_reading()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, as a problem."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.ProtocolError) else 400
        said = str(error) if isinstance(error, TwoLengthsError) else msg.rstrip(".")
        self._refuse(status, f"{said}. To do: send a shorter or correct request.")

    def _wait(self) -> None:
        self._stop_waiting()
        self.waiting[self] = None
        self._question = self.loop.call_later(self.patience, self._too_slow)

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._question is not None:
            self._question.cancel()
            self._question = None

    def _stop_reading(self) -> None:
        self.unread.pop(self, None)
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _too_slow(self) -> None:
        self.waiting.pop(self, None)
        begun = bool(self.conn.trailing_data[0])
        if begun and self.conn.our_state is h11.IDLE:
            self._refuse(408, f"The request took more than {self.patience:g} s to come. To do: send it faster.")
        else:
            self.transport.close()
        self._watch()

    def _watch(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        left = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.patience, self._go_on_or_end, left)

    def _go_on_or_end(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < SLOWEST * self.patience:
            self.transport.abort()
        else:
            self._watch()

    def _refuse(self, status: int, detail: str, *more: str) -> None:
        """Answer without a question that could be passed on, and close; half an answer is left as it is."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
            return
        title = HTTPStatus(status).phrase
        content = json.dumps(
            {"type": "about:blank", "title": title, "status": status, "detail": detail, "instance": ""}
        ).encode()
        lines = [
            f"HTTP/1.1 {status} {title}",
            f"Content-Type: {MEDIA_TYPE}",
            f"Content-Length: {len(content)}",
            "Cache-Control: no-store",
            "Connection: close",
            *(f"{name}: {text}" for name, text in HEADERS.items()),
            *more,
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + content)
        self.transport.close()


def patient_protocol(*, patience: float, most: int, most_unread: int) -> type[PatientProtocol]:
    """The protocol of one server, which has so many connections and so many bytes that clients have not read yet."""
    own: dict[str, Any] = {"patience": patience, "most": most, "waiting": {}, "most_unread": most_unread, "unread": {}}
    return type("PatientProtocol", (PatientProtocol,), own)
