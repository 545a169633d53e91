"""The routes of SDMX REST 2.1, structure queries, and how the OpenAPI document describes them."""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from sfumato.serve.context import Answered, Rendered, ServerContext, is_quick
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.errors import RefusedError, not_found
from sfumato.serve.core.http import responses
from sfumato.serve.core.stream import MOST
from sfumato.serve.sdmx.availability import write_availability
from sfumato.serve.sdmx.flow import (
    ALL_DIMENSIONS,
    KINDS,
    REFERENCES,
    VERSION,
    Artefact,
    Artefacts,
    Flow,
    checked_agency,
)
from sfumato.serve.sdmx.formats import CSV, STRUCTURE, STRUCTURE_3, WRITERS, WRITERS_3, DataFormat, negotiate
from sfumato.serve.sdmx.query import OF_TIME, PARAMETERS, DataQuery, Detail, read_words
from sfumato.serve.sdmx.series import Parts, SeriesData, count, in_parts
from sfumato.serve.sdmx.xml import Office, Shown, write_structures
from sfumato.serve.sdmx.xml3 import structures_3

DETAILS: Mapping[str, tuple[Shown, Shown]] = {
    "full": ("full", "full"),
    "allstubs": ("stub", "stub"),
    "referencestubs": ("full", "stub"),
    "allcompletestubs": ("complete", "complete"),
    "referencecompletestubs": ("full", "complete"),
    "referencepartial": ("full", "full"),
}
"""How much is shown of what is asked for, and of what comes along: code lists have no more codes than their table."""
LATER = frozenset(
    [
        "attachmentconstraint",
        "actualconstraint",
        "allowedconstraint",
        "contentconstraint",
        "categorisation",
        "categoryscheme",
        "customtypescheme",
        "dataconsumerscheme",
        "dataproviderscheme",
        "metadata",
        "metadataflow",
        "metadatastructure",
        "namepersonalisationscheme",
        "organisationscheme",
        "organisationunitscheme",
        "process",
        "provisionagreement",
        "reportingtaxonomy",
        "rulesetscheme",
        "schema",
        "structureset",
        "transformationscheme",
        "userdefinedoperatorscheme",
        "vtlmappingscheme",
    ]
)
"""What the standard has and this server does not."""
PARTS = ("kind", "agency", "id", "version")
"""The parts of a path, of which the last ones may be left out."""


@dataclass(frozen=True, kw_only=True)
class StructureQuery:
    """What is asked for."""

    asked: frozenset[Artefact]
    every: tuple[Artefact, ...]
    """With those that come along."""
    shown: tuple[Shown, Shown]

    @classmethod
    def read(cls, artefacts: Artefacts, path: Mapping[str, str], words: Mapping[str, str]) -> "StructureQuery":
        """Read the parts of a path and the parameters of an address."""
        kind = path["kind"].lower()
        if kind in LATER:
            raise RefusedError(
                "SDMX", expected=f"one of {', '.join(KINDS)}, data", found=kind, do="ask for one of them", status=501
            )
        if kind not in (*KINDS, "structure"):
            raise not_found("kind of structure", kind, f"ask for one of {', '.join(KINDS)}")
        detail = words.get("detail", "full").lower()
        if detail not in DETAILS:
            raise RefusedError("detail", expected=f"one of {', '.join(DETAILS)}", found=detail, do="choose one of them")
        id, version = path.get("id", "all"), path.get("version", "latest")  # noqa: A001 — the standard has this word
        if id == "latest" and "version" not in path:  # the identifier is left out, and the version is not: pandaSDMX
            id = "all"  # noqa: A001
        asked = artefacts.find(kind, agency=path.get("agency", "all"), id=id, version=version)
        every = artefacts.with_references(asked, words.get("references", "none").lower())
        if not asked:
            raise not_found(kind, "/".join(path.values()), f"`{kind}/all/all` lists what there is")
        return cls(asked=frozenset(asked), every=tuple(every), shown=DETAILS[detail])

    def shown_of(self, artefact: Artefact) -> Shown:
        """How much of a structure is shown."""
        itself, along = self.shown
        return itself if artefact in self.asked else along


