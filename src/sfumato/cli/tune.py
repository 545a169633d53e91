"""`sfumato tune`: one function for each thing that can be chosen without looking at data."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.release import ReleaseFile
from sfumato.cli.screen import AsJson, show, typed_number
from sfumato.cli.series import PeriodOption
from sfumato.cli.usage import group_with_default

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
    period: PeriodOption = None,
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
    from sfumato.cli.tune_summaries import tuned_summary
    from sfumato.release import load
    from sfumato.statistics.jobs.tune import find_table, read_accuracy, tune_table

    release, wanted, share = load(file, period), read_accuracy(accuracy), typed_number("largest-share", largest_share)
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
    weight: Annotated[
        float, typer.Option(help="Sampling weight of the contributors: what `weight_relief` leaves, and its risk.")
    ] = 1.0,
    sampling_error: Annotated[
        float, typer.Option(help="Relative standard error of the total: what `sampling_relief` leaves, and its risk.")
    ] = 0.0,
    chart: Annotated[Path | None, typer.Option(help="Draw risk against loss to this SVG or HTML file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what magnitudes reveal and cost for a cell of a given shape, and find those that cost least.

    Beside them stand the magnitudes that `by_shape` gives such a cell, with their risk; and with --weight or
    --sampling-error, what is left of magnitudes under `weight_relief` and `sampling_relief`.

    It is computed from the method alone, for attackers who know the weights; no data are read.
    """
    from sfumato.cli.tune_summaries import contributors_summary
    from sfumato.statistics.totals.perturbation import Shape, read_numbers
    from sfumato.statistics.totals.tune import TOP, Question, attacks_with, tune_contributors, write_chart

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
        weight=weight,
        sampling_error=sampling_error,
    )
    answer = tune_contributors(question, given)
    drawn = None if chart is None else write_chart(answer, chart)
    show(contributors_summary(answer, drawn), as_json)


