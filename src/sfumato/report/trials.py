"""Trials of a comparison: every candidate answers on trial, from a seed, and leaves figures and no cells.

Nothing here is charged, kept or published: what is drawn from a seed could be subtracted by whoever knows the seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.checking import Checked, Progress, Step
from sfumato.engine.chunks import MOST_CELLS
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.frame.codelists import Codelist
from sfumato.frame.levels import TOTAL
from sfumato.keys import Secret
from sfumato.measures.attacks import AttackResult
from sfumato.measures.comparison import (
    Contributors,
    Disclosed,
    Loss,
    Losses,
    Shown,
    Target,
    common_attacks,
    is_coarser,
    laid_out,
)
from sfumato.measures.formulas import AMOUNT_CLASSES, SIZE_CLASSES, size_classes, size_label
from sfumato.measures.views import View
from sfumato.noise.trial import Trial
from sfumato.plan import Plan, make_plan, plan_table
from sfumato.privacy.account import balance
from sfumato.release import Release
from sfumato.report.assess import MOST_STRATA, assess_answers, true_cells
from sfumato.report.candidates import AS_WRITTEN, Wanted, why_not, with_epsilon
from sfumato.report.published import PublishedRelease, on_trial
from sfumato.sections import About
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.registry import is_free
from sfumato.statistics.table import Table
from sfumato.statistics.views import views

SIZE = "size of the cell"
"""By what cells are told apart in every table, beside attributes."""
KEYS = 4
"""Most keys that are tried of a method with permanent factors: each is a count of its own."""
_ENDS = Fraction("1.1"), Fraction("1.25")
"""Of factors, where the release has no key file that says them."""
_Counted = list[tuple[PublishedTable, Any]]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """The release with its tables under one method, as far as they can be protected by it."""

    label: str
    method: str
    release: Release
    left_out: Mapping[str, str]
    """Tables that cannot be protected so, or compared, each with the reason."""
    error: SfumatoError | None = None
    """The first of these, for whoever asked for this method and gets nothing."""

    @property
    def protections(self) -> list[tuple[Any, ...]]:
        """What decides how its tables are protected."""
        budget = self.release.about.budget
        return [
            (one.name, one.protect.method, one.protect.epsilon, one.protect.options)
            + (() if is_free(one.protect.method) or budget is None else (one.protect.alpha or budget.alpha,))
            for one in self.release.tables
        ]


@dataclass(frozen=True, kw_only=True)
class TableLoss:
    """What a candidate loses of one table, and what is found out of it."""

    name: str
    title: str
    unit: str
    losses: Mapping[str, tuple[Loss, ...]]
    """Of all cells under no name; by their size, and by attributes."""
    attacks: tuple[Disclosed, ...]
    """Those that are tried on every candidate."""

    @property
    def all(self) -> Loss:
        """The loss of all cells."""
        return self.losses[""][0]

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "table": self.name,
            "title": self.title,
            "unit": self.unit,
            **{key: value for key, value in self.all.data().items() if key != "label"},
            "by": {name: [one.data() for one in some] for name, some in self.losses.items() if name},
            "attacks": [one.data() for one in self.attacks],
        }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One candidate after its trials."""

    label: str
    method: str
    epsilon: Fraction | None
    """What all its tables would cost together; None without a guarantee."""
    trials: int
    """1 where there is no chance."""
    tables: tuple[TableLoss, ...]
    attacks: tuple[tuple[str, AttackResult], ...]
    """Those that are about this method, each with what it was tried on."""
    left_out: Mapping[str, str]

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "candidate": self.label,
            "method": self.method,
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            "trials": self.trials,
            "tables": [one.data() for one in self.tables],
            "attacks": [{"of": title, **found.data()} for title, found in self.attacks],
            "left_out": dict(self.left_out),
        }


