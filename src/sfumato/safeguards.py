"""What must not be forgotten: charges in a ledger, the key and rounding of a table, what a series has published."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.bundle.manifest import MANIFEST, read_manifest
from sfumato.bundle.versions import SeriesBundle, Version
from sfumato.errors import BudgetError, BundleError, KeyFileError, LedgerError, ReleaseError
from sfumato.frame.records import OTHER_UNITS
from sfumato.frame.sources import written
from sfumato.identity import Identity
from sfumato.noise.factors import RoundingNote
from sfumato.plan import Plan
from sfumato.privacy.account import Account, Charge, Cost, balance, further, in_words
from sfumato.privacy.answers import Answers
from sfumato.privacy.blocks import EVERYTHING
from sfumato.privacy.book import known_data
from sfumato.privacy.entries import Entry, answers_of, gone, refuse_charged, store_of
from sfumato.privacy.guarantee import EmployerEmployee, at_most, described_caps
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistic import EXACT_NOTE, KEY_NOTE, LEVELS_NOTED
from sfumato.statistics.published import PublishedTable

# Keep a table under the key and the rounding it was published with: readers would average or combine two of them.


def refuse_another_key(plan: Plan, identity: Identity, ledger: Ledger) -> None:
    """Raise KeyFileError when a table was answered from these data with another key than the one in force.

    The office may want that all the same, when the old key leaked, and says so by `rekeyed = true`.
    """
    keyed = [planned for planned in plan.tables if planned.key]
    history = ledger.history()
    charged = frozenset(entry.question for entry in history if entry.kind == "charge")
    _refuse_second_key(plan, identity, history)
    new = [planned for planned in keyed if identity.charge(planned).question not in charged]
    for entry, fingerprint, note, noise in _answered_with_keys(history):
        same_key = [planned for planned in new if planned.noise and planned.key == fingerprint]
        _refuse_another_noise(same_key, entry, noise, same_data=entry.data in identity.names, release=plan.release)
        another = [planned for planned in keyed if planned.key != fingerprint and not plan.release.about.rekeyed]
        planned = next((one for one in another if identity.asks(one.in_whole_numbers(), entry, note.question)), None)
        if planned is not None:
            raise KeyFileError(
                f"table '{planned.table.name}'",
                expected=f"the key it was published with, {fingerprint}: a reader who has the table under two keys can "
                "average them",
                found=f"the key {planned.key}",
                do=f'write key_fingerprint = "{fingerprint}" under [release] to use the earlier key; or, if that one '
                "leaked, rekeyed = true",
            )


def refuse_other_units(plan: Plan, identity: Identity) -> None:
    """Raise KeyFileError when the units of records were published under another name with the key in force.

    Keys are made with the name of the unit's column. Under another name every unit has another key, and readers average
    what was published before and after, as under another key file.
    """
    fingerprint = next((table.key for table in plan.tables if table.key), "")
    if not fingerprint or plan.release.data.of_jobs or plan.release.data.accepted == OTHER_UNITS:
        return
    keyed = {entry.data for entry, used, *_ in _answered_with_keys(identity.history) if used == fingerprint}
    before = [
        known.content
        for known in known_data(identity.history)
        if not keyed.isdisjoint(known.all_names)
        and (
            known.entry.account.population == plan.release.account.population or known.content.same_as(identity.content)
        )
    ]
    units = tuple(map(written, plan.release.data.as_records().records.units))
    earlier = frozenset[str]().union(*(content.unit_names for content in before))
    new = [unit for unit in units if unit not in earlier]
    swapped = {content.tables["records"].key_columns[0] for content in before if content.unit_names}
    if earlier and not new and swapped and units[0] not in swapped:
        new = [units[0]]  # a larger unit's name for the record's own
    if earlier and new:
        named = dict.fromkeys(content.tables["records"].key_columns[0] for content in before if content.unit_names)
        were = " or ".join(f"'{name}'" for name in named)
        raise KeyFileError(
            "records, unit",
            expected=f"units of the same name as before, where a record's was {were}: their permanent keys are made "
            "with it, and a reader who has tables under two keys can average them",
            found=f"'{new[0]}'",
            do=f'if a column was only renamed, write its first name: key_names = {{ "{new[0]}" = "…" }} under '
            f'[data.records]; if these are units that were not published before, accept = "{OTHER_UNITS}"',
        )


def _refuse_second_key(plan: Plan, identity: Identity, history: Sequence[Entry]) -> None:
    """Refuse a new table under another key than the last one of these data, else of the account, else of the series.

    Whatever is asked, the same units would get a second, independent perturbation. A file that has periods in it is a
    series too: next month it has the same ones and one more, and perhaps another period in the release file.
    """
    release, charged = plan.release, {entry.question for entry in history if entry.kind == "charge"}
    answered = [(entry, fingerprint) for entry, fingerprint, _, _ in _answered_with_keys(history)]
    of_data = [used for entry, used in answered if entry.data in identity.names]
    of_account = [used for entry, used in answered if entry.account == release.account]
    of_series = [
        used
        for entry, used in answered
        if (release.series is not None or release.time is not None)
        and entry.account.population == release.account.population
    ]
    before = of_data or of_account or of_series
    for planned in plan.tables:
        if not before or planned.key in ("", before[-1]) or release.about.rekeyed:
            continue
        if identity.charge(planned).question not in charged:  # what was published stays as it was
            raise KeyFileError(
                f"table '{planned.table.name}'",
                expected=f"the key that {'the series' if release.series else release.account} was published with last, "
                f"{before[-1]}: a reader who has figures about the same units under two keys can average them",
                found=f"the key {planned.key}",
                do=f'name the key file that has it, with key_fingerprint = "{before[-1]}" if it was rotated; or, if it '
                "leaked, rekeyed = true, and say in the release that figures differ by more than the truth",
            )


def as_rounded_before(plan: Plan, identity: Identity) -> Plan:
    """The plan with the rounding that its tables were published with from these data, under the same key.

    A table whose release file asks for another one is refused: two roundings of one number tell more than either.
    """
    before = list(_answered_with_keys(identity.history))
    rounded = tuple(_as_before(table, identity, before) for table in plan.tables)
    return replace(plan, statistics=(*rounded, *plan.published_as("cubes")))


def _as_before(
    planned: PublishedTable, identity: Identity, before: Iterable[tuple[Entry, str, RoundingNote, str]]
) -> PublishedTable:
    if planned.roundings is None:
        return planned
    same = (
        note.bases
        for entry, fingerprint, note, _ in before
        if fingerprint == planned.key and identity.asks(planned.in_whole_numbers(), entry, note.question)
    )
    bases = next(same, planned.roundings)
    if bases == planned.roundings:
        return planned
    said = {"rounding", "earnings_rounding"} & planned.table.protect.options.keys()
    if said:
        raise KeyFileError(
            f"table '{planned.table.name}'",
            expected=f"the rounding it was published with, {bases[0]:,} for jobs"
            + (f" and {bases[1]:,} for earnings" if bases[1] > 1 else "")
            + ": a reader who has two roundings of one number knows more than either tells",
            found=f"another {' and '.join(sorted(said))}",
            do="leave it out; or, if the rounding must change, rotate the key and write rekeyed = true",
        )
    return planned.at_rounding(*bases)


def _answered_with_keys(history: Iterable[Entry]) -> Iterator[tuple[Entry, str, RoundingNote, str]]:
    """The charges of tables with a key: the entry, the key's fingerprint, the rounding, and the perturbation."""
    for entry in history:
        if entry.kind == "charge" and entry.note.startswith(KEY_NOTE):
            fingerprint, question, noise = entry.note.removeprefix(KEY_NOTE).split(" ")
            yield entry, fingerprint, RoundingNote.read(question, noise), noise


