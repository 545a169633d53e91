"""The plan of a release: guarantee, charge, cells and expected error of every table, before any record is read."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from sfumato import __version__
from sfumato.engine.question import COLUMNS, Question
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.frame import Codelist
from sfumato.methods.method import Method
from sfumato.privacy.account import Charge
from sfumato.privacy.composition import sequential
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee
from sfumato.privacy.spending import balance
from sfumato.release import LISTED_CELLS, Release, Table

MOST_CELLS = 50_000_000
"""Tables are held in memory; beyond this many cells a release is refused before it is charged."""


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """One table with what it asks and how it is protected."""

    table: Table
    question: Question
    method: Method
    links: str = ""
    """How the tables of the frame hang together: another link between the same files is another question."""

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the protected table reveals at most."""
        return self.method.guarantee()

    @property
    def cells(self) -> int:
        """The number of cells in the product of the dimensions, structural zeros included."""
        return prod(map(len, self.question.by))

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are published as rows that are exactly 0."""
        chosen = self.table.structural_zeros
        return chosen == "listed" or (chosen == "auto" and self.cells <= LISTED_CELLS)

    def digest(self, data: str) -> str:
        """Name this question to these data: the same name means that the stored answer is given again."""
        asked = {
            "data": data,
            "links": self.links,
            "count": self.table.count,
            "by": [[dimension.name, dimension.codes] for dimension in self.question.by],
            "where": sorted((name, sorted(codes)) for name, codes in self.question.where.items()),
            "method": repr(self.method),
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def charge(self, data: str) -> Charge:
        """What the ledger is asked to charge for this table."""
        return Charge(question=self.digest(data), table=self.table.name, guarantee=self.guarantee, data=data)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every table of a release, planned."""

    release: Release
    tables: tuple[PlannedTable, ...]
    codelists: Mapping[str, Codelist]
    software: str = __version__

    def distinct(self) -> tuple[PlannedTable, ...]:
        """The tables without those that ask a question another one asks: they get its answer and cost nothing."""
        return tuple({table.digest(""): table for table in reversed(self.tables)}.values())[::-1]

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all tables together reveal at most, at the alpha of the budget.

        If one table has no formal guarantee, all together have none.
        """
        budget = self.release.about.budget.guarantee()
        open_tables = [t.table.name for t in self.tables if isinstance(t.guarantee, NoFormalGuarantee)]
        if open_tables:
            return NoFormalGuarantee(statement=f"nothing bounds what {', '.join(open_tables)} may reveal")
        return sequential(
            [t.guarantee.within(budget) for t in self.distinct() if isinstance(t.guarantee, EmployerEmployee)]
        )


def make_plan(release: Release, codelists: Mapping[str, Codelist]) -> Plan:
    """Plan every table; a table that cannot be protected as asked is refused here, by name."""
    planned = []
    for table in release.tables:
        question = release.question(table, codelists)
        cells = prod(map(len, question.by))
        if cells > MOST_CELLS:
            raise ReleaseError(
                f"table '{table.name}'",
                expected=f"at most {MOST_CELLS:,} cells",
                found=f"{cells:,}: {' × '.join(f'{len(d):,} {d.name}' for d in question.by)}",
                do="use fewer or coarser attributes, or split the table with `where`",
            )
        try:
            method = release.method(table, question)
        except SfumatoError as error:
            raise type(error)(
                f"table '{table.name}': {error.where}", expected=error.expected, found=error.found, do=error.do
            ) from error
        # Establishments without jobs are in no joined table, so their number is not known there.
        lacking = sorted(method.needs - (COLUMNS - {"establishments"} if release.frame.joined else COLUMNS))
        if lacking:
            # Found out here, and not after the budget was charged.
            raise ReleaseError(
                f"table '{table.name}': {method.name}",
                expected="a method whose columns can be counted",
                found=f"a method that needs {', '.join(lacking)}, which cannot be counted in these data",
                do="choose another method, or add the table of workplaces",
            )
        planned.append(PlannedTable(table=table, question=question, method=method, links=release.frame.links()))
    plan = Plan(release=release, tables=tuple(planned), codelists=codelists)
    budget = release.about.budget.guarantee()
    balance(release.account, budget, [table.guarantee for table in plan.tables])  # refuses what the budget excludes
    return plan
