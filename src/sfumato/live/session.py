"""A session: data opened once and asked many questions in one spelling, whatever protects the answers."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from sfumato.errors import BudgetError, ReleaseError, Said
from sfumato.frame.codelists import Codelist
from sfumato.frame.levels import published_name, published_names
from sfumato.method import PlannedError
from sfumato.privacy.account import Balance
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.table import Table


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a question would cost and how far its answer would be off; nothing is charged, no job is read."""

    guarantee: EmployerEmployee
    """Of the table, at its own alpha."""
    epsilon: Fraction | None
    """What a new question takes from the budget at most, at its alpha; None where it cannot pay for it at all.

    The account is charged less where it is about establishments that less was spent on: that would tell of others."""
    delta: Fraction | None
    answered: bool
    """Whether the question costs nothing: whoever asks paid for it before, or a release published its answer."""
    left: Balance
    """What ad-hoc questions may still cost, those of whoever asks."""
    refusal: BudgetError | None
    """Why it would be refused, if it would."""
    error: PlannedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Session(ABC):
    """Open data that are asked many questions; it shows nothing of them but answers.

    Questions about jobs are charged to a budget (`ChargedSession`). Those about records cost nothing, and a guard
    notices answers that differ by few units (`GuardedSession`).
    """

    release: Release = field(repr=False)
    codelists: Mapping[str, Codelist]
    most: EmployerEmployee | None = None
    """What all ad-hoc questions together may cost; None where they cost nothing."""

    @abstractmethod
    def plan(self, **question: Any) -> PublishedTable:
        """What is asked and how it is protected, in one spelling; a question that makes no sense is refused here."""

    @abstractmethod
    def answer(self, statistic: PublishedTable, *, shown: Mapping[str, Sequence[str]] | None = None) -> pa.Table:
        """The protected table that answers a question; `shown` has the codes that will be shown, where not all are."""

    def ask(self, **question: Any) -> pa.Table:
        """Plan a question and answer it."""
        return self.answer(self.plan(**question))

    def price(self, statistic: PublishedTable, *, analyst: str | None = None) -> Price | None:  # noqa: ARG002 (free)
        """What a question would cost; None where it costs nothing."""
        return None

    def charge(self, statistic: PublishedTable, analyst: str | None) -> None:  # noqa: B027 (free)
        """Charge a question, if it is new and costs something, before it is answered."""

    def left(self, analyst: str | None = None) -> Balance | None:  # noqa: ARG002 (free)
        """What ad-hoc questions may still cost; None where they cost nothing."""
        return None

    @property
    def opened_ledger(self) -> Ledger | None:
        """The ledger of the release; one whose tables cost nothing may have none."""
        return Ledger.open(self.release.ledger) if self.release.ledger.exists() else None


# An ad-hoc question in one spelling: however it is written, the same question is asked of the same records.

Where = Mapping[str, Sequence[str]]


def in_order(by: Sequence[str], where: Where, codelists: Mapping[str, Codelist]) -> tuple[tuple[str, ...], Where]:
    """Attributes and codes in the order of the data; a filter that keeps every code is none.

    >>> sex = Codelist.of(["F", "M"])
    >>> in_order(["sex"], {"sex": ["M", "F", "M"]}, {"sex": sex})
    (('sex',), {})
    >>> in_order(["sex"], {"Sex": ["M"]}, {"sex": sex})  # it is refused later, and must not be lost before
    (('sex',), {'Sex': ('M',)})
    """
    order = {name: place for place, name in enumerate(codelists)}
    with suppress(ValueError):  # what is no level, or twice the same one, is refused later, in words
        by, where = [published_name(name) for name in by], published_names(where)

    def place(name: str) -> int:
        return order.get(name, len(order))  # what is unknown is refused later, in words

    kept = {}
    for name in sorted(where, key=place):
        codes = dict.fromkeys(where[name])
        known = codelists[name].codes if name in codelists else ()
        if name not in codelists or codes.keys() != set(known):
            kept[name] = (*(code for code in known if code in codes), *(code for code in codes if code not in known))
    return tuple(sorted(by, key=place)), kept


def live_table(release: Release, codelists: Mapping[str, Codelist], **described: Any) -> Table:
    """The table that a question describes; a ReleaseError says what is wrong with it."""
    try:
        table = Table.model_validate({"name": _name(described["by"]), **described})
    except ValidationError as error:
        first = error.errors()[0]
        ours = first["type"] == "value_error"  # these say what is wrong, the others what was expected
        raise ReleaseError(
            f"live table: {', '.join(map(str, first['loc'])) or 'the question'}",
            expected="a question that can be answered" if ours else first["msg"],
            found=first["msg"].removeprefix("Value error, ") if ours else "another question",
            do="correct the question",
        ) from None
    release.know_attributes(table)
    cells = prod(len(codelists[name].codes) + table.totals for name in table.by)
    if cells > release.live.most_cells:
        raise ReleaseError(
            "live table",
            expected=f"at most {release.live.most_cells:,} cells",
            found=f"{cells:,}",
            do="ask for fewer attributes, or filter them",
            said=Said(
                "The answer would have {cells} cells, and at most {most} are given. Ask by fewer attributes, or for "
                "some of their codes.",
                {"cells": cells, "most": release.live.most_cells},
            ),
        )
    return table


def _name(by: Sequence[str]) -> str:
    """What the ledger calls a table by these attributes."""
    return "live" + re.sub(r"[^a-z0-9_-]", "-", "".join(f"-{name}" for name in by).lower())[:60]
