"""Who asks: settings of the office, a bearer token from a program, a cookie from a browser."""

import json
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Scope

from sfumato.durable import write_durably
from sfumato.errors import SfumatoError
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.users import TOKEN, Role, User, Users, make_folder


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits, and what the server says of itself."""

    state: Path = Path("serve-state")
    """Folder for what the server has to remember, such as saved queries; made when the first one comes."""
    most_cells: int = 100_000
    """A larger answer is refused."""
    most_body: int = 1_000_000
    """Bytes a request may have."""
    most_running: int = 1_200
    """Questions that are worked on or wait at a time; further ones are asked to come back."""
    most_of_one: int = 75
    """Questions of one address among them, whatever tokens it shows."""
    threads: int = 4
    """Pages that are written at a time."""
    downloads: int = 2
    """Large answers that are worked out at a time: each needs memory of its own."""
    most_waiting: int = 60
    """Pages and large answers that one client may wait for at a time; further ones are asked to come back."""
    most_lined_up: int = 300
    """Such answers that all clients together may wait for: other places are left for what is answered at once."""
    most_sharing: int = 600
    """Requests that may wait for an answer that another one asked for first; they cost no work."""
    seconds: float = 30
    """How long a question may take."""
    most_saved: int = 10_000
    """Queries that are kept; the ones used least recently make room for new ones."""
    most_saved_bytes: int = 50_000_000
    """Bytes that all of them may have."""
    cache_bytes: int = 64_000_000
    """Memory for finished answers."""
    calls: int = 1_000
    """How many calls one client may make in a window; 0 is any number. Clients are told."""
    window: int = 10
    """The length of that window in seconds."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies that are believed when they say who asks; without any, nobody is."""
    audit: Path | None = None
    """Folder for the log of who asked what; without one no log is kept."""
    addresses: Literal["short", "full", "none"] = "short"
    """How the log writes the addresses of clients: the network only, all of it, or nothing."""
    source: str = ""
    """The office that publishes, in the words that readers should quote."""
    license: str = ""
    """Under which licence, such as CC-BY-4.0."""
    agency: str = "SFUMATO"
    """The maintenance agency of SDMX."""
    embed: tuple[str, ...] = ()
    """Addresses of pages that may show tables in a frame; without any, none may."""
    url: str = ""
    """Where readers find the server, such as https://tables.example.org; links are relative when not given."""
    metrics: bool = False
    """Whether `/metrics` says how the server does."""
    mcp: bool = False
    """Whether `/mcp` answers language models."""

    @property
    def prefix(self) -> str:
        """The path below which readers find the server; mostly none."""
        return urlsplit(self.url).path.rstrip("/")


# Who is signed in with a browser: a random name in a cookie stands for a token, until it expires or is revoked.
#
# A session is a small file in the folder of the server, named by the digest of the cookie, so that who reads the folder
# cannot sign in with it. All servers with that folder know it: several of them serve one address, or a new one takes
# the place of another, without signing anybody out. A cookie goes to this server only, and no script can read it.

SESSION_SECONDS = 12 * 60 * 60
"""Seconds after which a session ends: a working day."""
MOST_SESSIONS = 10_000
"""Sessions that are kept; the oldest ends when one more begins."""


class Sessions:
    """The sessions of all servers that share a folder; what is kept cannot be used as a cookie."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, user: User) -> str:
        """Begin a session, and return the name that the cookie has."""
        name, now = secrets.token_urlsafe(32), time()
        make_folder(self._folder)
        self._make_room(now)
        about = {"token": user.digest.hex(), "begins": now, "ends": now + SESSION_SECONDS}
        write_durably(self._path(name), json.dumps(about).encode())
        return name

    def token(self, name: str) -> bytes | None:
        """The digest of the token that a session stands for; nothing where it has ended."""
        try:
            found = json.loads(self._path(name).read_bytes())
            shown, begins, ends = bytes.fromhex(found["token"]), float(found["begins"]), float(found["ends"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # The clocks of two servers may differ a little; one that was set back does not make a session longer.
        if begins - _CLOCKS <= time() <= min(ends, begins + SESSION_SECONDS):
            return shown
        self.end(name)
        return None

    def end(self, name: str) -> None:
        """End a session, for all servers."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / sha256(name.encode("utf-8", "surrogatepass")).hexdigest()

    def _make_room(self, now: float) -> None:
        """Remove what has ended, and the oldest where one more would be too many."""
        found: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another server with this folder was quicker
                found.append((path.stat().st_mtime, path))
        found.sort(key=lambda one: one[0])
        over = len(found) - MOST_SESSIONS + 1
        for at, (begun, path) in enumerate(found):
            if at < over or begun + SESSION_SECONDS + _CLOCKS < now:
                path.unlink(missing_ok=True)


_CLOCKS = 60


# A route that is not for everybody takes `user: Annotated[User, require(Role.analyst)]`. That alone makes its answers
# private: they are not cached, not shown to other sites, and not given without a token.

