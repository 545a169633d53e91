"""What of the paper comes out and what does not: the page and the screen of the reproduction."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import percent
from sfumato.cli.screen import Table, printed_table
from sfumato.statistics.cube.assess import TOTALS
from sfumato.statistics.cube.levels import Candidate
from sfumato.statistics.cube.linkage import RECORDS as LINKED
from sfumato_lab.reproduce.li2020.evaluate import (
    CHANCE_OF_NOISE,
    CONVERGED,
    RECORDS,
    RUNS,
    TABLE_2,
    TABLE_4,
    TOLERANCE,
    VARIANTS,
    at_mean_cardinality,
)
from sfumato_lab.reproduce.li2020.interactive import EPSILONS, TABLES
from sfumato_lab.reproduce.li2020.levels import APPROACHES, NUMBERS, SURVEYS, WORKLOADS, Levels
from sfumato_lab.reproduce.li2020.reproduction import AVERAGED, CALIBRATIONS, PAPER, Line, Measure, Reproduction
from sfumato_lab.reproduce.page import Page, bullets, rows_table

# What of the paper comes out, what does not, and what its Table 4 seems to be: each with the figure that shows it.

_SHOWN = range(1, 6)


def findings(found: Reproduction) -> list[str]:
    """One sentence or two for each."""
    return [
        *_noise(found),
        *_least_squares(found),
        *_raking(found),
        *_table_4(found),
        *_bias(found),
        *_bound(found),
        *_levels(found),
        *_interactive(found),
        *_attacked(found),
        *_publishable(found),
    ]


def _noise(found: Reproduction) -> Iterator[str]:
    ours = {row["j"]: row["ours"] for row in found.rows() if row["quantity"] == "noise_probability"}
    same = sum(_as_printed(ours[j], printed) for j, printed in TABLE_2.items())
    yield f"Table 2: {same} of {len(TABLE_2)} probabilities agree to all printed digits."
    chance = 1 - float(found.evaluated.probabilities[found.evaluated.cap])
    yield (
        f"Erratum: at ε = 7 and a cap of 1, noise of ±1 has a chance of {chance:.3%}, not {CHANCE_OF_NOISE:.1%}; the "
        f"printed variance 0.00182 is right."
    )


def _as_printed(value: float, printed: str) -> bool:
    decimals = len(printed.partition(".")[2])
    return f"{value:.{decimals}f}" == printed


def _least_squares(found: Reproduction) -> Iterator[str]:
    for variant in VARIANTS:
        lines = found.lines("least-squares", variant)
        below = [line.dimension for line in lines if not _at_least(line)]
        negative = [line.dimension for line in lines if line.reduction is not None and line.reduction < 0]
        solved = found.converged("least-squares", variant)
        verdict = "at every dimension" if not below else f"except at dimension {', '.join(map(str, below))}"
        yield (
            f"Least squares, {variant}: {solved:,} of {found.runs:,} runs meet every control exactly; the reduction is "
            f"at least the published one {verdict} ({_reductions(lines)} at 1 to 5 dimensions), and "
            f"{'never negative' if not negative else 'negative at ' + ', '.join(map(str, negative))}."
        )
    averages = {
        "of the mean variance": [found.theory[size].reduction for size in _SHOWN],
        "in a table, the mean over tables": [found.theory[size].by_table for size in _SHOWN],
        "the same by cell": [found.theory[size].by_cell for size in _SHOWN],
        "within a run": [found.theory[size].within_run for size in _SHOWN],
        "at the mean number of categories": [at_mean_cardinality(size) for size in _SHOWN],
    }
    words = "; ".join(f"{what} {', '.join(f'{share:.1%}' for share in shares)}" for what, shares in averages.items())
    yield f"Theory for two-sided noise, 1 − (1 + Σ(k − 1))/Πk remaining, at 1 to 5 dimensions: {words}."


def _at_least(line: Line) -> bool:
    return line.reduction is not None and line.reduction >= TABLE_4[line.dimension][2]


def _raking(found: Reproduction) -> Iterator[str]:
    for variant in VARIANTS:
        number = found.converged("raking", variant)
        raised = [
            str(line.dimension)
            for line in found.lines("raking", variant)
            if line.reduction is not None and line.reduction < 0
        ]
        effect = f"; it raises the variance at {', '.join(raised)} dimensions" if raised else ""
        yield (
            f"Raking, {variant}: {number:,} of {found.runs:,} runs come within {TOLERANCE:g} of a record in ten cycles "
            f"(published: {CONVERGED} of {RUNS:,}, tolerance unknown){effect}."
        )
        if number < found.runs:
            yield (
                f"Over all {found.runs:,} runs, those that did not converge as they were when they came nearest, "
                f"raking takes away {_reductions(found.lines('raking', variant, runs='all'))} at 1 to 5 dimensions."
            )


def _table_4(found: Reproduction) -> Iterator[str]:
    """Which variance Table 4 is: the one over all cells in a run fits, and only with noise on both sides."""
    for variant in VARIANTS:
        fits = found.lines("raking", variant, "within_run")
        ratios = [
            line.plain / TABLE_4[line.dimension][0] for line in fits if line.plain is not None and line.dimension <= 8
        ]
        if ratios:
            yield (
                f"Table 4 without calibration, {variant}: the variance over all cells of a dimension within a run "
                f"about their mean, in runs that raking converged in, is {min(ratios):.2f} to {max(ratios):.2f} times "
                "the printed one at 1 to 8 dimensions."
            )
    variance, expected = found.evaluated.variance, found.theory[1].before
    yield (
        f"A cell of a one-way table has a noise variance of {expected:.1f} over runs, not 6.592. Printed 0.002 for the "
        f"cube itself can only be two-sided noise ({variance:.4f}); without negative cells it would be half "
        "of that, 0.001."
    )


def _bias(found: Reproduction) -> Iterator[str]:
    lines = found.lines("least-squares", "no-negative", "mean_square")
    variances = found.lines("least-squares", "no-negative")
    square, variance = lines[0].plain, variances[0].plain
    if square is not None and variance is not None:
        yield (
            f"Keeping cells from going negative halves the variance of one-way tables to {variance:.1f}, but their "
            f"mean square is {square:.1f}: every empty cell is perturbed upwards only."
        )


def _bound(found: Reproduction) -> Iterator[str]:
    free = found.lines("least-squares", "two-sided", "mean_square")
    pairs = [
        f"{one.calibrated:.3f} instead of {other.calibrated:.3f} at {one.dimension}"
        for one, other in zip(found.bounded("two-sided"), free, strict=True)
        if one.dimension in (2, 4, 10) and one.calibrated is not None and other.calibrated is not None
    ]
    if pairs:
        yield (
            "Least squares without negative cells has a mean square of "
            + ", ".join(pairs)
            + " dimensions: nearly all cells of this cube are empty, so the bound tells more than it spoils. "
            "It is biased in single cells."
        )


def _levels(found: Reproduction) -> Iterator[str]:
    """Where several levels at the same budget are better, and what to prefer for which tables."""
    levels = found.levels
    for epsilon, chosen in levels.designs.items():
        for records in SURVEYS:
            better = levels.better(epsilon, records)
            where = f"at {', '.join(map(str, better))} dimensions" if better else "nowhere"
            yield (
                f"Several levels at the same ε = {float(epsilon):g}, δ = {levels.delta:.2g} ({float(chosen.share):.0%} "
                f"for {chosen.name}), whole numbers and none negative, {records:,} records: a smaller error than the "
                f"signed bottom-up cube {where} ({levels.runs} runs)."
            )
        advice = []
        for workload in WORKLOADS:
            best = levels.workloads[epsilon, workload][0]
            share = "" if best.is_bottom_up else f" ({float(best.share):.0%})"
            advice.append(f"{workload}: {best.name}{share}")
        yield f"Recommended by workload at ε = {float(epsilon):g}: {'; '.join(advice)}."


def _interactive(found: Reproduction) -> Iterator[str]:
    """How many tables are better asked one by one, and what does not add up then."""
    apart = found.interactive.contradictions
    for epsilon in EPSILONS:
        even = [found.interactive.even[epsilon, size] for size in _SHOWN]
        yield (
            f"Each table by itself, at the same ε = {float(epsilon):g} in all: up to {', '.join(map(str, even))} "
            "tables of 1 to 5 dimensions have a smaller error than the same tables summed from the cube."
        )
    yield (
        f"Of cells of one-way tables {apart['interactive']:.1%} differ from the sums of two-way tables that were asked "
        f"by themselves, and {apart['bottom-up']:.1%} from those of the cube."
    )


def _attacked(found: Reproduction) -> Iterator[str]:
    """What readers of both columns and intruders get."""
    assessed = found.assessed
    read = {draws: results[-1].success_rate for draws, results in assessed.weights.items()}
    yield (
        f"With one draw for both columns, as in Table 3, {read['shared']:.1%} of the weights of records that are alone "
        f"in their cell are read exactly, in spite of calibration; with draws of their own {read['own']:.1%}."
    )
    for part in assessed.assessment.linkage:
        if part.attack == LINKED:
            yield (
                f"Linked records, {', '.join(part.known)} known: {part.disclosed / part.targets:.1%} of "
                f"{part.targets:,} are right with the noise of Table 2 and two controls, "
                f"{part.guessed / part.targets:.1%} by guessing, all without noise."
            )


def _publishable(found: Reproduction) -> Iterator[str]:
    """That relaxed rules make more publishable."""
    assessment = found.assessed.assessment
    figures = [
        f"{part.kind(TOTALS).all.newly_publishable:,} beside {part.kind(TOTALS).all.publishable:,} "
        f"({part.dimensions} dimensions)"
        for part in assessment.by_dimension[1:]
    ]
    yield (
        f"Rules before: {assessment.rules_before}; after: {assessment.rules}. So relaxed they make more estimates "
        f"publishable: {', '.join(figures)}."
    )


def _reductions(lines: list[Line]) -> str:
    return ", ".join("–" if line.reduction is None else f"{line.reduction:.1%}" for line in lines[:5])


# Charts by the dimension of the table.


def reductions(found: Reproduction) -> str:
    """How much of the variance calibration takes away, one panel for each variant of the noise."""
    x, y = _dimensions(), Axis(title="variance taken away", text=percent)
    published = [printed[2] for printed in TABLE_4.values()]
    theory = [expected.reduction for expected in found.theory.values()]
    panels = []
    for variant in VARIANTS:
        calibrated = [[line.reduction for line in found.lines(name, variant)] for name in CALIBRATIONS]
        panels.append(Panel(x, y, _lines(published, theory, *calibrated), variant))
    title = "Reduction of the noise variance by calibration to all one-way tables"
    return draw_panels(panels, title=title, series=("published", "theory", *CALIBRATIONS))


def level_errors(found: Levels) -> str:
    """The error of both approaches at the same budget, one panel for each epsilon and each survey."""
    x, kinds = _dimensions(), [(approach, numbers) for approach in APPROACHES for numbers in NUMBERS]
    panels = []
    for records, epsilon in product(SURVEYS, found.designs):
        own = [error for error in found.errors if (error.records, error.epsilon) == (records, epsilon)]
        errors = [[error.simulated for error in own if (error.approach, error.numbers) == kind] for kind in kinds]
        y = Axis(title="root mean square error, records", kind="log")
        panels.append(Panel(x, y, _lines(*errors), f"ε = {float(epsilon):g}, {records:,} records"))
    title = "Error at the same budget: the cube alone, and several levels"
    names = [f"{approach}, {numbers}" for approach, numbers in kinds]
    return draw_panels(panels, title=title, series=names, columns=len(found.designs), size=(320, 200))


def _dimensions() -> Axis:
    return Axis(title="dimensions of the table", classes=[str(size) for size in TABLE_4])


def _lines(*series: Sequence[float | None]) -> list[Mark]:
    """A line by dimension for each series, with gaps where there is no figure."""
    figures = [[nan if figure is None else figure for figure in some] for some in series]
    return [Mark(kind="line", x=range(len(some)), y=some, series=at) for at, some in enumerate(figures)]


# The page of the reproduction.

_HEADING = "The bottom-up hypercube, published and computed again"
_COLUMNS = (
    *("quantity", "j", "dimension", "calibration", "variant", "tolerance", "runs", "runs_used", "epsilon", "records"),
    *("workload", "approach", "numbers", "levels", "share", "recommended", "tables", "draws", "attack", "known"),
    *("published", "ours", "theory"),
)
_MEASURES: dict[Measure, str] = {
    "variance": "Variance in a cell over runs, the mean over cells and tables",
    "within_run": "Variance over all cells of a dimension in one run, the mean over runs",
    "mean_square": "Mean square of the noise, bias included",
}


def _body(found: Reproduction) -> str:
    probabilities = [row for row in found.rows() if row["quantity"] == "noise_probability"]
    table_2 = ((f"±{row['j']}", TABLE_2[row["j"]], f"{row['ours']:.9f}") for row in probabilities)
    tables = "".join(f"<h3>{title}</h3>{_table_4_page(found, measure)}" for measure, title in _MEASURES.items())
    return f"""\