@dataclass(kw_only=True, eq=False)
class Trials:
    """The data of a release, open and validated, and all that candidates share: true numbers are counted once."""

    ready: Checked
    codelists: Mapping[str, Codelist]
    strata: Sequence[str]
    accuracy: float
    trials: int
    seed: int
    report: Path
    counted: _Counted = field(default_factory=list)
    targets: dict[str, Target] = field(default_factory=dict)
    legacy: dict[str, Losses] = field(default_factory=dict)

    @property
    def release(self) -> Release:
        """The release as it is written."""
        return self.ready.plan.release

    def secret(self, number: int) -> Secret:
        """A key that is made for one trial; the office's own is never used."""
        own = self.ready.plan.secret
        a, b = _ENDS if own is None else (own.a, own.b)
        return Secret(key=Trial(seed=self.seed, number=number).key, a=a, b=b)

    # Candidates.

    def as_written(self) -> Candidate:
        """The release with the methods that it has."""
        about = self.release.about.model_copy(update={"earlier": ()})
        methods = list(dict.fromkeys(one.protect.method for one in self.release.tables))
        tables = {one.name: one for one in self.release.tables}
        return self._candidate(AS_WRITTEN, " and ".join(methods), tables, about, {})

    def under(self, wanted: Wanted) -> Candidate:
        """The release with the tables under one method that it can protect."""
        tables: dict[str, Table] = {}
        left: dict[str, str] = {}
        for table in self.release.tables:
            if wanted.tables and table.name not in wanted.tables:
                left[table.name] = "it was not asked for"
                continue
            try:
                tables[table.name] = wanted.on(table, self.release)
            except ValidationError as error:
                left[table.name] = why_not(error)
        found, about = self._first_that_fits(wanted, tables, left)
        if not found.release.tables or wanted.epsilon is None:
            return found
        plan = make_plan(found.release, self.codelists, self.secret(0))
        if wanted.alpha is not None and all(_hides_single_jobs(one) for one in plan.tables):
            return self.under(replace(wanted, alpha=None))  # it plays no part there
        shared = {one.name: one for one in with_epsilon(found.release, plan, wanted.epsilon).tables}
        # With its share of epsilon a table may be beyond what the method can do; others keep theirs.
        return self._candidate(wanted.label, wanted.method, shared, about, found.left_out)

    def _first_that_fits(
        self, wanted: Wanted, tables: Mapping[str, Table], left: Mapping[str, str]
    ) -> tuple[Candidate, About]:
        """The candidate under the strongest budget that any of its tables can keep to."""
        made = [
            (self._candidate(wanted.label, wanted.method, tables, about, left), about)
            for about in wanted.abouts(self.release)
        ]
        return next((one for one in made if one[0].release.tables), made[0])

    def _candidate(
        self, label: str, method: str, tables: Mapping[str, Table], about: Any, left: Mapping[str, str]
    ) -> Candidate:
        """The tables that can be protected and compared, and why the others cannot."""
        base = self.release.model_copy(update={"about": about, "tables": tuple(tables.values()), "cubes": ()})
        reasons = dict(left) | {one.name: "cubes are not compared; see sfumato preview" for one in self.release.cubes}
        fitting, first = [], None
        for name, table in tables.items():
            try:
                planned = plan_table(base, table, self.codelists, self.secret(0))
                if base.budget is not None:
                    balance(base.account, base.budget, [planned])
                type(planned).refuse_unsuitable({name: planned}, self.ready.opened)
            except SfumatoError as error:
                reasons[name], first = why_not(error), first or error
                continue
            if reason := _not_compared(planned):
                reasons[name] = reason
            else:
                fitting.append(table)
        made = base.model_copy(update={"tables": tuple(fitting)})
        return Candidate(label=label, method=method, release=made, left_out=reasons, error=first)

    # What they are measured by.

    def prepare(self) -> None:
        """Count the true cells of all tables that true numbers could be published of, with their contributors."""
        rules = Wanted(method="suppression", options={"minimum_units": 3, "p": 15})
        candidate = self.under(rules)
        if not candidate.release.tables:
            return
        plan = make_plan(candidate.release, self.codelists, self.secret(0))
        tables = {one.name: one for one in plan.tables}
        for name, true in replace(self.ready, plan=plan).tabulate(tables):
            self.counted.append((tables[name], true))
            self._know_table(tables[name], true, plan)

    def _know_table(self, table: PublishedTable, true: Cells, plan: Plan) -> None:
        dimensions = _without_totals(table)
        parts = float(true["parts"][0]) if len(true) else 1.0
        columns = {
            name: laid_out(true, dimensions, true[f"{name}_0"] / (1 if name == "units" else parts), 0.0)
            for name in ("units", "largest", "second")
        }
        target = self._target(
            table,
            table.name,
            table.title,
            unit=table.unit(plan),
            dimensions=dimensions,
            true=laid_out(true, dimensions, true["count"].astype(np.float64), 0.0),
            counts=table.table.statistic == "count",
        )
        contributors = Contributors(
            number=columns["units"].astype(np.int64), largest=columns["largest"], second=columns["second"]
        )
        self.targets[table.name] = replace(target, contributors=contributors)

    def _know_view(self, table: PublishedTable, view: View) -> None:
        dimensions = _without_totals(table, view.counted)
        every = (view.counted, *([] if view.withheld is None else [view.withheld]))
        true = sum(laid_out(one, dimensions, one["count"] / view.parts, 0.0) for one in every)
        self.targets[view.name] = self._target(
            table,
            view.name,
            view.title,
            unit=view.unit,
            dimensions=dimensions,
            true=np.asarray(true, dtype=np.float64),
            counts=view.counts,
        )

    def _target(
        self,
        table: PublishedTable,
        name: str,
        title: str,
        *,
        unit: str,
        dimensions: tuple[Dimension, ...],
        true: Floats,
        counts: bool,
    ) -> Target:
        bounds = SIZE_CLASSES if counts else AMOUNT_CLASSES
        sizes = size_classes(np.ceil(np.abs(true)).astype(np.int64), bounds)
        labels = tuple(size_label(place, bounds) for place in range(len(bounds)))
        groups: dict[str, tuple[tuple[str, ...], Integers]] = {SIZE: (labels, sizes.astype(np.int64))}
        cells = Cells(dimensions=dimensions, positions=np.arange(len(true), dtype=np.int64))
        for attribute in self.strata:
            if (found := self._stratum(table, attribute, cells)) is not None:
                groups[attribute] = found
        return Target(name=name, title=title, unit=unit, dimensions=dimensions, true=true, groups=groups)

    def _stratum(self, table: PublishedTable, attribute: str, cells: Cells) -> tuple[tuple[str, ...], Integers] | None:
        """The stratum of every cell, where it is known of such a table."""
        own = next((one for one in cells.dimensions if one.name == attribute), None)
        if own is not None:
            known = self.codelists[attribute]
            words = dict(zip(known.codes, known.labels, strict=True))
            return tuple(words.get(code, code) for code in own.codes), cells.codes(attribute).astype(np.int64)
        if not self.release.data.is_public(attribute):
            return None
        found = table.strata(attribute, self.codelists[attribute], self.ready.opened, cells)
        return None if found is None else (found.labels, found.classes)

    # Their trials.

    def outcome(self, candidate: Candidate, progress: Progress, *, is_legacy: bool = False) -> Outcome:
        """What a candidate loses and tells, on average over its trials."""
        losses: dict[str, Losses] = {}
        attacks: dict[str, list[tuple[AttackResult, ...]]] = {}
        own: tuple[tuple[str, AttackResult], ...] = ()
        number, done, plan = self.trials, 0, None
        while done < number:
            plan = make_plan(candidate.release, self.codelists, self.secret(done))
            if done == 0:
                number = self._number(plan)
            progress(Step(f"{candidate.label}: trial {done + 1} of {number}", done / number))
            found = self._trial(plan, done, _within(progress, candidate.label, done, number))
            told: Mapping[str, Mapping[str, Any]] = {}
            if done == 0:
                assessment = assess_answers(found, self.report, accuracy=self.accuracy)
                own, told = tuple(assessment.attacks()), assessment.told
            shown = self._shown(found, told)
            for name, one in shown.items():
                losses.setdefault(name, Losses(self.targets[name], self.accuracy)).add(one)
                tried = common_attacks(self.targets[name], one, self._coarser(name, shown))
                attacks.setdefault(name, []).append(tuple(tried))
            done += 1
        if is_legacy:
            self.legacy = losses
        spent = Fraction(0) if plan is None else plan.epsilon()
        return Outcome(
            label=candidate.label,
            method=candidate.method,
            epsilon=spent or None,
            trials=done,
            tables=tuple(self._table(name, losses[name], attacks[name]) for name in losses),
            attacks=own,
            left_out=candidate.left_out,
        )

    def _number(self, plan: Plan) -> int:
        """How many trials tell something: one where there is no chance, and few where each is a count."""
        if any(table.key for table in plan.tables):
            return min(self.trials, KEYS)
        return self.trials if any(table.guarantee.bound is not None for table in plan.tables) else 1

    def _trial(self, plan: Plan, number: int, progress: Progress) -> PublishedRelease:
        trial, counted = Trial(seed=self.seed, number=number), list(self.counted)

        def draw(table: PublishedTable, true: Any) -> Cells:
            keyed = table.randomness(plan.secret, true) if table.key else trial.chance(table.digest(""))
            return table.drawn(true, keyed)

        found = on_trial(replace(self.ready, plan=plan), counted, progress, draw=draw)
        self.counted[:] = [one for one in counted if not one[0].key]  # what a key made is for that key
        return found

    def _shown(self, found: PublishedRelease, told: Mapping[str, Mapping[str, Any]]) -> dict[str, Shown]:
        """What readers get of every table, over the cells that all candidates are measured by."""
        made = {}
        for table in found.plan.tables:
            name, unit = table.name, table.unit(found.plan)
            whole = true_cells(found, table)
            for view in views(table, whole, found.given[name], agreed=found.shown[name], unit=unit):
                if view.name not in self.targets:
                    self._know_view(table, view)
                bounds = told.get(name, {})
                made[view.name] = _shown(view, self.targets[view.name], whole, bounds)
        return made

    def _coarser(self, name: str, shown: Mapping[str, Shown]) -> list[tuple[Target, Shown]]:
        """The tables of the same candidate that have sums of this one."""
        target = self.targets[name]
        return [(self.targets[other], one) for other, one in shown.items() if is_coarser(target, self.targets[other])]

    def _table(self, name: str, losses: Losses, attacks: Sequence[tuple[AttackResult, ...]]) -> TableLoss:
        target = self.targets[name]
        return TableLoss(
            name=name,
            title=target.title,
            unit=target.unit,
            losses=losses.by(self.legacy.get(name)),
            attacks=tuple(Disclosed.over(some) for some in zip(*attacks, strict=True)),
        )


