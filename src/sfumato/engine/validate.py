"""Validate: the confidential data against their description, before anything is charged.

Messages count what is wrong. They show examples only of public attributes: a value of a confidential one, or a key,
would put a record on somebody's screen.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.connect import Tables
from sfumato.engine.keys import Range, job_faults, repeated_keys
from sfumato.engine.panel_faults import check_panel_columns, jobs_of_panel
from sfumato.engine.text import text
from sfumato.errors import DataError
from sfumato.frame import Codelist, Frame, Measure

if TYPE_CHECKING:
    import ibis.expr.types as ir

_TOGETHER = 20_000
"""Attributes are counted in one pass while the product of their codelists stays below this."""
_MOST_VALUES = 1_000_000
"""No more distinct values of a column than this are looked at."""


def check_columns(frame: Frame, tables: Tables) -> None:
    """Check that every column the frame names exists where it belongs and has a suitable type."""
    _need(tables.jobs, "jobs", frame.jobs.workplace)
    if frame.jobs.worker is not None:
        _need(tables.jobs, "jobs", frame.jobs.worker)
    if tables.workplaces is not None and frame.workplaces is not None:
        _need(tables.workplaces, "workplaces", frame.workplaces.key)
        _same_type(tables.jobs, frame.jobs.workplace, tables.workplaces, frame.workplaces.key)
    if tables.workers is not None and frame.workers is not None and frame.jobs.worker is not None:
        _need(tables.workers, "workers", frame.workers.key)
        _same_type(tables.jobs, frame.jobs.worker, tables.workers, frame.workers.key)
    if frame.span is not None:
        check_panel_columns(frame, tables)
    for name in frame.attributes:
        table, holder = _holder(frame, tables, name)
        kind = table[name].type()
        if not (kind.is_string() or kind.is_integer() or kind.is_boolean()):
            raise DataError(
                f"attribute '{name}' in {holder}",
                expected="text, whole numbers or true/false, whose codes the codelist gives",
                found=f"a column of type {kind}",
                do="store the codes of the attribute as text",
            )
    for name in frame.measures:
        _need(tables.jobs, "jobs", name)
        if not tables.jobs[name].type().is_numeric():
            raise DataError(
                f"measure '{name}' in jobs",
                expected="numbers",
                found=f"a column of type {tables.jobs[name].type()}",
                do="store the measure as whole numbers of its smallest unit",
            )


def read_public_codes(frame: Frame, tables: Tables) -> dict[str, Codelist]:
    """The codelist of every attribute; those not declared are read off the workplaces, which are public."""
    codelists = {}
    for name in frame.attributes:
        declared = frame.declared_codes(name)
        if declared is None:
            table, holder = _holder(frame, tables, name)
            values = _values(table, [name])
            _refuse_nulls(values, name, holder)
            codes = sorted(values[name].to_pylist())
            if not codes or any(not code.strip() for code in codes):
                raise DataError(
                    f"attribute '{name}' in {holder}",
                    expected="codes that are not empty",
                    found="no rows" if not codes else "rows with an empty code",
                    do="fill the codes, or give a codelist in the release file",
                )
            declared = Codelist.of(codes)
        codelists[name] = declared
    return codelists


def validate(
    frame: Frame,
    tables: Tables,
    codelists: Mapping[str, Codelist],
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Check keys, links, codes and measures; the first thing wrong is raised as a DataError."""
    progress("keys and links")
    _check_links(frame, tables)
    progress("codes of attributes")
    _check_codes(frame, tables, codelists)
    if frame.joined:
        _check_one_workplace_each(frame, tables)
    progress("measures")
    for name, measure in frame.measures.items():
        _check_measure(tables.jobs, name, measure)


