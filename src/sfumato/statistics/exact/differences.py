"""What readers get who subtract a filtered table from a wider one: cells that no table shows, with rules of their own.

A table of all businesses less that of the businesses with employees is one of the businesses without. Nobody publishes
it, and everybody can make it, as far as both are shown. So its cells are part of the system, as sensitive as those of
any table, and never shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, Dimension, places
from sfumato.exact.system import System
from sfumato.statistics.exact.contributions import ExactCells, Nested, Parts, counted_cells
from sfumato.statistics.exact.question import ExactQuestion, with_total


def with_differences(
    questions: Mapping[str, ExactQuestion], parts: Mapping[str, Parts], nested: Nested
) -> dict[str, ExactCells]:
    """The cells of every table, and beside those of a filtered one what each wider table has more."""
    found = {}
    for name, question in questions.items():
        beyond = {
            whole: _cells_beyond((other, parts[whole]), (question, parts[name]), asked, nested)
            for whole, other in questions.items()
            if whole != name and (asked := _difference(other, question, nested)) is not None
        }
        found[name] = replace(counted_cells(question, parts[name], nested), beyond=beyond)
    return found


def _cells_beyond(
    whole: tuple[ExactQuestion, Parts], part: tuple[ExactQuestion, Parts], asked: ExactQuestion, nested: Nested
) -> ExactCells:
    """The cells of a difference, with its establishments where both tables tell theirs."""
    cells = counted_cells(asked, _without(whole, part, asked, nested), nested)
    if any(parts.listed is None or not question.of_workplaces for question, parts in (whole, part)):
        return cells
    public = replace(asked, by=tuple(one for one in asked.by if one.public), contributors=False)
    placed, numbers = [], []
    for (question, parts), sign in ((whole, 1), (part, -1)):
        cells_of, inner = _once_each(question)
        at = _onto(public.inner, question.inner, inner, whole[0].where, nested)
        placed.append(at[at >= 0])
        numbers.append(sign * np.asarray(parts.listed)[cells_of][at >= 0])
    number = np.concatenate(numbers)
    counted = counted_cells(public, Parts(at=np.concatenate(placed), value=number, records=number, units=()))
    sizes = [len(one) if one.public else 1 for one in asked.by]
    told = np.broadcast_to(counted["exact"].reshape(sizes), [len(one) for one in asked.by]).reshape(-1)
    return replace(cells, columns={**cells.columns, "establishments": told})


def _once_each(question: ExactQuestion) -> tuple[Integers, Integers]:
    """The cells of a table in which every establishment is once, and their positions among the inner ones."""
    codes = places(np.arange(question.cells), question.by)
    once, at = np.ones(question.cells, dtype=bool), np.zeros(question.cells, dtype=np.int64)
    for own, one in zip(codes, question.inner, strict=True):
        once &= own < len(one) if one.public else own == 0
        at = at * len(one) + own
    return np.flatnonzero(once), at[once]


def _difference(whole: ExactQuestion, part: ExactQuestion, nested: Nested) -> ExactQuestion | None:
    """What the difference of two tables asks, or None where neither holds the other or one shows the difference."""
    if (whole.measure, whole.period, whole.units) != (part.measure, part.period, part.units) or not part.where:
        return None
    if not all(_is_within(part, name, kept, nested) for name, kept in whole.where.items()):
        return None
    shown = {one.name for one in whole.by}
    narrower = {
        name
        for name, kept in part.where.items()
        if set(kept) < set(whole.where.get(name, part.codes[name]))
        and not any(one == name or (one, name) in nested for one in shown)
    }
    if not narrower:
        return None  # the rest are cells of the wider table
    by = _in_both(whole, part, narrower, nested)
    return replace(
        part,
        by=tuple(one if one.name == part.period else with_total(one) for one in by),
        margins=True,
        where={},
        top=max(whole.top, part.top),
        contributors=whole.contributors or part.contributors,
    )


def _is_within(part: ExactQuestion, name: str, kept: tuple[str, ...], nested: Nested) -> bool:
    """Whether a table, or those of its cells that a filter keeps, lies within the filter."""
    for one, codes in part.codes.items():
        if one == name or (one, name) in nested:
            above = nested.get((one, name), {code: code for code in codes})
            if one in {dimension.name for dimension in part.by}:
                return True
            if {above[code] for code in part.where.get(one, codes)} <= set(kept):
                return True
    return False


def _in_both(whole: ExactQuestion, part: ExactQuestion, narrower: set[str], nested: Nested) -> tuple[Dimension, ...]:
    """The dimensions by which both tables can be told: the same, or of two levels of one attribute the coarser."""
    inner = {one.name: one for one in whole.inner}
    found = {
        one.name: replace(one, codes=tuple(code for code in one.codes if code in set(inner[one.name].codes)))
        for one in part.inner
        if one.name in inner and one.name not in narrower
    }
    for one, other in product(part.inner, whole.inner):
        coarse = other if (one.name, other.name) in nested else one if (other.name, one.name) in nested else None
        if coarse is not None and not any(name == coarse.name or (name, coarse.name) in nested for name in found):
            found[coarse.name] = coarse
    return tuple(found.values())


def _without(
    whole: tuple[ExactQuestion, Parts], part: tuple[ExactQuestion, Parts], asked: ExactQuestion, nested: Nested
) -> Parts:
    """What units have in a wider table beyond what they have in a filtered one."""
    chosen = []
    for (question, parts), sign in ((whole, 1), (part, -1)):
        at = _onto(asked.inner, question.inner, parts.at, whole[0].where, nested)
        own = parts.value if parts.contribution is None else parts.contribution
        asked_for = np.ones(len(at), dtype=bool) if parts.asked is None else parts.asked
        inside = at >= 0
        columns = (parts.value * sign, parts.records * sign, own * sign, asked_for, *parts.units)
        chosen.append([at[inside], *(column[inside] for column in columns)])
    at, value, records, own, asked_for, *units = (np.concatenate(pair) for pair in zip(*chosen, strict=True))
    return Parts(
        at=at,
        value=value,
        records=records,
        units=tuple(units),
        contribution=own,
        asked=asked_for,
        parts=whole[1].parts,
        ranks=whole[1].ranks,
    )


def _onto(
    by: tuple[Dimension, ...],
    inner: tuple[Dimension, ...],
    at: Integers,
    where: Mapping[str, tuple[str, ...]],
    nested: Nested,
) -> Integers:
    """Positions among inner cells of a table, as positions in some dimensions, coarser ones too.

    What does not lie in these, or in the filters of the wider table, is at −1.
    """
    own = dict(zip([one.name for one in inner], places(at, inner), strict=True))
    listed = {one.name: one.codes for one in inner}

    def moved(name: str, codes: Sequence[str]) -> Integers:
        """For every position the place among some codes of an attribute; 0 where the table does not tell it."""
        place = {code: number for number, code in enumerate(codes)}
        for one, fine in listed.items():
            if one == name or (one, name) in nested:
                above = nested.get((one, name), {code: code for code in fine})
                return np.array([place.get(above[code], -1) for code in fine], dtype=np.int64)[own[one]]
        return np.zeros(len(at), dtype=np.int64)

    found, inside = np.zeros(len(at), dtype=np.int64), np.ones(len(at), dtype=bool)
    for one in by:
        place = moved(one.name, one.codes)
        inside &= place >= 0
        found = found * len(one) + place
    for name, kept in where.items():
        inside &= moved(name, kept) >= 0
    return np.where(inside, found, -1)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One table less another."""

    whole: str
    part: str
    cells: ExactCells

    @property
    def name(self) -> str:
        """What it is called among tables."""
        return f"{self.whole} without {self.part}"