def _within(progress: Progress, label: str, done: int, number: int) -> Progress:
    """What tells how far a candidate is, in one of its trials."""

    def told(step: str) -> None:
        share = getattr(step, "share", None)
        words = f"{label}: {step}" + ("" if share is None else f", {share:.0%}")
        progress(Step(words, (done + (share or 0.0)) / number))

    return told


def _shown(view: View, target: Target, whole: Cells, bounds: Mapping[str, Any]) -> Shown:
    told = np.ones(len(target.true), dtype=bool)
    if view.withheld is not None:
        lacking = laid_out(view.withheld, target.dimensions, np.ones(len(view.withheld)), 0.0)
        told = lacking == 0
    value = laid_out(view.counted, target.dimensions, view.shown / view.parts, 0.0)
    guess = None
    if "reader_low" in bounds:
        middle = (bounds["reader_low"] + bounds["reader_high"]) / 2
        guess = laid_out(whole, target.dimensions, np.where(np.isfinite(middle), middle, np.nan), np.nan)
    return Shown(value=value, told=told, guess=guess)


def _without_totals(table: PublishedTable, cells: Cells | None = None) -> tuple[Dimension, ...]:
    """The dimensions of a table, or of one of its views, without the codes of totals."""
    by = table.by if cells is None else cells.dimensions
    if not table.table.totals:
        return by
    return tuple(replace(one, codes=tuple(code for code in one.codes if code != TOTAL)) for one in by)