def _refuse_another_noise(
    new: Iterable[PublishedTable], entry: Entry, noise: str, *, same_data: bool, release: Release
) -> None:
    """Refuse other options or levels of a perturbation of the same units in new tables with the same key.

    The same data are known by their content. Data that grew by a month, or in which one record was corrected, have
    another one, and still most of the same units with the same values: a whole population keeps its options as long as
    its key.
    """
    if not noise or not (same_data or entry.account.population == release.account.population):
        return
    options, _, levels = noise.partition(LEVELS_NOTED)
    for planned in new:
        other_levels = levels not in ("", planned.noted("").partition(LEVELS_NOTED)[2])
        other_levels &= release.data.accepted != OTHER_UNITS  # of whom nothing was published before
        if planned.noise == options and not other_levels:
            continue
        raise KeyFileError(
            f"table '{planned.table.name}'",
            expected="the method, options and levels of units that "
            + ("these records were" if same_data else f"'{entry.account.population}' was")
            + " published with under this key: two perturbations of the same cells, made of the same directions and "
            "sizes, can be solved for the truth",
            found="other options" if planned.noise != options else "other levels of units",
            do="write the earlier ones; or, if they must change, rotate the key and write rekeyed = true",
        )


# Link true numbers to those that were published before: a reader who has both sees the difference.


