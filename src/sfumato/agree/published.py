"""Published tables that agree: stored answers reconciled or nested on the way to the bundle."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log1p, prod
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from sfumato.agree.agreed_errors import errors_after, with_errors
from sfumato.agree.composite import Composite, composite_of, with_composite
from sfumato.agree.largest import Finer, PublicFacts, largest_of, public_sizes, with_largest
from sfumato.agree.reconcile import Above, Protected, reconcile, rounded
from sfumato.arrays import Floats
from sfumato.cells import Cells, Dimension
from sfumato.method import (
    CONFIDENCE,
    Method,
    PlannedError,
    bought_epsilon,
    bought_steps,
    estimated_largest,
    published_figures,
)


class AgreeingTable(Protocol):
    """A table that may be made to agree with others, whatever its kind."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def table(self) -> Any:
        """What the release file says of it."""
        ...

    @property
    def method(self) -> Method:
        """How it is protected."""
        ...

    @property
    def cells(self) -> int:
        """How many cells it has."""
        ...

    @property
    def where(self) -> Mapping[str, tuple[str, ...]]:
        """The codes that are kept of some attributes."""
        ...

    @property
    def tells_establishments(self) -> bool:
        """Whether it may tell where there is an establishment."""
        ...

    @property
    def by(self) -> tuple[Dimension, ...]:
        """Its dimensions."""
        ...

    @property
    def counts_jobs_formally(self) -> bool:
        """Whether its values are counts of jobs with noise that a guarantee is about, one for every cell."""
        ...

    @property
    def in_chunks(self) -> bool:
        """Whether it is made chunk by chunk, and never seen as a whole."""
        ...

    @property
    def spends(self) -> Any:
        """The epsilon of the whole table."""
        ...

    @property
    def why_not_reconciled(self) -> str | None:
        """Why it may not be made to agree with others, as words that follow "because"; None when it may."""
        ...

    def lies_in(self, other: Any) -> bool:
        """Whether the cells of another table are parts of this one's, and add up to them."""
        ...

    def summed(self, own: Cells, finer: Any, parts: Cells) -> Cells:
        """The answer as sums of a finer one."""
        ...


