"""How large an establishment of each cell can be, going by finer published tables; docs/errors.md has the proofs.

Noise follows the largest establishment of a cell, which is confidential. Error figures have to suppose the worst, that
it has all jobs of the cell. But it lies in one workplace cell of every finer table, and is no larger than what is
counted there. Only published numbers go in, so nothing is charged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.method import FOR_THE_LARGEST, FollowsLargest, Method, bought_steps, measured_largest, most_jobs

LARGEST = "largest_possible"
"""The column of what is shown of a table that has the most workers an establishment of each cell can have."""
NO_LIMIT = 2**62
"""In that column: nothing is known."""


class PublicFacts(Protocol):
    """What everyone knows of attributes; the data of a release are it."""

    def is_public(self, attribute: str) -> bool:
        """Whether an attribute describes workplaces."""
        ...

    def codes_above(self, fine: str, coarse: str, codes: Iterable[str], *, register: bool) -> Mapping[str, str] | None:
        """The code of one attribute that each of some codes of a finer one lies in; None where none follows.

        It may follow from the public register of establishments, unless a table does not tell where there are any.
        """
        ...

    def most_workers(self, attribute: str) -> Mapping[str, int]:
        """The most workers that an establishment has, by its code of an attribute; of codes without a limit, none."""
        ...


class CountsJobs(Protocol):
    """A table that may tell of another how large its establishments can be, or be told so."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def by(self) -> tuple[Dimension, ...]:
        """Its dimensions."""
        ...

    @property
    def where(self) -> Mapping[str, tuple[str, ...]]:
        """The codes that are kept of some attributes."""
        ...

    @property
    def method(self) -> Method:
        """How it is protected."""
        ...

    @property
    def counts_jobs_formally(self) -> bool:
        """Whether its values are counts of jobs with noise that a guarantee is about, one for every cell."""
        ...

    @property
    def tells_establishments(self) -> bool:
        """Whether it may tell where there is an establishment."""
        ...

    @property
    def in_chunks(self) -> bool:
        """Whether it is made chunk by chunk, and never seen as a whole."""
        ...

    @property
    def spends(self) -> Any:
        """The epsilon of the whole table: of two tables about the same cells, the one with more is more exact."""
        ...


Some = TypeVar("Some", bound=CountsJobs)


@dataclass(frozen=True, kw_only=True)
class Finer:
    """A table that tells how large the establishments of another can be, and which of its cells of which."""

    table: Any
    codes: Mapping[str, tuple[str, Mapping[str, str]]]
    """By public dimension of the other table, or filter of it: the own dimension, and the code there of each own code.

    Own codes that are not listed hold nothing that the other table counts."""
    whole: bool
    """Whether all public dimensions of the other table are among these: each own cell then lies in one of its cells."""
    sizes: Mapping[str, Mapping[str, int]]
    """By own dimension, the most workers that an establishment with a code of it has, as everyone knows."""
    overall: float = np.inf
    """The same of all that it counts, by what `where` keeps."""

    def tells_values(self, of: str) -> bool:
        """Whether its values tell anything: those of the table itself do not, only public and bought sizes do."""
        return bool(self.table.name != of)

    def may_miss(self, of: str) -> bool:
        """Whether what it tells may be wrong: public sizes are sure, values and bought scales are not."""
        return self.tells_values(of) or buys_scale(self.table)

    def told(self, of: str, piece: Cells, miss: float) -> Floats | None:
        """The most workers of an establishment in each workplace cell of a piece; None where it has to miss nothing.

        Values and bought scales each have half of what may be missed.
        """
        bought = buys_scale(self.table)
        share = miss / 2 if bought and self.tells_values(of) else miss
        measured = measured_largest(self.table.method, piece, share) if bought else None
        if measured is not None:
            measured = measured[piece.blocks()[:, 0]]
        if not self.tells_values(of):
            return measured
        counted = most_jobs(self.table.method, piece, share)
        return counted if measured is None else np.minimum(counted, measured)

    def limits(self, piece: Cells) -> Floats:
        """The most workers that an establishment of each cell has, as everyone knows."""
        found = np.full(len(piece), self.overall)
        for dimension in piece.dimensions:
            sizes = self.sizes.get(dimension.name)
            if sizes:
                known = np.array([sizes.get(code, np.inf) for code in dimension.codes])
                found = np.minimum(found, known[piece.codes(dimension.name)])
        return found


_WORTH = 4
"""A table that lacks dimensions of another is asked if it cuts jobs into so many times as many cells as these would."""


