"""The part of the confidential report that is about cubes, in tables and charts."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import percent
from sfumato.measures.drawing import attacks_table, table
from sfumato.measures.limits import limit_section, limit_words
from sfumato.measures.risk import DOMINANCE_PERCENT, LEAST_CONTRIBUTORS, P_PERCENT
from sfumato.statistics.cube.assess import MOST_CELLS, CubeAssessment, Dimensionality
from sfumato.statistics.cube.assess_measures import PERCENT, SHARES, Beside, Measures, ReplicateErrors
from sfumato.statistics.cube.attacks import CellRisk
from sfumato.statistics.cube.linkage import RECORDS

_ERRORS = (
    *("figures", "mean absolute difference", "all together", "beside the reference", "root mean square", "expected"),
    *("mean relative difference, |P|/Y", "median", "one in ten above", f"within {PERCENT}% of the true figure"),
    *("at most 10 points worse than the reference", "within 10 points of it", "rank correlation (Spearman)"),
)
_UNCERTAINTY = (
    *("figures", "coefficient of variation before", "after", "published standard error beside the paper's"),
    *("overlap of 95% intervals", "publishable", "newly publishable", "newly marked"),
)


def cube_section(found: CubeAssessment) -> str:
    """A section of the report for one cube."""
    return f"""<h2>{escape(found.title)}</h2>
