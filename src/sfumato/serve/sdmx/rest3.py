"""SDMX REST as version 3.0 of the standard has it: other paths, filters of dimensions, and what is available."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import contains, eq, ne
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sfumato.serve.context import ServerContext
from sfumato.serve.core.errors import RefusedError, not_found
from sfumato.serve.sdmx.flow import VERSION, Component, Flow
from sfumato.serve.sdmx.formats import WRITERS_3
from sfumato.serve.sdmx.query import DataQuery, Detail, Places, days, places_of_key
from sfumato.serve.sdmx.routes import (
    BASE_3,
    Sdmx,
    data_responses,
    parameter,
    path_parameters,
    refuse_left_out,
    structure_parameters,
    structure_responses,
)

KINDS = {"*": "structure", "hierarchy": "hierarchicalcodelist", "hierarchyassociation": "hierarchicalcodelist"}
"""What this version calls otherwise than the one before."""
CONTEXTS = ("dataflow", "datastructure", "*")
VERSIONS = ("+", "*", "~", "latest", VERSION, f"{VERSION}.0", f"{VERSION}+")
PARAMETERS = (
    *("firstNObservations", "lastNObservations", "dimensionAtObservation"),
    *("attributes", "measures", "format"),
)
_PARTS = ("context", "agency", "id", "version", "key", "component")
_STRUCTURE_PARTS = ("kind", "agency", "id", "version")
_TEXT = {"type": "string"}
_OF_CODES: Mapping[str, Callable[[str, str], bool]] = {
    "eq": eq,
    "ne": ne,
    "co": contains,
    "nc": lambda code, text: text not in code,
    "sw": str.startswith,
    "ew": str.endswith,
}
_OF_PERIODS: Mapping[str, Callable[[str, str], bool]] = {
    "eq": eq,
    "ne": ne,
    "lt": lambda code, text: days("c", code)[0] < days("c", text)[0],
    "le": lambda code, text: days("c", code)[1] <= days("c", text)[1],
    "gt": lambda code, text: days("c", code)[1] > days("c", text)[1],
    "ge": lambda code, text: days("c", code)[0] >= days("c", text)[0],
}
_NEGATIVE = ("ne", "nc")
"""Of several values none may be: of others one is enough."""


def router(context: ServerContext) -> APIRouter:
    """The routes of this version, over the same answers."""
    api, sdmx = APIRouter(tags=["SDMX REST 3.0"]), Sdmx.of(context)
    some = min((table.id for table in context.catalogue), default="")
    examples = {
        "context": "dataflow",
        "agency": sdmx.agency,
        "id": some,
        "version": "+",
        "key": "*",
        "kind": "dataflow",
    }
    described = {
        "/data": (_PARTS[:-1], _data(sdmx), _data_parameters(), data_responses(WRITERS_3)),
        "/availability": (_PARTS, _availability(sdmx), [_filters()], structure_responses()),
        "/structure": (_STRUCTURE_PARTS, _structure(sdmx), structure_parameters(), structure_responses()),
    }
    for path, (names, answer, parameters, responses) in described.items():
        least = 1 if path == "/structure" else len(_PARTS[:3])
        for length in range(least, len(names) + 1):
            parts = names[:length]
            api.add_api_route(
                path + "".join(f"/{{{part}}}" for part in parts),
                answer,
                responses=responses,
                openapi_extra={"parameters": path_parameters(parts, examples) + parameters},
            )
    for path in ("/schema/{rest:path}", "/metadata/{rest:path}", "/structure/{kind}/{agency}/{id}/{version}/{items}"):
        api.add_api_route(path, refuse_left_out, include_in_schema=False)
    return api


def _filters() -> dict[str, Any]:
    words = "c[DIMENSION]=code,code or an operator: ne:A, sw:01; of TIME_PERIOD ge:2025-Q1+le:2025-Q4"
    named = {"type": "object", "additionalProperties": _TEXT}
    return parameter("c", "query", words, named) | {"style": "deepObject", "explode": True}


def _data_parameters() -> list[dict[str, Any]]:
    number = {"type": "integer", "minimum": 1}
    return [
        _filters(),
        parameter("firstNObservations", "query", "so many periods of every series from its beginning", number),
        parameter("lastNObservations", "query", "so many periods of every series from its end", number),
        parameter("dimensionAtObservation", "query", "a dimension, or AllDimensions", _TEXT),
        parameter("attributes", "query", "all or none", {"type": "string", "enum": ["all", "dsd", "msd", "none"]}),
        parameter("measures", "query", "all or none", {"type": "string", "enum": ["all", "none"]}),
        parameter("format", "query", "the format, instead of the header Accept", _TEXT),
    ]


def _data(sdmx: Sdmx) -> Callable[[Request], Any]:
    async def data(request: Request) -> Response:
        """Figures of a table, as XML, JSON or CSV."""
        filters, words = _read(request.query_params.multi_items(), PARAMETERS)
        flow = _flow(sdmx, request.path_params)
        return await sdmx.answer_data(
            request, flow, lambda: _query(flow, request.path_params, filters, words), words, BASE_3
        )

    return data


def _availability(sdmx: Sdmx) -> Callable[[Request], Any]:
    async def availability(request: Request) -> Response:
        """The codes of a table for which there are figures, within a key."""
        filters, _ = _read(request.query_params.multi_items(), ("mode", "references"))
        flow = _flow(sdmx, request.path_params)
        return await sdmx.answer_availability(
            request,
            flow,
            lambda: _query(flow, request.path_params, filters, {}),
            request.path_params.get("component", "*"),
            BASE_3,
        )

    return availability


def _structure(sdmx: Sdmx) -> Callable[[Request], Any]:
    async def structure(request: Request) -> Response:
        """What there is: dataflows, data structures, code lists, hierarchies and concepts, as XML."""
        asked = {name: text.replace(",", "+") for name, text in request.path_params.items()}
        asked = {name: "all" if text == "*" else text for name, text in asked.items()}
        version = request.path_params.get("version", "+")
        asked["kind"] = KINDS.get(request.path_params["kind"].lower(), request.path_params["kind"])
        if "version" in asked:
            asked["version"] = "latest" if version in VERSIONS else version
        return await sdmx.answer_structure(request, asked, BASE_3)

    return structure


def _read(query: Iterable[tuple[str, str]], known: Sequence[str]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The filters of components, by the identifier of each, and the other parameters by their names."""
    filters, words = [], {}
    names = {name.lower(): name for name in known}
    for written, text in query:
        if written.startswith("c[") and written.endswith("]"):
            filters.append((written[2:-1], text))
        elif written.lower() in ("updatedafter", "includehistory", "asof", "reportingyearstartday"):
            raise RefusedError(
                written, expected="a query of what is published now", found=text, do="leave it out", status=501
            )
        elif written.lower() not in names or names[written.lower()] in words:
            raise RefusedError(
                "the query",
                expected=f"c[DIMENSION], or parameters of {', '.join(known)}, each once",
                found=written,
                do="leave it out",
            )
        else:
            words[names[written.lower()]] = text
    return filters, words


