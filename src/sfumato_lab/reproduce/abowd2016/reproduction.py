"""The evaluation of Abowd and McKinney (2016) on a synthetic federal workforce."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.cli.screen import Table, spaced
from sfumato.noise.factors import Rule
from sfumato.noise.randomness import Repeatable
from sfumato.release import load
from sfumato_lab.economy.federal.generate import PERSONS, generate_federal
from sfumato_lab.economy.files import RELEASE
from sfumato_lab.reproduce.abowd2016.evaluate import LOOPED, Classes, Measured, Progress, evaluate, figure, read_edges
from sfumato_lab.reproduce.abowd2016.graph_figures import (
    EQUAL,
    MINIMUM,
    OF_EIGHT,
    PRINTED,
    factor_density,
    further_figures,
)
from sfumato_lab.reproduce.page import (
    Finding,
    Page,
    economy_folder,
    findings_table,
    printed_findings,
    rows_table,
)

# What the paper published: its Table 1, to print beside measured figures, never results.
#
# Source: J. M. Abowd, K. L. McKinney, "Noise infusion as a confidentiality protection measure for graph-based
# statistics", Statistical Journal of the IAOS 32 (2016). The table is about 13 years of federal employment: edges
# between 7,341 employers, by the states of both ends, protected by factors of a = 1.15 and b = 1.25.

PaperTable = Literal["edge", "worker"]
TABLES: Final[tuple[PaperTable, ...]] = ("edge", "worker")
"""Counts of pairs of employers that share a worker, and of the workers they share."""

SIZE_CLASSES: Final = ("1-6", "7-9", "10-19", "20-35", "36-75", "76-161", "162-272", "272+")
"""Classes of cells by the number of unique edges; the paper calls the last one 272-15035."""
CLASS_ENDS: Final = (6, 9, 19, 35, 75, 161, 272)
"""The greatest number of edges of each class but the last."""
ALL: Final = "all"

_MEANS: Final = {
    "edge": (0.005, 0.009, 0.006, -0.003, -0.006, -0.004, 0.001, 0.004),
    "worker": (0.011, 0.026, 0.015, 0.007, 0.005, 0.004, 0.001, 0.010),
}
_DEVIATIONS: Final = {
    "edge": (0.114, 0.060, 0.055, 0.043, 0.033, 0.026, 0.026, 0.021),
    "worker": (0.120, 0.083, 0.080, 0.068, 0.061, 0.055, 0.055, 0.057),
}
_DISTANCES: Final = {"jsd": {"edge": 0.011, "worker": 0.027}, "rimse": {"edge": 0.002, "worker": 0.010}}

PUBLISHED: Final[dict[tuple[str, PaperTable, str], float]] = {
    **{
        ("c_mean", table, size): value
        for table in TABLES
        for size, value in zip(SIZE_CLASSES, _MEANS[table], strict=True)
    },
    **{
        ("c_sd", table, size): value
        for table in TABLES
        for size, value in zip(SIZE_CLASSES, _DEVIATIONS[table], strict=True)
    },
    **{(quantity, table, ALL): _DISTANCES[quantity][table] for quantity in _DISTANCES for table in TABLES},
}
"""By quantity, table and size class."""

FURTHER: Final[dict[tuple[str, str, str], float]] = {
    **{("example", name, EQUAL): float(len(printed) ** 2) for name, printed in PRINTED.items()},
    ("example", "A^F", "edges"): 2,
    ("example", "P^F", "workers on edges"): 3,
    ("example", "P^F", "loops"): 2,
    ("example", "A^F", "largest degree"): 2,
    ("example", "A^W", "edges"): 7,
    ("example", "A^W", OF_EIGHT): 6,
    ("factor", "ramp", "least distortion"): 0.15,
    ("factor", "ramp", "greatest distortion"): 0.25,
    ("factor", "ramp", "mean"): 1,
    ("workforce", ALL, "persons"): 2_172_359,
    ("workforce", ALL, "employers"): 7_341,
    ("workforce", ALL, "jobs"): 2_634_324,
    ("workforce", ALL, "share with one employer"): 0.85,
    ("workforce", ALL, "edges"): 123_930,
    ("workforce", ALL, "workers on edges and loops"): 2_465_461,
    ("workforce", ALL, "pairs of states"): 1_326,
    **{(quantity, f"{table}{LOOPED}", size): value for (quantity, table, size), value in PUBLISHED.items()},
}
"""What else the paper prints: example, ends of factors, sample. It does not say whether Table 1 has loops."""

AIMED_DISTANCES: Final[dict[PaperTable, tuple[float, float]]] = {"edge": (0.005, 0.02), "worker": (0.015, 0.045)}
"""Between these the Jensen-Shannon distance of a workforce of the published shape must come out."""
MOST_MEAN: Final[dict[PaperTable, float]] = {"edge": 0.01, "worker": 0.03}
"""The published means of c are all within these of 0."""


# Findings: what the paper stated and what a workforce of its shape must show, beside what was measured here.

_DIGITS = 3
"""The paper prints three decimals; differences below that are no differences of the table."""


def findings(measured: Sequence[Measured]) -> list[Finding]:
    """Every finding that the cells of this workforce can answer."""
    return [
        *_distances(measured),
        *_means(measured),
        *_dispersion(measured),
        *_order_of_tables(measured),
        *_graphs(measured),
    ]


def _about(measured: Sequence[Measured], quantity: str, table: PaperTable) -> list[Measured]:
    rows = {row.size_class: row for row in measured if (row.quantity, row.table) == (quantity, table)}
    return [rows[size] for size in (*SIZE_CLASSES, ALL) if size in rows]


def _distances(measured: Sequence[Measured]) -> Iterator[Finding]:
    for table, (low, high) in AIMED_DISTANCES.items():
        for row in _about(measured, "jsd", table):
            yield Finding(
                source="aim",
                what=f"{table} table: Jensen-Shannon distance",
                stated=f"between {low:g} and {high:g}",
                ours=f"{row.ours:.3f} ({row.low:.3f} to {row.high:.3f})",
                holds=low <= row.ours <= high,
                note=f"published: {PUBLISHED['jsd', table, ALL]:.3f}",
            )


def _means(measured: Sequence[Measured]) -> Iterator[Finding]:
    for table in TABLES:
        rows, most = _about(measured, "c_mean", table), MOST_MEAN[table]
        if not rows:
            continue
        farthest = max(rows, key=lambda row: abs(row.ours))
        keys = list(zip(*(row.by_key for row in rows), strict=True))
        within = sum(all(abs(mean) <= most for mean in by_class) for by_class in keys)
        yield Finding(
            source="table 1",
            what=f"{table} table: mean of c in every class, mean over the keys",
            stated=f"within ±{most:g}",
            ours=f"at most {abs(farthest.ours):.3f} ({farthest.size_class})",
            holds=abs(farthest.ours) <= most,
        )
        yield Finding(
            source="table 1",
            what=f"{table} table: keys with all these means within ±{most:g}",
            stated="the paper's one key",
            ours=f"{within} of {len(keys)}",
            holds=None,
        )


def _dispersion(measured: Sequence[Measured]) -> Iterator[Finding]:
    for table in TABLES:
        rows = _about(measured, "c_sd", table)
        if len(rows) < 2:
            continue
        printed = [round(row.ours, _DIGITS) for row in rows]
        yield Finding(
            source="table 1",
            what=f"{table} table: dispersion of c falls with the size of the cell",
            stated="does" if table == "edge" else "does, but for the largest cells",
            ours=", ".join(f"{value:.3f}" for value in printed),
            holds=all(larger <= smaller for smaller, larger in pairwise(printed)) if table == "edge" else None,
            is_order=True,
        )


def _order_of_tables(measured: Sequence[Measured]) -> Iterator[Finding]:
    edge, worker = ({row.size_class: row.ours for row in _about(measured, "c_sd", table)} for table in TABLES)
    if edge:
        exceptions = [size for size in edge if worker[size] < edge[size]]
        yield Finding(
            source="table 1",
            what="dispersion of c is higher in the worker table, in every class",
            stated="is",
            ours="is" if not exceptions else f"is not in {', '.join(exceptions)}",
            holds=not exceptions,
            is_order=True,
        )


def _graphs(measured: Sequence[Measured]) -> Iterator[Finding]:
    """What the paper says of graphs in words."""
    for table in ("job", *TABLES):
        row = figure(measured, "convergence_ratio", table, ALL)
        if row is not None:
            yield Finding(
                source="section 5",
                what=f"convergence ratio of the {table} graph",
                stated="above 1",
                ours=f"{row.ours:,.1f}",
                holds=row.ours > 1,
            )
    rows = [figure(measured, "jsd", f"edge, {done}", f"below {MINIMUM}") for done in ("suppressed", "synthesised")]
    if rows[0] is not None and rows[1] is not None:
        yield Finding(
            source="section 7",
            what=f"cells below {MINIMUM}: synthesised, shares are nearer to the true ones than suppressed",
            stated="preserves a large portion of the information",
            ours=f"{rows[1].ours:.3f} and {rows[0].ours:.3f}",
            holds=rows[1].ours < rows[0].ours,
        )
    for table in TABLES:
        row = figure(measured, "rank_correlation", table, "closeness")
        if row is not None:
            yield Finding(
                source="section 7",
                what=f"{table} table: closeness of states, rank correlation of true and protected",
                stated="may or may not make sense",
                ours=f"{row.ours:.3f}",
                holds=None,
            )


PAPER = "abowd2016"
KEYS, QUICK_KEYS = 20, 5
CLASSES = Classes(names=SIZE_CLASSES, ends=CLASS_ENDS, whole=ALL)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was measured, and what it is compared with."""

    employers: int
    edges: int
    workers: int
    """Workers that two employers share, summed over the edges."""
    cells: int
    """Pairs of states with an edge."""
    keys: int
    measured: tuple[Measured, ...]
    findings: tuple[Finding, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what was published, and ours with its range over keys.

        First those of the paper's table; where no cell of this workforce is of a class, ours is None. Then all others;
        where nothing was published, that is None.
        """
        about: dict[tuple[str, str, str], float | None] = {(*key,): value for key, value in PUBLISHED.items()}
        for one in self.measured:
            key = (one.quantity, one.table, one.size_class)
            about.setdefault(key, FURTHER.get(key))
        for (quantity, table, size_class), published in about.items():
            row = figure(self.measured, quantity, table, size_class)
            yield {
                "quantity": quantity,
                "table": table,
                "size_class": size_class,
                "published": published,
                "ours": None if row is None else row.ours,
                "low": None if row is None else row.low,
                "high": None if row is None else row.high,
                "keys": self.keys,
            }


def reproduce(
    *,
    data: Path | None = None,
    persons: int = PERSONS,
    keys: int = KEYS,
    seed: int = 1,
    rule: Rule = "twelve-characters",
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect the edges between the states' employers under several keys, and compare with what was published.

    The workforce is made in a temporary folder, or taken from `data`, where it is made if there is none yet.
    """

    def make(folder: Path) -> None:
        generate_federal(folder, persons=persons, seed=seed, progress=partial(progress, "making careers"))

    with economy_folder(data, make) as folder:
        progress("linking employers", 0, 1)
        linked = read_edges(load(folder / RELEASE))
    edges = linked.without_loops()
    asked: dict[str, Any] = {"classes": CLASSES, "keys": keys, "seed": seed, "rule": rule, "progress": progress}
    measured = [*evaluate(edges, **asked), *further_figures(linked, **asked), *evaluate(linked, **asked)]
    return Reproduction(
        employers=len(edges.employers),
        edges=len(edges),
        workers=int(edges.workers.sum()),
        cells=edges.filled,
        keys=keys,
        measured=tuple(measured),
        findings=tuple(findings(measured)),
    )


# The dispersion of both tables by size class, published and measured.

_HEADS: dict[PaperTable, str] = {"edge": "edge table", "worker": "worker table"}


def dispersion(found: Reproduction) -> str:
    """The standard deviation of c in every class; the band is the range over the keys."""
    x, y = Axis(title="edges in the cell", classes=SIZE_CLASSES), Axis(title="standard deviation of c")
    panels = []
    for table, head in _HEADS.items():
        ours = _about(found.measured, "c_sd", table)
        at = [SIZE_CLASSES.index(row.size_class) for row in ours]
        published = [PUBLISHED["c_sd", table, size] for size in SIZE_CLASSES]
        marks = [
            Mark(kind="band", x=at, y=[row.low for row in ours], top=[row.high for row in ours], series=1),
            Mark(kind="line", x=range(len(published)), y=published, series=0),
            Mark(kind="line", x=at, y=[row.ours for row in ours], series=1),
        ]
        panels.append(Panel(x, y, marks, head))
    title = "Dispersion of the proportional difference c by size of the cell"
    return draw_panels(panels, title=title, series=("published", "here"), size=(300, 230))


def factors_chart() -> str:
    """The density of Figure 5, and that of factors from a key."""
    places, density, ours = factor_density(Repeatable(1, "abowd2016", 0).key)
    half = len(places) // 2
    marks = [
        Mark(kind="line", x=places[side].tolist(), y=values[side].tolist(), series=series)
        for side in (slice(0, half), slice(half, None))
        for series, values in enumerate((density, ours))
    ]
    panel = Panel(Axis(title="factor"), Axis(title="density"), marks, "ramp distribution")
    return draw_panels([panel], title="Density of the factors", series=("published", "here"), size=(420, 230))


# The page of the reproduction.

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
<h2>Figure 5</h2>
<figure>{factors_chart()}</figure>
<h2>Table 1</h2>
{"".join(_tables(found))}
<h2>Everything else</h2>
{_others(found)}"""


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


def _others(found: Reproduction) -> str:
    """Figures beside those of Table 1, published and ours."""
    lines = (
        (row["quantity"], row["table"], row["size_class"], _short(row["published"]), _short(row["ours"]))
        for row in found.rows()
        if (row["quantity"], row["table"], row["size_class"]) not in PUBLISHED
    )
    return rows_table(("quantity", "table", "about", "published", "here"), lines, numbers=(3, 4))


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _ours(row: dict[str, float]) -> tuple[str, str]:
    if row["ours"] is None:
        return "no cells", ""
    return f"{row['ours']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}"


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""


# What `sfumato reproduce abowd2016` says: the paper's Table 1, published and ours.


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{PAPER} on a synthetic federal workforce: {found.edges:,} pairs of {found.employers:,} employers share "
            f"{found.workers:,} workers, in {found.cells:,} pairs of states. Here: means over {found.keys} keys, since "
            "one key is one draw; the paper had one.",
            style="bold",
        ),
        *(_table_1(found, table) for table in TABLES),
        printed_findings(found.findings),
        Text(f"Chart: {page}\nAll figures: {table}"),
    ]
    return Group(*spaced(lines)), {"paper": PAPER, "rows": list(found.rows())}


def _table_1(found: Reproduction, table: str) -> Table:
    """Published and measured side by side, for each size class of one of the two tables."""
    rows = {(row["quantity"], row["size_class"]): row for row in found.rows() if row["table"] == table}
    shown = Table(box=box.SIMPLE_HEAD)
    shown.add_column(f"{table} table: edges", min_width=23)
    for heading in ("mean", "here", "st. dev.", "here", "range"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for size in SIZE_CLASSES:
        mean, deviation = rows["c_mean", size], rows["c_sd", size]
        shown.add_row(size, *_parts(mean)[:2], *_parts(deviation))
    for quantity, words in (("jsd", "Jensen-Shannon distance"), ("rimse", "Root integrated MSE")):
        shown.add_row(words, "", "", *_parts(rows[quantity, ALL]))
    return shown


def _parts(row: dict[str, Any]) -> tuple[str, str, str]:
    """Published, ours, and the range of ours over the keys."""
    published = f"{row['published']:.3f}"
    if row["ours"] is None:
        return published, "", ""
    return published, f"{row['ours']:.3f}", f"{row['low']:.3f}-{row['high']:.3f}"
