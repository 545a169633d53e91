"""A session: data opened once and asked many questions, whatever protects the answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sfumato.errors import BudgetError
from sfumato.frame import Codelist
from sfumato.method import PlannedError
from sfumato.privacy.account import Balance
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistics.published import PublishedTable


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a question would cost and how far its answer would be off; nothing is charged, no job is read."""

    guarantee: EmployerEmployee
    """Of the table, at its own alpha."""
    epsilon: Fraction | None
    """What a new question would take from the budget, at the budget's alpha; None where it cannot pay for it at all."""
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
    def planned(self, **question: Any) -> PublishedTable:
        """What is asked and how it is protected, in one spelling; a question that makes no sense is refused here."""

    @abstractmethod
    def answered(self, planned: Any, *, shown: Mapping[str, Sequence[str]] | None = None) -> pa.Table:
        """The protected table that answers a question; `shown` has the codes that will be shown, where not all are."""

    def price(self, planned: PublishedTable, *, analyst: str | None = None) -> Price | None:  # noqa: ARG002 (free)
        """What a question would cost; None where it costs nothing."""
        return None

    def charge(self, planned: PublishedTable, analyst: str | None) -> None:  # noqa: B027 (free)
        """Charge a question, if it is new and costs something, before it is answered."""

    def left(self, analyst: str | None = None) -> Balance | None:  # noqa: ARG002 (free)
        """What ad-hoc questions may still cost; None where they cost nothing."""
        return None

    @property
    def opened_ledger(self) -> Ledger | None:
        """The ledger of the release; one whose tables cost nothing may have none."""
        return Ledger.open(self.release.ledger) if self.release.ledger.exists() else None