def differences(batch: Mapping[str, tuple[Any, Cells]]) -> Iterator[Difference]:
    """Every difference of two of some tables."""
    for part, (_, cells) in batch.items():
        for whole, rest in getattr(cells, "beyond", {}).items():
            if whole in batch:
                yield Difference(whole=whole, part=part, cells=rest)


def with_unshown(
    system: System,
    located: Mapping[str, Integers],
    tables: Mapping[str, tuple[ExactQuestion, Cells]],
    more: Mapping[str, Difference],
    *,
    zeros_known: bool,
) -> tuple[System, dict[str, Integers]]:
    """A system with the cells of differences, which nobody shows, and where the cells of all tables are in it."""
    places_of, blocks, values, size = dict(located), [], [system.value], len(system)
    for name, one in more.items():
        exact = one.cells["exact"]
        listed = exact != 0 if zeros_known else np.ones(len(exact), dtype=bool)
        variable = np.where(listed, size + np.cumsum(listed) - 1, -1)
        places_of[name] = variable
        values.append(exact[listed].astype(np.float64))
        blocks += list(_sums_of(one, variable, located, tables))
        size += int(listed.sum())
    if not blocks:
        return system, places_of
    rows = np.concatenate([row + begin for (row, *_), begin in zip(blocks, _begins(blocks), strict=True)])
    columns, signs = (np.concatenate([block[at] for block in blocks]) for at in (1, 2))
    shape = (sum(block[3] for block in blocks), size)
    known = columns >= 0
    more_equations = sparse.csr_matrix((signs[known], (rows[known], columns[known])), shape=shape)
    more_equations.sum_duplicates()
    more_equations.eliminate_zeros()
    more_equations = more_equations[np.flatnonzero(np.diff(more_equations.indptr) > 0)]
    own = system.equations.tocsr().copy()
    own.resize((own.shape[0], size))
    extra = size - len(system)
    everything = np.concatenate(values)
    found = System(
        value=everything,
        equations=sparse.vstack([own, more_equations], format="csr"),
        lower=np.concatenate([system.lower, np.full(extra, 1.0 if zeros_known else 0.0)]),
        upper=np.concatenate([system.upper, np.full(extra, np.inf)]),
        places=system.places,
        hidden=np.concatenate([system.hidden, np.ones(extra, dtype=bool)]),
    )
    return found.with_implied_bounds(), places_of


