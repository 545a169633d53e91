"""Pairs of employers: which share workers, and between which workers moved."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells
from sfumato.engine.chunks import positions_of
from sfumato.engine.connect import Tables
from sfumato.engine.panel import bits_of, calendar, gathered, panel, words
from sfumato.engine.query import Rows, text, texts, times, total
from sfumato.errors import DataError, ReleaseError
from sfumato.frame.data import Frame
from sfumato.frame.periods import Span
from sfumato.noise.factors import CHARACTERS, Factors, takes_first
from sfumato.noise.keyed import Keyed, hashes
from sfumato.statistics.panel.question import BEHIND, PairQuestion, Selection
from sfumato.statistics.panel.tabulate_graph import employer_edges, numbered, people
from sfumato.statistics.panel.tabulate_workers import PairSums, ends_of_workers, worker_pairs

# Identifiers of employers, where a rule depends on how they are written.


def refuse_other_lengths(frame: Frame, tables: Tables) -> None:
    """Refuse identifiers that the rule for twelve characters cannot read; messages quote none of them."""
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("edges need the table of workplaces")
    name = text(tables.workplaces, frame.workplaces.key)
    others = tables.workplaces.number(times(f"length({name}) <> {CHARACTERS}"))
    if others:
        raise DataError(
            f"workplaces, key '{frame.workplaces.key}'",
            expected=f"identifiers of {CHARACTERS} characters, which the rule for edges compares at places 8 and 9",
            found=f"{others:,} of another length",
            do='write edges = "keyed" in the tables of flows and graphs, or correct the identifiers',
        )


# Moves: who left one employer and joined another in the same period of a panel.


@contextmanager
def moves(frame: Frame, tables: Tables) -> Iterator[Rows]:
    """Every move of a `_worker` out of the employer `_from` into the employer `_to`, in the `_period` as text.

    A worker leaves an employer in the last period with earnings before one without, and joins in the first after one
    without; so there are no moves in the first and in the last period of the panel, where one cannot tell.
    """
    numbers, periods = words(_span(frame)), calendar(frame, tables)
    with _changes(frame, tables, periods).kept() as jobs:
        left = jobs.where(_any(f"_left{w}" for w in numbers))
        left = left.select("_worker", *(f"_left{w}" for w in numbers), _from="_workplace")
        joined = jobs.where(_any(f"_joined{w}" for w in numbers))
        joined = joined.select("_worker", *(f"_joined{w}" for w in numbers), _to="_workplace")
        met = left.join(joined, ["_worker"])
        moved = met.select("_worker", "_from", "_to", **{f"_moved{w}": f"_left{w} & _joined{w}" for w in numbers})
        moved = moved.where("_from <> _to", _any(f"_moved{w}" for w in numbers))
        spread = moved.join(periods.with_columns(_period=text(periods, "_written")), (), "cross")
        when = _any(f"_moved{w} & _now{w}" for w in numbers)
        yield spread.where(when).select("_worker", "_from", "_to", "_period")


def available_periods(frame: Frame) -> tuple[str, ...]:
    """The periods of a panel in which moves can be seen: all but the first and the last."""
    return _span(frame).codes()[1:-1]


def _changes(frame: Frame, tables: Tables, periods: Rows) -> Rows:
    """Each worker once at each employer joined or left, with the periods of both as bits of whole numbers.

    One pass over the jobs: of every period with earnings, the bit of itself, of the next and of the one before are
    gathered. A worker joined in a period that has earnings and does not follow one that has. In the first period
    everybody could have joined before, in the last everybody could stay: they count as no change.
    """
    span, period, earnings, worker = panel(frame)
    q = tables.engine.q
    paid = tables.jobs.where(f"{q(earnings)} > 0")
    rows = paid.select(_worker=q(worker), _workplace=q(frame.jobs.workplace), _written=q(period))
    every = {name: bit for bits in ("_now", "_after", "_before") for name, bit in gathered(span, bits=bits).items()}
    jobs = rows.join(periods, ["_written"]).group(["_worker", "_workplace"], **every)
    changes, end = {}, len(span.codes()) - 1
    for w in words(span):
        later, earlier = (bits_of(*ends, word=w, periods=end + 1) for ends in ((1, end), (0, end - 1)))
        changes[f"_joined{w}"] = f"_now{w} & {later} & ~_after{w}"
        changes[f"_left{w}"] = f"_now{w} & {earlier} & ~_before{w}"
    return jobs.select("_worker", "_workplace", **changes).where(_any(changes))


def _span(frame: Frame) -> Span:
    if frame.span is None:
        raise ReleaseError(
            "data, jobs",
            expected="a panel: job-to-job flows follow workers from one period to the next",
            found="jobs without a period",
            do="describe `period`, `first`, `last` and `earnings` of the jobs, or ask for a graph",
        )
    return frame.span


def _any(bits: Iterable[str]) -> str:
    """The condition that any of these whole numbers has a bit."""
    return " OR ".join(f"({number}) <> 0" for number in bits)


# Pairs of employers that share workers, or between which workers moved.


def pairs(frame: Frame, tables: Tables, questions: Mapping[str, PairQuestion], factors: Factors) -> dict[str, Cells]:
    """Answer every question with its cells: the columns of `SUMS`, and the number of distinct pairs as `edges`.

    Every combination of codes is listed, also those without pairs; of undirected pairs each unordered combination
    once. The jobs are scanned once for all graphs of employers with the same selection, and once for all flows.
    """
    for question in questions.values():
        _refuse_senseless(question)
    flows = [q for q in questions.values() if q.kind == "flow"]
    of_workers = _worker_pairs(frame, tables, questions, factors)
    answers: dict[str, Cells] = {}
    edges: dict[Selection, pa.Table] = {}
    # What is kept on the engine is dropped on leaving, also by an error, while the engine is still open.
    with ExitStack() as kept:
        moved = kept.enter_context(moves(frame, tables)) if flows else None
        if moved is not None and len(flows) > 1:
            moved = kept.enter_context(moved.kept())
        for name, question in questions.items():
            listed = listed_positions(question)
            if name in of_workers:
                columns = of_workers[name]
            else:
                if moved is not None and question.kind == "flow":
                    found = flows_of(frame, tables, moved, question)
                elif (found := edges.get(question.selection)) is None:
                    found = edges[question.selection] = fetch_edges(frame, tables, question.selection)
                columns = _employer_pairs(frame, tables, question, factors, listed=listed, found=found)
            answers[name] = Cells(dimensions=question.by, positions=listed, columns=columns)
    return answers


def _worker_pairs(
    frame: Frame, tables: Tables, questions: Mapping[str, PairQuestion], factors: Factors
) -> dict[str, dict[str, Integers]]:
    """The columns of the graphs of workers: one graph for every combination of the codes beside those of the ends."""
    alike: dict[Any, dict[str, PairQuestion]] = {}
    for name, question in questions.items():
        if question.between == "workers":
            alike.setdefault((question.selection, ends_of_workers(question)), {})[name] = question
    answers: dict[str, dict[str, Integers]] = {}
    for (selected, _), batch in alike.items():
        others = [d for d in next(iter(batch.values())).by if d.name in selected.by]
        parts = []
        for codes in product(*(d.codes for d in others)):
            only = {**dict(selected.where), **{d.name: (code,) for d, code in zip(others, codes, strict=True)}}
            one = replace(selected, by=(), where=tuple(sorted(only.items())))
            parts.append(worker_pairs(frame, tables, batch, factors, selected=one))
        for name in batch:
            # The combinations come last in the layout of the cells.
            answers[name] = {
                column: np.stack([part[name][column] for part in parts], axis=1).ravel() for column in parts[0][name]
            }
    return answers


def listed_positions(question: PairQuestion) -> Integers:
    """The cells of a table of pairs: all combinations, or those whose first end is not after the second."""
    ends = len(question.attributes)
    classes, others = prod(map(len, question.by[:ends])), prod(map(len, question.by[2 * ends :]))
    if question.directed:
        return np.arange(classes * classes * others, dtype=np.int64)
    first, second = np.triu_indices(classes)
    listed: Integers = np.add.outer((first * classes + second) * others, np.arange(others, dtype=np.int64)).ravel()
    return listed


def fetch_edges(frame: Frame, tables: Tables, selected: Selection) -> pa.Table:
    """The pairs of employers that share workers, by their names, and how many they share."""
    # Both ends of a loop are the same job, whose earnings count once.
    both = "_first_earnings + CASE WHEN _first = _second THEN 0 ELSE _second_earnings END"
    earned = {"_earnings": both} if selected.earnings else {}
    with employer_edges(frame, tables, selected) as edges:
        ends = texts(edges, ["_first", "_second"])
        more = {"_origin": "_first_earnings", "_destination": "_second_earnings"} if selected.earnings else {}
        return edges.select(*selected.by, **ends, _links="_workers", **earned, **more).fetch()


def flows_of(frame: Frame, tables: Tables, moved: Rows, question: PairQuestion) -> pa.Table:
    """The pairs of employers between which workers moved, in each period and class of workers that is asked for."""
    others, engine = list(question.others), tables.engine
    chosen = dict(question.selection.where)
    about = tuple(name for name in dict.fromkeys([*others, *chosen]) if name != frame.jobs.period)
    rows = moved.join(people(frame, tables, {name: name for name in about}), ["_worker"]) if about else moved
    if question.of_earnings:
        for end in ("_from", "_to"):
            rows = rows.join(pay_at(frame, tables, end), ["_worker", end, "_period"])
    earned = {"_origin": "_from_pay", "_destination": "_to_pay"} if question.of_earnings else {}
    origin, destination = text(rows, "_from"), text(rows, "_to")
    rows = rows.select(
        *about,
        _first=origin if question.directed else f"least({origin}, {destination})",
        _second=destination if question.directed else f"greatest({origin}, {destination})",
        **{str(frame.jobs.period): "_period"},
        **earned,
    )
    rows = rows.where(*(engine.among(engine.q(name), codes) for name, codes in chosen.items()))
    sums = {name: total(name) for name in earned}
    sums |= {"_earnings": total("_origin + _destination")} if earned else {}
    return rows.group(["_first", "_second", *others], _links="count(*)", **sums).fetch()


def pay_at(frame: Frame, tables: Tables, end: str) -> Rows:
    """What every worker earned at an employer in a period, under the names of one end of a move."""
    _, period, earnings, worker = panel(frame)
    jobs, q = tables.jobs, tables.engine.q
    pay = {end: q(frame.jobs.workplace), f"{end}_pay": f"CAST({q(earnings)} AS BIGINT)"}
    return jobs.where(f"{q(earnings)} > 0").select(_worker=q(worker), _period=text(jobs, period), **pay)


_LABELS = {
    "multiplicity": "_links",
    "earnings": "_earnings",
    "origin-earnings": "_origin",
    "destination-earnings": "_destination",
}
"""The column with what a pair counts, by the weight; without one it counts once."""


def _employer_pairs(
    frame: Frame, tables: Tables, question: PairQuestion, factors: Factors, *, listed: Integers, found: pa.Table
) -> dict[str, Integers]:
    """Sum pairs of employers, each with the factor of one of the two, into the listed cells."""
    employers, number = numbered(pa.chunked_array(found["_first"].chunks + found["_second"].chunks, pa.string()))
    first, second = number[: found.num_rows], number[found.num_rows :]
    ends = len(question.attributes)
    classes, as_first, as_second = classes_of_ends(frame, tables, question, employers)
    kept = as_first[first] & as_second[second]
    if not question.directed:
        kept |= as_first[second] & as_second[first]
    found, first, second = found.filter(pa.array(kept)), first[kept], second[kept]
    one, other = classes[first], classes[second]
    if not question.directed:
        one, other = np.minimum(one, other), np.maximum(one, other)
    others = question.by[2 * ends :]
    place = one * prod(map(len, question.by[:ends])) + other
    place = place * prod(map(len, others)) + positions_of(found, others, others)
    cell = np.searchsorted(listed, place)
    links = found["_links"].to_numpy().astype(np.int64)
    givers, owned = edge_givers(employers, first, second, question, factors), factors.of(hashes(employers))

    def summed(label: Integers) -> PairSums:
        return PairSums.of(cell, givers, label, factors=owned, cells=len(listed))

    label = found[_LABELS[question.weight]].to_numpy().astype(np.int64) if question.weight in _LABELS else None
    columns = summed(np.ones_like(links) if label is None else label).columns(
        deviation=factors.deviation,
        edges=np.bincount(cell, minlength=len(listed)).astype(np.int64),
        available=moves_can_be_seen(frame, question, listed),
    )
    return {**columns, **({BEHIND: summed(links).distorted} if question.of_earnings else {})}


def edge_givers(
    employers: pa.Array, first: Integers, second: Integers, question: PairQuestion, factors: Factors
) -> Integers:
    """Which of its two employers gives its factor to each pair: the same for moves there and back, in every period."""
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    edges, edge = np.unique(lower * len(employers) + upper, return_inverse=True)
    one, other = np.divmod(edges, max(len(employers), 1))
    takes = takes_first(
        employers.take(pa.array(one)), employers.take(pa.array(other)), rule=question.rule, keyed=Keyed(key=factors.key)
    )
    givers: Integers = np.where(takes, one, other)[edge]
    return givers


def classes_of_ends(
    frame: Frame, tables: Tables, question: PairQuestion, employers: pa.Array
) -> tuple[Integers, Flags, Flags]:
    """The place of every employer in the product of the codelists, and whether it may be the one and the other end."""
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("pairs of employers need the table of workplaces")
    register, ends = tables.workplaces, question.by[: len(question.attributes)]
    filters = {f"_{place}": of for place, (of, _) in enumerate(question.filters.values())}
    described = register.select(
        _name=text(register, frame.workplaces.key),
        **{end.name: text(register, of) for end, of in zip(ends, question.attributes, strict=True)},
        **{name: text(register, of) for name, of in filters.items()},
    )
    found = described.join(tables.engine.lend(pa.table({"_name": employers})), ["_name"], "semi").fetch()
    at = pc.index_in(employers, value_set=found["_name"].combine_chunks())
    if at.null_count:
        raise ValueError("an employer of a pair is not in the table of workplaces")
    inside = np.ones(found.num_rows, dtype=np.bool_)
    for end in ends:
        inside &= _among(found[end.name], end.codes)
    classes = np.zeros(found.num_rows, dtype=np.int64)
    classes[inside] = positions_of(found.filter(pa.array(inside)), ends, ends)
    may = np.stack([inside, inside])
    for column, (name, (_, sides)) in zip(filters, question.filters.items(), strict=True):
        fits = _among(found[column], question.where[name])
        may &= fits | ~np.array(sides)[:, None]
    order = at.to_numpy()
    return classes[order], may[0][order], may[1][order]


def _among(column: pa.ChunkedArray, codes: Sequence[str]) -> Flags:
    found: Flags = pc.is_in(column.cast(pa.string()), value_set=pa.array(codes, pa.string())).to_numpy()
    return found


def moves_can_be_seen(frame: Frame, question: PairQuestion, listed: Integers) -> Integers:
    """1 where the panel has a period before and after those that a cell is about; graphs need none."""
    if question.kind == "graph":
        return np.ones_like(listed)
    seen = set(available_periods(frame))
    names = [dimension.name for dimension in question.by]
    if frame.jobs.period not in names:
        kept = question.where.get(str(frame.jobs.period), tuple(seen))
        return np.full_like(listed, int(bool(seen & set(kept))))
    at = names.index(frame.jobs.period)
    by_period = np.array([code in seen for code in question.by[at].codes], dtype=np.int64)
    return by_period[np.unravel_index(listed, tuple(map(len, question.by)))[at]]


def _refuse_senseless(question: PairQuestion) -> None:
    ends = len(question.attributes)
    first, second = question.by[:ends], question.by[ends : 2 * ends]
    if not ends or [d.codes for d in first] != [d.codes for d in second]:
        raise ValueError("a table of pairs begins with the attributes of the one and of the other, with the same codes")
    if question.kind == "flow" and (question.between == "workers" or question.loops):
        raise ValueError("flows are between two employers")
    if question.between == "workers" and (question.directed or question.of_earnings):
        raise ValueError("pairs of workers have no direction, and no earnings of their own")