def finer_tables(table: Some, tables: Iterable[Some], facts: PublicFacts) -> tuple[Finer, ...]:
    """The tables that tell how large the establishments of a table can be, chosen by public facts alone.

    A table that another one refines, at no less epsilon, has nothing to add.
    """
    if table.in_chunks or not (table.counts_jobs_formally and isinstance(table.method, FollowsLargest)):
        return ()
    others = [other for other in tables if other.name != table.name]
    found = [finer for other in others if (finer := finer_than(other, table, facts)) is not None]

    def adds_nothing(one: Finer) -> bool:
        refined = (
            finer_than(other.table, one.table, facts) for other in found if other.table.spends >= one.table.spends
        )
        return any(by is not None and by.whole for by in refined)

    chosen, itself = [one for one in found if not adds_nothing(one)], public_sizes(table, facts)
    known = itself.sizes or itself.overall < np.inf or buys_scale(table)
    return (*chosen, itself) if known else tuple(chosen)


def buys_scale(table: CountsJobs) -> bool:
    """Whether a table has bought how large its establishments are."""
    return bought_steps(table.method) > 0


def public_sizes(table: CountsJobs, facts: PublicFacts) -> Finer:
    """What a table tells of itself, by public sizes alone."""
    own = {one.name: (one.name, {code: code for code in one.codes}) for one in table.by if one.public}
    return Finer(table=table, codes=own, whole=True, **_sizes(table, facts))


def _sizes(table: CountsJobs, facts: PublicFacts) -> dict[str, Any]:
    """What everyone knows of the sizes of establishments, by the dimensions of a table and by what it keeps."""
    kept = {name: [facts.most_workers(name).get(code, np.inf) for code in codes] for name, codes in table.where.items()}
    sizes = {one.name: known for one in table.by if one.public and (known := facts.most_workers(one.name))}
    return {"sizes": sizes, "overall": min((max(limits) for limits in kept.values() if limits), default=np.inf)}


def finer_than(finer: CountsJobs, table: CountsJobs, facts: PublicFacts) -> Finer | None:
    """How a table tells of another: it counts all its jobs, and public attributes tell more of them apart."""
    if not finer.counts_jobs_formally or (finer.tells_establishments and not table.tells_establishments):
        return None
    kept = {dimension.name: frozenset(dimension.codes) for dimension in table.by}
    kept |= {name: frozenset(codes) for name, codes in table.where.items()}
    if any(name not in kept or not kept[name] <= frozenset(codes) for name, codes in finer.where.items()):
        return None
    if not all(map(facts.is_public, finer.where)):  # noise may follow whole workforces, of which it counts a part
        return None
    public = {dimension.name: dimension for dimension in finer.by if dimension.public}
    inside = [dimension for dimension in table.by if dimension.public]
    register = table.tells_establishments and finer.tells_establishments
    found = {one.name: _codes(one, public.values(), partial(facts.codes_above, register=register)) for one in inside}
    codes = {name: own for name, own in found.items() if own is not None}
    lacks = prod(len(one) for one in inside if one.name not in codes)
    known = prod(len(one) for one in inside if one.name in codes)
    # Of what `where` keeps, cells of other codes hold nothing that the table counts.
    for name, chosen in table.where.items():
        if name in public and name not in codes:
            codes[name] = (name, {code: code for code in public[name].codes if code in chosen})
    used = {own: len(lies) for own, lies in codes.values()}
    cuts = prod(used.get(name, len(one)) for name, one in public.items()) / max(known, 1)
    if cuts <= 1 or (lacks > 1 and cuts < _WORTH * lacks):
        return None
    return Finer(table=finer, codes=codes, whole=lacks == 1, **_sizes(finer, facts))


def _codes(
    dimension: Dimension, finer: Iterable[Dimension], above: Callable[..., Mapping[str, str] | None]
) -> tuple[str, Mapping[str, str]] | None:
    """The dimension of a finer table that tells the codes of one, and which."""
    for other in finer:
        if other.name == dimension.name:
            return other.name, {code: code for code in other.codes if code in dimension.places}
    for other in finer:
        lies = above(other.name, dimension.name, other.codes)
        if lies is not None:
            return other.name, {code: lies[code] for code in other.codes if lies.get(code) in dimension.places}
    return None


def related_attributes(tables: Sequence[CountsJobs]) -> frozenset[tuple[str, str]]:
    """Pairs of public attributes of which the first may tell the second, in tables that tell of establishments."""
    formal = [table for table in tables if table.counts_jobs_formally and table.tells_establishments]
    by = [frozenset(dimension.name for dimension in table.by if dimension.public) for table in formal]
    return frozenset((fine, coarse) for one in by for other in by for fine in one - other for coarse in other - one)


