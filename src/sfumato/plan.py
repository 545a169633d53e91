"""The plan of a release: guarantee, charge, cells and expected error of every table, before any record is read."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sfumato import __version__
from sfumato.engine.question import COLUMNS, SUMS, Asked, PairQuestion, Question
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.frame import Codelist, Frame
from sfumato.indicators import INDICATORS, NAME
from sfumato.keys import Secret
from sfumato.methods.method import Method
from sfumato.methods.registry import KEYED
from sfumato.noise.keyed import Keyed
from sfumato.noise.randomness import OperatingSystem, Randomness
from sfumato.privacy.account import Charge
from sfumato.privacy.composition import sequential
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee
from sfumato.privacy.spending import balance
from sfumato.release import Release
from sfumato.table import LISTED_CELLS, Table

MOST_CELLS = 50_000_000
"""Tables are held in memory; beyond this many cells a release is refused before it is charged."""


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """One table with what it asks and how it is protected."""

    table: Table
    question: Asked
    method: Method
    links: str = ""
    """How the tables of the frame hang together: another link between the same files is another question."""
    key: str = ""
    """The fingerprint of the key, when the method has one: another key gives another answer."""

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the protected table reveals at most."""
        return self.method.guarantee()

    @property
    def cells(self) -> int:
        """The number of cells in the product of the dimensions, structural zeros included."""
        return self.question.cells

    @property
    def classified_by(self) -> tuple[str, ...]:
        """Every dimension of the table and every attribute it is filtered by, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.question.by), *self.question.where]))

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are published as rows that are exactly 0."""
        chosen = self.table.structural_zeros
        if isinstance(self.question, PairQuestion):
            return False  # every pair of codes is listed, and which employers share a worker is not public
        return chosen == "listed" or (chosen == "auto" and self.cells <= LISTED_CELLS)

    def digest(self, data: str) -> str:
        """Name this question to these data: the same name means that the stored answer is given again."""
        asked = {
            "data": data,
            "links": self.links,
            "statistic": self._statistic(),
            "by": [[dimension.name, dimension.codes] for dimension in self.question.by],
            "where": sorted((name, sorted(codes)) for name, codes in self.question.where.items()),
            "method": repr(self.method),
            "key": self.key,
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _statistic(self) -> list[object]:
        """What is counted, beside the dimensions; the indicators chosen for publication change no number."""
        asked = self.question
        if isinstance(asked, PairQuestion):
            return [asked.kind, asked.between, asked.weight, asked.directed, asked.rule, list(asked.attributes)]
        return [self.table.statistic]

    def randomness(self, secret: Secret | None) -> Randomness:
        """Where the method's chance comes from: a keyed method gives the same answer on every engine and machine."""
        if secret is None or not self.key:
            return OperatingSystem()
        return Keyed(key=secret.key).stream(f"answer {self.digest('')}")

    def charge(self, data: str) -> Charge:
        """What the ledger is asked to charge for this table."""
        return Charge(question=self.digest(data), table=self.table.name, guarantee=self.guarantee, data=data)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every table of a release, planned."""

    release: Release
    tables: tuple[PlannedTable, ...]
    codelists: Mapping[str, Codelist]
    """Of every attribute, and of every dimension that is made of one."""
    secret: Secret | None = field(default=None, repr=False)
    software: str = __version__

    def distinct(self) -> tuple[PlannedTable, ...]:
        """The tables without those that ask a question another one asks: they get its answer and cost nothing."""
        return tuple({table.digest(""): table for table in reversed(self.tables)}.values())[::-1]

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all tables together reveal at most, at the alpha of the budget.

        If one table has no formal guarantee, all together have none.
        """
        open_tables = {t.table.name: t.guarantee for t in self.tables if isinstance(t.guarantee, NoFormalGuarantee)}
        if len(open_tables) == len(self.tables) and len(set(open_tables.values())) == 1:
            return next(iter(open_tables.values()))
        if open_tables:
            return NoFormalGuarantee(statement=f"nothing bounds what {', '.join(open_tables)} may reveal")
        budget = self.release.budget
        if budget is None:
            raise ValueError("a release with formal guarantees has a budget")
        return sequential(
            [t.guarantee.within(budget) for t in self.distinct() if isinstance(t.guarantee, EmployerEmployee)]
        )


def make_plan(release: Release, codelists: Mapping[str, Codelist]) -> Plan:
    """Plan every table; a table that cannot be protected as asked is refused here, by name."""
    secret = release.secret()
    planned = []
    for table in release.tables:
        question = release.question(table, codelists)
        if question.cells > MOST_CELLS:
            raise ReleaseError(
                f"table '{table.name}'",
                expected=f"at most {MOST_CELLS:,} cells",
                found=f"{question.cells:,}: {' × '.join(f'{len(d):,} {d.name}' for d in question.by)}",
                do="use fewer or coarser attributes, or split the table with `where`",
            )
        try:
            method = release.method(table, question)
        except SfumatoError as error:
            raise type(error)(
                f"table '{table.name}': {error.where}", expected=error.expected, found=error.found, do=error.do
            ) from error
        lacking = sorted(method.needs - _countable(release.frame, question))
        if lacking:
            # Found out here, and not after the budget was charged.
            raise ReleaseError(
                f"table '{table.name}': {method.name}",
                expected="a method whose columns can be counted",
                found=f"a method that needs {', '.join(lacking)}, which cannot be counted in these data",
                do="choose another method, or add the table of workplaces",
            )
        key = secret.fingerprint if secret is not None and method.name in KEYED else ""
        planned.append(
            PlannedTable(table=table, question=question, method=method, links=release.frame.links(), key=key)
        )
    plan = Plan(
        release=release,
        tables=tuple(planned),
        codelists={**codelists, **_made_codelists(release, codelists)},
        secret=secret,
    )
    if release.budget is not None:
        # Refuses what the budget excludes.
        balance(release.account, release.budget, [table.guarantee for table in plan.tables])
    return plan


def _countable(frame: Frame, question: Asked) -> frozenset[str]:
    """The columns that the engine can supply for a question."""
    if not isinstance(question, Question):
        return SUMS
    # Establishments without jobs are in no joined table, so their number is not known there.
    return COLUMNS - {"establishments"} if frame.joined else COLUMNS


def _made_codelists(release: Release, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:
    """The codelists of dimensions that are no attributes themselves: periods, indicators, the ends of pairs."""
    made = {NAME: Codelist(codes=tuple(i.code for i in INDICATORS), labels=tuple(i.label for i in INDICATORS))}
    if release.frame.span is not None and release.frame.jobs.period is not None:
        made[release.frame.jobs.period] = Codelist.of(release.frame.span.codes())
    for table in release.tables:
        made |= {end: codelists[attribute] for end, attribute in table.end_names().items()}
    return made
