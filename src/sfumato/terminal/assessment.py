"""What `sfumato assess` says of the cost of protection; confidential."""

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.terminal.layout import Summary, near, spaced

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.assess.assess import Assessment
    from sfumato.assess.exposure import Exposure
    from sfumato.assess.utility import Utility

_BAR = 24


def assessment_summary(assessment: "Assessment") -> Summary:
    """What the protection costs, table by table; confidential."""
    from sfumato.assess.cube_report import cube_data, cube_words  # noqa: PLC0415 (charts are heavy to import)
    from sfumato.assess.people import people_data, people_words  # noqa: PLC0415

    lines: list[RenderableType] = [Text("CONFIDENTIAL: computed from true values.", style="bold red")]
    for utility, exposure in zip(assessment.utilities, assessment.exposures, strict=True):
        lines += [error_chart(utility), Text(_in_words(utility, exposure))]
    lines += [Text(people_words(found)) for found in assessment.people]
    lines += [Text(cube_words(found)) for found in assessment.cubes]
    lines.append(Text(f"The whole report, with charts: {near(assessment.report)}"))
    both = zip(assessment.utilities, assessment.exposures, strict=True)
    data = {"report": str(assessment.report), "tables": [_utility_data(*pair) for pair in both]}
    data |= {"people": list(map(people_data, assessment.people))} if assessment.people else {}
    data |= {"cubes": list(map(cube_data, assessment.cubes))} if assessment.cubes else {}
    return Group(*spaced(lines)), data


def error_chart(utility: "Utility") -> RenderableType:
    """Bars of the mean error by size of the cell."""
    table = Table(box=None, title=f"{utility.title}: mean error by true size of the cell", title_justify="left")
    for heading in (utility.sizes, "cells", "error", "", "relative"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    rows = (*utility.by_size, *([utility.margins] if utility.margins else []))
    top = max((row.mean_error for row in rows), default=1.0) or 1.0
    for size in rows:
        length = size.mean_error / top * _BAR
        bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
        relative = "" if size.relative_error is None else f"{size.relative_error:.1%}"
        table.add_row(
            size.label,
            f"{size.cells:,}",
            f"{size.mean_error:,.1f}",
            Text(bar or "▏", style="dark_orange3"),
            relative,
        )
    return table


def _utility_data(utility: "Utility", exposure: "Exposure") -> dict[str, Any]:
    figures = {name: value for name, value in asdict(utility).items() if name not in ("title", "true", "protected")}
    revealed = {name: value for name, value in asdict(exposure).items() if name not in ("name", "odds", "attacks")}
    return {
        **figures,
        **revealed,
        "odds": [
            asdict(pair) | {"factor": pair.factor if isfinite(pair.factor) else None, "belief": pair.belief}
            for pair in exposure.odds
        ],
        "attacks": [found.data() for found in exposure.attacks],
    }


def _in_words(utility: "Utility", exposure: "Exposure") -> str:
    """The figures of a table that fit into two sentences."""
    order = "" if utility.spearman is None else f"Rank correlation with the true cells {utility.spearman:.4f}. "
    attacks = "".join(
        f"The {found.attack} attack discloses {found.successes:,} of {found.targets:,} targets. "
        for found in exposure.attacks
    )
    if exposure.suppression is None:
        return (order + attacks).strip()
    hidden, cells = exposure.suppression.any_rule, exposure.suppression.cells
    return f"{order}{attacks}Suppression rules would hide at least {hidden:,} of the {cells:,} cells with jobs."
