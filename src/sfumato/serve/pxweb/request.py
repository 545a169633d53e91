"""What a client of PxWebApi version 2 asks for, from an address or from a body, and how that is described."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, get_args

from fastapi import Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from sfumato.serve.context import ServerContext
from sfumato.serve.core.access import Settings
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.http import responses
from sfumato.serve.core.model import Selection, ServedTable
from sfumato.serve.core.selection import axis_of, default, select
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.formats.layout import PARAMETERS, Options
from sfumato.serve.pxweb.schemas import OutputValues, VariablesSelection

DEFAULT_FORMAT = next(iter(FORMATS))
_SELECTING = ("valuecodes", "codelist", "outputvalues")
_INDEXED = re.compile(rf"({'|'.join(_SELECTING)})\[(.*)\]", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class DataRequest:
    """A question about a table, as it was written."""

    codes: dict[str, list[str]] = field(default_factory=dict)
    codelists: dict[str, str] = field(default_factory=dict)
    single: tuple[str, ...] = ()
    """Dimensions in which groups of a code list stand for the single codes in them."""
    format: str = DEFAULT_FORMAT
    parameters: list[str] = field(default_factory=list)
    heading: tuple[str, ...] | None = None
    stub: tuple[str, ...] | None = None

    @classmethod
    def read(cls, query: Iterable[tuple[str, str]]) -> "DataRequest":
        """Read the query of an address; names do not mind the case. What selects nothing that is known is refused."""
        codes: dict[str, list[str]] = {}
        codelists: dict[str, str] = {}
        outputs: dict[str, str] = {}
        words: dict[str, list[str]] = {}
        for name, text in query:
            indexed = _INDEXED.fullmatch(name)
            if indexed is None:
                if "[" in name or name.lower() in _SELECTING:
                    raise RefusedError(
                        "query", expected="valueCodes[name]=… or codelist[name]=…", found=name, do="correct it"
                    )
                words[name.lower()] = [*words.get(name.lower(), []), text]
            elif indexed[1].lower() == "valuecodes":
                codes.setdefault(indexed[2], []).extend(split(text))
            elif indexed[1].lower() == "codelist":
                codelists[indexed[2]] = text
            elif text.lower() in get_args(OutputValues):
                outputs[indexed[2]] = text.lower()
            else:
                raise RefusedError(name, expected="aggregated or single", found=text, do="choose one of them")
        return cls(
            codes=codes,
            codelists=codelists,
            single=_single(outputs, codelists),
            format=format_named(words.get("outputformat", [DEFAULT_FORMAT])[-1]),
            parameters=[word for text in words.get("outputformatparams", []) for word in text.split(",")],
            heading=_names(words.get("heading")),
            stub=_names(words.get("stub")),
        )

    def with_body(self, body: VariablesSelection | None) -> "DataRequest":
        """The same question with the selection of a body."""
        if body is None:
            return self
        self.refuse_selection("the body")
        codes: dict[str, list[str]] = {}
        codelists = {one.variableCode: one.codelist for one in body.selection if one.codelist}
        for one in body.selection:
            if one.valueCodes or not one.codelist:
                codes.setdefault(one.variableCode, []).extend(one.valueCodes)
        placed = body.placement
        return DataRequest(
            codes=codes,
            codelists=codelists,
            single=_single({one.variableCode: one.outputValues or "" for one in body.selection}, codelists),
            format=self.format,
            parameters=self.parameters,
            heading=self.heading if placed is None or placed.heading is None else tuple(placed.heading),
            stub=self.stub if placed is None or placed.stub is None else tuple(placed.stub),
        )

    def refuse_selection(self, place: str) -> None:
        """Refuse to select in an address what is selected in another place."""
        for name in (*self.codes, *self.codelists):
            raise RefusedError(
                "query", expected=f"the selection of {place}", found=f"one of {name} too", do="choose one"
            )

    @property
    def selects(self) -> bool:
        """Whether anything is selected."""
        return bool(self.codes or self.codelists)

    def selection(self, table: ServedTable) -> Selection:
        """The selection that is meant; the default one where nothing is selected."""
        if not self.selects:
            return default(table)
        for name in self.codes:
            axis_of(table, name)  # refuses what is unknown, also where it has no codes
        # Not naming codes and naming none are the same wish: leave the dimension out.
        asked = {name: codes for name, codes in self.codes.items() if codes}
        return select(table, asked, codelists=self.codelists, single=self.single)

    def options(self, settings: Settings) -> Options:
        """How the answer is to be written."""
        return Options.read(
            self.parameters,
            heading=self.heading,
            stub=self.stub,
            source=settings.source,
            license=settings.license,
            url=settings.url,
        )


def _single(outputs: Mapping[str, str], codelists: Mapping[str, str]) -> tuple[str, ...]:
    """The dimensions whose single codes are wanted; where no code list is named there is nothing to tell apart."""
    listed = {name.lower() for name in codelists}
    return tuple(name for name, output in outputs.items() if output == "single" and name.lower() in listed)


def split(text: str) -> list[str]:
    """Codes and expressions between commas; a comma inside parentheses or brackets belongs to its expression.

    >>> split("A,range(B,D),[0,5)")
    ['A', 'range(B,D)', '[0,5)']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def format_named(name: str) -> str:
    """The name of a format, in the case that it has."""
    if name.lower() not in FORMATS:
        raise RefusedError("outputFormat", expected=f"one of {', '.join(FORMATS)}", found=name, do="choose one of them")
    return name.lower()


def _names(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    if texts is None:
        return None
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


Id = Annotated[str, Path(description="identifier", max_length=400)]
UNLIMITED = 1_000_000
"""How many calls clients are told that they may make where there is no limit: the interface has no way to say so."""


async def spoken_language(
    lang: Annotated[str, Query(description=f"language; answers are in {LANGUAGE}, whichever is asked for")] = LANGUAGE,
) -> None:
    """Take any language: the shipped configuration of PxWeb 2 asks for one more than a server may speak."""


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
        parameter("outputValues", "outputValues[name]=single: the codes in the groups that are meant", named, **deep),
    ]
    return [
        *(selection if selecting else []),
        parameter("outputFormat", "the format", {"type": "string", "enum": list(FORMATS), "default": DEFAULT_FORMAT}),
        parameter("outputFormatParams", "how it is written, between commas", some, **listed),
        parameter("heading", "dimensions that go into columns, between commas", text),
        parameter("stub", "dimensions that go into rows, between commas", text),
    ]


# The body of a question: read at once, or where it is long in a thread, in turn with other clients.

LONG = 50_000
"""Bytes of a body that is read at once; a longer one waits for a thread."""
T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
_JSON = re.compile(r"application/(?:[^;,\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_MARK = b"\xef\xbb\xbf"
"""Some programs write it before a text in UTF-8."""


async def understood(context: ServerContext, request: Request, understand: Callable[[bytes], T]) -> T:
    """What a body means; nobody else waits while a long one is read."""
    body = (await request.body()).removeprefix(_MARK)
    if len(body) <= LONG:
        return understand(body)
    return await context.worker_queue.download(lambda: understand(body), client=context.client(request.scope))


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


def openapi_body(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
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
