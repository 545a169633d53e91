"""What is known of the tables of a release before any record is read: wishes, cells, establishments and methods.

Only the release file and the register of establishments are opened, which is public.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import exp, log
from typing import Any

import numpy as np

from sfumato.agree.expected_errors import AgreementModel, agreement_model
from sfumato.agree.published import combinations, establishments_taken, populations
from sfumato.agree.reconcile import unrelated
from sfumato.arrays import Flags
from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs, open_register
from sfumato.errors import MethodError, ReleaseError, SfumatoError
from sfumato.frame.codelists import Codelist
from sfumato.method import PlannedError, bought_epsilon
from sfumato.plan import plan_table
from sfumato.release import Release
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import establishments_of
from sfumato.statistics.kinds import kind_of
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.wish import Wish

MOST_EPSILON = 1_000
"""Wishes that need more are refused: nothing would be protected."""
_USELESS = 100.0
"""Noise of so many times the largest establishment: less epsilon than that is not tried."""
_LONGEST = 2**62


@dataclass(frozen=True, kw_only=True)
class WishedTable:
    """A table whose epsilon is looked for, or that keeps its own where nothing is wished of it."""

    statistic: PublishedTable
    wish: Wish | None
    meant: Flags
    """Of its cells in the model, those that the wish is about."""
    mean: float
    """The jobs of a mean cell, of those."""
    cells: int
    build: Callable[[Fraction], Any]
    cost: float
    """What one epsilon of the table costs the budget, whose alpha may be another."""
    scale: Fraction = Fraction(0)
    """The epsilon for which it buys the scale of its noise, if it is measured: it is kept as the file says."""
    known: dict[str, PlannedError | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name."""
        return self.statistic.name

    @property
    def written(self) -> float:
        """The epsilon of the release file."""
        return float(self.statistic.table.protect.epsilon or 0)

    @property
    def unit(self) -> float:
        """By what errors in jobs are divided to be those of the wish."""
        return self.mean if self.wish is None or self.wish.relative else 1.0

    def at(self, epsilon: float) -> PlannedError | None:
        """What the method promises at an epsilon; None where it does not exist, or is not used."""
        text = f"{epsilon:.7g}"
        if text not in self.known:
            try:
                self.known[text] = self.build(Fraction(text)).planned_error() if epsilon > 0 else None
            except MethodError:
                self.known[text] = None
        return self.known[text]

    @cached_property
    def least(self) -> float:
        """The least epsilon at which the method exists and tells anything, to a hundredth of it."""
        low, high = log(1e-4), log(MOST_EPSILON)
        while high - low > 0.01:
            middle = (low + high) / 2
            planned = self.at(exp(middle))
            low, high = (low, middle) if planned is not None and (planned.share or 0) < _USELESS else (middle, high)
        return exp(high)


