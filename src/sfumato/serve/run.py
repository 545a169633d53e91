"""Listen on a port until stopped, with plain words about what is probably not as it was meant."""

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, cast

import uvicorn

from sfumato.errors import SfumatoError
from sfumato.live import ChargedSession
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.http import MOST_ADDRESS, MOST_HEADERS
from sfumato.serve.core.protocol import StrictProtocol
from sfumato.serve.core.users import Users, make_folder
from sfumato.serve.live.queue import LiveQueue
from sfumato.serve.page.assets import figure

if TYPE_CHECKING:  # only a name for types
    from opentelemetry.trace import TracerProvider

NEARLY = Fraction(1, 10)
"""The share of a budget that is left when those who run the server are told."""


def warnings(settings: Settings, queue: LiveQueue | None, *, budget: str) -> Iterator[str]:
    """What is probably not as it was meant; `budget` is what was typed for ad-hoc questions."""
    charged = None if queue is None or queue.live.most is None else cast(ChargedSession, queue.live)
    if budget and charged is None:
        reason = "no release is asked: add --live" if queue is None else "questions about records cost nothing"
        yield f"--budget-epsilon has no effect: {reason}."
    if queue is not None and not any(user.active(datetime.now(UTC)) for user in Users(settings.state).all()):
        yield f"Nobody can ask yet: sfumato users add NAME --role analyst --state {settings.state}"
    if charged is not None:
        yield from _spent(charged)


def _spent(live: ChargedSession) -> Iterator[str]:
    """What is left, where that is little or less than the server may spend."""
    left, most = live.left().remaining_epsilon, live.most.epsilon
    words = f"ε = {figure(float(max(left, Fraction(0))), 6)} of {figure(float(most), 6)}"
    if left <= 0:
        yield (
            f"The budget for ad-hoc questions is spent ({words} is left): only what was asked before is answered"
            + (", and what is about establishments that less was spent on." if _has_filters(live) else ".")
        )
    elif left < most * NEARLY:
        yield f"The budget for ad-hoc questions is nearly spent: {words} is left."
    account = live.release.account
    if live.ledger.has_budget(account):
        whole = live.ledger.balance(account).remaining_epsilon
        if 0 < whole < most:
            yield (
                f"The whole budget of {account} has ε = {figure(float(whole), 6)} left, which is less than the "
                f"{figure(float(most), 6)} that ad-hoc questions may cost."
            )


def _has_filters(live: ChargedSession) -> bool:
    """Whether less was spent on some establishments than on others."""
    account = live.release.account
    spent = live.ledger.balance(account) if live.ledger.has_budget(account) else None
    return spent is not None and spent.added_epsilon > spent.spent_epsilon


LINGER = 5
"""How long, in seconds, an open connection without a request is kept, and a stop waits for answers under way."""

BACKLOG = 2_048
"""How many connections may wait until they are taken."""


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
    queue: LiveQueue | None = None,
    traces: "TracerProvider | None" = None,
    ready: Callable[[str], None] = lambda _: None,
    renewed: Callable[[Catalogue], None] = lambda _: None,
) -> None:
    """Serve a catalogue until the process is told to stop; `ready` gets the address once it listens.

    Bundles that are published anew meanwhile are opened and served; `renewed` is told.

    In a `queue`, if there is one, ad-hoc questions wait for their answer.
    """
    with listening(host, port) as bound:
        make_folder(settings.state)
        Users(settings.state).seen()  # a list that cannot be read is noticed now, not by the first user
        app = make_app(catalogue, settings, queue=queue, traces=traces)
        config = uvicorn.Config(
            app,
            http=StrictProtocol,
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
        ready(local_address(host, bound.getsockname()[1]))
        with app.state.context.editions.watched(renewed):
            uvicorn.Server(config).run(sockets=[bound])


def local_address(host: str, port: int) -> str:
    """The address to open in a browser of this machine.

    >>> local_address("0.0.0.0", 8000), local_address("::1", 8000), local_address("192.0.2.7", 80)
    ('http://localhost:8000', 'http://[::1]:8000', 'http://192.0.2.7:80')
    """
    if host in ("127.0.0.1", "0.0.0.0", "::"):  # noqa: S104 — only compared
        return f"http://localhost:{port}"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