_TEXT = {"type": "string"}
_NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "flow": ("a dataflow: ID, AGENCY,ID or AGENCY,ID,VERSION", _TEXT),
    "key": ("codes in the order of the dimensions, dots between them, + between codes of one; nothing is all", _TEXT),
    "component": ("a dimension, or all", _TEXT),
    "context": (
        "what is named: the dataflow or its data structure",
        {"type": "string", "enum": ["dataflow", "datastructure", "*"]},
    ),
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
        parameter(name, "path", *_NAMED[name], required=True) | {"example": examples.get(name, "all")} for name in names
    ]


def data_parameters() -> list[dict[str, Any]]:
    """The parameters of a data query."""
    detail = {"type": "string", "enum": list(get_args(Detail)), "default": "full"}
    written = {"type": "string", "enum": [data_format.name for data_format in WRITERS]}
    return [
        *(parameter(name, "query", *_NAMED[name]) for name in (*OF_TIME, "dimensionAtObservation")),
        parameter("detail", "query", "figures, attributes, or only which series there are", detail),
        parameter("format", "query", "the format, instead of the header Accept", written),
    ]


def structure_parameters() -> list[dict[str, Any]]:
    """The parameters of a structure query."""
    detail = {"type": "string", "enum": list(DETAILS), "default": "full"}
    return [
        parameter("references", "query", *_NAMED["references"]),
        parameter("detail", "query", "everything, or only what there is", detail),
    ]


def data_responses(formats: Iterable[DataFormat] = tuple(WRITERS)) -> dict[int | str, dict[str, Any]]:
    """What a data query is answered with."""
    return _responses("The data, in the format that was asked for", formats, 400, 404, 406, 413, 501)


def structure_responses() -> dict[int | str, dict[str, Any]]:
    """What a structure query is answered with."""
    return _responses("The structures", [STRUCTURE], 400, 404, 406, 501)


def _responses(said: str, formats: Iterable[DataFormat], *statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {
        media_type: {"schema": {"type": "object"} if "json" in media_type else _TEXT}
        for data_format in formats
        for media_type in data_format.media_types
    }
    return {200: {"description": said, "content": content}} | responses(*statuses)


def parameter(
    name: str, place: str, description: str, schema: dict[str, Any], *, required: bool = False
) -> dict[str, Any]:
    """A parameter, as the OpenAPI document describes it."""
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}


BASE, BASE_3 = "/sdmx/2.1", "/sdmx/3.0"
"""Where the routes of each version are mounted."""
_AVAILABLE_PARTS = ("flow", "key", "provider", "component")
_DATA_PARTS = ("flow", "key", "provider")
_FLOW_PARTS = 3


def router(context: ServerContext) -> APIRouter:
    """The routes of SDMX, over a catalogue."""
    api = APIRouter(tags=["SDMX REST 2.1"])
    sdmx = Sdmx.of(context)
    some = [table.id for table in context.catalogue]
    examples = {"flow": min(some, default=""), "kind": "dataflow", "version": "latest"}
    # Parts of a path may be left out from its end: the same question under a path for each of them.
    for length in range(1, len(_DATA_PARTS) + 1):
        parts = _DATA_PARTS[:length]
        api.add_api_route(
            "/data" + "".join(f"/{{{part}}}" for part in parts),
            sdmx.data,
            responses=data_responses(),
            openapi_extra={"parameters": path_parameters(parts, examples) + data_parameters()},
        )
    of_time = [parameter(name, "query", *_NAMED[name]) for name in ("startPeriod", "endPeriod")]
    for length in range(1, len(_AVAILABLE_PARTS) + 1):
        parts = _AVAILABLE_PARTS[:length]
        api.add_api_route(
            "/availableconstraint" + "".join(f"/{{{part}}}" for part in parts),
            sdmx.availability,
            responses=structure_responses(),
            openapi_extra={"parameters": path_parameters(parts, examples) + of_time},
        )
    for length in range(1, len(PARTS) + 1):
        parts = PARTS[:length]
        api.add_api_route(
            "".join(f"/{{{part}}}" for part in parts),
            sdmx.structure,
            responses=structure_responses(),
            openapi_extra={"parameters": path_parameters(parts, examples) + structure_parameters()},
        )
    api.add_api_route("/{kind}/{agency}/{id}/{version}/{items}", refuse_left_out, include_in_schema=False)
    return api


