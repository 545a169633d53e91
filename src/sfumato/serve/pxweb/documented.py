"""How routes of PxWebApi version 2 are described in the OpenAPI document."""

from typing import Annotated, Any

from fastapi import Path, Query

from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.formats.options import PARAMETERS
from sfumato.serve.problems import responses
from sfumato.serve.pxweb.asked import DEFAULT_FORMAT

Id = Annotated[str, Path(description="identifier", max_length=400)]
Language = Annotated[
    str, Query(description="language; there is one", json_schema_extra={"enum": [LANGUAGE], "default": LANGUAGE})
]
JSON = "application/json"


def data_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route documents that it gives figures in every format, and the problems it may answer with."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    content: dict[str, Any] = {written.media_type.split(";")[0]: binary for written in FORMATS.values()}
    content[JSON] = {"schema": {"type": "object"}}
    content["text/csv"] = content["text/html"] = {"schema": {"type": "string"}}
    return {200: {"description": "The figures, in the format that was asked for", "content": content}} | responses(
        *statuses
    )


def parameters(*, selecting: bool = True) -> list[dict[str, Any]]:
    """The parameters of a question, which FastAPI cannot describe: names in brackets."""

    def parameter(name: str, description: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"name": name, "in": "query", "required": False, "description": description, "schema": schema, **more}

    text = {"type": "string"}
    named = {"type": "object", "additionalProperties": text}
    codes = "valueCodes[name]=codes: codes between commas, or *, ?, top(n), bottom(n), range(a,b), from(a), to(b)"
    deep = {"style": "deepObject", "explode": True}
    some = {"type": "array", "items": {"type": "string", "enum": list(PARAMETERS)}}
    listed = {"style": "form", "explode": False}
    selection = [
        parameter("valueCodes", codes, named, **deep),
        parameter("codelist", "codelist[name]=id: a code list whose codes are meant", named, **deep),
    ]
    return [
        *(selection if selecting else []),
        parameter("lang", "language; there is one", {"type": "string", "enum": [LANGUAGE], "default": LANGUAGE}),
        parameter("outputFormat", "the format", {"type": "string", "enum": list(FORMATS), "default": DEFAULT_FORMAT}),
        parameter("outputFormatParams", "how it is written, between commas", some, **listed),
        parameter("heading", "dimensions that go into columns, between commas", text),
        parameter("stub", "dimensions that go into rows, between commas", text),
    ]
