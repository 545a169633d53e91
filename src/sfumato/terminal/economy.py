"""What `sfumato economy` says of what it made, whatever its kind."""

from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.terminal.layout import Summary, columns, spaced

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.economy.made import Made

_HEADINGS = ("shape", "here", "published")


class Measured(Protocol):
    """A measured shape."""

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """What, how much, and for some kinds what was published."""


def economy_summary(made: "Made", shape: Measured | None) -> Summary:
    """What an economy holds, with its shape when it was measured, beside the published one where there is one."""
    lines: list[RenderableType] = [Text(f"{made.words}, in {made.folder}.")]
    data: dict[str, Any] = made.data()
    if shape is not None:
        rows = shape.rows()
        table = columns(*_HEADINGS[: len(rows[0])])
        for row in rows:
            table.add_row(*row)
        lines.append(table)
        names = ("quantity", *_HEADINGS[1:])
        data["shape"] = [dict(zip(names, row, strict=False)) for row in rows]
    lines.append(Text(f"Try: {made.next_step}"))
    return Group(*spaced(lines)), data
