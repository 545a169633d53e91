"""`sfumato query`: figures of a published bundle, with their errors and marks; no confidential data are read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.screen import AsJson, number, screen, show
from sfumato.errors import SfumatoError

if TYPE_CHECKING:  # only names for types: the command imports what it runs
    from sfumato.cube.answer import Answer
    from sfumato.cube.query import PublishedCube
    from sfumato.publish.selection import Part


def query(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A bundle, or the release file that names it.")],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A cube or table of it; without, all are listed.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="A,B", help="Dimensions of the answer, in its order. Without: the total.")
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
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all rows to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a bundle: any table of a cube, with standard errors and marks, or rows of a published table.

    `sfumato query bundle` lists what there is. Then, for the survey that `sfumato economy requirements` makes:

    `sfumato query bundle requirements --by education --where telework=yes --where strength=light,medium`

    `sfumato query bundle requirements --by education,strength --proportion-within education`

    `sfumato query bundle requirements --by strength --quantile education=0.5`

    Only the bundle is read, so nothing is charged.
    """
    from sfumato.cube.asked import unknown
    from sfumato.cube.query import open_cube
    from sfumato.publish.selection import contents, select_rows
    from sfumato.terminal.query import answer_summary, contents_summary, rows_summary

    folder = _folder(bundle)
    parts = {part.name: part for part in contents(folder)}
    figure = {
        "column": column,
        "proportion": proportion or None,
        "proportion-within": proportion_within,
        "mean": mean,
        "quantile": quantile,
        "scores": scores,
        "edges": edges,
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
        _refuse(given, f"no option but --by and --where for a table; '{name}' is not a cube")
        selected = select_rows(folder, name, dimensions, where=kept)
        _write(selected.rows, target)
        show(rows_summary(part, selected, written=target, as_json=as_json), as_json)
        return
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
) -> tuple[str, "Answer"]:
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
        numbers = None if "edges" not in given else [float(number("edges", text)) for text in _listed(given["edges"])]
        answer = cube.quantiles(of, _listed(shares) or "0.5", by, where=where, edges=numbers, scores=scores)
        return f"quantiles of {of}", answer
    column = given.get("column", cube.weighting)
    weighted = "weighted " if cube.is_weighted else ""
    known = {"weighted": "weighted totals" if weighted else "numbers of records", "count": "numbers of records"}
    return known.get(column, f"{weighted}sums of {column}"), cube.totals(by, where=where, column=column)


def _folder(bundle: Path) -> Path:
    """The bundle itself; a release file knows where its bundle is."""
    if bundle.suffix != ".toml":
        return bundle
    from sfumato.release_file import load

    return load(bundle).bundle


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _where(bundle: Path, part: "Part", texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Filters as codes by dimension; a code may have a comma, and several filters of one dimension add up."""
    from sfumato.publish.selection import codes_of

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
        kept[name] = kept.get(name, ()) + ((codes,) if codes in known else _listed(codes))
    return kept


def _scores(text: str) -> dict[str, Any]:
    """A number for each code, a whole one where it is written so."""
    found = {}
    for pair in _listed(text):
        code, equals, score = (piece.strip() for piece in pair.rpartition("="))
        if not equals:
            raise SfumatoError(
                "--scores", expected="a number for each code, such as low=1,high=3", found=repr(pair), do="correct it"
            )
        exact = number("scores", score)
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
    from sfumato.publish.csv_text import csv_text

    if file is not None:
        file.write_bytes(csv_text(rows))