Agreeing = TypeVar("Agreeing", bound=AgreeingTable)


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A table of an earlier release about the same data: it stays as it was published."""

    table: Any
    release: str
    """The file of the release, as the new one names it."""
    measured: Cells
    """Its protected values, of which the noise is known."""
    shown: Cells
    """The same as they were published."""


# Tables that lie inside a finer one are published as its sums, so that additivity survives rounding.


def nested_sums(tables: Sequence[AgreeingTable], answers: Mapping[str, Cells]) -> dict[str, Cells]:
    """The answers with coarser tables replaced by sums of the finest one they lie in, where these add up.

    Stored answers stay as they are; the same answers always give the same sums.
    """
    found = dict(answers)
    for table in tables:
        finest = finest_of(table, tables)
        if finest is not table:
            found[table.name] = table.summed(answers[table.name], finest, answers[finest.name])
    return found


def finest_of(table: Agreeing, tables: Iterable[Agreeing]) -> Agreeing:
    """The table whose sums a table is published as: the finest it lies in, or itself."""
    return max((other for other in tables if other is table or table.lies_in(other)), key=lambda one: one.cells)


class Agreement(PublicFacts, Protocol):
    """The tables of a release and how they are made to agree; its plan is it."""

    @property
    def tables(self) -> Sequence[Any]:
        """All of them."""
        ...

    @property
    def reconciled(self) -> Collection[str]:
        """Those that are made to agree."""
        ...

    @property
    def finer(self) -> Mapping[str, Sequence[Finer]]:
        """Those that tell of others how large an establishment can be, by the name of each of these."""
        ...

    @property
    def composites(self) -> Mapping[str, Composite]:
        """How composite estimates are made, of those that have them."""
        ...

    @property
    def earlier(self) -> Sequence[Earlier]:
        """Those of earlier releases, which are agreed with and stay as they are."""
        ...


def agreed_answers(
    plan: Agreement, answers: Mapping[str, Cells], *, large: Mapping[str, Iterable[Cells]] | None = None
) -> dict[str, Cells]:
    """The answers with the values that are published: those of tables that are to be reconciled made to agree.

    Stored answers stay as they are; the same answers always give the same reconciled values. Tables that add up by
    themselves, but for rounding, always are made to. Tables of counts also have how large an establishment can be,
    where finer ones tell; `large` has those that are in pieces.
    """
    pieces = {name: (answer,) for name, answer in answers.items()} | dict(large or {})
    pieces |= {one.table.name: (one.measured,) for one in plan.earlier}
    answers = with_largest(nested_sums(plan.tables, answers), pieces, plan.finer)
    found = {**answers, **_reconciled(plan, answers)}
    for name, rule in plan.composites.items():
        found[name] = with_composite(rule, name, found[name], answers)
    return found


def _reconciled(plan: Agreement, answers: Mapping[str, Cells]) -> dict[str, Cells]:
    """The answers of tables that are to agree, with agreed values, those before, and the errors of agreed ones."""
    fixed = {one.table.name: one for one in plan.earlier if one.table.why_not_reconciled is None}
    chosen = [table for table in plan.tables if table.name in plan.reconciled]
    found = {}
    for some in populations([*chosen, *(one.table for one in fixed.values())]):
        own = [table for table in some if table.name not in fixed]
        beside = [fixed[table.name] for table in some if table.name in fixed]
        weighted, above = weighted_tables(own, answers, plan, beside)
        values = rounded(weighted, reconcile(weighted, above), above)
        # Of what they measured: how these were made to agree is followed too.
        before = {one.table.name: _errors(one.table, one.measured, largest_of(one.shown)) for one in beside}
        before |= {table.name: _errors(table, answers[table.name], largest_of(answers[table.name])) for table in own}
        errors = errors_after(weighted, before, above)
        for table in own:
            measured = answers[table.name]
            agreed = measured.with_column(MEASURED, measured["value"]).with_column("value", values[table.name])
            found[table.name] = with_errors(agreed, errors[table.name])
    return found


def weighted_tables(
    some: Sequence[AgreeingTable], answers: Mapping[str, Cells], facts: PublicFacts, earlier: Sequence[Earlier] = ()
) -> tuple[dict[str, Protected], Above]:
    """The answers of tables about the same jobs, with their weights; and which of their dimensions lie in others.

    Values that were published `earlier` are as good as sure, whatever their errors: they do not change any more.
    """
    above = levels_known([*some, *(one.table for one in earlier)], facts)
    finest = combinations(some, above)
    most = {table.name: public_sizes(table, facts).limits(answers[table.name]) for table in some}
    fixed = {
        one.table.name: Protected(cells=one.shown, errors=np.full(len(one.shown), _SURE), fixed=True) for one in earlier
    }
    return fixed | {
        table.name: Protected(
            cells=answers[table.name],
            errors=usual_errors(table, answers[table.name], finest, most[table.name]),
            nonnegative=table.table.nonnegative,
        )
        for table in some
    }, above


def _errors(table: AgreeingTable, answer: Cells, largest: Floats | None) -> Floats:
    """The published errors of protected values, where no establishment is larger than is known.

    A negative value has been moved by as much as it is below 0, however small the cell looks.
    """
    return published_figures(table.method, answer, CONFIDENCE, largest).beside(answer["value"]).error


def populations(tables: Iterable[Agreeing]) -> list[list[Agreeing]]:
    """The tables apart by what they are about: those about the same jobs are made to agree."""
    found: dict[tuple[Any, ...], list[Agreeing]] = {}
    for table in tables:
        found.setdefault(_population(table), []).append(table)
    return list(found.values())


def levels_known(tables: Sequence[AgreeingTable], facts: PublicFacts) -> Above:
    """Which dimensions of tables about the same jobs lie in others: by the release file, or by the public register."""
    register = all(table.tells_establishments for table in tables)
    return lambda fine, coarse: facts.codes_above(fine.name, coarse.name, fine.codes, register=register)


def left_as_they_are(tables: Sequence[AgreeingTable], earlier: Sequence[Earlier] = ()) -> dict[str, str]:
    """The tables that are not made to agree, each with the reason, as words that follow "because"; all others are.

    A biased table would pull the others away from the truth. A table that does not tell where there are establishments
    agrees with such tables alone: made to agree with others it would be exactly 0 where there is none.
    """
    others = (one.table for one in earlier)
    about = [_population(table) for table in (*tables, *others) if table.why_not_reconciled is None]
    alone = "no other such table is about the same jobs"
    silent = "no other table about the same jobs leaves out where there are establishments, which agreeing would tell"
    found = {}
    for table in tables:
        if table.why_not_reconciled is not None:
            found[table.name] = table.why_not_reconciled
        elif about.count(_population(table)) == 1:
            found[table.name] = alone if table.tells_establishments else silent
    return found


def _population(table: AgreeingTable) -> tuple[Any, ...]:
    """Tables of which this is the same are made to agree."""
    return (*sorted((name, tuple(sorted(codes))) for name, codes in table.where.items()), table.tells_establishments)


def composites(tables: Sequence[AgreeingTable], reconciled: Collection[str], *, numbered: bool) -> dict[str, Composite]:
    """How the composite estimates are made of the tables that ask for them, or a ReleaseError.

    `numbered` tells whether the number of establishments is known at all.
    """
    found = {}
    for table in tables:
        if table.table.composite is not None:
            alike = [one for one in tables if one.name in reconciled and _population(one) == _population(table)]
            others = [one for one in alike if one is not table]
            found[table.name] = composite_of(table, others, reconciled=table.name in reconciled, numbered=numbered)
    return found


_SURE = 0.01
"""Of a job: the error that values which do not change are taken to have, so that those of others give way."""
MEASURED = "measured"
"""The column of a reconciled table that has its values before tables were made to agree."""
USUAL_SIZE = 20
"""Workers of the largest establishment of a cell with one, in the public model that weights are made of."""
GROWTH = Fraction(3, 4)
"""The largest of so many times as many establishments has so many times as many workers to this power."""
MANY, SLOWER = 300, Fraction(3, 10)
"""From about so many establishments on it grows more slowly, to a power that is less by this."""
UNUSUAL = 1.0
"""The variance of the logarithm of a largest establishment about what is usual: what a bought scale is weighed by."""


def combinations(tables: Iterable[AgreeingTable], above: Above) -> int:
    """How many combinations of codes the public attributes of tables have; levels of others make no further ones."""
    found = {one.name: one for table in tables for one in table.by if one.public}
    coarser = {
        one.name
        for one in found.values()
        if any(other is not one and len(other) > len(one) and above(other, one) for other in found.values())
    }
    return prod(len(one) for one in found.values() if one.name not in coarser)


def usual_errors(table: AgreeingTable, answer: Cells, finest: int, most: Floats | None = None) -> Floats:
    """The error that cells usually have, by public numbers alone: parameters, and how many establishments there are.

    `most` is how many workers an establishment of each cell has at the most, where everyone knows that.

    Weights must not follow the noise they weigh: with errors made of noisy values, cells that noise made small seem
    more certain, and pull all sums down. A bought scale has noise of its own, and tells more than any public number.
    Where the number of establishments is not public, all cells of a table are taken for alike, of as many as there are
    combinations of public codes in each.
    """
    planned = table.method.planned_error()
    number = answer.columns.get("establishments", np.full(len(answer), establishments_taken(table, finest)))
    usual = usual_largest(np.maximum(number, 1).astype(np.float64))
    return _error_of(planned, with_bought(table.method, answer, usual), most)


def with_bought(method: Method, answer: Cells, usual: Floats) -> Floats:
    """The workers of largest establishments by what is usual, moved towards what was bought as far as that is sure."""
    bought = estimated_largest(method, answer)
    if bought is None:
        return usual
    share = _described_bought(method)["share"]
    moved: Floats = np.exp(share * np.log(bought) + (1 - share) * np.log(usual))
    return moved


def _described_bought(method: Method) -> dict[str, Any]:
    """How far weights follow a bought scale: by the variance of its logarithm, and of what is usual."""
    alpha = cast(Any, method).alpha
    spread = 2 * (log1p(float(alpha)) / float(bought_epsilon(method))) ** 2
    return {"alpha": str(alpha), "steps": bought_steps(method), "share": UNUSUAL / (UNUSUAL + spread)}


def usual_error(planned: PlannedError, establishments: Floats, most: Floats | None = None) -> Floats:
    """The error that a cell with so many establishments usually has, none of which has more than so many workers."""
    return _error_of(planned, usual_largest(establishments), most)


def usual_largest(establishments: Floats) -> Floats:
    """The workers that the largest of so many establishments usually has."""
    found: Floats = USUAL_SIZE * establishments ** float(GROWTH) * (1 + establishments / MANY) ** -float(SLOWER)
    return found


def _error_of(planned: PlannedError, largest: Floats, most: Floats | None) -> Floats:
    """The error of cells by their largest establishments, none of which has more than so many workers."""
    if planned.share is None:
        return np.full(len(largest), np.nan)
    errors: Floats = np.maximum(planned.floor, planned.share * (largest if most is None else np.minimum(largest, most)))
    return errors


def establishments_taken(table: AgreeingTable, finest: int) -> int:
    """As of how many establishments cells are taken where their number is not public."""
    return max(finest // prod(len(dimension) for dimension in table.by if dimension.public), 1)


def described_weights(table: AgreeingTable, tables: Iterable[AgreeingTable], facts: PublicFacts) -> dict[str, Any]:
    """What the weights of a reconciled table are made of, as fields of the structure of a bundle.

    With the published columns `measured` and `establishments` all agreed values can be computed again.
    """
    planned = table.method.planned_error()
    some = next(some for some in populations(tables) if table.name in (one.name for one in some))
    return {
        "floor": planned.floor,
        "share": planned.share,
        "size": USUAL_SIZE,
        "power": float(GROWTH),
        "many": MANY,
        "slower": float(SLOWER),
        **({"most_workers": dict(sizes)} if (sizes := public_sizes(table, facts).sizes) else {}),
        **({"bought": _described_bought(table.method)} if bought_steps(table.method) else {}),
        "establishments": establishments_taken(table, combinations(some, levels_known(some, facts))),
    }
