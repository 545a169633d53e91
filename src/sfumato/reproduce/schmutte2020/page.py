"""The page of the reproduction."""

from sfumato.reproduce.page import Page, bullets, findings_table, rows_table
from sfumato.reproduce.schmutte2020.charts import envelope_chart, methods_chart, percentiles_chart, tails_chart
from sfumato.reproduce.schmutte2020.findings import errata, findings
from sfumato.reproduce.schmutte2020.reproduction import PAPER, Reproduction
from sfumato.reproduce.schmutte2020.tables import TextTable, text_tables

_HEADING = "Statistics from small samples, published and computed again"
_COLUMNS = (
    *("quantity", "class", "size_class", "people", "groups", "cells", "protection", "method", "curve", "bins"),
    *("percentile", "statistic", "year", "threshold", "excess", "attack", "epsilon"),
    *("published", "ours", "rounded", "line", "withheld", "planned", "as_published", "keys"),
)


def _body(found: Reproduction) -> str:
    tails, methods, curves, budget, differences = text_tables(found)
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
<figure>{envelope_chart(found)}</figure>
<h2>Tails</h2>
<figure>{tails_chart(found)}</figure>
{_table(tails)}
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
