"""How the routes of SDMX are described in the OpenAPI document."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from sfumato.serve.problems import responses
from sfumato.serve.sdmx.artefacts import KINDS, REFERENCES
from sfumato.serve.sdmx.formats import STRUCTURE, WRITERS
from sfumato.serve.sdmx.negotiation import Offer
from sfumato.serve.sdmx.query import OF_TIME, Detail
from sfumato.serve.sdmx.structure_query import DETAILS

_TEXT = {"type": "string"}
_NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "flow": ("a dataflow: ID, AGENCY,ID or AGENCY,ID,VERSION", _TEXT),
    "key": ("codes in the order of the dimensions, dots between them, + between codes of one; nothing is all", _TEXT),
    "provider": ("who provides the data: all, or the agency", _TEXT),
    "kind": ("what to describe", {"type": "string", "enum": ["structure", *KINDS]}),
    "agency": ("who maintains it, or all", _TEXT),
    "id": ("its identifier, or all", _TEXT),
    "version": ("its version, latest or all", _TEXT),
    "startPeriod": ("no observation that begins before this period, such as 2025 or 2025-Q1", _TEXT),
    "endPeriod": ("no observation that ends after this period", _TEXT),
    "firstNObservations": (
        "so many periods of every series from its beginning, where there is time",
        {"type": "integer", "minimum": 1},
    ),
    "lastNObservations": (
        "so many periods of every series from its end, where there is time",
        {"type": "integer", "minimum": 1},
    ),
    "dimensionAtObservation": (
        "the dimension that tells the observations of a series apart; AllDimensions for no series",
        _TEXT,
    ),
    "references": ("which related structures come along", {"type": "string", "enum": list(REFERENCES)}),
}


def path_parameters(names: Iterable[str], examples: Mapping[str, str]) -> list[dict[str, Any]]:
    """The parts of a path, with an example of each."""
    return [
        _parameter(name, "path", *_NAMED[name], required=True) | {"example": examples.get(name, "all")}
        for name in names
    ]


def data_parameters() -> list[dict[str, Any]]:
    """The parameters of a data query."""
    detail = {"type": "string", "enum": list(get_args(Detail)), "default": "full"}
    written = {"type": "string", "enum": [offer.name for offer in WRITERS]}
    return [
        *(_parameter(name, "query", *_NAMED[name]) for name in (*OF_TIME, "dimensionAtObservation")),
        _parameter("detail", "query", "figures, attributes, or only which series there are", detail),
        _parameter("format", "query", "the format, instead of the header Accept", written),
    ]


def structure_parameters() -> list[dict[str, Any]]:
    """The parameters of a structure query."""
    detail = {"type": "string", "enum": list(DETAILS), "default": "full"}
    return [
        _parameter("references", "query", *_NAMED["references"]),
        _parameter("detail", "query", "everything, or only what there is", detail),
    ]


def data_responses() -> dict[int | str, dict[str, Any]]:
    """What a data query is answered with."""
    return _responses("The data, in the format that was asked for", WRITERS, 400, 404, 406, 413, 501)


def structure_responses() -> dict[int | str, dict[str, Any]]:
    """What a structure query is answered with."""
    return _responses("The structures", [STRUCTURE], 400, 404, 406, 501)


def _responses(said: str, offers: Iterable[Offer], *statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {
        media_type: {"schema": {"type": "object"} if "json" in media_type else _TEXT}
        for offer in offers
        for media_type in offer.media_types
    }
    return {200: {"description": said, "content": content}} | responses(*statuses)


def _parameter(
    name: str, place: str, description: str, schema: dict[str, Any], *, required: bool = False
) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}