def _not_compared(table: PublishedTable) -> str:
    """Why a table that can be protected is not compared; empty where it is."""
    reasons: dict[str, Callable[[], bool]] = {
        "its values are estimates for groups of people, which sfumato preview assesses by the size of the group": (
            lambda: table.estimates
        ),
        "it lists values from a threshold on only, which sfumato assess compares with a legacy": lambda: table.sparse,
        "its values are rates of growth, whose error is no share of them": lambda: table.relative,
        f"it has more than {MOST_CELLS:,} cells, which are not looked at as a whole": (
            lambda: table.cells > MOST_CELLS
        ),
    }
    return next((words for words, holds in reasons.items() if holds()), "")


def _hides_single_jobs(table: PublishedTable) -> bool:
    """Whether its guarantee is for individuals alone, for whom sizes and so alpha play no part."""
    bound = table.guarantee.bound
    return bound is not None and bound.definition == "individuals"


def refuse_unknown_strata(release: Release, codelists: Mapping[str, Codelist], attributes: Sequence[str]) -> None:
    """Refuse attributes that make no strata: of jobs any public one does, and any that a table is by."""
    data = release.data
    asked = dict.fromkeys(name for one in release.tables for name in one.by if name in codelists)
    public = data.public_attributes if data.of_jobs else ()
    known = [name for name in dict.fromkeys((*public, *asked)) if 1 < len(codelists[name].codes) <= MOST_STRATA]
    for name in attributes:
        if name not in known:
            codes = len(codelists[name].codes) if name in codelists else 0
            few = f"{codes:,} codes" if not 1 < codes <= MOST_STRATA else "one that is confidential, and no table is by"
            raise ReleaseError(
                f"--by {name}",
                expected=f"an attribute that tells cells apart, with 2 to {MOST_STRATA} codes: {', '.join(known)}",
                found=few if codes else f"'{name}', which is none",
                do="name one of these, or describe a coarser attribute under [data]",
            )
