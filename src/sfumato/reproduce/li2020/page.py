"""The page of the reproduction."""

from collections.abc import Iterable, Iterator, Sequence

from sfumato.methods.recommended_levels import Candidate
from sfumato.reproduce.li2020.chart import level_errors, reductions
from sfumato.reproduce.li2020.findings import findings
from sfumato.reproduce.li2020.published import RECORDS, TABLE_2, TABLE_4
from sfumato.reproduce.li2020.reproduction import AVERAGED, CALIBRATIONS, PAPER, Line, Measure, Reproduction
from sfumato.reproduce.li2020.simulate import VARIANTS
from sfumato.reproduce.li2020.theory import at_mean_cardinality
from sfumato.reproduce.page import Page, bullets, rows_table

_HEADING = "The bottom-up hypercube, published and computed again"
_COLUMNS = (
    *("quantity", "j", "dimension", "calibration", "variant", "tolerance", "runs", "runs_used", "epsilon", "records"),
    *("workload", "approach", "numbers", "levels", "share", "recommended", "published", "ours", "theory"),
)
_MEASURES: dict[Measure, str] = {
    "variance": "Variance in a cell over runs, the mean over cells and tables",
    "within_run": "Variance over all cells of a dimension in one run, the mean over runs",
    "mean_square": "Mean square of the noise, bias included",
}


def _body(found: Reproduction) -> str:
    probabilities = [row for row in found.rows() if row["quantity"] == "noise_probability"]
    table_2 = ((f"±{row['j']}", TABLE_2[row["j"]], f"{row['ours']:.9f}") for row in probabilities)
    tables = "".join(f"<h3>{title}</h3>{_table_4(found, measure)}" for measure, title in _MEASURES.items())
    return f"""\
<p>The figures of Li and Krenzke (2020). {found.runs:,} runs on {RECORDS} records made here, because the real ones are
not at hand; the noise does not depend on them, raking does.</p>
<h2>What was found</h2>
{bullets(findings(found))}
<figure>{reductions(found)}</figure>
<h2>Table 2: the noise</h2>
{rows_table(("perturbation", "published", "here"), table_2, numbers=range(3))}
<h2>Table 4: what calibration takes away</h2>
<p>Raking counts the runs in which it converged only, least squares all of them. The last table has all runs of raking,
too: where it did not converge, the cycle that came nearest to the controls.</p>
{tables}
<h3>Raking in all runs: variance in a cell over runs</h3>
{_raked_in_all(found)}
<h3>Reduction by least squares of two-sided noise, by what is averaged: theory, and here</h3>
<p>A table with cardinalities k keeps 1 − (1 + Σ(k − 1))/Πk of its variance. Tables of one dimension differ in that.</p>
{_averages(found)}
<h2>Several levels instead of one, at the same budget</h2>
<p>Bottom-up spends all of ε on the cube. The alternative measures a few tables by themselves as well and combines all
by least squares; whole numbers that are not negative follow from that. δ = {found.levels.delta:.2g};
{found.levels.runs} runs.</p>
<figure>{level_errors(found.levels)}</figure>
{_level_errors(found)}
<h3>What to prefer: expected root mean square error by the tables asked for</h3>
{_workloads(found)}"""


def _table_4(found: Reproduction, measure: Measure) -> str:
    kinds = [(calibration, variant) for variant in VARIANTS for calibration in CALIBRATIONS]
    columns = [found.lines(calibration, variant, measure) for calibration, variant in kinds]
    heads = ["dimensions", "published", *(f"{calibration}, {variant}" for calibration, variant in kinds)]
    return _rows(heads, _table_4_rows(columns))


def _raked_in_all(found: Reproduction) -> str:
    columns = [found.lines("raking", variant, runs="all") for variant in VARIANTS]
    heads = ["dimensions", "published", *(f"raking, {variant}, {found.runs:,} runs" for variant in VARIANTS)]
    return _rows(heads, _table_4_rows(columns))


def _averages(found: Reproduction) -> str:
    by_table, by_cell = (found.reductions("least-squares", "two-sided", averaged) for averaged in AVERAGED)
    over_runs, within = (found.lines("least-squares", "two-sided", measure) for measure in ("variance", "within_run"))

    def both(theory: float, ours: float | None) -> str:
        return f"{theory:.1%}, {'–' if ours is None else f'{ours:.1%}'}"

    heads = [
        "dimensions",
        "published",
        "mean variance",
        "mean over tables",
        "mean over cells",
        "within a run",
        "k at its mean",
    ]
    return _rows(
        heads,
        (
            (
                str(size),
                f"{TABLE_4[size][2]:.1%}",
                both(theory.reduction, over_runs[place].reduction),
                both(theory.by_table, by_table[size]),
                both(theory.by_cell, by_cell[size]),
                both(theory.within_run, within[place].reduction),
                f"{at_mean_cardinality(size):.1%}",
            )
            for place, (size, theory) in enumerate(found.theory.items())
        ),
    )


def _level_errors(found: Reproduction) -> str:
    """One line for each budget, survey and approach; dimensions across."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for error in found.levels.errors:
        chosen = found.levels.designs[error.epsilon]
        what = error.approach if error.approach == "bottom-up" else f"{float(chosen.share):.0%} for {chosen.name}"
        line = (f"{float(error.epsilon):g}", f"{error.records:,}", f"{what}, {error.numbers}")
        lines.setdefault(line, []).append(f"{error.simulated:.3g}")
    heads = ("ε", "records", "root mean square error by dimensions", *map(str, TABLE_4))
    return _rows(heads, ((*line, *errors) for line, errors in lines.items()))


def _workloads(found: Reproduction) -> str:
    rows = (
        (f"{float(epsilon):g}", workload, "; ".join(_candidate(candidate) for candidate in candidates))
        for (epsilon, workload), candidates in found.levels.workloads.items()
    )
    return _rows(("ε", "tables asked for", "from the best to the worst"), rows)


def _candidate(candidate: Candidate) -> str:
    share = "" if candidate.is_bottom_up else f" with {float(candidate.share):.0%}"
    return f"{candidate.name}{share} {candidate.error:.3g}"


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return rows_table(heads, rows, numbers=range(len(heads)))


def _table_4_rows(columns: Sequence[Sequence[Line]]) -> Iterator[Sequence[str]]:
    for place, (size, printed) in enumerate(TABLE_4.items()):
        lines = [column[place] for column in columns]
        yield str(size), shown(*printed), *(shown(line.plain, line.calibrated, line.reduction) for line in lines)


def shown(before: float | None, after: float | None, reduction: float | None) -> str:
    """A line of Table 4 in one cell."""
    if before is None or after is None:
        return "–"
    return f"{before:.3f} → {after:.3f}" + ("" if reduction is None else f" ({reduction:.1%})")


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""