async def refuse_left_out(request: Request) -> None:
    """Refuse what the standard has and this server does not, in the way that programs understand."""
    if request.path_params.get("kind") in ("data", "availableconstraint"):
        raise not_found("path", request.url.path, "leave out its last part")
    raise RefusedError(
        "SDMX",
        expected="data, what is available, or whole structures",
        found=request.url.path,
        do="ask for one of them",
        status=501,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Sdmx:
    """The tables of a server as dataflows, and the answers to requests about them."""

    context: ServerContext
    agency: str

    @classmethod
    def of(cls, context: ServerContext) -> "Sdmx":
        """Those of a server, if its agency can be written."""
        return cls(context=context, agency=checked_agency(context.settings.agency))

    @property
    def source(self) -> str:
        """Who publishes, in the words that readers should quote."""
        return self.context.settings.source

    @property
    def artefacts(self) -> Artefacts:
        """All structures, made once of every edition."""
        made = self.context.editions.current.made
        if BASE not in made:
            flows = tuple(Flow(table=table, agency=self.agency) for table in self.context.catalogue)
            made[BASE] = Artefacts(agency=self.agency, flows=flows)
        found: Artefacts = made[BASE]
        return found

    async def data(self, request: Request) -> Response:
        """Figures of a table, as XML, JSON or CSV."""
        words = read_words(request.query_params.multi_items(), PARAMETERS)
        flow = self._flow(request.path_params)
        key = request.path_params.get("key", "all")
        return await self.answer_data(request, flow, lambda: DataQuery.read(flow, key, words), words, BASE)

    async def answer_data(
        self, request: Request, flow: Flow, understand: Callable[[], DataQuery], words: Mapping[str, str], base: str
    ) -> Response:
        """Figures of a table for a question that is understood once the answer is not known already."""
        writers = WRITERS_3 if base == BASE_3 else WRITERS
        accept = request.headers.get("accept")
        data_format, content_type = negotiate(tuple(writers), accept=accept, name=words.get("format"))

        async def make() -> Answered:
            query = understand()
            number = count(flow, query)
            self._refuse_large(number, data_format)
            if data_format in CSV and query.has_observations:
                query = replace(query, at_observation=ALL_DIMENSIONS)  # a row is an observation: there are no series

            def write(parts: Parts) -> Iterator[bytes]:
                return (text.encode("utf-8", "replace") for text in writers[data_format](parts, self.source))

            if number > self.context.settings.most_cells:
                return await self.context.stream(
                    flow.table,
                    query.selection,
                    lambda: write(in_parts(flow, query)),
                    headers={"Content-Type": content_type},
                    key=(content_type, self.source, query.at_observation, query.detail),
                    scope=request.scope,
                )

            def whole() -> bytes:
                return b"".join(write([SeriesData.of(flow, query)]))

            quick = is_quick(flow.table, query.selection, number)
            client, question = (
                self.context.client(request.scope),
                self.context.question(self._key(request, content_type)),
            )
            queue = self.context.worker_queue
            content = whole() if quick else await queue.download(whole, client=client, question=question)
            return Rendered.of(content, media_type=content_type, query=AuditedQuery.of(flow.table, query.selection))

        return await self._answered(request, content_type, make)

    async def availability(self, request: Request) -> Response:
        """The codes of a table for which there are figures, within a key and between two periods."""
        words = read_words(request.query_params.multi_items(), ("startPeriod", "endPeriod", "mode", "references"))
        flow = self._flow(request.path_params)
        key, component = (request.path_params.get(part, "all") for part in ("key", "component"))
        understand = lambda: DataQuery.read(flow, key, words)  # noqa: E731
        return await self.answer_availability(request, flow, understand, component, BASE)

    async def answer_availability(
        self, request: Request, flow: Flow, understand: Callable[[], DataQuery], component: str, base: str
    ) -> Response:
        """What there is within a question, as XML: every combination of codes has a figure or its mark."""
        content_type, written = self._structures(request, base)

        def write() -> bytes:
            query = understand()
            asked = (*query.selection.places, query.selection.metrics)
            shown = [one for one in flow.components if component in ("all", "*") or one.id in component.split("+")]
            if not shown:
                known = ", ".join(one.id for one in flow.components)
                raise RefusedError("component", expected=f"some of {known}", found=component, do="choose one of them")
            places = {one: asked[one.axis] or () for one in shown}
            return written(
                write_availability(
                    flow, places, self._office(base), observations=query.selection.cells, prepared=flow.table.updated
                )
            )

        return await self._made(request, content_type, write)

    async def structure(self, request: Request) -> Response:
        """What there is: dataflows, data structures, code lists and concepts, as XML."""
        return await self.answer_structure(request, request.path_params, BASE)

    async def answer_structure(self, request: Request, path: Mapping[str, str], base: str) -> Response:
        """What there is of the parts of a path."""
        words = read_words(request.query_params.multi_items(), ("references", "detail"))
        content_type, written = self._structures(request, base)

        def write() -> bytes:
            query = StructureQuery.read(self.artefacts, path, words)
            changed = [table.updated for table in self.context.catalogue]
            prepared = max(changed, default=datetime.fromtimestamp(0, UTC))
            message = write_structures(query.every, shown=query.shown_of, office=self._office(base), prepared=prepared)
            return written(message)

        return await self._made(request, content_type, write)

    def _structures(self, request: Request, base: str) -> tuple[str, Callable[[bytes], bytes]]:
        """The content type of structures that a client wants, and what a message of version 2.1 becomes in it."""
        formats = (STRUCTURE_3, STRUCTURE) if base == BASE_3 else (STRUCTURE,)
        data_format, content_type = negotiate(formats, accept=request.headers.get("accept"), name=None)
        return content_type, structures_3 if data_format == STRUCTURE_3 else bytes

    def _office(self, base: str) -> Office:
        return Office(agency=self.agency, name=self.source, address=f"{self.context.settings.url}{base}")

    async def _made(self, request: Request, content_type: str, write: Callable[[], bytes]) -> Response:
        async def make() -> Rendered:
            client = self.context.client(request.scope)
            question = self.context.question(self._key(request, content_type))
            content = await self.context.worker_queue.page(write, client=client, question=question)
            return Rendered.of(content, media_type=content_type)

        return await self._answered(request, content_type, make)

    async def _answered(self, request: Request, content_type: str, make: Callable[[], Awaitable[Answered]]) -> Response:
        """The answer to a request, from the cache if the same was asked for before."""
        key = self._key(request, content_type)
        kept: Answered | None = self.context.cache.get(key)
        if kept is None:
            made = await make()
            kept = replace(made, headers={**made.headers, "Vary": "Accept"})
            self.context.keep(key, kept, len(request.scope["path"]) + len(request.scope["query_string"]))
        return kept.respond(request)

    @staticmethod
    def _key(request: Request, content_type: str) -> Hashable:
        return (BASE, request.scope["path"], request.scope["query_string"], content_type)

    def _flow(self, path: dict[str, str]) -> Flow:
        """The dataflow of a path, which may name its agency and version too."""
        *before, last = parts = path["flow"].split(",")
        agency, id, version = (*parts, "latest")[:3] if before else ("all", last, "latest")  # noqa: A001
        known = agency in ("all", self.agency) and version in ("all", "latest", VERSION) and len(parts) <= _FLOW_PARTS
        provider = path.get("provider", "all").split(",")[-1]
        if not known or provider not in ("all", self.agency):
            found = path["flow"] if not known else path["provider"]
            raise not_found("dataflow", found, f"the agency and the provider are {self.agency}, the version {VERSION}")
        return self.flow(id)

    def flow(self, id: str) -> Flow:  # noqa: A002 — the standard has this word
        """The dataflow of a table."""
        name = self.context.catalogue[id].id
        found = next((flow for flow in self.artefacts.flows if flow.id == name), None)
        if found is None:  # two tables that are compared
            raise not_found("dataflow", id, "ask for both tables, each by its own name")
        return found

    def _refuse_large(self, number: int, data_format: DataFormat) -> None:
        most = self.context.settings.most_cells
        most = max(most, MOST) if data_format.in_parts else most
        if number > most:
            raise RefusedError(
                "data query",
                expected=f"at most {most:,} observations",
                found=f"{number:,}",
                do="choose codes in the key, or a shorter time, and ask in several parts"
                + ("" if data_format.in_parts else "; XML and CSV may be larger"),
                status=413,
            )
