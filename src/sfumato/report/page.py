"""The confidential report: one HTML page that says what the protection costs and what it reveals."""

from collections.abc import Sequence
from html import escape
from math import ceil
from pathlib import Path

from sfumato.bundle.statement import meaning_of
from sfumato.durable import write_durably
from sfumato.measures.attacks import JointFindings
from sfumato.measures.drawing import (
    attacks_table,
    error_by_size,
    error_by_stratum,
    odds_by_size,
    published_by_size,
    sensitivity_of_cells,
    table,
    true_against_protected,
)
from sfumato.measures.limits import limit_section
from sfumato.measures.risk import (
    DOMINANCE_PERCENT,
    LEAST_CONTRIBUTORS,
    P_PERCENT,
    SENSITIVITY_SHARES,
    Exposure,
    Sensitivity,
    SizeOdds,
    Suppression,
    odds_of_sizes,
)
from sfumato.measures.usability import HEADINGS, PUBLISHED, Usability, published_rows, usability_rows
from sfumato.measures.utility import Association, ClassUtility, Utility
from sfumato.method import CONFIDENCE
from sfumato.plan import Plan
from sfumato.privacy.guarantee import Guarantee
from sfumato.report.assessment import Assessment
from sfumato.sections import About
from sfumato.statistics.cube.assess_report import cube_section
from sfumato.statistics.jobs.assess_sparse import sparse_section
from sfumato.statistics.panel.assess_network import comparison_section, network_section
from sfumato.statistics.people.assess import people_section
from sfumato.statistics.totals.section import LABELS

_STYLE = """
:root { --ink: #33312e; --paper: #faf7f2; --line: #d9d2c5; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 62rem; padding: 1.5rem; }
.confidential { background: #7a1f1f; color: #fff; padding: .6rem 1rem; border-radius: .4rem; font-weight: 600; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .9rem; line-height: 1.35; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th[scope=row] { font-weight: 500; min-width: 9rem; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: right; }
tr > :not(:first-child) { max-width: 11rem; }
th:first-child, td:first-child { text-align: left; }
figure { display: inline-block; margin: 0 1rem 1rem 0; background: #fffdf9; border-radius: .4rem; padding: .5rem; }
svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
details { margin: .5rem 0 1rem; } summary { cursor: pointer; }
@media print {
  body { max-width: none; padding: 0; background: #fff; font-size: 10pt; }
  .confidential { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .wide { overflow: visible; } table { font-size: 8pt; } th, td { padding: .1rem .35rem; }
  figure, tr { break-inside: avoid; } h2, caption { break-after: avoid; } figure { display: block; padding: 0; }
}
"""
_WHY = ("table", "why", "cells")
_DRAWN_SIZE = 100
"""Of this size it is drawn how well it is told apart from others."""
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_LARGEST_FACTOR = 10_000
"""Odds that may change by more than this tell sizes apart; by how much more does not matter."""


def write_report(found: Assessment) -> Path:
    """Write the report, readable by its owner only."""
    return write_page(
        found.report,
        found.plan.release.about,
        note="CONFIDENTIAL: this page shows true values. Do not publish it or pass it on.",
        heading="what the protection costs",
        body=report_body(found),
    )


BEGINS = b"<!doctype html>"
"""How confidential pages begin; nothing else is ever written over by one."""


def write_page(path: Path, about: About, *, note: str, heading: str, body: str) -> Path:
    """Write a confidential page, readable by its owner only."""
    page = f"""{BEGINS.decode()}
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Confidential: {escape(about.title)}</title><style>{_STYLE}</style></head><body>
<p class="confidential" role="note">{escape(note)}</p>
<h1>{escape(about.title)}: {escape(heading)}</h1>
{body}
</body></html>
"""
    write_durably(path, page.encode())
    path.chmod(0o600)
    return path


