"""HEAD: what GET would answer, without the body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SENT = "sfumato.method"


class HeadAsGet:
    """An application that answers HEAD wherever it answers GET.

    It stands before everything else: the request goes on as a GET of its own, and what others note in it stays theirs.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep back the body of an answer to HEAD."""

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET", _SENT: "HEAD"}, receive, without_body)
        else:
            await self._app(scope, receive, send)


def method_sent(scope: Scope) -> str:
    """The method that the client sent, whatever it goes on as."""
    method: str = scope.get(_SENT, scope["method"])
    return method
