"""Sign in with a token and sign out again, in a browser."""

from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from sfumato.serve.access import PRIVATE, SIGN_IN, local
from sfumato.serve.access_sessions import LASTS
from sfumato.serve.page.assets import Assets
from sfumato.serve.page.navigation import site
from sfumato.serve.page.writing import HTML, make_templates
from sfumato.serve.served import Served

SIGN_OUT = "/sign-out"
_FIELDS = 10


def router(served: Served) -> APIRouter:
    """The routes of signing in and out; they are for people, so the OpenAPI document leaves them out."""
    api = APIRouter(include_in_schema=False)
    access = served.access
    template = make_templates(Assets.read(), served.settings).get_template("sign_in.html")

    def page(request: Request, status: int = 200, **given: Any) -> Response:
        request.scope[PRIVATE] = True
        there = local(request.query_params.get("next", "/"))
        user = access.user(request.scope)
        context = {"user": user, "next": there, "refused": False, "sign_out": SIGN_OUT, "site": site(served, user)}
        return Response(template.render(context | given), status, media_type=HTML)

    @api.get(SIGN_IN)
    async def form(request: Request) -> Response:
        """The form that takes a token."""
        return page(request)

    @api.post(SIGN_IN)
    async def sign_in(request: Request) -> Response:
        """Begin a session for the holder of a token."""
        request.scope[PRIVATE] = True
        access.refuse_elsewhere(request)
        sent = await _sent(request)
        user = access.holder(sent.get("token", "").strip())
        there = local(sent.get("next", "/"))
        if user is None:
            return page(request, 403, next=there, refused=True)
        _end(request)
        response = RedirectResponse(there, status_code=303)
        response.set_cookie(
            access.cookie(request.scope),
            access.sessions.begin(user),
            max_age=LASTS,
            path="/",
            secure=access.secure(request.scope),
            httponly=True,
            samesite="strict",
        )
        return response

    @api.post(SIGN_OUT)
    async def sign_out(request: Request) -> Response:
        """End the session."""
        request.scope[PRIVATE] = True
        access.refuse_elsewhere(request)
        _end(request)
        response = RedirectResponse("/", status_code=303)
        response.delete_cookie(
            access.cookie(request.scope), secure=access.secure(request.scope), httponly=True, samesite="strict"
        )
        return response

    def _end(request: Request) -> None:
        name = access.session(request.scope)
        if name is not None:
            access.sessions.end(name)

    return api


async def _sent(request: Request) -> dict[str, str]:
    """The fields of a form; anything else has none."""
    try:
        return dict(parse_qsl((await request.body()).decode("ascii"), max_num_fields=_FIELDS))
    except ValueError:
        return {}
