"""Validate: the confidential data against their description, before anything is charged.

Messages count what is wrong. They show examples only of public attributes: a value of a confidential one, or a key,
would put a record on somebody's screen.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext

import pyarrow as pa

from sfumato.engine.connect import Tables
from sfumato.engine.faults import (
    Range,
    Units,
    check_attribute_type,
    check_codes,
    check_key_type,
    check_measure,
    check_measure_type,
    codes_of,
    job_faults,
    refuse_empty,
)
from sfumato.engine.headcounts import check_headcounts
from sfumato.engine.lacking import need, no_column
from sfumato.engine.memory import DataTotals
from sfumato.engine.panel import check_panel_columns, jobs_of_panel, refuse_no_rows
from sfumato.engine.query import Rows, is_text, texts
from sfumato.errors import DataError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame


def check_columns(frame: Frame, tables: Tables) -> None:
    """Check that every column the frame names exists where it belongs and has a suitable type."""
    refuse_no_rows(frame, tables)
    check_key_type(tables.jobs, frame.jobs.workplace, "jobs", "workplaces")
    if frame.jobs.worker is not None:
        check_key_type(tables.jobs, frame.jobs.worker, "jobs", "workers")
    if tables.workplaces is not None and frame.workplaces is not None:
        need(tables.workplaces, "workplaces", frame.workplaces.key)
        _same_type(tables.jobs, frame.jobs.workplace, tables.workplaces, frame.workplaces.key)
    if tables.workers is not None and frame.workers is not None and frame.jobs.worker is not None:
        need(tables.workers, "workers", frame.workers.key)
        _same_type(tables.jobs, frame.jobs.worker, tables.workers, frame.workers.key)
    if frame.span is not None:
        check_panel_columns(frame, tables)
    for name in frame.attributes:
        table, holder = _holder(frame, tables, name)
        check_attribute_type(table, name, holder)
    for name in frame.measures:
        check_measure_type(tables.jobs, name, "jobs", written=frame.column_of(name))


def read_public_codes(frame: Frame, tables: Tables) -> dict[str, Codelist]:
    """The codelist of every attribute; those not declared are read off the workplaces, which are public."""
    codelists = {}
    for name in frame.attributes:
        declared = frame.declared_codes(name)
        if declared is None:
            table, holder = _holder(frame, tables, name)
            declared = codes_of(table, name, holder)
        codelists[name] = declared
    return codelists


def validate(
    frame: Frame,
    tables: Tables,
    codelists: Mapping[str, Codelist],
    looked_at: Collection[str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> DataTotals:
    """Check keys and links, codes and measures, and count what was read; the first thing wrong raises a DataError.

    Of attributes and measures all are checked, or those that are looked at.
    """
    looked_at = (*frame.attributes, *frame.measures) if looked_at is None else looked_at
    progress("keys and links")
    totals = _check_links(frame, tables) if frame.jobs.employees is None else check_headcounts(frame, tables)
    progress("codes of attributes")
    _check_codes(frame, tables, codelists, looked_at)
    if frame.joined:
        _check_one_workplace_each(frame, tables, looked_at)
    progress("measures")
    for name, measure in frame.measures.items():
        if name in looked_at:
            check_measure(tables.jobs, name, measure, "jobs")
    return totals


def _check_links(frame: Frame, tables: Tables) -> DataTotals:
    links = (
        ("workplaces", tables.workplaces, frame.workplaces, frame.jobs.workplace),
        ("workers", tables.workers, frame.workers, frame.jobs.worker),
    )
    linking = {column: Range.of(tables.jobs, column) for column in (frame.jobs.workplace, frame.jobs.worker) if column}
    for name, filled in linking.items():
        refuse_empty(filled, "jobs", name)
    units = {}
    for name, table, described, column in links:
        if table is None or described is None or column is None:
            continue
        filled = Range.of(table, described.key)
        units[column] = Units(table, described.key, filled)
        refuse_empty(filled, name, described.key)
        if repeated := units[column].repeated():
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
    rows = {column: linked.filled.rows for column, linked in units.items()}
    establishments = rows.get(frame.jobs.workplace)
    return DataTotals(
        jobs=faults.jobs,
        establishments=faults.workplaces if establishments is None else establishments,
        empty_establishments=None if establishments is None else establishments - faults.workplaces,
        workers=faults.workers if frame.jobs.worker is None else rows.get(frame.jobs.worker, faults.workers),
        records=None if frame.span is None else linking[frame.jobs.workplace].rows,
        periods=None if frame.span is None else len(frame.span.codes()),  # each has rows, or was refused
    )


def codes_within(tables: Tables, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """Of pairs of public attributes, the code of the second that all establishments with one of the first have.

    Everyone knows both of every establishment of a register. Pairs of which the first does not decide the second are
    left out.
    """
    if tables.workplaces is None:
        return {}
    found = {}
    for fine, coarse in sorted(pairs):
        rows = tables.workplaces.select(**texts(tables.workplaces, (fine, coarse)))
        q = rows.engine.q
        read = rows.group([fine], _first=f"min({q(coarse)})", _last=f"max({q(coarse)})").fetch()
        if read["_first"].equals(read["_last"]):
            found[fine, coarse] = dict(zip(read[fine].to_pylist(), read["_first"].to_pylist(), strict=True))
    return found


def _check_codes(frame: Frame, tables: Tables, codelists: Mapping[str, Codelist], looked_at: Collection[str]) -> None:
    by_holder: dict[str, list[str]] = {}
    held = {}
    for name in frame.attributes:
        if name in looked_at:
            table, holder = _holder(frame, tables, name)
            held[holder] = table
            by_holder.setdefault(holder, []).append(name)
    for holder, names in by_holder.items():
        check_codes(held[holder], names, codelists, holder, public=frame.public_attributes)


def _check_one_workplace_each(frame: Frame, tables: Tables, looked_at: Collection[str]) -> None:
    """In a joined table, a workplace must have the same public attributes in all its rows."""
    jobs = tables.jobs
    for name in (name for name in frame.public_attributes if name in looked_at):
        spread = jobs.group([frame.jobs.workplace], _values=f"count(DISTINCT {jobs.engine.q(name)})")
        several = spread.where("_values > 1").number()
        if several:
            raise DataError(
                f"attribute '{name}' in jobs",
                expected="the same value in every row of one workplace",
                found=f"{several:,} workplaces with several values",
                do="correct the rows, or remove the attribute from `public` if it describes the job",
            )


def _holder(frame: Frame, tables: Tables, attribute: str) -> tuple[Rows, str]:
    """The table that holds an attribute: workplaces for a public one, workers or jobs for the others."""
    if frame.is_public(attribute):
        candidates = {"jobs": tables.jobs} if tables.workplaces is None else {"workplaces": tables.workplaces}
    else:
        candidates = {} if tables.workers is None else {"workers": tables.workers}
        candidates["jobs"] = tables.jobs
    holders = [name for name, table in candidates.items() if attribute in table.columns]
    if len(holders) != 1:
        where = f"attribute '{attribute}' ({'public' if frame.is_public(attribute) else 'confidential'})"
        column = frame.column_of(attribute)
        expected = f"a column '{column}' in {' or '.join(candidates)}"
        if holders:
            raise DataError(where, expected=expected, found="one in each", do="rename one of the columns")
        raise no_column(where, column, candidates, expected=expected, also=", or `public`")
    return candidates[holders[0]], holders[0]


def _same_type(jobs: Rows, column: str, units: Rows, key: str) -> None:
    kinds = of_jobs, of_units = jobs.types[column], units.types[key]
    if not (all(map(pa.types.is_integer, kinds)) or all(map(is_text, kinds))):
        raise DataError(
            f"jobs, column '{column}'",
            expected=f"the same kind of key as '{key}', whole numbers or text",
            found=f"{of_jobs} in jobs, {of_units} in the other table",
            do="store both keys with one type",
        )
