"""`sfumato reproduce`: one function for each published evaluation that can be done again."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.screen import AsJson, progress, show
from sfumato.cli.usage import Commands

reproduce_app = typer.Typer(
    help="Do a published evaluation again on a synthetic economy, and print what was published beside what is found.",
    no_args_is_help=True,
    subcommand_metavar="NAME",
    cls=Commands,
)

Quick = Annotated[bool, typer.Option("--quick", help="Fewer settings and trials, on as many jobs.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder of an economy to use; made there if it holds none.", metavar="FOLDER")
]
Out = Annotated[Path | None, typer.Option(help="Folder for the page and the CSV file.", metavar="FOLDER")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same figures.")]


def _reproduced(
    paper: str,
    reproduce: Callable[..., Any],
    write: Callable[..., Any],
    summary: Callable[..., Any],
    *,
    out: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Do an evaluation again as it is asked for, write its page and print its summary."""
    with progress(hidden=as_json) as update:
        found = reproduce(**asked, progress=update)
        update("drawing charts", 0, 1)
        written = write(found, out or Path(paper))
    show(summary(found, *written), as_json)


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
    from sfumato_lab.reproduce.haney2017.reproduction import QUICK, WHOLE, reproduce
    from sfumato_lab.reproduce.haney2017.reproduction import reproduction_summary as summary
    from sfumato_lab.reproduce.haney2017.reproduction import write_reproduction as write

    asked = {"data": data, "jobs": jobs, "grid": QUICK if quick else WHOLE, "seed": seed}
    _reproduced("haney2017", reproduce, write, summary, **asked, out=out, as_json=as_json)


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
    from sfumato_lab.reproduce.chipperfield2019.page import reproduction_summary as summary
    from sfumato_lab.reproduce.chipperfield2019.page import write_reproduction as write
    from sfumato_lab.reproduce.chipperfield2019.reproduction import KEYS, QUICK_KEYS, reproduce

    asked = {"data": data, "businesses": businesses, "keys": QUICK_KEYS if quick else KEYS, "seed": seed}
    _reproduced("chipperfield2019", reproduce, write, summary, **asked, out=out, as_json=as_json)


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
    from sfumato_lab.reproduce.abowd2016.reproduction import KEYS, QUICK_KEYS, reproduce
    from sfumato_lab.reproduce.abowd2016.reproduction import reproduction_summary as summary
    from sfumato_lab.reproduce.abowd2016.reproduction import write_reproduction as write

    asked = {"data": data, "persons": persons, "keys": QUICK_KEYS if quick else KEYS, "seed": seed}
    _reproduced("abowd2016", reproduce, write, summary, **asked, out=out, as_json=as_json)


@reproduce_app.command()
def li2020(
    quick: Annotated[bool, typer.Option("--quick", help="100 runs at most.")] = False,
    runs: Annotated[int, typer.Option(help="How often the cube is perturbed and calibrated.", min=2)] = 1_000,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Li and Krenzke (2020): the bottom-up hypercube, its noise, and what calibration takes out of it."""
    from sfumato_lab.reproduce.li2020.page import reproduction_summary as summary
    from sfumato_lab.reproduce.li2020.page import write_reproduction as write
    from sfumato_lab.reproduce.li2020.reproduction import QUICK_RUNS, reproduce

    asked = {"runs": min(runs, QUICK_RUNS) if quick else runs, "seed": seed}
    _reproduced("li2020", reproduce, write, summary, **asked, out=out, as_json=as_json)


@reproduce_app.command()
def schmutte2020(
    quick: Annotated[bool, typer.Option("--quick", help="Draw noise 2 times instead of 10, on as much data.")] = False,
    tracts: Annotated[
        int, typer.Option(help="Number of tracts; employees and graduates are in proportion.", min=100)
    ] = 2_000,
    data: Data = None,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Schmutte (2020): statistics from small samples: MOSE and its envelope, employee reports, percentiles."""
    from sfumato_lab.reproduce.schmutte2020.page import reproduction_summary as summary
    from sfumato_lab.reproduce.schmutte2020.page import write_reproduction as write
    from sfumato_lab.reproduce.schmutte2020.reproduction import DRAWS, QUICK_DRAWS, reproduce

    asked = {"data": data, "tracts": tracts, "draws": QUICK_DRAWS if quick else DRAWS, "seed": seed}
    _reproduced("schmutte2020", reproduce, write, summary, **asked, out=out, as_json=as_json)


@reproduce_app.command()
def totals(
    quick: Annotated[bool, typer.Option("--quick", help="5 draws instead of 20, on as much data.")] = False,
    jobs: Annotated[int, typer.Option(help="Number of jobs in the economy.")] = 1_000_000,
    persons: Annotated[int, typer.Option(help="Number of persons in the panel, from 5,000 on.")] = 200_000,
    data: Data = None,
    out: Out = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Totals and indicators: formal ones beside the legacy protection, their errors, growth and attacks on both."""
    from sfumato_lab.reproduce.totals.reproduction import QUICK, WHOLE, reproduce
    from sfumato_lab.reproduce.totals.reproduction import reproduction_summary as summary
    from sfumato_lab.reproduce.totals.reproduction import write_reproduction as write

    asked = {"data": data, "jobs": jobs, "persons": persons, "setting": QUICK if quick else WHOLE, "seed": seed}
    _reproduced("totals", reproduce, write, summary, **asked, out=out, as_json=as_json)
