"""Whether a table fits its data: its statistic, codes, measures, method and options."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.frame.data import Data, Frame
from sfumato.frame.records import Microdata
from sfumato.statistics.registry import for_people, is_for_people, is_free, needs
from sfumato.statistics.table import FOR_TOTALS, FOR_UNITS, STATISTICS, Table


def refuse_unknown_codes(table: Table, codes: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a filter by codes that an attribute does not have."""
    for name, kept in table.where.items():
        unknown = [code for code in kept if code not in codes[name]]
        if unknown or not kept:
            raise ReleaseError(
                f"table '{table.name}', where {name}",
                expected=f"codes of {name}, such as {', '.join(codes[name][:5])}",
                found=", ".join(unknown) or "none",
                do="correct the codes",
            )


def refuse_other_data(table: Table, frame: Frame) -> None:
    """Refuse a statistic that no method publishes of these jobs, before a method for it is looked for."""
    if table.of_records:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a table of records: records = { … } under [data]",
            found="jobs",
            do="count jobs, or describe the records under [data]",
        )
    if table.statistic in ("indicators", "flow") and frame.span is None:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a panel: jobs with worker, period, first, last and earnings",
            found="jobs without a period",
            do="describe the history under [data], or count jobs",
        )


def know_measures(table: Table, data: Microdata) -> None:
    """Refuse a statistic that records do not have, and measures that are not described."""
    if not table.of_records:
        raise ReleaseError(
            f"table '{table.name}'",
            expected='a total, a mean, a prediction, quantiles or count = "records": the data are records, not jobs',
            found=f"{table.statistic}",
            do='write total = "…", mean = "…", predict = { … }, quantiles = { … } or count = "records"',
        )
    if not table.establishments:
        raise ReleaseError(
            f"table '{table.name}', establishments",
            expected="nothing of it: the number of establishments is not published of records",
            found="establishments = false",
            do="leave it out",
        )
    know_each_measure(table, data)


def know_each_measure(table: Table, data: Data) -> None:
    """Refuse measures that are not described."""
    for name in table.measures:
        if name not in data.measures:
            close = get_close_matches(name, list(data.measures), n=1)
            raise ReleaseError(
                f"table '{table.name}', {table.statistic}",
                expected=f"a measure: {', '.join(data.measures) or 'none is described'}",
                found=f"'{name}'",
                do=f"did you mean '{close[0]}'?" if close else "describe it under [data.measures]",
            )


def classes_of(table: Table, data: Microdata) -> tuple[str, ...]:
    """The attributes of calibration classes, as the option `classes` of a method names them."""
    classes = table.protect.options.get("classes", ())
    classes = (classes,) if isinstance(classes, str) else classes
    if not isinstance(classes, list | tuple):
        classes = (classes,)
    for name in classes:
        if name not in data.attributes:
            close = get_close_matches(str(name), list(data.attributes), n=1)
            raise ReleaseError(
                f"table '{table.name}', classes",
                expected=f"attributes: {', '.join(data.attributes)}",
                found=f"'{name}'",
                do=f"did you mean '{close[0]}'?" if close else "describe it under [data.attributes]",
            )
    return tuple(dict.fromkeys(classes))


def methods_for_records(table: Table) -> dict[str, str]:
    """What a release file may name for a table of records, each with what is used."""
    people = for_people(table.statistic)
    keyed = FOR_TOTALS if table.statistic in ("count", "total", "mean") else FOR_TOTALS[:1] if table.growth else ()
    units = FOR_UNITS if table.statistic in ("total", "mean") else {}
    return {**{name: name for name in keyed}, **units, **people}


def need_one_period(table: Table, data: Any, words: str = "a unit has a record in each") -> None:
    """Refuse a table whose cells add up several periods of the same units."""
    period = data.records.period
    if period is not None and period not in table.by and len(table.where.get(period, ())) != 1:
        raise ReleaseError(
            f"table '{table.name}'",
            expected=f"'{period}' in `by`, or one '{period}' in `where`: {words}",
            found=f"by = {list(table.by)}",
            do=f"add '{period}' to `by`, or choose one with where",
        )


