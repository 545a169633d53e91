"""The evaluation of Haney and others (2017) on a synthetic economy; docs/reproduce.md."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from html import escape
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.cli.screen import Table, printed_table, spaced
from sfumato.release import load
from sfumato.statistics.published import number
from sfumato_lab.economy.files import RELEASE
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.reproduce.haney2017.evaluate import (
    ALL,
    BASELINE,
    ENTRANTS,
    OURS,
    PAPER,
    Grid,
    Measured,
    Progress,
    draw_legacy,
    evaluate,
    tabulate_workloads,
)
from sfumato_lab.reproduce.haney2017.findings import (
    BASE_ALPHA,
    BASE_EPSILON,
    LEGACY,
    PUBLISHED,
    Attacked,
    findings,
    run_attacks,
)
from sfumato_lab.reproduce.haney2017.statements import Stated, stated
from sfumato_lab.reproduce.page import (
    Finding,
    Page,
    bullets,
    economy_folder,
    findings_table,
    printed_findings,
    rows_table,
)

# Charts of an evaluation.

_DASHES = {PAPER: "5 3", BASELINE: "1 3", OURS: ""}
_AXES = {
    "l1_ratio": Axis(title="error / error of the legacy", kind="log", holds=(1,)),
    "spearman": Axis(title="rank correlation", zero=False),
}


def against_epsilon(rows: Sequence[Measured], *, quantity: str, by: str, heads: Sequence[str], title: str) -> str:
    """Draw a figure against ε, one line a method, one panel for each value of `by` (alpha or stratum)."""
    shown = [row for row in rows if row.quantity == quantity and row.ours is not None]
    present = [entrant for entrant in ENTRANTS if any(row.method == entrant.name for row in shown)]
    epsilons = sorted({float(row.epsilon) for row in shown})
    x = Axis(title="ε", kind="log", ticks=epsilons)
    one = Mark(kind="line", x=(-inf, inf), y=(1, 1))
    panels = []
    for head in heads:
        marks = [one] if quantity == "l1_ratio" else []
        for at, entrant in enumerate(present):
            own = sorted(
                (float(row.epsilon), row.ours or 0.0)
                for row in shown
                if row.method == entrant.name and _panel(row, by) == head
            )
            xs, ys = [epsilon for epsilon, _ in own], [ours for _, ours in own]
            marks.append(Mark(kind="line", x=xs, y=ys, series=at, dash=_DASHES[entrant.kind]))
        panels.append(Panel(x, _AXES[quantity], marks, head))
    names = [entrant.name for entrant in present]
    return draw_panels(panels, title=title, series=names, columns=len(heads), size=(150, 190))


def _panel(row: Measured, by: str) -> str:
    return f"α = {float(row.alpha):g}" if by == "alpha" else row.stratum


NAME = "haney2017"
JOBS = 10_900_000
WHOLE = Grid(
    alphas=tuple(map(Fraction, ("0.01", "0.05", "0.1", "0.15", "0.2"))),
    epsilons=tuple(map(Fraction, ("0.25", "0.5", "0.67", "1", "2", "4"))),
    trials=20,
)
"""The settings and trials of the paper."""
QUICK = Grid(
    alphas=tuple(map(Fraction, ("0.01", "0.05", "0.1"))), epsilons=tuple(map(Fraction, ("1", "2", "4"))), trials=5
)
"""Fewer of both, on as many jobs."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was measured, and what it is compared with."""

    jobs: int
    grid: Grid
    cells: dict[int, int]
    measured: tuple[Measured, ...]
    attacked: tuple[Attacked, ...]
    findings: tuple[Finding, ...]
    stated: tuple[Stated, ...]
    """What the paper states beside its evaluation."""
    small_cells: dict[int, float]
    """By workload: the legacy's error when small counts are drawn from their posterior, as a ratio to a coin's."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        published = {figure.setting: figure for figure in PUBLISHED}
        for row in self.measured:
            figure = published.get((row.quantity, row.workload, row.method, row.alpha, row.epsilon, row.stratum))
            yield {
                "quantity": row.quantity,
                "workload": row.workload,
                "method": row.method,
                "alpha": number(row.alpha),
                "epsilon": number(row.epsilon),
                "stratum": row.stratum,
                "published": None if figure is None else figure.value,
                "ours": row.ours,
                **({} if figure is None else {"relation": figure.relation}),
                **({"reason": row.reason} if row.reason else {}),
            }
        for found in self.attacked:
            result = found.result
            attacked = None if result is None or not result.targets else result
            yield {
                "quantity": "attack_success",
                "attack": found.attack,
                "method": found.method,
                "published": None,
                "ours": None if attacked is None else attacked.success_rate,
                "targets": 0 if attacked is None else attacked.targets,
                "guess": None if attacked is None else attacked.baseline_rate,
                **({"reason": found.reason} if found.reason else {}),
            }
        for workload, share in self.small_cells.items():
            about = {"quantity": "legacy_posterior_ratio", "workload": workload, "method": LEGACY}
            yield {**about, "published": None, "ours": share}
        yield from (found.row() for found in self.stated)


def reproduce(
    *,
    data: Path | None = None,
    jobs: int = JOBS,
    grid: Grid = WHOLE,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect the three workloads of an economy with every method and compare the errors with the legacy's.

    The economy is made in a temporary folder, or taken from `data`, where it is made if there is none yet.
    """

    def make(folder: Path) -> None:
        generate(folder, jobs=jobs, seed=seed, progress=partial(progress, "making jobs"))

    with economy_folder(data, make) as folder:
        progress("counting jobs", 0, 1)
        tabulated = tabulate_workloads(load(folder / RELEASE))
    progress("legacy protection", 0, 1)
    legacy = draw_legacy(tabulated, trials=grid.trials, seed=seed)
    threads = threads or min(os.cpu_count() or 1, 8)
    measured = evaluate(tabulated, legacy, grid, seed=seed, threads=threads, progress=progress)
    progress("attacks", 0, 1)
    attacked = run_attacks(tabulated, alpha=BASE_ALPHA, epsilon=BASE_EPSILON, seed=seed)
    return Reproduction(
        jobs=tabulated.jobs,
        grid=grid,
        cells={n: len(workload.cells) for n, workload in tabulated.workloads.items()},
        measured=tuple(measured),
        attacked=tuple(attacked),
        findings=tuple(findings(measured)),
        stated=tuple(stated(tabulated)),
        small_cells={n: float(e.sum() / legacy.errors[n].sum()) for n, e in legacy.drawn_errors.items()},
    )