def _flow(sdmx: Sdmx, path: Mapping[str, str]) -> Flow:
    """The dataflow of a path, which names it or its data structure."""
    context, agency, id, version = (path.get(part, "*") for part in _PARTS[:4])  # noqa: A001
    if context not in CONTEXTS:
        raise RefusedError("context", expected=f"one of {', '.join(CONTEXTS)}", found=context, do="choose one of them")
    if id == "*" or "," in id:
        raise RefusedError("SDMX", expected="data of one dataflow", found=id, do="ask for one at a time", status=501)
    if agency not in ("*", sdmx.agency) or version not in VERSIONS:
        found = f"{agency}/{id}/{version}"
        raise not_found("dataflow", found, f"the agency is {sdmx.agency}, the version {VERSION}")
    return sdmx.flow(id.removeprefix("DSD_") if context != "dataflow" else id)


def _query(
    flow: Flow, path: Mapping[str, str], filters: Iterable[tuple[str, str]], words: Mapping[str, str]
) -> DataQuery:
    """The key of a path with the filters and parameters of an address."""
    places = _keys(flow, path.get("key", "*"))
    for name, text in filters:
        component = next((one for one in flow.components if one.id.lower() == name.lower()), None)
        if component is None:
            raise RefusedError(
                f"c[{name}]",
                expected=f"a dimension: {', '.join(one.id for one in flow.components)}",
                found=name,
                do="choose one of them; attributes and figures cannot be filtered",
                status=501 if name.isupper() else 400,
            )
        chosen = _filtered(component, text)
        kept = tuple(place for place in places[component] if place in chosen)
        if not kept:
            raise RefusedError(
                f"c[{name}]", expected="some of the codes that the key has", found=text, do="ask for others", status=404
            )
        places[component] = kept
    return DataQuery.of(flow, places, {**words, "detail": _detail(words)})


