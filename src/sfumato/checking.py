"""Check a release: its plan, and its data against their description; nothing is charged or published."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from tempfile import gettempdir
from typing import Any, Self

from sfumato.agree.largest import related_attributes
from sfumato.chunks import Chunk
from sfumato.content import Content
from sfumato.durable import FULL, no_room, private_folder
from sfumato.earlier import releases_before, with_earlier
from sfumato.engine.chunks import Chunked, OfFile, OfRows, each_chunk, each_file
from sfumato.engine.content import ContentReader
from sfumato.engine.data import OpenJobs, OpenRecords, open_data
from sfumato.engine.data_files import DataFile, data_files
from sfumato.engine.executors import refuse_unshared
from sfumato.engine.guesses import Guess
from sfumato.engine.memory import DataTotals, Memory
from sfumato.errors import BudgetError, DataError, LedgerError, ReleaseError, SfumatoError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data
from sfumato.identity import Identity, of_another_period
from sfumato.plan import Plan, make_plan
from sfumato.privacy.account import Balance, Charge, Overdraft
from sfumato.privacy.answers import Answers
from sfumato.privacy.book import old_names
from sfumato.privacy.entries import Entry, answers_of
from sfumato.privacy.ledger import Ledger, charged_about_others, refusal_of_new
from sfumato.privacy.windows import Calendar, PeriodCost
from sfumato.release import Release
from sfumato.safeguards import (
    Edition,
    as_rounded_before,
    due_epsilon,
    edition_of,
    refuse_another_key,
    refuse_gone,
    refuse_other_units,
    refuse_rolled_back,
    refuse_unlinked,
)
from sfumato.statistic import Statistic
from sfumato.statistics.kinds import by_kind, by_scan
from sfumato.wishes.bought import Offer, offers

Progress = Callable[[str], None]
"""Told the name of each step when it begins, and a `Step` with the share that is done of some."""


class Step(str):
    """The name of a step of which it is known how much is done.

    >>> step = Step("rounding", 0.4)
    >>> step, step.share, f"{step:s}"
    ('rounding', 0.4, 'rounding')
    """

    __slots__ = ("share",)
    share: float

    def __new__(cls, name: str, share: float) -> Self:
        """A name with a share between 0 and 1."""
        step = super().__new__(cls, name)
        step.share = min(max(share, 0.0), 1.0)
        return step


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a check found: the plan, and the balance of the budget when the ledger has one already."""

    plan: Plan
    balance: Balance | None
    paid: frozenset[str]
    """Tables that were charged before: publishing them again costs nothing."""
    refusal: BudgetError | None
    """Why the ledger would refuse the charge, if it would."""
    possible_refusal: BudgetError | None
    """Why it may do so, where that depends on data that were not opened: whether they are those that were charged, and
    so whether tables were charged before or are about other establishments than what was."""
    due: Fraction
    """The epsilon that a run would charge: what all that was not charged before adds to what is spent.

    Where no data were opened, the most that it may be."""
    charged_about_others: frozenset[str] = frozenset()
    """Tables that were charged before as if they were about other establishments, or all: by an earlier version."""
    totals: DataTotals | None = None
    """How much was read: confidential, for whoever checks. None when no data were opened."""
    average_weight: float | None = None
    """Of the records that cubes are made of: confidential, too."""
    weighing: Mapping[str, Any] = field(default_factory=dict)
    """What weights mean for the noise of tables that bound them, by table: confidential, too."""
    offers: Mapping[str, Offer] = field(default_factory=dict)
    """What a bought scale would do for the published errors of tables, by public numbers."""
    cut: Mapping[str, Any] = field(default_factory=dict)
    """What caps take off totals of jobs, by measure: confidential, too."""
    foreseen: Mapping[str, Any] = field(default_factory=dict)
    """What would be withheld of true numbers, by table: confidential, too."""
    changes: tuple[str, ...] = ()
    """What changed in the data since they were last charged, where that makes new charges."""
    reading: Mapping[str, Guess] = field(default_factory=dict)
    """How the tables are read that are no Parquet, and what of that was guessed."""
    edition: Edition | None = None
    """Of a series: whether the period is new, published already, or would be revised."""
    calendars: tuple[Calendar, ...] = ()
    """What every period spent of the windows over several periods, the one that is checked among them."""

    @property
    def left(self) -> Fraction:
        """The epsilon that the account has left, before that."""
        budget = self.plan.release.budget
        allowed = Fraction(0) if budget is None else budget.epsilon
        return allowed if self.balance is None else self.balance.remaining_epsilon

    @property
    def heaviest(self) -> float | None:
        """How many averages a record may weigh in weighted counts of the release: as tables, or ad-hoc ones, state."""
        release = self.plan.release
        stated = [table.protect.options.get("largest_weight") for table in release.tables]
        known = [weight for weight in (*stated, release.live.largest_weight) if weight is not None]
        return min(known) / self.average_weight if known and self.average_weight else None


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A release whose data passed validation, with the engine still open."""

    plan: Plan
    opened: OpenJobs | OpenRecords
    identity: Identity
    states: list[list[int | str]]
    totals: DataTotals
    """How much was read: confidential."""

    @property
    def reading(self) -> Mapping[str, Guess]:
        """How the tables were read that are no Parquet."""
        return self.opened.tables.sources.guesses

    def tabulate(self, statistics: Mapping[str, Statistic]) -> Iterator[tuple[str, Any]]:
        """The true numbers of some statistics in their order, of the very files that were validated."""
        with ExitStack() as stack:
            scans = {
                kind: stack.enter_context(closing(kind.tabulate(batch, self.opened, self.plan.secret)))
                for kind, batch in by_scan(statistics).items()
            }
            stack.enter_context(self.opened.tables.engine.lending())
            ahead: dict[str, Any] = {}  # what a scan of several statistics gave before its turn
            for name, statistic in statistics.items():
                while name not in ahead:
                    ahead |= [next(scans[statistic.scanned_as()])]
                _refuse_changed(self.plan.release, self.states)
                yield name, ahead.pop(name)

    def count(self, statistics: Mapping[str, Statistic]) -> dict[str, Any]:
        """The same of all at once, where they fit into memory together."""
        return dict(self.tabulate(statistics))

    @contextmanager
    def tabulate_in_chunks(self, statistics: Mapping[str, Statistic]) -> Iterator[Mapping[str, Chunked]]:
        """Some statistics cut into chunks; they are tabulated when they are worked on."""
        with ExitStack() as stack:
            kinds = by_scan(statistics).items()
            cut = [
                stack.enter_context(kind.tabulate_in_chunks(batch, self.opened, self.plan.secret))
                for kind, batch in kinds
            ]
            yield {name: chunks for found in cut for name, chunks in found.items()}

    def each_chunk(self, chunks: Chunked, work: OfRows) -> Iterator[Chunk]:
        """Tabulate a table and work on every chunk, of the very files that were fingerprinted and validated."""
        yield from each_chunk(self.opened.tables.engine, chunks, work)
        _refuse_changed(self.plan.release, self.states)

    def each_file(self, numbers: Sequence[int], work: OfFile) -> Iterator[Chunk]:
        """Work on the files of stored chunks."""
        yield from each_file(self.opened.tables.engine, numbers, work)


_VALIDATION = 3
"""Goes up when more is refused than before: what passed then is looked at again."""


def check(release: Release, *, data: bool = True, progress: Progress = lambda _: None) -> Findings:
    """Plan a release and validate its data; with `data=False` no data file is opened."""
    if data:
        with checked(release, progress, everything=True) as ready:
            return findings(ready, progress)
    refuse_gone(release)
    plan = make_plan(release, _declared_codes(release))
    return _findings(plan, plan.charges("0"), opened=False)


def findings(ready: Checked, progress: Progress = lambda _: None) -> Findings:
    """What is found of a plan and the data it was checked with, and what the ledger would say; nothing is charged."""
    plan, identity = ready.plan, ready.identity
    if plan.release.ledger.exists():
        refuse_another_key(plan, identity, Ledger.open(plan.release.ledger))
        refuse_unlinked(plan, identity, identity.history)
    charges, changes = identity.charges(plan), identity.changes(plan, plan.release.account)

    def due(changed: Plan) -> Fraction:
        return due_epsilon(changed, identity.charges(changed), identity.history)

    return _findings(
        plan,
        charges,
        content=identity.content,
        totals=ready.totals,
        average_weight=_average_weight(ready),
        weighing=_weighing(ready),
        offers=offers(plan, ready.opened, due) if plan.release.data.of_jobs else {},
        cut=_cut(ready),
        foreseen=_foreseen(ready, charges, progress),
        changes=changes,
        edition=None if plan.release.series is None else edition_of(plan, charges, identity.history, changes),
        reading=ready.reading,
    )


def _findings(
    plan: Plan, charges: Sequence[Charge], content: Content | None = None, *, opened: bool = True, **found: Any
) -> Findings:
    release = plan.release
    balance, paid, history = None, frozenset[str](), tuple[Entry, ...]()
    budget = release.budget
    window, asked = release.window, release.account
    alone = refusal = None if budget is None else refusal_of_new(asked, charges, budget, window)
    stated = [] if window is None else [Calendar.of(window, [PeriodCost(period=asked.period)])]
    calendars = tuple(stated)
    if release.ledger.exists():
        ledger = Ledger.open(release.ledger)
        refuse_rolled_back(release, ledger)
        if budget is not None:
            many = release.time is not None
            refusal = ledger.refusal(asked, charges, budget, content=content, window=window, many_periods=many)
            calendars = ledger.calendars(asked.population, asked.period, window)
        history = ledger.history(release.account)
        charged = {entry.question for entry in history if entry.kind == "charge"}
        paid = frozenset(charge.table for charge in charges if charge.question in charged)
        if ledger.has_budget(release.account):
            balance = ledger.balance(release.account)
    # What these tables cost by themselves is known without the data, and so is which budget the ledger has.
    sure = opened or alone is not None or not isinstance(refusal, Overdraft)
    return Findings(
        plan=plan,
        balance=balance,
        paid=paid,
        refusal=refusal if sure else None,
        possible_refusal=None if sure else refusal,
        due=due_epsilon(plan, charges, history),
        calendars=calendars,
        charged_about_others=charged_about_others(charges, history),
        **found,
    )


def _weighing(ready: Checked) -> dict[str, Any]:
    """What weights mean for the noise of tables that bound them."""
    batches = by_kind({one.name: one for one in ready.plan.tables}).items()
    return {name: found for kind, batch in batches for name, found in kind.weighing(batch, ready.opened).items()}


def _cut(ready: Checked) -> dict[str, Any]:
    """What caps take off totals, by measure."""
    batches = by_kind({one.name: one for one in ready.plan.tables}).items()
    return {name: found for kind, batch in batches for name, found in kind.cut(batch, ready.opened).items()}


def _foreseen(ready: Checked, charges: Sequence[Charge], progress: Progress) -> dict[str, Any]:
    """What would be withheld of tables that are decided together; what was published before says it itself."""
    plan, found = ready.plan, dict[str, Any]()
    questions = {charge.table: charge.question for charge in charges}
    waiting = {one.name: one for one in plan.tables if one.decided_by() is not None}
    before = {
        name: (one, one.as_asked(stored))
        for name, one in waiting.items()
        if (stored := ready.identity.stored(questions[name])) is not None
    }
    known = {**before, **plan.known_before}
    for kind, batch in by_kind({name: one for name, one in waiting.items() if name not in before}).items():
        counted = ready.count({**batch, **{name: one for name, (one, _) in known.items()}})
        found |= kind.foreseen(
            {name: (one, counted[name]) for name, one in batch.items()},
            {name: (one, counted[name], answer) for name, (one, answer) in known.items()},
            plan.secret,
            lambda words, share: progress(Step(words, share)),
            of_another_period(batch, plan.release.account, ready.identity.history, ready.identity.answers),
        )
    return found


def _average_weight(ready: Checked) -> float | None:
    """Of records with weights, where there is a cube whose noise is in averages of them."""
    data: Any = ready.plan.release.data
    if not ready.plan.cubes or data.records.weight is None:
        return None
    tables: Any = ready.opened.tables
    row = tables.records.row(_average=f"avg(CAST({tables.engine.q(data.records.weight)} AS DOUBLE))")
    return float(row["_average"]) if row["_average"] else None


@contextmanager
def checked(
    release: Release,
    progress: Progress = lambda _: None,
    *,
    further: Iterable[Iterable[str]] = (),
    everything: bool = False,
    remember: bool = True,
) -> Iterator[Checked]:
    """Open the data of a release, make its plan, and validate the data unless these very files passed before.

    What no statistic looks at is validated only when everything is asked for. What only looks does not remember, and
    writes nothing.
    """
    progress("read")
    files = data_files(release.data)
    states = _states(files)
    memory = Memory(release.store / "memory.json")
    history = _history(release)
    with _room(), ThreadPoolExecutor(max_workers=2) as pool, open_data(release.data) as opened:
        with _explaining():
            opened.check_columns()
            codelists = opened.codelists()
        plan, before = make_plan(release, codelists), releases_before(release, codelists)
        if _works_on_executors(plan):
            written = any(statistic.in_chunks for statistic in plan.statistics)
            refuse_unshared(opened.tables.engine, [release.store, release.bundle.parent] if written else [])
        progress("fingerprint")
        reader = ContentReader(release.data, opened.tables.sources.files, memory)
        reading = pool.submit(reader.read, [*(statistic.looks_at for statistic in plan.statistics), *further])
        digesting = pool.submit(memory.fingerprint, files) if old_names(history) else None
        progress("validate")
        addresses = [[name, file.address] for name, listed in files.items() for file in listed]
        described = validated_as(release.data, codelists, opened.tables.sources.guesses)
        key = hashlib.sha256((json.dumps([_VALIDATION, addresses, states]) + described).encode()).hexdigest()
        totals = memory.validated(key)
        looked_at = None if everything else frozenset[str]().union(*(one.looks_at for one in plan.statistics))
        if totals is None and looked_at is not None:
            key = hashlib.sha256(json.dumps([key, *sorted(looked_at)]).encode()).hexdigest()
            totals = memory.validated(key)
        with _explaining():
            if totals is None:  # while the files are read
                totals = opened.validate(codelists, looked_at)
            content = reading.result()
        fingerprint = digesting.result() if digesting is not None else ""
        _refuse_changed(release, states)
        if remember:
            private_folder(release.store)
            memory.remember(key, totals)
            memory.keep()
        totals.refuse_unlikely(release.data)
        identity = Identity(
            content=content, reader=reader, history=history, fingerprint=fingerprint, answers=stored_answers(release)
        )
        refuse_other_units(plan, identity)
        plan = identity.as_charged(as_rounded_before(plan, identity))
        for kind, batch in by_kind({one.name: one for one in plan.statistics}).items():
            kind.refuse_unsuitable(batch, opened)
        if remember:
            _note_equivalence(release, identity)
        known = [*plan.tables, *(table for one in before for table in one.tables())]
        plan = with_earlier(replace(plan, within=opened.within(related_attributes(known))), before, identity)
        yield Checked(plan=plan, opened=opened, identity=identity, states=states, totals=totals)


def validated_as(data: Data, codelists: Mapping[str, Codelist], guesses: Mapping[str, Guess]) -> str:
    """Everything but the files that decides what is read and what is refused, as one text.

    All that a description says is in it, but for fields that it excludes, which change no number; where files are is
    known by their addresses.
    """
    return data.model_dump_json() + repr((sorted(codelists.items()), sorted(guesses.items())))


def _history(release: Release) -> tuple[Entry, ...]:
    """The entries of the ledger, if there is one; one that forgot something is refused before it is added to."""
    refuse_gone(release)
    if not release.ledger.exists():
        return ()
    ledger = Ledger.open(release.ledger)
    refuse_rolled_back(release, ledger)
    return ledger.history()


def _note_equivalence(release: Release, identity: Identity) -> None:
    """Note what files have in them that were charged by their bytes, for the day when they are saved anew."""
    if identity.fingerprint in old_names(identity.history):
        content = identity.reader.read([[*release.data.attributes, *release.data.measures]])
        with suppress(LedgerError):  # whoever only looks may not be allowed to write; a run notes it
            Ledger.open(release.ledger).note_data(
                release.account, identity.content.with_more(content), identity.fingerprint
            )


def _works_on_executors(plan: Plan) -> bool:
    """Whether a cluster, if there is one, does more than count: parts are protected there, and factors computed."""
    factors = plan.release.data.of_jobs and any(statistic.key for statistic in plan.statistics)
    return factors or any(statistic.in_chunks for statistic in plan.statistics)


@contextmanager
def _explaining() -> Iterator[None]:
    """Turn what an engine says of bad data into an error that quotes no record."""
    try:
        yield
    except SfumatoError:
        raise
    except Exception as error:
        if _is_full(error):
            raise
        raise DataError(
            "data files",
            expected="files that the engine can read as the release file describes them",
            found=f"an error of type {type(error).__name__}, whose text may quote a record and is not shown",
            do="check that all files of a table are whole and have the same columns; SFUMATO_TRACEBACK=1 shows more",
        ) from error


@contextmanager
def _room() -> Iterator[None]:
    """Say in words that there is no room: for a file of ours, or for what does not fit into an engine's memory."""
    try:
        yield
    except SfumatoError:
        raise
    except Exception as error:
        if not _is_full(error):
            raise
        where = getattr(error, "filename", None) or f"temporary folder {gettempdir()}"
        raise no_room(str(where), found="no space left") from error


def _is_full(error: Exception) -> bool:
    """Whether the system, or an engine in its own words, says that there is no room on a disk."""
    return any(words in str(error) for words in (*map(os.strerror, FULL), "max_temp_directory_size"))


def stored_answers(release: Release) -> Answers:
    """The protected tables that were answered before, beside the ledger of a release."""
    return Answers(answers_of(release.ledger))


def _declared_codes(release: Release) -> dict[str, Codelist]:
    """The codelists of the release file alone."""
    codelists = {}
    for name in release.data.attributes:
        declared = release.data.declared_codes(name)
        if declared is None:
            raise ReleaseError(
                f"attribute '{name}'",
                expected="codes in the release file, when no data are to be opened",
                found="none",
                do="give its `codes` or `codelist`, or check with the data",
            )
        codelists[name] = declared
    return codelists


def _states(files: Mapping[str, Sequence[DataFile]]) -> list[list[int | str]]:
    return [file.state() for listed in files.values() for file in listed]


def _refuse_changed(release: Release, seen: list[list[int | str]]) -> None:
    if _states(data_files(release.data)) != seen:
        raise DataError(
            "data files",
            expected="files that stay as they are during a run",
            found="files that were written to meanwhile",
            do="run again when they are complete",
        )