def _check_links(frame: Frame, tables: Tables) -> None:
    links = (
        ("workplaces", tables.workplaces, frame.workplaces, frame.jobs.workplace),
        ("workers", tables.workers, frame.workers, frame.jobs.worker),
    )
    linking = {column: Range.of(tables.jobs, column) for column in (frame.jobs.workplace, frame.jobs.worker) if column}
    for name, filled in linking.items():
        _refuse_empty(filled, "jobs", name)
    units = {}
    for name, table, described, column in links:
        if table is None or described is None or column is None:
            continue
        filled = Range.of(table, described.key)
        units[column] = (table, described.key, filled)
        _refuse_empty(filled, name, described.key)
        if repeated := repeated_keys(table, described.key, filled):
            raise DataError(
                f"{name}, key '{described.key}'",
                expected=f"one row for each of the {name}",
                found=f"{repeated:,} rows that repeat the key of another row",
                do=f"remove the duplicates from {described.path}",
            )
    with nullcontext(tables.jobs) if frame.span is None else jobs_of_panel(frame, tables) as jobs:
        faults = job_faults(jobs, workplace=frame.jobs.workplace, worker=frame.jobs.worker, filled=linking, units=units)
    for name, _, described, column in links:
        if described is not None and column is not None and (orphans := faults.orphans.get(column, 0)):
            raise DataError(
                f"jobs, column '{column}'",
                expected=f"every job to link to a row of {name}",
                found=f"{orphans:,} jobs whose '{column}' is not in {described.path}",
                do=f"add the missing {name}, or remove these jobs",
            )
    if faults.repeated:
        raise DataError(
            f"jobs, columns '{frame.jobs.worker}' and '{frame.jobs.workplace}'",
            expected="one row for each worker at a workplace: a guarantee for one job is not one for two",
            found=f"{faults.repeated:,} rows that repeat the worker and workplace of another row",
            do=f"merge the repeated rows of {frame.jobs.path}",
        )


def _check_codes(frame: Frame, tables: Tables, codelists: Mapping[str, Codelist]) -> None:
    by_holder: dict[str, list[str]] = {}
    held = {}
    for name in frame.attributes:
        held[_holder(frame, tables, name)[1]] = _holder(frame, tables, name)[0]
        by_holder.setdefault(_holder(frame, tables, name)[1], []).append(name)
    for holder, names in by_holder.items():
        for group in _groups(names, codelists):
            values = _values(held[holder], group)
            for name in group:
                _refuse_nulls(values, name, holder)
                _refuse_unknown(values, name, holder, codelists[name], public=frame.is_public(name))


def _groups(names: list[str], codelists: Mapping[str, Codelist]) -> list[list[str]]:
    """Attributes that can be counted in one pass: as many as keep the number of combinations small."""
    groups: list[list[str]] = []
    for name in sorted(names, key=lambda name: len(codelists[name].codes)):
        if groups and prod(len(codelists[n].codes) for n in (*groups[-1], name)) <= _TOGETHER:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _check_one_workplace_each(frame: Frame, tables: Tables) -> None:
    """In a joined table, a workplace must have the same public attributes in all its rows."""
    jobs = tables.jobs
    for name in frame.public:
        spread = jobs.group_by(frame.jobs.workplace).agg(_values=jobs[name].nunique())
        several = int(spread.filter(spread["_values"] > 1).count().execute())
        if several:
            raise DataError(
                f"attribute '{name}' in jobs",
                expected="the same value in every row of one workplace",
                found=f"{several:,} workplaces with several values",
                do="correct the rows, or remove the attribute from `public` if it describes the job",
            )


def _check_measure(jobs: "ir.Table", name: str, measure: Measure) -> None:
    column = jobs[name]
    # Both engines order NaN above every number, while their tests for NaN and null disagree.
    finite = (column.abs() <= sys.float_info.max).fill_null(False)
    counted = {
        "empty": jobs.count() - column.count(),
        "not finite": column.count() - finite.sum(),
        f"below {float(measure.minimum):g}": (finite & (column < float(measure.minimum))).sum(),
    }
    if measure.maximum is not None:
        counted[f"above {float(measure.maximum):g}"] = (finite & (column > float(measure.maximum))).sum()
    if column.type().is_floating():
        counted["not whole"] = (finite.ifelse(column, 0.0) % 1 != 0).sum()
    row = jobs.agg(**counted).to_pyarrow().to_pylist()[0]
    wrong = [f"{count:,} {fault}" for fault, count in row.items() if count]
    if wrong:
        raise DataError(
            f"measure '{name}' in jobs",
            expected="whole, finite numbers within the measure's bounds in every row",
            found=f"values that are {', '.join(wrong)}",
            do="correct the rows, or state other bounds (minimum, maximum) under [data.measures]",
        )


