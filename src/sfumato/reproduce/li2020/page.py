"""The page of the reproduction."""

from collections.abc import Iterator, Sequence

from sfumato.reproduce.li2020.chart import reductions
from sfumato.reproduce.li2020.findings import findings
from sfumato.reproduce.li2020.published import RECORDS, TABLE_2, TABLE_4
from sfumato.reproduce.li2020.reproduction import CALIBRATIONS, PAPER, Line, Measure, Reproduction
from sfumato.reproduce.li2020.simulate import VARIANTS
from sfumato.reproduce.page import Page, bullets, rows_table

_HEADING = "The bottom-up hypercube, published and computed again"
_COLUMNS = ("quantity", "j", "dimension", "calibration", "variant", "tolerance", "runs", "published", "ours", "theory")
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
<p>Raking counts the runs in which it converged only, least squares all of them.</p>
{tables}"""


def _table_4(found: Reproduction, measure: Measure) -> str:
    kinds = [(calibration, variant) for variant in VARIANTS for calibration in CALIBRATIONS]
    columns = [found.lines(calibration, variant, measure) for calibration, variant in kinds]
    heads = ["dimensions", "published", *(f"{calibration}, {variant}" for calibration, variant in kinds)]
    return rows_table(heads, _table_4_rows(columns), numbers=range(len(heads)))


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
