"""The page and the CSV file of the reproduction."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from sfumato.durable import write_durably
from sfumato.reproduce.li2020.chart import reductions
from sfumato.reproduce.li2020.findings import findings
from sfumato.reproduce.li2020.published import RECORDS, TABLE_2, TABLE_4
from sfumato.reproduce.li2020.reproduction import CALIBRATIONS, PAPER, Line, Measure, Reproduction
from sfumato.reproduce.li2020.simulate import VARIANTS

_COLUMNS = ("quantity", "j", "dimension", "calibration", "variant", "tolerance", "runs", "published", "ours", "theory")
_MEASURES: dict[Measure, str] = {
    "variance": "Variance in a cell over runs, the mean over cells and tables",
    "within_run": "Variance over all cells of a dimension in one run, the mean over runs",
    "mean_square": "Mean square of the noise, bias included",
}
_STYLE = """
:root { --ink: #33312e; --paper: #faf7f2; --line: #d9d2c5; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 68rem; padding: 1.5rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
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
    probabilities = [row for row in found.rows() if row["quantity"] == "noise_probability"]
    table_2 = ((f"±{row['j']}", TABLE_2[row["j"]], f"{row['ours']:.9f}") for row in probabilities)
    tables = "".join(f"<h3>{title}</h3>{_table_4(found, measure)}" for measure, title in _MEASURES.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{PAPER}: the bottom-up hypercube, again</title><style>{_STYLE}</style></head><body>
<h1>The bottom-up hypercube, published and computed again</h1>
<p>The figures of Li and Krenzke (2020). {found.runs:,} runs on {RECORDS} records made here, because the real ones are
not at hand; the noise does not depend on them, raking does.</p>
<h2>What was found</h2>
<ul>{"".join(f"<li>{escape(sentence)}</li>" for sentence in findings(found))}</ul>
<figure>{reductions(found)}</figure>
<h2>Table 2: the noise</h2>
{_rows(("perturbation", "published", "here"), table_2)}
<h2>Table 4: what calibration takes away</h2>
<p>Raking counts the runs in which it converged only, least squares all of them.</p>
{tables}
</body></html>
"""


def _table_4(found: Reproduction, measure: Measure) -> str:
    kinds = [(calibration, variant) for variant in VARIANTS for calibration in CALIBRATIONS]
    columns = [found.lines(calibration, variant, measure) for calibration, variant in kinds]
    heads = ["dimensions", "published", *(f"{calibration}, {variant}" for calibration, variant in kinds)]
    return _rows(heads, _table_4_rows(columns))


def _table_4_rows(columns: Sequence[Sequence[Line]]) -> Iterator[Sequence[str]]:
    for place, (size, printed) in enumerate(TABLE_4.items()):
        lines = [column[place] for column in columns]
        yield str(size), shown(*printed), *(shown(line.plain, line.calibrated, line.reduction) for line in lines)


def shown(before: float | None, after: float | None, reduction: float | None) -> str:
    """A line of Table 4 in one cell."""
    if before is None or after is None:
        return "–"
    return f"{before:.3f} → {after:.3f}" + ("" if reduction is None else f" ({reduction:.1%})")


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
