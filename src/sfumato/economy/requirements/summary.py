"""What `sfumato economy requirements` says: for people and for machines."""

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.economy.requirements.generate import RequirementsSurvey
from sfumato.economy.requirements.shape import RequirementsShape

_NUMBERS = ("seed", "quotes", "establishments", "replicates")


def requirements_summary(
    made: RequirementsSurvey, shape: RequirementsShape | None
) -> tuple[RenderableType, dict[str, Any]]:
    """What a survey holds, with its shape when it was measured."""
    replicates = "with replicate weights" if made.replicates else "without replicate weights"
    lines: list[RenderableType] = [
        Text(f"{made.quotes:,} quotes of {made.establishments:,} establishments, {replicates}, in {made.folder}.")
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
    return Group(*lines), data