_Block = tuple[Integers, Integers, Any, int]
"""Rows, columns and signs of equations, and how many equations there are; a column of −1 is a known zero."""


def _begins(blocks: list[_Block]) -> list[int]:
    return [sum(block[3] for block in blocks[:at]) for at in range(len(blocks))]


def _sums_of(
    one: Difference,
    variable: Integers,
    located: Mapping[str, Integers],
    tables: Mapping[str, tuple[ExactQuestion, Cells]],
) -> Iterator[_Block]:
    """That inner cells of a difference are what one table has less the other, and its totals the sums of these."""
    by = one.cells.dimensions
    inner = tuple(replace(d, codes=d.codes[:-1]) if d.codes[-1] == "total" else d for d in by)
    codes = [one.cells.codes(d.name) for d in by]
    is_inner: Flags = np.ones(len(one.cells), dtype=bool)
    at = np.zeros(len(one.cells), dtype=np.int64)
    for code, own in zip(codes, inner, strict=True):
        is_inner &= code < len(own)
        at = at * len(own) + code
    of_inner = variable[is_inner][np.argsort(at[is_inner])]
    number = len(of_inner)
    rows, columns, signs = [np.arange(number)], [of_inner], [-np.ones(number)]
    for name, sign in ((one.whole, 1.0), (one.part, -1.0)):
        question, cells = tables[name]
        finest, place = _inner_cells(question, cells)
        onto = _onto(inner, question.inner, place, tables[one.whole][0].where, one.cells.nested)
        rows.append(onto[onto >= 0])
        columns.append(located[name][finest][onto >= 0])
        signs.append(np.full(int((onto >= 0).sum()), sign))
    yield np.concatenate(rows), np.concatenate(columns), np.concatenate(signs), number
    for axis, (dimension, own) in enumerate(zip(by, inner, strict=True)):
        if len(dimension) == len(own):
            continue
        shaped = variable.reshape([len(d) for d in by])
        total = np.take(shaped, len(own), axis=axis).reshape(-1)
        below = np.moveaxis(np.take(shaped, range(len(own)), axis=axis), axis, -1).reshape(len(total), len(own))
        row = np.arange(len(total))
        yield (
            np.concatenate([row, np.repeat(row, len(own))]),
            np.concatenate([total, below.reshape(-1)]),
            np.concatenate([-np.ones(len(total)), np.ones(below.size)]),
            len(total),
        )


def _inner_cells(question: ExactQuestion, cells: Cells) -> tuple[Integers, Integers]:
    """The cells of a table that are no totals, and their positions among the inner ones."""
    is_inner, at = np.ones(len(cells), dtype=bool), np.zeros(len(cells), dtype=np.int64)
    for own in question.inner:
        code = cells.codes(own.name)
        is_inner &= code < len(own)
        at = at * len(own) + code
    return np.flatnonzero(is_inner), at[is_inner]
