"""Under which names the ledger knows data and questions: by content, and by the names of earlier versions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sfumato.content import Content
from sfumato.engine.content import ContentReader
from sfumato.plan import Plan
from sfumato.privacy.account import Account, Charge
from sfumato.privacy.answers import Answers, Layout, layout_of
from sfumato.privacy.book import known_data, names_of, old_names
from sfumato.privacy.entries import Entry
from sfumato.statistic import Statistic, TableStatistic


@dataclass(kw_only=True, eq=False)
class Identity:
    """Data that were opened, as a ledger knows them."""

    content: Content
    """As far as it was read; a question that looks at more has it read."""
    reader: ContentReader = field(repr=False)
    history: tuple[Entry, ...] = field(default=(), repr=False)
    """The entries of the ledger when the data were opened."""
    fingerprint: str = ""
    """Of the bytes of the files; empty where the ledger has no charges that were made under one."""
    answers: Answers = field(repr=False)
    _layouts: dict[str, Layout] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._charged = {entry.question: entry for entry in self.history if entry.kind == "charge"}
        self._answered = {entry.question: entry.answer for entry in self.history if entry.kind == "answer"}
        self._known = known_data(self.history)
        old = old_names(self.history)
        self._old = [entry for entry in self._charged.values() if entry.data in old]

    @property
    def names(self) -> frozenset[str]:
        """Every name under which these data were charged."""
        return names_of(self.content, self._known) | {self.fingerprint} - {""}

    def stored(self, question: str) -> Any:
        """The content of the answer that was given to a question; None where there is none."""
        digest = self._answered.get(question)
        return None if digest is None else self.answers.read_file(question, digest)

    def charges(self, plan: Plan) -> list[Charge]:
        """What the ledger is asked to charge, for every table and every cube."""
        return [self.charge(planned) for planned in plan.statistics]

    def charge(self, planned: Statistic) -> Charge:
        """What the ledger is asked to charge for a question, about the establishments that these data give its codes.

        Codes are compared with those of other charges where jobs and workplaces are the same, and the codes of every
        one of these: an establishment whose code was corrected would be in two blocks.
        """
        charge = self._charge(planned)
        registers = {}
        for one in charge.block.filters:
            found = self.content.part(self.reader.looked_at([one.attribute]))
            if found is None:
                raise ValueError("what a question looks at was read")
            registers[one.attribute] = found.digest
        return replace(charge, block=charge.block.within(registers))

    def _charge(self, planned: Statistic) -> Charge:
        """The charge for a question, under the name it has had since it was first asked."""
        data = self._data(planned).digest
        charge = planned.charge(data)
        if charge.question in self._charged:
            return self._as_recorded(planned, charge)
        for fingerprint in self._fingerprints(planned):
            for name in self._old_names(planned, fingerprint):
                if name in self._charged:
                    return self._as_recorded(planned, planned.charge(fingerprint, name))
        return charge

    def _as_recorded(self, planned: Statistic, charge: Charge) -> Charge:
        """The charge of what is paid whatever guarantee was worked out for it then: its answer stays the answer.

        Its statement tells the guarantee that is worked out now.
        """
        entries = [entry for entry in self.history if entry.kind == "charge" and entry.question == charge.question]
        recorded = dict.fromkeys(entry.guarantee for entry in entries if entry.guarantee is not None)
        return replace(charge, charged_as=tuple(g for g in recorded if planned.may_have_cost(g)))

    def as_charged(self, plan: Plan) -> Plan:
        """The plan in which a table that an earlier version asked for in another way is asked for so again."""
        return replace(plan, statistics=tuple(map(self._as_charged, plan.statistics)))

    def _as_charged(self, planned: Statistic) -> Statistic:
        before = planned.before
        if before is None or self.charge(planned).question in self._charged:
            return planned
        return before if self.charge(before).question in self._charged else planned

    def asks(self, planned: TableStatistic, entry: Entry, question: str) -> bool:
        """Whether a question under any key is the one that an entry was charged for."""
        if question == planned.digest(self._data(planned).digest, any_key=True):
            return True
        if entry.data not in self._fingerprints(planned):
            return False
        if question == planned.digest(entry.data, any_key=True):  # charged to another account under its old name
            return True
        if question == planned.digest_as_laid_out(entry.data, any_key=True):
            return True
        layout = self._layout_for(planned, entry)
        return layout is not None and question == planned.digest_as_laid_out(entry.data, layout, any_key=True)

    def changes(self, plan: Plan, account: Account) -> tuple[str, ...]:
        """What changed in the data, and since when, where that makes an account pay for a table once more."""
        paid = {entry.question for entry in self._charged.values() if entry.account == account}
        due = [planned for planned in plan.distinct() if self.charge(planned).question not in paid]
        return tuple(sorted({words for planned in due for words in self._changes(planned, account)}))

    def _changes(self, planned: Statistic, account: Account) -> list[str]:
        looked, columns = self._data(planned), self.reader.looked_at(planned.looks_at)
        noted = [known for known in self._known if known.entry.account == account]
        if noted:
            last = next((known for known in reversed(noted) if known.content.part(columns) is not None), noted[-1])
            return [f"{words}, since {_day(last.entry)}" for words in looked.changed_since(last.content)]
        charged = [entry for entry in self._old if entry.account == account]
        if not charged or charged[-1].data in self.names:
            return []
        return [
            f"the files are not those that were charged on {_day(charged[-1])} by version 0.1, which knew the bytes of "
            "files and not what is in them: files that were only saved again cannot be told from changed ones"
        ]

    def _data(self, planned: Statistic) -> Content:
        """What a question looks at."""
        columns = self.reader.looked_at(planned.looks_at)
        found = self.content.part(columns)
        if found is None:
            more = self.reader.read([planned.looks_at])
            self.content = self.content.with_more(more)
            found = self.content.part(columns)
        if found is None:
            raise ValueError("what was read is known")
        return found

    def _fingerprints(self, planned: Statistic) -> list[str]:
        """The fingerprints of bytes under which a question to these data may have been charged by version 0.1."""
        looked = self._data(planned)
        columns = self.reader.looked_at(planned.looks_at)
        seen = [
            known.fingerprint for known in self._known if known.fingerprint and known.content.part(columns) == looked
        ]
        return list(dict.fromkeys([*filter(None, [self.fingerprint]), *seen]))

    def _old_names(self, planned: Statistic, fingerprint: str) -> Iterator[str]:
        """The names that version 0.1 may have given a question: as it is written, and as answers are laid out."""
        written = list(planned.in_every_order())
        yield from (one.digest_as_laid_out(fingerprint) for one in written)
        for entry in self._old:
            fits = planned.may_have_cost(entry.guarantee)
            layout = self._layout_for(planned, entry) if fits and entry.data == fingerprint else None
            if layout is not None:
                yield from (one.digest_as_laid_out(fingerprint, layout) for one in written)

    def _layout_for(self, planned: Statistic, entry: Entry) -> Layout | None:
        """How the stored answer to an entry's question is laid out, if it has all that is asked and nothing else."""
        if entry.question not in self._answered:
            return None
        layout = self._layout(entry.question)
        return layout if planned.can_be_laid_out_as(layout) else None

    def _layout(self, question: str) -> Layout:
        """How the stored answer to a question is laid out."""
        if question not in self._layouts:
            self._layouts[question] = self.answers.layout(question, self._answered[question])
        return self._layouts[question]


def of_another_period(
    tables: Mapping[str, Statistic], account: Account, history: Sequence[Entry], answers: Answers
) -> dict[str, Any]:
    """The newest answers to tables of these names in another period of the population, of those that have one."""
    charged: dict[str, set[str]] = {}
    for entry in history:
        of_account = entry.account.population == account.population and entry.account.period != account.period
        if entry.kind == "charge" and of_account:
            charged.setdefault(entry.table, set()).add(entry.question)
    found = {}
    for name, one in tables.items():
        given = [e for e in history if e.kind == "answer" and e.question in charged.get(name, ())]
        content = answers.read_file(given[-1].question, given[-1].answer) if given else None
        if content is not None and one.can_be_laid_out_as(layout_of(content)):
            found[name] = one.as_asked(content)
    return found


def _day(entry: Entry) -> str:
    """When an entry was written, as people say it."""
    return f"{datetime.fromisoformat(entry.time):%Y-%m-%d %H:%M} (UTC)"
