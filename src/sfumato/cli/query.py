"""`sfumato query`: figures of a published bundle, with their errors and marks; no confidential data are read."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer
from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.screen import AsJson, Summary, Table, near, printed_table, screen, show, spaced, typed_number
from sfumato.errors import SfumatoError
from sfumato.statistics.cube.cube_query import CONFIDENCE

if TYPE_CHECKING:  # only names for types
    from sfumato.bundle.read import BundleItem, Selected
    from sfumato.statistics.cube.cube_query import CubeAnswer, Rules
    from sfumato.statistics.cube.published_cube import PublishedCube


# What `sfumato query` says: what a bundle has, and the figures that were asked for.

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


def contents_summary(bundle: Path, parts: Sequence["BundleItem"]) -> Summary:
    """The cubes and tables of a bundle, and how to ask for one."""
    table = printed_table("", "name", "title", "dimensions (codes)", "method")
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


def _first_question(bundle: Path, part: "BundleItem") -> str:
    """A command that can be copied; a cube has every sum, while cells of a table need not add up."""
    by = [next(iter(part.dimensions))] if part.kind == "cube" else list(part.dimensions)
    return shlex.join(["sfumato", "query", str(near(bundle)), part.name, "--by", ",".join(by)])


def answer_summary(
    part: "BundleItem", what: str, answer: "CubeAnswer", rules: "Rules", *, written: Path | None, as_json: bool
) -> Summary:
    """The figures of a cube, with their errors and marks."""
    rows = answer.to_arrow()
    notes = [_errors_in_words(answer), *_marks_in_words(rules, rows)]
    if not answer.dimensions:
        notes.append(f"It can be asked by {', '.join(part.dimensions)}.")
    about = {"cube": part.name, "title": part.title, "asked": what, "rules": rules.described()}
    data = about | _data(rows, written, as_json=as_json)
    return _text(f"{part.title}: {what}", rows, notes, written, headings=_OF_CUBES), data


def rows_summary(part: "BundleItem", selected: "Selected", *, written: Path | None, as_json: bool) -> Summary:
    """The rows of a table, as they were published."""
    rows = selected.rows
    climbed = ", ".join(f"{name} into {level}" for name, level in selected.levels.items())
    over = [f"over {', '.join(selected.summed)}" if selected.summed else "", f"from {climbed}" if climbed else ""]
    added = f"Values were added up {' and '.join(filter(None, over))}"
    notes = [f"{added}{'.' if selected.notes else f': with {part.method} parts add up to the whole.'}"]
    notes = [*(notes if any(over) else []), *selected.notes, *(map(str, filter(None, [selected.better])))]
    about: dict[str, Any] = {"table": part.name, "title": part.title, "unit": selected.unit}
    about["summed_over"] = list(selected.summed)
    about |= {"added_up_into": dict(selected.levels)} if selected.levels else {}
    about |= {"notes": list(selected.notes)} if selected.notes else {}
    about |= {"better": asdict(selected.better)} if selected.better else {}
    data = about | _data(rows, written, as_json=as_json)
    return _text(f"{part.title} ({selected.unit})", rows, notes, written), data


def compared_summary(
    part: "BundleItem", compared: "Selected", what: str, *, written: Path | None, as_json: bool
) -> Summary:
    """Two codes of a dimension side by side, and how to read the intervals."""
    from sfumato.bundle.compare import TOGETHER

    note = (
        f"Intervals follow from those of both cells and hold in {TOGETHER:.0%} of cases at least, whatever the two "
        "have in common; growth is in percent."
    )
    about = {"table": part.name, "title": part.title, "unit": compared.unit, "compared": what, "confidence": TOGETHER}
    data = about | _data(compared.rows, written, as_json=as_json)
    return _text(f"{part.title} ({compared.unit}): {what}", compared.rows, [note], written), data


def _described(part: "BundleItem") -> dict[str, Any]:
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


def _errors_in_words(answer: "CubeAnswer") -> str:
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
        "too small": f"a weighted count below {rules.least_weighted:,g}",
        "not defined": "a total that is not above 0, or no error that can be told",
    }
    marks = set(rows["status"].to_pylist())
    listed = [f"{mark} ({words})" for mark, words in meant.items() if mark in marks]
    return [f"Do not publish figures with a mark: {'; '.join(listed)}."] if listed else []


def query(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="A bundle, or the release file that names it.", readable=False)
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A cube or table of it; without, all are listed.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Dimensions of the answer, in its order, of a table also levels above them; others are added up. "
            "Without: the total, or all of a table.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="A=1,2", help="Keep these codes of a dimension. Can be given several times."),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help="Add up: weighted (the default, if records have weights), count for records, or a measure."),
    ] = None,
    proportion: Annotated[bool, typer.Option("--proportion", help="Shares of all cells instead of totals.")] = False,
    proportion_within: Annotated[
        str | None, typer.Option(metavar="A,B", help="Shares of the cells that have the same codes of these.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(metavar="NAME", help="The mean of a measure, or of a dimension with --scores.")
    ] = None,
    quantile: Annotated[
        str | None,
        typer.Option(metavar="A=0.25,0.5", help="Quantiles of a dimension with ordered codes; the median without any."),
    ] = None,
    scores: Annotated[
        str | None, typer.Option(metavar="CODE=1,…", help="A number for each code, for --mean and --quantile.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(metavar="0,10,…", help="Where classes begin and end, for --quantile.")
    ] = None,
    network: Annotated[
        bool,
        typer.Option("--network", help="Centralities and path lengths of the classes of a flow or graph."),
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION=ONE,OTHER",
            help="Of a table: the change and growth from one code to the other, with intervals from published figures.",
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(metavar="2026-Q2-v1", help="Of a series: one version of one period, also one that was revised."),
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all rows to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a bundle: any table of a cube, with standard errors and marks, or rows of a published table.

    `sfumato query bundle` lists what there is. Then, for the survey that `sfumato economy requirements` makes:

    `sfumato query bundle requirements --by education --where telework=yes --where strength=light,medium`

    `sfumato query bundle requirements --by education,strength --proportion-within education`

    `sfumato query bundle requirements --by strength --quantile education=0.5`

    A flow or a graph is a network of classes, such as states; which of them are in the middle, and how far apart:

    `sfumato query bundle flows_between_states --network --where quarter=2010-Q2`

    Counts of a table are added up over what is left out, with errors of the sums:

    `sfumato query bundle jobs_by_place_industry --by industry`

    And up to a level that the bundle knows, `place@county` or the name of a dimension above:

    `sfumato query bundle jobs_by_place_industry --by place@county,industry`

    And of a table by month: `sfumato query bundle exports --compare month=2025-01,2025-02`

    A series has every version of a period: `sfumato query bundle jobs_by_place --version 2026-Q2-v1`

    Only the bundle is read, so nothing is charged.
    """
    from sfumato.bundle.read import bundle_folder, contents, open_cube, select_rows, version_folder
    from sfumato.statistics.cube.cube_query import unknown

    folder = bundle_folder(bundle) if version is None else version_folder(bundle_folder(bundle), version)
    parts = {part.name: part for part in contents(folder)}
    figure = {
        "column": column,
        "proportion": proportion or None,
        "proportion-within": proportion_within,
        "mean": mean,
        "quantile": quantile,
        "scores": scores,
        "edges": edges,
        "network": network or None,
    }
    given = {option: value for option, value in figure.items() if value is not None}
    if name is None:
        _refuse(
            {**given, **({"by": by} if by else {}), **({"where": where} if where else {})},
            "a cube or table to ask, after the bundle",
        )
        listed = contents_summary(folder, tuple(parts.values()))
        show(listed, as_json)
        if not as_json:  # in one line, however narrow the terminal is: it is to be copied
            screen.print(f"Ask for one: {listed[1]['example']}", soft_wrap=True, markup=False, highlight=False)
        return
    if name not in parts:
        raise unknown(f"bundle {folder}", "one of its cubes and tables", name, tuple(parts))
    part = parts[name]
    target = None if csv is None else _target(csv, folder)
    dimensions, kept = None if by is None else _listed(by), _where(folder, part, where or ())
    if part.kind == "table":
        if given.pop("network", None):
            _refuse({**given, **({"by": by} if by else {})}, "no option but --where beside --network")
            show(_network(folder, part, kept, target, as_json=as_json), as_json)
            return
        _refuse(given, f"no option but --by, --where and --compare for a table; '{name}' is not a cube")
        if compare is not None:
            _refuse({"by": by} if by else {}, "every dimension of the table beside --compare, which --where can filter")
            compared = _compared(folder, part, compare, kept)
            _write(compared.rows, target)
            show(compared_summary(part, compared, compare, written=target, as_json=as_json), as_json)
            return
        selected = select_rows(folder, name, dimensions, where=kept)
        _write(selected.rows, target)
        show(rows_summary(part, selected, written=target, as_json=as_json), as_json)
        return
    _refuse({"network": True} if network else {}, f"a table of a flow or graph; '{name}' is a cube")
    _refuse({"compare": compare} if compare else {}, f"no --compare for a cube; '{name}' is not a table")
    cube = open_cube(folder, name)
    what, answer = _ask(cube, dimensions or (), kept, given)
    if target is not None:
        _write(answer.to_arrow(), target)
    filters = "".join(f", {dimension} = {' or '.join(codes)}" for dimension, codes in kept.items())
    by_words = f" by {', '.join(dimensions)}" if dimensions else ""
    heading = f"{what}{by_words}{filters}"
    show(answer_summary(part, heading, answer, cube.rules, written=target, as_json=as_json), as_json)


