"""Whether the server answers at all: an address that does nothing, for those who watch it and those who measure it."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from sfumato.serve.served import Served

HEALTH = "/health"


class Health(BaseModel):
    """That the server answers."""

    status: str = Field(description="always ok: a server that is not does not answer")


def router(_served: Served) -> APIRouter:
    """The one route."""
    api = APIRouter(tags=["Server"])

    @api.get(HEALTH, response_model=Health)
    async def health() -> Health:
        """That the server answers."""
        return Health(status="ok")

    return api
