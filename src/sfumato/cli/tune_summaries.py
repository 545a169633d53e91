"""What `sfumato tune` says: the epsilon or magnitudes, the assumption behind them, and the curve around."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.screen import Table, printed_table, spaced
from sfumato.privacy.guarantee import plain
from sfumato.statistics.cube.tune import TunedCube
from sfumato.statistics.jobs.tune import Point, Tuned, budget_line, protect_line
from sfumato.statistics.jobs.tune_thresholds import Thresholds
from sfumato.statistics.people.percentiles import CURVES
from sfumato.statistics.people.tune import TunedPercentiles, TunedReport, TunedTable
from sfumato.statistics.people.tune_tails import TunedTails
from sfumato.statistics.published import number
from sfumato.statistics.totals.calibration import Evaluation, Tried, frontier
from sfumato.statistics.totals.tune import Answer, Relieved

# What `sfumato tune` says: the epsilon, the assumption behind it, and the curve around it.

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
        "guarantee": tuned.guarantee.described(),
        "curve": [
            {"epsilon": number(point.epsilon), "figure": point.figure, "meets": point.meets} for point in tuned.curve
        ],
    }


def _chart(tuned: Tuned | TunedCube) -> Table:
    """Bars of the error, or of the share of cells within the limit, against epsilon."""
    heading = "mean error" if tuned.accuracy.share is None else "cells within the limit"
    table = Table(box=None, title=f"{heading} against epsilon", title_justify="left")
    for name in ("epsilon", heading, ""):
        table.add_column(name, justify="left" if name == "" else "right")
    top = max((point.figure for point in tuned.curve if point.figure is not None), default=1.0) or 1.0
    for point in tuned.curve:
        table.add_row(plain(point.epsilon), *_line(tuned, point, top))
    return table


def _line(tuned: Tuned | TunedCube, point: Point, top: float) -> tuple[RenderableType, RenderableType]:
    if point.figure is None:
        return "", Text("the method does not exist here", style="dim")
    length = point.figure / top * _BAR
    bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
    in_percent = tuned.accuracy.share is not None or tuned.accuracy.relative
    shown = f"{point.figure:.1%}" if in_percent else f"{point.figure:,.2f}"
    mark = "  ◀" if point.epsilon == tuned.epsilon else ""
    return shown, Text((bar or "▏") + mark, style="dark_orange3" if point.meets else "dim")


def tuned_cube_summary(tuned: TunedCube) -> tuple[RenderableType, dict[str, Any]]:
    """The finding about a cube as text for people and as data for machines."""
    cap = tuned.section.cap
    lines: list[RenderableType] = [
        Text(
            f"epsilon = {plain(tuned.epsilon)} with a cap of {cap} is the least that meets: {tuned.accuracy}.",
            style="bold",
        ),
        Text(
            f"Cube {tuned.cube.name}, tables of {tuned.dimensions} dimensions: {tuned.guarantee}.\n{tuned.assumption}.",
            style="bold red" if tuned.confidential else "",
        ),
        _chart(tuned),
        Text("To use it:\n" + "\n".join(f"{key} = {value}" for key, value in tuned.lines().items())),
    ]
    return Group(*spaced(lines)), {
        "cube": tuned.cube.name,
        "dimensions": tuned.dimensions,
        "accuracy": str(tuned.accuracy),
        "noisiest": list(tuned.noisiest),
        "confidential": tuned.confidential,
        "epsilon": number(tuned.epsilon),
        "cap": cap,
        "figure": tuned.figure,
        "guarantee": tuned.guarantee.described(),
        "lines": tuned.lines(),
        "curve": [
            {"epsilon": number(point.epsilon), "figure": point.figure, "meets": point.meets} for point in tuned.curve
        ],
    }


def _protect(tuned: Tuned) -> str:
    """The line of a release file that uses the finding, with the options of the method that were set."""
    method: Any = tuned.method
    set_ = {option.name: getattr(method, option.name) for option in fields(method)}
    own = ("alpha", "epsilon", "worker_cells")
    options = {o.name: set_[o.name] for o in fields(method) if o.name not in own and set_[o.name] != o.default}
    if method.name == "smooth-pareto" and method.worker_cells:
        options["form"] = "scalar"
    return protect_line(method.name, tuned.epsilon, options)


# What `sfumato tune top-contributors` says: risks and loss of given magnitudes, the best ones, and the curve.

_BAR_SUMMARY = 30
_LEVELS = (0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01)
"""Risks of which the curve is printed."""


def contributors_summary(answer: Answer, chart: Path | None = None) -> tuple[RenderableType, dict[str, Any]]:
    """The answer as text for people and as data for machines."""
    asked, best = answer.question, frontier(answer.tried)
    lines: list[RenderableType] = [
        Text(
            f"Contributors {asked.shape}{f' and {asked.shape.rest:g} in smaller ones' if asked.shape.rest else ''}; "
            f"noise on 1 ± {asked.spread:g}{', parity rule' if asked.parity else ''}. Computed from the method alone."
        )
    ]
    if answer.given is not None:
        lines += _evaluation(answer, answer.given, "Given")
    if answer.optimal is not None:
        lines += _evaluation(answer, answer.optimal, f"Least loss that withstands {_attacks(answer)}")
    if answer.refusal is not None:
        lines.append(Text(str(answer.refusal), style="red"))
    lines += list(_evaluation(answer, answer.by_shape, "By shape, from the published optima"))[:2]
    if answer.relieved is not None:
        lines += _relief(answer, answer.relieved)
    if best.worst_risk.min() <= _LEVELS[0]:
        lines.append(_curve(answer, best))
    if chart is not None:
        lines.append(Text(f"Chart: {chart}"))
    return Group(*spaced(lines)), {
        "contributors": str(asked.shape),
        "rest": asked.shape.rest,
        "attacks": [attack.number for attack in asked.binding],
        "parity": asked.parity,
        "spread": asked.spread,
        "step": asked.step,
        "falling": asked.falling,
        "given": None if answer.given is None else _data(answer, answer.given),
        "optimal": None if answer.optimal is None else _data(answer, answer.optimal),
        "by_shape": _data(answer, answer.by_shape),
        "relieved": None if answer.relieved is None else _relief_data(answer, answer.relieved),
        "refusal": None if answer.refusal is None else str(answer.refusal),
        "curve": [
            {"m": m.tolist(), "loss": float(loss), "risk": float(risk)}
            for m, loss, risk in zip(best.magnitudes, best.loss, best.worst_risk, strict=True)
        ],
        "chart": None if chart is None else str(chart),
    }


def _evaluation(answer: Answer, found: Evaluation, words: str) -> Iterator[RenderableType]:
    yield Text(f"{words}: m = {magnitudes_text(found)}, mean loss {found.loss:.1%} of the total", style="bold")
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("attack", "within", "risk", "at most", ""):
        table.add_column(heading, justify="left" if heading in ("attack", "") else "right")
    for verdict in found.verdicts:
        attack = verdict.attack
        mark = Text("kept", style="green") if verdict.is_met else Text("broken", style="bold red")
        if attack not in answer.question.binding:
            mark = Text(f"{mark.plain}, not asked for", style="dim")
        risk = f"{verdict.risk:.3f}"
        table.add_row(f"{attack.number}: {attack.words}", f"{attack.within:.0%}", risk, f"{attack.limit:g}", mark)
    yield table
    rule = "Without" if answer.question.parity else "With"
    yield Text(f"{rule} the parity rule the risk of attack 2 would be {_other(answer, found):.3f}.")


def _relief(answer: Answer, found: Relieved) -> Iterator[RenderableType]:
    asked = answer.question
    words = f"Relieved by a weight of {asked.weight:g} and a sampling error of {asked.sampling_error:.1%}"
    yield from list(_evaluation(answer, found.evaluation, words))[:2]
    unsure = ", ".join(f"{risk:.3f}" for risk in found.sample_unknown)
    yield Text(
        "These readers know that the target was sampled, and its weight. One who takes the weight for one succeeds by "
        f"attack 1 with {found.weight_unknown:.3f}; who does not know whether it was sampled, with {unsure}."
    )


def _relief_data(answer: Answer, found: Relieved) -> dict[str, Any]:
    unsure = {"weight_unknown": found.weight_unknown, "sample_unknown": list(found.sample_unknown)}
    asked = {"weight": answer.question.weight, "sampling_error": answer.question.sampling_error}
    return {**asked, **_data(answer, found.evaluation), **unsure}


def _curve(answer: Answer, best: Tried) -> Table:
    """The least loss for some risks, as bars."""
    table = Table(box=None, title=f"Least loss by acceptable risk, {_attacks(answer)}", title_justify="left")
    for heading in ("risk", "loss", "m", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    top = float(best.loss.max())
    for level in _LEVELS:
        reached = best.worst_risk <= level
        if reached.any():
            place = int(reached.argmax())
            loss = float(best.loss[place])
            bar = Text("█" * max(int(loss / top * _BAR_SUMMARY), 1), style="dark_orange3")
            table.add_row(f"{level:g}", f"{loss:.1%}", ",".join(f"{m:g}" for m in best.magnitudes[place]), bar)
    return table


def _attacks(answer: Answer) -> str:
    numbers = [str(attack.number) for attack in answer.question.binding]
    return f"attack{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _other(answer: Answer, found: Evaluation) -> float:
    """The risk of attack 2 under the other rule for directions."""
    other = answer.question.evaluate(found.magnitudes, parity=not answer.question.parity)
    return next(verdict.risk for verdict in other.verdicts if verdict.attack.number == 2)


def _data(answer: Answer, found: Evaluation) -> dict[str, Any]:
    parity = "without_parity" if answer.question.parity else "with_parity"
    return {
        "m": list(found.magnitudes),
        "loss": found.loss,
        "attacks": [
            {
                "attack": verdict.attack.number,
                "v": verdict.attack.within,
                "risk": verdict.risk,
                "limit": verdict.attack.limit,
                "kept": verdict.is_met,
                **({parity: _other(answer, found)} if verdict.attack.number == 2 else {}),
            }
            for verdict in found.verdicts
        ],
    }


def magnitudes_text(found: Evaluation) -> str:
    """Magnitudes as they are typed."""
    return ",".join(f"{magnitude:g}" for magnitude in found.magnitudes)


# What `sfumato tune percentiles` says: expected errors by size and ε, and the curve to choose.


def percentiles_summary(tuned: TunedPercentiles) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    line = protect_line(tuned.method.name, tuned.method.epsilon, tuned.options | {"curve": tuned.recommended})
    weight = tuned.method.largest_weight
    lines: list[RenderableType] = [
        Text(f"Expected error of a percentile as a share of it, and the curve with the least: {tuned.table}."),
        Text(
            f"Assumed, not read off any data: log-normal cells as the {len(tuned.method.bins)} bins lead one to "
            "expect. Epsilon is that of a cell, which is what one period has."
            + (f" Sizes are what people weigh, over the largest weight of {weight:,}." if weight > 1 else "")
        ),
        _by_size(tuned),
        Text(
            f"Over these sizes {tuned.recommended} has the least error at the release's epsilon of "
            f"{plain(tuned.period_epsilon)} a cell: {line}"
        ),
    ]
    return Group(*spaced(lines)), {
        "table": tuned.table,
        "bins": len(tuned.method.bins),
        "rows": [
            {
                "people": row.people,
                "epsilon": number(row.epsilon),
                "curve": row.best.curve,
                "error": row.best.error,
                "by_percentile": {
                    plain(place): error for place, error in zip(tuned.method.at, row.best.errors, strict=True)
                },
                "by_curve": {curve: row.error(curve) for curve in CURVES},
            }
            for row in tuned.expected
        ],
        "recommended": tuned.recommended,
        "lines": {tuned.table: line},
    }


def _by_size(tuned: TunedPercentiles) -> Table:
    epsilons = list(dict.fromkeys(row.epsilon for row in tuned.expected))
    table = printed_table("people", *(f"epsilon {plain(epsilon)}" for epsilon in epsilons), numbers=len(epsilons) + 1)
    for people in dict.fromkeys(row.people for row in tuned.expected):
        rows = [row for row in tuned.expected if row.people == people]
        table.add_row(f"{people:,}", *(f"{row.best.error:.1%} {row.best.curve}" for row in rows))
    return table


# What `sfumato tune thresholds` says: from which value on a cell is listed.


def thresholds_summary(tuned: Thresholds) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    method, epsilons = tuned.method, list(dict.fromkeys(row.epsilon for row in tuned.expected))
    table = printed_table(
        "largest establishment", *(f"epsilon {plain(epsilon)}" for epsilon in epsilons), numbers=len(epsilons) + 1
    )
    for largest in dict.fromkeys(row.largest for row in tuned.expected):
        rows = [row for row in tuned.expected if row.largest == largest]
        table.add_row(f"{largest:,}", *(f"{row.threshold:,}" for row in rows))
    hidden = f"establishments (alpha {plain(method.alpha)}) and persons" if method.employers else "persons alone"
    lines: list[RenderableType] = [
        Text(f"Least value that is listed, by the largest establishment of the workplace cell: {tuned.table}."),
        Text(
            f"Hidden: {hidden}. Of {method.width:,} worker cells of a workplace cell, {float(method.false_cells):g} "
            "without any job are listed on average and at most. No data are read."
        ),
        table,
    ]
    return Group(*spaced(lines)), {
        "table": tuned.table,
        "worker_cells": method.width,
        "employers": method.employers,
        "false_cells": number(method.false_cells),
        "rows": [
            {"largest": row.largest, "epsilon": number(row.epsilon), "threshold": row.threshold, "error": row.error}
            for row in tuned.expected
        ],
    }


# What `sfumato tune tails` says: the ε, what is found at others and by size, and what suppression would leave.


def tails_summary(tuned: TunedTails) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    line = protect_line(_method_name(tuned), tuned.epsilon, tuned.options)
    lines: list[RenderableType] = [
        Text("CONFIDENTIAL: found from the true groups.", style="bold red"),
        Text(
            f"epsilon = {plain(tuned.epsilon)} is the least at which {plain(100 * tuned.wanted)}% of the groups in a "
            f"tail are found: {tuned.table}.",
            style="bold",
        ),
        Text(
            f"{tuned.groups:,} groups of {tuned.least} people or more; tails are the bottom and the top "
            f"{tuned.tail:.0%}. Means of some draws of the noise."
        ),
        _tails_table(tuned),
        Text(f"To use it: {line}"),
    ]
    return Group(*spaced(lines)), {
        "table": tuned.table,
        "confidential": True,
        "wanted": number(tuned.wanted),
        "tail": tuned.tail,
        "least": tuned.least,
        "groups": tuned.groups,
        "epsilon": number(tuned.epsilon),
        "found": tuned.at.found,
        "right": tuned.at.right,
        "published": tuned.at.published,
        "curve": [
            {"epsilon": number(epsilon), "found": line.found, "right": line.right, "published": line.published}
            for epsilon, line in tuned.curve
        ],
        "suppression": [
            {"rule": rule.protection, "found": rule.found, "published": rule.published} for rule in tuned.suppression
        ],
        "lines": {tuned.table: line},
    }


def _tails_table(tuned: TunedTails) -> Table:
    shown = printed_table("published by", "found", "right of those named", "groups published", numbers=3)
    lines = [(f"epsilon {plain(epsilon)}", line) for epsilon, line in tuned.curve]
    for name, line in (*lines, *((rule.protection, rule) for rule in tuned.suppression)):
        mark = "bold" if name == f"epsilon {plain(tuned.epsilon)}" else ""
        shown.add_row(name, f"{line.found:.1%}", f"{line.right:.1%}", f"{line.published:.1%}", style=mark)
    return shown


# What `sfumato tune report` says: ε by year and table, their sum, and the lines to write.

_LISTED = 8
"""So many different sizes are listed."""


def report_summary(tuned: TunedReport) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    lines: list[RenderableType] = [
        Text(f"epsilon = {plain(tuned.epsilon)} in all is the least that meets: {tuned.target}.", style="bold"),
        Text(f"{tuned.cells.source}.", style="bold red" if tuned.cells.confidential else ""),
        _by_table(tuned),
        Text(f"{_sum(tuned)} = {plain(tuned.epsilon)}: a person may be in a cell of every period."),
        Text("To use it:\n" + "\n".join(f"{part}: {line}" for part, line in _lines(tuned).items())),
    ]
    return Group(*spaced(lines)), {
        "threshold": number(tuned.target.threshold),
        "share": number(tuned.target.share),
        "cells": {"number": len(tuned.cells), "text": tuned.cells.source, "confidential": tuned.cells.confidential},
        "periods": [
            {"period": period, "epsilon": {table.name: number(table.epsilons[period]) for table in tuned.tables}}
            for period in tuned.periods
        ],
        "tables": [_table_data(table) for table in tuned.tables],
        "epsilon": number(tuned.epsilon),
        "lines": _lines(tuned),
    }


def _sum(tuned: TunedReport) -> str:
    """The terms that add up: of one period times their number, or of every period."""
    terms = [" + ".join(plain(table.epsilons[period]) for table in tuned.tables) for period in tuned.periods]
    return f"{len(terms)} x ({terms[0]})" if len(set(terms)) == 1 else " + ".join(f"({term})" for term in terms)


def _a_period(table: TunedTable) -> str:
    """What a period spends, or the least and the most."""
    least, most = min(table.epsilons.values()), max(table.epsilons.values())
    return plain(least) if least == most else f"{plain(least)} to {plain(most)}"


def _by_table(tuned: TunedReport) -> Table:
    shown = printed_table("table", "of", "epsilon a period", "periods", "in all", "cells within", numbers=4)
    for table in tuned.tables:
        shown.add_row(
            table.name,
            table.statistic,
            _a_period(table),
            f"{len(tuned.periods)}",
            plain(table.epsilon),
            f"{table.share:.1%}",
        )
        if 1 < len(np.unique(tuned.cells.people)) <= _LISTED and len(table.within) == len(tuned.cells):
            for people in np.unique(tuned.cells.people):
                within = table.within[tuned.cells.people == people].mean()
                shown.add_row(f"  {people:,} people", "", "", "", "", f"{within:.1%}", style="dim")
    return shown


def _table_data(table: TunedTable) -> dict[str, Any]:
    return {
        "table": table.name,
        "statistic": table.statistic,
        "method": _method_name(table),
        "period_epsilon": number(table.period_epsilon),
        "periods": len(table.epsilons),
        "epsilon": number(table.epsilon),
        "share": table.share,
        "cells": len(table.within),
    }


def _lines(tuned: TunedReport) -> dict[str, str]:
    """The lines of the release file, by the section or the table they belong to."""
    protects = {table.name: protect_line(_method_name(table), table.written, table.options) for table in tuned.tables}
    return {"[release]": budget_line(tuned.epsilon, conditional=tuned.conditional), **protects}


def _method_name(table: TunedTable | TunedTails) -> str:
    """The method as a release file names it."""
    name: str = getattr(table.method, "named", table.method.name)
    return name
