"""Pairs of employers: which share workers, and between which workers moved."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.engine.chunks import positions_of
from sfumato.engine.connect import Tables
from sfumato.engine.panel import bits_of, calendar, gathered, panel, words
from sfumato.engine.query import Rows, text, texts, times
from sfumato.errors import DataError, ReleaseError
from sfumato.frame import Frame
from sfumato.noise.factors import CHARACTERS, Factors, takes_first
from sfumato.noise.keyed import Keyed, hashes
from sfumato.periods import Span
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.panel.tabulate_graph import employer_edges, numbered
from sfumato.statistics.panel.tabulate_workers import PairSums, people, worker_pairs

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
    once. The jobs are scanned once for all graphs of employers, once for those of workers, and once for all flows.
    """
    for question in questions.values():
        _refuse_senseless(question)
    graphs = [q for q in questions.values() if q.kind == "graph" and q.between == "employers"]
    flows = [q for q in questions.values() if q.kind == "flow"]
    edges = _edges(frame, tables) if graphs else None
    colleagues = {name: q for name, q in questions.items() if q.between == "workers"}
    of_workers = worker_pairs(frame, tables, colleagues, factors) if colleagues else {}
    answers = {}
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
                found = edges if moved is None or question.kind == "graph" else _flows(frame, tables, moved, question)
                columns = _employer_pairs(frame, tables, question, factors, listed=listed, found=found)
            answers[name] = Cells(dimensions=question.by, positions=listed, columns=columns)
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


def _edges(frame: Frame, tables: Tables) -> pa.Table:
    with employer_edges(frame, tables) as edges:
        return edges.select(**texts(edges, ["_first", "_second"]), _links="_workers").fetch()


def _flows(frame: Frame, tables: Tables, moved: Rows, question: PairQuestion) -> pa.Table:
    """The pairs of employers between which workers moved, in each period and class of workers that is asked for."""
    others = [dimension.name for dimension in question.by[2 * len(question.attributes) :]]
    about = tuple(name for name in dict.fromkeys([*others, *question.where]) if name != frame.jobs.period)
    rows = moved.join(people(frame, tables, {name: name for name in about}), ["_worker"]) if about else moved
    origin, destination = text(rows, "_from"), text(rows, "_to")
    rows = rows.select(
        *about,
        _first=origin if question.directed else f"least({origin}, {destination})",
        _second=destination if question.directed else f"greatest({origin}, {destination})",
        **{str(frame.jobs.period): "_period"},
    )
    engine = tables.engine
    rows = rows.where(*(engine.among(engine.q(name), codes) for name, codes in question.where.items()))
    return rows.group(["_first", "_second", *others], _links="count(*)").fetch()


def _employer_pairs(
    frame: Frame, tables: Tables, question: PairQuestion, factors: Factors, *, listed: Integers, found: pa.Table
) -> dict[str, Integers]:
    """Sum pairs of employers, each with the factor of one of the two, into the listed cells."""
    employers, number = numbered(pa.chunked_array(found["_first"].chunks + found["_second"].chunks, pa.string()))
    first, second = number[: found.num_rows], number[found.num_rows :]
    ends = len(question.attributes)
    classes = _classes(frame, tables, question, employers)
    one, other = classes[first], classes[second]
    if not question.directed:
        one, other = np.minimum(one, other), np.maximum(one, other)
    others = question.by[2 * ends :]
    place = one * prod(map(len, question.by[:ends])) + other
    place = place * prod(map(len, others)) + positions_of(found, others, others)
    cell = np.searchsorted(listed, place)
    links = found["_links"].to_numpy().astype(np.int64)
    sums = PairSums.of(
        cell,
        _givers(employers, first, second, question, factors),
        links if question.weight == "multiplicity" else np.ones_like(links),
        factors=factors.of(hashes(employers)),
        cells=len(listed),
    )
    return sums.columns(
        deviation=factors.deviation,
        edges=np.bincount(cell, minlength=len(listed)).astype(np.int64),
        available=_available(frame, question, listed),
    )


def _givers(
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


def _classes(frame: Frame, tables: Tables, question: PairQuestion, employers: pa.Array) -> Integers:
    """The place of every employer in the product of the codelists of the attributes."""
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("pairs of employers need the table of workplaces")
    register, ends = tables.workplaces, question.by[: len(question.attributes)]
    described = register.select(
        _name=text(register, frame.workplaces.key),
        **{end.name: text(register, of) for end, of in zip(ends, question.attributes, strict=True)},
    )
    found = described.join(tables.engine.lend(pa.table({"_name": employers})), ["_name"], "semi").fetch()
    at = pc.index_in(employers, value_set=found["_name"].combine_chunks())
    if at.null_count:
        raise ValueError("an employer of a pair is not in the table of workplaces")
    classes: Integers = positions_of(found, ends, ends)[at.to_numpy()]
    return classes


def _available(frame: Frame, question: PairQuestion, listed: Integers) -> Integers:
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
    if question.kind == "graph" and (question.directed or question.where or len(question.by) > 2 * ends):
        raise ValueError("a graph is undirected and about all jobs, by the attributes of its ends alone")
    if question.kind == "flow" and question.between == "workers":
        raise ValueError("flows are between employers")
