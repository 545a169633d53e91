"""What `sfumato economy` says of what it made."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.terminal.layout import Summary, columns, spaced

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.economy.generate import Economy
    from sfumato.economy.shape import Shape


def economy_summary(made: "Economy", shape: "Shape | None") -> Summary:
    """What an economy holds, beside the published shape when it was measured."""
    lines: list[RenderableType] = [
        Text(
            f"{made.jobs:,} jobs of {made.workers:,} workers in {made.establishments:,} establishments and "
            f"{made.places:,} places, in {made.folder}."
        )
    ]
    data = economy_data(made)
    if shape is not None:
        table = columns("shape", "here", "published")
        for row in shape.rows():
            table.add_row(*row)
        lines.append(table)
        data["shape"] = [dict(zip(("quantity", "here", "published"), row, strict=True)) for row in shape.rows()]
    lines.append(Text(f"Try: sfumato check {made.release}"))
    return Group(*spaced(lines)), data


def economy_data(made: "Economy") -> dict[str, Any]:
    """An economy as numbers."""
    return {
        "folder": str(made.folder),
        "release": str(made.release),
        **{name: getattr(made, name) for name in ("seed", "jobs", "workers", "establishments", "places")},
    }
