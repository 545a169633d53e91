"""Which records a table of people may be about, and how they count: once each, or with a bounded weight."""

from sfumato.errors import ReleaseError
from sfumato.frame.records import Microdata, UnitLimit
from sfumato.statistics.fitting import need_one_period
from sfumato.statistics.people.question import SUMMED, Weight
from sfumato.statistics.registry import METHODS, for_people, options_of
from sfumato.statistics.table import Table

LARGEST_WEIGHT, WEIGHTS_ABOVE = "largest_weight", "weights_above"


def hides_units(table: Table) -> bool:
    """Whether a table hides all records of a unit together."""
    return table.protect.options.get("protects") == "unit"


def weight_of(table: Table, data: Microdata) -> Weight | None:
    """How the records of a table count: with their weights, up to a largest one that the release states."""
    column, largest = data.records.weight, table.protect.options.get(LARGEST_WEIGHT)
    if column is None or not isinstance(largest, int) or largest < 1:
        return None  # a bound that is none is refused where the method is built
    clips = table.protect.options.get(WEIGHTS_ABOVE) == "clip"
    if table.statistic in SUMMED:
        return Weight.of_values(column=column, largest=largest, clips=clips)
    return Weight(column=column, largest=largest, clips=clips)


def _need_weights(table: Table, data: Microdata, method: str) -> None:
    """Refuse weights that a method knows nothing of or that have no bound, and a bound where there are no weights."""
    stated, weight = table.protect.options.get(LARGEST_WEIGHT) is not None, data.records.weight
    known = LARGEST_WEIGHT in options_of(method)
    for option in (LARGEST_WEIGHT, WEIGHTS_ABOVE):
        if weight is None and option in table.protect.options:
            raise ReleaseError(
                f"table '{table.name}', {option}",
                expected="records with a `weight`: without one every record counts once",
                found="no `weight` in [data.records]",
                do=f"leave out `{option}`, or name the weight",
            )
    if weight is None or (stated and known):
        return
    if known:
        raise ReleaseError(
            f"table '{table.name}', method '{table.protect.method}'",
            expected=f"a `{LARGEST_WEIGHT}`: the noise of a weighted statistic hides a record of that weight",
            found=f"the weight '{weight}' in [data.records], and no `{LARGEST_WEIGHT}`",
            do="state it in `protect`, and under [live] for questions to a server"
            + (", or use the method top-contributors" if table.statistic in ("count", "mean") else ""),
        )
    others = [name for name, used in for_people(table.statistic).items() if LARGEST_WEIGHT in options_of(used)]
    raise ReleaseError(
        f"table '{table.name}', method '{table.protect.method}'",
        expected="records that count once each: "
        + getattr(METHODS[method], "why_unweighted", "what one record changes is known of people without weights only"),
        found=f"the weight '{weight}' in [data.records]",
        do=f"use {' or '.join(others)} with a `{LARGEST_WEIGHT}`, or leave out the weight",
    )


def limit_of(table: Table, data: Microdata) -> UnitLimit | None:
    """The most records of a unit that a table counts, where it hides whole units."""
    most = table.protect.options.get("most_records")
    if not hides_units(table) or not isinstance(most, int):
        return None  # what is missing is refused where the method is built
    if data.records.period is not None:
        raise ReleaseError(
            f"table '{table.name}', protects",
            expected="records without a `period`: a limit is about all records of a unit",
            found=f"the period '{data.records.period}' in [data.records]",
            do='leave out protects = "unit", or count the records of one period from a file of its own',
        )
    return data.unit_limit(most)


def need_people(table: Table, data: Microdata, method: str) -> None:
    """Refuse records that are not one a person and period, or a table that adds up several periods of a person."""
    data.need_single_records(
        f"table '{table.name}', method '{table.protect.method}'",
        instead='use the method top-contributors, or write protects = "unit"'
        if table.statistic == "count"
        else "use the method top-contributors",
        but=["levels"]
        if (data.records.weight is not None and table.statistic == "count") or hides_units(table)
        else [],
    )
    _need_weights(table, data, method)
    if table.totals:
        raise ReleaseError(
            f"table '{table.name}', totals",
            expected="a table without totals: each would be one more statistic about every person",
            found="totals = true",
            do="ask for the total as a table of its own",
        )
    need_one_period(table, data, "a person has a record in each")
