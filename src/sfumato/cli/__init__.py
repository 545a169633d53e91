"""The command `sfumato`: thin doors to the package, with plain words and no tracebacks."""

import os
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sfumato import __version__
from sfumato.cli.budget import budget_app
from sfumato.cli.demo import demo
from sfumato.cli.economy import economy_app
from sfumato.cli.keys import keys_app
from sfumato.cli.query import query
from sfumato.cli.release import assess, check, run
from sfumato.cli.reproduce import reproduce_app
from sfumato.cli.screen import fail, messages, screen
from sfumato.cli.serve import serve
from sfumato.cli.tune import tune_app
from sfumato.cli.users import users_app
from sfumato.errors import SfumatoError

ORDER = ("demo", "economy", "check", "run", "query", "serve", "assess", "tune", "reproduce", "budget", "keys", "users")
"""Commands are listed in the order in which someone new meets them."""
_STOPPED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a keyboard, a service manager and a closing terminal send."""


class _InOrder(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict(sorted(self.commands.items(), key=lambda command: ORDER.index(command[0])))


app = typer.Typer(
    help="Confidential employer-employee data in, protected tables out.\n\n"
    "New here? `sfumato demo` makes an economy, publishes tables from it and shows what protection costs. "
    "Then: `sfumato economy` for data of your own size, `sfumato check` to see what a release would cost, "
    "`sfumato run` to publish it, `sfumato serve` to show it.",
    cls=_InOrder,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for command in (demo, check, run, query, serve, assess):
    app.command()(command)
app.add_typer(economy_app, name="economy")
app.add_typer(tune_app, name="tune")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(budget_app, name="budget")
app.add_typer(keys_app, name="keys")
app.add_typer(users_app, name="users")


def _print_version(wanted: bool) -> None:
    if wanted:
        screen.print(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; an error of sfumato is printed as it is, without a traceback."""
    for number in _STOPPED_BY:
        if signal.getsignal(number) is not signal.SIG_IGN:  # what nohup lets a command ignore, it goes on ignoring
            signal.signal(number, _stop)
    try:
        app()
    except SfumatoError as error:
        if os.environ.get("SFUMATO_TRACEBACK"):
            raise
        fail(error)
    except OSError as error:
        fail(
            SfumatoError(
                str(error.filename or "file system"),
                expected="a file or folder that can be read or written",
                found=error.strerror or str(error),
                do="check that it exists, that you may use it, and that the disk is not full",
            )
        )
    except Exception as error:
        # The text of a foreign error may quote a record, so it is shown only to someone who asks for it.
        if os.environ.get("SFUMATO_TRACEBACK"):
            raise
        fail(
            SfumatoError(
                "sfumato",
                expected="this never to happen",
                found=f"an error of type {type(error).__name__}",
                do="set SFUMATO_TRACEBACK=1 and run again to see it (it may show confidential values), and report it",
            )
        )


def _stop(number: int, _: object) -> NoReturn:
    """End in order: records that lie in a folder of this run are removed, which a second signal does not stop."""
    for again in _STOPPED_BY:
        signal.signal(again, signal.SIG_IGN)
    with suppress(OSError):  # the terminal may be gone
        messages.print("\nStopped. Nothing was half-written; what was charged stays charged, and the next run goes on.")
    sys.exit(128 + number)