SIGN_IN = "/sign-in"
PRIVATE = "sfumato.private"
"""Set in the scope of a request whose answer is not for everybody."""
_USER = "sfumato.user"
_SAFE = ("GET", "HEAD", "OPTIONS")
_LONGEST = 4_096
_log = logging.getLogger("uvicorn.error")
_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="A token from `sfumato users add`")


class Access:
    """Tokens and sessions of a server."""

    def __init__(self, settings: Settings) -> None:
        self.users, self.sessions = Users(settings.state), Sessions(settings.state / "sessions")
        self._url = settings.url

    def user(self, scope: Scope) -> User | None:
        """Who asks; nobody where there is no token and no session, or none that is in force."""
        if _USER not in scope:
            scope[_USER] = self._identify(scope)
        found: User | None = scope[_USER]
        return found

    def holder(self, token: str) -> User | None:
        """Whose token this is, if anybody's."""
        if not TOKEN.fullmatch(token):
            return None
        return self._look_up(lambda: self.users.holder(token))

    def secure(self, scope: Scope) -> bool:
        """Whether the browser speaks to the server over https."""
        return self._url.startswith("https:") or scope["scheme"] == "https"

    def cookie(self, scope: Scope) -> str:
        """The name of the cookie; a browser takes this beginning over https only, and from no other host."""
        return "__Host-sfumato" if self.secure(scope) else "sfumato"

    def session(self, scope: Scope) -> str | None:
        """The name of the session that the browser has."""
        name = Request(scope).cookies.get(self.cookie(scope), "")
        return name if 0 < len(name) < _LONGEST else None

    def refuse_elsewhere(self, request: Request) -> None:
        """Refuse a change that another site's page makes in the name of somebody who is signed in here."""
        own = {f"{request.scope['scheme']}://{request.headers.get('host', '')}".lower()}
        if self._url:
            parts = urlsplit(self._url)
            own = {f"{parts.scheme}://{parts.netloc}".lower()}
        origins = [origin.lower() for origin in request.headers.getlist("origin")]
        if len(origins) != 1 or origins[0] not in own:
            raise RefusedError(
                "Origin",
                expected="a form of this server",
                found=", ".join(origins) or "no origin",
                do="use the form again; behind a proxy, start the server with --url",
                status=403,
                said=said("This was not sent from a page of this server. Open the page again, and send it from there."),
            )

    def _identify(self, scope: Scope) -> User | None:
        shown = [text for name, text in scope["headers"] if name == b"authorization"]
        if shown:  # a token says more clearly than a cookie who is meant
            scheme, _, token = shown[0].partition(b" ")
            if len(shown) > 1 or scheme.lower() != b"bearer" or len(token) > _LONGEST:
                return None
            return self.holder(token.strip().decode("latin-1"))
        name = self.session(scope)
        token_of = None if name is None else self.sessions.token(name)
        return None if token_of is None else self._look_up(lambda: self.users.still(token_of))

    @staticmethod
    def _look_up(look: Callable[[], User | None]) -> User | None:
        """Who the list of users names; nobody while it cannot be read."""
        try:
            return look()
        except (SfumatoError, OSError) as error:
            _log.error("Nobody can be identified: %s", error)
            return None


def require(role: Role, *, page: bool = False) -> Any:
    """What a route depends on that needs a role; a page sends browsers without it to sign in."""

    async def identified(
        request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
    ) -> User:
        access: Access = request.app.state.context.access
        request.scope[PRIVATE] = True
        user = access.user(request.scope)
        by_token = "authorization" in request.headers  # a program: there is nothing for it to sign in with
        if page and not by_token and (user is None or not user.may(role)) and request.method == "GET":
            raise HTTPException(303, "Sign in.", headers={"Location": f"{SIGN_IN}?next={_here(request)}"})
        if user is None:
            raise HTTPException(
                401,
                "Expected a token in force: Authorization: Bearer … To do: ask the office for one.",
                headers={"WWW-Authenticate": 'Bearer realm="sfumato"'},
            )
        if not user.may(role):
            raise RefusedError(
                "role",
                expected=role.value,
                found=user.role.value,
                do="ask the office for this role",
                status=403,
                said=said("This needs the role {role}. Ask the office for it.", role=role.value),
            )
        if request.method not in _SAFE and not by_token:
            access.refuse_elsewhere(request)
        return user

    return Depends(identified)


def local(path: str) -> str:
    """A path of this server: anything else would let a link send people elsewhere once they are signed in.

    >>> local("/steward?a=1"), local("//elsewhere.example"), local("https://elsewhere.example"), local("/\\\\elsewhere")
    ('/steward?a=1', '/', '/', '/')
    """
    plain = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if plain and "\\" not in path else "/"


def _here(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return quote(local(request.scope["path"] + (f"?{query}" if query else "")), safe="")
