"""Whether a table of units fits its records: measures, attributes, weights and what is public."""

from typing import cast

from sfumato.errors import ReleaseError
from sfumato.frame.records import Microdata
from sfumato.statistics.table import Table
from sfumato.statistics.units.pareto import NEGATIVES, POSITIVE

TAKEN = (POSITIVE, NEGATIVES, "total", "records")
"""Columns of such tables; an attribute cannot have one of these names."""


def floor_of(table: Table, data: Microdata) -> int:
    """The floor of the measure, or why there can be no total of it."""
    name = cast(str, table.measure)
    measure, where = data.measures[name], f"table '{table.name}', measure '{name}'"
    if measure.floor is None:
        raise ReleaseError(
            where,
            expected="a floor: the amount up to which a unit is hidden whole, known without the data",
            found="none",
            do=f"write {name} = {{ floor = 10000 }}, say, under [data.measures]: an amount that small businesses have",
        )
    if measure.outside == "clip":
        raise ReleaseError(
            where,
            expected="a measure whose values are added up as they are",
            found='outside = "clip", which predictions, means and percentiles of people know',
            do="leave `outside` out: nothing has to be cut",
        )
    return measure.floor


def refuse_unfit(table: Table, data: Microdata) -> None:
    """Refuse what the guarantee for units does not cover, each with what to do instead."""
    of, named = data.records, f"table '{table.name}'"
    hidden = [one for one in (*table.by, *table.where) if not data.is_public(one) and one != of.period]
    told = {data.column_of(name) for name, measure in data.measures.items() if measure.floor is not None}
    made = [one for one in (*table.by, *table.where) if data.column_of(one) in told]
    taken = [one for one in (*table.by, *table.where) if one in TAKEN]
    larger = " and ".join(of.levels)
    unknown = [
        (bool(of.levels), f"larger units, `levels` of {larger}, of which everyone knows which records they have"),
        (of.period in table.by, f"a table by '{of.period}', of which everyone knows in which periods a unit is"),
        (of.weight is not None, "weights that everyone knows, as those of a design"),
        (table.statistic == "mean", "a mean, over a number of records that everyone knows"),
    ]
    needs_public = [words for asked, words in unknown if asked] if not of.public else []
    wrong = (
        (
            made,
            "attributes that do not follow from what is protected: a unit whose value passes from one class to another "
            "would move two cells by all it has",
            f"'{made[0] if made else ''}', which is made of a measure with a floor",
            "leave it out; a class of size that everyone knows is a column of its own, from another source",
        ),
        (
            hidden,
            "attributes that everyone knows of units: a unit with another code would move two cells by all it has",
            f"'{hidden[0] if hidden else ''}', which is not in `public`",
            'of people write method = "laplace", whose attributes are confidential; of businesses list it in `public` '
            "under [data] if everyone knows it, or leave it out",
        ),
        (
            table.totals,
            "a table without totals of its rows and columns, in which every unit is in several cells",
            "totals = true",
            "leave it out, and publish tables by fewer attributes, each with an epsilon of its own",
        ),
        (
            of.consent,
            "units that are all protected",
            "`consent` in [data.records]",
            "leave it out: a guarantee is for all units; or use top-contributors, which knows it",
        ),
        (
            needs_public,
            f"{needs_public[0] if needs_public else ''}: public = true in [data.records]",
            "public = false",
            "write public = true if everyone may know which units have a record, and its weight; otherwise publish "
            "totals of records as they are, or use top-contributors",
        ),
        (
            taken,
            f"attributes with other names than {', '.join(TAKEN)}, which are columns of such tables",
            f"'{taken[0] if taken else ''}'",
            "rename the attribute, and say where it is with `column`",
        ),
        (
            table.unknown_errors == "published",
            "nothing of it: all values have an error",
            'unknown_errors = "published"',
            "leave it out",
        ),
    )
    for is_wrong, expected, found, do in wrong:
        if is_wrong:
            raise ReleaseError(named, expected=expected, found=found, do=do)
