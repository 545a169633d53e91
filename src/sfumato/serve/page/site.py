"""The head of every page, and the pages for signing in and for what goes wrong."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from sfumato.errors import SfumatoError
from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.core.access import PRIVATE, SESSION_SECONDS, SIGN_IN, local
from sfumato.serve.core.errors import shortened
from sfumato.serve.core.users import Role, User
from sfumato.serve.page.assets import HTML, Assets, make_templates
from sfumato.serve.page.language import Language, chosen_language, language_of, languages

# Where the head of every page leads: to all tables, and as far as the reader's role allows to what is not public.

LIVE = "/live"
STEWARD = "/steward"


class Link(NamedTuple):
    """A place that a page leads to."""

    address: str
    text: str
    code: str = ""
    """The language of the text, where it is another one."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the head of a page offers somebody, and in which language."""

    links: tuple[Link, ...]
    languages: tuple[Link, ...]
    """The same page in other languages."""
    live: bool
    """Whether the server answers ad-hoc questions."""
    user: bool
    """Whether somebody is signed in, who may want to sign out."""
    say: Language
    chosen: str = ""
    """The language that the address names; links keep it."""

    def to(self, path: str, query: str = "") -> str:
        """The address of another page, in the same language."""
        more = "&".join(filter(None, (query, f"lang={self.chosen}" if self.chosen else "")))
        path, mark, part = path.partition("#")
        return f"{path}{('&' if '?' in path else '?') + more if more else ''}{mark}{part}"


def site(context: ServerContext, user: User | None, request: Request) -> Site:
    """What somebody may open; who is not signed in is led to signing in, where there is anything to sign in for."""
    found = [Link("/", "All tables")]
    if context.live and user is None:
        found.append(Link(f"{SIGN_IN}?next={LIVE}", "Sign in"))
    elif context.live and user is not None:
        may = ((Role.analyst, Link(LIVE, "Ad-hoc tables")), (Role.steward, Link(STEWARD, "Steward")))
        found += [link for role, link in may if user.may(role)]
    say = language_of(request)
    return Site(
        links=tuple(found),
        languages=tuple(_languages(request, say)) if request.method == "GET" else (),
        live=context.live,
        user=context.live and user is not None,
        say=say,
        chosen=chosen_language(request),
    )


def _languages(request: Request, now: Language) -> Iterator[Link]:
    asked = [pair for pair in request.query_params.multi_items() if pair[0] != "lang"]
    path = f"/{request.url.path.lstrip('/')}"  # two slashes at the beginning would be the name of another host
    for code, language in languages().items():
        if language is not now:
            yield Link(f"{path}?{urlencode([*asked, ('lang', code)])}", language.name, code)


def reader(context: ServerContext, request: Request) -> User | None:
    """Who reads a public page, where its links depend on that; then the answer is for nobody else."""
    user = context.access.user(request.scope) if context.live else None
    if user is not None:
        request.scope[PRIVATE] = True
    return user


def role_of(user: User | None) -> str:
    """What pages are kept under: those with the same role have the same links."""
    return "" if user is None else user.role.value


def in_language(page: Rendered) -> Rendered:
    """An answer that may be kept on the way, for readers of its language."""
    return replace(page, headers={**page.headers, "Vary": "Accept-Language"})


def for_everybody(context: ServerContext, page: Rendered) -> Rendered:
    """A page that may be kept on the way, for readers of its language who see the same links."""
    signed = ", Authorization, Cookie" if context.live else ""
    return replace(page, headers={**page.headers, "Vary": f"Accept-Language{signed}"})


SIGN_OUT = "/sign-out"
_FIELDS = 10


def router(context: ServerContext) -> APIRouter:
    """The routes of signing in and out; they are for people, so the OpenAPI document leaves them out."""
    api = APIRouter(include_in_schema=False)
    access = context.access
    template = make_templates(Assets.read(), context.settings).get_template("sign_in.html")

    def page(request: Request, status: int = 200, **given: Any) -> Response:
        request.scope[PRIVATE] = True
        there = local(request.query_params.get("next", "/"))
        user = access.user(request.scope)
        about = {
            "user": user,
            "next": there,
            "refused": False,
            "sign_out": SIGN_OUT,
            "site": site(context, user, request),
        }
        return Response(template.render(about | given), status, media_type=HTML)

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
        name = await run_in_threadpool(access.sessions.begin, user)
        response = RedirectResponse(there, status_code=303)
        response.set_cookie(
            access.cookie(request.scope),
            name,
            max_age=SESSION_SECONDS,
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


Writer = Callable[[Request, int, str, Mapping[str, str], SfumatoError | None], Response]
_TITLES = {
    HTTPStatus.NOT_FOUND: "There is no such page",
    HTTPStatus.UNAUTHORIZED: "Sign in first",
    HTTPStatus.FORBIDDEN: "This is not allowed",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.SERVICE_UNAVAILABLE: "The server is busy",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}
_OTHERS = "This is not possible"
_SENTENCES = {
    HTTPStatus.METHOD_NOT_ALLOWED: "Nothing can be sent to this address. Open it as a page.",
    HTTPStatus.REQUEST_URI_TOO_LONG: "The address would be too long. Choose fewer codes, or all of a variable.",
    HTTPStatus.UNAUTHORIZED: "This page is for people with a token, which the office gives.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many pages were asked for at once. Wait some seconds, and load the page again.",
    HTTPStatus.SERVICE_UNAVAILABLE: "There is more to do than the server can at the moment. Load the page again soon.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The fault is the server's, and nothing was lost. Try again, or tell the office.",
}
"""What readers are told where programs are told of limits."""


def error_page(context: ServerContext) -> Writer:
    """What writes such pages for a server."""
    template = make_templates(Assets.read(), context.settings).get_template("error.html")

    def write(
        request: Request, status: int, words: str, headers: Mapping[str, str], error: SfumatoError | None
    ) -> Response:
        """The page of a problem: of an error, or else the words that programs get."""
        shown = site(context, reader(context, request), request)
        if words == HTTPStatus.NOT_FOUND.phrase:
            words = shown.say("Nothing has the address {address}", address=shortened(request.url.path))
        elif status in _SENTENCES and error is None:
            words = shown.say(_SENTENCES[HTTPStatus(status)])
        content = template.render(
            title=_TITLES.get(HTTPStatus(status), _OTHERS),
            fault=error,
            words=words,
            sign_in=context.live and status == HTTPStatus.UNAUTHORIZED,
            site=shown,
        )
        return Response(content, status, headers={"Cache-Control": "no-store", **headers}, media_type=HTML)

    return write
