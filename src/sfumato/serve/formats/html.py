"""HTML: a table with a caption and scopes, which screen readers can follow and browsers can print."""

from html import escape

from sfumato.serve.formats.grid import Grid, legend, shown
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer, Metric


def write_html(answer: Answer, options: Options) -> bytes:
    """The answer as a page without style or script."""
    title = escape(answer.table.title)
    used = legend(answer.said())
    marks = "".join(f"<dt>{escape(status.symbol)}</dt><dd>{escape(status.meaning)}</dd>" for status in used)
    notes = "".join(f"<p>{escape(note)}</p>" for note in (*answer.notes, *answer.table.notes))
    page = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>'
        f"{table_html(answer, options)}{f'<dl>{marks}</dl>' if marks else ''}<h2>Notes</h2>{notes}</body></html>"
    )
    return page.encode()


def table_html(answer: Answer, options: Options) -> str:
    """The `<table>` alone."""
    grid = Grid.of(answer, options)
    texts = options.texts or "texts"
    parts = [f"<table><caption>{escape(answer.table.title)}, {escape(answer.table.period)}</caption><thead>"]
    span, names = 1, grid.names(texts)
    for dimension in grid.heading:
        span *= len(dimension)
    repeat = 1
    for level, dimension in enumerate(grid.heading):
        span //= len(dimension)
        last = level == len(grid.heading) - 1
        above = names if last else [""] * len(names)
        corner = "".join(f'<th scope="col">{escape(name)}</th>' if name else "<td></td>" for name in above)
        scope = f'scope="colgroup" colspan="{span}"' if span > 1 else 'scope="col"'
        heads = "".join(f"<th {scope}>{escape(text)}</th>" for text in shown(dimension, texts)) * repeat
        parts.append(f"<tr>{corner}{heads}</tr>")
        repeat *= len(dimension)
    if not grid.heading:
        heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
        parts.append(f'<tr>{heads}<th scope="col">Figure</th></tr>')
    parts.append("</thead><tbody>")
    for number, (before, cells, symbols) in enumerate(
        zip(grid.row_texts(texts), grid.cells, grid.symbols, strict=True)
    ):
        begin = "".join(f'<th scope="row">{escape(text)}</th>' for text in before)
        metrics = grid.metrics if grid.wide else [grid.metrics[number]] * len(cells)
        figures = "".join(
            f"<td>{figure(value, metric, symbol)}</td>"
            for value, metric, symbol in zip(cells, metrics, symbols, strict=True)
        )
        parts.append(f"<tr>{begin}{figures}</tr>")
    return "".join([*parts, "</tbody></table>"])


def figure(value: float | None, metric: Metric, symbol: str) -> str:
    """A figure with as many digits as are worth showing, and its mark."""
    if value is None:
        return escape(symbol)
    text = f"{value:,.{metric.decimals}f}"
    return f"{text} <sup>{escape(symbol)}</sup>" if symbol else text
