"""The page and the CSV file of a reproduction."""

import csv
import io
from collections.abc import Iterator
from html import escape
from pathlib import Path

from sfumato.durable import write_durably
from sfumato.reproduce.charts import against_epsilon
from sfumato.reproduce.haney2017 import PAPER, Reproduction
from sfumato.reproduce.published import BASE_ALPHA, BASE_EPSILON
from sfumato.reproduce.workloads import ALL

_COLUMNS = (
    *("quantity", "workload", "attack", "method", "alpha", "epsilon", "stratum"),
    *("published", "relation", "ours", "targets", "guess", "reason"),
)
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
<title>{PAPER}: the cost of formal privacy, again</title><style>{_STYLE}</style></head><body>
<h1>The cost of formal privacy, published and measured again</h1>
<p>The evaluation of Haney and others (2017) on a synthetic economy of {found.jobs:,} jobs, {found.grid.trials} trials
at each setting. Errors are mean L1 errors divided by those of the legacy protection (permanent factors 10% to 25% from
one): below the line at 1 a formal guarantee costs nothing. Dashed: the paper's methods; dotted: baselines that
protect only individuals (laplace) or whole establishments (node-laplace); solid: sfumato's.</p>
<h2>Published findings and aims</h2>
{_findings(found)}
{"".join(_figures(found))}
<h2>The attacks on the legacy protection</h2>
<p>At α = {float(BASE_ALPHA):g}, ε = {float(BASE_EPSILON):g}, workload 3. An attack succeeds when what it reads off the
published table is exact; the guess is what a reader without the table would get right.</p>
{_attacks(found)}
<h2>Where methods do not exist</h2>
<ul>{"".join(f"<li>{escape(line)}</li>" for line in _skipped(found))}</ul>
</body></html>
"""


def _findings(found: Reproduction) -> str:
    head = "".join(f"<th scope='col'>{name}</th>" for name in ("source", "what", "stated", "here", "agrees", "note"))
    rows = "".join(
        f"<tr><td>{escape(line.source)}</td><td>{escape(line.what)}</td><td>{escape(line.stated)}</td>"
        f"<td>{escape(line.ours)}</td><td{' class=no' if line.holds is False else ''}>{_verdict(line.holds)}</td>"
        f"<td>{escape(line.note)}</td></tr>"
        for line in found.findings
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _verdict(holds: bool | None) -> str:
    return "" if holds is None else "yes" if holds else "no"


def _figures(found: Reproduction) -> Iterator[str]:
    alphas = [f"α = {float(alpha):g}" for alpha in found.grid.alphas]
    strata = list(dict.fromkeys(row.stratum for row in found.measured))
    titles = {1: "Workload 1", 2: "Workload 2, single cells", 3: "Workload 3, the full marginal"}
    drawn = [("l1_ratio", number, titles[number]) for number in titles]
    drawn += [("spearman", 1, "Ranking 1"), ("spearman", 2, "Ranking 2")]
    for quantity, number, title in drawn:
        rows = [row for row in found.measured if row.workload == number]
        overall = [row for row in rows if row.stratum == ALL]
        base = [row for row in rows if row.alpha == BASE_ALPHA]
        yield f"<h2>{title}: {found.cells[number]:,} cells</h2>"
        for part, by, heads, words in (
            (overall, "alpha", alphas, "all places, by α"),
            (base, "stratum", strata, f"by population of the place, α = {float(BASE_ALPHA):g}"),
        ):
            if any(row.ours is not None for row in part):
                chart = against_epsilon(part, quantity=quantity, by=by, heads=heads, title=f"{title}: {words}")
                yield f"<figure>{chart}</figure>"


def _attacks(found: Reproduction) -> str:
    head = "".join(f"<th scope='col'>{n}</th>" for n in ("attack", "method", "targets", "succeeded", "guess", "note"))
    rows = "".join(
        f"<tr><td>{escape(row['attack'])}</td><td>{escape(row['method'])}</td><td class=number>{row['targets']:,}</td>"
        f"<td class=number>{_percent(row['ours'])}</td><td class=number>{_percent(row['guess'])}</td>"
        f"<td>{escape(row.get('reason', ''))}</td></tr>"
        for row in found.rows()
        if row["quantity"] == "attack_success"
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _skipped(found: Reproduction) -> list[str]:
    lines = [
        f"workload {row.workload}, {row.method}, α = {float(row.alpha):g}, ε = {float(row.epsilon):g}: {row.reason}"
        for row in found.measured
        if row.reason and row.quantity == "l1_ratio" and row.stratum == ALL
    ]
    return lines or ["nowhere in these settings"]
