"""The jobs of every establishment by worker attributes, and what each adds to every cell."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.engine.chunks import located, place_in
from sfumato.engine.connect import Tables
from sfumato.engine.factors import factor_table
from sfumato.engine.headcounts import jobs_by_establishment, rows_with_jobs, whole_workforces
from sfumato.engine.query import Rows, text, texts, total
from sfumato.frame.data import Frame
from sfumato.noise.factors import Factors
from sfumato.statistics.jobs.question import Question

# Establishment groups: the jobs of every establishment by worker attributes, in one scan for all questions.

_EMPLOYERS = frozenset({"largest_employer", "count_below_threshold"})
"""Columns that need the whole workforce of every establishment beside the cells."""


@dataclass(frozen=True, kw_only=True)
class EstablishmentGroups:
    """The jobs of each establishment, counted by groups of workers: what every table is made of.

    Columns of the engine's tables begin with an underscore, which no attribute does: whatever an office calls its
    columns, they cannot be mixed up.
    """

    frame: Frame
    tables: Tables
    codes: Mapping[str, tuple[str, ...]]
    """Of the worker attributes that any question uses; a group has its place among them, −1 for any other code."""
    groups: Rows
    factors: Rows | None
    """Of each establishment, where a question needs distorted sums."""
    amounts: Mapping[str, str] = field(default_factory=dict)
    """The column with what jobs have together of each measure that any question adds up, beside `_jobs`."""
    coarser: Mapping[tuple[str, ...], Rows] = field(default_factory=dict)
    """Groups by fewer attributes that several questions use."""

    def by(self, attributes: Collection[str], measure: str | None = None) -> Rows:
        """The jobs of each establishment by some of the attributes; by none, its whole workforce.

        `_jobs` is their number, or what they have of a measure.
        """
        names = tuple(name for name in self.codes if name in attributes)
        found = self.grouped(names)
        return found if measure is None else found.select("_workplace", *names, _jobs=self.amounts[measure])

    def grouped(self, names: tuple[str, ...]) -> Rows:
        """The jobs of each establishment by some of the attributes, with all that is added up."""
        if len(names) == len(self.codes):
            return self.groups
        if names in self.coarser:
            return self.coarser[names]
        if not names and (whole := whole_workforces(self.frame, self.tables)) is not None:
            return whole
        sums = {column: total(column) for column in ("_jobs", *self.amounts.values())}
        return self.groups.group(["_workplace", *names], **sums)


@contextmanager
def establishment_groups(
    frame: Frame,
    tables: Tables,
    questions: Mapping[Any, Question],
    factors: Factors | None,
) -> Iterator[EstablishmentGroups]:
    """Count what all questions need; what is used more than once is kept by the engine until the end."""
    codes = _worker_codes(frame, questions)
    caps = {question.measure: question.cap for question in questions.values() if question.measure is not None}
    counted = EstablishmentGroups(
        frame=frame,
        tables=tables,
        codes=codes,
        groups=_counted(frame, tables, codes, [_cut(tables, *one) for one in caps.items()]),
        factors=needed_factors(frame, tables, questions, factors),
        amounts={measure: _amount(place) for place, measure in enumerate(caps)},
    )
    uses = _uses(frame, questions, tuple(codes))
    with ExitStack() as kept:
        if uses.total() > 1:
            counted = replace(counted, groups=kept.enter_context(counted.groups.kept()))
        several = [names for names, times in uses.items() if times > 1 and names != tuple(codes)]
        coarser = {names: kept.enter_context(counted.grouped(names).kept()) for names in several}
        yield replace(counted, coarser=coarser)


def needed_factors(
    frame: Frame, tables: Tables, questions: Mapping[Any, Question], factors: Factors | None
) -> Rows | None:
    """The factor of every establishment, if any question needs distorted sums."""
    if not any("distorted" in question.needs for question in questions.values()):
        return None
    if factors is None:
        raise ValueError("distorted sums need factors")
    return factor_table(frame, tables, factors)


def _uses(frame: Frame, questions: Mapping[Any, Question], names: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    """How often groups by each set of attributes are read."""
    uses: Counter[tuple[str, ...]] = Counter()
    for question in questions.values():
        used = question.worker_attributes(frame)
        uses[tuple(name for name in names if name in used)] += 1
        if _EMPLOYERS & question.needs:
            uses[()] += 1
    return uses


def _worker_codes(frame: Frame, questions: Mapping[Any, Question]) -> dict[str, tuple[str, ...]]:
    """The codes of every worker attribute that any question uses, in one order for all of them."""
    found: dict[str, dict[str, None]] = {}
    for question in questions.values():
        used = {dimension.name: dimension.codes for dimension in question.by}
        for name in question.worker_attributes(frame):
            found.setdefault(name, {}).update(dict.fromkeys((*used.get(name, ()), *question.where.get(name, ()))))
    return {name: tuple(codes) for name, codes in found.items()}


def _amount(place: int) -> str:
    """The column with what is added up of a measure."""
    return f"_amount{place}"


def _cut(tables: Tables, measure: str, cap: int | None) -> str:
    """What one job adds of a measure: no more than its cap.

    It is cut before it is made a whole number of 64 bits, which not all that files hold can be. Values are whole, and
    a cap is below 2^53: in binary numbers of any size they compare as they are.
    """
    value = tables.engine.q(measure)
    whole = f"CAST({value} AS BIGINT)"
    return whole if cap is None else f"CASE WHEN CAST({value} AS DOUBLE) >= {cap} THEN {cap} ELSE {whole} END"


def _counted(frame: Frame, tables: Tables, codes: Mapping[str, tuple[str, ...]], cut: Sequence[str]) -> Rows:
    """The one scan of the jobs. A job with a code that no question uses is in no cell, but in its establishment.

    `cut` are amounts of a job that are added up beside.
    """
    if not codes and (whole := whole_workforces(frame, tables)) is not None:
        return whole
    q = tables.engine.q
    jobs, heads = rows_with_jobs(frame, tables.jobs)
    of_workers = [name for name in codes if tables.workers is not None and name in tables.workers.columns]
    of_jobs = [name for name in codes if name not in of_workers]
    amounts = {_amount(place): amount for place, amount in enumerate(cut)}
    kept = {"_workplace": q(frame.jobs.workplace), **texts(jobs, of_jobs), **heads, **amounts}
    if of_workers and tables.workers is not None and frame.workers is not None and frame.jobs.worker:
        workers = tables.workers
        named = workers.select(_worker=q(frame.workers.key), **texts(workers, of_workers))
        people = located(named, {name: codes[name] for name in of_workers})
        selected = jobs.select(_worker=q(frame.jobs.worker), **kept).join(people, ["_worker"])
    else:
        selected = jobs.select(**kept)
    placed = located(selected, {name: codes[name] for name in of_jobs})
    return jobs_by_establishment(frame, placed, codes, **{name: total(name) for name in amounts})


# Contributions: the jobs of every establishment in every cell, for what is done to establishments before summing.


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """Who contributes how much to which cell: confidential, and many times larger than the cells.

    Row i says that establishment `unit[i]` has `jobs[i]` jobs in cell `cell[i]`. Establishments are numbered from 0,
    `units` holds their names; an establishment without jobs has no row.
    """

    units: tuple[str, ...]
    unit: Integers
    cell: Integers
    jobs: Integers
    cells: int
    """The number of cells, also those without any row."""

    @property
    def sizes(self) -> Integers:
        """The jobs of every establishment in all cells together."""
        return np.bincount(self.unit, weights=self.jobs, minlength=len(self.units)).astype(np.int64)

    def sums(self, factors: Integers) -> Integers:
        """The cells, when the jobs of every establishment are multiplied by its whole factor.

        Sums below 2^53 are exact.
        """
        weighted = np.bincount(self.cell, weights=factors[self.unit] * self.jobs, minlength=self.cells)
        return weighted.astype(np.int64)


def contributions(frame: Frame, tables: Tables, question: Question, cells: Cells) -> Contributions:
    """The jobs of every establishment in the cells that tabulation found for a question without `where`."""
    if question.where or tables.workplaces is None or frame.workplaces is None:
        raise ValueError("contributions are counted for whole populations with a table of workplaces")
    register = tables.workplaces
    public = {dimension.name: dimension.codes for dimension in question.by if frame.is_public(dimension.name)}
    key = frame.workplaces.key
    named = register.select(_workplace=tables.engine.q(key), _unit=text(register, key), **texts(register, public))
    with establishment_groups(frame, tables, {"": Question(by=question.by)}, None) as counted:
        placed = counted.groups.join(located(named, public), ["_workplace"])
        found = placed.select("_jobs", "_unit", _position=place_in(question.by, placed)).fetch()
    encoded = found["_unit"].combine_chunks().dictionary_encode()
    return Contributions(
        units=tuple(encoded.dictionary.to_pylist()),
        unit=encoded.indices.to_numpy().astype(np.int64),
        cell=np.searchsorted(cells.positions, found["_position"].to_numpy()),
        jobs=found["_jobs"].to_numpy().astype(np.int64),
        cells=len(cells),
    )