def _holder(frame: Frame, tables: Tables, attribute: str) -> tuple["ir.Table", str]:
    """The table that holds an attribute: workplaces for a public one, workers or jobs for the others."""
    if frame.is_public(attribute):
        candidates = {"jobs": tables.jobs} if tables.workplaces is None else {"workplaces": tables.workplaces}
    else:
        candidates = {} if tables.workers is None else {"workers": tables.workers}
        candidates["jobs"] = tables.jobs
    holders = [name for name, table in candidates.items() if attribute in table.columns]
    if len(holders) != 1:
        where = " or ".join(candidates)
        columns = dict.fromkeys(column for table in candidates.values() for column in table.columns)
        raise DataError(
            f"attribute '{attribute}' ({'public' if frame.is_public(attribute) else 'confidential'})",
            expected=f"a column '{attribute}' in {where}",
            found="one in each" if holders else f"the columns {', '.join(columns)}",
            do="rename one of the columns" if holders else "correct the name, or `public`, or the file",
        )
    return candidates[holders[0]], holders[0]


def _values(table: "ir.Table", names: list[str]) -> pa.Table:
    """The combinations of values that occur, each with its number of rows."""
    columns = table.select(**{name: text(table[name], name) for name in names})
    return columns.group_by(names).agg(_rows=columns.count()).limit(_MOST_VALUES).to_pyarrow()


def _refuse_nulls(values: pa.Table, name: str, holder: str) -> None:
    rows = pc.sum(pc.filter(values["_rows"], pc.is_null(values[name]))).as_py()
    if rows:
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="a code in every row",
            found=f"{rows:,} rows without one",
            do="fill them, for instance with a code for 'unknown' that the codelist has too",
        )


def _refuse_unknown(values: pa.Table, name: str, holder: str, codelist: Codelist, *, public: bool) -> None:
    unknown = values.filter(pc.invert(pc.is_in(values[name], value_set=pa.array(codelist.codes, pa.string()))))
    rows = pc.sum(unknown["_rows"]).as_py()
    if not rows:
        return
    examples = sorted(set(unknown[name].to_pylist()))
    shown = f": {', '.join(map(repr, examples[:5]))}{' …' if len(examples) > 5 else ''}" if public else ""
    raise DataError(
        f"attribute '{name}' in {holder}",
        expected=f"one of the {len(codelist.codes):,} codes of its codelist",
        found=f"{rows:,} rows with {len(examples):,} other values{shown}",
        do="add the codes to the codelist, or correct the rows",
    )


def _refuse_empty(filled: Range, holder: str, column: str) -> None:
    if filled.empty:
        raise DataError(
            f"{holder}, column '{column}'",
            expected="a key in every row",
            found=f"{filled.empty:,} rows without one",
            do="fill the keys, or remove these rows",
        )


def _need(table: "ir.Table", holder: str, column: str) -> None:
    if column not in table.columns:
        raise DataError(
            f"{holder}, column '{column}'",
            expected=f"a column '{column}'",
            found=f"the columns {', '.join(table.columns)}",
            do="correct the name in the release file, or the file",
        )


def _same_type(jobs: "ir.Table", column: str, units: "ir.Table", key: str) -> None:
    of_jobs, of_units = jobs[column].type(), units[key].type()
    alike = (of_jobs.is_integer() and of_units.is_integer()) or (of_jobs.is_string() and of_units.is_string())
    if not alike:
        raise DataError(
            f"jobs, column '{column}'",
            expected=f"the same kind of key as '{key}', whole numbers or text",
            found=f"{of_jobs} in jobs, {of_units} in the other table",
            do="store both keys with one type",
        )
