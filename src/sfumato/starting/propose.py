"""Propose what tables are: jobs, a register, a panel, businesses or people; and their keys and links."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.errors import DataError, UsageError
from sfumato.starting.dates import UNCLEAR
from sfumato.starting.describe import attributes_of, measures_of
from sfumato.starting.lists import apart
from sfumato.starting.look import Looked
from sfumato.starting.names import (
    AREA,
    COUNTING,
    EARNINGS,
    FACTOR,
    HEADCOUNT,
    PERSONAL,
    SEXES,
    TIME,
    WEIGHT,
    WORKER,
    WORKPLACE,
    names_one,
    near_ones,
    speaks_of,
    words,
)
from sfumato.starting.periods import refuse_one_table
from sfumato.starting.proposal import Kind, Proposal, Wishes

_ONE_TABLE: dict[Kind, str] = {"people": "people", "businesses": "businesses", "register": "establishments"}
"""What there is one table of."""


def propose(looked: Sequence[Looked], wishes: Wishes) -> Proposal:
    """What some tables are, by what is said, their names, and what is unique in them."""
    tables, lists = apart(looked)
    named = {column: str(table.path) for column, table in lists.items()}
    wishes = replace(wishes, codelists={**named, **wishes.codelists})
    found = _several(tables, wishes) if len(tables) > 1 else _one(tables[0], wishes)
    undecided = [
        f"Some rows have no '{one.name}', and a check refuses them: decide in the release file what they are"
        for one in found.attributes
        if one.usable and one.undecided
    ]
    odd = [
        f"{table.path.name}: '{column.name}' {column.unreadable}"
        for role, table in found.tables.items()
        for column in table.columns.values()
        if role != "records" and column.is_nearly_number and not column.is_key
    ]
    named = {column: table.path.name for column, table in lists.items()}
    return replace(found, lists=named, doubts=(*found.doubts, *undecided, *odd))


# Several tables: jobs, and the workplaces and workers that they lead to.


def _several(looked: Sequence[Looked], wishes: Wishes) -> Proposal:
    refuse_one_table(looked)
    if wishes.kind not in (None, "jobs", "panel"):
        raise UsageError(
            f"--kind {wishes.kind}",
            expected=f"one table with all that is known of {_ONE_TABLE[wishes.kind]}",
            found=f"several: {', '.join(one.path.name for one in looked)}",
            do="give its file alone, with the columns of the others joined to it where they are needed; or choose "
            "--kind jobs, if workers and workplaces are counted",
        )
    links = {
        (one.name, other.name): found
        for one in looked
        for other in looked
        if one is not other and (found := _link(one, other)) is not None
    }
    told = {"jobs": wishes.jobs, "workplaces": wishes.workplaces, "workers": wishes.workers}
    named = {role: _named(looked, file) for role, file in told.items() if file is not None}
    leading = sorted(looked, key=lambda one: -sum(1 for start, _ in links if start == one.name))
    jobs = named.get("jobs") or leading[0]
    _refuse_unknown(jobs, wishes)
    others = [one for one in looked if one is not jobs]
    for other in others:
        if (jobs.name, other.name) not in links:
            raise DataError(
                f"{jobs.path.name} and {other.path.name}",
                expected="a column of the first whose values are keys of the second, which name each row once",
                found="none",
                do="give the files that belong together; --jobs FILE says which has the jobs; one table of records is "
                f"given alone; a list of codes is named with its attribute: --codelist ATTRIBUTE={other.path.name}",
            )
    roles = _roles(jobs, others, links, named)
    tables, keys, measured = {"jobs": jobs}, {}, []
    for role, one in roles.items():
        column, key, missing = links[jobs.name, one.name]
        tables[role] = one
        keys[role.removesuffix("s")], keys[f"{role} key"] = column, key
        lost = "all are there" if not missing else f"{missing:,} are not there"
        measured.append(f"{jobs.path.name}: {column} leads to {one.path.name}: {key}; {lost}")
    if "workplace" not in keys:
        keys["workplace"] = _said_or(wishes.workplace, _column(jobs, WORKPLACE, keys.values()), "workplace", jobs)
    worker = wishes.worker or _column(jobs, WORKER, keys.values())
    if "worker" not in keys and worker:
        keys["worker"] = worker
    return _jobs(tables, keys, measured, wishes)


def _jobs(tables: dict[str, Looked], keys: dict[str, str], links: Sequence[str], wishes: Wishes) -> Proposal:
    """Jobs, of one period or of several."""
    jobs = tables["jobs"]
    period = wishes.period or next(iter(_periods(jobs)), None)
    if wishes.period:
        _refuse_unclear(jobs, wishes.period)
    earnings = wishes.earnings or _column(jobs, EARNINGS, keys.values())
    is_panel = (
        period is not None
        and earnings is not None
        and jobs.columns[earnings].is_number
        and jobs.columns[period].period in ("year", "quarter")
        and {"worker", "workplace"} <= keys.keys()
        and "workplaces" in tables
        and not jobs.names_each(keys["worker"], keys["workplace"])
        and jobs.names_each(keys["worker"], keys["workplace"], period)
    )
    kind: Kind = wishes.kind or ("panel" if is_panel else "jobs")
    if is_panel and kind == "panel" and not jobs.columns[str(earnings)].is_whole:
        raise DataError(
            f"{jobs.path.name}: {earnings}",
            expected="earnings of a panel in whole numbers of their smallest unit, such as cents",
            found="numbers with decimals",
            do="multiply them by 100 in the file, or in the query of a database, and give that one: `factor` is for "
            "measures and changes no earnings of a panel; or give one period with --kind jobs",
        )
    if kind == "panel":
        if not is_panel:
            raise DataError(
                "panel",
                expected="a table of workplaces, and jobs with a worker, a workplace and a quarter or year that name "
                "each row once, and earnings in whole numbers",
                found=", ".join(f"{name} = {column}" for name, column in {**keys, "period": period}.items()),
                do="name them with --worker, --workplace, --period and --earnings, or choose --kind jobs or people",
            )
        keys |= {"period": str(period), "earnings": str(earnings)}
    elif "worker" in keys and not jobs.names_each(keys["worker"], keys["workplace"]):
        raise DataError(
            jobs.path.name,
            expected="one row for each worker at a workplace",
            found="repeated rows" + (f", and '{period}', which may be the period of a panel" if period else ""),
            do="give one period, or a panel with its workplaces and --earnings; or --kind people --unit worker",
        )
    found = Proposal(
        kind=kind,
        tables=tables,
        keys=keys,
        links=links,
        attributes=(),
        measures=(),
        periods=tuple(jobs.periods(str(period))) if kind == "panel" else (),
        doubts=(*_ignored_weight(jobs, kind), *_many_periods(jobs, kind, period)),
        wishes=wishes,
    )
    return replace(found, attributes=attributes_of(found))


def _many_periods(jobs: Looked, kind: Kind, period: str | None) -> list[str]:
    """What is doubtful about jobs of several periods that are counted as if they were of one."""
    if kind == "panel" or period is None or jobs.columns[period].different < 2:
        return []
    return [
        f"'{period}' has several periods, and every row is counted as a job: give the rows of one period, or name what "
        "makes a panel: --worker, --workplace, --period and --earnings"
    ]


def _link(one: Looked, other: Looked) -> tuple[str, str, int] | None:
    """The column of a table that leads to the key of another: all its values are there, or nearly all."""
    likely: list[tuple[int, str, str]] = []
    for key in (name for name, column in other.columns.items() if column.is_key and column.may_name):
        for name, column in one.columns.items():
            shared = words(name) & words(key) & {*WORKER, *WORKPLACE}
            unlike = 0 if name.casefold() == key.casefold() else 1 if shared else 2
            if column.may_name and column.different > 1 and (unlike < 2 or not (column.is_code or column.is_key)):
                likely.append((unlike, name, key))
    for _, name, key in sorted(likely):  # numbers of any kind may happen to be keys: names go first
        missing = one.missing_from(name, other, key)
        if missing <= one.columns[name].different // 20:
            return name, key, missing
    return None


def _roles(
    jobs: Looked, others: Sequence[Looked], links: Mapping[tuple[str, str], Any], named: Mapping[str, Looked]
) -> dict[str, Looked]:
    """Which table has the workplaces, and which the workers."""
    if len(others) > 2:
        raise UsageError(
            "files", expected="at most jobs, workplaces and workers", found=f"{len(others) + 1} files", do="give three"
        )
    roles = {role: one for role, one in named.items() if role != "jobs"}
    for one in sorted(others, key=lambda one: one.rows):
        if one in roles.values():
            continue
        key = links[jobs.name, one.name][1]
        told = " ".join((one.name, key))
        likely = "workers" if speaks_of(told.replace("workplaces", ""), {*WORKER, "workers"}) else "workplaces"
        if speaks_of(told, {*WORKPLACE, "workplaces", "employers", "firms", "businesses"}):
            likely = "workplaces"
        role = likely if likely not in roles else "workers" if likely == "workplaces" else "workplaces"
        roles[role] = one
    return roles


def _named(looked: Sequence[Looked], told: str) -> Looked:
    for one in looked:
        if told in (str(one.path), one.path.name, one.name):
            return one
    raise UsageError(
        told, expected="one of the files that were given", found="another", do="give it among the files too"
    )


# One table.


def _one(table: Looked, wishes: Wishes) -> Proposal:
    _refuse_unknown(table, wishes)
    if wishes.kind == "panel":
        raise DataError(
            table.path.name,
            expected="the jobs of a panel in one table, and its workplaces in another",
            found="one table",
            do="give the file with the workplaces too, one row for each; or choose --kind people or businesses",
        )
    keys = {
        role: column
        for role, known in (("worker", WORKER), ("workplace", WORKPLACE))
        if (column := getattr(wishes, role) or _column(table, known, (), naming=True))
    }
    unit = wishes.unit or _unit(table)
    both = wishes.kind in (None, "jobs") and {"worker", "workplace"} <= keys.keys() and wishes.unit is None
    at_work = both and not table.columns[keys["workplace"]].is_key
    if both and (wishes.kind == "jobs" or (at_work and table.names_each(keys["worker"], keys["workplace"]))):
        return _jobs({"jobs": table}, keys, (), wishes)
    counting, taken = _headcounts(table)
    employees = wishes.employees or tuple(taken)
    weight = wishes.weight or _weight(table)
    if unit is None or (wishes.unit is not None and not table.columns[unit].is_key):
        return _over_time(table, keys, wishes, weight)
    if wishes.kind is None and wishes.unit is None and names_one(unit, AREA):
        raise DataError(
            table.path.name,
            expected="a row for each establishment, business or person",
            found=f"one for each area, which '{unit}' names, as in a table of counts",
            do="give the records that were counted; or say what a row is to stand for: --kind register --employees "
            "COLUMN, or --kind businesses",
        )
    guessed, doubts = _kind(table, unit, weight, employees)
    kind = wishes.kind or guessed
    if kind == "register":
        if not employees:
            raise DataError(
                table.path.name,
                expected="a column with the number of workers of each establishment",
                found="none that its name tells",
                do="name it: --employees COLUMN, or several: --employees women,men",
            )
        found = _with_attributes(kind, "jobs", table, {"workplace": unit}, wishes=wishes, employees=employees)
        left = tuple(name for name in counting if name not in employees)
        return replace(found, left_out=left, doubts=tuple(_ignored_weight(table, kind)))
    keys = {"unit": unit} | ({"weight": weight} if weight else {})
    found = _with_attributes(kind, "records", table, keys, wishes=wishes)
    said = doubts if wishes.kind is None else ()
    return replace(found, doubts=(*said, *(() if weight else _ignored_weight(table, kind))))


def _kind(table: Looked, unit: str, weight: str | None, employees: Sequence[str]) -> tuple[Kind, tuple[str, ...]]:
    """People, businesses, or a register, where each row is one unit; and what is doubtful about that."""
    named = table.columns[unit].told
    if speaks_of(named, WORKPLACE):
        return "register" if employees and not weight else "businesses", ()
    if speaks_of(named, WORKER) or _is_personal(table):
        return "people", ()
    if employees and not weight:
        return "register", ()
    kind: Kind = "people" if weight else "businesses"
    return kind, (_unsure(unit, kind),)


def _unsure(unit: str, kind: Kind) -> str:
    other = "people" if kind == "businesses" else "businesses"
    return f"Nothing tells whether '{unit}' names businesses or people: taken for {kind}; --kind {other} says otherwise"


def _is_personal(table: Looked) -> bool:
    return any(speaks_of(column.told, PERSONAL) for column in table.columns.values())


def _weight(table: Looked) -> str | None:
    """The column with the weights, by its name, or by its label where no name tells."""
    labelled = (name for name, one in table.columns.items() if one.is_number and speaks_of(one.label, WEIGHT))
    return _column(table, WEIGHT, (), number=True) or next(labelled, None)


def _ignored_weight(table: Looked, kind: Kind) -> list[str]:
    """What looks like a weight and is not taken for one, in words."""
    taken = kind in ("people", "businesses")
    named = [_weight(table)] if not taken else []
    named += [
        name
        for name, column in table.columns.items()
        if column.is_number and not column.is_whole and (column.least or 0) > 0 and speaks_of(column.told, FACTOR)
    ]
    do = "say so with --weight" if taken else "only people and businesses have weights: --kind says so"
    return [f"'{name}' looks like a weight and is not used: {do}" for name in named if name]


def may_weigh(proposal: Proposal) -> list[str]:
    """Columns of records that may be weights, whatever they are called: above 0 in every row, and with decimals."""
    columns = proposal.tables["records"].columns.items()
    numbers = [(name, one) for name, one in columns if one.is_number and not one.is_whole and one.filled == one.rows]
    return [name for name, one in numbers if (one.least or 0) > 0 and name not in proposal.keys.values()]


def _periods(table: Looked) -> list[str]:
    """Columns with periods: those whose names say so first, and dates last."""
    found = [name for name, column in table.columns.items() if column.period]
    return sorted(found, key=lambda name: (not speaks_of(name, TIME), table.columns[name].is_dated))


def _over_time(table: Looked, keys: Mapping[str, str], wishes: Wishes, weight: str | None) -> Proposal:
    """Records of units in several periods."""
    named = [name for name, column in table.columns.items() if column.may_name]
    units = [wishes.unit] if wishes.unit else [*keys.values(), *named]
    spoken = [name for name in named if speaks_of(name, TIME) and table.columns[name].is_code]
    times = [wishes.period] if wishes.period else [*_periods(table), *spoken]
    for unit, when in ((unit, when) for unit in units for when in times):
        if unit != when and table.names_each(unit, when):
            _refuse_unclear(table, when)
            person = unit == keys.get("worker") or _is_personal(table)
            kind: Kind = wishes.kind or ("people" if person else "businesses")
            found = {"unit": unit, "period": when} | ({"weight": weight} if weight else {})
            proposal = _with_attributes(kind, "records", table, found, wishes=wishes)
            known = person or wishes.kind is not None or speaks_of(table.columns[unit].told, WORKPLACE)
            doubts = () if known else (_unsure(unit, kind),)
            return replace(proposal, doubts=(*doubts, *(() if weight else _ignored_weight(table, kind))))
    if wishes.unit is not None:
        raise _repeats(table, wishes.unit, wishes.period)
    pairs = [name for name in named if table.columns[name].is_code or not table.columns[name].is_number]
    cells = len(pairs) > 1 and table.names_each(*pairs[:4])
    raise DataError(
        table.path.name,
        expected="a column, or a unit and a period, that name each row once: the establishment, business or person",
        found="none" + (f"; {', '.join(pairs[:4])} do together, as in a table of counts" if cells else ""),
        do="add such a column to the file, or name it: --unit COLUMN",
    )


def _refuse_unclear(table: Looked, period: str) -> None:
    """Refuse periods that are dates of which nothing tells the day from the month: they would be in no order."""
    if table.columns[period].dates == UNCLEAR:
        raise DataError(
            f"{table.path.name}: {period}",
            expected="dates of which can be told what is the day and what the month",
            found="dates that may be read in several ways",
            do="say how 31 March 2026 would be written there: --dates 03/31/2026 or --dates 31/03/2026",
        )


def _repeats(table: Looked, unit: str, period: str | None) -> DataError:
    """Why a column that somebody named cannot be the unit."""
    named = f"--unit '{unit}'" + (f" with --period '{period}'" if period else "")
    column = table.columns[unit]
    if not column.may_name:
        found = "empty in some rows" if column.filled < column.rows else "numbers with decimals"
    else:
        found = "several rows that have the same" + (" in a period" if period else "")
    further = "" if period else ", or with --period the column that tells the rows of a unit apart"
    return DataError(
        f"{table.path.name}: {named}",
        expected="what names each row once: the establishment, business or person of a record",
        found=found,
        do=f"name another column{further}; join columns that name a row only together, such as household and person",
    )


def _refuse_unknown(table: Looked, wishes: Wishes) -> None:
    """Refuse options that name columns which are not there."""
    single = ("worker", "workplace", "unit", "period", "weight", "earnings")
    told = [(option, name) for option in single if (name := getattr(wishes, option)) is not None]
    for option, name in [*told, *(("employees", name) for name in wishes.employees or ())]:
        if name not in table.columns:
            raise UsageError(
                f"--{option} '{name}'",
                expected=f"a column of {table.path.name}: {', '.join(table.columns)}",
                found="no such column",
                do=near_ones(name, table.columns),
            )


def _with_attributes(
    kind: Kind,
    role: str,
    table: Looked,
    keys: Mapping[str, str],
    *,
    wishes: Wishes,
    employees: tuple[str, ...] = (),
) -> Proposal:
    period = keys.get("period")
    found = Proposal(
        kind=kind,
        tables={role: table},
        keys=keys,
        links=(),
        attributes=(),
        measures=(),
        employees=employees,
        periods=wishes.periods or (tuple(table.periods(period)) if period and kind == "businesses" else ()),
        wishes=wishes,
    )
    found = replace(found, attributes=attributes_of(found))
    return replace(found, measures=measures_of(found) if role == "records" else ())


def _unit(table: Looked) -> str | None:
    """The column that names each row: one whose name says so, or else the first."""
    counts = {*HEADCOUNT, *EARNINGS, *WEIGHT} - WORKER  # that may happen to be different in all rows
    named = [
        name
        for name, column in table.columns.items()
        if column.is_key and column.may_name and not speaks_of(name, counts)
    ]
    likely = [name for name in named if speaks_of(name, {*WORKER, *WORKPLACE, "id", "key", "number", "nr", "unit"})]
    return next(iter([*likely, *named]), None)


def _headcounts(table: Looked) -> tuple[list[str], list[str]]:
    """Columns that count workers by their names, and which of them to add up.

    Women and men, or all workers where one column says no more than that; or else all of them, for somebody to choose.
    """
    named = [
        name
        for name, column in table.columns.items()
        if column.is_whole and not column.is_key and (column.least or 0) >= 0
    ]
    counting = [name for name in named if speaks_of(name, {*HEADCOUNT, *SEXES})]
    by_sex = [name for name in counting if is_of_a_sex(name)]
    everybody = [name for name in counting if speaks_of(name, HEADCOUNT) and names_one(name, {*HEADCOUNT, *COUNTING})]
    spoken = [name for name in counting if speaks_of(name, HEADCOUNT)]
    chosen = by_sex if len(by_sex) > 1 else everybody if len(everybody) == 1 else spoken
    return counting, chosen


def is_of_a_sex(name: str) -> bool:
    """Whether a column counts women or men, and no part of them."""
    return speaks_of(name, SEXES) and names_one(name, {*SEXES, *HEADCOUNT, *COUNTING})


def must_choose(proposal: Proposal) -> bool:
    """Whether several columns count workers, and nothing tells which of them to add up."""
    several = len(proposal.employees) > 1 and proposal.wishes.employees is None
    return several and not all(map(is_of_a_sex, proposal.employees))


def _column(
    table: Looked, known: frozenset[str], taken: Any, *, naming: bool = False, number: bool = False
) -> str | None:
    """The first column whose name has one of some words."""
    for name, column in table.columns.items():
        fits = column.is_number if number else column.may_name if naming else True
        if fits and name not in taken and (names_one if naming else speaks_of)(name, known):
            return name
    return None


def _said_or(said: str | None, guessed: str | None, role: str, table: Looked) -> str:
    found = said or guessed
    if found is None:
        raise DataError(
            table.path.name,
            expected=f"the column that names the {role}",
            found=f"the columns {', '.join(table.columns)}",
            do=f"name it: --{role} COLUMN",
        )
    return found
