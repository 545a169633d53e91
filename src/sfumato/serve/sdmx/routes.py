"""The routes of SDMX REST 2.1."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from fastapi import APIRouter, Request
from starlette.responses import Response

from sfumato.serve.audit_asked import noted
from sfumato.serve.errors import RefusedError, not_found
from sfumato.serve.sdmx.arranged import Arranged, count
from sfumato.serve.sdmx.artefacts import Artefacts
from sfumato.serve.sdmx.documented import (
    data_parameters,
    data_responses,
    path_parameters,
    structure_parameters,
    structure_responses,
)
from sfumato.serve.sdmx.flow import ALL_DIMENSIONS, VERSION, Flow
from sfumato.serve.sdmx.formats import CSV, STRUCTURE, WRITERS
from sfumato.serve.sdmx.ids import checked_agency
from sfumato.serve.sdmx.negotiation import negotiated
from sfumato.serve.sdmx.query import PARAMETERS, DataQuery, read_words
from sfumato.serve.sdmx.structure_query import PARTS, StructureQuery
from sfumato.serve.sdmx.xml_structure import Office, write_structures
from sfumato.serve.served import Rendered, Served, is_quick, rendered

BASE = "/sdmx/2.1"
"""Where the routes are mounted."""
_DATA_PARTS = ("flow", "key", "provider")
_FLOW_PARTS = 3


def router(served: Served) -> APIRouter:
    """The routes of SDMX, over a catalogue."""
    api = APIRouter(tags=["SDMX REST 2.1"])
    sdmx = Sdmx(served=served, agency=checked_agency(served.settings.agency))
    some = [table.id for table in served.catalogue]
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
    for length in range(1, len(PARTS) + 1):
        parts = PARTS[:length]
        api.add_api_route(
            "".join(f"/{{{part}}}" for part in parts),
            sdmx.structure,
            responses=structure_responses(),
            openapi_extra={
                "parameters": path_parameters(parts, examples) + structure_parameters()
            },
        )
    return api


@dataclass(frozen=True, kw_only=True, eq=False)
class Sdmx:
    """The tables of a server as dataflows, and the answers to requests about them."""

    served: Served
    agency: str

    @cached_property
    def artefacts(self) -> Artefacts:
        """All structures."""
        flows = tuple(Flow(table=table, agency=self.agency) for table in self.served.catalogue)
        return Artefacts(agency=self.agency, flows=flows)

    @cached_property
    def flows(self) -> dict[str, Flow]:
        """The dataflows, by their identifiers."""
        return {flow.id: flow for flow in self.artefacts.flows}

    async def data(self, request: Request) -> Response:
        """Figures of a table, as XML, JSON or CSV."""
        words = read_words(request.query_params.multi_items(), PARAMETERS)
        accept = request.headers.get("accept")
        offer, content_type = negotiated(tuple(WRITERS), accept=accept, name=words.get("format"))
        flow = self._flow(request.path_params)

        async def make() -> Rendered:
            query = DataQuery.read(flow, request.path_params.get("key", "all"), words)
            number = count(flow, query)
            self._refuse_large(number)
            if offer in CSV and query.has_observations:
                query = replace(query, at_observation=ALL_DIMENSIONS)  # a row is an observation: there are no series

            def write() -> bytes:
                return WRITERS[offer](Arranged.of(flow, query), self.served.settings.source)

            quick = is_quick(flow.table, query.selection, number)
            client = self.served.client(request.scope)
            content = write() if quick else await self.served.turns.download(write, client=client)
            return rendered(content, media_type=content_type, noted=noted(flow.table, query.selection))

        return await self._answered(request, content_type, make)

    async def structure(self, request: Request) -> Response:
        """What there is: dataflows, data structures, code lists and concepts, as XML."""
        words = read_words(request.query_params.multi_items(), ("references", "detail"))
        _, content_type = negotiated([STRUCTURE], accept=request.headers.get("accept"), name=None)

        def write() -> bytes:
            query = StructureQuery.read(self.artefacts, request.path_params, words)
            settings = self.served.settings
            office = Office(agency=self.agency, name=settings.source, address=f"{settings.url}{BASE}")
            changed = [table.updated for table in self.served.catalogue]
            prepared = max(changed, default=datetime.fromtimestamp(0, UTC))
            return write_structures(query.every, shown=query.shown_of, office=office, prepared=prepared)

        async def make() -> Rendered:
            client = self.served.client(request.scope)
            return rendered(await self.served.turns.page(write, client=client), media_type=content_type)

        return await self._answered(request, content_type, make)

    async def _answered(self, request: Request, content_type: str, make: Callable[[], Awaitable[Rendered]]) -> Response:
        """The answer to a request, from the cache if the same was asked for before."""
        path, query = request.scope["path"], request.scope["query_string"]
        key = (BASE, path, query, content_type)
        kept = self.served.cache.get(key)
        if kept is None:
            made = await make()
            kept = replace(made, headers={**made.headers, "Vary": "Accept"})
            self.served.keep(key, kept, len(path) + len(query))
        return kept.respond(request)

    def _flow(self, path: dict[str, str]) -> Flow:
        """The dataflow of a path, which may name its agency and version too."""
        *before, last = parts = path["flow"].split(",")
        agency, id, version = (*parts, "latest")[:3] if before else ("all", last, "latest")  # noqa: A001
        known = agency in ("all", self.agency) and version in ("all", "latest", VERSION) and len(parts) <= _FLOW_PARTS
        provider = path.get("provider", "all").split(",")[-1]
        if not known or provider not in ("all", self.agency):
            found = path["flow"] if not known else path["provider"]
            raise not_found("dataflow", found, f"the agency and the provider are {self.agency}, the version {VERSION}")
        return self.flows[self.served.catalogue[id].id]

    def _refuse_large(self, number: int) -> None:
        most = self.served.settings.most_cells
        if number > most:
            raise RefusedError(
                "data query",
                expected=f"at most {most:,} observations",
                found=f"{number:,}",
                do="choose codes in the key, or a shorter time, and ask in several parts",
                status=413,
            )