<p>Tables of the published cube, beside those of the true one: a sample of those with each number of dimensions, none
with more than {MOST_CELLS:,} cells. The reference is noise in the cells alone, without controls, for the same ε; it is
drawn anew for each report. Coefficients of variation, overlaps and marks before protection use the fitted function of
sampling errors{"; the table about replicate weights has real ones" if found.replicates else ""}. Publishable is, before
protection, {found.rules_before}; after it, by noisy numbers, {found.rules}.</p>
{"".join(f"<figure>{chart}</figure>" for chart in charts_of(found))}
<h3>What protection costs</h3>
{limit_section(found.limit)}
{_tables(found)}
{_measured("Error of figures", _ERRORS, found, _error_row)}
{_measured("Uncertainty of figures", _UNCERTAINTY, found, _uncertainty_row)}
{_distances(found)}
{_distributed(found)}
{table("Cramér's V of two attributes", ("attributes", "true", "published"), _pairs(found))}
{_replicates(found.replicates)}
<h3>What it reveals</h3>
{_revealed(found)}
{_suppressed(found)}
{_meanings(found.risk)}
{_odds(found)}
{_attacks(found)}
{attacks_table("Weights of records that are alone in their cell, from count and weighted count", found.weights)}
{_linkage(found)}"""


def cube_data(found: CubeAssessment) -> dict[str, Any]:
    """The findings for machines: every figure of the report, and no cell."""
    limit = {"limit": None if found.limit is None else _plain(found.limit)}
    data = {**_plain(found), "odds": [{**_plain(one), "belief": one.belief} for one in found.odds], **limit}
    return {name: part for name, part in data.items() if name != "limit" or part is not None}


def cube_words(found: CubeAssessment) -> str:
    """The findings in a few sentences."""
    risk = found.risk
    lines = [f"{found.title}: {risk.cells:,} cells, {risk.empty:,} of them without records."]
    if found.limit is not None:
        lines.append(limit_words(found.limit))
    lines += [
        f"The attack by {part.attack} on '{part.column}' tells {part.found:,} of {part.holding:,} cells with records, "
        f"beside {part.told - part.found:,} wrong ones; by chance it would be {part.by_chance:,.0f}."
        for part in found.told
    ]
    lines += [
        f"The attack '{part.attack}' reads {part.successes:,} of {part.targets:,} weights; a guess {part.guessed:,}."
        for part in found.weights
    ]
    lines += [
        f"The attack by {part.attack} of an intruder who knows {', '.join(part.known)} is right for "
        f"{part.disclosed / part.targets:.1%} of {part.targets:,} targets; {part.unprotected / part.targets:.1%} "
        f"without protection, {part.guessed / part.targets:.1%} by guessing."
        for part in found.linkage
        if part.attack == RECORDS  # the page has the others
    ]
    lines.append(f"Publishable before: {found.rules_before}; after: {found.rules}.")
    for part in found.by_dimension:
        totals = part.figures[0].all  # weighted totals, or numbers of records without weights
        lines.append(
            f"{part.dimensions} dimension{'' if part.dimensions == 1 else 's'}: "
            f"median relative difference {_figure(totals.median_difference, '.2%')}, "
            f"overlap of intervals {_figure(totals.overlap, '.1%') or 'unknown'}, "
            f"{totals.newly_publishable:,} figures newly publishable and {totals.newly_marked:,} newly marked."
        )
    return "\n".join(lines)


def _tables(found: CubeAssessment) -> str:
    rows = (
        (f"{part.dimensions}", f"{part.tables:,}", f"{part.of_tables:,}", f"{part.risk.cells:,}")
        for part in found.by_dimension
    )
    return table("Tables by their number of dimensions", ("dimensions", "compared", "of", "cells"), rows)


def _measured(caption: str, headings: Sequence[str], found: CubeAssessment, row: Any) -> str:
    """One table for each kind of figure: all cells of each number of dimensions, then by number of records."""
    kinds = dict.fromkeys(kind.figure for part in found.by_dimension for kind in part.figures)
    pages = []
    for figure in kinds:
        rows = []
        for part in found.by_dimension:
            for kind in (kind for kind in part.figures if kind.figure == figure):
                rows += [(f"{part.dimensions}", one.label, *row(one)) for one in (kind.all, *kind.by_size)]
        pages.append(table(f"{caption}: {figure}", ("dimensions", "records in the cell", *headings), rows))
    return "".join(pages)


def _error_row(one: Measures) -> tuple[str, ...]:
    return (
        f"{one.cells:,}",
        _number(one.mean_error),
        _number(one.total_error),
        _figure(one.reference_ratio, ".2f"),
        _number(one.mean_square_error**0.5),
        _number(one.expected_square**0.5),
        _figure(one.utility_loss, ".2%"),
        _figure(one.median_difference, ".2%"),
        _figure(one.largest_tenth, ".2%"),
        _figure(one.within, ".1%"),
        _figure(one.near_reference, ".1%"),
        _figure(one.near_either_way, ".1%"),
        _figure(one.spearman, ".4f"),
    )


def _uncertainty_row(one: Measures) -> tuple[str, ...]:
    return (
        f"{one.cells:,}",
        _figure(one.cv_before, ".1%"),
        _figure(one.cv_after, ".1%"),
        _figure(one.error_ratio, ".2f"),
        _figure(one.overlap, ".1%"),
        f"{one.publishable:,}",
        f"{one.newly_publishable:,}",
        f"{one.newly_marked:,}",
    )


def _distances(found: CubeAssessment) -> str:
    headings = (
        *("dimensions", "figure", "Hellinger distance", "Jensen-Shannon distance", "root integrated squared error"),
        *("root mean squared error of shares", "lowest tenth kept", "highest tenth kept"),
        *("mean proportional difference c", "its standard deviation"),
    )
    rows = (
        (
            f"{part.dimensions}",
            kind.figure,
            *(
                _figure(figure, ".4f")
                for figure in (
                    kind.distances.hellinger,
                    kind.distances.jensen_shannon,
                    kind.distances.root_integrated_squared_error,
                    kind.distances.root_mean_squared_error,
                )
            ),
            _figure(kind.distances.bottom_tail, ".1%"),
            _figure(kind.distances.top_tail, ".1%"),
            _figure(kind.all.share_difference, ".4f"),
            _figure(kind.all.share_difference_sd, ".4f"),
        )
        for part in found.by_dimension
        for kind in part.figures
        if kind.distances is not None
    )
    by_size = (
        (
            f"{part.dimensions}",
            kind.figure,
            one.label,
            _figure(one.share_difference, ".4f"),
            _figure(one.share_difference_sd, ".4f"),
        )
        for part in found.by_dimension
        for kind in part.figures
        if kind.distances is not None
        for one in kind.by_size
    )
    heads = ("dimensions", "figure", "records in the cell", "mean", "standard deviation")
    return table("Shares of tables, on average over tables", headings, rows) + table(
        "Proportional difference c = (π − π*)/(½π + ½π*) of the share of a cell, π before and π* after", heads, by_size
    )


def _distributed(found: CubeAssessment) -> str:
    """Quantiles of differences."""
    captions = {
        "differences": ("Differences of figures, in expected standard errors of the noise", ".2f"),
        "relative_differences": ("Differences of figures, as a share of the true one", ".2%"),
        "error_differences": ("Differences of standard errors, as a share of those before protection", ".2%"),
    }
    pages = []
    for name, (caption, form) in captions.items():
        rows = (
            (f"{part.dimensions}", kind.figure, *(_figure(value, form) for value in getattr(kind, name).values()))
            for part in found.by_dimension
            for kind in part.figures
        )
        pages.append(table(caption, ("dimensions", "figure", *(f"{share:.0%} below" for share in SHARES)), rows))
    return "".join(pages)


def _pairs(found: CubeAssessment) -> Iterable[tuple[str, ...]]:
    return (
        (" and ".join(pair.attributes), _figure(pair.true, ".3f"), _figure(pair.published, ".3f"))
        for pair in found.associations
    )


def _replicates(replicates: Sequence[ReplicateErrors]) -> str:
    if not replicates:
        return ""
    headings = (
        *("table", "figure", "cells", "coefficient of variation by replicates", "by the fitted function", "published"),
        *("fitted standard error beside replicates'", "one in ten below", "one in ten above"),
        *("published beside √(replicate variance + difference²)", "overlap of 95% intervals"),
        *("publishable before and after", "newly publishable", "newly marked"),
    )
    rows = (
        (
            " and ".join(part.table),
            part.figure,
            f"{part.cells:,}",
            *(_figure(cv, ".1%") for cv in (part.replicate_cv, part.fitted_cv, part.published_cv)),
            *(_figure(ratio, ".2f") for ratio in (part.fitted_ratio, part.fitted_low, part.fitted_high)),
            _figure(part.published_ratio, ".2f"),
            _figure(part.overlap, ".1%"),
            f"{part.change.publishable:,}",
            f"{part.change.newly_publishable:,}",
            f"{part.change.newly_suppressed:,}",
        )
        for part in replicates
    )
    return table("Standard errors by replicate weights, as fitted and as published; medians of cells", headings, rows)


def _risks(found: CubeAssessment) -> list[tuple[str, CellRisk]]:
    return [("the cube", found.risk), *((f"{part.dimensions}", part.risk) for part in found.by_dimension)]


def _revealed(found: CubeAssessment) -> str:
    headings = (
        *("dimensions", "cells", "without records", "…published as more than half a record"),
        *("with records, published as half a record or less", "published with the true count", "of those with records"),
        *("with a single record", "published as 1", "both"),
    )
    rows = (
        (
            label,
            f"{risk.cells:,}",
            f"{risk.empty:,}",
            f"{risk.zero_changes.to_nonzero:,}",
            f"{risk.zero_changes.to_zero:,}",
            _figure(risk.exact, ".1%"),
            _figure(risk.exact_with_records, ".1%"),
            f"{risk.uniques.true:,}",
            f"{risk.uniques.published:,}",
            f"{risk.uniques.both:,}",
        )
        for label, risk in _risks(found)
    )
    return table("Numbers of records: zeros, exact counts and single records", headings, rows)


def _suppressed(found: CubeAssessment) -> str:
    headings = (
        *("dimensions", "cells with records", f"fewer than {LEAST_CONTRIBUTORS} records", f"p% rule, {P_PERCENT}%"),
        *(f"dominance, {DOMINANCE_PERCENT}%", "any rule"),
    )
    rows = (
        (
            label,
            *(f"{n:,}" for n in (rule.cells, rule.threshold or 0, rule.p_percent, rule.dominance, rule.any_rule)),
        )
        for label, rule in ((label, risk.suppression) for label, risk in _risks(found))
    )
    return table("Cells that rules of suppression would hide instead, every record counting as 1", headings, rows)


def _meanings(risk: CellRisk) -> str:
    rows = (
        (f"{one.published}", f"{one.cells:,}", _figure(one.holding, ".1%"), _figure(one.right, ".1%"))
        for one in risk.meanings
    )
    headings = ("published records, rounded", "cells of the cube", "hold a record", "hold just so many")
    return table("What a published number says of a cell, to a reader who knows how common cells are", headings, rows)


def _odds(found: CubeAssessment) -> str:
    rows = (
        (
            f"{one.larger - one.smaller}",
            "no bound" if one.factor == inf else f"{one.factor:,.4g}",
            f"{one.belief:.1%}",
            f"{one.delta:.2g}",
        )
        for one in found.odds
    )
    headings = (
        "records more or less",
        "odds change at most by the factor",
        "a belief of one half becomes at most",
        "δ",
    )
    return table("Telling whether records are in the data, from the counts and all controls with noise", headings, rows)


def _attacks(found: CubeAssessment) -> str:
    rows = (
        (
            part.attack,
            part.column,
            f"{part.holding:,}",
            f"{part.found:,}",
            f"{part.told - part.found:,}",
            f"{part.by_chance:,.0f}",
        )
        for part in found.told
    )
    headings = ("attack", "column", "cells with records", "found by the attack", "found wrongly", "right by chance")
    return table("Which cells hold records, read off digits of a column, or of two", headings, rows)


def _linkage(found: CubeAssessment) -> str:
    rows = (
        (
            part.attack,
            ", ".join(part.known),
            f"{part.targets:,}",
            *(f"{part_of / part.targets:.1%}" for part_of in (part.unprotected, part.disclosed, part.guessed)),
        )
        for part in found.linkage
    )
    headings = ("attack", "known", "targets", "disclosed without protection", "disclosed", "right by guessing")
    return table("Records that are the only ones with what is known of them: what else is learnt", headings, rows)


def _number(value: float) -> str:
    """Totals are thousands, proportions hundredths."""
    return _figure(value, ",.1f" if abs(value) >= 100 else ".4g")


def _figure(value: float, form: str) -> str:
    return format(value, form) if isfinite(value) else ""


def _plain(value: Any) -> Any:
    """Findings as plain numbers and words: arrays are for charts, and numbers that are none become null."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _plain(part) for name, part in named.items() if not isinstance(part, Beside | np.ndarray)}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