# What `sfumato reproduce` says: published finding, then ours.


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as a table for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{NAME} on a synthetic economy of {found.jobs:,} jobs; {found.grid.trials} trials; workloads of "
            f"{', '.join(f'{cells:,}' for cells in found.cells.values())} cells. Errors are mean L1 errors as a ratio "
            "to the legacy protection, rankings rank correlations with it.",
            style="bold",
        ),
        # Figures and orders in tables of their own, so that figures stay narrow.
        printed_findings((line for line in found.findings if not line.is_order), starred=True),
        printed_findings((line for line in found.findings if line.is_order), starred=True),
    ]
    if any(line.note for line in found.findings):
        lines.append(Text("* drawn as the paper draws it; here its method guarantees nothing (the page says why)."))
    lines += [
        printed_findings((line.finding() for line in found.stated), starred=True),
        Text("* an erratum, or what the figure stands on (the page says which)."),
        Text(_small_cells(found)),
        _attacks(found),
    ]
    lines += [Text(f"Charts: {page}\nAll figures: {table}")]
    return Group(*spaced(lines)), {"paper": NAME, "rows": list(found.rows())}


def _attacks(found: Reproduction) -> Table:
    """The share of targets that each attack discloses, method by method."""
    rows = [row for row in found.rows() if row["quantity"] == "attack_success"]
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    table = printed_table("targets disclosed by the attack on", *attacks)
    for method in dict.fromkeys(row["method"] for row in rows):
        shares = {row["attack"]: row["ours"] for row in rows if row["method"] == method}
        table.add_row(method, *(_percent(shares[a]) for a in attacks))
    guesses = {row["attack"]: row["guess"] for row in rows if row["method"] == rows[0]["method"]}
    table.add_row("a guess without the table", *(_percent(guesses[a]) for a in attacks), style="dim")
    return table


