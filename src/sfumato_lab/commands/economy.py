"""`sfumato economy`: one function for each kind of synthetic economy."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.screen import AsJson, Summary, printed_table, progress, show, spaced
from sfumato.cli.usage import group_with_default

if TYPE_CHECKING:  # only names for types
    from sfumato_lab.economy.frame import Made


# What `sfumato economy` says of what it made, whatever its kind.

_HEADINGS = ("shape", "here", "published")


class Measured(Protocol):
    """A measured shape."""

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """What, how much, and for some kinds what was published."""


def economy_summary(made: "Made", shape: Measured | None) -> Summary:
    """What an economy holds, with its shape when it was measured, beside the published one where there is one."""
    lines: list[RenderableType] = [Text(f"{made.words}, in {made.folder}.")]
    data: dict[str, Any] = made.data()
    if shape is not None:
        rows = shape.rows()
        table = printed_table(*_HEADINGS[: len(rows[0])])
        for row in rows:
            table.add_row(*row)
        lines.append(table)
        names = ("quantity", *_HEADINGS[1:])
        data["shape"] = [dict(zip(names, row, strict=False)) for row in rows]
    lines.append(Text(f"Try: {made.next_step}"))
    return Group(*spaced(lines)), data


economy_app = typer.Typer(
    help="Write a synthetic economy (Parquet files, codelists, a release file) with the published shape of a real one."
    "\n\nWithout a kind it is `jobs`: `sfumato economy FOLDER --jobs 100000` is short for `sfumato economy jobs FOLDER "
    "--jobs 100000`. A folder that is called like a kind is written `./jobs`.",
    cls=group_with_default("jobs"),
    no_args_is_help=True,
    subcommand_metavar="[KIND] FOLDER",
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one kind is made and measured, with the options of its own already given."""

    generate: "Callable[..., Made]"
    measure: "Callable[[Path], Measured]"
    making: str
    """What there is progress with, such as jobs."""


def kind(recipe: Callable[..., Recipe]) -> Callable[..., None]:
    """A command of the group: the options of the recipe, and around them those that every kind has."""

    def make(
        out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write to.")],
        *,
        seed: Annotated[int, typer.Option(help="The same seed gives the same economy.")] = 1,
        overwrite: Annotated[bool, typer.Option(help="Replace an economy that is already there.")] = False,
        shape: Annotated[bool, typer.Option(help="Measure its shape, and print it beside what was published.")] = False,
        as_json: AsJson = False,
        **options: Any,
    ) -> None:

        asked = recipe(**options)
        with progress(hidden=as_json) as update:
            tell = partial(update, f"making {asked.making}")
            made = asked.generate(out, seed=seed, overwrite=overwrite, progress=tell)
            measured = asked.measure(out) if shape else None
        show(economy_summary(made, measured), as_json)

    first, *common, _ = inspect.signature(make).parameters.values()
    own = [option.replace(kind=option.KEYWORD_ONLY) for option in inspect.signature(recipe).parameters.values()]
    parameters = [first, *own, *common]
    # The parser reads the signature, and the types apart from it.
    command: Any = make
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {option.name: option.annotation for option in parameters}
    command.__name__, command.__doc__ = recipe.__name__, recipe.__doc__
    economy_app.command()(command)
    return make


@kind
def jobs(
    jobs: Annotated[int, typer.Option(help="Number of jobs, from 10,000 to 150,000,000.")] = 1_000_000,
    establishments: Annotated[
        int | None,
        typer.Option(
            help="Number of establishments with jobs, from a hundredth to half of the jobs.",
            show_default="one for 20.68 jobs, as published",
        ),
    ] = None,
    residence: Annotated[
        bool,
        typer.Option("--residence", help="Give workers a place of residence too, and publish jobs by home and work."),
    ] = False,
) -> Recipe:
    """Jobs, workers and workplaces of one year, with the sizes and attributes of a real economy: the default."""
    from sfumato_lab.economy.jobs.generate import generate
    from sfumato_lab.economy.jobs.shape import measure

    make = partial(generate, jobs=jobs, establishments=establishments, residence=residence)
    return Recipe(generate=make, measure=measure, making="jobs")


