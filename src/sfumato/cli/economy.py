"""`sfumato economy`: one function for each kind of synthetic economy; a new kind is one more function here."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.default_command import group_with_default
from sfumato.cli.screen import AsJson, progress, show

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write to.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same economy.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an economy that is already there.")]

economy_app = typer.Typer(
    help="Write a synthetic economy (Parquet files, codelists, a release file) with the published shape of a real one."
    "\n\nWithout a kind it is `jobs`: `sfumato economy FOLDER --jobs 100000` is short for `sfumato economy jobs FOLDER "
    "--jobs 100000`. A folder that is called like a kind is written `./jobs`.",
    cls=group_with_default("jobs"),
    no_args_is_help=True,
    subcommand_metavar="[KIND] FOLDER",
)


@economy_app.command()
def jobs(
    out: Folder,
    jobs: Annotated[int, typer.Option(help="Number of jobs, from 10,000 to 150,000,000.")] = 1_000_000,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    shape: Annotated[bool, typer.Option(help="Measure its shape and print it beside the published one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Jobs, workers and workplaces of one year, with the sizes and attributes of a real economy: the default."""
    from sfumato.economy.generate import generate
    from sfumato.economy.shape import measure
    from sfumato.terminal.economy import economy_summary

    with progress(hidden=as_json) as update:
        made = generate(
            out,
            jobs=jobs,
            seed=seed,
            overwrite=overwrite,
            progress=lambda done, total: update("making jobs", done, total),
        )
        measured = measure(out) if shape else None
    show(economy_summary(made, measured), as_json)


@economy_app.command()
def federal(
    out: Folder,
    persons: Annotated[int, typer.Option(help="Number of persons, from 5,000 to 5,000,000.")] = 2_170_000,
    quarters: Annotated[int, typer.Option(help="Quarters of earnings histories, up to 60; 0 writes none.")] = 0,
    first: Annotated[str, typer.Option(help="The first quarter.")] = "2010-Q1",
    seed: Seed = 1,
    overwrite: Overwrite = False,
    shape: Annotated[bool, typer.Option(help="Measure its shape and print it beside the published one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Federal workers, who move between 7,341 employers in 51 states over 13 years: a graph, and a panel on request."""
    from sfumato.economy.federal.generate import generate_federal
    from sfumato.economy.federal.shape import measure_federal
    from sfumato.economy.federal.summary import federal_summary

    with progress(hidden=as_json) as update:
        made = generate_federal(
            out,
            persons=persons,
            quarters=quarters,
            first=first,
            seed=seed,
            overwrite=overwrite,
            progress=lambda done, total: update("making careers", done, total),
        )
        measured = measure_federal(out) if shape else None
    show(federal_summary(made, measured), as_json)


@economy_app.command()
def business(
    out: Folder,
    businesses: Annotated[int, typer.Option(help="Number of businesses, from 1,000 to 20,000,000.")] = 100_000,
    replicates: Annotated[
        bool | None,
        typer.Option(
            "--replicates/--no-replicates",
            help="Write 60 replicate weights; when not given, up to 1,000,000 businesses.",
        ),
    ] = None,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    shape: Annotated[bool, typer.Option(help="Measure its shape and print it.")] = False,
    as_json: AsJson = False,
) -> None:
    """A survey of businesses with weights, dominant firms and losses, enterprises above them and employees below."""
    from sfumato.economy.business.generate import generate_business
    from sfumato.economy.business.shape import measure_business
    from sfumato.economy.business.summary import business_summary

    with progress(hidden=as_json) as update:
        made = generate_business(
            out,
            businesses=businesses,
            seed=seed,
            replicates=replicates,
            overwrite=overwrite,
            progress=lambda done, total: update("making businesses", done, total),
        )
        measured = measure_business(out) if shape else None
    show(business_summary(made, measured), as_json)


@economy_app.command()
def requirements(
    out: Folder,
    quotes: Annotated[int, typer.Option(help="Number of sampled jobs, from 1,000 to 5,000,000.")] = 60_000,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    shape: Annotated[bool, typer.Option(help="Measure its shape and print it.")] = False,
    as_json: AsJson = False,
) -> None:
    """A survey of what jobs require by occupation: two stages, weights, 80 replicate weights, mostly empty cubes."""
    from sfumato.economy.requirements.generate import generate_requirements
    from sfumato.economy.requirements.shape import measure_requirements
    from sfumato.economy.requirements.summary import requirements_summary

    with progress(hidden=as_json) as update:
        made = generate_requirements(
            out,
            quotes=quotes,
            seed=seed,
            overwrite=overwrite,
            progress=lambda done, total: update("making quotes", done, total),
        )
        measured = measure_requirements(out) if shape else None
    show(requirements_summary(made, measured), as_json)
