"""Run a release: check, validate, charge, tabulate, protect, keep the answers, publish."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.bundle.manifest import MANIFEST
from sfumato.bundle.series import write_series
from sfumato.bundle.versions import Version
from sfumato.bundle.write import mend, refuse_another, refuse_foreign, refuse_series, write_bundle
from sfumato.checking import Checked, Progress, Step, checked, stored_answers
from sfumato.chunks import Chunk, write_chunk
from sfumato.durable import alone, private_folder
from sfumato.engine.chunks import ChunkLayout
from sfumato.engine.memory import DataTotals
from sfumato.errors import ReleaseError
from sfumato.identity import of_another_period
from sfumato.keys import Secret
from sfumato.plan import Plan
from sfumato.privacy.account import Balance
from sfumato.privacy.answers import Answers
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.entries import REVISED
from sfumato.privacy.ledger import Ledger, charged_about_others
from sfumato.privacy.windows import Calendar
from sfumato.release import Release
from sfumato.safeguards import edition_of, refuse_another_key, refuse_gone, refuse_rolled_back, refuse_unlinked
from sfumato.statistic import Statistic, decided_together

if TYPE_CHECKING:  # a release of tables loads nothing of cubes
    from sfumato.engine.guesses import Guess
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
    calendars: tuple[Calendar, ...] = ()
    """What every period spent of the windows over several periods."""
    finished: tuple[str, ...] = ()
    """Tables that an earlier run had charged and did not live to answer: this run drew them."""
    totals: DataTotals = field(default_factory=DataTotals)
    """How much was read: confidential, for whoever runs the release, and in no bundle."""
    unmet: "Mapping[str, Calibration]" = field(default_factory=dict)
    """Calibrations that did not converge, by the name of the cube: it does not add up to its controls."""
    changes: tuple[str, ...] = ()
    """What changed in the data since they were last charged, where that made new charges."""
    reading: "Mapping[str, Guess]" = field(default_factory=dict)
    """How the tables were read that are no Parquet."""
    version: Version | None = None
    """Of a series: the version of the period that is published now."""
    unchanged: bool = False
    """Whether the bundle is the one that was there before."""
    charged_about_others: frozenset[str] = frozenset()
    """Tables that were charged before as if they were about other establishments, or all: by an earlier version."""


def run(
    release: Release,
    progress: Progress = lambda _: None,
    notice: Progress = lambda _: None,
    *,
    revise: str | None = None,
    replace: bool = False,
    busy: Callable[[], None] = lambda: None,
) -> Published:
    """Publish a release; `notice` is told before the charge what changed in the data and makes one.

    Of a series, a period that was published with other data is published once more only with a reason to `revise` it.
    The bundle of another release is replaced only with `replace`.
    Of two runs with one ledger the second waits, before it charges anything, and then finds the answers of the first;
    `busy` is called before it waits, and may refuse to.

    The budget is charged, durably, before any table is tabulated; a run that is killed at any moment leaves no charge,
    or a charge and a release that the next run finishes without a second one.
    """
    answers = stored_answers(release)
    _refuse_other_bundle(release, revise, replace=replace)
    with checked(release, progress) as ready:
        plan, identity = ready.plan, ready.identity
        progress("charge")
        ledger = open_ledger(release)
        refuse_another_key(plan, identity, ledger)
        charges = identity.charges(plan)
        with alone(release.store / "lock", busy):
            changes = identity.changes(plan, release.account)
            edition = None if release.series is None else edition_of(plan, charges, ledger.history(), changes)
            if edition is not None:
                edition.refuse_unsaid(revise)
            if edition is not None and edition.is_published:
                return Published(
                    bundle=release.bundle,
                    plan=plan,
                    charged=(),
                    balance=None if release.budget is None else ledger.balance(release.account),
                    calendars=_calendars(release, ledger),
                    totals=ready.totals,
                    version=edition.newest,
                    unchanged=True,
                )
            for words in changes:
                notice(words)
            questions = {charge.table: charge.question for charge in charges}
            decided = _decided(ready, questions, ledger, answers, progress)
            receipt = ledger.charge(
                release.account,
                charges,
                _charged_as(release, revise),
                budget=release.budget,
                content=identity.content,
                window=release.window,
                many_periods=release.time is not None,
            )
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
            tabulated = ready.tabulate({name: one for name, one in whole.items() if name not in decided})
            first = list(islice(tabulated, 1))
            progress("protect")
            drawn = ((name, whole[name].answer(counted, plan.secret)) for name, counted in chain(first, tabulated))
            for name, answer in chain(decided.items(), drawn):
                if name in whole:
                    question, content = questions[name], whole[name].content(answer)
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
        before = _manifest(release.bundle)
        version, new = _publish(ready, given, identifiers, spent, (revise or "").strip())
        charged = tuple(one.name for one in plan.distinct() if identifiers[one.name] in receipt.new)
        return Published(
            bundle=release.bundle,
            plan=plan,
            charged=charged,
            finished=tuple(name for name in left if name not in charged),
            balance=None if release.budget is None else ledger.balance(release.account),
            calendars=_calendars(release, ledger),
            totals=ready.totals,
            unmet={one.name: found for one in plan.cubes if (found := one.unmet(given[one.name])) is not None},
            changes=changes,
            reading=ready.reading,
            version=version,
            unchanged=not new or before == _manifest(release.bundle),
            charged_about_others=charged_about_others(charges, receipt.entries),
        )


def _decided(
    ready: Checked, questions: Mapping[str, str], ledger: Ledger, answers: Answers, progress: Progress
) -> dict[str, Any]:
    """The answers that are decided together and were not given before; what cannot be decided is refused uncharged."""
    plan = ready.plan
    refuse_unlinked(plan, ready.identity, ledger.history())
    waiting = {one.name: one for one in plan.distinct() if one.decided_by() is not None}
    recorded = {entry.question: entry.answer for entry in ledger.history() if entry.kind == "answer"}
    given = {name: recorded.get(questions[name]) or answers.kept(questions[name]) for name in waiting}
    known = {
        name: (one, one.as_asked(answers.read_file(questions[name], digest)))
        for name, one in waiting.items()
        if (digest := given[name]) is not None
    }
    return decided_together(
        {name: one for name, one in waiting.items() if name not in known},
        {**known, **plan.known_before},
        ready.count,
        plan.secret,
        lambda words, share: progress(Step(words, share)),
        last=of_another_period(waiting, plan.release.account, ledger.history(), answers),
    )


def _publish(
    ready: Checked, given: Mapping[str, Any], identifiers: Mapping[str, str], spent: OverPeriods, reason: str
) -> tuple[Version | None, bool]:
    """Write the bundle, or the next version of a period of a series, unless another run was faster."""
    plan, folder = ready.plan, ready.plan.release.bundle
    if plan.release.series is None:
        write_bundle(plan, given, identifiers, folder, each_file=ready.each_file, spent=spent)
        return None, True
    return write_series(plan, given, identifiers, folder, each_file=ready.each_file, spent=spent, reason=reason)


def _calendars(release: Release, ledger: Ledger) -> tuple[Calendar, ...]:
    """What the period of a release and those beside it spend of every window, where it costs something."""
    return () if release.budget is None else ledger.calendars(release.about.population, release.about.period)


def _charged_as(release: Release, revise: str | None) -> str:
    """The name of a release in the ledger, of a revision with its reason."""
    return release.about.title if revise is None else f"{release.about.title}{REVISED}{revise.strip()}"


def _refuse_other_bundle(release: Release, revise: str | None, *, replace: bool) -> None:
    """Refuse a folder that the release must not be published into, and a reason where nothing can be revised."""
    refuse_foreign(release.bundle)
    names = [*(table.name for table in release.tables), *(cube.name for cube in release.cubes)]
    if release.series is not None:
        mend(release.bundle)
        refuse_another(release.bundle, release.about, names)
        return
    refuse_series(release.bundle)
    if not replace:
        refuse_another(release.bundle, release.about, names)
    if revise is not None:
        raise ReleaseError(
            "--revise",
            expected="a series, whose periods are kept in all versions",
            found="a release of one period, whose bundle is replaced",
            do="leave --revise out, or add [series] to the release file; see docs/series.md",
        )


def _manifest(bundle: Path) -> bytes:
    """What a bundle lists, each file with its digest: the same list is the same bundle."""
    file = bundle / MANIFEST
    return file.read_bytes() if file.is_file() else b""


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
