"""Listen on a port until stopped, with plain words about what can go wrong before that."""

import resource
import socket
from collections.abc import Callable

import uvicorn

from sfumato.errors import SfumatoError
from sfumato.serve.app import make_app
from sfumato.serve.catalogue import Catalogue
from sfumato.serve.limits import MOST_ADDRESS, MOST_HEADERS
from sfumato.serve.limits_connection import patient_protocol
from sfumato.serve.live.desk import Desk
from sfumato.serve.settings import Settings
from sfumato.users import Users, make_folder

LINGER = 5
"""How long, in seconds, an open connection without a request is kept, and a stop waits for answers under way."""

BACKLOG = 2_048
"""How many connections may wait until they are taken."""


FILES = 100
"""How many files are left for everything that is no connection."""


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; with port 0, on a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once; otherwise each waits 40 ms for an acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)  # from here on connections wait rather than fail
    except (OSError, OverflowError) as error:
        bound.close()
        raise SfumatoError(
            f"address {host}, port {port}",
            expected="an address of this machine and a port that nothing else listens on",
            found=getattr(error, "strerror", None) or str(error),
            do="stop the other program, or choose another port with --port (0 takes a free one)",
        ) from error
    return bound


def run_server(
    catalogue: Catalogue,
    settings: Settings,
    *,
    host: str,
    port: int,
    desk: Desk | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a catalogue until the process is told to stop; `ready` gets the address once it listens.

    At a `desk`, if there is one, ad-hoc tables are asked for.
    """
    with listening(host, port) as bound:
        make_folder(settings.state)
        Users(settings.state).seen()  # a list that cannot be read is noticed now, not by the first user
        config = uvicorn.Config(
            make_app(catalogue, settings, desk=desk),
            http=patient_protocol(
                patience=settings.patience,
                most=_connections(settings.most_connections),
                most_unread=settings.most_unread,
            ),
            ws="none",
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            h11_max_incomplete_event_size=MOST_ADDRESS + MOST_HEADERS,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=LINGER,
            timeout_graceful_shutdown=LINGER,
            backlog=BACKLOG,
        )
        ready(shown(host, bound.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[bound])


def shown(host: str, port: int) -> str:
    """The address to open in a browser of this machine.

    >>> shown("0.0.0.0", 8000), shown("::1", 8000), shown("192.0.2.7", 80)
    ('http://localhost:8000', 'http://[::1]:8000', 'http://192.0.2.7:80')
    """
    if host in ("127.0.0.1", "0.0.0.0", "::"):  # noqa: S104 — only compared
        return f"http://localhost:{port}"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _connections(most: int) -> int:
    """As many connections as are wished, if the system lets this process open as many files."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(most, allowed - FILES), 1)