# Charts: figures and their errors, before and after.

_MOST_POINTS = 1_000
_STEPS = np.linspace(0.005, 0.995, 100)
_LEAST_CELLS = 5
"""Of fewer cells a distribution is not drawn."""
_ZEROS = 8
"""One in so many points may be a zero."""


def figures_chart(by_dimension: Sequence[Dimensionality], figure: str) -> str:
    """Draw figures of one kind by true and published value, on scales of logarithms; on the line nothing changed."""
    parts = [(part.dimensions, kind.cells) for part in by_dimension for kind in part.figures if kind.figure == figure]
    share = max(_MOST_POINTS // max(len(parts), 1), 1)
    chosen = [(cells, _spread_out(cells.true, share)) for _, cells in parts]
    points = [(cells.true[at], cells.published[at]) for cells, at in chosen]
    true = np.concatenate([some for some, _ in points])
    some = np.abs(true[true != 0])
    bend = float(np.quantile(some, 0.01)) if len(some) else 1.0
    sides = [Axis(title=f"{word} {figure}", kind="symlog", constant=bend) for word in ("true", "published")]
    return _beside(points, [_dimensions(size) for size, _ in parts], sides, title=f"True and published {figure}")


def replicates_chart(replicates: Sequence[ReplicateErrors]) -> str:
    """Draw standard errors of weighted totals by replicate weights beside those published, on scales of logarithms."""
    totals = [part for part in replicates if part.figure == "weighted totals"]
    points = []
    for part in totals:
        some = np.flatnonzero((part.errors > 0) & (part.published_errors > 0))
        at = some[_spread_out(part.errors[some], _MOST_POINTS // len(totals))]
        points.append((part.errors[at], part.published_errors[at]))
    titles = ("standard error by replicate weights", "published standard error")
    sides = [Axis(title=title, kind="log") for title in titles]
    tables = [" and ".join(part.table) for part in totals]
    return _beside(points, tables, sides, title="Standard errors of weighted totals")


def _beside(points: Sequence[tuple[Floats, Floats]], names: Sequence[str], sides: Sequence[Axis], *, title: str) -> str:
    """Points of several series, and the line where nothing was changed."""
    marks = [Mark(kind="points", x=x, y=y, series=at) for at, (x, y) in enumerate(points)]
    ends = [end for x, _ in points if len(x) for end in (float(x.min()), float(x.max()))] or [0.0]
    line = Mark(kind="line", x=(min(ends), max(ends)), y=(min(ends), max(ends)))
    return draw_panels([Panel(sides[0], sides[1], [*marks, line])], title=title, series=names, size=(320, 280))


def charts_of(found: CubeAssessment) -> list[str]:
    """All charts of one cube."""
    parts = found.by_dimension
    kinds = list(dict.fromkeys(kind.figure for part in parts for kind in part.figures))
    charts = [figures_chart(parts, figure) for figure in kinds]
    charts += [distributions_chart(parts, figure, values) for values in _SPREADS for figure in kinds]
    charts += [replicates_chart(found.replicates)] if found.replicates else []
    return [*filter(None, charts)]


def distributions_chart(by_dimension: Sequence[Dimensionality], figure: str, values: str) -> str:
    """Draw the share of cells up to each difference, one line for each number of dimensions; none for too few cells."""
    every = [(part.dimensions, kind.cells) for part in by_dimension for kind in part.figures if kind.figure == figure]
    finite = {_dimensions(size): some[np.isfinite(some)] for size, cells in every for some in [getattr(cells, values)]}
    drawn = {size: np.quantile(some, _STEPS) for size, some in finite.items() if len(some) >= _LEAST_CELLS}
    marks = [Mark(kind="steps", x=some, y=_STEPS, series=at) for at, some in enumerate(drawn.values())]
    title, across = _SPREADS[values]
    panel = Panel(across, Axis(title="share of cells up to it", text=percent), marks)
    return draw_panels([panel], title=f"{title} of {figure}", series=list(drawn), size=(320, 220)) if drawn else ""


def _signed(share: float) -> str:
    return f"+{percent(share)}" if share > 0 else percent(share)


def _share(title: str) -> Axis:
    return Axis(title=title, kind="symlog", constant=0.05, text=_signed)


_SPREADS = {
    "standardised": ("Differences", Axis(title="difference, in expected standard errors of the noise")),
    "relative": ("Relative differences", _share("difference, as a share of the true figure")),
    "error_differences": ("Differences of standard errors", _share("published standard error above that of sampling")),
}
"""What is drawn of how cells differ, by the name of their differences."""


def _dimensions(size: int) -> str:
    return f"{size} dimension{'' if size == 1 else 's'}"


def _spread_out(values: Floats, most: int) -> NDArray[np.intp]:
    """The places of some values, from the smallest to the largest; of zeros, which may be nearly all, a few."""
    chosen = []
    for places, share in ((np.flatnonzero(values != 0), most), (np.flatnonzero(values == 0), most // _ZEROS)):
        order = places[np.argsort(values[places], kind="stable")]
        chosen.append(order[np.unique(np.linspace(0, max(len(order) - 1, 0), min(len(order), share)).astype(int))])
    return np.concatenate(chosen)