def refuse_unlinked(plan: Plan, identity: Identity, history: Sequence[Entry]) -> None:
    """Raise ReleaseError when true numbers of these data were published that new ones are not linked to.

    Beside numbers that were moved by permanent factors they tell the factors, whichever of them comes first.
    """
    answered = {entry.question for entry in history if entry.kind == "answer"}
    new = [one for one in plan.statistics if identity.charge(one).question not in answered]
    waiting = [one for one in new if one.decided_by() is not None]
    moved = [one for one in new if one.key and one.decided_by() is None and not one.protects_units]
    if not (waiting or moved):
        return  # what was published is given again
    linked = {identity.charge(one).question for one in (*plan.statistics, *(one.table for one in plan.earlier))}
    before = [e for e in history if e.kind == "charge" and e.question in answered - linked and e.data in identity.names]
    true = [e for e in before if e.note.startswith(f"{EXACT_NOTE} ") or f" {EXACT_NOTE}-" in e.note]
    factors = [e for e in before if e.note.startswith(KEY_NOTE) and e not in true]
    apart = (true if waiting else []) or (factors if waiting else true)
    if apart:
        tables = ", ".join(dict.fromkeys(f"'{entry.table}' of {entry.release}" for entry in apart))
        raise ReleaseError(
            f"table '{(waiting or moved)[0].name}'",
            expected="true numbers that are linked to all others of the same data, and none with permanent factors "
            "beside them: what one withholds, the other must not tell",
            found=f"others that were published before: {tables}",
            do='name the release files that true numbers come from under [release]: earlier = ["spring.toml"]; or, '
            "where they are of this file, write its tables, rules and options as they were"
            if waiting and true
            else "publish all tables of these data by the method that was used first",
        )


# Keep what a series has published: a period changes only when somebody says that it is revised, and why.


@dataclass(frozen=True, kw_only=True)
class Edition:
    """What a run of one period would do to its series."""

    newest: Version | None
    """The version that was published last; None when the period is new."""
    differs: tuple[str, ...] = ()
    """What is not as it was published, in words; empty when nothing would change."""
    cost: Fraction = Fraction(0)
    """The epsilon that is still to be charged for it."""

    @property
    def is_published(self) -> bool:
        """Whether there is nothing to do: the same answers are there already."""
        return self.newest is not None and not self.differs

    @property
    def is_revision(self) -> bool:
        """Whether it would replace what is published by something else."""
        return self.newest is not None and bool(self.differs)

    def in_words(self) -> str:
        """What a revision means, before it is charged."""
        if self.newest is None:
            return ""
        when = f"{self.newest.period} was published on {self.newest.published} otherwise"
        return f"{when} ({'; '.join(self.differs)}): {self._meaning}"

    @property
    def _meaning(self) -> str:
        again = f"it costs epsilon = {at_most(self.cost)} again" if self.cost else "it costs nothing more"
        return f"this is a revision, and {again}"

    def refuse_unsaid(self, reason: str | None) -> None:
        """Refuse a revision that nobody gave a reason for, and a reason where there is nothing to revise.

        The reason of the version that is published is none for another: the same command again changes nothing.
        """
        if self.newest is not None and self.differs and not (reason or "").strip():
            raise BundleError(
                f"period {self.newest.period}, version {self.newest.number}",
                expected=f"what was published on {self.newest.published}",
                found=f"{'; '.join(self.differs)}: {self._meaning}",
                do='to publish a revision, which keeps the earlier version, give its reason: --revise "late reports"',
            )
        done = self.newest is not None and self.newest.number > 1 and (reason or "").strip() == self.newest.reason
        if reason is not None and not self.is_revision and not done:
            raise BundleError(
                "--revise",
                expected="a period that was published with other data or other tables",
                found="one that was not published yet" if self.newest is None else "what is published already",
                do="leave --revise out",
            )


