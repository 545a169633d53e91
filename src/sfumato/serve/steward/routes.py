"""The addresses of the steward: a page, and the same for programs."""

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from sfumato.serve.context import ServerContext
from sfumato.serve.core.access import require
from sfumato.serve.core.errors import RefusedError, refusing
from sfumato.serve.core.http import responses
from sfumato.serve.core.users import Role, User
from sfumato.serve.live.queue import LiveQueue
from sfumato.serve.page.assets import HTML, Assets, figure, make_templates
from sfumato.serve.page.site import STEWARD, site
from sfumato.serve.steward.accounts import (
    SHOWN,
    Budgets,
    Charged,
    Queries,
    WhatIf,
    budgets,
    chart,
    history,
    queries,
    what_if,
)
from sfumato.statistics.registry import METHODS, is_free

T = TypeVar("T")
_DEFAULT = {"method": "smooth-pareto", "alpha": "0.1", "epsilon": "1", "delta": "0.000001", "size": "100"}
Parameter = Annotated[float, Query(gt=0, le=1_000, allow_inf_nan=False)]


def router(context: ServerContext, queue: LiveQueue) -> APIRouter:
    """The routes of the steward."""
    api = APIRouter(prefix=STEWARD, tags=["Steward"])
    template = make_templates(Assets.read(), context.settings, "sfumato.serve.steward").get_template("steward.html")
    steward = require(Role.steward)
    defaults = _defaults(queue)

    async def work(request: Request, work: Callable[[], T]) -> T:
        with refusing():  # in threads of pages: long questions of analysts keep no steward waiting
            return await context.worker_queue.page(work, client=context.client(request.scope))

    @api.get("/budget", response_model=Budgets, responses=responses(401, 403), dependencies=[steward])
    async def budget(request: Request) -> Any:
        """What every account has left."""
        return await work(request, lambda: budgets(queue))

    @api.get("/history", response_model=list[Charged], responses=responses(400, 401, 403), dependencies=[steward])
    async def charged(
        request: Request, most: Annotated[int, Query(ge=1, le=10_000, description="how many entries")] = SHOWN
    ) -> Any:
        """The latest entries of the ledger, the newest first."""
        return await work(request, lambda: history(queue, most))

    @api.get("/what-if", response_model=WhatIf, responses=responses(400, 401, 403), dependencies=[steward])
    async def expected(
        request: Request,
        *,
        method: Annotated[str, Query(max_length=100)] = defaults["method"],
        alpha: Parameter = float(defaults["alpha"]),
        epsilon: Parameter = float(defaults["epsilon"]),
        delta: Annotated[float, Query(ge=0, lt=1)] = float(defaults["delta"]),
        size: Annotated[int, Query(ge=1, le=10_000_000, description="workers in the establishment")] = 100,
    ) -> Any:
        """Expected errors around some parameters; nothing is charged."""
        return await work(request, lambda: what_if(method, _exact(alpha), _exact(epsilon), _exact(delta), size))

    @api.get("/queries", response_model=Queries, responses=responses(401, 403), dependencies=[steward])
    async def asked(request: Request) -> Any:
        """What was asked most often, and who asked lately."""
        return await work(request, lambda: queries(context.settings.audit))

    @api.get("", include_in_schema=False)
    async def page(request: Request, user: Annotated[User, require(Role.steward, page=True)]) -> Response:
        """All of it on one page."""
        chosen = {name: request.query_params.get(name, text).strip() for name, text in defaults.items()}

        def tried() -> tuple[WhatIf | None, RefusedError | None]:
            try:
                with refusing():
                    return what_if(chosen["method"], **_numbers(chosen)), None
            except RefusedError as error:
                return None, error

        def shown() -> dict[str, Any]:
            asked = queries(context.settings.audit)
            return {"budgets": budgets(queue), "history": history(queue), "queries": asked, "tried": tried()}

        given = await work(request, shown)
        found, error = given.pop("tried")
        content = template.render(
            given,
            user=user,
            site=site(context, user, request),
            methods=[name for name in METHODS if not is_free(name)],
            chosen=chosen,
            found=found,
            chart=None if found is None else Markup(chart(found)),  # noqa: S704 — drawn here, texts escaped
            cut=None if found is None else found.cut,
            error=error,
        )
        return Response(content, status_code=200 if error is None else error.status, media_type=HTML)

    return api


def _defaults(queue: LiveQueue) -> dict[str, str]:
    live = queue.live
    if live.most is None:
        return _DEFAULT
    numbers = {"alpha": live.most.alpha, "epsilon": live.most.epsilon / 4}
    return _DEFAULT | {name: figure(float(number), 6).replace(",", "") for name, number in numbers.items()}


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


def _numbers(chosen: dict[str, str]) -> dict[str, Any]:
    """The numbers of the form, which come as texts."""
    limits = {"alpha": 1_000, "epsilon": 1_000, "delta": 1, "size": 10_000_000}
    found: dict[str, Any] = {}
    for name, high in limits.items():
        try:
            number = float(chosen[name].replace(",", ""))
        except ValueError:
            number = -1
        if not (0 <= number < high if name == "delta" else 0 < number <= high):
            words = f"a number from 0, below {high}" if name == "delta" else f"a number above 0, up to {high:,}"
            raise RefusedError(name, expected=words, found=chosen[name], do="correct the form")
        found[name] = max(int(number), 1) if name == "size" else _exact(number)
    return found