def _ask(
    cube: "PublishedCube", by: Sequence[str], where: Mapping[str, Sequence[str]], given: Mapping[str, Any]
) -> tuple[str, "CubeAnswer"]:
    """What was asked, in words, and the answer."""
    kinds = [option for option in ("column", "proportion", "proportion-within", "mean", "quantile") if option in given]
    if len(kinds) > 1:
        _refuse({kinds[1]: given[kinds[1]]}, f"one kind of figure, as --{kinds[0]}")
    kind = kinds[0] if kinds else "column"
    scored = kind == "quantile" or (kind == "mean" and given["mean"] in cube.cube.names)
    _refuse(
        {option: given[option] for option in ("scores", "edges") if option in given and not scored},
        "--scores for the mean or a quantile of a dimension, --edges for a quantile",
    )
    scores = None if "scores" not in given else _scores(given["scores"])
    if kind in ("proportion", "proportion-within"):
        within = _listed(given.get("proportion-within", ""))
        words = f"shares within {', '.join(within)}" if within else "shares"
        return words, cube.proportions(by, within=within, where=where)
    if kind == "mean" and not scored:
        return f"mean of {given['mean']}", cube.means(given["mean"], by, where=where)
    if kind == "mean":
        if scores is None or "edges" in given:
            raise SfumatoError(
                f"--mean {given['mean']}",
                expected="a score for each of its codes, since it is a dimension",
                found="no --scores" if scores is None else "--edges, which are for quantiles",
                do=f"add --scores {cube.cube.dimensions[cube.cube.names.index(given['mean'])].codes[0]}=1,…",
            )
        return f"mean score of {given['mean']}", cube.mean_scores(given["mean"], scores, by, where=where)
    if kind == "quantile":
        of, _, shares = given["quantile"].partition("=")
        numbers = (
            None if "edges" not in given else [float(typed_number("edges", text)) for text in _listed(given["edges"])]
        )
        answer = cube.quantiles(of, _listed(shares) or "0.5", by, where=where, edges=numbers, scores=scores)
        return f"quantiles of {of}", answer
    column = given.get("column", cube.weighting)
    weighted = "weighted " if cube.is_weighted else ""
    known = {"weighted": "weighted totals" if weighted else "numbers of records", "count": "numbers of records"}
    return known.get(column, f"{weighted}sums of {column}"), cube.totals(by, where=where, column=column)


