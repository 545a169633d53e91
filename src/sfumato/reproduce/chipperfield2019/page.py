"""The page of the reproduction."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from sfumato.methods.contributor_calibration import Search, tradeoff
from sfumato.methods.contributor_shape import Shape
from sfumato.reproduce.chipperfield2019.charts import Mark, risk_against_loss
from sfumato.reproduce.chipperfield2019.errata import errata
from sfumato.reproduce.chipperfield2019.layout import laid_out
from sfumato.reproduce.chipperfield2019.reproduction import DIFFERENCING, PAPER, FoundPanel, Reproduction, listed
from sfumato.reproduce.page import Page, bullets, rows_table

_HEADING = "Business totals through a remote server, published and computed again"
_COLUMNS = (
    *("quantity", "what", "source", "contributors", "m", "attack", "attacks", "v", "parity", "falling"),
    *("table", "approach", "occupation", "industry", "state", "sex"),
    *("published", "relation", "ours", "loss", "true", "perturbed", "low", "high", "keys"),
)
_TABLE_2 = ("contributors", "m", "loss", "attack 1", "attack 2", "attack 3", "attack 2, parity rule")
_LARGEST, _STEP = 0.5, 0.025  # magnitudes drawn in the charts


def _body(found: Reproduction) -> str:
    return f"""\
<p>The figures of Chipperfield and others (2019). Risks and losses here are computed from the distribution of the
perturbation itself, not simulated.</p>
<h2>What does not agree with the paper's own definitions</h2>
{bullets(errata(found))}
<h2>Table 1: one total, perturbed</h2>
{rows_table(("", "published", "here"), _table_1(found))}
<h2>Figure 1: risk of attack 2 against loss</h2>
<p>Each dot is a set of magnitudes up to {_LARGEST:g}; no set lies below the line. Dashed: the acceptable risk.</p>
<div class="panels">{"".join(f"<figure>{_panel(panel)}</figure>" for panel in found.panels)}</div>
{rows_table(("", "", "published", "here"), _figure_1(found))}
<h2>Table 2: what the published magnitudes do</h2>
{rows_table(_TABLE_2, _table_2(found))}
<h2>Table 2: the optimal magnitudes</h2>
<p>With the least mean loss of all magnitudes in steps of 0.05, under all three attacks, the same among those that never
grow from a contributor to a smaller one, and under attack 2 alone.</p>
{rows_table(("contributors", "published", "all attacks", "never growing", "attack 2 alone"), _optima(found))}
<h2>Tables 3, 4, 6 and 7: utility by cell</h2>
<p>Tables like the paper's from a synthetic survey of {found.survey.businesses:,} businesses and
{found.survey.employees:,} employees, with magnitudes of 0.4, 0.3 and 0.2. The data are other ones, so only what impacts
come to can be compared: means over {found.survey.keys} keys, since one key is one draw; the paper had one.</p>
{"".join(f"<h3>{escape(laid.title)}</h3>{rows_table(laid.heads, laid.rows)}" for laid in laid_out(found.survey))}"""


def _panel(panel: FoundPanel) -> str:
    shown, risk = panel.published, panel.ours.verdicts[0].risk
    shape, attack = Shape.read(shown.contributors), replace(DIFFERENCING, within=shown.within)
    tried = tradeoff(shape, Search(top=len(panel.ours.magnitudes), step=_STEP, largest=_LARGEST), attacks=[attack])
    mark = Mark(label=listed(panel.ours.magnitudes), loss=panel.ours.loss, risk=risk)
    title = f"{shown.name}: contributors {shown.contributors}, within {shown.within:.0%}"
    return risk_against_loss(tried, title=title, marks=[mark])


def _table_1(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.example:
        yield line.what, f"{line.published:,}", f"{line.ours:,}"


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


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""