<p>The figures of Li and Krenzke (2020). {found.runs:,} runs on {RECORDS} records made here, because the real ones are
not at hand; the noise does not depend on them, raking does.</p>
<h2>What was found</h2>
{bullets(findings(found))}
<figure>{reductions(found)}</figure>
<h2>Table 2: the noise</h2>
{rows_table(("perturbation", "published", "here"), table_2, numbers=range(3))}
<h2>Table 4: what calibration takes away</h2>
<p>Raking counts the runs in which it converged only, least squares all of them. The last table has all runs of raking,
too: where it did not converge, the cycle that came nearest to the controls.</p>
{tables}
<h3>Raking in all runs: variance in a cell over runs</h3>
{_raked_in_all(found)}
<h3>Reduction by least squares of two-sided noise, by what is averaged: theory, and here</h3>
<p>A table with cardinalities k keeps 1 − (1 + Σ(k − 1))/Πk of its variance. Tables of one dimension differ in that.</p>
{_averages(found)}
<h2>Several levels instead of one, at the same budget</h2>
<p>Bottom-up spends all of ε on the cube. The alternative measures a few tables by themselves as well and combines all
by least squares; whole numbers that are not negative follow from that. δ = {found.levels.delta:.2g};
{found.levels.runs} runs.</p>
<figure>{level_errors(found.levels)}</figure>
{_level_errors(found)}
<h3>What to prefer: expected root mean square error by the tables asked for</h3>
{_workloads(found)}
<h2>Each table by itself, at the same budget</h2>
<p>The interactive approach: every table that is asked for has noise of its own and a part of ε and δ.</p>
<figure>{interactive_errors(found)}</figure>
<h2>The assessment after perturbation, on a synthetic survey</h2>
<p>A cube with the noise of Table 2 and two noisy controls, on quotes made here.</p>
<h3>Records that are the only ones with what is known of them</h3>
{_intruders(found)}
<h3>What protection costs, by dimensions of the table</h3>
{_costs(found)}"""


def interactive_errors(found: Reproduction) -> str:
    """The error of a cell by the number of tables that are asked for, beside that of tables of the cube."""
    x = Axis(title="tables asked for", kind="log")
    y = Axis(title="root mean square error, records", kind="log")
    panels, shown = [], (1, 2, 3, 10)
    for epsilon in EPSILONS:
        errors = [found.interactive.asked[epsilon, tables] for tables in TABLES]
        marks = [Mark(kind="line", x=TABLES, y=errors, series=0)]
        for at, size in enumerate(shown, start=1):
            level = found.interactive.cube[epsilon, size]
            marks.append(Mark(kind="line", x=(TABLES[0], TABLES[-1]), y=(level, level), series=at))
        panels.append(Panel(x, y, marks, f"ε = {float(epsilon):g}"))
    names = ("interactive", *(f"cube, {size} dimensions" for size in shown))
    return draw_panels(panels, title="Error of a cell: each table by itself, and the cube", series=names)


def _intruders(found: Reproduction) -> str:
    rows = (
        (
            part.attack,
            ", ".join(part.known),
            f"{part.targets:,}",
            *(f"{share / part.targets:.1%}" for share in (part.unprotected, part.disclosed, part.guessed)),
        )
        for part in found.assessed.assessment.linkage
    )
    return _rows(("attack", "known", "targets", "without protection", "disclosed", "by guessing"), rows)


def _costs(found: Reproduction) -> str:
    heads = (
        *("dimensions", "publishable before", "newly publishable", "newly marked", "median relative difference"),
        *("overlap of intervals", "Hellinger distance", "published error beside the paper's"),
    )
    rows = []
    for part in found.assessed.assessment.by_dimension:
        totals, distance = part.kind(TOTALS).all, part.kind(TOTALS).distances
        rows.append(
            (
                f"{part.dimensions}",
                *(f"{number:,}" for number in (totals.publishable, totals.newly_publishable, totals.newly_marked)),
                *(f"{share:.1%}" for share in (totals.median_difference, totals.overlap)),
                "" if distance is None else f"{distance.hellinger:.3f}",
                f"{totals.error_ratio:.2f}",
            )
        )
    return _rows(heads, rows)


def _table_4_page(found: Reproduction, measure: Measure) -> str:
    kinds = [(calibration, variant) for variant in VARIANTS for calibration in CALIBRATIONS]
    columns = [found.lines(calibration, variant, measure) for calibration, variant in kinds]
    heads = ["dimensions", "published", *(f"{calibration}, {variant}" for calibration, variant in kinds)]
    return _rows(heads, _table_4_rows(columns))


def _raked_in_all(found: Reproduction) -> str:
    columns = [found.lines("raking", variant, runs="all") for variant in VARIANTS]
    heads = ["dimensions", "published", *(f"raking, {variant}, {found.runs:,} runs" for variant in VARIANTS)]
    return _rows(heads, _table_4_rows(columns))


def _averages(found: Reproduction) -> str:
    by_table, by_cell = (found.reductions("least-squares", "two-sided", averaged) for averaged in AVERAGED)
    over_runs, within = (found.lines("least-squares", "two-sided", measure) for measure in ("variance", "within_run"))

    def both(theory: float, ours: float | None) -> str:
        return f"{theory:.1%}, {'–' if ours is None else f'{ours:.1%}'}"

    heads = [
        "dimensions",
        "published",
        "mean variance",
        "mean over tables",
        "mean over cells",
        "within a run",
        "k at its mean",
    ]
    return _rows(
        heads,
        (
            (
                str(size),
                f"{TABLE_4[size][2]:.1%}",
                both(theory.reduction, over_runs[place].reduction),
                both(theory.by_table, by_table[size]),
                both(theory.by_cell, by_cell[size]),
                both(theory.within_run, within[place].reduction),
                f"{at_mean_cardinality(size):.1%}",
            )
            for place, (size, theory) in enumerate(found.theory.items())
        ),
    )


def _level_errors(found: Reproduction) -> str:
    """One line for each budget, survey and approach; dimensions across."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for error in found.levels.errors:
        chosen = found.levels.designs[error.epsilon]
        what = error.approach if error.approach == "bottom-up" else f"{float(chosen.share):.0%} for {chosen.name}"
        line = (f"{float(error.epsilon):g}", f"{error.records:,}", f"{what}, {error.numbers}")
        lines.setdefault(line, []).append(f"{error.simulated:.3g}")
    heads = ("ε", "records", "root mean square error by dimensions", *map(str, TABLE_4))
    return _rows(heads, ((*line, *errors) for line, errors in lines.items()))


