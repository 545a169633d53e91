"""What the lecture states and what holds: the page and the screen of the reproduction."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.charts.plots import Axis, Bar, Mark, Panel, draw_bars, draw_panels
from sfumato.charts.plots import Group as BarGroup
from sfumato.cli.screen import printed_table, spaced
from sfumato.privacy.guarantee import plain
from sfumato.statistics.people.envelope import envelope_chart
from sfumato.statistics.people.tails import suppressed
from sfumato_lab.reproduce.page import (
    Finding,
    Page,
    bullets,
    findings_table,
    printed_findings,
    rows_table,
)
from sfumato_lab.reproduce.schmutte2020.atlas import (
    CHI_VALUES,
    EPSILON,
    GLOBAL,
    LEAST_IMPROVEMENT,
    LOCAL,
    MOSE,
    MOST_MEDIAN_ERROR,
    MOST_YEARS,
    REGRESSION,
    SECTORS,
    THRESHOLDS,
    chance_beyond,
)
from sfumato_lab.reproduce.schmutte2020.by_size import BINS, IMPROVED, LARGE, METHODS, PLAIN, ErrorOfMethod
from sfumato_lab.reproduce.schmutte2020.reproduction import BEYOND, PAPER, Reproduction

# What the lecture states, what we aimed at, and what does not hold: each with the figure that shows it.


def findings(found: Reproduction) -> list[Finding]:
    """Every statement that figures can answer."""
    return [
        *_envelope(found),
        *_tails(found),
        *_methods(found),
        *_sensitivities(found),
        *_report(found),
        *_percentiles(found),
        *_attacks(found),
    ]


def errata(found: Reproduction) -> list[str]:
    """What does not hold in the lecture or in what it cites, in a sentence or two each."""
    edge = found.envelope
    (people, excess), *_ = BEYOND
    chance = chance_beyond(people, epsilon=float(EPSILON), excess=excess)
    exact = found.attacks[0]
    return [
        "The lecture gives the variance of the noise as sensitivity/ε. That is the scale of the Laplace distribution; "
        "the variance is twice its square.",
        "“Conditional on χ” MOSE does not satisfy differential privacy: one more person makes the scale χ/(nε) "
        "smaller, and in the tails of the noise that tells without limit. In a group of "
        f"{people} the log ratio exceeds ε by {excess:.0%} with a probability of {chance:.0%}, whatever ε is; in much "
        "larger groups hardly ever.",
        "The example code of Chetty and Friedman (2019) looks for the worst record at the four corners of the box. It "
        f"is elsewhere in {edge.missed_by_corners.mean():.1%} of the groups here, and χ of a class would be up to "
        f"{edge.shortfall():.0%} too small. Corners are enough in large groups only.",
        "The example code uses one draw for an estimate and its number of people, and exports the deviation of the "
        "noise. From that export alone every number of people is found, and with it every estimate. With independent "
        f"draws, and errors from published numbers only, the same attack gets {exact.successes:,} of "
        f"{exact.targets:,} numbers right here, and {exact.guessed:,} are right as they are published.",
        "The sensitivity of the logarithm of a count under a factor 1 + α is ln(1 + α), and not 1 + α: the lecture's "
        "own algorithm has it so.",
    ]


def _envelope(found: Reproduction) -> Iterator[Finding]:
    share = found.envelope.largest_share
    yield Finding(
        source="MOSE",
        what="χ/n is at least the sensitivity of every group",
        stated="is",
        ours=f"the nearest group has {share:.1%} of its line",
        holds=share <= 1,
        note=f"{len(found.envelope.people):,} groups in {len(found.envelope.chi):,} classes of state, gender and race",
    )
    people, excess = BEYOND[0]
    yield Finding(
        source="MOSE",
        what=f"given χ, ε is never exceeded by {excess:.0%} in groups of {people}",
        stated="satisfies DP guarantee",
        ours=f"exceeded in {chance_beyond(people, epsilon=float(EPSILON), excess=excess):.0%} of draws",
        holds=False,
        note="for a person at the bound of the envelope",
    )


def _tails(found: Reproduction) -> Iterator[Finding]:
    mose = found.tails.of(MOSE)
    for threshold in THRESHOLDS:
        hidden = found.tails.of(suppressed(threshold))
        yield Finding(
            source="MOSE",
            what=f"groups in a tail that are found: mose at ε = {plain(EPSILON)}, and hiding groups below {threshold}",
            stated="suppression far worse",
            ours=f"{mose.found:.1%}, {hidden.found:.1%}",
            holds=hidden.found < mose.found,
            note=f"of those named by mose {mose.right:.1%} are in the tail",
        )
    formal = found.tails.of(REGRESSION)
    yield Finding(
        source="ours",
        what=f"the same with a formal guarantee, {REGRESSION}",
        stated="",
        ours=f"{formal.found:.1%} found, {formal.right:.1%} of those named right",
        holds=None,
        note=f"{formal.published:.1%} of the groups are published",
    )


def _methods(found: Reproduction) -> Iterator[Finding]:
    for size_class in found.methods.size_classes:
        errors = [(method, found.methods.of(method, size_class)) for method in METHODS]
        yield Finding(
            source="MOSE",
            what=f"groups of {size_class}: mean error in ranks at ε = {plain(EPSILON)}, best first",
            stated="formal methods exist",
            ours=", ".join(
                f"{method} {line.error:.2f}" + (f" ({line.withheld:.0%} withheld)" if line.withheld > 0.005 else "")
                for method, line in sorted(errors, key=lambda pair: pair[1].error or float("inf"))
                if line.error is not None
            ),
            holds=None,
            note=f"recommended: {found.methods.recommended(size_class) or 'none'}",
            is_order=True,
        )


def _sensitivities(found: Reproduction) -> Iterator[Finding]:
    size = next(size for size in found.chosen.sensitivities if size.size_class == "20-49")
    yield Finding(
        source="MOSE",
        what="ranks that a person can move a prediction by in groups of 20-49: any data, these data, χ/n",
        stated="a lot, not as much",
        ours=", ".join(f"{size.ranks[name]:.1f}" for name in (GLOBAL, LOCAL, MOSE)),
        holds=size.ranks[GLOBAL] > size.ranks[MOSE] >= size.ranks[LOCAL],
    )
    silent, told = (attack for _, attack in found.chosen.leaks)
    yield Finding(
        source="MOSE",
        what="groups whose local scale of noise tells more than 1.1 ε about one more person: not told, told",
        stated="has a privacy cost",
        ours=f"{silent.success_rate:.1%}, {told.success_rate:.1%}",
        holds=told.success_rate > 0,
    )
    even, each = (found.chosen.report[name].epsilon for name in ("even", "each year"))
    yield Finding(
        source="reports",
        what="ε for nine cells of ten within a tenth: divided evenly over years, and an ε for each",
        stated="",
        ours=f"{float(even):.3g}, {float(each):.3g}",
        holds=None,
        note="with an ε for each the target is met in every year, and not only on average",
    )


def _report(found: Reproduction) -> Iterator[Finding]:
    report = found.report
    for what, stated, ours in (
        ("sectors", SECTORS, report.sectors),
        ("years since leaving", MOST_YEARS, report.years),
        ("values of χ, by title and sector", CHI_VALUES, report.titles * report.sectors),
    ):
        yield Finding(
            source="reports",
            what=what,
            stated=f"{stated}",
            ours=f"{ours}",
            holds=None if stated != ours else True,
            note="" if stated == ours else f"here are {report.titles} titles, and χ is one upper bound for all",
        )
    yield Finding(
        source="reports",
        what="ε = Σ over years of (ε employment + ε earnings), and what is charged",
        stated="equal",
        ours=f"{plain(report.epsilon)}, {plain(report.charged)}",
        holds=report.epsilon == report.charged,
        note=f"without parallel composition over titles and sectors {plain(report.without_parallel_composition)}",
    )


def _percentiles(found: Reproduction) -> Iterator[Finding]:
    lines = found.percentiles
    yield Finding(
        source="aim",
        what="the adaptive curve is better than the plain cumulative sum, on average over sizes",
        stated=f"by at least {LEAST_IMPROVEMENT:.0%}",
        ours=f"{lines.mean_improvement():.1%}",
        holds=lines.mean_improvement() >= LEAST_IMPROVEMENT,
        note=f"{lines.mean_improvement(any_bins=True):.1%} if the plain sum had the best number of bins for each size",
    )
    yield Finding(
        source="aim",
        what=f"medians of {LARGE} graduates and more, mean error",
        stated=f"at most {MOST_MEDIAN_ERROR:.0%}",
        ours=f"{lines.median_error:.1%}",
        holds=lines.median_error <= MOST_MEDIAN_ERROR,
        note=f"{lines.median_within:.1%} of them are within {MOST_MEDIAN_ERROR:.0%}",
    )


def _attacks(found: Reproduction) -> Iterator[Finding]:
    for attack in found.attacks:
        yield Finding(
            source="ours",
            what=f"attack with the bundle alone: {attack.attack}",
            stated="none beyond chance",
            ours=f"{attack.success_rate:.1%}; {attack.baseline_rate:.1%} are exact as published",
            holds=attack.success_rate <= attack.baseline_rate + 0.005,
        )


# The tables of the reproduction as rows of text, for the page and for the screen.


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A heading, and rows whose columns after the first one are numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def text_tables(found: Reproduction) -> Iterator[TextTable]:
    """Every table, in the order of the page."""
    yield TextTable(
        title="Tails: the bottom and the top tenth of predictions at the 25th percentile, ε = 8",
        heads=("published by", "found", "right of those named", "groups published"),
        rows=tuple(
            (line.protection, f"{line.found:.1%}", f"{line.right:.1%}", f"{line.published:.1%}")
            for line in found.tails.classified
        ),
    )
    yield TextTable(
        title="Mean error of a prediction in ranks, ε = 8 for everything published of a group",
        heads=("children in the group", *METHODS, "the mean of all", "recommended"),
        rows=tuple(
            (
                size,
                *(_error(found.methods.of(method, size)) for method in METHODS),
                f"{found.methods.guesses[size]:.2f}",
                found.methods.recommended(size) or "none",
            )
            for size in found.methods.size_classes
        ),
    )
    epsilons = list(dict.fromkeys(epsilon for _, epsilon, _ in found.chosen.tails))
    yield TextTable(
        title="Groups in a tail that are found, by ε of an estimate",
        heads=("method", *map(plain, epsilons)),
        rows=tuple(
            (method, *(f"{found.chosen.found(method, epsilon):.1%}" for epsilon in epsilons))
            for method in (MOSE, REGRESSION)
        ),
    )
    curves = list(dict.fromkeys(line.curve for line in found.percentiles.lines))
    yield TextTable(
        title=f"Mean error of percentiles, ε = 1.5 a cell, with {BINS[0]} / {BINS[1]} bins",
        heads=("graduates in the cell", *curves, "best", f"{IMPROVED[0]} against {PLAIN[0]}"),
        rows=tuple(_percentiles_tables(found, size, curves) for size in found.percentiles.size_classes),
    )
    yield TextTable(
        title="The budget of an employee report, year by year",
        heads=("years since leaving", "ε employment", "ε earnings", "both"),
        rows=tuple(_budget(found)),
    )
    yield TextTable(
        title="Cells of the report by absolute percentage difference",
        heads=("statistic", "cells", *dict.fromkeys(f"within {d.threshold:.0%}" for d in found.report.differences)),
        rows=tuple(_differences(found)),
    )


def _error(line: ErrorOfMethod) -> str:
    if line.error is None:
        return "all withheld"
    return f"{line.error:.2f}" + (f" ({line.withheld:.0%} withheld)" if line.withheld > 0.005 else "")


def _percentiles_tables(found: Reproduction, size: str, curves: Sequence[str]) -> tuple[str, ...]:
    lines, best = found.percentiles, found.percentiles.best(size)
    shown = (" / ".join(f"{lines.of(curve, number, size).error:.2%}" for number in BINS) for curve in curves)
    return size, *shown, f"{best.curve}, {best.bins}", f"{lines.improvement(size):.0%}"


def _budget(found: Reproduction) -> Iterator[tuple[str, ...]]:
    sums = dict.fromkeys(("employment", "earnings"), Fraction(0))
    for year in dict.fromkeys(line.year for line in found.report.spending):
        spent = {line.statistic: line.epsilon for line in found.report.spending if line.year == year}
        sums = {name: sums[name] + spent[name] for name in sums}
        yield year, *(plain(spent[name]) for name in sums), plain(sum(spent.values(), Fraction(0)))
    yield "in all", *map(plain, sums.values()), plain(found.report.epsilon)


def _differences(found: Reproduction) -> Iterator[tuple[str, ...]]:
    for name in dict.fromkeys(line.statistic for line in found.report.differences):
        own = [line for line in found.report.differences if line.statistic == name]
        yield name, f"{own[0].cells:,}", *(f"{line.within:.1%}" for line in own)


# The envelope, the tails, and errors by size.

_CURVES = (PLAIN, ("isotonic", 20), ("hierarchical", 60), ("exponential", 60), IMPROVED)
"""Every curve with the number of bins that suits it."""


def tails_chart(found: Reproduction) -> str:
    """The share of groups in a tail that each way to publish gives away rightly."""
    groups = [
        BarGroup((line.protection,), [Bar(100 * line.found, nan, nan, f"{line.found:.1%}")], line.protection)
        for line in found.tails.classified
    ]
    name = "Groups in the bottom and the top tenth"
    return draw_bars(groups, [], title=f"{name}: found, of all groups in a tail (%)", name=name)


def methods_chart(found: Reproduction) -> str:
    """Errors of the three methods by size of the group."""
    sizes = found.methods.size_classes
    errors = {name: [found.methods.of(name, size).error for size in sizes] for name in METHODS}
    title = "Mean error of a prediction at the same nominal ε = 8"
    return _by_size(errors, sizes, axis="ranks", of="children in the group", title=title)


def percentiles_chart(found: Reproduction) -> str:
    """Errors of all curves by size of the cell."""
    lines, sizes = found.percentiles, found.percentiles.size_classes
    errors = {f"{curve}, {n} bins": [100 * lines.of(curve, n, size).error for size in sizes] for curve, n in _CURVES}
    title = "Mean error of the percentiles 25, 50 and 75 at ε = 1.5 a cell"
    return _by_size(errors, sizes, axis="per cent", of="graduates in the cell", title=title)


def _by_size(
    errors: Mapping[str, Sequence[float | None]], sizes: Sequence[str], *, axis: str, of: str, title: str
) -> str:
    figures = [[nan if error is None else error for error in some] for some in errors.values()]
    marks = [Mark(kind="line", x=range(len(sizes)), y=some, series=at) for at, some in enumerate(figures)]
    panel = Panel(Axis(title=of, classes=sizes), Axis(title=axis, kind="log"), marks)
    return draw_panels([panel], title=title, series=list(errors), size=(560, 260))


# The page of the reproduction.

_HEADING = "Statistics from small samples, published and computed again"
_COLUMNS = (
    *("quantity", "class", "size_class", "people", "groups", "cells", "protection", "method", "curve", "bins"),
    *("percentile", "statistic", "year", "division", "threshold", "excess", "attack", "scale", "epsilon"),
    *("published", "ours", "rounded", "line", "withheld", "planned", "as_published", "keys"),
)


def _body(found: Reproduction) -> str:
    tails, methods, by_epsilon, curves, budget, differences = text_tables(found)
    return f"""\
