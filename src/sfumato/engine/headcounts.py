"""Registers with one row for each establishment and the number of its workers, in one column or in several.

Rows stand for as many jobs as they say, and are never written out: whatever counts jobs adds up these numbers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Protocol

import pyarrow as pa

from sfumato.cells import Dimension
from sfumato.engine.chunks import strides
from sfumato.engine.data_files import data_files
from sfumato.engine.faults import Range, Units, faults_of, is_finite, refuse_empty
from sfumato.engine.lacking import need
from sfumato.engine.memory import DataTotals
from sfumato.engine.query import Engine, Rows, is_number, texts, times, total
from sfumato.errors import DataError
from sfumato.frame.data import Data, Frame

_EMPLOYEES = "_employees"
"""The column of the jobs that says how many of them a row stands for."""
_NO_WHOLE = "no whole numbers"
_MOST = 1 << 31
"""Workers of one establishment, in one column."""


class _Tables(Protocol):
    """The tables of a frame on an open engine, as far as they matter here."""

    @property
    def engine(self) -> Engine: ...
    @property
    def jobs(self) -> Rows: ...
    @property
    def workplaces(self) -> Rows | None: ...
    @property
    def register(self) -> Rows | None: ...


def head_columns(data: Data) -> dict[str, str]:
    """The columns of a register that count workers, by the names under which our table of it has them."""
    return {f"_heads{place}": column for place, column in enumerate(data.headcounts().values())}


def jobs_of_register(frame: Frame, register: Rows) -> Rows:
    """The jobs of a register: rows that stand for jobs at a workplace, by an attribute of workers if there is one."""
    need(register, "jobs", frame.jobs.workplace)
    for name, column in head_columns(frame).items():
        need(register, "jobs", name, called=column)
        if not is_number(register.types[name]):
            raise DataError(
                f"jobs, column '{column}'",
                expected="numbers of workers",
                found=f"a column of type {register.types[name]}",
                do="correct `employees`, or store the numbers as whole numbers",
            )
    attributes, literal = frame.headcount_attributes(), register.engine.literal
    parts = [
        register.select(
            frame.jobs.workplace,
            **dict(zip(attributes, map(literal, codes), strict=True)),
            **{_EMPLOYEES: name},
        )
        for codes, name in zip(frame.headcounts(), head_columns(frame), strict=True)
    ]
    return reduce(Rows.union, parts)


def rows_with_jobs(frame: Frame, jobs: Rows) -> tuple[Rows, dict[str, str]]:
    """The rows that stand for at least one job, and the column that says for how many, where there is one."""
    if frame.jobs.employees is None:
        return jobs, {}
    return jobs.where(f"{_EMPLOYEES} > 0"), {_EMPLOYEES: _EMPLOYEES}


def jobs_by_establishment(frame: Frame, rows: Rows, names: Collection[str], **sums: str) -> Rows:
    """Count the jobs of every `_workplace` by some attributes of workers; a register has them counted by its own.

    Codes that nobody asks for may come in several rows. `sums` are added up beside the jobs, where each has a row.
    """
    by = ["_workplace", *names]
    if frame.jobs.employees is None:
        return rows.group(by, _jobs="count(*)", **sums)
    if set(names) == set(frame.headcount_attributes()):
        return rows.select(*by, _jobs=f"CAST({_EMPLOYEES} AS BIGINT)")  # one row has them
    return rows.group(by, _jobs=total(_EMPLOYEES))


def establishments_with_heads(frame: Frame, tables: _Tables, attributes: Iterable[str]) -> Rows:
    """Every establishment as `_workplace`, with the codes of some public attributes and its numbers of workers.

    One that is only in another table of workplaces has no numbers.
    """
    if tables.workplaces is None or frame.workplaces is None or tables.register is None:
        raise ValueError("only a register has headcounts, and it is a table of workplaces")
    q, heads, workplaces = tables.engine.q, head_columns(frame), tables.workplaces
    own = heads if frame.is_register else ()
    listed = workplaces.select(*own, _workplace=q(frame.workplaces.key), **texts(workplaces, attributes))
    if frame.is_register:
        return listed
    return listed.join(tables.register.select(*heads, _workplace=q(frame.jobs.workplace)), ["_workplace"], "left")


def workers_by_place(frame: Frame, inside: Sequence[Dimension], where: Mapping[str, Collection[str]]) -> dict[int, str]:
    """How many workers of chosen codes an establishment has in a worker cell, by the cell's place.

    A cell without any column of its own is left out, unless it is the only one.
    """
    attributes, steps = frame.headcount_attributes(), strides(inside)
    found: dict[int, list[str]] = {} if inside else {0: []}
    for codes, head in zip(frame.headcounts(), head_columns(frame), strict=True):
        of = dict(zip(attributes, codes, strict=True))
        counts = all(of[name] in chosen for name, chosen in where.items() if name in of)
        if counts and all(of[dimension.name] in dimension.codes for dimension in inside):
            place = sum(dimension.codes.index(of[dimension.name]) * steps[dimension.name] for dimension in inside)
            found.setdefault(place, []).append(head)
    return {place: _sum_of(heads) for place, heads in found.items()}


def all_workers(frame: Frame) -> str:
    """The whole workforce of an establishment."""
    return _sum_of(head_columns(frame))


def _sum_of(heads: Iterable[str]) -> str:
    return " + ".join(["CAST(0 AS BIGINT)", *(f"CAST(coalesce({head}, 0) AS BIGINT)" for head in heads)])


def whole_workforces(frame: Frame, tables: _Tables) -> Rows | None:
    """The jobs of every `_workplace` that has any, all together, where its row has them."""
    if tables.register is None:
        return None
    sizes = tables.register.select(_workplace=tables.engine.q(frame.jobs.workplace), _jobs=all_workers(frame))
    return sizes.where("_jobs > 0")


def check_headcounts(frame: Frame, tables: _Tables) -> DataTotals:
    """Check that every establishment has one row and whole numbers of workers, and count both."""
    _refuse_public_headcounts(frame)
    workplace, register, heads = frame.jobs.workplace, tables.register or tables.jobs, head_columns(frame)
    filled = Range.of(register, workplace)
    refuse_empty(filled, "jobs", workplace)
    for head, column in heads.items():
        faults = _faults(head, register.types[head])
        counted = register.row(**{f"_{place}": times_found for place, times_found in enumerate(faults.values())})
        wrong = {fault: count for fault, count in zip(faults, counted.values(), strict=True) if count}
        if wrong:
            raise DataError(
                f"jobs, column '{column}' of `employees`",
                expected="a whole number of workers in every row, 0 where there is none",
                found=f"numbers that are {', '.join(f'{count:,} {fault}' for fault, count in wrong.items())}",
                do=f"correct the rows of {frame.jobs.path}"
                + ('; if 1.234 is a thousand and more, write thousands = "."' if _NO_WHOLE in wrong else "")
                + ("; write 0 where an establishment has no workers" if "empty" in wrong else ""),
            )
    if repeated := Units(register, workplace, filled).repeated():
        raise DataError(
            f"jobs, column '{workplace}'",
            expected="one row for each establishment: `employees`",
            found=f"{repeated:,} rows that repeat the establishment of another row",
            do=f"add up the rows of an establishment in {frame.jobs.path}",
        )
    sizes = register.select(_jobs=all_workers(frame))
    totals = sizes.row(jobs=total("_jobs"), filled=times("_jobs > 0"))
    listed = filled.rows
    if tables.workplaces is not None and frame.workplaces is not None and not frame.is_register:
        listed = _check_register(frame, tables, tables.workplaces, frame.workplaces.key)
    return DataTotals(jobs=totals["jobs"] or 0, establishments=listed, empty_establishments=listed - totals["filled"])


def _refuse_public_headcounts(frame: Frame) -> None:
    """Refuse a public attribute made of the headcounts: the register is known however its path is written.

    In what a query answers, a number may be that of workers under any name.
    """
    heads, asked = set(frame.headcounts().values()), any(source.query for source in frame.sources().values())
    told = [name for name in frame.public_attributes if frame.column_of(name) in heads]
    classes = [name for name in frame.public_attributes if asked and frame.attributes[name].classes is not None]
    listed = data_files(frame) if told or classes else {}
    register, workplaces = ({repr(file.state()) for file in listed.get(name, ())} for name in ("jobs", "workplaces"))
    if frame.joined or register & workplaces:
        _refuse_classes_of_queries(classes)
    if told and register & workplaces:
        raise DataError(
            f"attribute '{told[0]}'",
            expected="a `public` attribute that does not change when a worker comes or leaves",
            found="one made of the number of workers, in the file of the register",
            do="leave it out of `public`; if everyone knows it, have it in a column of its own",
        )


def _refuse_classes_of_queries(classes: Sequence[str]) -> None:
    if classes:
        raise DataError(
            f"attribute '{classes[0]}'",
            expected="classes of a number that is surely not that of workers",
            found="a `public` attribute with classes of what a query answers, in the database of the register",
            do="name a `table` in the place of the query; or have the codes of the classes in a column of their own, "
            "if everyone knows them",
        )


def _faults(column: str, kind: pa.DataType) -> dict[str, str]:
    """What can be wrong with a number of workers, each with how many are."""
    if pa.types.is_integer(kind):
        return {
            "empty": f"count(*) - count({column})",
            "below 0": times(f"{column} < 0"),
            f"above {_MOST:,}": times(f"{column} > {_MOST}"),
        }
    return {
        **faults_of(column),
        "below 0": times(f"{is_finite(column)} AND {column} < 0"),
        _NO_WHOLE: times(f"{is_finite(column)} AND {column} <> floor({column})"),
        f"above {_MOST:,}": times(f"{is_finite(column)} AND {column} > {_MOST}"),
    }


def _check_register(frame: Frame, tables: _Tables, register: Rows, key: str) -> int:
    """Check that the register of workplaces has every establishment once, and count them."""
    filled = Range.of(register, key)
    refuse_empty(filled, "workplaces", key)
    if repeated := Units(register, key, filled).repeated():
        raise DataError(
            f"workplaces, key '{key}'",
            expected="one row for each of the workplaces",
            found=f"{repeated:,} rows that repeat the key of another row",
            do="remove the duplicates",
        )
    q = tables.engine.q
    named = tables.jobs.select(_workplace=q(frame.jobs.workplace))
    orphans = named.join(register.select(_workplace=q(key)), ["_workplace"], "anti").distinct().number()
    if orphans:
        raise DataError(
            f"jobs, column '{frame.jobs.workplace}'",
            expected="every establishment to be a row of workplaces",
            found=f"{orphans:,} that are none",
            do="add the missing workplaces, or remove these rows",
        )
    return filled.rows
