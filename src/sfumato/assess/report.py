"""The confidential report: one HTML page that says what the protection costs."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from sfumato.assess.charts import error_by_size, true_against_protected
from sfumato.assess.utility import ClassUtility, Utility
from sfumato.durable import write_durably
from sfumato.plan import Plan
from sfumato.publish.statement import establishment, person
from sfumato.publish.table import CONFIDENCE

_STYLE = """
:root { --ink: #33312e; --paper: #faf7f2; --line: #d9d2c5; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 62rem; padding: 1.5rem; }
.confidential { background: #7a1f1f; color: #fff; padding: .6rem 1rem; border-radius: .4rem; font-weight: 600; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
figure { display: inline-block; margin: 0 1rem 1rem 0; background: #fffdf9; border-radius: .4rem; padding: .5rem; }
svg { max-width: 100%; height: auto; }
"""


def write_report(plan: Plan, utilities: Sequence[Utility], path: Path) -> Path:
    """Write the report, readable by its owner only."""
    about = plan.release.about
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Confidential: {escape(about.title)}</title><style>{_STYLE}</style></head><body>
<p class="confidential" role="note">CONFIDENTIAL: this page shows true values. Do not publish it or pass it on.</p>
<h1>{escape(about.title)}: what the protection costs</h1>
<p>Population {escape(about.population)}, period {escape(about.period)}. Guarantee of all tables together:
{escape(str(plan.guarantee))}.</p>
<p>{escape(person(plan.guarantee))}</p>
<p>{escape(" ".join(establishment(plan.guarantee)))}</p>
{"".join(map(_section, utilities))}
</body></html>
"""
    write_durably(path, page.encode())
    path.chmod(0o600)
    return path


def _section(utility: Utility) -> str:
    rows = "".join(map(_row, utility.by_size))
    difference = utility.total_protected - utility.total_true
    return f"""<h2>{escape(utility.title)}</h2>
<p>{utility.cells:,} cells with {utility.total_true:,} jobs. A cell is off by {utility.mean_error:,.2f} jobs on average
({utility.expected_error:,.2f} expected); all cells together by {difference:+,}.</p>
<figure>{true_against_protected(utility)}</figure><figure>{error_by_size(utility)}</figure>
<table><caption>Error by true size of the cell</caption>
<tr><th scope="col">jobs in the cell</th><th scope="col">cells</th><th scope="col">mean error</th>
<th scope="col">expected</th><th scope="col">relative</th>
<th scope="col">inside the published {CONFIDENCE:.0%} interval</th></tr>{rows}</table>"""


def _row(size: ClassUtility) -> str:
    figures = (
        f"{size.cells:,}",
        f"{size.mean_error:,.2f}",
        f"{size.expected_error:,.2f}",
        "" if size.relative_error is None else f"{size.relative_error:.1%}",
        f"{size.covered:.1%}",
    )
    return f"<tr><th scope='row'>{size.label}</th>{''.join(f'<td>{figure}</td>' for figure in figures)}</tr>"
