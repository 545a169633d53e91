"""Ad-hoc counts of jobs or records with a formal guarantee: each new question is charged before anything is counted.

What all questions together may cost is a part of the budget of the release, kept in the same account: the people and
employers in the data are the same. A question that was answered before gets the stored answer and costs nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa

from sfumato.checking import Checked, checked, stored_answers
from sfumato.durable import alone, append_line, sync_folder
from sfumato.engine.limits import stopped_after
from sfumato.errors import BudgetError, ReleaseError, Said, SfumatoError
from sfumato.live.session import Price, Session, Where, in_order, live_table
from sfumato.plan import plan_table
from sfumato.privacy.account import Balance, Charge, Overdraft, balance, in_words, refuse_overdraft
from sfumato.privacy.answers import Answers
from sfumato.privacy.guarantee import MOST, EmployerEmployee, plain
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.running import keep_answer, open_ledger, recorded_late
from sfumato.statistics.fitting import need_public_codes
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.registry import METHODS, is_for_records, is_free, options_of

LIVE = "live tables"
"""The name under which questions are charged, whatever the release is called: what they may cost stays one sum."""
WIDEST = 10
"""Alpha may be chosen within this factor of the budget's."""
_DIGITS = 10**6
_NEW = "0" * 64
"""The digest of no question: a price is that of a new one."""
Refusal = TypeVar("Refusal", bound=SfumatoError)


