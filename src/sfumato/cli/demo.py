"""`sfumato demo`: the whole tour in one command."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.screen import AsJson, progress, show


def demo(
    out: Annotated[Path, typer.Option(help="Folder to work in.")] = Path("demo"),
    jobs: Annotated[int, typer.Option(help="Number of jobs in the economy.")] = 1_000_000,
    as_json: AsJson = False,
) -> None:
    """Make an economy, publish tables from it, and see what the protection costs: the ten-minute tour in one."""
    from sfumato.demo import run_demo
    from sfumato.terminal.demo import demo_summary

    with progress(hidden=as_json) as update:
        tour = run_demo(out, jobs=jobs, progress=update)
    show(demo_summary(tour), as_json)