def named_method(table: Table, fitting: Mapping[str, str]) -> str:
    """The method that is used for what a release file names; one that is not for such tables is refused."""
    named = table.protect.method
    if named not in fitting:
        raise ReleaseError(
            f"table '{table.name}', method '{named}'",
            expected=f"{' or '.join(fitting)}, the {'method' if len(fitting) == 1 else 'methods'} for such tables",
            found=f"'{named}'",
            do=f'write protect = {{ method = "{_nearest(named, fitting)}" }}',
        )
    return fitting[named]


def _nearest(method: str, fitting: Iterable[str]) -> str:
    """The method most like the one that was named; for people, where one for people was named."""
    known = list(fitting)
    people = {name for statistic in STATISTICS for name in for_people(statistic)}
    if method in people:
        known = [name for name in known if name in people] or known
    return next(iter(get_close_matches(method, known, n=1)), known[0])


def used_options(table: Table, *elsewhere: str) -> dict[str, Any]:
    """The options of a method, without those that are used elsewhere."""
    return {option: value for option, value in table.protect.options.items() if option not in elsewhere}


def epsilon_of(table: Table, name: str, *, each: bool = False) -> Fraction | None:
    """What a table spends; a method without a guarantee takes neither alpha nor epsilon.

    `each` tells whether its periods may spend an epsilon of their own.
    """
    if is_free(name):
        for parameter in ("alpha", "epsilon"):
            value = getattr(table.protect, parameter)
            if value is not None:
                raise ReleaseError(
                    f"method '{table.protect.method}', {parameter}",
                    expected="neither alpha nor epsilon: it has no formal guarantee and costs no budget",
                    found=f"{parameter} = {float(value):g}",
                    do="leave it out",
                )
    if table.protect.by_period and not (each or is_for_people(name)):
        raise ReleaseError(
            f"table '{table.name}', epsilon",
            expected="one number: people, jobs, indicators and moves by period may spend an epsilon of its own in each",
            found="a table of epsilons",
            do="write one number",
        )
    return table.protect.epsilon


# What may not stand beside each other in one release.


def refuse_two_noises(tables: Sequence[Any]) -> None:
    """Records perturbed in two ways are disclosed: the same directions and sizes enter both."""
    noises = {table.noise: table.name for table in tables if table.noise}
    if len(noises) > 1:
        one, other = list(noises.values())[:2]
        raise ReleaseError(
            f"tables '{one}' and '{other}'",
            expected="one method with the same options in all tables of totals, but for what is withheld: two "
            "perturbations of the same cells, made of the same directions and sizes, can be solved for the truth",
            found="different ones",
            do="write the same method and options in every table",
        )


def refuse_beside_true_numbers(tables: Sequence[Any]) -> None:
    """True numbers are decided by one method, and tell the permanent factors of perturbed ones beside them."""
    true = [table for table in tables if table.decided_by() is not None]
    others = [table for table in tables if true and table.method.name != true[0].method.name]
    mixed = [table for table in others if table in true or table.key]
    if mixed:
        raise ReleaseError(
            f"tables '{true[0].name}' and '{mixed[0].name}'",
            expected="true numbers that are all protected by one method, and none with permanent factors beside them: "
            "readers who have both of one cell learn what either hides",
            found=f"{true[0].method.name} and {mixed[0].method.name}",
            do="publish all of them by one method",
        )


def refuse_telling_establishments(table: Table, method: str, data: Frame) -> None:
    """Refuse what would tell where there are establishments: a choice by their number, and codes read off them."""
    if "establishments" in needs(method):
        raise ReleaseError(
            f"table '{table.name}', method '{method}'",
            expected="a method that does not look at the number of establishments: establishments = false",
            found=f"'{method}', which chooses by it",
            do="use vector-pareto, log-box or smooth-box in all cells, or publish the number",
        )
    need_public_codes(f"table '{table.name}'", table.by, data)


def need_public_codes(named: str, attributes: Iterable[str], data: Frame) -> None:
    """Refuse attributes of workplaces whose codes would be read off them where establishments are not told."""
    for name in attributes:
        described = data.attributes.get(name)
        if data.is_public(name) and (described is None or not described.tells_codes):
            raise ReleaseError(
                f"{named}, {name}",
                expected="codes that are known without the data: establishments = false",
                found="codes that are read off the workplaces, which would tell that there is one with each of them",
                do=f"give the codes of {name} as `codes` or `codelist` under [data.attributes], or publish the number "
                "of establishments",
            )