def report_body(found: Assessment) -> str:
    """All findings about a release, section by section."""
    plan, about = found.plan, found.plan.release.about
    usable = {one.name: one for one in found.usability}
    sections = (
        _section(plan, utility, exposure, usable.get(utility.name))
        for utility, exposure in zip(found.utilities, found.exposures, strict=True)
    )
    grown = (
        table(f"{one.title}: growth since the {LABELS[one.since].lower()}", ("what", "found"), one.rows())
        for one in found.growth
    )
    return f"""<p>Population {escape(about.population)}, period {escape(about.period)}. Guarantee of all tables
together: {escape(_short(plan.guarantee))}.</p>
{"".join(f"<p>{escape(paragraph)}</p>" for paragraph in meaning_of(plan))}
{_sizes(plan)}
{network_section(found.network)}
{"".join(map(comparison_section, found.networks))}
{"".join(sections)}
{"".join(map(_together, found.together))}
{"".join(grown)}
{"".join(map(sparse_section, found.sparse))}
{"".join(map(people_section, found.people))}
{"".join(f"<h2>{escape(title)}: whole units</h2>{limit_section(limit)}" for title, limit in found.limits)}
{"".join(map(cube_section, found.cubes))}
<h2>What can be used</h2>
{"".join(table(one.caption, (one.sizes, *HEADINGS), usability_rows(one)) for one in found.usability)}"""


def _sizes(plan: Plan) -> str:
    """How well sizes of establishments are hidden; records have none."""
    if not plan.release.data.of_jobs:
        return ""
    caption = "Telling two sizes of an establishment apart, all tables together"
    drawn = odds_by_size(plan.guarantee, _DRAWN_SIZE)
    return _odds(odds_of_sizes(plan.guarantee), caption) + (f"<figure>{drawn}</figure>" if drawn else "")


def _section(plan: Plan, utility: Utility, exposure: Exposure, usable: Usability | None) -> str:
    if utility.is_exact and usable is not None:
        return _section_of_true_numbers(plan, utility, exposure, usable)
    labels = {part.attribute: plan.label(part.attribute) for part in utility.by_stratum}
    charts = [true_against_protected(utility), error_by_size(utility)]
    charts += [error_by_stratum(part, labels[part.attribute], utility.unit) for part in utility.by_stratum]
    strata = "".join(
        _classes(utility, f"Error by {labels[part.attribute].lower()}", labels[part.attribute], part.strata)
        for part in utility.by_stratum
    )
    sizes = (*utility.by_size, *([utility.margins] if utility.margins else []))
    alone = () if exposure.odds == odds_of_sizes(plan.guarantee) else exposure.odds  # else it was said of all tables
    return f"""<h2>{escape(utility.title)}</h2>
<p>{escape(_in_short(utility))}</p>
{"".join(f"<figure>{chart}</figure>" for chart in charts)}
{_classes(utility, "Error by true size of the cell", utility.sizes, sizes)}
{strata}
{_whole(utility)}
{_reference(utility)}
<h3>What it reveals</h3>
{_revealed(utility, exposure)}
{_sensitivity(exposure.sensitivity, utility.unit)}
{_suppression(exposure.suppression)}
{_attacks(plan, utility, exposure)}
{_odds(alone, "Telling two sizes of an establishment apart, this table alone")}"""


def _section_of_true_numbers(plan: Plan, utility: Utility, exposure: Exposure, usable: Usability) -> str:
    """What is published and withheld: published cells have no errors to draw, and are true by no chance."""
    return f"""<h2>{escape(utility.title)}</h2>
<p>{escape(usable.in_words())}</p>
<figure>{published_by_size(usable)}</figure>
{table("Published and withheld, by true size of the cell", (usable.sizes, *PUBLISHED), published_rows(usable))}
{_reference(utility)}
{_sensitivity(exposure.sensitivity, utility.unit)}
{_attacks(plan, utility, exposure)}"""


def _in_short(utility: Utility) -> str:
    """How many cells there are, what they hold, and how far they are off."""
    told = utility.total_true is not None
    cells = (
        f"{utility.cells:,} cells with {utility.total_true:,} {utility.unit}" if told else f"{utility.cells:,} cells"
    )
    beside = f", and {utility.margins.cells:,} totals of rows and columns, looked at apart" if utility.margins else ""
    unit = "" if told else f" {utility.unit}"
    expected = "expected before the tables were made to agree" if utility.agreed else "expected"
    text = f"{cells}{beside}. A cell is off by {_amount(utility.mean_error)}{unit} on average "
    text += f"({_amount(utility.expected_error)} {expected})"
    if utility.total_true is None or utility.total_protected is None:
        return f"{text}."
    return f"{text}; all cells together by {utility.total_protected - utility.total_true:+,}."