def edition_of(plan: Plan, charges: Sequence[Charge], history: Sequence[Entry], changes: Sequence[str]) -> Edition:
    """What a run would do to a series, once its data were looked at; tables that do not fit into it are refused."""
    release = plan.release
    series = SeriesBundle.open(release.bundle)
    series.refuse_unlike(plan)
    newest = series.newest(release.about.period)
    paid = {e.question: e.identifier for e in history if e.kind == "charge" and e.account == release.account}
    identifiers = {charge.table: paid.get(charge.question, "") for charge in charges}
    if newest is None or series.same_as_published(newest, plan, identifiers):
        return Edition(newest=newest)
    before = series.charges(newest)
    new = [name for name in identifiers if name not in before]
    gone = [name for name in before if name not in identifiers]
    data = {entry.identifier: entry.data for entry in history if entry.kind == "charge"}
    other = [c for c in charges if c.table in before and identifiers[c.table] != before[c.table]]
    same_data = [charge.table for charge in other if data.get(before[charge.table]) == charge.data]
    # A revision that was charged and did not get further has nothing left to be charged for.
    words = list(changes) or (["other data"] if len(same_data) < len(other) else [])
    told = {"new": new, "left out": gone, "asked for otherwise": same_data}
    words += [f"{what}: {', '.join(names)}" for what, names in told.items() if names]
    cost = due_epsilon(plan, charges, history)
    return Edition(newest=newest, differs=tuple(words) or ("other settings of a table",), cost=cost)


def due_epsilon(plan: Plan, charges: Sequence[Charge], history: Sequence[Entry]) -> Fraction:
    """The epsilon that a run would add to what the account of a release has spent."""
    account, budget = plan.release.account, plan.release.budget
    charged = [entry for entry in history if entry.kind == "charge" and entry.account == account]
    paid = {entry.question for entry in charged}
    new = {charge.question: charge for charge in charges if charge.question not in paid}
    try:
        return Fraction(0) if budget is None else further(account, budget, charged, new.values())
    except BudgetError:  # the release states another budget than the ledger has, and is refused for that
        return plan.epsilon(without={charge.table for charge in charges if charge.question in paid})


# Refuse a ledger that has forgotten what was published: an older copy of it, or a new one in its place.
#
# The ledger itself compares its end with what the store noted. Here it is compared with the answers in the store, which
# also shows a store of a version that noted nothing, and with the bundle that is to be replaced.


def refuse_gone(release: Release) -> None:
    """Raise LedgerError when there is no ledger, and a store or a bundle shows that there was one."""
    if release.ledger.exists():
        return
    refuse_charged(release.ledger)
    if named := charges_of(release.bundle):
        raise gone(release.ledger, beside=f"the bundle {release.bundle}, which names {len(named)} charges")


def refuse_rolled_back(release: Release, ledger: Ledger) -> None:
    """Raise LedgerError when the ledger lacks charges of answers in its store, or of the bundle to be replaced."""
    kept = Answers(answers_of(ledger.path)).questions()  # read first: what is drawn meanwhile is charged before that
    history = ledger.history()
    charged = {entry.question for entry in history if entry.kind == "charge"}
    answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
    unpaid = kept.keys() - charged
    other = [
        question
        for question, digests in kept.items()
        if (digests - {answered[question]} if question in answered else len(digests) > 1)
    ]
    lacking = charges_of(release.bundle) - ledger.identifiers()
    for wrong, found in (
        (unpaid, "stored answers to questions that it has no charge for"),
        (other, "stored answers that are not those it recorded"),
        (lacking, f"charges, named by the bundle {release.bundle}, that it does not have"),
    ):
        if wrong:
            raise LedgerError(
                f"ledger {ledger.path}",
                expected="the ledger that everything beside it was charged to",
                found=f"{len(wrong):,} {found}: it is older, or another",
                do="restore the newest copy of the ledger, or name the right one in the release file: what it has "
                "forgotten would be charged and drawn again; if there is none, see docs/ledger.md, A ledger that is "
                "lost",
            )


