"""Protect a table part by part: true rows in, a file of protected cells out, in this process or another."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from sfumato.bundle.write import refuse_foreign, write_bundle
from sfumato.cells import Cells
from sfumato.check import Progress, checked, stored_answers
from sfumato.chunks import Part, write_part
from sfumato.durable import alone, private_folder
from sfumato.engine.chunks import PartLayout
from sfumato.engine.memory import DataTotals
from sfumato.keys import Secret
from sfumato.laid_out import as_asked
from sfumato.noise.randomness import OperatingSystem
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.account import Balance
from sfumato.privacy.answers import AnswerParts, Answers, content_of
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.safeguards import refuse_another_key, refuse_gone, refuse_rolled_back
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import Calibration, Sampling
from sfumato.statistics.cube.statistic import PlannedCube
from sfumato.statistics.cube.stored import read_figures, stored


@dataclass(frozen=True, kw_only=True)
class ProtectPart:
    """The work on one part of a charged table: a plain value, which may be sent to another process.

    Formal noise is drawn from the operating system of the process that works; keyed noise follows from the cells alone,
    and is the same wherever they are worked on. Nothing of the true rows leaves but through the protection.
    """

    planned: PlannedTable
    secret: Secret | None = field(repr=False)
    layout: PartLayout
    folder: Path
    """Where the file goes: a draft, of which nothing counts until all parts are there."""

    def __call__(self, rows: pa.Table) -> Part:
        """Protect the cells of one part and put them on the disk."""
        answer = self.planned.answer(self.layout.cells(rows), self.secret)
        return write_part(self.folder, rows["_part"][0].as_py(), content_of(answer), rows=len(answer))


# Run a release: check, validate, charge, tabulate, protect, keep the answer, publish.

STEPS = ("read", "fingerprint", "validate", "charge", "tabulate", "protect", "publish")
"""The steps a run reports, in order."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a run did."""

    bundle: Path
    plan: Plan
    charged: tuple[str, ...]
    """Tables that were charged by this run; the others are repeated from what is stored, or finished."""
    balance: Balance | None
    """Of the account; None when nothing of the release costs a budget."""
    finished: tuple[str, ...] = ()
    """Tables that an earlier run had charged and did not live to answer: this run drew them."""
    totals: DataTotals = field(default_factory=DataTotals)
    """How much was read: confidential, for whoever runs the release, and in no bundle."""
    unmet: Mapping[str, Calibration] = field(default_factory=dict)
    """Calibrations that did not converge, by the name of the cube: it does not add up to its controls."""
    changes: tuple[str, ...] = ()
    """What changed in the data since they were last charged, where that made new charges."""