<p>The systems of the lecture of Schmutte (2020): predictions of the Opportunity Atlas, employee reports, and
percentiles of graduates' earnings, on synthetic data: {found.children:,} children in
{len(found.envelope.people):,} groups, {found.percentiles.cells:,} cells of 30 graduates and more. Noise is drawn
{found.draws} times. The lecture prints few numbers; what it states stands beside what is found.</p>
<h2>Findings</h2>
{findings_table(findings(found))}
<h2>What does not hold</h2>
{bullets(errata(found))}
<h2>The envelope</h2>
<p>Dots: by how many ranks one more child could move the prediction of a group at the 25th percentile. Line: χ/n, with
the χ that is used, rounded up. The four classes of state, gender and race with the most groups.</p>
<figure>{envelope_chart(found.envelope, of="children in the group", unit="ranks")}</figure>
<h2>Tails</h2>
<figure>{tails_chart(found)}</figure>
{_table(tails)}
{_table(by_epsilon)}
<h2>Methods by size of the group</h2>
<figure>{methods_chart(found)}</figure>
{_table(methods)}
<h2>Percentiles by size of the cell</h2>
<figure>{percentiles_chart(found)}</figure>
{_table(curves)}
<h2>The employee report</h2>
{_table(budget)}
{_table(differences)}"""


def _table(table: TextTable) -> str:
    shown = rows_table(table.heads, table.rows, numbers=range(1, len(table.heads)))
    return f"<h3>{table.title}</h3>{shown}"


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""


# What `sfumato reproduce schmutte2020` says: tables, findings, and what does not hold.


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{PAPER} on synthetic data: {found.children:,} children, {found.percentiles.cells:,} cells of graduates; "
            f"noise drawn {found.draws} times.",
            style="bold",
        ),
        *map(_printed, text_tables(found)),
        printed_findings(findings(found)),
        Text("What does not hold:\n" + "\n".join(f"- {sentence}" for sentence in errata(found))),
        Text(f"Charts: {page}\nAll figures: {table}"),
    ]
    return Group(*spaced(lines)), {"paper": PAPER, "rows": list(found.rows()), "errata": errata(found)}


def _printed(table: TextTable) -> Group:
    shown = printed_table(*table.heads, numbers=len(table.heads) - 1)
    for row in table.rows:
        shown.add_row(*row)
    return Group(Text(table.title, style="bold"), shown)
