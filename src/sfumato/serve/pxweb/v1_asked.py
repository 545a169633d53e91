"""What a client of PxWebApi version 1 asks for: the body of a question, of which nothing is ignored."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Selection, ServedTable
from sfumato.serve.pxweb.body import first_fault
from sfumato.serve.pxweb.schemas import MOST_DIMENSIONS
from sfumato.serve.selection import select

FORMATS = {
    "json": "json-px",
    "json-stat": "json-stat2",
    "json-stat2": "json-stat2",
    "px": "px",
    "csv": "csv",
    "xlsx": "xlsx",
    "sdmx": "sdmx",
}
"""The formats of this version, each with the one that it is made of."""
SHAPE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "query": {
            "type": "array",
            "maxItems": MOST_DIMENSIONS,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["code", "selection"],
                "properties": {
                    "code": {"type": "string", "description": "name of a variable"},
                    "selection": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "filter": {"type": "string", "description": "item, all, top, agg:… or vs:…"},
                            "values": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
            },
        },
        "response": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"format": {"type": "string", "enum": list(FORMATS)}},
        },
    },
}
"""The same for the OpenAPI document: FastAPI takes a body without a content type, as R sends it, for no body."""
_LISTS = ("agg", "vs")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Chosen(_Part):
    """The codes of a variable: these, all, the latest, or those of a code list."""

    filter: str = "item"
    values: Annotated[tuple[str, ...], Field(fail_fast=True)] = ()


class Variable(_Part):
    """A variable and its codes."""

    code: str
    selection: Chosen


class Written(_Part):
    """How the answer is to be written."""

    format: str = "json"


class Question(_Part):
    """The body of a question."""

    query: Annotated[tuple[Variable, ...], Field(fail_fast=True, max_length=MOST_DIMENSIONS)] = ()
    response: Annotated[Written, Field(default_factory=Written)]

    @classmethod
    def read(cls, body: bytes) -> "Question":
        """Read a body, whatever its content type says."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            first = first_fault(error)
        if first["type"] == "json_invalid":
            raise _wrong("a body that is no JSON")
        place = ".".join(map(str, first["loc"]))
        if not place:
            raise _wrong("JSON that is no object")
        unknown = first["type"] == "extra_forbidden"
        raise _wrong(f"{place}, which is unknown" if unknown else f"{place}: {first['msg']}")

    @property
    def format(self) -> str:
        """The format of the answer, which is one that there is."""
        name = self.response.format
        if name not in FORMATS:
            raise RefusedError(
                "response.format", expected=f"one of {', '.join(FORMATS)}", found=name, do="choose one of them"
            )
        return name

    def selected(self, table: ServedTable) -> Selection:
        """The selection of a table; a variable that is not named is left out, or whole where it cannot be."""
        asked: dict[str, tuple[str, ...]] = {}
        codelists: dict[str, str] = {}
        for one in self.query:
            name = one.code.lower()
            if name in asked:
                raise RefusedError(
                    "query", expected="every variable once", found=one.code, do="put its values together"
                )
            kind, _, listed = one.selection.filter.partition(":")
            if kind.lower() in _LISTS and listed:
                codelists[name] = listed
            asked[name] = _codes(one.selection, kind.lower(), listed)
        for axis in table.dimensions:
            if axis.name.lower() not in asked and not axis.eliminable:
                asked[axis.name] = ("*",)
        return select(table, {name: codes for name, codes in asked.items() if codes}, codelists=codelists)


def _codes(chosen: Chosen, kind: str, listed: str) -> tuple[str, ...]:
    if kind == "top":
        if len(chosen.values) != 1:
            found = ", ".join(chosen.values) or "none"
            raise RefusedError("values of top", expected="one number, as a text", found=found, do="correct it")
        return (f"top({chosen.values[0]})",)
    if kind == "all" and not listed and not chosen.values:
        return ("*",)
    if bool(listed) == (kind in _LISTS) and kind in ("item", "all", *_LISTS):
        return chosen.values
    raise RefusedError("filter", expected="item, all, top, agg:… or vs:…", found=chosen.filter, do="choose one of them")


def _wrong(found: str) -> RefusedError:
    return RefusedError(
        "question",
        expected='{"query": [{"code": …, "selection": {"filter": "item", "values": […]}}], "response": {"format": …}}',
        found=found,
        do="correct the body",
    )
