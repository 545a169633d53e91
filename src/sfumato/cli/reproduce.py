"""`sfumato reproduce`: one function for each published evaluation that can be done again."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.screen import AsJson, progress, show

reproduce_app = typer.Typer(
    help="Do a published evaluation again on a synthetic economy, and print what was published beside what is found.",
    no_args_is_help=True,
    subcommand_metavar="PAPER",
)

Quick = Annotated[bool, typer.Option("--quick", help="Fewer settings and trials, on as many jobs.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder of an economy to use; made there if it holds none.", metavar="FOLDER")
]
Out = Annotated[Path | None, typer.Option(help="Folder for the page and the CSV file.", metavar="FOLDER")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same figures.")]


@reproduce_app.command()
def haney2017(
    quick: Quick = False,
    jobs: Annotated[int, typer.Option(help="Number of jobs in the economy.")] = 10_900_000,
    data: Data = None,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Haney et al. (2017): what formal privacy costs in tables of jobs, against the legacy protection."""
    from sfumato.reproduce.haney2017 import QUICK, WHOLE, reproduce
    from sfumato.reproduce.page import write_reproduction
    from sfumato.reproduce.summary import reproduction_summary

    with progress(hidden=as_json) as update:
        found = reproduce(data=data, jobs=jobs, grid=QUICK if quick else WHOLE, seed=seed, progress=update)
        update("drawing charts", 0, 1)
        written = write_reproduction(found, out or Path("haney2017"))
    show(reproduction_summary(found, *written), as_json)


@reproduce_app.command()
def chipperfield2019(
    quick: Annotated[bool, typer.Option("--quick", help="5 keys instead of 20, on as many businesses.")] = False,
    businesses: Annotated[int, typer.Option(help="Number of businesses in the survey.")] = 100_000,
    data: Data = None,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Chipperfield et al. (2019): business totals perturbed by their largest contributors, the risks and the losses."""
    from sfumato.reproduce.chipperfield2019 import reproduce
    from sfumato.reproduce.chipperfield2019.page import write_reproduction
    from sfumato.reproduce.chipperfield2019.reproduction import KEYS, QUICK_KEYS
    from sfumato.reproduce.chipperfield2019.summary import reproduction_summary

    with progress(hidden=as_json) as update:
        keys = QUICK_KEYS if quick else KEYS
        found = reproduce(data=data, businesses=businesses, keys=keys, seed=seed, progress=update)
        update("drawing charts", 0, 1)
        written = write_reproduction(found, out or Path("chipperfield2019"))
    show(reproduction_summary(found, *written), as_json)


@reproduce_app.command()
def abowd2016(
    quick: Annotated[bool, typer.Option("--quick", help="5 keys instead of 20, on as many persons.")] = False,
    persons: Annotated[int, typer.Option(help="Number of persons in the workforce.")] = 2_170_000,
    data: Data = None,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Abowd and McKinney (2016): noise infusion for the graph of federal employers, by state and state."""
    from sfumato.reproduce.abowd2016.page import write_reproduction
    from sfumato.reproduce.abowd2016.reproduce import KEYS, QUICK_KEYS, reproduce
    from sfumato.reproduce.abowd2016.summary import reproduction_summary

    with progress(hidden=as_json) as update:
        keys = QUICK_KEYS if quick else KEYS
        found = reproduce(data=data, persons=persons, keys=keys, seed=seed, progress=update)
        update("drawing the chart", 0, 1)
        written = write_reproduction(found, out or Path("abowd2016"))
    show(reproduction_summary(found, *written), as_json)


@reproduce_app.command()
def li2020(
    quick: Annotated[bool, typer.Option("--quick", help="100 runs at most.")] = False,
    runs: Annotated[int, typer.Option(help="How often the cube is perturbed and calibrated.", min=2)] = 1_000,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Li and Krenzke (2020): the bottom-up hypercube, its noise, and what calibration takes out of it."""
    from sfumato.reproduce.li2020 import reproduce
    from sfumato.reproduce.li2020.page import write_reproduction
    from sfumato.reproduce.li2020.reproduction import QUICK_RUNS
    from sfumato.reproduce.li2020.summary import reproduction_summary

    with progress(hidden=as_json) as update:
        found = reproduce(runs=min(runs, QUICK_RUNS) if quick else runs, seed=seed, progress=update)
        update("drawing the chart", 0, 1)
        written = write_reproduction(found, out or Path("li2020"))
    show(reproduction_summary(found, *written), as_json)