def _classes(utility: Utility, caption: str, what: str, classes: Sequence[ClassUtility]) -> str:
    """The errors of classes of cells, with the columns that the table has: not every one publishes intervals."""
    columns = [
        ("cells", [f"{part.cells:,}" for part in classes]),
        ("mean error", [_amount(part.mean_error) for part in classes]),
        (
            "expected before the tables were made to agree" if utility.agreed else "expected",
            [_amount(part.expected_error) for part in classes],
        ),
        ("relative", [_figure(part.relative_error, ".1%") for part in classes]),
        (f"inside the published {CONFIDENCE:.0%} interval", [_figure(part.covered, ".1%") for part in classes]),
        ("share of the table: mean difference", [_figure(part.share_difference, "+.3f") for part in classes]),
        ("its standard deviation", [_figure(part.share_difference_sd, ".3f") for part in classes]),
        ("error as a ratio to the reference", [_figure(part.error_ratio, ".3f") for part in classes]),
    ]
    known = [(heading, figures) for heading, figures in columns if any(figures)]
    rows = zip([part.label for part in classes], *(figures for _, figures in known), strict=True)
    return table(caption, (what, *(heading for heading, _ in known)), rows)


def _attacks(plan: Plan, utility: Utility, exposure: Exposure) -> str:
    """What was tried: on the largest contributor of totals of records, else on establishments alone in a cell."""
    planned = next(planned for planned in plan.tables if planned.name == utility.name.split("/")[0])
    if planned.of_records:
        return attacks_table(
            "Attacks on the largest contributor of a cell", exposure.attacks, guess="disclosed by the true total"
        )
    return attacks_table(f"Attacks on {planned.attacked}", exposure.attacks)


def _together(found: JointFindings) -> str:
    """What was tried on all tables of a kind together."""
    why = table("Which cells are sensitive, and why; a cell may be so for several reasons", _WHY, found.reasons)
    tried = attacks_table(found.caption, found.attacks, guess=found.guess)
    note = f"<p>{escape(found.note)}</p>" if found.note and found.attacks else ""
    return f"<h2>{escape(found.heading)}</h2>{why if found.reasons else ''}{tried}{note}"


def _whole(utility: Utility) -> str:
    """The figures about the table as a whole."""
    rows = [
        ("mean relative error of cells that are not empty", _figure(utility.relative_error, ".1%")),
        (f"cells inside their published {CONFIDENCE:.0%} interval", _figure(utility.covered, ".1%")),
        ("rank correlation (Spearman)", _figure(utility.spearman, ".4f")),
        ("smallest tenth of cells still among the smallest", _figure(utility.bottom_tail, ".1%")),
        ("largest tenth of cells still among the largest", _figure(utility.top_tail, ".1%")),
        ("Jensen-Shannon distance of the shares, 0 to 1", _figure(utility.jensen_shannon, ".4f")),
        ("Hellinger distance of the shares, 0 to 1", _figure(utility.hellinger, ".4f")),
        ("root integrated squared error of the shares", _figure(utility.root_integrated_squared_error, ".5f")),
    ]
    rows += [
        (f"Cramér's V of {' and '.join(part.attributes)}, true → published", _change(part))
        for part in utility.associations
    ]
    return table("The table as a whole", ("measure", "figure"), [row for row in rows if row[1]])


def _reference(utility: Utility) -> str:
    """The table beside the same one under another protection."""
    found = utility.reference
    if found is None:
        return ""
    rows = [
        ("mean error as a ratio to the reference's; below 1 it is smaller", _figure(found.error_ratio, ".3f")),
        ("cells whose relative error is at most 10 points above the reference's", _figure(found.near, ".1%")),
        ("…and not more than 10 points below it either", _figure(found.near_either_way, ".1%")),
        ("rank correlation of both published tables (Spearman)", _figure(found.spearman, ".4f")),
    ]
    return table("Beside the reference protection", ("measure", "figure"), rows)


