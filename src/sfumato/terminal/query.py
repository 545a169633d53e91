"""What `sfumato query` says: what a bundle has, and the figures that were asked for."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.cube.quantiles import CONFIDENCE
from sfumato.errors import SfumatoError
from sfumato.terminal.layout import Summary, columns, near, spaced

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.cube.answer import Answer, Rules
    from sfumato.publish.selection import Part, Selected

SHOWN = 40
"""Rows that are printed; a file holds all."""
MOST_ROWS = 1_000_000
"""Rows of one JSON object."""
_HEADINGS = {
    "cv": "CV",
    "status": "mark",
    "low": "from",
    "high": "to",
    "rse": "RSE %",
}
_OF_CUBES = {**_HEADINGS, "error": "std. error", "share_error": "std. error"}
"""What the error of a table is, its structure says."""
_LEFT_OUT = ("perturbation_error", "sampling_error")
"""On the screen; files and JSON have them."""


def contents_summary(bundle: Path, parts: Sequence["Part"]) -> Summary:
    """The cubes and tables of a bundle, and how to ask for one."""
    table = columns("", "name", "title", "dimensions (codes)", "method")
    for part in parts:
        dimensions = ", ".join(f"{name} ({codes:,})" for name, codes in part.dimensions.items())
        measures = f"; means of {', '.join(part.measures)}" if part.measures else ""
        table.add_row(part.kind, part.name, part.title, dimensions + measures, part.method)
    return table, {
        "example": _first_question(bundle, parts[0]),
        "bundle": str(bundle),
        "cubes": [_described(part) for part in parts if part.kind == "cube"],
        "tables": [_described(part) for part in parts if part.kind == "table"],
    }


def _first_question(bundle: Path, part: "Part") -> str:
    """A command that can be copied; a cube has every sum, while cells of a table need not add up."""
    by = [next(iter(part.dimensions))] if part.kind == "cube" else list(part.dimensions)
    return shlex.join(["sfumato", "query", str(near(bundle)), part.name, "--by", ",".join(by)])


def answer_summary(
    part: "Part", what: str, answer: "Answer", rules: "Rules", *, written: Path | None, as_json: bool
) -> Summary:
    """The figures of a cube, with their errors and marks."""
    rows = answer.to_arrow()
    notes = [_errors_in_words(answer), *_marks_in_words(rules, rows)]
    if not answer.dimensions:
        notes.append(f"It can be asked by {', '.join(part.dimensions)}.")
    about = {"cube": part.name, "title": part.title, "asked": what, "rules": vars(rules)}
    data = about | _data(rows, written, as_json=as_json)
    return _text(f"{part.title}: {what}", rows, notes, written, headings=_OF_CUBES), data


def rows_summary(part: "Part", selected: "Selected", *, written: Path | None, as_json: bool) -> Summary:
    """The rows of a table, as they were published."""
    rows, notes = selected.rows, []
    if selected.summed:
        notes.append(
            f"Values were added up over {', '.join(selected.summed)}: with {part.method} parts add up to the whole."
        )
    about = {"table": part.name, "title": part.title, "unit": selected.unit, "summed_over": list(selected.summed)}
    data = about | _data(rows, written, as_json=as_json)
    return _text(f"{part.title} ({selected.unit})", rows, notes, written), data


def _described(part: "Part") -> dict[str, Any]:
    found = {"name": part.name, "title": part.title, "dimensions": dict(part.dimensions), "method": part.method}
    return found | ({"measures": list(part.measures)} if part.kind == "cube" else {})


def _data(rows: pa.Table, written: Path | None, *, as_json: bool) -> dict[str, Any]:
    """The rows as plain objects, where somebody asks for them and no file has them."""
    if written is not None:
        return {"csv": str(written), "written": rows.num_rows}
    if not as_json:
        return {}
    if rows.num_rows > MOST_ROWS:
        raise SfumatoError(
            "--json",
            expected=f"at most {MOST_ROWS:,} rows",
            found=f"{rows.num_rows:,}",
            do="ask by fewer dimensions or with filters, or write the rows to a file with --csv FILE",
        )
    return {"rows": rows.to_pylist()}


def _text(
    heading: str,
    rows: pa.Table,
    notes: Sequence[str],
    written: Path | None,
    *,
    headings: Mapping[str, str] = _HEADINGS,
) -> RenderableType:
    lines: list[RenderableType] = [Text(heading, style="bold"), _table(rows.slice(0, SHOWN), headings)]
    if rows.num_rows > SHOWN:
        where = "" if written is not None else " --csv FILE writes all of them."
        lines.append(Text(f"These are {SHOWN} of {rows.num_rows:,} rows.{where}"))
    lines += [Text(note) for note in notes]
    if written is not None:
        lines.append(Text(f"Wrote {rows.num_rows:,} rows to {near(written)}."))
    return Group(*spaced(lines))


def _table(rows: pa.Table, headings: Mapping[str, str]) -> Table:
    """A column for every figure, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [name for name in rows.column_names if name not in _LEFT_OUT]
    for name in shown:
        numeric = pa.types.is_floating(rows[name].type) or pa.types.is_integer(rows[name].type)
        table.add_column(headings.get(name, name), justify="right" if numeric else "left", no_wrap=name != "status")
    texts = [[_cell(name, value) for value in rows[name].to_pylist()] for name in shown]
    for row in zip(*texts, strict=True):
        table.add_row(*row)
    return table


def _cell(name: str, value: Any) -> str:
    """A figure in as many digits as one reads."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if name == "cv":
        return f"{value:.1%}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if name == "records" else f"{value:.4g}"


def _errors_in_words(answer: "Answer") -> str:
    what = "of noise" if answer.sampling_error is None else "of sampling and noise together"
    of = "" if answer.codes is None else " of the share up to a code"
    text = f"Standard errors{of} are expected ones, {what}."
    return text if answer.interval is None else f"{text} The interval has a confidence of {CONFIDENCE:.0%}."


def _marks_in_words(rules: "Rules", rows: pa.Table) -> list[str]:
    """The rules behind the marks that are shown."""
    limit = "" if rules.largest_cv is None else f"{rules.largest_cv:g}"
    meant = {
        "too few records": f"fewer than {rules.least_count:,}, by the noisy count",
        "too uncertain": f"a coefficient of variation above {limit}",
        "not defined": "a total that is not above 0, or no error that can be told",
    }
    marks = set(rows["status"].to_pylist())
    listed = [f"{mark} ({words})" for mark, words in meant.items() if mark in marks]
    return [f"Do not publish figures with a mark: {'; '.join(listed)}."] if listed else []
