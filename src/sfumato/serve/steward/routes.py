"""The addresses of the steward: a page, and the same for programs."""

from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from sfumato.errors import SfumatoError
from sfumato.live import FormalLive
from sfumato.methods.registry import KEYED, METHODS
from sfumato.serve.access import require
from sfumato.serve.errors import RefusedError
from sfumato.serve.live.desk import Desk, as_refused
from sfumato.serve.live.page import templates_of
from sfumato.serve.page.writing import HTML
from sfumato.serve.problems import responses
from sfumato.serve.served import Served
from sfumato.serve.steward.accounts import SHOWN, Budgets, Charged, budgets, history
from sfumato.serve.steward.queries import Queries, queries
from sfumato.serve.steward.what_if import WhatIf, chart, what_if
from sfumato.users import Role, User

STEWARD = "/steward"
_DEFAULT = {"method": "smooth-pareto", "alpha": "0.1", "epsilon": "1", "delta": "0.000001", "size": "100"}
Parameter = Annotated[float, Query(gt=0, le=1_000, allow_inf_nan=False)]


def router(served: Served, desk: Desk) -> APIRouter:
    """The routes of the steward."""
    api = APIRouter(prefix=STEWARD, tags=["Steward"])
    template = templates_of(served, "sfumato.serve.steward").get_template("steward.html")
    steward = require(Role.steward)
    defaults = _defaults(desk)

    @api.get("/budget", response_model=Budgets, responses=responses(401, 403), dependencies=[steward])
    async def budget() -> Any:
        """What every account has left."""
        return await desk.work(lambda: budgets(desk))

    @api.get("/history", response_model=list[Charged], responses=responses(400, 401, 403), dependencies=[steward])
    async def charged(most: Annotated[int, Query(ge=1, le=10_000, description="how many entries")] = SHOWN) -> Any:
        """The latest entries of the ledger, the newest first."""
        return await desk.work(lambda: history(desk, most))

    @api.get("/what-if", response_model=WhatIf, responses=responses(400, 401, 403), dependencies=[steward])
    async def expected(
        method: Annotated[str, Query(max_length=100)] = defaults["method"],
        alpha: Parameter = float(defaults["alpha"]),
        epsilon: Parameter = float(defaults["epsilon"]),
        delta: Annotated[float, Query(ge=0, lt=1)] = float(defaults["delta"]),
        size: Annotated[int, Query(ge=1, le=10_000_000, description="workers in the establishment")] = 100,
    ) -> Any:
        """Expected errors around some parameters; nothing is charged."""
        return await desk.work(lambda: what_if(method, _exact(alpha), _exact(epsilon), _exact(delta), size))

    @api.get("/queries", response_model=Queries, responses=responses(401, 403), dependencies=[steward])
    async def asked() -> Any:
        """What was asked most often, and who asked lately."""
        return await desk.work(lambda: queries(served.settings.audit))

    @api.get("", include_in_schema=False)
    async def page(request: Request, user: Annotated[User, require(Role.steward, page=True)]) -> Response:
        """All of it on one page."""
        chosen = {name: request.query_params.get(name, text).strip() for name, text in defaults.items()}
        found, error = None, None
        try:
            numbers = _numbers(chosen)
            found = await desk.work(lambda: what_if(chosen["method"], **numbers))
        except SfumatoError as refused:
            error = as_refused(refused)
        content = template.render(
            user=user,
            budgets=await desk.work(lambda: budgets(desk)),
            history=await desk.work(lambda: history(desk)),
            queries=await desk.work(lambda: queries(served.settings.audit)),
            methods=[name for name in METHODS if name not in KEYED],
            chosen=chosen,
            found=found,
            chart=None if found is None else Markup(chart(found)),  # noqa: S704 — drawn here, texts escaped
            error=error,
        )
        return Response(content, status_code=200 if error is None else error.status, media_type=HTML)

    return api


def _defaults(desk: Desk) -> dict[str, str]:
    live = desk.live
    if not isinstance(live, FormalLive):
        return _DEFAULT
    return _DEFAULT | {"alpha": f"{float(live.most.alpha):g}", "epsilon": f"{float(live.most.epsilon) / 4:g}"}


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


def _numbers(chosen: dict[str, str]) -> dict[str, Any]:
    """The numbers of the form, which come as texts."""
    limits = {"alpha": (0, 1_000), "epsilon": (0, 1_000), "delta": (-1, 1), "size": (0, 10_000_000)}
    found: dict[str, Any] = {}
    for name, (low, high) in limits.items():
        try:
            number = float(chosen[name])
        except ValueError:
            number = low
        if not low < number <= high:
            raise RefusedError(name, expected=f"a number up to {high:,}", found=chosen[name], do="correct the form")
        found[name] = max(int(number), 1) if name == "size" else _exact(number)
    return found
