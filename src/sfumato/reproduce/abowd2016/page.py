"""The page and the CSV file of the reproduction."""

import csv
import io
from collections.abc import Iterator
from html import escape
from pathlib import Path

from sfumato.durable import write_durably
from sfumato.reproduce.abowd2016.chart import dispersion
from sfumato.reproduce.abowd2016.published import ALL, SIZE_CLASSES, TABLES
from sfumato.reproduce.abowd2016.reproduce import PAPER, Reproduction

_COLUMNS = ("quantity", "table", "size_class", "published", "ours", "low", "high", "keys")
_STYLE = """
:root { --ink: #33312e; --paper: #faf7f2; --line: #d9d2c5; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 68rem; padding: 1.5rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.number { text-align: right; } .no { color: #7a1f1f; font-weight: 600; }
figure { margin: 0 0 1.5rem; background: #fffdf9; border-radius: .4rem; padding: .5rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
"""
QUANTITIES = {"c_mean": "mean of c", "c_sd": "standard deviation of c", "jsd": "JSD", "rimse": "RIMSE"}


def write_reproduction(found: Reproduction, folder: Path) -> tuple[Path, Path]:
    """Write the page and the CSV file into a folder, over those of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    page, table = folder / f"{PAPER}.html", folder / f"{PAPER}.csv"
    write_durably(table, _csv(found).encode())
    write_durably(page, _page(found).encode())
    return page, table


def _csv(found: Reproduction) -> str:
    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in found.rows())
    return lines.getvalue()


def _page(found: Reproduction) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{PAPER}: noise infusion for graphs, again</title><style>{_STYLE}</style></head><body>
<h1>Noise infusion for graphs, published and measured again</h1>
<p>Table 1 of Abowd and McKinney (2016) on a synthetic federal workforce: {found.edges:,} pairs among
{found.employers:,} employers share {found.workers:,} workers, in {found.cells:,} pairs of states. An edge takes the
factor of one of its two employers. The proportional difference of a cell is c = (π − π*)/(½π + ½π*), with π its true
and π* its protected share of the table. Figures here are means over {found.keys} keys, with the range over keys beside
them: one key is one draw, and the paper had one.</p>
<h2>Findings</h2>
{_findings(found)}
<h2>Dispersion by size of the cell</h2>
<figure>{dispersion(found)}</figure>
<h2>Table 1</h2>
{"".join(_tables(found))}
</body></html>
"""


def _findings(found: Reproduction) -> str:
    head = "".join(f"<th scope='col'>{name}</th>" for name in ("source", "what", "stated", "here", "agrees", "note"))
    rows = "".join(
        f"<tr><td>{escape(line.source)}</td><td>{escape(line.what)}</td><td>{escape(line.stated)}</td>"
        f"<td>{escape(line.ours)}</td><td{' class=no' if line.holds is False else ''}>"
        f"{'' if line.holds is None else 'yes' if line.holds else 'no'}</td><td>{escape(line.note)}</td></tr>"
        for line in found.findings
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _tables(found: Reproduction) -> Iterator[str]:
    rows = {(row["quantity"], row["table"], row["size_class"]): row for row in found.rows()}
    for table in TABLES:
        head = "".join(
            f"<th scope='col'>{name}</th>" for name in ("edges in the cell", "", "published", "here", "range")
        )
        lines = "".join(
            f"<tr><td>{escape(size)}</td><td>{words}</td><td class=number>{row['published']:.3f}</td>{_ours(row)}</tr>"
            for size in (*SIZE_CLASSES, ALL)
            for quantity, words in QUANTITIES.items()
            if (row := rows.get((quantity, table, size))) is not None
        )
        yield f"<h3>{table.capitalize()} table</h3><table><tr>{head}</tr>{lines}</table>"


def _ours(row: dict[str, float]) -> str:
    if row["ours"] is None:
        return "<td class=number>no cells</td><td></td>"
    return f"<td class=number>{row['ours']:.3f}</td><td class=number>{row['low']:.3f} to {row['high']:.3f}</td>"
