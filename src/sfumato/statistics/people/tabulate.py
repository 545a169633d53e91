"""What statistics of people need of records: exact sums by group, histograms, values; in chunks or not."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import Chunked, ChunkLayout, located, number_of_chunks, place_in, positions_of
from sfumato.engine.query import Rows, texts, times, total
from sfumato.engine.records import HOLDER, RecordTables
from sfumato.errors import DataError
from sfumato.statistics.people.question import BoundedMeasure, SampleQuestion, Weight
from sfumato.statistics.people.small_samples import Samples

# What statistics of small samples need of records: exact sums by group, histograms, or the values themselves.
#
# All questions about sums are answered from one scan of the records, counted by every attribute that any of them uses.
# Values outside the bounds of a measure count with the nearest bound.

BIN = "bin"
"""The last dimension of the cells that percentiles are read from."""
LARGEST_GROUP = 2**61 - 1
"""As many people as any method has room for."""
_LIMIT = 2**63
_SCALED = repr(2.0**64)
"""What amounts are divided by, exactly, so that sums of the largest binary numbers are finite."""


def sampled(tables: RecordTables, questions: Mapping[str, SampleQuestion]) -> dict[str, Cells]:
    """Answer every question about sums with all its groups; the records must have been validated and be suitable."""
    scan = _Scan(list(questions.values()))
    finest = scan.finest(tables.records)
    with nullcontext(finest) if len(questions) == 1 else finest.kept() as kept:
        return {name: scan.cells(kept, question) for name, question in questions.items()}


def samples(tables: RecordTables, question: SampleQuestion) -> Samples:
    """The two values of every record, group by group and in their order: whatever the engine, the same."""
    if question.x is None or question.y is None:
        raise ValueError("samples have two values")
    records = tables.records
    rows = records.select(
        **texts(records, _attributes(question)), _x=clipped(records, question.x), _y=clipped(records, question.y)
    )
    found = chosen(rows, question).fetch()
    positions = positions_of(found, question.groups, question.groups)
    x, y = (found[name].to_numpy().astype(np.int64) for name in ("_x", "_y"))
    order = np.lexsort((y, x, positions))
    return Samples(dimensions=question.groups, positions=positions[order], x=x[order], y=y[order])


def clipped_values(tables: RecordTables, questions: Mapping[str, SampleQuestion]) -> dict[str, int]:
    """How many records have a value beyond a bound, by measure, or a weight above one: confidential."""
    records = tables.records
    asked = {}
    for bound in (bound for question in questions.values() for bound in (question.x, question.y) if bound):
        value, ends = records.engine.q(bound.name), {"<": bound.low, ">": bound.high}
        beyond = [f"{value} {side} {end}" for side, end in ends.items() if end is not None]
        asked[bound.name] = times(" OR ".join(beyond) or "1 = 0")
    for weight in (question.weight for question in questions.values() if question.weight and question.weight.clips):
        asked[weight.bound] = times(f"{records.engine.q(weight.column)} > {weight.largest}")
    row = records.row(**{f"_{at}": counted for at, counted in enumerate(asked.values())}) if asked else {}
    return {name: int(row[f"_{at}"]) for at, name in enumerate(asked)}


def refuse_unsuitable(tables: RecordTables, name: str, question: SampleQuestion, *, most: int = LARGEST_GROUP) -> None:
    """Refuse groups in two calibration classes, and sums that may leave 64 bits, before anything is charged.

    `most` is how many people of a group the method of the table has room for.
    """
    _refuse_two_classes(tables.records, name, question)
    bounds = {"x": question.x, "y": question.y}
    if not question.sums:
        return
    largest = max(prod(bound.largest for of in word if (bound := bounds[of])) for word in question.sums)
    records = tables.records.number(_people(tables.records, question))
    if records * largest < _LIMIT and records <= most:
        return
    rows = coded(tables.records, question)
    if _most_people(chosen(rows, question), question) > most:
        raise DataError(
            f"table '{name}', {' and '.join(bound.name for bound in bounds.values() if bound)}",
            expected=f"at most {most:,} {'steps of weight' if question.in_steps else 'people'} in a group: with these "
            "bounds, sums of more may leave 64 bits",
            found="a group that exceeds this",
            do="store the measure in a larger unit, such as dollars instead of cents, or state narrower bounds",
        )
    # Also those that `where` leaves out: one scan sums for all questions.
    if _most_people(rows, question) * largest >= _LIMIT:
        raise DataError(
            f"table '{name}', {' and '.join(bound.name for bound in bounds.values() if bound)}",
            expected="bounds whose squares, or themselves for a mean, added up over a group stay below 2^63",
            found="a group that may exceed this",
            do="store the measure in a larger unit, such as dollars instead of cents, or state narrower bounds",
        )


def _people(records: Rows, question: SampleQuestion) -> str:
    """The number of people of some rows, or what they weigh together in steps."""
    if question.weight is None:
        return "count(*)"
    return total(in_steps(records, question.weight))


def _most_people(rows: Rows, question: SampleQuestion) -> int:
    """The number of people of the largest group, or the most that one weighs: confidential."""
    counted = "count(*)" if question.weight is None else total(_WEIGHT)
    return rows.group([d.name for d in question.groups], _count=counted).number("max(_count)")


class _Scan:
    """One scan of the records for several questions: which columns it makes, and how a question is read off them."""

    def __init__(self, questions: Sequence[SampleQuestion]) -> None:
        self._attributes = tuple(dict.fromkeys(name for question in questions for name in _attributes(question)))
        self._values = {bound: f"_value_{at}" for at, bound in enumerate(dict.fromkeys(_bounds(questions)))}
        binned = [(q.y, q.edges) for q in questions if q.statistic == "quantiles" and q.y is not None]
        self._bins = {key: f"_bin_{at}" for at, key in enumerate(dict.fromkeys(binned))}
        weights = dict.fromkeys(question.weight for question in questions if question.weight is not None)
        self._weights = {weight: f"_weight_{at}" for at, weight in enumerate(weights)}
        sums = dict.fromkeys(
            term for question in questions for term in (*self._people(question), *self._terms(question).values())
        )
        self._sums = {term: f"_sum_{at}" for at, term in enumerate(sums)}

    def finest(self, records: Rows) -> Rows:
        """The records counted and summed by everything that any question tells apart."""
        rows = records.select(
            **texts(records, self._attributes),
            **{column: clipped(records, bound) for bound, column in self._values.items()},
            **{column: in_steps(records, weight) for weight, column in self._weights.items()},
        )
        bins = {column: _bin(self._values[bound], edges) for (bound, edges), column in self._bins.items()}
        sums = {column: total(" * ".join(term)) for term, column in self._sums.items()}
        return rows.with_columns(**bins).group([*self._attributes, *bins], _count="count(*)", **sums)

    def cells(self, finest: Rows, question: SampleQuestion) -> Cells:
        """The cells of one question, empty groups included."""
        rows = chosen(finest, question)
        names = [dimension.name for dimension in question.groups]
        bins: tuple[Dimension, ...] = ()
        if question.statistic == "quantiles" and question.y is not None:
            rows = rows.with_columns(**{BIN: self._bins[question.y, question.edges]})
            names, bins = [*names, BIN], (bin_dimension(question.edges),)
        outside = [dimension for dimension in question.classes if dimension not in question.groups]
        terms = self._terms(question)
        found = rows.group(
            names,
            _count=total(next((self._sums[term] for term in self._people(question)), "_count")),
            **{f"_class_{at}": f"min({rows.engine.q(of.name)})" for at, of in enumerate(outside)},
            **{f"_total_{name}": total(self._sums[term]) for name, term in terms.items()},
        ).fetch()
        dimensions = (*question.groups, *bins)
        places = _places(found, question.groups, bins)
        filled = {"count": _whole(found["_count"].to_numpy(), question)}
        filled |= {name: found[f"_total_{name}"].to_numpy() for name in terms}
        size = prod(map(len, dimensions))
        columns = {name: _spread(size, places, column) for name, column in filled.items()}
        if "class" in question.needs:
            columns["class"] = _spread(size, places, _classes(found, question, places), empty=-1)
        return Cells(dimensions=dimensions, positions=np.arange(size, dtype=np.int64), columns=columns)

    def _people(self, question: SampleQuestion) -> list[tuple[str, ...]]:
        """What is added up for the number of people: their weights, or nothing where each counts once."""
        return [] if question.weight is None else [(self._weights[question.weight],)]

    def _terms(self, question: SampleQuestion) -> dict[str, tuple[str, ...]]:
        """The sums a question needs, each of a value or of a product of two."""
        bounds = {"x": question.x, "y": question.y}
        weight = () if question.weight is None else (self._weights[question.weight],)
        return {
            f"sum_{word}": (*(self._values[bound] for of in word if (bound := bounds[of])), *weight)
            for word in question.sums
        }


def _whole(counts: Integers, question: SampleQuestion) -> Integers:
    """Counts as whole numbers: what people weigh is added up exactly and rounded once, halves upwards.

    The largest weight is whole. Nobody moves a rounded sum by more than that: docs/methods/weights.md.
    """
    if question.weight is None or question.in_steps:
        return counts
    whole: Integers = (counts + question.weight.fraction // 2) // question.weight.fraction
    return whole


def clipped(records: Rows, bound: BoundedMeasure) -> str:
    """Values as whole numbers, those beyond a bound as the bound."""
    value, kind = records.engine.q(bound.name), records.types[bound.name]
    if not pa.types.is_decimal(kind):  # bounds are compared with all their digits
        value = f"CAST({value} AS {'BIGINT' if pa.types.is_integer(kind) else 'DOUBLE'})"
    value = value if bound.low is None else f"greatest({value}, {bound.low})"
    value = value if bound.high is None else f"least({value}, {bound.high})"
    return f"CAST({value} AS BIGINT)"


_WEIGHT = "_weight"


def in_steps(records: Rows, weight: Weight) -> str:
    """Weights in whole steps, halves rounded up: by products and sums of floats, which are alike everywhere."""
    column = f"CAST({records.engine.q(weight.column)} AS DOUBLE)"
    column = f"least({column}, CAST({weight.largest} AS DOUBLE))" if weight.clips else column
    return f"CAST(floor({column} * CAST({weight.fraction} AS DOUBLE) + CAST(0.5 AS DOUBLE)) AS BIGINT)"


def refuse_heavy(tables: RecordTables, name: str, weight: Weight, *, most: int = LARGEST_GROUP) -> None:
    """Refuse records that weigh more than the noise of a table is made for, and sums that a method has no room for."""
    column = f"CAST({tables.engine.q(weight.column)} AS DOUBLE)"
    row = tables.records.row(_most=f"max({column})", _sum=f"sum({column})")
    if float(row["_most"] or 0) > weight.largest and not weight.clips:
        raise DataError(
            f"table '{name}', weights",
            expected=f"no weight above largest_weight = {weight.largest:,}, which the noise is made for",
            found="a heavier record",
            do="raise largest_weight to what the design of the sample allows (the fewer records stand for a "
            'population, the more each weighs), or write weights_above = "clip": heavier records then count with '
            "largest_weight, and what that costs is told by `sfumato check` and `sfumato assess`",
        )
    if float(row["_sum"] or 0) >= most:
        raise DataError(
            f"table '{name}', weights",
            expected=f"weights that are together below {most:,}",
            found="a larger sum",
            do="divide all weights by the same number, or use fewer bins",
        )


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """What the weights of some records mean for a table whose noise is made for a largest one: confidential."""

    largest: int
    average: float
    heavier: int
    """How many records weigh more than the largest weight."""
    lost: float
    """The share of all weight that is lost where these count with the largest weight."""

    def figures(self) -> dict[str, float]:
        """As numbers."""
        return {
            "largest_weight": self.largest,
            **{name: getattr(self, name) for name in ("average", "heavier", "lost")},
        }

    def in_words(self) -> str:
        """For whoever checks a release."""
        many = self.largest / self.average if self.average else 1.0
        text = (
            f"a record weighs {self.average:,.4g} on average, and the noise is made for {self.largest:,}: it is as "
            f"large as if {many:,.3g} records of the average weight were to be hidden. "
        )
        if self.heavier:
            text += (
                f"{self.heavier:,} records are heavier and count as {self.largest:,}, which loses {self.lost:.2%} of "
                "all weight. That is a bias, and no published error has it. "
            )
        return f"{text}These figures are confidential."


def weighed(tables: RecordTables, weight: Weight) -> Weighing:
    """What is to be known of the weights of records."""
    column = f"CAST({tables.engine.q(weight.column)} AS DOUBLE)"
    above = f"{column} > {weight.largest}"
    row = tables.records.row(
        _average=f"avg({column})",
        _sum=f"sum({column})",
        _heavier=times(above),
        _beyond=f"sum(CASE WHEN {above} THEN {column} - {weight.largest} ELSE 0 END)",
    )
    whole = float(row["_sum"] or 0)
    return Weighing(
        largest=weight.largest,
        average=float(row["_average"] or 0),
        heavier=int(row["_heavier"]),
        lost=float(row["_beyond"] or 0) / whole if whole else 0.0,
    )


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """What the bounds of a measure change of its total over all records: confidential."""

    measure: BoundedMeasure
    records: float
    """The share of records whose value counts with a bound instead."""
    total: float
    """By how much that raises the sum of all sizes of values, as a share of it; below 0 where it lowers it."""

    def figures(self) -> dict[str, Any]:
        """As numbers."""
        bounds = {"minimum": self.measure.low, "maximum": self.measure.high}
        return {**bounds, "share_of_records": self.records, "share_of_total": self.total}

    def in_words(self) -> str:
        """For whoever checks a release."""
        return (
            f"Bounds of {self.measure.name}: values below {self.measure.low:,} or above {self.measure.high:,} count as "
            f"these. That is so of {self.records:.2%} of records, and changes the total of all, without weights, by "
            f"{self.total:+.2%}. Confidential: these two shares are not protected."
        )


def clipping(tables: RecordTables, of: BoundedMeasure) -> Clipping:
    """What is to be known of the values beyond the bounds of a measure."""
    value = f"CAST({tables.engine.q(of.name)} AS DOUBLE)"
    within = f"least(greatest({value}, {of.low}), {of.high})"
    row = tables.records.row(
        _number="count(*)",
        _beyond=times(f"{value} < {of.low} OR {value} > {of.high}"),
        _whole=f"sum(abs({value}) / {_SCALED})",
        _changed=f"sum(({within} - {value}) / {_SCALED})",
    )
    return Clipping(
        measure=of,
        records=int(row["_beyond"] or 0) / (int(row["_number"] or 0) or 1),
        total=float(row["_changed"] or 0) / (float(row["_whole"] or 0) or 1.0),
    )


def bin_dimension(edges: Sequence[int]) -> Dimension:
    """The bins between edges, by their place."""
    return Dimension(name=BIN, codes=tuple(map(str, range(len(edges) - 1))))


def _attributes(question: SampleQuestion) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(d.name for d in (*question.groups, *question.classes)), *question.where]))


def _bounds(questions: Sequence[SampleQuestion]) -> list[BoundedMeasure]:
    return [bound for question in questions for bound in (question.x, question.y) if bound is not None]


def _bin(value: str, edges: Sequence[int]) -> str:
    """The bin of every value, by halving: a value equal to an edge is in the bin above it, but for the last edge."""

    def among(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last + 1) // 2
        upper, lower = among(middle, last), among(first, middle - 1)
        return f"CASE WHEN {value} >= {edges[middle]} THEN {upper} ELSE {lower} END"

    return f"CAST({among(0, len(edges) - 2)} AS BIGINT)"


def coded(records: Rows, question: SampleQuestion) -> Rows:
    """The attributes of a question as text, and the weight where it has one."""
    weight = {} if question.weight is None else {_WEIGHT: in_steps(records, question.weight)}
    return records.select(**texts(records, _attributes(question)), **weight)


def chosen(rows: Rows, question: SampleQuestion) -> Rows:
    """The rows that a question is about, of those that have its attributes as text."""
    engine = rows.engine
    return rows.where(*(engine.among(engine.q(name), codes) for name, codes in question.where.items()))


def _places(found: pa.Table, groups: Sequence[Dimension], bins: Sequence[Dimension]) -> Integers:
    """Where the rows of an answer stand; bins are numbers already."""
    places = positions_of(found, groups, groups)
    for dimension in bins:
        places = places * len(dimension) + found[dimension.name].to_numpy().astype(np.int64)
    return places


def _spread(size: int, places: Integers, column: Integers, *, empty: int = 0) -> Integers:
    whole = np.full(size, empty, dtype=np.int64)
    whole[places] = column
    return whole


def _classes(found: pa.Table, question: SampleQuestion, places: Integers) -> Integers:
    """The place of every group's class in the product of the attributes of classes."""
    at = np.zeros(found.num_rows, dtype=np.int64)
    own = dict(
        zip(question.groups, np.unravel_index(places, tuple(map(len, question.groups))), strict=True)
        if question.groups
        else ()
    )
    outside = [dimension for dimension in question.classes if dimension not in question.groups]
    for dimension in question.classes:
        if dimension in own:
            code = own[dimension].astype(np.int64)
        else:
            read = pa.table({dimension.name: found[f"_class_{outside.index(dimension)}"]})
            code = positions_of(read, (dimension,), (dimension,))
        at = at * len(dimension) + code
    return at


