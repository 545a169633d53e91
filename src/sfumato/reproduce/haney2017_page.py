"""The page of Haney and others (2017)."""

from collections.abc import Iterator

from sfumato.reproduce.charts import against_epsilon
from sfumato.reproduce.haney2017 import PAPER, Reproduction
from sfumato.reproduce.page import Page, bullets, findings_table, rows_table
from sfumato.reproduce.published import BASE_ALPHA, BASE_EPSILON
from sfumato.reproduce.workloads import ALL

_HEADING = "The cost of formal privacy, published and measured again"
_COLUMNS = (
    *("quantity", "workload", "attack", "method", "alpha", "epsilon", "stratum"),
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
<h2>The attacks on the legacy protection</h2>
<p>At α = {float(BASE_ALPHA):g}, ε = {float(BASE_EPSILON):g}, workload 3. An attack succeeds when what it reads off the
published table is exact; the guess is what a reader without the table would get right.</p>
{_attacks(found)}
<h2>Where methods do not exist</h2>
{bullets(_skipped(found))}"""


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


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _skipped(found: Reproduction) -> list[str]:
    lines = [
        f"workload {row.workload}, {row.method}, α = {float(row.alpha):g}, ε = {float(row.epsilon):g}: {row.reason}"
        for row in found.measured
        if row.reason and row.quantity == "l1_ratio" and row.stratum == ALL
    ]
    return lines or ["nowhere in these settings"]


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""