def _workloads(found: Reproduction) -> str:
    rows = (
        (f"{float(epsilon):g}", workload, "; ".join(_candidate(candidate) for candidate in candidates))
        for (epsilon, workload), candidates in found.levels.workloads.items()
    )
    return _rows(("ε", "tables asked for", "from the best to the worst"), rows)


def _candidate(candidate: Candidate) -> str:
    share = "" if candidate.is_bottom_up else f" with {float(candidate.share):.0%}"
    return f"{candidate.name}{share} {candidate.error:.3g}"


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return rows_table(heads, rows, numbers=range(len(heads)))


def _table_4_rows(columns: Sequence[Sequence[Line]]) -> Iterator[Sequence[str]]:
    for place, (size, printed) in enumerate(TABLE_4.items()):
        lines = [column[place] for column in columns]
        yield str(size), shown(*printed), *(shown(line.plain, line.calibrated, line.reduction) for line in lines)


def shown(before: float | None, after: float | None, reduction: float | None) -> str:
    """A line of Table 4 in one cell."""
    if before is None or after is None:
        return "–"
    return f"{before:.3f} → {after:.3f}" + ("" if reduction is None else f" ({reduction:.1%})")


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""


# What `sfumato reproduce li2020` says: published figures, ours, and what was found.


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(f"{PAPER}: the bottom-up hypercube, {found.runs:,} runs."),
        _table_2(found),
        _table_4_summary(found),
        *(Text(f"- {sentence}") for sentence in findings(found)),
        Text(f"\nChart: {page}\nAll figures: {table}"),
    ]
    return Group(*lines), {"paper": PAPER, "rows": list(found.rows()), "findings": findings(found)}


def _table_2(found: Reproduction) -> Table:
    table = printed_table("Table 2", "published", "here", numbers=2)
    for row in found.rows():
        if row["quantity"] == "noise_probability":
            table.add_row(f"±{row['j']}", TABLE_2[row["j"]], f"{row['ours']:.9f}")
    return table


def _table_4_summary(found: Reproduction) -> Table:
    columns = [(calibration, variant) for variant in VARIANTS for calibration in CALIBRATIONS]
    heads = ("published", *(f"{calibration}\n{variant}" for calibration, variant in columns))
    table = printed_table("Table 4", *heads, numbers=len(heads))
    lines = [found.lines(calibration, variant) for calibration, variant in columns]
    for place, (size, printed) in enumerate(TABLE_4.items()):
        ours = (column[place] for column in lines)
        cells = (shown(line.plain, line.calibrated, line.reduction) for line in ours)
        table.add_row(str(size), shown(*printed), *cells)
    converged = [f"{found.converged(calibration, variant):,} runs" for calibration, variant in columns]
    table.add_row("met", "224 of 1,000", *converged)
    return table
