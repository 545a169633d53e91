"""`sfumato mcp`: published tables for a language model on this machine."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sfumato.errors import SfumatoError


def mcp(
    bundles: Annotated[
        list[str],
        typer.Argument(
            metavar="BUNDLE…",
            help="Folders that `sfumato run` published, release files, or a folder of such folders; NAME=FOLDER puts "
            "NAME before their tables.",
        ),
    ],
    url: Annotated[str, typer.Option(help="Where readers find the same tables, if anywhere.")] = "",
    groupings: Annotated[
        Path | None, typer.Option(help="File with groups of codes that cubes may be asked for.")
    ] = None,
) -> None:
    """Let a language model on this machine read published bundles.

    A program that runs the model starts this command and speaks the Model Context Protocol with it, over standard
    input and output. The model can search, describe and read tables, and nothing else; every figure comes with its
    error, its status and a note on privacy. For models elsewhere: `sfumato serve --mcp`. Needs the extra
    sfumato\\[mcp].
    """
    refuse_without_mcp()
    from anyio import run, to_thread

    from sfumato.serve.core.catalogue import BundleSource, open_catalogue
    from sfumato.serve.core.editions import Editions
    from sfumato.serve.core.selection import read_groupings
    from sfumato.serve.mcp.server import make_server

    catalogue = open_catalogue(
        [BundleSource.read(bundle) for bundle in bundles],
        groupings=() if groupings is None else read_groupings(groupings),
    )
    editions = Editions(catalogue, cache_bytes=0)
    server = make_server(
        lambda: editions.current.catalogue, lambda work, _: to_thread.run_sync(work), url=url.rstrip("/")
    )
    with editions.watched(lambda _: None):
        run(server.run_stdio_async)


def refuse_without_mcp() -> None:
    """Say what is needed, before anything is opened."""
    if find_spec("mcp") is None:
        raise SfumatoError(
            "mcp",
            expected="the extra that speaks the Model Context Protocol",
            found="no such module",
            do="pip install 'sfumato[mcp]'",
        )