@kind
def federal(
    persons: Annotated[int, typer.Option(help="Number of persons, from 5,000 to 5,000,000.")] = 2_170_000,
    quarters: Annotated[int, typer.Option(help="Quarters of earnings histories, up to 60; 0 writes none.")] = 0,
    first: Annotated[str, typer.Option(help="The first quarter.")] = "2010-Q1",
) -> Recipe:
    """Federal workers, who move between 7,341 employers in 51 states over 13 years: a graph, and a panel on request."""
    from sfumato_lab.economy.federal.generate import generate_federal
    from sfumato_lab.economy.federal.shape import measure_federal

    generate = partial(generate_federal, persons=persons, quarters=quarters, first=first)
    return Recipe(generate=generate, measure=measure_federal, making="careers")


@kind
def business(
    businesses: Annotated[int, typer.Option(help="Number of businesses, from 1,000 to 20,000,000.")] = 100_000,
    replicates: Annotated[
        bool | None,
        typer.Option(
            "--replicates/--no-replicates",
            help="Write 60 replicate weights; when not given, up to 1,000,000 businesses.",
        ),
    ] = None,
) -> Recipe:
    """A survey of businesses with weights, dominant firms and losses, enterprises above them and employees below."""
    from sfumato_lab.economy.business.generate import generate_business
    from sfumato_lab.economy.business.shape import measure_business

    generate = partial(generate_business, businesses=businesses, replicates=replicates)
    return Recipe(generate=generate, measure=measure_business, making="businesses")


@kind
def requirements(
    quotes: Annotated[int, typer.Option(help="Number of sampled jobs, from 1,000 to 5,000,000.")] = 60_000,
) -> Recipe:
    """A survey of what jobs require by occupation: two stages, weights, 80 replicate weights, mostly empty cubes."""
    from sfumato_lab.economy.requirements.generate import generate_requirements
    from sfumato_lab.economy.requirements.shape import measure_requirements

    return Recipe(generate=partial(generate_requirements, quotes=quotes), measure=measure_requirements, making="quotes")


@kind
def opportunity(
    tracts: Annotated[int, typer.Option(help="Number of tracts, from 100 to 100,000; the country has 70,000.")] = 2_000,
) -> Recipe:
    """Children by tract, race and gender with the income ranks of their parents and their own: mostly small groups."""
    from sfumato_lab.economy.opportunity.generate import generate_opportunity
    from sfumato_lab.economy.opportunity.shape import measure_opportunity

    return Recipe(generate=partial(generate_opportunity, tracts=tracts), measure=measure_opportunity, making="children")


@kind
def university(
    employees: Annotated[int, typer.Option(help="Employees of all institutions, from 1,000 to 5,000,000.")] = 80_000,
    institutions: Annotated[int, typer.Option(help="Number of institutions, from 1 to 99.")] = 8,
) -> Recipe:
    """People who left a university, with their earnings in up to ten years since: one release for each institution."""
    from sfumato_lab.economy.university.generate import generate_university
    from sfumato_lab.economy.university.shape import measure_university

    generate = partial(generate_university, employees=employees, institutions=institutions)
    return Recipe(generate=generate, measure=measure_university, making="careers")


@kind
def graduates(
    people: Annotated[int, typer.Option(help="Number of graduates or veterans, from 1,000 to 20,000,000.")] = 200_000,
    veterans: Annotated[
        bool, typer.Option("--veterans", help="Veterans by service branch and occupation instead of graduates.")
    ] = False,
) -> Recipe:
    """Graduates by institution, degree, field and cohort, or veterans, with earnings 1, 5 and 10 years after."""
    from sfumato_lab.economy.graduates.generate import generate_graduates
    from sfumato_lab.economy.graduates.shape import measure_graduates

    generate = partial(generate_graduates, people=people, veterans=veterans)
    return Recipe(generate=generate, measure=measure_graduates, making="graduates")
