"""Every error as problem+json (RFC 7807), or as a page for people: what was expected, what was found, what to do."""

import json
import re
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from sfumato.errors import DiskError, SfumatoError
from sfumato.serve.errors import RefusedError, shortened, unable
from sfumato.serve.security import is_public

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """What went wrong."""

    type: str = Field(description="kind of problem; about:blank where the title says it all")
    title: str = Field(description="the kind of problem in words")
    status: int = Field(description="the HTTP status")
    detail: str = Field(description="what was expected, what was found, and what to do")
    instance: str = Field(description="the path that was asked for")


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route documents the problems it may answer with."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
        for status in statuses
    }


FAILED = "The server failed to answer. This is a fault of the server, not of the request."
_LONGEST = 1_000
_QUALITY = re.compile(r"[01](\.[0-9]{0,3})?")
_REFERENCE = {"$ref": "#/components/schemas/Problem"}


def problem(
    request: Request, status: int, detail: SfumatoError | str, headers: dict[str, str] | None = None
) -> Response:
    """A response that says what went wrong: a page to those who read pages, problem+json to everybody else."""
    if wants_page(request):
        page: Response = request.app.state.error_page(request, status, detail, headers or {})
        return page
    content = Problem(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=in_a_line(detail) if isinstance(detail, SfumatoError) else detail,
        instance=shortened(request.url.path),
    )
    return Response(
        json.dumps(content.model_dump(), ensure_ascii=False).encode("utf-8", "replace"),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def wants_page(request: Request) -> bool:
    """Whether a client is a browser that opens a page: it would rather have HTML than anything else."""
    if is_public(request.scope) or "app" not in request.scope:
        return False  # addresses of programs alone say the same to everybody
    return preferred(",".join(request.headers.getlist("accept"))) in ("text/html", "application/xhtml+xml")


def preferred(accept: str) -> str:
    """The media type that a client would like best, of several that it likes alike the first.

    >>> preferred("text/html,application/xml;q=0.9,*/*;q=0.8"), preferred("text/html;q=0.5, application/json")
    ('text/html', 'application/json')
    """
    best, most = "*/*", 0.0
    for part in accept[:_LONGEST].split(","):
        name, *parameters = (text.strip().lower() for text in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        number = float(quality) if _QUALITY.fullmatch(quality) else 0.0
        if name and number > most:
            best, most = name, number
    return best


def _methods(app: FastAPI, path: str) -> set[str]:
    """The methods of a path; several routes may have it, and each knows only its own."""
    known = {
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in operations
    }
    return known | ({"HEAD"} if "GET" in known else set())


def in_a_line(error: SfumatoError) -> str:
    """An error of sfumato in one line."""
    return f"{error.where}: expected {error.expected}; found {error.found}. To do: {error.do}."


def handle_errors(app: FastAPI) -> None:
    """Make an application answer with problems, whatever goes wrong."""

    async def full(request: Request, error: Exception) -> Response:
        return await refused(request, unable(error))

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status if isinstance(error, RefusedError) else 400
        return problem(request, status, error if isinstance(error, SfumatoError) else str(error))

    async def invalid(request: Request, error: Exception) -> Response:
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        where = ".".join(str(part) for part in first.get("loc", ()))
        return problem(request, 400, shortened(f"{where}: {first.get('msg', 'the request is not valid')}"))

    async def raised(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return await failed(request, error)
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            own = {method.strip() for method in headers.get("Allow", "").split(",") if method.strip()}
            headers["Allow"] = ", ".join(sorted(own | _methods(app, request.url.path)))
        return problem(request, error.status_code, shortened(str(error.detail)), headers)

    async def failed(request: Request, _error: Exception) -> Response:
        # The text of a foreign error may quote anything: it goes to the log of the server only.
        return problem(request, 500, FAILED)

    app.add_exception_handler(DiskError, full)
    app.add_exception_handler(SfumatoError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, raised)
    app.add_exception_handler(Exception, failed)
