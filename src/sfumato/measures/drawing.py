"""Tables and charts of the confidential report."""

from collections.abc import Iterable, Sequence
from html import escape
from math import exp, isnan, log, log1p

import numpy as np

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.shares import Row, draw_shares
from sfumato.charts.svg import percent
from sfumato.measures.attacks import AttackResult
from sfumato.measures.risk import SENSITIVITY_SHARES, Sensitivity, posterior
from sfumato.measures.usability import Usability
from sfumato.measures.utility import ClassUtility, Stratification, Utility
from sfumato.privacy.guarantee import Guarantee

# Tables of the confidential report.


def table(caption: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f"<th scope='col'>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr><th scope='row'>{escape(row[0])}</th>{''.join(f'<td>{escape(figure)}</td>' for figure in row[1:])}</tr>"
        for row in rows
    )
    made = f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"
    return f'<div class="wide">{made}</div>'  # more columns than a screen has room for are scrolled


def attacks_table(
    caption: str, attacks: Sequence[AttackResult], *, guess: str = "right by guessing without the release"
) -> str:
    """What attacks disclose, beside what `guess` says; nothing where there were none."""
    rows = (
        (found.attack, f"{found.targets:,}", _rate(found.success_rate), _rate(found.baseline_rate)) for found in attacks
    )
    headings = ("attack", "targets", "disclosed", guess)
    if all(found.limit is None for found in attacks):
        return table(caption, headings, rows) if attacks else ""
    judged = (
        ("", "", "") if found.limit is None else (_mean_risk(found), f"{found.limit:.0%}", f"{found.above:,}")
        for found in attacks
    )
    both = [(*row, *other) for row, other in zip(rows, judged, strict=True)]
    whole = table(caption, (*headings, "probability over all keys", "acceptable", "targets above it"), both)
    worst = [(found.attack, cell, f"{risk:.1%}") for found in attacks for cell, risk in found.worst]
    if not worst:
        return whole
    return whole + table("Cells above what is acceptable, the worst of each", ("attack", "cell", "probability"), worst)


def _mean_risk(found: AttackResult) -> str:
    return "" if found.risk is None or not found.targets else f"{found.risk:.1%}"


def _rate(rate: float) -> str:
    return "no target" if isnan(rate) else f"{rate:.1%}"


# Charts of the confidential report.

_MOST_POINTS = 2_500


def true_against_protected(utility: Utility) -> str:
    """Draw cells by their true count and their protected value; on the line nothing was changed."""
    chosen = np.unique(np.linspace(0, utility.cells - 1, min(utility.cells, _MOST_POINTS)).astype(int))
    by_size = np.argsort(utility.true, kind="stable")[chosen]
    top = float(max(utility.true.max(initial=1), utility.protected.max(initial=1), 10))
    points = Mark(kind="points", x=utility.true[by_size], y=utility.protected[by_size], series=0)
    same = Mark(kind="line", x=(0, top), y=(0, top))
    true, published = (
        Axis(title=f"{word} {utility.unit}", kind="symlog", constant=3) for word in ("true", "published")
    )
    title = f"True and published {'counts' if utility.counts else 'values'}, cell by cell"
    return draw_panels([Panel(true, published, [points, same])], title=title, size=(340, 300))


def error_by_size(utility: Utility) -> str:
    """Draw the mean error of cells by their true count, beside the error that was expected."""
    title = "Error by size of the cell"
    return _errors(utility.by_size, unit=utility.unit, title=title, axis=f"true {utility.sizes}")


def published_by_size(found: Usability) -> str:
    """Draw how many cells of true numbers are published and withheld, by their true size."""
    every = (*found.by_size, found.all)
    rows = [Row(one.label, (1 - one.withheld / one.cells, 0, one.withheld / one.cells)) for one in every if one.cells]
    return draw_shares(
        rows,
        whole=f"Cells that are not zero, by {found.sizes}",
        parts=("published", "", "withheld"),
        name="Published and withheld cells by size",
        first=False,
    )


def error_by_stratum(stratification: Stratification, label: str, unit: str) -> str:
    """Draw the mean error of cells by the codes of one public attribute, beside the error that was expected."""
    return _errors(stratification.strata, unit=unit, title=f"Error by {label.lower()}", axis=label)


def _errors(classes: Sequence[ClassUtility], *, unit: str, title: str, axis: str) -> str:
    errors = [c.mean_error for c in classes], [c.expected_error for c in classes]
    marks = [Mark(kind="columns", x=range(len(classes)), y=some, series=at) for at, some in enumerate(errors)]
    across = Axis(title=axis, classes=[c.label for c in classes])
    up = Axis(title=f"mean absolute error, {unit}", kind="symlog")
    return draw_panels([Panel(across, up, marks)], title=title, series=("observed", "expected"), size=(400, 300))


def sensitivity_of_cells(found: Sensitivity) -> str:
    """Draw in how many cells the largest establishment has at most which share of the jobs."""
    marks = [Mark(kind="steps", x=found.share, y=SENSITIVITY_SHARES, series=0)]
    across = Axis(title="share of the cell's jobs in its largest establishment", holds=(0, 1), text=percent)
    up = Axis(title="cells with at most this share", holds=(0, 1), text=percent)
    return draw_panels([Panel(across, up, marks)], title="What one establishment contributes", size=(340, 300))


_LEAST_BELIEF = 1e-6


def odds_by_size(guarantee: Guarantee, size: int, other: int | None = None, *, title: str = "") -> str:
    """Draw how peaked around one size a reader's belief may become at most, all sizes being as likely before.

    Beside it the straight line of ε/ln(1+α), which whole workers do not reach; `other` is a size to mark. Without a
    formal guarantee there is nothing to draw.
    """
    bound = guarantee.bound
    if bound is None:
        return ""
    low, high = min(size, other or size), max(size, other or size)
    sizes = np.unique(np.geomspace(max(low // 3, 1), 3 * high, 300).astype(np.int64))
    belief = np.maximum(posterior(guarantee, size=size, others=sizes.tolist()), _LEAST_BELIEF)
    marks = [Mark(kind="line", x=sizes, y=belief, series=0)]
    series = ["exactly, in whole workers"]
    if bound.definition == "strong":
        slope = float(bound.epsilon) / log1p(float(bound.alpha))
        straight = [max(exp(-slope * abs(log(each / size))), _LEAST_BELIEF) for each in sizes]
        marks.append(Mark(kind="line", x=sizes, y=straight, series=1, dash="7 4"))
        series.append("slope ε/ln(1+α), sizes being continuous")
    if other is not None:
        at = posterior(guarantee, size=size, others=[size, other])
        marks.append(Mark(kind="points", x=(size, other), y=np.maximum(at, _LEAST_BELIEF), series=len(series)))
        series.append(f"{size:,} and {other:,} workers")
    across = Axis(title="workers of an establishment", kind="log", zero=False)
    up = Axis(title=f"belief relative to {size:,} workers, at least", kind="log", zero=False)
    title = title or f"What may be learned of the size of an establishment of {size:,}"
    return draw_panels([Panel(across, up, marks)], title=title, series=series, size=(420, 300))
