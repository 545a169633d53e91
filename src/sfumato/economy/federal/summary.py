"""What `sfumato economy federal` says: for people and for machines."""

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.economy.federal.generate import FederalWorkforce
from sfumato.economy.federal.shape import FederalShape

_NUMBERS = ("seed", "persons", "employers", "jobs", "quarters", "job_quarters")


def federal_summary(made: FederalWorkforce, shape: FederalShape | None) -> tuple[RenderableType, dict[str, Any]]:
    """What a workforce holds, beside the published shape when it was measured."""
    panel = f", {made.job_quarters:,} job-quarters in {made.quarters} quarters" if made.quarters else ""
    lines: list[RenderableType] = [
        Text(
            f"{made.jobs:,} jobs of {made.persons:,} persons with {made.employers:,} employers{panel}, "
            f"in {made.folder}."
        )
    ]
    data: dict[str, Any] = {
        "folder": str(made.folder),
        "release": str(made.release),
        **{name: getattr(made, name) for name in _NUMBERS},
    }
    if shape is not None:
        table = Table(box=box.SIMPLE_HEAD)
        for heading in ("shape", "here", "published"):
            table.add_column(heading)
        for row in shape.rows():
            table.add_row(*row)
        lines.append(table)
        data["shape"] = [dict(zip(("quantity", "here", "published"), row, strict=True)) for row in shape.rows()]
    lines.append(Text(f"Try: sfumato keys new {made.folder / 'sfumato.key'}, then sfumato check {made.release}"))
    return Group(*lines), data
