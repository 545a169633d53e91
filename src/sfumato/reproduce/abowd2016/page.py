"""The page of the reproduction."""

from collections.abc import Iterator

from sfumato.reproduce.abowd2016.chart import dispersion
from sfumato.reproduce.abowd2016.published import ALL, SIZE_CLASSES, TABLES
from sfumato.reproduce.abowd2016.reproduce import PAPER, Reproduction
from sfumato.reproduce.page import Page, findings_table, rows_table

_HEADING = "Noise infusion for graphs, published and measured again"
_COLUMNS = ("quantity", "table", "size_class", "published", "ours", "low", "high", "keys")
QUANTITIES = {"c_mean": "mean of c", "c_sd": "standard deviation of c", "jsd": "JSD", "rimse": "RIMSE"}


def _body(found: Reproduction) -> str:
    return f"""\
<p>Table 1 of Abowd and McKinney (2016) on a synthetic federal workforce: {found.edges:,} pairs among
{found.employers:,} employers share {found.workers:,} workers, in {found.cells:,} pairs of states. An edge takes the
factor of one of its two employers. The proportional difference of a cell is c = (π − π*)/(½π + ½π*), with π its true
and π* its protected share of the table. Figures here are means over {found.keys} keys, with the range over keys beside
them: one key is one draw, and the paper had one.</p>
<h2>Findings</h2>
{findings_table(found.findings)}
<h2>Dispersion by size of the cell</h2>
<figure>{dispersion(found)}</figure>
<h2>Table 1</h2>
{"".join(_tables(found))}"""


def _tables(found: Reproduction) -> Iterator[str]:
    rows = {(row["quantity"], row["table"], row["size_class"]): row for row in found.rows()}
    for table in TABLES:
        lines = (
            (size, words, f"{row['published']:.3f}", *_ours(row))
            for size in (*SIZE_CLASSES, ALL)
            for quantity, words in QUANTITIES.items()
            if (row := rows.get((quantity, table, size))) is not None
        )
        shown = rows_table(("edges in the cell", "", "published", "here", "range"), lines, numbers=(2, 3, 4))
        yield f"<h3>{table.capitalize()} table</h3>{shown}"


def _ours(row: dict[str, float]) -> tuple[str, str]:
    if row["ours"] is None:
        return "no cells", ""
    return f"{row['ours']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}"


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""
