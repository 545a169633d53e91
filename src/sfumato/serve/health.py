"""Whether the server answers at all: an address that does nothing, for those who watch it and those who measure it."""

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from sfumato.serve.served import Served

HEALTH = "/health"
_CONTENT = b'{"status":"ok"}'  # nothing is worked out: what is left is what every answer costs


class Health(BaseModel):
    """That the server answers."""

    status: str = Field(description="always ok: a server that is not does not answer")


def router(_served: Served) -> APIRouter:
    """The one route."""
    api = APIRouter(tags=["Server"])

    @api.get(HEALTH, response_model=Health)
    async def health() -> Response:
        """That the server answers."""
        return Response(_CONTENT, media_type="application/json")

    return api