def _small_cells(found: Reproduction) -> str:
    """What the posterior predictive distribution changes for the legacy."""
    ratios = ", ".join(f"{share:.3f} in workload {workload}" for workload, share in found.small_cells.items())
    return (
        "The legacy is drawn with a fair coin in place of counts of 1 and 2. From their posterior predictive "
        f"distribution its error is, as a ratio to that: {ratios}."
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


# The page of Haney and others (2017).

_HEADING = "The cost of formal privacy, published and measured again"
_COLUMNS = (
    *("quantity", "workload", "attack", "method", "alpha", "epsilon", "stratum"),
    *("source", "definition", "requirement", "delta", "one", "other", "steps"),
    *("published", "relation", "ours", "targets", "guess", "reason"),
)


def _body(found: Reproduction) -> str:
    return f"""\
<p>The evaluation of Haney and others (2017) on a synthetic economy of {found.jobs:,} jobs, {found.grid.trials} trials
at each setting. Errors are mean L1 errors divided by those of the legacy protection (permanent factors 10% to 25% from
one): below the line at 1 a formal guarantee costs nothing. Dashed: the paper's methods; dotted: baselines that
protect only individuals (laplace) or whole establishments (node-laplace); solid: sfumato's.</p>
<h2>Published findings and aims</h2>
{findings_table(found.findings)}
{"".join(_figures(found))}
<h2>Tables 1 and 2, Figures 1 and 2, and theorems</h2>
<p>What the paper states beside its evaluation. Theorems 7.1 and 7.2 are false about shapes: two workforces of one size
are no neighbours, since neither contains the other, and lie one step of additions and one of removals apart, or more.
Theorem 7.5 is false for noise that is scaled to the cell. The losses are computed from the densities of the
methods.</p>
{findings_table(line.finding() for line in found.stated)}
<p>{escape(_small_cells(found))}</p>
<h2>The attacks on the legacy protection</h2>
<p>At α = {float(BASE_ALPHA):g}, ε = {float(BASE_EPSILON):g}, workload 3. An attack succeeds when what it reads off the
published table is exact; the guess is what a reader without the table would get right.</p>
{_attacks_haney2017_page(found)}
<h2>Where methods do not exist</h2>
{bullets(_skipped(found))}"""


def _figures(found: Reproduction) -> Iterator[str]:
    alphas = [f"α = {float(alpha):g}" for alpha in found.grid.alphas]
    strata = list(dict.fromkeys(row.stratum for row in found.measured))
    titles = {1: "Workload 1", 2: "Workload 2, single cells", 3: "Workload 3, the full marginal"}
    drawn = [("l1_ratio", workload, titles[workload]) for workload in titles]
    drawn += [("spearman", 1, "Ranking 1"), ("spearman", 2, "Ranking 2")]
    for quantity, workload, title in drawn:
        rows = [row for row in found.measured if row.workload == workload]
        overall = [row for row in rows if row.stratum == ALL]
        base = [row for row in rows if row.alpha == BASE_ALPHA]
        yield f"<h2>{title}: {found.cells[workload]:,} cells</h2>"
        for part, by, heads, words in (
            (overall, "alpha", alphas, "all places, by α"),
            (base, "stratum", strata, f"by population of the place, α = {float(BASE_ALPHA):g}"),
        ):
            if any(row.ours is not None for row in part):
                chart = against_epsilon(part, quantity=quantity, by=by, heads=heads, title=f"{title}: {words}")
                yield f"<figure>{chart}</figure>"


def _attacks_haney2017_page(found: Reproduction) -> str:
    rows = (
        (
            row["attack"],
            row["method"],
            f"{row['targets']:,}",
            _percent(row["ours"]),
            _percent(row["guess"]),
            row.get("reason", ""),
        )
        for row in found.rows()
        if row["quantity"] == "attack_success"
    )
    return rows_table(("attack", "method", "targets", "succeeded", "guess", "note"), rows, numbers=(2, 3, 4))


def _skipped(found: Reproduction) -> list[str]:
    lines = [
        f"workload {row.workload}, {row.method}, α = {float(row.alpha):g}, ε = {float(row.epsilon):g}: {row.reason}"
        for row in found.measured
        if row.reason and row.quantity == "l1_ratio" and row.stratum == ALL
    ]
    return lines or ["nowhere in these settings"]


write_reproduction = Page(paper=NAME, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""
