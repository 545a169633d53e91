"""What goes wrong as a page, for people: the words of a problem, in the head and foot of every other page."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from fastapi import Request
from starlette.responses import Response

from sfumato.errors import SfumatoError
from sfumato.serve.errors import shortened
from sfumato.serve.page.assets import Assets
from sfumato.serve.page.navigation import reader, site
from sfumato.serve.page.writing import HTML, make_templates
from sfumato.serve.served import Served

Writer = Callable[[Request, int, SfumatoError | str, Mapping[str, str]], Response]
_TITLES = {
    HTTPStatus.NOT_FOUND: "There is no such page",
    HTTPStatus.UNAUTHORIZED: "Sign in first",
    HTTPStatus.FORBIDDEN: "This is not allowed",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.SERVICE_UNAVAILABLE: "The server is busy",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}
_OTHERS = "This is not possible"


def writer(served: Served) -> Writer:
    """What writes such pages for a server."""
    template = make_templates(Assets.read(), served.settings).get_template("error.html")

    def write(request: Request, status: int, error: SfumatoError | str, headers: Mapping[str, str]) -> Response:
        """The page of a problem; the words are those that programs get."""
        if error == HTTPStatus.NOT_FOUND.phrase:
            error = f"Nothing has the address {shortened(request.url.path)}"
        content = template.render(
            title=_TITLES.get(HTTPStatus(status), _OTHERS),
            fault=error if isinstance(error, SfumatoError) else None,
            words=error if isinstance(error, str) else "",
            sign_in=served.live and status == HTTPStatus.UNAUTHORIZED,
            site=site(served, reader(served, request)),
        )
        return Response(content, status, headers={"Cache-Control": "no-store", **headers}, media_type=HTML)

    return write