@tune_app.command()
def report(
    file: ReleaseFile,
    period: PeriodOption = None,
    threshold: Annotated[str, typer.Option(help="How far a cell may be off, as a share of its true value.")] = "0.1",
    share: Annotated[str, typer.Option(help="The share of cells that are to be within the threshold.")] = "0.9",
    people: Annotated[
        str, typer.Option(help="Assumed people of a cell, or several sizes such as `30,100,300`.")
    ] = "100",
    mean: Annotated[
        str | None, typer.Option(help="Assumed mean of a cell; a tenth of the measure's range when not given.")
    ] = None,
    cells: Annotated[
        Path | None, typer.Option(help="CSV file of public cells, with columns `people` and perhaps `mean`.")
    ] = None,
    each_period: Annotated[
        bool,
        typer.Option(
            "--each-period",
            help="Meet the target in every period by itself, each with an epsilon of its own; cells must say their "
            "period: a column of --cells with its name, or the true cells.",
        ),
    ] = False,
    from_confidential_data: Annotated[
        bool, typer.Option("--from-confidential-data", help="Use the true cells: what is found is then confidential.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest epsilon that gives an employee report a stated accuracy, for counts and for means.

    It is found from cells that are assumed or declared, which are printed; no data are read unless that is told.
    """
    from sfumato.checking import check, checked
    from sfumato.cli.tune_summaries import report_summary
    from sfumato.release import load
    from sfumato.statistics.people.tune import (
        Target,
        assumed_cells,
        assumed_mean,
        declared_cells,
        reported,
        true_cells,
        tune_report,
    )

    release, target = (
        load(file, period),
        Target(threshold=typed_number("threshold", threshold), share=typed_number("share", share)),
    )
    tables = reported(check(release, data=False).plan)
    period = release.records.records.period
    usual = assumed_mean(tables) if mean is None else typed_number("mean", mean)
    if from_confidential_data:
        with checked(release, everything=True) as ready:
            found = true_cells(ready.count, tables, period)
    elif cells is not None:
        found = declared_cells(cells, usual, period)
    else:
        found = assumed_cells([_whole("people", size) for size in people.split(",")], usual)
    show(report_summary(tune_report(release, tables, target, found, by_period=each_period)), as_json)


@tune_app.command()
def tails(
    file: ReleaseFile,
    period: PeriodOption = None,
    found: Annotated[str, typer.Option(help="The share of the groups in a tail that readers are to find.")] = "0.8",
    tail: Annotated[
        str, typer.Option(help="The share of groups in each tail: 0.1 is the bottom and the top tenth.")
    ] = "0.1",
    least: Annotated[int, typer.Option(help="Groups of fewer people take no part.")] = 10,
    table: Annotated[str | None, typer.Option(help="The table; not needed where there is only one.")] = None,
    from_confidential_data: Annotated[
        bool, typer.Option("--from-confidential-data", help="Needed: tails are those of the true groups.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest epsilon at which readers find the groups with the lowest and the highest values.

    Noise is drawn over the true groups of a table of predictions or means, and nothing is charged or published. What is
    found is confidential: it depends on the data, beside what hiding small groups would leave of the same tails.
    """
    from sfumato.checking import check, checked
    from sfumato.cli.tune_summaries import tails_summary
    from sfumato.errors import SfumatoError
    from sfumato.release import load
    from sfumato.statistics.people.tune_tails import tailed, tune_tails

    release = load(file, period)
    planned = tailed(check(release, data=False).plan, table)
    wanted, share = typed_number("found", found), typed_number("tail", tail)
    if not from_confidential_data:
        raise SfumatoError(
            "--from-confidential-data",
            expected="that the true groups may be looked at: who is in a tail is known from them alone",
            found="no such option",
            do="add --from-confidential-data, and keep what it prints to yourself",
        )
    with checked(release, everything=True) as ready:
        counted = ready.count({planned.name: planned})[planned.name]
    show(tails_summary(tune_tails(planned, counted, wanted=wanted, tail=share, least=least)), as_json)


@tune_app.command()
def thresholds(
    file: ReleaseFile,
    period: PeriodOption = None,
    table: Annotated[str | None, typer.Option(help="The table; not needed where only one is sparse.")] = None,
    largest: Annotated[str, typer.Option(help="Workers of the largest establishment.")] = "1,10,50,100,500,1000,10000",
    epsilon: Annotated[
        str | None, typer.Option(help="Epsilons of the table; some usual ones when not given, and the release's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show from which value on a sparse table, such as one of home and work, lists a cell.

    The threshold follows the largest establishment of the place of work; no data are read.
    """
    from sfumato.checking import check
    from sfumato.cli.tune_summaries import thresholds_summary
    from sfumato.release import load
    from sfumato.statistics.jobs.tune_thresholds import tune_thresholds

    sizes = [_whole("largest", size) for size in largest.split(",")]
    epsilons = [typed_number("epsilon", part) for part in epsilon.split(",")] if epsilon else []
    plan = check(load(file, period), data=False).plan
    show(thresholds_summary(tune_thresholds(plan, table, largest=sizes, epsilons=epsilons)), as_json)


@tune_app.command()
def percentiles(
    file: ReleaseFile,
    period: PeriodOption = None,
    table: Annotated[str | None, typer.Option(help="The table; not needed where there is only one.")] = None,
    people: Annotated[str, typer.Option(help="Sizes of cells.")] = "30,50,100,300,1000,3000",
    epsilon: Annotated[
        str | None, typer.Option(help="Epsilons of a cell; some usual ones when not given, and the release's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the expected error of percentiles by size of the cell and epsilon, and which curve has the least.

    It is computed from the bins of the release file; no data are read.
    """
    from sfumato.checking import check
    from sfumato.cli.tune_summaries import percentiles_summary
    from sfumato.release import load
    from sfumato.statistics.people.tune import tune_percentiles

    sizes = [_whole("people", size) for size in people.split(",")]
    epsilons = [typed_number("epsilon", part) for part in epsilon.split(",")] if epsilon else []
    show(
        percentiles_summary(
            tune_percentiles(check(load(file, period), data=False).plan, table, people=sizes, epsilons=epsilons)
        ),
        as_json,
    )


@tune_app.command()
def cube(
    file: ReleaseFile,
    accuracy: Annotated[
        str,
        typer.Option(
            help="Such as `90% of cells of at least 100 records within 10%`, or `mean error below 5 records`."
        ),
    ],
    period: PeriodOption = None,
    cube: Annotated[str | None, typer.Option(help="The cube; not needed where there is only one.")] = None,
    dimensions: Annotated[int, typer.Option(help="The tables that are meant: those with so many dimensions.")] = 2,
    delta: Annotated[
        str | None, typer.Option(help="What all caps together may leave to chance; as in the file when not given.")
    ] = None,
    from_confidential_data: Annotated[
        bool, typer.Option("--from-confidential-data", help="Use the true cells: what is found is then confidential.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest epsilon and cap that give the tables of a cube a stated accuracy.

    Controls and levels of the release file keep their share of epsilon. Weighted counts have the same accuracy where
    records have the average weight. It is worked out from the parameters; no data are read unless that is told.
    """
    from sfumato.checking import check, checked
    from sfumato.cli.tune_summaries import tuned_cube_summary
    from sfumato.release import load
    from sfumato.statistics.cube.tune import find_cube, tune_cube
    from sfumato.statistics.jobs.tune import read_accuracy

    release, wanted = load(file, period), read_accuracy(accuracy, "records")
    planned = find_cube(check(release, data=False).plan.cubes, cube)
    section = next(one for one in release.cubes if one.name == planned.name)
    counts = None
    if from_confidential_data:
        with checked(release, everything=True) as ready:
            ((_, (true, _sampling)),) = ready.tabulate({planned.name: planned})
            counts = true["count"]
    found = tune_cube(
        planned,
        section,
        accuracy=wanted,
        dimensions=dimensions,
        delta=planned.method.spends().delta if delta is None else typed_number("delta", delta),
        counts=counts,
    )
    show(tuned_cube_summary(found), as_json)


def _whole(name: str, text: str) -> int:
    """A whole number that was typed after an option."""
    from sfumato.errors import SfumatoError

    value = typed_number(name, text.strip())
    if value.denominator != 1:
        raise SfumatoError(f"--{name}", expected="whole numbers such as 30,100", found=text, do="correct the number")
    return int(value)
