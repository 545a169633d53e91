"""How words on the command line are understood, what is said of those that are not, and what a command ends with."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Literal

import typer
from typer.core import TyperGroup

from sfumato.cli.screen import UNLIMITED
from sfumato.errors import UsageError

EXIT_CODES: Mapping[int, tuple[str, str]] = {
    0: ("done", "done, also where nothing was left to do"),
    1: ("unforeseen", "an error that nobody foresaw, a question answered with no, or a reader who closed the output"),
    2: ("not understood", "the command, an option or a value was not understood"),
    3: ("release file", "the release file, or a method with these parameters"),
    4: ("data", "the data do not match their description; nothing was charged"),
    5: ("budget", "the budget does not allow it; nothing was charged"),
    6: ("ledger", "the ledger or a stored answer is missing, damaged or older than it was"),
    7: (
        "bundle",
        "the bundle cannot be written, is not as it was published, or a period changed without --revise",
    ),
    8: ("key file", "the key file or the list of users is missing, damaged or not secret enough"),
    9: ("this machine", "a full disk, a file that may not be read or written, an engine that is not there"),
    10: ("another run", "another run works on the same ledger, and this one was told not to wait"),
    129: ("terminal closed", "stopped, as the terminal was closed"),
    130: ("Ctrl-C", "stopped from the keyboard"),
    143: ("terminated", "stopped by the system or by another program"),
}
"""What the exit codes of every command mean, in a word and in a sentence."""

MARKUP: Literal["markdown"] | None = "markdown" if get_terminal_size().columns >= 80 else None
"""How help is laid out: in columns side by side, which on narrower screens would cut words."""
HELP = ["-h", "--help"]
"""What asks for help, after every command."""


class Commands(TyperGroup):
    """Commands below one word: `help` is understood, and of a misspelt command the nearest is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`help run` is `run --help`."""
        if args[:1] == ["help"] and self.get_command(ctx, "help") is None:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant."""
        if self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            raise UsageError(
                ctx.command_path,
                expected=f"one of {', '.join(known)}",
                found=f"'{args[0]}'",
                do=_nearest(args[0], known, f"`{ctx.command_path} --help` says what each does"),
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands with all that is said of them, where they are not in columns."""
        found: dict[str, Any] = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [(name, below.get_short_help_str(UNLIMITED)) for name, below in found.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def group_with_default(name: str) -> type[Commands]:
    """A group that takes whatever names none of its commands as arguments of the default one."""

    class WithDefault(Commands):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if args and args[0] not in (*self.commands, *ctx.help_option_names, "help"):
                self._refuse_misspelt(ctx, args[0])
                args = [name, *args]
            return super().parse_args(ctx, args)

        def _refuse_misspelt(self, ctx: Any, word: str) -> None:
            if word.startswith("-") or "/" in word:  # an option, or a path that cannot be meant for a command
                return
            if get_close_matches(word, self.commands, n=1, cutoff=0.8) and not Path(word).exists():
                raise UsageError(
                    ctx.command_path,
                    expected=f"a path, or one of {', '.join(self.commands)}",
                    found=f"'{word}'",
                    do=f"{_nearest(word, self.commands, '')} A file or folder of this name is written ./{word}",
                )

    return WithDefault


NOT_UNDERSTOOD: type[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
"""What the parser raises; of which package it is differs from version to version."""


def misunderstood(error: Any) -> UsageError:
    """What the parser says, as every error of sfumato does."""
    where = error.ctx.command_path if error.ctx is not None else "sfumato"
    more = f"`{where} --help` lists what it takes"
    parameters = error.ctx.command.params if error.ctx is not None else []
    if typed := getattr(error, "option_name", None):
        if hasattr(error, "possibilities"):
            known = [flag for parameter in parameters for flag in parameter.opts if flag.startswith("--")]
            options = ", ".join([*known, "--help"])
            return UsageError(where, expected=f"one of {options}", found=typed, do=_nearest(typed, known, more))
        return UsageError(where, expected=f"a value after {typed}", found="none", do=more)
    parameter = getattr(error, "param", None)
    if parameter is None:
        return UsageError(where, expected="words that it understands", found=error.format_message(), do=more)
    name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name.upper()
    about = f": {parameter.help}".rstrip(".") if getattr(parameter, "help", None) else ""
    missing = not error.message
    return UsageError(
        where,
        expected=f"{name}{about}",
        found="nothing" if missing else error.message.rstrip("."),
        do=f"add it; {more}" if missing else more,
    )


def _nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else otherwise
