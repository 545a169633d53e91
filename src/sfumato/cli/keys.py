"""`sfumato keys`: make, show and rotate the key file; fingerprints are shown, never what is in the file."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Group
from rich.text import Text

from sfumato.cli.screen import AsJson, Table, screen, show
from sfumato.cli.usage import Commands
from sfumato.errors import KeyFileError

keys_app = typer.Typer(
    help="Make, show and rotate the key file, from which the permanent factor of every unit is computed.\n\n"
    "Only fingerprints are shown. Back the file up where only its owner can read it.",
    no_args_is_help=True,
    cls=Commands,
)

KeyFile = Annotated[Path, typer.Argument(metavar="FILE", help="The key file.")]
InnerEnd = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Inner end of the factors above one. Give both, 1 < a < b < 2, or neither."),
]
OuterEnd = Annotated[str | None, typer.Option(metavar="NUMBER", help="Outer end of the factors above one.")]

_ROTATING = (
    "A new key gives every unit a new factor, in every release from now on:",
    "- Figures published before and after it will differ by more than the economy changed.",
    "- A reader with tables under both keys can average them. On the whole that is nearer to the truth than either "
    "table, and a figure may even come out undistorted.",
    "So rotate when somebody may have read the key, not as a routine. Earlier keys stay in the file, and releases made "
    "with them can be computed again.",
)


@keys_app.command()
def new(file: KeyFile, a: InnerEnd = None, b: OuterEnd = None, as_json: AsJson = False) -> None:
    """Make a key file that only its owner can read; its content is drawn at random and never shown."""
    from sfumato.keys import new_key

    new_key(file, a=_end("a", a), b=_end("b", b))
    show(_summary(file, "Made a key file. Back it up where only its owner can read it, and never publish it."), as_json)


@keys_app.command("show")
def show_key(file: KeyFile, as_json: AsJson = False) -> None:
    """Show the fingerprint of every key in the file and when it was made."""
    show(_summary(file), as_json)


@keys_app.command()
def rotate(
    file: KeyFile,
    a: InnerEnd = None,
    b: OuterEnd = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put a new key in force, which changes every factor; earlier keys stay in the file.

    For a key that somebody may have read. A reader with tables under both keys can average them.
    """
    from sfumato.keys import describe_key, rotate_key

    ends = {"a": _end("a", a), "b": _end("b", b)}
    describe_key(file)  # a file that cannot be rotated is refused before anybody is asked
    if not yes:
        _ask(as_json)
    rotate_key(file, **ends)
    show(_summary(file, "A new key is in force. Back the file up again."), as_json)


def _ask(as_json: bool) -> None:
    if as_json:
        raise KeyFileError(
            "sfumato keys rotate",
            expected="--yes, since nobody can be asked when the output is JSON",
            found="no --yes",
            do="run it without --json to read what a new key means, or add --yes",
        )
    screen.print("\n".join(_ROTATING))
    typer.confirm("Put a new key in force?", abort=True, err=True)


def _end(name: str, text: str | None) -> Fraction | None:
    """The number typed for an end; unlike others it is not repeated in the error, since it may be a secret."""
    from sfumato.description import exact

    if text is None:
        return None
    try:
        number: Fraction | None = exact(text)
    except ValueError:
        number = None
    if number is None:
        raise KeyFileError(
            f"--{name}", expected="a number such as 1.2", found="something else", do="correct the number"
        )
    return number


def _summary(file: Path, *words: str) -> tuple[Any, dict[str, Any]]:
    from sfumato.keys import describe_key

    generations = describe_key(file)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("fingerprint", "made (UTC)", ""):
        table.add_column(column)
    for generation in generations:
        in_force = generation is generations[-1]
        table.add_row(generation.fingerprint, f"{generation.made:%Y-%m-%d %H:%M:%S}", "in force" if in_force else "")
    data = {
        "file": str(file),
        "in_force": generations[-1].fingerprint,
        "generations": [{"fingerprint": g.fingerprint, "made": g.made.isoformat()} for g in generations],
    }
    return Group(*map(Text, words), table), data
