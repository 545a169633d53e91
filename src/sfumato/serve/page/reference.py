"""The OpenAPI document as a page: every address that programs can ask for, what it takes and what it answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.page.assets import HTML, Assets, make_templates
from sfumato.serve.page.site import for_everybody, reader, role_of, site

REFERENCE = "/reference"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that programs can ask for."""

    method: str
    path: str
    words: str
    parameters: tuple[tuple[str, str, str], ...]
    """Name, where it goes, and what it means."""
    answers: tuple[tuple[str, str], ...]
    """Status, and the formats or the problem."""
    token: bool


def router(context: ServerContext) -> APIRouter:
    """The route of the page; it is for people, so the OpenAPI document leaves it out."""
    api = APIRouter(include_in_schema=False)
    template = make_templates(Assets.read(), context.settings).get_template("reference.html")

    @api.get(REFERENCE)
    async def reference(request: Request) -> Response:
        """All operations, by interface."""
        user = reader(context, request)
        shown = site(context, user, request)
        key = (REFERENCE, role_of(user), shown.say.code, shown.chosen)
        kept = context.cache.get(key)
        if kept is None:
            content = template.render(groups=groups(request.app.openapi()), site=shown).encode()
            kept = for_everybody(context, Rendered.of(content, media_type=HTML))
            context.keep(key, kept, 0)
        return kept.respond(request)

    return api


def groups(document: dict[str, Any]) -> dict[str, list[Operation]]:
    """The operations of a document, by their interface."""
    found: dict[str, list[Operation]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["Others"])[0]
            found.setdefault(tag, []).append(_operation(method, path, operation))
    return found


def _operation(method: str, path: str, operation: dict[str, Any]) -> Operation:
    return Operation(
        method=method.upper(),
        path=path,
        words=operation.get("description") or operation.get("summary") or "",
        parameters=tuple(
            (one["name"], one["in"], one.get("description", "")) for one in operation.get("parameters", ())
        ),
        answers=tuple(_answers(operation["responses"])),
        token=bool(operation.get("security")),
    )


def _answers(responses: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for status, response in sorted(responses.items()):
        good = int(status) < HTTPStatus.BAD_REQUEST
        formats = ", ".join(response.get("content", {}))
        yield status, formats or response["description"] if good else response["description"]