def _sensitivity(found: Sensitivity | None, unit: str) -> str:
    """How much of its cell the largest establishment has, over all cells with jobs."""
    if found is None:
        return ""
    at = [SENSITIVITY_SHARES.index(share) for share in _QUANTILES]
    rows = [
        ("share of the cell in its largest establishment", *(f"{found.share[place]:.1%}" for place in at)),
        (f"{unit} of the largest establishment", *(f"{found.largest[place]:,.0f}" for place in at)),
    ]
    if found.step is not None:
        what = f"{unit} that one neighbour step changes at most"
        rows.append((what, *(f"{found.step[place]:,.1f}" for place in at)))
    headings = ("at most so much", *(f"in {share:.0%} of cells" for share in _QUANTILES))
    caption = f"What one establishment contributes, {found.cells:,} cells with {unit}"
    return f"{table(caption, headings, rows)}<figure>{sensitivity_of_cells(found)}</figure>"


def _change(part: Association) -> str:
    return f"{_figure(part.true, '.3f')} → {_figure(part.protected, '.3f')}"


def _revealed(utility: Utility, exposure: Exposure) -> str:
    zero, one = exposure.zero_changes, exposure.uniques
    rows = [
        ("cells published with their true value, by chance", _figure(exposure.exact, ".1%")),
        ("…among cells that are not 0", _figure(exposure.exact_with_jobs, ".1%")),
        ("cells moved from 0 to another value", f"{zero.to_nonzero:,}"),
        ("cells moved from another value to 0", f"{zero.to_zero:,}"),
    ]
    if not utility.counts:
        return table("Exact values and zeros", ("what", "found"), rows)
    single = "a single job" if utility.unit == "jobs" else "just 1"
    rows += [
        (f"cells with {single}", f"{one.true:,}"),
        ("cells published as 1", f"{one.published:,}"),
        (f"…of which hold {single}", f"{one.both:,}"),
    ]
    caption = "Exact values, zeros and " + ("single jobs" if utility.unit == "jobs" else "ones")
    return table(caption, ("what", "found"), rows)


def _suppression(found: Suppression | None) -> str:
    if found is None:
        return ""
    rows = (
        (f"fewer than {LEAST_CONTRIBUTORS} establishments", _hidden(found.threshold, found.cells)),
        (f"p% rule, p = {P_PERCENT}, at least", _hidden(found.p_percent, found.cells)),
        (f"one establishment above {DOMINANCE_PERCENT}%", _hidden(found.dominance, found.cells)),
        ("any of these", _hidden(found.any_rule, found.cells)),
    )
    return table("Cells that suppression would hide, and this release publishes", ("rule", "cells"), rows)


def _hidden(cells: int | None, of: int) -> str:
    return "not known" if cells is None else f"{cells:,} of {of:,} ({cells / max(of, 1):.1%})"


def _odds(pairs: Sequence[SizeOdds], caption: str) -> str:
    if all(pair.steps is None for pair in pairs):
        return f"<p>{escape(caption)}: no bound, because there is no formal guarantee.</p>" if pairs else ""
    rows = ((f"{pair.smaller:,} or {pair.larger:,} workers", *_bounds(pair)) for pair in pairs)
    headings = ("sizes", "neighbour steps", "odds change at most by a factor of", "a belief of 50% becomes at most")
    return table(caption, headings, rows)


def _bounds(pair: SizeOdds) -> tuple[str, str, str]:
    if pair.factor > _LARGEST_FACTOR:
        return f"{pair.steps}", f"over {_LARGEST_FACTOR:,}", f"over {_LARGEST_FACTOR / (1 + _LARGEST_FACTOR):.2%}"
    # Rounded up: a bound must not look tighter than it is.
    return f"{pair.steps}", f"{ceil(10 * pair.factor) / 10:,.1f}", f"{ceil(10_000 * pair.belief) / 100:.2f}%"


def _short(guarantee: Guarantee) -> str:
    return str(guarantee) if guarantee.bound is not None else "none"


def _amount(value: float) -> str:
    """A mean error: of millions, whole units are enough."""
    return f"{value:,.2f}" if abs(value) < 10**6 else f"{value:,.0f}"


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