def _network(
    folder: Path, part: "BundleItem", where: Mapping[str, Sequence[str]], written: Path | None, *, as_json: bool
) -> Summary:
    """The classes of a published flow or graph with their centralities, and how far apart they are."""
    from sfumato.bundle.read import published_network

    rows, paths = published_network(folder, part.name, where=where)
    _write(rows, written)
    steps = ", ".join(f"{length}: {share:.1%}" for length, share in enumerate(paths.shares, start=1))
    notes = [
        f"Steps from one class to another: {paths.mean:.2f} on average ({steps}); {paths.reached:.1%} of all pairs are "
        "linked. Cells that are not published count as no link.",
        "Computed from published values alone: factors and rounding are in every figure.",
    ]
    about = {"table": part.name, "title": part.title, "steps": list(paths.shares), "linked": paths.reached}
    return _text(f"{part.title}: network of its classes", rows, notes, written), about | _data(
        rows, written, as_json=as_json
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _where(bundle: Path, part: "BundleItem", texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Filters as codes by dimension; a code may have a comma, and several filters of one dimension add up."""
    from sfumato.bundle.rows import codes_of

    kept: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, codes = (piece.strip() for piece in text.partition("="))
        if not equals:
            raise SfumatoError(
                "--where",
                expected="a dimension and its codes, such as strength=light,medium",
                found=repr(text),
                do=f"write --where {text}=CODE",
            )
        known = codes_of(bundle, name) if name in part.dimensions else ()
        listed = (codes,) if codes in known else _listed(codes)
        if any(code not in known and code.partition("=")[0] in part.dimensions for code in listed):
            raise SfumatoError(
                "--where",
                expected="one dimension with its codes",
                found=repr(text),
                do="give the option once for each dimension: --where " + re.sub(",(?=[^,=]+=)", " --where ", text),
            )
        kept[name] = kept.get(name, ()) + listed
    return kept


def _compared(bundle: Path, part: "BundleItem", text: str, kept: Mapping[str, Sequence[str]]) -> "Selected":
    """Two codes of a dimension beside each other."""
    from sfumato.bundle.compare import compare_rows

    dimension, _, codes = (piece.strip() for piece in text.partition("="))
    both = _listed(codes)
    if len(both) != 2:
        raise SfumatoError(
            "--compare",
            expected="a dimension and two of its codes, such as month=2025-01,2025-02",
            found=repr(text),
            do=f"write --compare {dimension or 'DIMENSION'}=ONE,OTHER",
        )
    return compare_rows(bundle, part.name, dimension, (both[0], both[1]), where=kept)


def _scores(text: str) -> dict[str, Any]:
    """A number for each code, a whole one where it is written so."""
    found = {}
    for pair in _listed(text):
        code, equals, score = (piece.strip() for piece in pair.rpartition("="))
        if not equals:
            raise SfumatoError(
                "--scores", expected="a number for each code, such as low=1,high=3", found=repr(pair), do="correct it"
            )
        exact = typed_number("scores", score)
        found[code] = int(exact) if exact.denominator == 1 else float(exact)
    return found


def _refuse(given: Mapping[str, Any], expected: str) -> None:
    if given:
        raise SfumatoError(
            "sfumato query",
            expected=expected,
            found=", ".join(f"--{option}" for option in given),
            do="leave it out, or see `sfumato query --help`",
        )


def _target(file: Path, bundle: Path) -> Path:
    """Refuse a file inside of the bundle, which would no longer match its manifest."""
    if file.resolve().is_relative_to(bundle.resolve()):
        raise SfumatoError(
            f"--csv {file}",
            expected="a file outside of the bundle, which is to stay as it was published",
            found="one inside",
            do="choose another folder",
        )
    return file


def _write(rows: Any, file: Path | None) -> None:
    from sfumato.statistics.row_files import csv_text

    if file is not None:
        file.write_bytes(csv_text(rows))
