"""HTTP in which a request has one length, and what is no HTTP is refused as a problem.

Slow clients, and how many connections there are, are left to the reverse proxy that a public server stands behind. This
is about what comes from that proxy: both have to agree where a request ends, or a reader could put another one's token
before a question of his own.
"""

import json
import re
import sys
from http import HTTPStatus
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfumato.serve.core.http import HEADERS, MEDIA_TYPE, MOST_ADDRESS, MOST_HEADERS

_TWO_LENGTHS = "The request has a length and Transfer-Encoding, or is too old for the latter"
"""Its end may be found in two ways: what one program takes for its body is a new request to another."""
_BARE = re.compile(rb"(?<!\r)\n")
_BARE_LINE_FEED = "A line of the request ends without a carriage return"
"""One program ends a line there, to another one it goes on: a header in it is seen by one of them only."""
_ADDRESS = re.compile(rb"https?://([^/?#]+)([/?].*|)", re.IGNORECASE)


class OneEnd(ReceiveBuffer):
    """What a client sent, whose lines before a body, and after one in chunks, end in one place each."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines up to an empty one; h11 takes them for whole where they end with a line feed alone."""
        begun = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is not None and _BARE.search(begun, 0, len(begun) - len(self)):
            raise h11.RemoteProtocolError(_BARE_LINE_FEED)
        return lines


class OneLength(h11.Connection):
    """HTTP whose requests have one length each."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._receive_buffer = OneEnd()

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What came; a request that has two lengths is refused, though the standard allows to guess one of them.

        A target that is a whole address becomes the path in it.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError(_TWO_LENGTHS)
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


class StrictProtocol(H11Protocol):
    """The protocol of the server."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = OneLength(h11.SERVER, self.config.h11_max_incomplete_event_size or MOST_ADDRESS + MOST_HEADERS)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as a problem, and close; half an answer that is under way is left as it is."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
            return
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.ProtocolError) else 400
        said = str(error) if str(error) in (_TWO_LENGTHS, _BARE_LINE_FEED) else msg.rstrip(".")
        detail = f"{said}. To do: send a shorter or correct request."
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
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + content)
        self.transport.close()
