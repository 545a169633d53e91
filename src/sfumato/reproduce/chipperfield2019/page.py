"""The page and the CSV file of the reproduction."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from sfumato.durable import write_durably
from sfumato.methods.contributor_calibration import Search, tradeoff
from sfumato.methods.contributor_shape import Shape
from sfumato.reproduce.chipperfield2019.charts import Mark, risk_against_loss
from sfumato.reproduce.chipperfield2019.errata import errata
from sfumato.reproduce.chipperfield2019.layout import laid_out
from sfumato.reproduce.chipperfield2019.reproduction import DIFFERENCING, PAPER, FoundPanel, Reproduction, listed

_COLUMNS = (
    *("quantity", "what", "source", "contributors", "m", "attack", "attacks", "v", "parity", "falling"),
    *("table", "approach", "occupation", "industry", "state", "sex"),
    *("published", "relation", "ours", "loss", "true", "perturbed", "low", "high", "keys"),
)
_LARGEST, _STEP = 0.5, 0.025  # magnitudes drawn in the charts
_STYLE = """
:root { --ink: #33312e; --paper: #faf7f2; --line: #d9d2c5; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 68rem; padding: 1.5rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.no { color: #7a1f1f; font-weight: 600; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
figure { margin: 0; background: #fffdf9; border-radius: .4rem; padding: .5rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
"""


def write_reproduction(found: Reproduction, folder: Path) -> tuple[Path, Path]:
    """Write the page and the CSV file into a folder, over those of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    page, table = folder / f"{PAPER}.html", folder / f"{PAPER}.csv"
    write_durably(table, _csv(found).encode())
    write_durably(page, _page(found).encode())
    return page, table


def _csv(found: Reproduction) -> str:
    lines = io.StringIO(newline="")
    writer = csv.DictWriter(lines, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in found.rows())
    return lines.getvalue()


def _page(found: Reproduction) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{PAPER}: business totals through a remote server, again</title><style>{_STYLE}</style></head><body>
<h1>Business totals through a remote server, published and computed again</h1>
<p>The figures of Chipperfield and others (2019). Risks and losses here are computed from the distribution of the
perturbation itself, not simulated.</p>
<h2>What does not agree with the paper's own definitions</h2>
<ul>{"".join(f"<li>{escape(sentence)}</li>" for sentence in errata(found))}</ul>
<h2>Table 1: one total, perturbed</h2>
{_rows(("", "published", "here"), ((line.what, f"{line.published:,}", f"{line.ours:,}") for line in found.example))}
<h2>Figure 1: risk of attack 2 against loss</h2>
<p>Each dot is a set of magnitudes up to {_LARGEST:g}; no set lies below the line. Dashed: the acceptable risk.</p>
<div class="panels">{"".join(f"<figure>{_panel(panel)}</figure>" for panel in found.panels)}</div>
{_rows(("", "", "published", "here"), _figure_1(found))}
<h2>Table 2: what the published magnitudes do</h2>
{_rows(("contributors", "m", "loss", "attack 1", "attack 2", "attack 3", "attack 2, parity rule"), _table_2(found))}
<h2>Table 2: the optimal magnitudes</h2>
<p>With the least mean loss of all magnitudes in steps of 0.05, under all three attacks, the same among those that never
grow from a contributor to a smaller one, and under attack 2 alone.</p>
{_rows(("contributors", "published", "all attacks", "never growing", "attack 2 alone"), _optima(found))}
<h2>Tables 3, 4, 6 and 7: utility by cell</h2>
<p>Tables like the paper's from a synthetic survey of {found.survey.businesses:,} businesses and
{found.survey.employees:,} employees, with magnitudes of 0.4, 0.3 and 0.2. The data are other ones, so only what impacts
come to can be compared: means over {found.survey.keys} keys, since one key is one draw; the paper had one.</p>
{"".join(f"<h3>{escape(laid.title)}</h3>{_rows(laid.heads, iter(laid.rows))}" for laid in laid_out(found.survey))}
</body></html>
"""


def _panel(panel: FoundPanel) -> str:
    shown, risk = panel.published, panel.ours.verdicts[0].risk
    shape, attack = Shape.read(shown.contributors), replace(DIFFERENCING, within=shown.within)
    tried = tradeoff(shape, Search(top=len(panel.ours.magnitudes), step=_STEP, largest=_LARGEST), attacks=[attack])
    mark = Mark(label=listed(panel.ours.magnitudes), loss=panel.ours.loss, risk=risk)
    title = f"{shown.name}: contributors {shown.contributors}, within {shown.within:.0%}"
    return risk_against_loss(tried, title=title, marks=[mark])


def _figure_1(found: Reproduction) -> Iterator[Sequence[str]]:
    for panel in found.panels:
        shown = panel.published
        yield shown.name, f"{shown.contributors}: loss", f"{shown.loss:.2f}", f"{panel.ours.loss:.3f}"
        risk = panel.ours.verdicts[0].risk
        yield "", f"risk of attack 2 within {shown.within:.0%}", f"{shown.risk:.2f}", f"{risk:.3f}"


def _table_2(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.optima:
        risks = [f"{verdict.risk:.3f}" + ("" if verdict.is_met else " ✗") for verdict in line.ours.verdicts]
        magnitudes = listed(line.published.magnitudes)
        yield line.published.contributors, magnitudes, f"{line.ours.loss:.3f}", *risks, f"{line.with_parity:.3f}"


def _optima(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.optima:
        bests = (line.under(1, 2, 3), line.under(1, 2, 3, falling=True), line.under(2))
        published = f"{listed(line.published.magnitudes)} (loss {line.ours.loss:.3f})"
        shown = [f"{listed(best.magnitudes)} (loss {best.loss:.3f})" for best in bests]
        yield line.published.contributors, published, *shown


def _rows(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{' class=no' if '✗' in cell else ''}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
