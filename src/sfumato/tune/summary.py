"""What `sfumato tune` says: the epsilon, the assumption behind it, and the curve around it."""

from dataclasses import fields
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.privacy.guarantee import plain
from sfumato.publish.structure import describe, number
from sfumato.reproduce.printed import spaced
from sfumato.tune.release_lines import protect_line
from sfumato.tune.tune import Point, Tuned

_BAR = 40


def tuned_summary(tuned: Tuned, table: str) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    lines: list[RenderableType] = [
        Text(f"epsilon = {plain(tuned.epsilon)} is the least that meets: {tuned.accuracy}.", style="bold"),
        Text(
            f"Table {table}, {tuned.method.name}: {tuned.guarantee}.\n"
            f"Assumed, not read off any data: {tuned.assumption}. {tuned.assumption.consequence}"
        ),
        _chart(tuned),
        Text(f"To use it: {_protect(tuned)}"),
    ]
    return Group(*spaced(lines)), {
        "table": table,
        "method": tuned.method.name,
        "accuracy": str(tuned.accuracy),
        "assumption": {
            "jobs": tuned.assumption.jobs,
            "largest_share": number(tuned.assumption.largest_share),
            "worker_cells": tuned.assumption.worker_cells,
            "text": str(tuned.assumption),
        },
        "epsilon": number(tuned.epsilon),
        "figure": tuned.figure,
        "guarantee": describe(tuned.guarantee),
        "curve": [
            {"epsilon": number(point.epsilon), "figure": point.figure, "meets": point.meets} for point in tuned.curve
        ],
    }


def _chart(tuned: Tuned) -> Table:
    """Bars of the error, or of the share of cells within the limit, against epsilon."""
    heading = "mean error" if tuned.accuracy.share is None else "cells within the limit"
    table = Table(box=None, title=f"{heading} against epsilon", title_justify="left")
    for name in ("epsilon", heading, ""):
        table.add_column(name, justify="left" if name == "" else "right")
    top = max((point.figure for point in tuned.curve if point.figure is not None), default=1.0) or 1.0
    for point in tuned.curve:
        table.add_row(plain(point.epsilon), *_line(tuned, point, top))
    return table


def _line(tuned: Tuned, point: Point, top: float) -> tuple[RenderableType, RenderableType]:
    if point.figure is None:
        return "", Text("the method does not exist here", style="dim")
    length = point.figure / top * _BAR
    bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
    in_percent = tuned.accuracy.share is not None or tuned.accuracy.relative
    shown = f"{point.figure:.1%}" if in_percent else f"{point.figure:,.2f}"
    mark = "  ◀" if point.epsilon == tuned.epsilon else ""
    return shown, Text((bar or "▏") + mark, style="dark_orange3" if point.meets else "dim")


def _protect(tuned: Tuned) -> str:
    """The line of a release file that uses the finding, with the options of the method that were set."""
    method: Any = tuned.method
    set_ = {option.name: getattr(method, option.name) for option in fields(method)}
    own = ("alpha", "epsilon", "worker_cells")
    options = {o.name: set_[o.name] for o in fields(method) if o.name not in own and set_[o.name] != o.default}
    if method.name == "smooth-pareto" and method.worker_cells:
        options["form"] = "scalar"
    return protect_line(method.name, tuned.epsilon, options)