def _refuse_two_classes(records: Rows, name: str, question: SampleQuestion) -> None:
    outside = [dimension.name for dimension in question.classes if dimension not in question.groups]
    if not outside:
        return
    rows = chosen(coded(records, question), question)
    q = records.engine.q
    ends = {f"_{end}_{at}": f"{end}({q(of)})" for at, of in enumerate(outside) for end in ("min", "max")}
    groups = rows.group([d.name for d in question.groups], **ends)
    for at, of in enumerate(outside):
        several = groups.where(f"_min_{at} <> _max_{at}").number()
        if several:
            raise DataError(
                f"table '{name}', classes: '{of}' in {HOLDER}",
                expected=f"every group in one class: one '{of}' in each",
                found=f"{several:,} groups with several",
                do=f"add '{of}' to `by`, leave it out of `classes`, or correct the rows",
            )


# Count people in parts: every cell of the table is a block of its own, and a part is a range of cells.
#
# No count depends on the people of another cell, and every combination of codes is a cell: how a table is cut follows
# from its codes alone.


def is_plain_count(question: SampleQuestion) -> bool:
    """Whether a question about people asks for their number and nothing else."""
    return question.statistic == "count" and question.needs <= {"count"} and question.weight is None


def people_in_chunks(
    tables: RecordTables, questions: Mapping[str, SampleQuestion], parts: Mapping[str, int | None]
) -> dict[str, Chunked]:
    """Cut the answer to every question into parts: as many as `parts` says at most, or as its cells need.

    Each table reads its own columns of the records, when its first part is asked for: what two large tables have in
    common would often be as large as the records.
    """
    return {name: _parted(tables, question, parts.get(name)) for name, question in questions.items()}


def _parted(tables: RecordTables, question: SampleQuestion, parts: int | None) -> Chunked:
    size = ceil(question.cells / number_of_chunks(question.cells, parts))
    layout = ChunkLayout(
        dimensions=tuple(replace(dimension, public=True) for dimension in question.groups),
        starts=tuple(range(0, question.cells, size)),
        columns=("count",),
        every_block=True,
    )
    return Chunked(layout=layout, found=_cells(tables, question, size))


def _cells(tables: RecordTables, question: SampleQuestion, size: int) -> Rows:
    """The cells that hold people, in parts of `size` cells."""
    records = chosen(coded(tables.records, question), question).select(*(d.name for d in question.groups))
    placed = located(records, {dimension.name: dimension.codes for dimension in question.groups})
    # Codes that are left out are in no cell.
    placed = placed.where(*(f"{placed.engine.q(dimension.name)} >= 0" for dimension in question.groups))
    found = placed.select(_block=place_in(question.groups, placed)).group(["_block"], _count="count(*)")
    part = f"CAST({found.engine.quotient('_block', size)} AS INT)"
    return found.select(_part=part, _block="_block", _inside="CAST(0 AS BIGINT)", _count="_count")
