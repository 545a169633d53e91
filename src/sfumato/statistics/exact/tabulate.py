"""Who contributes how much to which cell, of jobs and of records: the one place where true numbers are counted."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension, places
from sfumato.engine.chunks import located, place_in
from sfumato.engine.data import OpenJobs, OpenRecords
from sfumato.engine.query import Rows, text, texts, total
from sfumato.errors import DataError, ReleaseError
from sfumato.statistics.exact.contributions import ExactCells, Nested, Parts, counted_cells
from sfumato.statistics.exact.differences import with_differences
from sfumato.statistics.exact.linked import LinkedTable, refuse_crossed
from sfumato.statistics.exact.question import ExactQuestion
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import blocks_of, chosen
from sfumato.statistics.jobs.tabulate_establishments import EstablishmentGroups, establishment_groups

_MOST = 2**52
"""Sums up to this are exact in binary numbers of 64 bits, in which linear programs are written."""
_FINEST = 6
"""Digits after the point of weighted values, at most."""


# Jobs: what every establishment has in every cell.


def count_jobs(data: OpenJobs, questions: Mapping[str, ExactQuestion]) -> dict[str, ExactCells]:
    """The cells of every table of jobs; the jobs are scanned once for all tables."""
    if any(one.merged for one in questions.values()):
        return _jointly(questions, partial(_jobs, data))
    nested = nested_attributes(data, questions)
    return with_differences(questions, _jobs(data, questions), nested)


def _jobs(data: OpenJobs, questions: Mapping[str, ExactQuestion]) -> dict[str, Parts]:
    """What every establishment has in every cell."""
    frame, tables = data.frame, data.tables
    asked = {(name, measure): _of_jobs(one, measure) for name, one in questions.items() for measure in _measures(one)}
    found: dict[str, tuple[pa.Table, pa.Table, Integers | None]] = {}
    with establishment_groups(frame, tables, asked, None) as counted:
        for name, question in questions.items():
            with tables.engine.lending():
                jobs = _rows(counted, asked[name, None])
                pay = jobs if question.measure is None else _rows(counted, asked[name, question.measure])
                listed = not frame.joined and question.lists_establishments
                found[name] = jobs, pay, _establishments(data, question) if listed else None
    owned = _owners(data, dict.fromkeys(holding for one in questions.values() for holding in one.holdings))
    columns = [column for jobs, pay, _ in found.values() for column in (*_units(jobs), *_units(pay))]
    numbers = _Numbers(pa.chunked_array(columns, pa.string()))  # filters may leave no jobs at all
    return {name: _parts_of_jobs(questions[name], rows, numbers, owned) for name, rows in found.items()}


def _jointly(
    questions: Mapping[str, ExactQuestion], count: Callable[[Mapping[str, ExactQuestion]], Mapping[str, Parts]]
) -> dict[str, ExactCells]:
    """Tables whose codes are merged, with what units have in the finest cells of all attributes of a measure."""
    joint = {}
    for measure in dict.fromkeys(one.measure for one in questions.values()):
        some = [one for one in questions.values() if one.measure == measure]
        by = tuple({dimension.name: dimension for one in some for dimension in (*one.filters, *one.inner)}.values())
        joint[str(measure)] = replace(
            some[0],
            by=by,
            margins=False,
            where={},
            filters=(),
            merged={},
            codes={d.name: d.codes for d in by},
            lists_establishments=False,
        )
    parts, none = count(joint), np.zeros(0, dtype=np.int64)
    return {
        name: ExactCells(dimensions=one.by, positions=none, joint=(joint[str(one.measure)].by, parts[str(one.measure)]))
        for name, one in questions.items()
    }


def _measures(question: ExactQuestion) -> list[str | None]:
    return [None] if question.measure is None else [None, question.measure]


def _of_jobs(question: ExactQuestion, measure: str | None) -> Question:
    return Question(by=question.inner, where=question.where, measure=measure)


def _units(rows: pa.Table) -> list[pa.Array]:
    chunks: list[pa.Array] = rows["_workplace"].cast(pa.string()).chunks
    return chunks


def _rows(counted: EstablishmentGroups, question: Question) -> pa.Table:
    """What every establishment has in every cell that it has something in."""
    groups = chosen(counted, question)
    inside = tuple(dimension for dimension in question.by if not dimension.public)
    found = groups.select("_workplace", "_jobs", _inside=place_in(inside, groups))
    found = found.group(["_workplace", "_inside"], _jobs=total("_jobs"))
    placed = found.join(blocks_of(counted.frame, counted.tables, question), ["_workplace"])
    return placed.where("_jobs <> 0").fetch()


def _establishments(data: OpenJobs, question: ExactQuestion) -> Integers:
    """The number of establishments of every cell with its totals, which the register tells."""
    public = tuple(one for one in question.by if one.public)
    asked = ExactQuestion(
        by=public, margins=question.margins, where={n: c for n, c in question.where.items() if data.frame.is_public(n)}
    )
    blocks = blocks_of(data.frame, data.tables, Question(by=asked.inner, where=asked.where))
    found = blocks.group(["_block"], _number="count(*)").fetch()
    number = found["_number"].to_numpy().astype(np.int64)
    parts = Parts(at=_numbers(found["_block"]), value=number, records=number, units=())
    counted = counted_cells(asked, parts)["exact"]
    sizes = [len(one) if one.public else 1 for one in question.by]
    whole = np.broadcast_to(counted.reshape(sizes), [len(one) for one in question.by])
    return np.ascontiguousarray(whole).reshape(-1)


class _Numbers:
    """Numbers of establishments, alike in all tables."""

    def __init__(self, names: pa.ChunkedArray) -> None:
        self.names = pc.unique(names).sort() if len(names) else pa.array([], pa.string())

    def of(self, rows: pa.Table) -> Integers:
        return _numbers(pc.index_in(rows["_workplace"].cast(pa.string()), value_set=self.names))


def _owners(data: OpenJobs, holdings: Mapping[str, None]) -> dict[str, tuple[pa.Array, Integers]]:
    """Of every attribute that names larger units, the establishments and the number of the unit of each."""
    register, frame = data.tables.workplaces, data.frame
    if not holdings or register is None or frame.workplaces is None:
        return {}
    key = frame.workplaces.key
    found = register.select(_workplace=text(register, key), **texts(register, holdings)).fetch()
    names = found["_workplace"].combine_chunks()
    return {one: (names, _numbers(found[one].combine_chunks().dictionary_encode().indices)) for one in holdings}


def _parts_of_jobs(
    question: ExactQuestion,
    rows: tuple[pa.Table, pa.Table, Integers | None],
    numbers: _Numbers,
    owned: Mapping[str, tuple[pa.Array, Integers]],
) -> Parts:
    jobs, pay, listed = rows
    unit, at = numbers.of(jobs), _positions(question.inner, jobs)
    value = _numbers(jobs["_jobs"])
    if question.measure is not None:  # an establishment may have jobs and no pay
        order = np.lexsort((unit, at))
        known = _pairs(at, unit)[order]
        place = order[np.searchsorted(known, _pairs(_positions(question.inner, pay), numbers.of(pay)))]
        amount = np.zeros_like(value)
        amount[place] = _numbers(pay["_jobs"])
    else:
        amount = value
    levels, sizes = [unit], [len(numbers.names)]
    for holding in question.holdings:
        names, number = owned[holding]
        levels.append(number[_numbers(pc.index_in(numbers.names, value_set=names))][unit])
        sizes.append(len(np.unique(number)))
    return Parts(at=at, value=amount, records=value, units=tuple(levels), ranks=_ranks(sizes), listed=listed)


def _ranks(sizes: Sequence[int]) -> tuple[int, ...]:
    """How coarse every level of units is, by how many larger units there are: the first is what they are made of."""
    order = sorted(range(1, len(sizes)), key=lambda level: -sizes[level])
    return tuple([0, *order].index(level) for level in range(len(sizes)))


def _pairs(at: Integers, unit: Integers) -> Integers:
    return at * np.int64(1 << 31) + unit


def _positions(inner: Sequence[Dimension], rows: pa.Table) -> Integers:
    """Positions among the inner cells, from those among the cells of workplaces and of workers."""
    public = [one for one in inner if one.public]
    workers = [one for one in inner if not one.public]
    codes = dict(zip([one.name for one in public], places(_numbers(rows["_block"]), public), strict=True))
    codes |= dict(zip([one.name for one in workers], places(_numbers(rows["_inside"]), workers), strict=True))
    found = np.zeros(len(rows), dtype=np.int64)
    for one in inner:
        found = found * len(one) + codes[one.name]
    return found


# Records: what every unit has in every cell.


def count_records(data: OpenRecords, questions: Mapping[str, ExactQuestion]) -> dict[str, ExactCells]:
    """The cells of every table of records."""
    if any(one.merged for one in questions.values()):
        return _jointly(questions, partial(_records, data))
    nested = nested_attributes(data, questions)
    return with_differences(questions, _records(data, questions), nested)


def _records(data: OpenRecords, questions: Mapping[str, ExactQuestion]) -> dict[str, Parts]:
    """What every unit has in every cell."""
    described, records = data.data, data.tables.records
    q = records.engine.q
    weight = described.records.weight
    numbers, found = {}, {}
    for level, column in enumerate(described.units):
        names = records.select(_name=text(records, column)).distinct().fetch()["_name"]
        numbers[level] = pc.unique(names).sort()
    for name, question in questions.items():
        with data.tables.engine.lending():
            rows = _asked(records, question)
            value = "CAST(1 AS BIGINT)" if question.measure is None else f"CAST({q(question.measure)} AS BIGINT)"
            asked = described.records.consent
            fetched = rows.select(
                _at=place_in(question.inner, rows),
                _value=value,
                _weight="1.0" if weight is None else f"CAST({q(weight)} AS DOUBLE)",
                _asked="true" if asked is None else q(asked),
                **{f"_unit{level}": text(rows, column) for level, column in enumerate(described.units)},
            ).fetch()
        found[name] = fetched
    scales = _scales(data, questions) if weight is not None else {}
    return {
        name: _parts_of_records(rows, numbers, scales.get(questions[name].measure, 1)) for name, rows in found.items()
    }


def _asked(records: Rows, question: ExactQuestion) -> Rows:
    """The records that a table is about, with places in its dimensions instead of codes."""
    q, among = records.engine.q, records.engine.among
    rows = records.where(*(among(text(records, name), codes) for name, codes in question.where.items()))
    named = {one.name: one.codes for one in question.inner}
    others = [name for name in rows.columns if name not in named]
    placed = located(rows.select(*others, **texts(rows, named)), named)
    return placed.where(*(f"{q(name)} >= 0" for name in named))


def _scales(data: OpenRecords, questions: Mapping[str, ExactQuestion]) -> dict[str | None, int]:
    """Into how many parts a unit of each measure is divided, so that sums of all records are exact."""
    records, q = data.tables.records, data.tables.engine.q
    weight = f"CAST({q(str(data.data.records.weight))} AS DOUBLE)"
    found: dict[str | None, int] = {}
    for measure in dict.fromkeys(one.measure for one in questions.values()):
        value = "1" if measure is None else f"abs(CAST({q(measure)} AS DOUBLE))"
        whole = float(records.row(_sum=f"sum({weight} * {value})")["_sum"] or 0)
        digits = next((n for n in range(_FINEST, -1, -1) if whole * 10**n < _MOST), None)
        if digits is None:
            raise DataError(
                "records", expected="weighted totals below 4.5·10^15", found="a larger one", do="use a larger unit"
            )
        found[measure] = 10**digits
    return found


def _parts_of_records(rows: pa.Table, names: Mapping[int, pa.Array], parts: int) -> Parts:
    value, weight = _numbers(rows["_value"]), rows["_weight"].to_numpy().astype(np.float64)
    levels = [_numbers(pc.index_in(rows[f"_unit{level}"], value_set=known)) for level, known in names.items()]
    weighted = np.rint(value * weight * parts).astype(np.int64) if bool(np.any(weight != 1)) else value * parts
    return Parts(
        at=_numbers(rows["_at"]),
        value=weighted,
        records=np.ones(len(value), dtype=np.int64),
        units=tuple(levels),
        contribution=value * parts,
        asked=np.asarray(rows["_asked"].to_numpy(), dtype=bool),
        parts=parts,
        ranks=_ranks([len(known) for known in names.values()]),
    )


# Attributes of which one lies in the other, as the release says or as it is in the data: readers may know it.


def refuse_unlinkable(data: OpenJobs | OpenRecords, questions: Mapping[str, ExactQuestion]) -> None:
    """Refuse tables by attributes that cross although a finer one of the release lies in both."""
    if not any(one.merged for one in questions.values()):
        refuse_crossed(_empty(questions), _declared(data, _codes(questions)))


def nested_attributes(data: OpenJobs | OpenRecords, questions: Mapping[str, ExactQuestion]) -> Nested:
    """Of pairs of attributes of all tables, the code of the second that each code of the first lies in.

    What the release says comes first. What only happens to be so in the data is known to readers too, who have seen
    other tables; it is left out where a table by two attributes would become one by two levels of the same that cross.
    Codes that nobody has lie in the first code of the second.
    """
    codes, tables = _codes(questions), _empty(questions)
    found = _declared(data, codes)
    together = {frozenset(pair) for one in tables for pair in combinations([name for name, _ in one.axes], 2)}
    for rows in data.holders:
        for fine, coarse in permutations([name for name in codes if name in rows.columns], 2):
            known = (fine, coarse) in found or (coarse, fine) in found or frozenset((fine, coarse)) in together
            if known or len(codes[fine]) < len(codes[coarse]):
                continue
            pairs = rows.select(_fine=text(rows, fine), _coarse=text(rows, coarse)).distinct().fetch()
            above = dict(zip(pairs["_fine"].to_pylist(), pairs["_coarse"].to_pylist(), strict=True))
            if len(above) < len(pairs) or not 1 < len(set(above.values())) < len(above):
                continue
            lies = {code: above.get(code, codes[coarse][0]) for code in codes[fine]}
            if set(lies.values()) <= set(codes[coarse]):
                with suppress(ReleaseError):
                    refuse_crossed(tables, {**found, (fine, coarse): lies})
                    found[fine, coarse] = lies
    return found


def _codes(questions: Mapping[str, ExactQuestion]) -> dict[str, tuple[str, ...]]:
    return {name: codes for one in questions.values() for name, codes in one.codes.items()}


def _empty(questions: Mapping[str, ExactQuestion]) -> list[LinkedTable]:
    """All tables without their cells."""
    none = np.zeros(0, dtype=np.int64)
    return [LinkedTable.of(name, one, Cells(dimensions=one.by, positions=none)) for name, one in questions.items()]


def _declared(
    data: OpenJobs | OpenRecords, codes: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], Mapping[str, str]]:
    """What lies in what by what the release says."""
    found: dict[tuple[str, str], Mapping[str, str]] = {}
    for fine, coarse in permutations(codes, 2):
        above = data.described.codes_above(fine, coarse, codes[fine])
        if above is not None and set(codes[fine]) <= above.keys() and set(above.values()) <= set(codes[coarse]):
            found[fine, coarse] = above
    return found


def _numbers(column: pa.Array | pa.ChunkedArray) -> Integers:
    found: Integers = (
        column.to_numpy(zero_copy_only=False).astype(np.int64)
        if isinstance(column, pa.Array)
        else column.to_numpy().astype(np.int64)
    )
    return found
