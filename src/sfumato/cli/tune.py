"""`sfumato tune`: one function for each thing that can be chosen without looking at data."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.default_command import group_with_default
from sfumato.cli.release import ReleaseFile
from sfumato.cli.screen import AsJson, number, show

tune_app = typer.Typer(
    help="Find parameters of a method from what they are to achieve; no data are read and nothing is charged.\n\n"
    "Without a kind it is `table`: `sfumato tune FILE --accuracy …` means `sfumato tune table FILE --accuracy …`.",
    cls=group_with_default("table"),
    no_args_is_help=True,
    subcommand_metavar="[KIND]",
)


@tune_app.command()
def table(
    file: ReleaseFile,
    accuracy: Annotated[
        str, typer.Option(help="Such as `90% of cells of at least 100 jobs within 10%`, or `mean error below 5%`.")
    ],
    table: Annotated[str | None, typer.Option(help="The table; not needed where there is only one.")] = None,
    method: Annotated[str | None, typer.Option(help="Another method than the table names.")] = None,
    largest_share: Annotated[
        str, typer.Option(help="Share of a cell's jobs in its largest establishment; 1 is the worst case.")
    ] = "1",
    as_json: AsJson = False,
) -> None:
    """Find the smallest epsilon that gives a table a stated accuracy: the default.

    It is found from public assumptions, which are printed; no data are read and nothing is charged.
    """
    from sfumato.release_file import load
    from sfumato.tune.accuracy import read_accuracy
    from sfumato.tune.summary import tuned_summary
    from sfumato.tune.table import find_table, tune_table

    release, wanted, share = load(file), read_accuracy(accuracy), number("largest-share", largest_share)
    tuned = tune_table(release, table, accuracy=wanted, method=method, largest_share=share)
    show(tuned_summary(tuned, find_table(release, table).name), as_json)


@tune_app.command("top-contributors")
def top_contributors(
    contributors: Annotated[str, typer.Option(help="Sizes of a cell's contributors, in any unit, such as `90,5,5`.")],
    m: Annotated[str | None, typer.Option(help="Magnitudes to evaluate, the largest contributor's first.")] = None,
    attacks: Annotated[str, typer.Option(help="The attacks to withstand.")] = "1,2,3",
    top: Annotated[
        int | None, typer.Option(help="How many contributors to perturb; as many as `--m` has, otherwise 3.")
    ] = None,
    rest: Annotated[float, typer.Option(help="What all smaller contributors add to the total.")] = 0.0,
    within: Annotated[str, typer.Option(help="V of each attack: how near is a disclosure.")] = ".18,.11,.11",
    risk: Annotated[str, typer.Option(help="R of each attack: its largest acceptable probability.")] = ".15,.15,.15",
    parity: Annotated[bool, typer.Option("--parity", help="Turn directions with the number of contributors.")] = False,
    falling: Annotated[
        bool, typer.Option("--falling", help="Only magnitudes that never grow from a contributor to a smaller one.")
    ] = False,
    step: Annotated[float, typer.Option(help="The steps in which magnitudes are tried.")] = 0.05,
    largest: Annotated[float, typer.Option(help="The largest magnitude that is tried.")] = 1.0,
    spread: Annotated[float, typer.Option(help="The noise is triangular on 1 ± this.")] = 0.3,
    chart: Annotated[Path | None, typer.Option(help="Draw risk against loss to this SVG or HTML file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what magnitudes reveal and cost for a cell of a given shape, and find those that cost least.

    It is computed from the method alone, for attackers who know the weights; no data are read.
    """
    from sfumato.methods.contributor_shape import Shape, read_numbers
    from sfumato.tune.contributors.chart import write_chart
    from sfumato.tune.contributors.summary import contributors_summary
    from sfumato.tune.contributors.tune import TOP, Question, attacks_with, tune_contributors

    given = None if m is None else read_numbers("--m", m)
    question = Question(
        shape=Shape.read(contributors, rest=rest),
        top=top if top is not None else len(given) if given is not None else TOP,
        withstand=read_numbers("--attacks", attacks),
        attacks=attacks_with(within=read_numbers("--within", within), limits=read_numbers("--risk", risk)),
        parity=parity,
        spread=spread,
        step=step,
        largest=largest,
        falling=falling,
    )
    answer = tune_contributors(question, given)
    drawn = None if chart is None else write_chart(answer, chart)
    show(contributors_summary(answer, drawn), as_json)
