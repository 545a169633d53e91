"""Run a release: check, validate, charge, tabulate, protect, keep the answers, publish."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.bundle.write import refuse_foreign, write_bundle
from sfumato.checking import Progress, checked, stored_answers
from sfumato.chunks import Chunk, write_chunk
from sfumato.durable import alone, private_folder
from sfumato.engine.chunks import ChunkLayout
from sfumato.engine.memory import DataTotals
from sfumato.keys import Secret
from sfumato.plan import Plan
from sfumato.privacy.account import Balance
from sfumato.privacy.answers import Answers
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.safeguards import refuse_another_key, refuse_gone, refuse_rolled_back
from sfumato.statistic import Statistic

if TYPE_CHECKING:  # a release of tables loads nothing of cubes
    from sfumato.statistics.cube.figures import Calibration

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
    unmet: "Mapping[str, Calibration]" = field(default_factory=dict)
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
            unanswered = {one.name: one for one in plan.distinct() if questions[one.name] not in answered}
            left = tuple(unanswered)
            for name in left:
                late = recorded_late(
                    release=release, ledger=ledger, answers=answers, question=questions[name], table=name
                )
                if late is not None:
                    answered[questions[name]] = late
                    del unanswered[name]
            progress("tabulate")
            whole = {name: one for name, one in unanswered.items() if not one.in_chunks}
            tabulated = ready.tabulate(whole)
            first = list(islice(tabulated, 1))
            progress("protect")
            for name, counted in chain(first, tabulated):
                question, one = questions[name], whole[name]
                content = one.content(one.answer(counted, plan.secret))
                answered[question] = keep_answer(
                    content, release=release, ledger=ledger, answers=answers, question=question, table=name
                )
            large = {name: one for name, one in unanswered.items() if one.in_chunks}
            with ready.tabulate_in_chunks(large) as cut:
                for name, chunks in cut.items():
                    question = questions[name]
                    folder = answers.draft(question)
                    work = ProtectChunk(statistic=large[name], secret=plan.secret, layout=chunks.layout, folder=folder)
                    answered[question] = answers.keep_chunks(question, ready.each_chunk(chunks, work))
                    ledger.record_answer(release.account, question, name, answered[question])

        progress("publish")
        kept = {name: (question, answered[question]) for name, question in questions.items()}
        given = {one.name: _given(one, answers, *kept[one.name]) for one in plan.statistics}
        identifiers = {charge.table: entry.identifier for charge, entry in zip(charges, receipt.entries, strict=True)}
        spent = ledger.over_periods(release.about.population)
        bundle = write_bundle(plan, given, identifiers, release.bundle, each_file=ready.each_file, spent=spent)
        charged = tuple(one.name for one in plan.distinct() if identifiers[one.name] in receipt.new)
        return Published(
            bundle=bundle,
            plan=plan,
            charged=charged,
            finished=tuple(name for name in left if name not in charged),
            balance=None if release.budget is None else ledger.balance(release.account),
            totals=ready.totals,
            unmet={one.name: found for one in plan.cubes if (found := one.unmet(given[one.name])) is not None},
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


def keep_answer(content: Any, *, release: Release, ledger: Ledger, answers: Answers, question: str, table: str) -> str:
    """Put the answer to a charged question on the disk and record its digest, which is returned."""
    digest = answers.keep_file(question, content)
    ledger.record_answer(release.account, question, table, digest)
    return digest


def _given(statistic: Statistic, answers: Answers, question: str, digest: str) -> Any:
    """The answer to publish: in chunks when there are several, and the table need not be seen as a whole."""
    found = answers.in_chunks(question, digest)
    if found is None:
        return statistic.as_asked(answers.read_file(question, digest))
    if len(found) == 1 or not statistic.in_chunks:
        return statistic.as_asked(answers.read(question, digest))
    return found


@dataclass(frozen=True, kw_only=True)
class ProtectChunk:
    """The work on one chunk of a charged table: a plain value, which may be sent to another process.

    Formal noise is drawn from the operating system of the process that works; keyed noise follows from the cells alone,
    and is the same wherever they are worked on. Nothing of the true rows leaves but through the protection.
    """

    statistic: Statistic
    secret: Secret | None = field(repr=False)
    layout: ChunkLayout
    folder: Path
    """Where the file goes: a draft, of which nothing counts until all chunks are there."""

    def __call__(self, rows: pa.Table) -> Chunk:
        """Protect the cells of one chunk and put them on the disk."""
        answer = self.statistic.answer(self.layout.cells(rows), self.secret)
        return write_chunk(self.folder, rows["_part"][0].as_py(), self.statistic.content(answer), rows=len(answer))
