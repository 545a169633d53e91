"""The command `sfumato`: thin doors to the package, with plain words and no tracebacks."""

import errno
import gc
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from sfumato import __version__
from sfumato.cli.log import log
from sfumato.cli.screen import end_if_stopped, fail, messages, screen, stopped_by
from sfumato.cli.usage import EXIT_CODES, HELP, MARKUP, NOT_UNDERSTOOD, Commands, misunderstood
from sfumato.errors import DiskError, SfumatoError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": ("sfumato.cli.start:start", "Look at your files and write a first release file for them."),
    "check": (
        "sfumato.cli.release:check",
        "Check a release and its data: what it would guarantee, cost and lose.",
    ),
    "preview": (
        "sfumato.cli.preview:preview",
        "What a run would cost and reveal, before any charge: a confidential report.",
    ),
    "compare": (
        "sfumato.cli.compare:compare",
        "The same tables under noise, factors, suppression …: a confidential comparison.",
    ),
    "run": ("sfumato.cli.run:run", "Publish a release: charge its budget, count, protect, write the bundle."),
    "query": ("sfumato.cli.query:query", "Ask a bundle: any table of a cube, or rows of a published table."),
    "serve": ("sfumato.cli.serve:serve", "Serve bundles: a page for readers, PxWebApi 2 and 1 and SDMX for programs."),
    "mcp": ("sfumato.cli.mcp:mcp", "Let language models read bundles, with the error of every figure."),
    "assess": ("sfumato.cli.release:assess", "What the protection costs and withstands: a confidential report."),
    "tune": (
        "sfumato.cli.tune:tune_app",
        "Find parameters that meet a stated accuracy or risk, without looking at data.",
    ),
    "plan": (
        "sfumato.cli.plan:plan",
        "Find epsilons from how accurate tables are to be, by public numbers.",
    ),
    "budget": ("sfumato.cli.budget:budget_app", "Show every privacy budget, or set one."),
    "keys": ("sfumato.cli.keys:keys_app", "Make, show and rotate key files."),
    "doctor": ("sfumato.cli.doctor:doctor", "Whether this machine and a release are fit for a run, and what to mend."),
    "users": ("sfumato.cli.users:users_app", "Who may ask a server for live tables."),
}
"""The commands of this package: where each is found, and what `sfumato --help` says; packages may plug in more."""
ORDER = (
    "demo",
    "economy",
    "start",
    "check",
    "preview",
    "compare",
    "run",
    "query",
    "serve",
    "mcp",
    "assess",
    "tune",
    "plan",
    "reproduce",
    "doctor",
    "budget",
    "keys",
    "users",
)
"""Commands are listed in the order in which someone new meets them; those of other packages come last."""
_ALLOCATED = 100_000
"""Objects after which Python looks for unused ones: at its usual 700 that takes a quarter of the start of a command."""
_STOPPED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a keyboard, a service manager and a closing terminal send."""


@cache
def known_commands() -> dict[str, tuple[str, str]]:
    """Every command by its name, in order; other packages plug theirs in as `sfumato.commands`."""
    plugged = {name: found for plug in entry_points(group="sfumato.commands") for name, found in plug.load().items()}
    known = {**plugged, **COMMANDS}
    return {name: known[name] for name in (*(n for n in ORDER if n in known), *sorted(set(known) - set(ORDER)))}


@cache
def command(name: str) -> Any:
    """A command with its options; only now is it imported."""
    module, _, attribute = known_commands()[name][0].partition(":")
    found = getattr(import_module(module), attribute)
    holder = typer.Typer(rich_markup_mode=MARKUP, pretty_exceptions_enable=False)
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]


class _Commands(Commands):
    """Commands that are listed without being imported."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--version", *args[1:]] if args[:1] == ["version"] else args)

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(known_commands())

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in known_commands():
            return None
        return TyperCommand(cmd_name, help=known_commands()[cmd_name][1], rich_markup_mode=MARKUP)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if found is None or name is None else command(name), rest


app = typer.Typer(
    help="Confidential employer-employee data in, protected tables out.\n\n"
    "New here? `sfumato demo` makes an economy, publishes tables from it and shows what protection costs. "
    "Then: `sfumato start` with files of yours, or `sfumato economy` for data of any size; `sfumato check` to see what "
    "a release would cost, "
    "`sfumato run` to publish it, `sfumato serve` to show it.",
    epilog=f"Exit codes: {', '.join(f'{code} {word}' for code, (word, _) in EXIT_CODES.items())}. "
    "docs/scheduling.md says what to do about each.",
    cls=_Commands,
    context_settings={"help_option_names": HELP},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        screen.print(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    _version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; an error of sfumato is printed as it is, without a traceback."""
    gc.set_threshold(_ALLOCATED)
    try:
        _main()
    except SystemExit as ended:
        log.end(ended.code if isinstance(ended.code, int) else 0)
        raise
    finally:
        gc.freeze()  # what ends with the process is not looked through once more


def _main() -> None:
    for number in _STOPPED_BY:
        if signal.getsignal(number) is not signal.SIG_IGN:  # what nohup lets a command ignore, it goes on ignoring
            signal.signal(number, _stop)
    try:
        code = _called()
        sys.stdout.flush()  # what cannot be written is found out here, and not when nobody can tell any more
    except typer.Abort:
        messages.print("Stopped: nothing was changed.")
        sys.exit(1)
    except NOT_UNDERSTOOD as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # help was printed, or is the message
            messages.print(error.format_message(), end="")
            sys.exit(SfumatoError.exit_code)
        fail(misunderstood(error))
    except SfumatoError as error:
        if os.environ.get("SFUMATO_TRACEBACK"):
            raise
        fail(error)
    except OSError as error:
        if error.filename is None:  # the output itself: the interpreter would complain once more as it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            sys.exit(1)
        fail(_of_the_system(error))
    except Exception as error:
        # The text of a foreign error may quote a record, so it is shown only to someone who asks for it.
        if os.environ.get("SFUMATO_TRACEBACK"):
            raise
        unforeseen = SfumatoError(
            "sfumato",
            expected="this never to happen",
            found=f"an error of type {type(error).__name__}",
            do="set SFUMATO_TRACEBACK=1 and run again to see it (it may show confidential values), and report it",
        )
        fail(unforeseen, code=1)
    sys.exit(code or 0)


def _called() -> Any:
    try:
        return app(standalone_mode=False, prog_name="sfumato")
    except Exception:
        end_if_stopped()
        raise


def _of_the_system(error: OSError) -> DiskError:
    """What the operating system refuses, in words; its own text may quote a record."""
    remedies = {
        errno.EACCES: "have its owner or your administrator give you the permission",
        errno.EROFS: "choose a folder that can be written to",
        errno.ENOSPC: "free space on the disk and run again",
        errno.ENOENT: "check the path",
    }
    return DiskError(
        str(error.filename or "standard output"),
        expected="a file or folder that can be read or written",
        found=(error.strerror or f"an error of type {type(error).__name__}").lower(),
        do=remedies.get(error.errno or 0, "check that it exists, that you may use it, and that the disk is not full"),
    )


def _stop(number: int, _: object) -> NoReturn:
    """End in order: records that lie in a folder of this run are removed, which a second signal does not stop."""
    for again in _STOPPED_BY:
        signal.signal(again, signal.SIG_IGN)
    stopped_by.append(signal.Signals(number))
    with suppress(OSError):  # the terminal may be gone
        messages.print("\nStopped. Nothing was half-written; what was charged stays charged, and the next run goes on.")
    sys.exit(128 + number)