def run(release: Release, progress: Progress = lambda _: None, notice: Progress = lambda _: None) -> Published:
    """Publish a release; `notice` is told before the charge what changed in the data and makes one.

    The budget is charged, durably, before any table is tabulated; a run that is killed at any moment leaves no charge,
    or a charge and a release that the next run finishes without a second one.
    """
    answers = stored_answers(release)
    refuse_foreign(release.bundle)
    with checked(release, progress) as ready:
        plan, identity = ready.plan, ready.identity
        progress("charge")
        ledger = open_ledger(release)
        refuse_another_key(plan, identity, ledger)
        charges = identity.charges(plan)
        changes = identity.changes(plan, release.account)
        for words in changes:
            notice(words)
        receipt = ledger.charge(
            release.account, charges, release.about.title, budget=release.budget, content=identity.content
        )
        questions = {charge.table: charge.question for charge in charges}
        with alone(release.store / "lock"):  # of two runs of one release the second finds the answers of the first
            answered = {entry.question: entry.answer for entry in ledger.history() if entry.kind == "answer"}
            open_parts = [part.name for part in plan.distinct_parts() if questions[part.name] not in answered]
            for name in open_parts:
                late = recorded_late(
                    release=release, ledger=ledger, answers=answers, question=questions[name], table=name
                )
                answered |= {} if late is None else {questions[name]: late}
            unanswered = {t.table.name: t for t in plan.distinct() if questions[t.table.name] not in answered}
            cubes = {cube.name: cube for cube in plan.distinct_cubes() if questions[cube.name] not in answered}

            def keep(name: str, answer: Cells | bytes) -> None:
                question = questions[name]
                answered[question] = keep_answer(
                    answer, release=release, ledger=ledger, answers=answers, question=question, table=name
                )

            def keep_in_parts(large: Mapping[str, PlannedTable]) -> None:
                with ready.in_parts(large) as cut:
                    for name, parted in cut.items():
                        question = questions[name]
                        folder = answers.draft(question)
                        work = ProtectPart(planned=large[name], secret=plan.secret, layout=parted.layout, folder=folder)
                        answered[question] = answers.keep_parts(question, ready.each_part(parted, work))
                        ledger.record_answer(release.account, question, name, answered[question])

            progress("tabulate")
            whole = {name: planned for name, planned in unanswered.items() if not planned.in_parts}
            counted = ready.count(whole) if whole else {}
            progress("protect")
            for name, planned in whole.items():
                keep(name, planned.answer(counted[name], plan.secret))
            keep_in_parts({name: planned for name, planned in unanswered.items() if planned.in_parts})
            for name, cube in cubes.items():  # one after the other: true cubes are large
                keep(name, _cube(cube, *ready.cube(cube)))

        progress("publish")
        kept = {name: (question, answered[question]) for name, question in questions.items()}
        given = {planned.name: _given(planned, answers, *kept[planned.name]) for planned in plan.tables}
        files = {cube.name: cube.published(answers.read_file(*kept[cube.name])) for cube in plan.cubes}
        identifiers = {charge.table: entry.identifier for charge, entry in zip(charges, receipt.entries, strict=True)}
        spent = ledger.over_periods(release.about.population)
        bundle = write_bundle(
            plan, given, identifiers, release.bundle, cubes=files, each_file=ready.each_file, spent=spent
        )
        charged = tuple(part.name for part in plan.distinct_parts() if identifiers[part.name] in receipt.new)
        return Published(
            bundle=bundle,
            plan=plan,
            charged=charged,
            finished=tuple(name for name in open_parts if name not in charged),
            balance=None if release.budget is None else ledger.balance(release.account),
            totals=ready.totals,
            unmet={name: found for name, content in files.items() if (found := _unmet(content)) is not None},
            changes=changes,
        )


def open_ledger(release: Release, *, remembers: bool = False) -> Ledger:
    """The ledger of a release, a new one where nothing was ever charged; one that forgot something is refused."""
    refuse_gone(release)
    private_folder(release.store)
    ledger = Ledger.open(release.ledger, create=True, remembers=remembers)
    refuse_rolled_back(release, ledger)
    ledger.note_end()
    return ledger


def recorded_late(*, release: Release, ledger: Ledger, answers: Answers, question: str, table: str) -> str | None:
    """The answer that a killed run kept and did not live to record, recorded now: it is never drawn again."""
    answers.sweep(question)
    digest = answers.kept(question)
    if digest is not None:
        ledger.record_answer(release.account, question, table, digest)
    return digest


def keep_answer(
    answer: Cells | bytes, *, release: Release, ledger: Ledger, answers: Answers, question: str, table: str
) -> str:
    """Put the answer to a charged question on the disk and record its digest, which is returned."""
    digest = answers.keep_file(question, answer) if isinstance(answer, bytes) else answers.keep(question, answer)
    ledger.record_answer(release.account, question, table, digest)
    return digest


def _given(planned: PlannedTable, answers: Answers, question: str, digest: str) -> Cells | AnswerParts:
    """The answer to publish: in parts when there are several, and the table need not be seen as a whole."""
    found = answers.in_parts(question, digest)
    if found is None or len(found) == 1 or not planned.in_parts:
        return as_asked(answers.read(question, digest), planned)
    return found


def _cube(planned: PlannedCube, true: Cube, sampling: Sampling | None) -> bytes:
    """A cube as it is published, with the figures for its errors."""
    cube, figures = planned.protect(true, OperatingSystem())
    return stored(cube, replace(figures, sampling=planned.told_sampling(sampling)))


def _unmet(content: bytes) -> Calibration | None:
    found = read_figures(content).calibration
    return None if found is None or found.converged else found
