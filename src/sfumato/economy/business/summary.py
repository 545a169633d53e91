"""What `sfumato economy business` says: for people and for machines."""

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.economy.business.generate import BusinessSurvey
from sfumato.economy.business.shape import BusinessShape

_NUMBERS = ("seed", "businesses", "enterprises", "employees", "replicates")


def business_summary(made: BusinessSurvey, shape: BusinessShape | None) -> tuple[RenderableType, dict[str, Any]]:
    """What a survey holds, with its shape when it was measured."""
    replicates = "with replicate weights" if made.replicates else "without replicate weights"
    lines: list[RenderableType] = [
        Text(
            f"{made.businesses:,} businesses of {made.enterprises:,} enterprises, {replicates}, and "
            f"{made.employees:,} of their employees, in {made.folder}."
        )
    ]
    data: dict[str, Any] = {
        "folder": str(made.folder),
        "release": str(made.release),
        **{name: getattr(made, name) for name in _NUMBERS},
    }
    if shape is not None:
        table = Table("shape", "here", box=box.SIMPLE_HEAD)
        for row in shape.rows():
            table.add_row(*row)
        lines.append(table)
        data["shape"] = [dict(zip(("quantity", "here"), row, strict=True)) for row in shape.rows()]
    lines.append(Text(f"Try: sfumato keys new {made.folder / 'sfumato.key'}, then sfumato check {made.release}"))
    return Group(*lines), data