def with_largest(
    answers: Mapping[str, Cells], pieces: Mapping[str, Iterable[Cells]], finer: Mapping[str, Sequence[Finer]]
) -> dict[str, Cells]:
    """The answers, each with the most workers an establishment of its cells can have, where finer tables tell.

    `pieces` has the answers whose values tell it, each as one or several pieces of whole workplace cells; they are gone
    through once. `finer` has the tables that tell of each.
    """
    told = {name: [one for one in some if one.table.name in pieces] for name, some in finer.items() if name in answers}
    limits = {name: [_Limit.of(answers[name], one) for one in some] for name, some in told.items()}
    telling = dict.fromkeys(one.table.name for some in told.values() for one in some)
    for source in telling:
        asking = [(name, one) for name, some in limits.items() for one in some if one.finer.table.name == source]
        # Public sizes are sure: only what may be wrong has a share of what intervals may miss.
        shares = {name: sum(one.finer.may_miss(name) for one in limits[name]) for name, _ in asking}
        for piece in pieces[source]:
            most: dict[tuple[int, bool], Floats | None] = {}
            for name, limit in asking:
                kind = shares[name], limit.finer.tells_values(name)
                if kind not in most and limit.finer.may_miss(name):
                    most[kind] = limit.finer.told(name, piece, FOR_THE_LARGEST / shares[name])
                limit.take(piece, most.get(kind))
    found = dict(answers)
    for name, some in limits.items():
        if some:
            least = np.minimum(np.min([one.found() for one in some], axis=0), float(NO_LIMIT))
            found[name] = answers[name].with_column(LARGEST, least.astype(np.int64))
    return found


def largest_of(shown: Cells) -> Floats | None:
    """The most workers an establishment of each cell can have, where finer tables tell; infinite where they do not."""
    if LARGEST not in shown.columns:
        return None
    limits: Floats = np.where(shown[LARGEST] == NO_LIMIT, np.inf, shown[LARGEST].astype(np.float64))
    return limits


@dataclass(frozen=True, kw_only=True)
class _Limit:
    """The most jobs in one workplace cell of a finer table, for every cell of a table, as far as pieces were seen."""

    finer: Finer
    inside: Sequence[Dimension]
    known: Integers
    """The workplace cells of the table, as far as the finer one tells them apart."""
    place: NDArray[np.intp]
    """Which of them each cell is in."""
    most: Floats
    """One for each of them, and one for all that is in none."""

    @classmethod
    def of(cls, cells: Cells, finer: Finer) -> "_Limit":
        inside = [one for one in cells.dimensions if one.public and one.name in finer.codes]
        own = np.zeros(len(cells), dtype=np.int64)
        for dimension in inside:
            own = own * len(dimension) + cells.codes(dimension.name)
        known, place = np.unique(own, return_inverse=True)
        return cls(finer=finer, inside=inside, known=known, place=place, most=np.full(len(known) + 1, -np.inf))

    def take(self, piece: Cells, most: Floats | None) -> None:
        """Look at the most jobs of every workplace cell of a piece, and at what everyone knows."""
        if not len(self.known):
            return
        first = piece.blocks()[:, 0]
        known = self.finer.limits(piece)[first]
        most = known if most is None else np.minimum(most, known)
        keys, counted = _keys(piece, self.finer, self.inside)
        at = np.minimum(np.searchsorted(self.known, keys[first]), len(self.known) - 1)
        at = np.where(counted[first] & (self.known[at] == keys[first]), at, len(self.known))
        np.maximum.at(self.most, at, most)

    def found(self) -> Floats:
        """The limit of every cell; infinite where no piece has anything for it."""
        limit: Floats = np.where(np.isneginf(self.most[:-1]), np.inf, self.most[:-1])[self.place]
        return limit


def _keys(piece: Cells, source: Finer, inside: Sequence[Dimension]) -> tuple[Integers, Flags]:
    """The workplace cell of the coarser table that every cell of a finer one lies in, and whether it lies in any."""
    named = {dimension.name: dimension for dimension in piece.dimensions}
    counted = np.ones(len(piece), dtype=bool)
    keys = np.zeros(len(piece), dtype=np.int64)
    targets = {dimension.name: dimension for dimension in inside}
    for name, (own, lies) in source.codes.items():
        target = targets.get(name)
        at = {code: 0 if target is None else target.places[upper] for code, upper in lies.items()}
        places = np.array([at.get(code, -1) for code in named[own].codes], dtype=np.int64)[piece.codes(own)]
        counted &= places >= 0
        if target is not None:
            keys = keys * len(target) + np.maximum(places, 0)
    return keys, counted