def charges_of(bundle: Path) -> frozenset[str]:
    """The identifiers of the charges that a bundle names; none where there is no bundle."""
    try:
        manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        return frozenset(map(str, manifest["charges"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()  # no bundle of ours, which is refused elsewhere


# Go on after a ledger was lost: record what it had charged, and put aside the answers that nothing pays for now.


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What was done about a lost ledger."""

    ledger: Ledger
    entry: Entry
    set_aside: int
    """Answers that the ledger has no charge for, or that are not those it recorded."""
    folder: Path
    """Where they are now."""


def record_lost(
    path: Path, account: Account, lost: EmployerEmployee, note: str, bundles: Sequence[Path] = ()
) -> Recorded:
    """Charge an account for what a lost ledger had charged to it, and make the ledger at `path` the one in force.

    `lost` is at least what the bundles say they cost, but for charges that an older ledger still has. No answer is
    deleted, and none is given again: a release that asks the same is charged and drawn anew.
    """
    if not note.strip():
        raise LedgerError(
            "note", expected="why charges have to be recorded again", found="none", do="say it, for the history"
        )
    identifiers = [name for bundle in bundles for name in read_manifest(bundle)["charges"].values()]
    _refuse_less(account, lost, bundles, _kept(path, account, frozenset(identifiers)))
    ledger = Ledger.open(path, create=True, lost=True)
    entry = ledger.record_lost(account, lost, note.strip(), identifiers)
    aside = store_of(ledger.path) / f"lost-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{entry.sequence}"
    moved = _set_aside(Answers(answers_of(ledger.path)), ledger, aside)
    return Recorded(ledger=Ledger.open(path), entry=entry, set_aside=moved, folder=aside)


def _set_aside(answers: Answers, ledger: Ledger, folder: Path) -> int:
    history = ledger.history()
    charged = {entry.question for entry in history if entry.kind == "charge"}
    answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
    moved = 0
    for question, digests in answers.questions().items():
        if question not in charged:
            answers.sweep(question)
        good = {answered[question]} if question in answered else digests if question in charged else frozenset()
        for digest in digests - good:
            answers.set_aside(question, digest, folder)
            moved += 1
    return moved


def _kept(path: Path, account: Account, identifiers: frozenset[str]) -> list[Entry]:
    """What an account is charged, out of some charges, in a ledger that is older and yet has them.

    Only charges about everything count: where others are kept, those that are lost may be about other establishments.
    """
    if not path.exists():
        return []
    entries = Ledger.open(path, lost=True).history(account)
    charges = [entry for entry in entries if entry.kind == "charge" and entry.identifier in identifiers]
    return [entry for entry in charges if entry.block == EVERYTHING]


def _refuse_less(account: Account, lost: EmployerEmployee, bundles: Sequence[Path], kept: Sequence[Entry]) -> None:
    """Refuse to record less than what published bundles cost beyond what is still charged for them."""
    told = [_told(bundle, account) for bundle in bundles]
    after = balance(account, lost, [Cost(guarantee=guarantee) for guarantee in told if guarantee is not None])
    before = balance(account, lost, kept)
    epsilon, delta = after.spent_epsilon - before.spent_epsilon, after.spent_delta - before.spent_delta
    if epsilon > lost.epsilon or delta > lost.delta:
        raise BudgetError(
            f"charges lost of {account}",
            expected=f"at least what the bundles cost and the ledger lacks: {in_words(epsilon, delta)}",
            found=in_words(lost.epsilon, lost.delta),
            do="add what was charged for other tables and for live questions; when in doubt, the whole budget",
        )


def _told(bundle: Path, account: Account) -> EmployerEmployee | None:
    """What a bundle says all its tables reveal at most; None when it promises nothing."""
    told: dict[str, Any] = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    if (told["population"], told["period"]) != (account.population, account.period):
        raise LedgerError(
            f"bundle {bundle}",
            expected=f"a bundle of {account}",
            found=f"one of {Account(population=told['population'], period=told['period'])}",
            do="record the charges of every population and period by a command of its own",
        )
    promised = told["guarantee"]
    if promised["definition"] == "none":
        return None
    numbers = {name: _exact(promised[name]) for name in ("alpha", "epsilon", "delta")}
    return EmployerEmployee(
        definition=promised["definition"],
        condition=promised.get("condition", ""),
        caps=described_caps(promised),
        **numbers,
    )


def _exact(number: int | float) -> Fraction:
    """The fraction that a bundle's number was written from.

    >>> _exact(7 / 3), _exact(1e-12)
    (Fraction(7, 3), Fraction(1, 1000000000000))
    """
    written = Fraction(str(number))
    short = written.limit_denominator(1_000_000)
    return short if float(short) == number else written
