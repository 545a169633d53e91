"""The body of a question: read at once, or where it is long in a thread, in turn with other clients."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from sfumato.serve.errors import RefusedError
from sfumato.serve.pxweb.documented import JSON
from sfumato.serve.served import Served

LONG = 50_000
"""Bytes of a body that is read at once; a longer one waits for a thread."""
T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
_JSON = re.compile(r"application/(?:[^;,\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_MARK = b"\xef\xbb\xbf"
"""Some programs write it before a text in UTF-8."""


async def understood(served: Served, request: Request, understand: Callable[[bytes], T]) -> T:
    """What a body means; nobody else waits while a long one is read."""
    body = (await request.body()).removeprefix(_MARK)
    if len(body) <= LONG:
        return understand(body)
    return await served.turns.download(lambda: understand(body), client=served.client(request.scope))


def read_json(model: type[Model], body: bytes, request: Request) -> Model:
    """The content of a body that says that it is JSON."""
    said = request.headers.get("content-type", "")
    if not _JSON.fullmatch(said.strip()):
        raise RefusedError("body", expected=f"JSON, with Content-Type: {JSON}", found=said or "none", do="say so")
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = first_fault(error)
        raise RequestValidationError([{**first, "loc": ("body", *first["loc"])}]) from None


def first_fault(error: ValidationError) -> Mapping[str, Any]:
    """What is wrong first, in words that quote nothing."""
    return error.errors(include_url=False, include_context=False, include_input=False)[0]


def documented_body(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """How a route describes a body that it reads itself, for the OpenAPI document."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def whole(part: Any) -> Any:
        """The description, with its parts in place of references to them."""
        if isinstance(part, list):
            return [whole(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return whole(parts[part["$ref"].rpartition("/")[2]])
        return {name: whole(one) for name, one in part.items()}

    return {"requestBody": {"required": required, "content": {JSON: {"schema": whole(schema)}}}}
