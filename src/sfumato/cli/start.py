"""The command `sfumato start`: look at files and write a first release file for them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from sfumato.cli.screen import AsJson, Summary, messages, near, printed_table, progress, screen, show, spaced
from sfumato.errors import UsageError

if TYPE_CHECKING:  # only names for types
    from sfumato.starting.look import Looked
    from sfumato.starting.start import Question, Started


def start(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Files with the data, of any format that is read: one table, or jobs with workplaces and workers. A "
            "table of a database is `FILE#table`, a sheet `FILE#sheet`.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The release file to write; none is overwritten.")
    ] = Path("release.toml"),
    kind: Annotated[
        str | None, typer.Option(help="What the data are: `jobs`, `register`, `panel`, `businesses` or `people`.")
    ] = None,
    jobs: Annotated[str | None, typer.Option(help="Which file has the jobs.")] = None,
    workplaces: Annotated[str | None, typer.Option(help="Which file has the workplaces.")] = None,
    workers: Annotated[str | None, typer.Option(help="Which file has the workers.")] = None,
    worker: Annotated[str | None, typer.Option(help="The column that names the worker of a job.")] = None,
    workplace: Annotated[str | None, typer.Option(help="The column that names the workplace of a job.")] = None,
    unit: Annotated[str | None, typer.Option(help="The column that names the business or person of a record.")] = None,
    period: Annotated[str | None, typer.Option(help="The column with the period of a row.")] = None,
    periods: Annotated[
        str | None, typer.Option(help="The periods that are published of people, such as `2023,2024`.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The column with the sampling weight.")] = None,
    largest_weight: Annotated[
        int | None, typer.Option(help="The largest weight that the design of a survey allows; public.")
    ] = None,
    earnings: Annotated[str | None, typer.Option(help="The column with the earnings of a panel.")] = None,
    employees: Annotated[
        str | None, typer.Option(help="The column with the number of workers, or several: `women,men`.")
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(help="Attributes of establishments that everyone knows, such as `nace,region`; not protected."),
    ] = None,
    skip: Annotated[
        int | None, typer.Option(min=0, help="Lines of texts, or rows of sheets, before the heading; guessed.")
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option(help="How 31 March 2026 is written in dates with slashes: `31/03/2026` or `03/31/2026`; guessed."),
    ] = None,
    decimal: Annotated[
        str | None, typer.Option(help="What comes before decimals in texts, `.` or `,`; the other may group thousands.")
    ] = None,
    codelist: Annotated[
        list[str] | None,
        typer.Option(help="The public codes of an attribute, such as `education=lists/education.csv`; repeatable."),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Attributes of the first table, such as `nace,region`.")] = None,
    measure: Annotated[str | None, typer.Option(help="The measure of the first table of businesses.")] = None,
    key: Annotated[
        Path | None, typer.Option(help="The key file of the office, where methods need one; made if it is not there.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the release.")] = None,
    reference: Annotated[str | None, typer.Option(help="Of when the data are, such as `2025`.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take what is guessed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at files and write a first release file that runs, with comments to learn from.

    It finds out what the tables are, their keys and links, what may classify and what can be added up, and proposes a
    first table and a method. On a terminal it asks what it must know. Codes of confidential attributes are never taken
    from the data: they come from a codelist, from lists that everybody knows, or stay a draft for you to confirm.

    Nothing is charged and no file is overwritten. What is shown is confidential.
    """
    from sfumato.starting.start import start as start_release

    asks = not yes and not as_json and sys.stdin.isatty()
    wishes: dict[str, Any] = {
        "kind": kind,
        "jobs": jobs,
        "workplaces": workplaces,
        "workers": workers,
        "worker": worker,
        "workplace": workplace,
        "unit": unit,
        "period": period,
        "weight": weight,
        "earnings": earnings,
        "measure": measure,
        "key": key,
        "title": title,
        "reference": reference,
        "largest_weight": largest_weight,
        "skip": skip,
        "dates": dates,
        "decimal": decimal,
        "employees": _parts(employees),
        "public": _parts(public),
        "periods": _parts(periods),
        "by": _parts(by),
    }
    with progress(hidden=as_json or asks) as update:
        started = start_release(
            files,
            output,
            ask=_ask if asks else None,
            show=(lambda _: None) if as_json else lambda looked: screen.print(_looked(looked)),
            progress=lambda step: update(step, 0, 1),
            codelists=_codelists(codelist or []),
            **wishes,
        )
    show(_summary(started), as_json)


def _parts(written: str | None) -> tuple[str, ...] | None:
    return None if written is None else tuple(part.strip() for part in written.split(",") if part.strip())


def _codelists(written: Sequence[str]) -> dict[str, str]:
    found = {}
    for one in written:
        name, equals, file = one.partition("=")
        if not (name and equals and file):
            raise UsageError("--codelist", expected="attribute=file", found=one, do="write sex=lists/sex.csv, say")
        found[name] = file
    return found


def _ask(question: "Question") -> str:
    if question.refused:
        messages.print(question.refused, style="yellow")
    answer = typer.prompt(question.text, default=question.default, show_default=bool(question.default), err=True)
    return str(answer)


def _looked(looked: Sequence["Looked"]) -> Group:
    parts: list[Any] = [Text("Confidential: what these files have in them.", style="yellow")]
    for one in looked:
        table = printed_table("column", "has")
        for name, column in one.columns.items():
            table.add_row(name, column.described())
        reading = f" ({one.reading})" if one.reading else ""
        parts += [Text(f"{one.path.name}: {one.rows:,} rows{reading}", style="bold"), table]
    return Group(*spaced(parts))


def _summary(started: "Started") -> Summary:
    facts = started.facts()
    proposal = started.proposal
    lines = [f"Taken for: {proposal.kind}."]
    lines += [f"{words}." for words in proposal.links]
    lines += [f"{name} is the codelist of '{column}'." for column, name in proposal.lists.items()]
    if proposal.employees:
        left = f" Left out: {', '.join(proposal.left_out)}." if proposal.left_out else ""
        lines.append(f"Workers are counted by {' and '.join(proposal.employees)}.{left}")
    if proposal.jobs is not None:
        lines.append(f"{proposal.jobs:,} jobs.")
    if "weight" in proposal.keys:
        lines.append(f"Weighted by {proposal.keys['weight']}.")
    if facts["candidates_for_public"]:
        lines.append(
            "Confidential unless you say that everyone knows it (--public): "
            f"{', '.join(facts['candidates_for_public'])}."
        )
    if facts["need_codes"]:
        lines.append(f"Not used before somebody gives their codes (--codelist): {', '.join(facts['need_codes'])}.")
    labelled = [one.name for one in proposal.attributes if one.labelled]
    if labelled:
        lines.append(
            f"Value labels of the file are drafts of codes, and may be public: {', '.join(labelled)}. Confirm them in "
            "the release file."
        )
    lines += [f"{one.name} {one.why_not}." for one in proposal.measures if one.why_not]
    if started.made_key:
        lines.append(
            f"A key was made: {near(Path(str(started.key)))}. Keep it secret and for ever; if your office has one, "
            "name it with --key instead."
        )
    written = f"Wrote {near(started.release)}. Nothing was charged. Read it, then: sfumato check {started.release}"
    doubts = [Text("\n".join(f"{words}." for words in proposal.doubts), style="bold yellow")] if proposal.doubts else []
    return Group(*spaced([Text("\n".join(lines)), *doubts, Text(written, style="green")])), facts
