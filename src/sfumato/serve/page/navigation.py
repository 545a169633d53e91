"""Where the head of every page leads: to all tables, and as far as the reader's role allows to what is not public."""

from typing import NamedTuple

from fastapi import Request

from sfumato.serve.access import PRIVATE, SIGN_IN
from sfumato.serve.served import Rendered, Served
from sfumato.users import Role, User

LIVE = "/live"
STEWARD = "/steward"


class Link(NamedTuple):
    """A place that a page leads to."""

    address: str
    text: str


class Site(NamedTuple):
    """What the head of a page offers somebody."""

    links: tuple[Link, ...]
    live: bool
    """Whether the server answers ad-hoc questions."""
    user: bool
    """Whether somebody is signed in, who may want to sign out."""


def site(served: Served, user: User | None) -> Site:
    """What somebody may open; who is not signed in is led to signing in, where there is anything to sign in for."""
    found = [Link("/", "All tables")]
    if served.live and user is None:
        found.append(Link(f"{SIGN_IN}?next={LIVE}", "Sign in"))
    elif served.live and user is not None:
        may = ((Role.analyst, Link(LIVE, "Ad-hoc tables")), (Role.steward, Link(STEWARD, "Steward")))
        found += [link for role, link in may if user.may(role)]
    return Site(links=tuple(found), live=served.live, user=served.live and user is not None)


def reader(served: Served, request: Request) -> User | None:
    """Who reads a public page, where its links depend on that; then the answer is for nobody else."""
    user = served.access.user(request.scope) if served.live else None
    if user is not None:
        request.scope[PRIVATE] = True
    return user


def role_of(user: User | None) -> str:
    """What pages are kept under: those with the same role have the same links."""
    return "" if user is None else user.role.value


def for_everybody(served: Served, page: Rendered) -> Rendered:
    """A page that may be kept on the way, unless who is signed in sees other links."""
    if not served.live:
        return page
    headers = {**page.headers, "Vary": "Authorization, Cookie"}
    return Rendered(content=page.content, headers=headers, noted=page.noted)
