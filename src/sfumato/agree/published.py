"""Published tables that agree: stored answers reconciled or nested on the way to the bundle."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from sfumato.agree.reconcile import Protected, largest_detail, reconcile, rounded
from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.method import Method, WholeTableFigures, published_figures


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
    def why_not_reconciled(self) -> str | None:
        """Why it may not be made to agree with others, as words that follow "because"; None when it may."""
        ...

    def lies_in(self, other: Any) -> bool:
        """Whether the cells of another table are parts of this one's, and add up to them."""
        ...

    def summed(self, own: Cells, finer: Any, parts: Cells) -> Cells:
        """The answer as sums of a finer one."""
        ...


# Tables that lie inside a finer one are published as its sums, so that additivity survives rounding.


def nested_sums(tables: Sequence[AgreeingTable], answers: Mapping[str, Cells]) -> dict[str, Cells]:
    """The answers with coarser tables replaced by sums of the finest one they lie in, where these add up.

    Stored answers stay as they are; the same answers always give the same sums.
    """
    found = dict(answers)
    for table in tables:
        finest = max((other for other in tables if other is table or table.lies_in(other)), key=lambda one: one.cells)
        if finest is not table:
            found[table.name] = table.summed(answers[table.name], finest, answers[finest.name])
    return found


_ANY = 0.9  # the confidence of intervals, which are not used here


def agreed_answers(
    tables: Sequence[AgreeingTable], reconciled: Collection[str], answers: Mapping[str, Cells]
) -> dict[str, Cells]:
    """The answers with the values that are published: those of the tables to be `reconciled` made to agree.

    Stored answers stay as they are; the same answers always give the same reconciled values. Tables that add up by
    themselves, but for rounding, always are made to.
    """
    answers = nested_sums(tables, answers)
    if not reconciled:
        return answers
    chosen = {table.name: table for table in tables if table.name in reconciled}
    protected = {
        name: Protected(
            cells=answers[name],
            errors=np.full(len(answers[name]), np.nan),
            population=_population(table),
            nonnegative=table.table.nonnegative,
        )
        for name, table in chosen.items()
    }
    weighted = {
        name: replace(table, errors=_typical_error(chosen[name], protected)) for name, table in protected.items()
    }
    values = rounded(weighted, reconcile(weighted))
    return answers | {name: answers[name].with_column("value", value) for name, value in values.items()}


def left_as_they_are(tables: Sequence[AgreeingTable]) -> dict[str, str]:
    """The tables that are not made to agree, each with the reason, as words that follow "because"; all others are.

    A biased table would pull the others away from the truth. A table that does not tell where there are establishments
    agrees with such tables alone: made to agree with others it would be exactly 0 where there is none.
    """
    populations = [_population(table) for table in tables if table.why_not_reconciled is None]
    alone = "no other such table is about the same jobs"
    silent = "no other table about the same jobs leaves out where there are establishments, which agreeing would tell"
    found = {}
    for table in tables:
        if table.why_not_reconciled is not None:
            found[table.name] = table.why_not_reconciled
        elif populations.count(_population(table)) == 1:
            found[table.name] = alone if table.tells_establishments else silent
    return found


def _population(table: AgreeingTable) -> tuple[Any, ...]:
    """Tables of which this is the same are made to agree."""
    return (*sorted((name, tuple(sorted(codes))) for name, codes in table.where.items()), table.tells_establishments)


def _typical_error(table: AgreeingTable, protected: Mapping[str, Protected]) -> Floats:
    """The published error figure; where noise follows the largest establishment, as large as that one can be."""
    method = table.method
    if isinstance(method, WholeTableFigures) or "largest" not in method.needs:
        return published_figures(method, protected[table.name].cells, _ANY).error
    return method.published_error(largest_detail(protected, table.name))