Family = tuple[AgreementModel, tuple[WishedTable, ...]]
"""Tables about the same jobs, which are to agree."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """The tables that a plan is about."""

    families: tuple[Family, ...]
    kept: Fraction
    """What tables cost that nothing is wished of: they keep their epsilon."""
    budget: Fraction
    register: bool
    """Whether there is one."""


def known_tables(release: Release, wishes: Mapping[str, str], workers: float) -> Known:
    """Look at a release file and its register; `wishes` come before those of the file."""
    wished = _wishes(release, wishes)
    budget = release.budget
    if not release.data.of_jobs or budget is None:
        raise ReleaseError(
            "plan",
            expected="counts of jobs, with a budget",
            found="other statistics, or no budget",
            do="see `sfumato tune` for other statistics: docs/tune.md",
        )
    if workers <= 0:
        raise SfumatoError("workers", expected="a number above 0", found=f"{workers:g}", do="correct it")
    # As it will be run: large tables are not cut into parts where they are to agree.
    agreeing = release.model_copy(update={"about": release.about.model_copy(update={"reconcile": True})})
    with open_register(release.data.as_jobs()) as opened:
        codelists = opened.codelists() if opened is not None else _declared(agreeing)
        statistics = [plan_table(agreeing, table, codelists, release.secret()) for table in release.tables]
        _refuse_unsuitable(statistics, wished)
        able = [one for one in statistics if one.counts_jobs_formally and one.why_not_reconciled is None]
        families = tuple(
            _family(agreeing, some, wished, workers, opened)
            for some in populations(able)
            if any(one.name in wished for one in some)
        )
    kept = sum((_cost(one, agreeing) for one in statistics if one.name not in wished), Fraction(0))
    return Known(families=families, kept=kept, budget=budget.epsilon, register=opened is not None)


def _wishes(release: Release, typed: Mapping[str, str]) -> dict[str, Wish]:
    """The wish of every table that has one: as typed, or as the release file says."""
    names = [table.name for table in release.tables]
    for name, text in typed.items():
        if name not in names:
            raise ReleaseError(
                f"wish of '{name}'", expected=f"one of {', '.join(names)}", found=repr(name), do="correct the name"
            )
        try:
            Wish.read(text)
        except ValueError as error:
            raise SfumatoError(f"wish of '{name}'", expected=str(error), found=text, do="correct it") from error
    written = {table.name: table.wish for table in release.tables if table.wish is not None} | dict(typed)
    if not written:
        raise ReleaseError(
            "wishes",
            expected="how accurate tables are to be",
            found="no wish of any table",
            do=f'write wish = "10%" into a [[table]], or type --wish {names[0] if names else "table"}=10%; '
            "docs/plan.md",
        )
    return {name: Wish.read(text) for name, text in written.items()}


def _declared(release: Release) -> dict[str, Codelist]:
    """The codelists of the release file: without a register there are no others."""
    found = {name: release.data.declared_codes(name) for name in release.data.attributes}
    return {name: one for name, one in found.items() if one is not None}


def _refuse_unsuitable(statistics: Sequence[PublishedTable], wished: Mapping[str, Wish]) -> None:
    for one in statistics:
        why = one.why_not_reconciled
        if why is None and (not one.counts_jobs_formally or one.method.planned_error().share is None):
            why = "its error is not known without the data"
        if one.name in wished and why is not None:
            raise ReleaseError(
                f"table '{one.name}', wish",
                expected="counts of jobs that can be made to agree, with a known error",
                found=f"a table that is none: {why}",
                do="leave out its wish: it keeps its epsilon; or choose another method",
            )


def _cost(statistic: PublishedTable, release: Release) -> Fraction:
    """What a table costs the budget of its release."""
    bound, budget = statistic.guarantee.bound, release.budget
    return Fraction(0) if bound is None or budget is None else bound.within(budget).epsilon


def _rate(statistic: PublishedTable, release: Release) -> Fraction:
    """What one epsilon of a table costs the budget of its release; a bought scale costs what it costs, as values do."""
    bought = max(len(statistic.spent_at), 1) * bought_epsilon(statistic.method)  # in each period of a panel
    return _cost(statistic, release) / ((statistic.table.protect.epsilon or 1) + bought)


def _family(
    release: Release,
    statistics: Sequence[PublishedTable],
    wished: Mapping[str, Wish],
    workers: float,
    opened: OpenJobs | None,
) -> Family:
    """Tables about the same jobs, and the cells they have by the register."""
    register = _register(statistics, opened)
    taken = {one.name: establishments_taken(one, combinations(statistics, unrelated)) for one in statistics}
    seen = agreement_model({one.name: one.by for one in statistics}, register, taken=taken, workers=workers)
    planned = []
    for one, level in zip(statistics, seen.levels, strict=True):
        wish = wished.get(one.name)
        jobs = level.establishments * workers * _part(release, one) / level.worker_cells
        meant = np.ones(len(jobs), dtype=bool) if wish is None else wish.means(jobs)
        if not meant.any():
            raise ReleaseError(
                f"table '{one.name}', wish",
                expected="cells that it is about",
                found=f"{wish}, and cells of {jobs.min():,.0f} to {jobs.max():,.0f} jobs, at {workers:g} an "
                "establishment",
                do="wish something of other cells, or say with --workers what establishments have on average",
            )
        planned.append(
            WishedTable(
                statistic=one,
                wish=wish,
                meant=meant,
                mean=float(level.shares(meant) @ jobs),
                cells=int(level.times.sum()),
                build=_builder(release, one),
                cost=float(_rate(one, release)),
                scale=bought_epsilon(one.method),
            )
        )
    return seen, tuple(planned)


def _register(statistics: Sequence[PublishedTable], opened: OpenJobs | None) -> Cells | None:
    """The establishments by all public attributes of some tables; None where none is known, or may be told."""
    public = {dimension.name: dimension for one in statistics for dimension in one.by if dimension.public}
    if opened is None or not public or not statistics[0].tells_establishments:
        return None
    question = Question(
        by=tuple(public.values()),
        where={name: codes for name, codes in statistics[0].where.items() if opened.frame.is_known(name)},
        periods=tuple(dict.fromkeys(period for one in statistics for period in one.spent_at)),
    )
    if question.cells > _LONGEST:
        raise ReleaseError(
            "plan",
            expected="tables whose public codes have fewer than 2^62 combinations",
            found=f"{question.cells:.2g}",
            do="plan fewer tables at a time: leave out the wishes and the sections of some",
        )
    found = establishments_of(opened.frame, opened.tables, question)
    if not len(found):
        raise ReleaseError(
            "register of establishments",
            expected="establishments with the codes that the tables are about",
            found="none",
            do="look at `where` and at the codelists",
        )
    return found


def _part(release: Release, statistic: PublishedTable) -> float:
    """The share of all jobs that a filter on workers leaves, if jobs are spread evenly over codes."""
    part = 1.0
    for name, codes in statistic.where.items():
        declared = None if release.data.is_known(name) else release.data.declared_codes(name)
        part *= 1.0 if declared is None else len(codes) / len(declared.codes)
    return part


def _builder(release: Release, statistic: PublishedTable) -> Callable[[Fraction], Any]:
    """The method of a table at any epsilon."""
    budget = release.about.budget
    table, kind = statistic.table, kind_of(statistic.table, release.data)

    def build(epsilon: Fraction) -> Any:
        protect = table.protect.model_copy(update={"epsilon": epsilon})
        return kind.build_method(
            table.model_copy(update={"protect": protect}),
            release.data,
            statistic.question,
            alpha=None if budget is None else budget.alpha,
        )

    return build