def _detail(words: Mapping[str, str]) -> Detail:
    """What the answer has, from whether attributes and measures are wanted."""
    attributes, measures = words.get("attributes", "all").lower(), words.get("measures", "all").lower()
    if attributes not in ("all", "dsd", "msd", "none") or measures not in ("all", "none"):
        raise RefusedError(
            "attributes, measures", expected="all or none", found=f"{attributes}, {measures}", do="choose one of them"
        )
    bare = attributes in ("none", "msd")
    if measures == "none":
        return "serieskeysonly" if bare else "nodata"
    return "dataonly" if bare else "full"


def _keys(flow: Flow, key: str) -> dict[Component, Places]:
    """The places of one or several keys; several have to make a box, which they do if they differ in one dimension."""
    every = {component: tuple(range(len(component.codes))) for component in flow.components}
    if key in ("", "*", "all"):
        return every
    boxes = []
    for one in key.split(","):
        parts = ".".join("" if part == "*" else part for part in one.split("."))
        boxes.append(every | dict(zip(flow.key, places_of_key(flow, parts), strict=True)))
    first = boxes[0]
    differ = [component for component in flow.key if any(box[component] != first[component] for box in boxes)]
    if len(differ) > 1:
        raise RefusedError(
            "key",
            expected="keys that differ in one dimension",
            found=f"keys that differ in {', '.join(component.id for component in differ)}",
            do="ask for each of them, or with c[DIMENSION]=",
            status=501,
        )
    return first | {one: tuple(sorted({place for box in boxes for place in box[one]})) for one in differ}


def _filtered(component: Component, text: str) -> set[int]:
    """The places of the codes that fit all conditions of a filter."""
    operators = _OF_PERIODS if component.is_time else _OF_CODES
    found = set(range(len(component.codes)))
    conditions = text.replace("+", " ").split()
    if not conditions:
        raise _no_codes(component, operators, "nothing")
    for condition in conditions:
        word, colon, values = condition.partition(":")
        operator, listed = (word, values) if colon and word in operators else ("eq", condition)
        fits, several = operators[operator], all if operator in _NEGATIVE else any
        asked = listed.split(",")
        if operator in ("eq", "ne"):
            names = [component.codes[component.places[one]] if one in component.places else one for one in asked]
            unknown = next((one for one in names if one not in component.places), None)
            if unknown is not None:  # what is misspelt is not ignored: not to have a code is a wish like another
                raise _no_codes(component, operators, unknown)
            asked = names
        found &= {place for place, code in enumerate(component.codes) if several(fits(code, value) for value in asked)}
    return found


def _no_codes(component: Component, operators: Iterable[str], found: str) -> RefusedError:
    return RefusedError(
        f"c[{component.id}]",
        expected=f"codes such as {', '.join(component.codes[:5])}, or {', '.join(operators)} before :",
        found=found,
        do="correct it",
    )
