"""`sfumato serve`: published tables in a browser, and for R, Python and Excel."""

import re
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from sfumato.cli.mcp import refuse_without_mcp
from sfumato.cli.screen import AsJson, messages, progress, screen, show
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.serve.core.catalogue import Catalogue
    from sfumato.serve.live.queue import LiveQueue


class Addresses(StrEnum):
    """How addresses are written in the log of questions."""

    short = "short"
    full = "full"
    none = "none"


def serve(
    bundles: Annotated[
        list[str],
        typer.Argument(
            metavar="BUNDLE…",
            help="Folders that `sfumato run` published, release files, or a folder of such folders; NAME=FOLDER puts "
            "NAME before their tables.",
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; 127.0.0.1 is this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    state: Annotated[
        Path, typer.Option(help="Folder for saved queries, users and the log of questions; for its owner alone.")
    ] = Path("serve-state"),
    source: Annotated[str, typer.Option(help="The office that publishes, as readers should quote it.")] = "",
    licence: Annotated[str, typer.Option(help="The licence of the tables, such as CC-BY-4.0.")] = "",
    agency: Annotated[
        str, typer.Option(metavar="ID", help="The maintenance agency of SDMX, such as OFFICE; programs name it.")
    ] = "SFUMATO",
    url: Annotated[str, typer.Option(help="The address readers use, if it is another; links then name it.")] = "",
    groupings: Annotated[
        Path | None, typer.Option(help="File with groups of codes that cubes may be asked for.")
    ] = None,
    most_cells: Annotated[int, typer.Option(help="The most figures one answer may have.")] = 100_000,
    live: Annotated[
        Path | None,
        typer.Option(
            metavar="RELEASE.toml", help="Release whose confidential data analysts may ask; needs `sfumato users add`."
        ),
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="PERIOD", help="Of a --live release that is a series: the period, 2026Q3 say.")
    ] = None,
    budget_epsilon: Annotated[
        str,
        typer.Option(metavar="EPSILON", help="What all ad-hoc counts of jobs may cost; else [live] of the release."),
    ] = "",
    rate: Annotated[
        str, typer.Option(metavar="CALLS/SECONDS", help="How often one client may ask; 0 sets no limit.")
    ] = "1000/10",
    seconds: Annotated[float, typer.Option(min=0.1, help="The longest that one answer may take.")] = 30,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="A proxy to be believed when it says who asks. May be repeated."),
    ] = None,
    addresses: Annotated[
        Addresses, typer.Option(help="How the log of questions writes addresses: the network, all of it, nothing.")
    ] = Addresses.short,
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Answer language models at /mcp too; needs the extra sfumato\\[mcp].")
    ] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="Show at /metrics how the server does.")] = False,
    traces: Annotated[
        bool,
        typer.Option(
            "--traces", help="Send traces to where the settings of OpenTelemetry say; needs sfumato\\[telemetry]."
        ),
    ] = False,
    embed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="A site, https://www.example.org, that may frame tables. May be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve published bundles over HTTP: a page for readers, PxWebApi 2 and 1 and SDMX for programs.

    Tables are downloaded as Excel, CSV, PX, Parquet and more.
    Every file is checked against its manifest first, and what is published anew is served within seconds.
    Nothing confidential is read, unless --live names a release.
    """
    calls, window = _rate(rate)
    if mcp:
        refuse_without_mcp()
    proxies = _proxies(trusted_proxy or ())
    framing = _sites(embed or ())
    from sfumato.serve.app import addresses as where
    from sfumato.serve.core.access import Settings
    from sfumato.serve.core.catalogue import BundleSource, open_catalogue
    from sfumato.serve.core.selection import read_groupings
    from sfumato.serve.core.traces import tracer_provider
    from sfumato.serve.run import run_server, warnings
    from sfumato.serve.sdmx.flow import checked_agency

    checked_agency(agency)
    with progress(hidden=as_json) as update:
        update("checking the bundles", 0, 1)
        catalogue = open_catalogue(
            [BundleSource.read(bundle) for bundle in bundles],
            groupings=() if groupings is None else read_groupings(groupings),
        )
    settings = Settings(
        state=state,
        source=source,
        license=licence,
        agency=agency,
        url=url.rstrip("/"),
        most_cells=max(most_cells, 1),
        calls=calls,
        window=window,
        seconds=seconds,
        proxies=proxies,
        embed=framing,
        audit=state / "audit",
        addresses=addresses.value,
        metrics=metrics,
        mcp=mcp,
    )
    sending = tracer_provider() if traces else None

    with ExitStack() as stack:
        queue = None if live is None else _live_queue(stack, live, period, budget_epsilon)

        def ready(address: str) -> None:
            warned = list(warnings(settings, queue, budget=budget_epsilon))
            if as_json:
                show(("", {"address": address, "live": queue is not None, "warnings": warned}), as_json)
            for line in [] if as_json else where(catalogue, address, queue, mcp=mcp):
                screen.print(line, soft_wrap=True)  # an address that is broken over two lines cannot be opened
            for line in warned:
                messages.print(f"Warning: {line}", style="yellow", soft_wrap=True)

        def renewed(found: "Catalogue") -> None:
            messages.print(f"{datetime.now():%Y-%m-%d %H:%M:%S}  published anew: {len(found)} tables are served.")

        # The server takes these signals, ends what is under way, and hands them on: it was asked to, and all is well.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stopped)
        run_server(catalogue, settings, host=host, port=port, queue=queue, traces=sending, ready=ready, renewed=renewed)


def _stopped(*_: object) -> NoReturn:
    (messages if "--json" in sys.argv else screen).print("Stopped.")
    sys.exit()


def _rate(text: str) -> tuple[int, int]:
    """How many calls in how many seconds."""
    found = re.fullmatch(r"0|([1-9][0-9]{0,8})/([1-9][0-9]{0,5})", text)
    if found is None:
        raise SfumatoError(
            "--rate", expected="calls/seconds in whole numbers, such as 1000/10, or 0", found=text, do="correct it"
        )
    return (int(found[1]), int(found[2])) if found[1] else (0, 1)


def _sites(given: Sequence[str]) -> tuple[str, ...]:
    """Addresses of sites without a path; a star would let every site show tables as its own."""
    for text in given:
        if re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?", text) is None:
            raise SfumatoError(
                "--embed",
                expected="the address of a site without a path, such as https://www.example.org",
                found=text,
                do="correct it",
            )
    return tuple(given)


def _proxies(given: Sequence[str]) -> tuple[str, ...]:
    """Addresses or networks; a star would believe everybody."""
    from ipaddress import ip_network

    for text in given:
        try:
            ip_network(text)
        except ValueError as error:
            raise SfumatoError(
                "--trusted-proxy",
                expected="the address or network of a proxy, such as 192.0.2.7 or 192.0.2.0/24",
                found=text,
                do="correct it",
            ) from error
    return tuple(given)


def _live_queue(stack: ExitStack, file: Path, period: str | None, budget: str) -> "LiveQueue":
    """Open the data of a release for ad-hoc questions, for as long as the server runs."""
    from sfumato.description import exact
    from sfumato.live import open_charged, open_guarded
    from sfumato.release import load
    from sfumato.serve.live.queue import LiveQueue

    release = load(file, period)
    try:
        epsilon = exact(budget) if budget else None
    except ValueError as error:
        raise SfumatoError("--budget-epsilon", expected=str(error), found=budget, do="correct it") from error
    with progress(hidden=False) as update:

        def tell(step: str) -> None:
            update(f"opening the confidential data: {step}", 0, 1)

        if not release.data.of_jobs and release.about.key is not None:
            return LiveQueue(live=stack.enter_context(open_guarded(release, tell)))
        return LiveQueue(live=stack.enter_context(open_charged(release, epsilon=epsilon, progress=tell)))