# What one analyst may spend on ad-hoc questions: a question counts for whoever asks it, also if others paid before.
#
# So neither prices nor what is left tell an analyst whether somebody else asked the same. The ledger alone decides what
# the data reveal; a lost file of quotas gives analysts a new start within the same budget.


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """The questions of every analyst with what each costs, in a file for each, which only ever grows."""

    folder: Path
    most: Fraction
    """The epsilon that the questions of one analyst may cost together, at the budget's alpha."""

    def left(self, analyst: str) -> Fraction:
        """The epsilon that further questions of an analyst may cost."""
        return self.most - sum(self._spent(analyst).values(), Fraction(0))

    def has_asked(self, analyst: str, digest: str) -> bool:
        """Whether an analyst asked a question before: then it costs nothing more."""
        return digest in self._spent(analyst)

    def refusal(self, analyst: str, epsilon: Fraction) -> BudgetError | None:
        """Why an analyst cannot ask a new question of this cost, if so."""
        left = self.left(analyst)
        if epsilon <= left:
            return None
        return BudgetError(
            "your quota for ad-hoc tables",
            expected=f"at most what remains of it: epsilon = {plain(left)}",
            found=f"a question that costs epsilon = {plain(epsilon)}",
            do="choose a smaller epsilon, or ask the office to raise `quota` under [live]",
            said=Said(
                "This costs ε = {epsilon}, and you may spend ε = {left} more. Choose a smaller ε, or ask the office "
                "for more.",
                {"epsilon": epsilon, "left": left},
            ),
        )

    @contextmanager
    def taken(self, analyst: str, digest: str, epsilon: Fraction) -> Iterator[None]:
        """Refuse a question beyond the quota; otherwise it counts once what happens inside was done."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with alone(self.folder / ".lock"):
            new = not self.has_asked(analyst, digest)
            refusal = self.refusal(analyst, epsilon) if new else None
            if refusal is not None:
                raise refusal
            yield
            if new:
                self._append(analyst, digest, epsilon)

    def _spent(self, analyst: str) -> dict[str, Fraction]:
        try:
            lines = self._path(analyst).read_text().split("\n")
        except FileNotFoundError:
            return {}
        # What follows the last line end was cut off by a crash, before anybody got an answer.
        entries = [json.loads(line) for line in lines[:-1] if line]
        return {entry["question"]: Fraction(entry["epsilon"]) for entry in entries}

    def _append(self, analyst: str, digest: str, epsilon: Fraction) -> None:
        append_line(self._path(analyst), json.dumps({"question": digest, "epsilon": str(epsilon)}))
        sync_folder(self.folder)

    def _path(self, analyst: str) -> Path:
        # Names are letters, digits and . _ @ - and do not mind the case.
        return self.folder / f"{analyst.lower()}.jsonl"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChargedSession(Session):
    """Jobs or records that are asked many questions, and the budget for that; it shows nothing of them."""

    most: EmployerEmployee
    """What all ad-hoc questions together may cost."""
    ready: Checked = field(repr=False)
    ledger: Ledger = field(repr=False)
    answers: Answers = field(repr=False)
    quotas: Quotas = field(repr=False)
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False)

    @property
    def opened_ledger(self) -> Ledger:
        """The ledger that questions are charged to."""
        return self.ledger

    @property
    def default_method(self) -> str:
        """The method of a question that names none."""
        return "smooth-pareto" if self.release.data.of_jobs else "laplace"

    def plan(self, *, method: str | None = None, **question: Any) -> PublishedTable:
        """What is asked and how it is protected, in one spelling; a question beyond the limits is refused here."""
        try:
            return self._plan(method=method or self.default_method, **question)
        except SfumatoError as error:
            raise _naming(error, self.fitting(**question)) from error

    def refuse_unpayable(self, **question: Any) -> None:
        """Refuse a question that the budget could not pay for even if nothing were spent."""
        refuse_overdraft(self.release.account, self.most, [], [self._plan(**question)])

    def fitting(self, *, delta: Fraction | None = None, **question: Any) -> tuple[str, ...]:
        """The methods that the budget can pay for in a question that is otherwise the same."""
        found = []
        for name in METHODS:
            if not (is_free(name) or is_for_records(name)):
                with suppress(SfumatoError):
                    self.refuse_unpayable(method=name, delta=delta if "delta" in options_of(name) else None, **question)
                    found.append(name)
        return tuple(found)

    def _plan(
        self,
        *,
        by: tuple[str, ...],
        epsilon: Fraction,
        alpha: Fraction | None = None,
        delta: Fraction | None = None,
        method: str,
        where: Where | None = None,
    ) -> PublishedTable:
        self._refuse_parameters(method=method, alpha=alpha, epsilon=epsilon, delta=delta)
        by, where = in_order(by, where or {}, self.codelists)
        protect: dict[str, Any] = {"method": method, "epsilon": epsilon}
        of_jobs = self.release.data.of_jobs
        weight = None if of_jobs else self.release.live.largest_weight
        if not of_jobs and weight is None and self.release.records.records.weight is not None:
            raise ReleaseError(
                "[live] largest_weight",
                expected="the largest weight that a record may have, which the noise of ad-hoc counts hides",
                found=f"none, and records with the weight '{self.release.records.records.weight}'",
                do="write largest_weight = … under [live]; it is public, so do not read it off the data",
            )
        further = {"alpha": alpha, "delta": delta, "largest_weight": weight}
        protect |= {name: value for name, value in further.items() if value is not None}
        asked: dict[str, Any] = {"count": "records"}
        if of_jobs:
            asked = {"count": "jobs", "establishments": self.release.live_tells_establishments}
        table = live_table(self.release, self.codelists, by=by, where=where, protect=protect, **asked)
        return plan_table(self.release, table, self.codelists)

    def price(self, statistic: PublishedTable, *, analyst: str | None = None) -> Price:
        """What a question would cost, and how far its answer would be off.

        An analyst is not told whether others asked: a question that only they paid for has the price of a new one.
        """
        charge = self._charge(statistic)
        guarantee = charge.guarantee.bound
        assert guarantee is not None
        answered = self._costs_nothing(charge.question, analyst)
        new = replace(charge, question=_NEW)
        cost = own = refusal = None
        try:
            cost = balance(self.release.account, self.most, [charge])  # refuses what follows from no such budget
            own = None if analyst is None else self.quotas.refusal(analyst, cost.spent_epsilon)
            refusal = self.ledger.refusal(
                self.release.account,
                [new],
                self._budget,
                release=LIVE,
                most=self.most,
                content=self.ready.identity.content,
                **self._in_time,
            )
            if refusal is not None:
                raise refusal
            refusal = self._too_small(statistic) or own
        except Overdraft as error:
            refusal = error if analyst is None or cost is None else own or _without_figures(cost)
        except BudgetError as error:
            refusal = _naming(error, self._fitting_of(statistic))
        return Price(
            guarantee=guarantee,
            epsilon=None if cost is None else cost.spent_epsilon,
            delta=None if cost is None else cost.spent_delta,
            answered=answered,
            left=self.left(analyst),
            refusal=None if answered else refusal,
            error=statistic.method.planned_error(),
        )

    def left(self, analyst: str | None = None) -> Balance:
        """What ad-hoc questions may still cost: never more than what is left of the whole account, or of a window.

        An analyst is told what is left of the own quota, and nothing of what others spent.
        """
        if analyst is not None:
            none = balance(self.release.account, self.most, [])
            return replace(none, spent_epsilon=self.most.epsilon - self.quotas.left(analyst))
        part = self.ledger.balance_of(self.release.account, LIVE, self.most)
        left = part.remaining_epsilon
        if self.ledger.has_budget(self.release.account):
            left = min(left, self.ledger.balance(self.release.account).remaining_epsilon)
        for calendar in self.ledger.calendars(self.release.about.population, self.release.about.period):
            row = calendar.with_period(self.release.about.period)
            if row is not None:
                left = min(left, row.remaining_epsilon if row.is_bounded else Fraction(0))
        return replace(part, spent_epsilon=part.budget.epsilon - left)

    def answer(
        self,
        statistic: PublishedTable,
        *,
        shown: Mapping[str, Sequence[str]] | None = None,  # noqa: ARG002 (noise hides each cell by itself)
        analyst: str | None = None,
    ) -> pa.Table:
        """The protected table; its charge and the answer itself are on the disk before this returns.

        What an `analyst` asks counts against that analyst's quota, also where others paid for it before.

        A process that is killed in between leaves no charge, or a charge whose answer is drawn when the question is
        asked again.
        """
        self.charge(statistic, analyst)
        charge, release = self._charge(statistic), self.release
        stored = self.ledger.answer(charge.question)
        if stored is None:
            # Of two who ask the same at a time, and of a server and a run of the release, the second finds the answer.
            with self._one_at_a_time, alone(release.store / "lock"):
                stored = self.ledger.answer(charge.question) or self._draw(statistic, charge.question)
        return statistic.rows(statistic.laid_out(self.answers.read(charge.question, stored)))

    def charge(self, statistic: PublishedTable, analyst: str | None) -> None:
        """Charge a question, if it is new, and count it against the quota of whoever asks, before it is answered."""
        charge = self._charge(statistic)
        if self._costs_nothing(charge.question, analyst):
            return
        if analyst is None:
            self._pay(statistic, charge)
            return
        cost = balance(self.release.account, self.most, [charge])
        try:
            with self.quotas.taken(analyst, charge.question, cost.spent_epsilon):
                self._pay(statistic, charge)
        except Overdraft:
            raise _without_figures(cost) from None

    def _pay(self, statistic: PublishedTable, charge: Charge) -> None:
        if self.ledger.paid_by(self.release.account, charge.question) is not None:
            return
        refusal = self._too_small(statistic)
        if refusal is not None:
            raise refusal
        try:
            self.ledger.charge(
                self.release.account,
                [charge],
                LIVE,
                budget=self._budget,
                most=self.most,
                content=self.ready.identity.content,
                **self._in_time,
            )
        except Overdraft:
            raise
        except BudgetError as error:
            raise _naming(error, self._fitting_of(statistic)) from error

    def _costs_nothing(self, digest: str, analyst: str | None) -> bool:
        """Whether a question was paid for, as far as whoever asks may know: by themselves, or by a release."""
        payer = self.ledger.paid_by(self.release.account, digest)
        if analyst is None or payer is None:
            return payer is not None
        return payer != LIVE or self.quotas.has_asked(analyst, digest)

    @property
    def _least(self) -> Fraction:
        """The least that a new question may cost."""
        return min(self.release.live.least_epsilon, self.most.epsilon)

    def _too_small(self, statistic: PublishedTable) -> BudgetError | None:
        """Why a new question may not cost so little, if so."""
        asked = statistic.table.protect.epsilon
        least = self._least
        if asked is None or asked >= least:
            return None
        return BudgetError(
            "live table, epsilon",
            expected=f"at least {plain(least)}, the least that a new question may cost",
            found=plain(asked),
            do="choose a larger epsilon, or ask the office to lower `least_epsilon` under [live]",
            said=Said("A new question costs at least ε = {least}. Choose a larger ε.", {"least": least}),
        )

    def _draw(self, statistic: PublishedTable, digest: str) -> str:
        """Count and protect, keep the answer, and return its digest; one that a crash left behind is taken up."""
        name = statistic.table.name
        late = recorded_late(
            release=self.release, ledger=self.ledger, answers=self.answers, question=digest, table=name
        )
        if late is not None:
            return late
        with stopped_after(self.ready.opened.tables.engine, self.release.live.most_seconds):
            counted = self.ready.count({name: statistic})[name]
        return keep_answer(
            statistic.content(statistic.answer(counted, None)),
            release=self.release,
            ledger=self.ledger,
            answers=self.answers,
            question=digest,
            table=name,
        )

    def _fitting_of(self, statistic: PublishedTable) -> tuple[str, ...]:
        """The methods that fit where that of a question does not; none where something else is wrong."""
        protect, table = statistic.table.protect, statistic.table
        delta = protect.options.get("delta")
        fitting = self.fitting(
            by=table.by,
            where=table.where,
            epsilon=protect.epsilon,
            alpha=protect.alpha,
            delta=None if delta is None else Fraction(str(delta)),
        )
        return () if protect.method in fitting else fitting

    def _charge(self, statistic: PublishedTable) -> Charge:
        return self.ready.identity.charge(statistic)

    @property
    def _in_time(self) -> dict[str, Any]:
        """What the ledger has to know of other periods: ad-hoc questions count in their windows as tables do."""
        return {"window": self.release.window, "many_periods": self.release.time is not None}

    @property
    def _budget(self) -> EmployerEmployee:
        if self.release.budget is None:
            raise ValueError("formal questions need a budget")
        return self.release.budget

    def _refuse_parameters(self, *, method: str, **parameters: Fraction | None) -> None:
        """Refuse what no analyst may choose: methods that cost nothing, and parameters beyond the limits."""
        alpha, largest = self._budget.alpha, self.release.live.most_epsilon or self.most.epsilon
        limits = {
            "alpha": (alpha / WIDEST, min(alpha * WIDEST, Fraction(MOST))),
            "epsilon": (Fraction(1, _DIGITS), largest),
            "delta": (Fraction(0), self.most.delta),
        }
        if is_free(method):
            raise ReleaseError(
                "live table, method",
                expected="a method with a formal guarantee",
                found=repr(method),
                do="choose another method",
            )
        for name, value in parameters.items():
            low, high = limits[name]
            # Few digits, so that exact fractions stay short and quick.
            if value is not None and not (low <= value <= high and _DIGITS % value.denominator == 0):
                raise ReleaseError(
                    f"live table, {name}",
                    expected=f"a number from {_short(low)} to {plain(high)}, of at most six digits after the point",
                    found=plain(value),
                    do="choose another number",
                    said=Said(
                        "{symbol} can be from {low} to {high} here, with at most six digits after the point; "
                        "{found} is not.",
                        {
                            "symbol": {"alpha": "α", "delta": "δ"}.get(name, "ε"),
                            "low": max(low, self._least) if name == "epsilon" else low,
                            "high": high,
                            "found": value,
                        },
                    ),
                )


def _short(number: Fraction) -> str:
    """A limit in decimals, however small it is."""
    return f"{float(number):.6f}".rstrip("0").rstrip(".")


def _without_figures(cost: Balance) -> BudgetError:
    """The refusal of a question that the budget of all cannot pay for, for an analyst: what is left tells of others.

    So does what the question would add to what was spent, which depends on what others asked about its establishments.
    """
    return BudgetError(
        "the budget of all ad-hoc tables",
        expected="a question that costs no more than what remains of it, which analysts are not told",
        found=f"a question that costs {in_words(cost.spent_epsilon, cost.spent_delta)}",
        do="choose a smaller epsilon, or ask the office to raise the budget for ad-hoc tables",
        said=Said(
            "This costs more than all ad-hoc questions together have left. Choose a smaller ε, or ask the office "
            "for more.",
            {},
        ),
    )


def _naming(error: Refusal, methods: tuple[str, ...]) -> Refusal:
    """A refusal that names the methods with which the same question would be answered, if there are any."""
    if not methods:
        return error
    do = f"{error.do}; with the same numbers this question can be answered by {', '.join(methods)}"
    told = Said(
        "This method cannot answer the question with these numbers. These can: {methods}.",
        {"methods": ", ".join(methods)},
        with_reason=True,
    )
    return type(error)(error.where, expected=error.expected, found=error.found, do=do, said=told)


@contextmanager
def open_charged(
    release: Release, *, epsilon: Fraction | None = None, progress: Callable[[str], None] = lambda _: None
) -> Iterator[ChargedSession]:
    """Open and validate the data of a release and its ledger; `epsilon` is what all questions together may cost."""
    most, budget = epsilon if epsilon is not None else release.live.budget, release.budget
    many = release.data.span is not None and release.series is None
    if many or budget is None:
        raise ReleaseError(
            "live tables",
            expected="a release of jobs or records with a budget; or one of records protected by top-contributors",
            found="a panel with all its periods" if many else "another release",
            do="write a [series], which is about one period of the panel at a time"
            if many
            else "choose another release file",
        )
    if not release.data.of_jobs:
        # Analysts are shown all codes: read off the records, one record with a new code would show.
        release.records.need_codes("live tables", release.data.attributes)
    elif not (release.live_tells_establishments or release.data.joined):
        need_public_codes("live tables", release.data.public_attributes, release.frame)  # they are shown too
    if most is None or most <= 0:
        raise ReleaseError(
            "live tables",
            expected="what all ad-hoc questions together may cost: an epsilon above 0",
            found="none" if most is None else plain(most),
            do="start the server with --budget-epsilon, or write budget = … under [live]",
        )
    with checked(release, progress, further=[[name] for name in release.data.attributes], everything=True) as ready:
        ready.opened.tables.engine.limit_memory(release.live.most_memory)
        yield ChargedSession(
            release=release,
            codelists=ready.opened.codelists(),
            most=replace(budget, epsilon=most),
            ready=ready,
            ledger=open_ledger(release, remembers=True),
            answers=stored_answers(release),
            quotas=Quotas(folder=release.store / "quotas", most=min(release.live.quota or most / 2, most)),
        )
