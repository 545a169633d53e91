"""The options that say which cells are sensitive, which all methods of true numbers have, and their words."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import SUPPRESSED, PlannedError, check_confidence
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import NoFormalGuarantee, plain, rounded_up
from sfumato.statistics.exact.foreseen import Foreseen, Withheld
from sfumato.statistics.exact.question import ExactQuestion

Choice = Literal["published", "protected"]
CONTRIBUTIONS = "contributions"
"""What tabulation supplies: the largest contributions to every cell, at every level of unit."""


@dataclass(frozen=True, kw_only=True)
class SensitivityRules:
    """Which cells are sensitive; what is not given is no rule. docs/methods/suppression.md has the formulas."""

    exact: ClassVar[bool] = True
    merges: ClassVar[bool] = False
    """Whether codes are merged into those above them."""
    needs: ClassVar[frozenset[str]] = frozenset({CONTRIBUTIONS})
    name: ClassVar[str]
    decided_in: ClassVar[str]
    """The function that decides what is published, which is loaded when it is needed."""
    against_contributors: ClassVar[bool] = False
    """Whether the proof is about readers who contribute alone to a cell, too."""
    instead: ClassVar[str] = "withheld"
    """What becomes of cells whose value is not shown."""
    shown: ClassVar[str] = "true numbers"
    """What is published."""
    minimum_units: int = 0
    """The least number of units of a cell that is shown, at every level of unit."""
    minimum_count: int = 0
    """The least number of jobs or records of a cell that is shown."""
    dominance: tuple[tuple[Fraction, ...], ...] = ()
    """Pairs [n, k]: the n largest units have at most k percent of a cell that is shown."""
    p: Fraction = Fraction(0)
    """Nobody who contributes can estimate the largest contribution to within so many percent."""
    pq: tuple[Fraction, ...] = ()
    """[p, q]: nobody who knows all contributions to within q percent can estimate the largest to within p percent."""
    coalition: int = 1
    """How many contributors put together what they know, for p and pq."""
    zeros: Choice = "published"
    """Whether zeros are told, or sensitive."""
    full: Choice = "published"
    """Whether cells that hold everyone of their group are told, or sensitive."""
    levels: tuple[str, ...] = ()
    """Of jobs: public attributes that name larger units, such as the enterprise of an establishment."""

    def __post_init__(self) -> None:
        pairs = [*self.dominance, *([self.pq] if self.pq else [])]
        beyond = {int(one[0]) for one in self.dominance if len(one) == 2 and one[0] > 2}
        beyond |= {self.coalition + 1} if self.coalition > 1 and (self.p or self.pq) else set()
        self.check(
            (min(self.minimum_units, self.minimum_count) >= 0, "minimums of 0 or more", "one below 0"),
            (all(len(one) == 2 for one in pairs), "dominance = [[n, k], …] and pq = [p, q]", "another number of them"),
            (
                all(one[0].denominator == 1 and one[0] >= 1 and 0 < one[-1] <= 100 for one in self.dominance if one),
                "dominance = [[n, k], …] with a whole n ≥ 1 and 0 < k ≤ 100",
                "another pair",
            ),
            (0 <= self.p <= 100, "0 < p ≤ 100, in percent", f"p = {plain(self.p)}"),
            (not self.pq or 0 < self.pq[0] < self.pq[-1] <= 100, "pq = [p, q] with 0 < p < q ≤ 100", "another pair"),
            (self.coalition >= 1, "coalition ≥ 1", f"coalition = {self.coalition}"),
            (len(beyond) < 2, "rules that look at the same number of largest contributors beyond two", "several"),
            (
                {self.zeros, self.full} <= {"published", "protected"},
                '"published" or "protected", for zeros and full cells',
                f"zeros = {self.zeros!r}, full = {self.full!r}",
            ),
        )

    def check(self, *claims: tuple[bool, str, str]) -> None:
        """Refuse options of which a claim does not hold; each comes with what was expected and what was found."""
        for holds, expected, found in claims:
            if not holds:
                raise MethodError(self.name, expected=expected, found=found, do="correct the option")

    @property
    def has_rules(self) -> bool:
        """Whether any cell can be sensitive."""
        named = (self.minimum_units > 1, self.minimum_count > 1, self.dominance, self.p, self.pq)
        return any(named) or "protected" in (self.zeros, self.full)

    @property
    def top(self) -> int:
        """How many of the largest contributions are added up."""
        return max([2, self.coalition + 1, *(int(one[0]) for one in self.dominance)])

    def rules(self) -> list[str]:
        """The rules in words: what makes a cell sensitive."""
        found = []
        if self.minimum_units > 1:
            found.append(f"fewer than {self.minimum_units} units contribute")
        if self.minimum_count > 1:
            found.append(f"it counts fewer than {self.minimum_count}")
        for n, k in self.dominance:
            units = "the largest unit has" if n == 1 else f"the {plain(n)} largest units have"
            found.append(f"{units} more than {plain(k)} % of it")
        if self.p:
            who = "another contributor" if self.coalition == 1 else f"{self.coalition} other contributors together"
            found.append(f"{who} could estimate the largest contribution to within {plain(self.p)} %")
        if self.pq:
            found.append(
                f"someone who knows every contribution to within {plain(self.pq[1])} % could estimate the largest to "
                f"within {plain(self.pq[0])} %"
            )
        if self.zeros == "protected":
            found.append("it is zero")
        if self.full == "protected":
            found.append("it holds everyone of its group")
        return found

    def limits(self) -> dict[str, Any]:
        """The rules as fields, under the names that a release file gives them, and what was proved of them."""
        stated: dict[str, Any] = {
            "minimum_units": self.minimum_units,
            "minimum_count": self.minimum_count,
            "dominance": [[rounded_up(n), rounded_up(k)] for n, k in self.dominance],
            "p": rounded_up(self.p),
            "pq": [rounded_up(one) for one in self.pq],
            "coalition": self.coalition if self.coalition > 1 else 0,
            "full": "protected" if self.full == "protected" else "",
        }
        return {name: limit for name, limit in stated.items() if limit} | {"proved_against": list(self.proved_against)}

    @property
    def proved_against(self) -> tuple[str, ...]:
        """The readers of whom it was proved by linear programs that they cannot come closer than rules allow."""
        return ("readers", "contributors")[: 1 + self.against_contributors] if self.has_rules else ()

    @property
    def reach(self) -> str:
        """How far below the true value rules can ask for nothing: what everybody knows, for the statement."""
        below = "zero" if self.zeros == "protected" else "one, as zeros are published"
        return (
            f"Below the true value it ends where everybody knows a value to end: at {below}, and where numbers of "
            "establishments are told at one job for each."
        )

    def found(self, answer: Cells) -> dict[str, Any]:  # noqa: ARG002 (rounding looks at it)
        """What only the answer tells of how it was made, as fields."""
        return {}

    def found_in_words(self, answer: Cells) -> str:  # noqa: ARG002 (rounding looks at it)
        """The same as sentences."""
        return ""

    def foreseen(self, question: ExactQuestion, cells: Cells, answer: Cells, sensitive: Flags) -> Foreseen | None:  # noqa: ARG002
        """What `check` foretells of a table, if anything: confidential."""
        hidden = is_hidden_in(answer)
        return Withheld(
            cells=int((cells["count"] != 0).sum()),
            sensitive=int(sensitive.sum()),
            withheld=int(hidden.sum()),
            value=int(cells["count"][hidden].sum()),
            instead=self.instead,
        )

    def guarantee(self) -> NoFormalGuarantee:
        """No formal guarantee."""
        return NoFormalGuarantee(statement=self.statement)

    @property
    def statement(self) -> str:
        """What is bounded instead, as a clause."""
        return f"{self.shown} are published, and nothing bounds what a reader with other knowledge learns from them"

    def planned_error(self) -> PlannedError:
        """Values that are published are true."""
        return PlannedError(floor=0.0, floor_size=0, share=0.0)

    def expected_error(self, cells: Cells) -> Floats:
        """Values that are published are true."""
        return np.zeros(len(cells))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Never: what is withheld of one table follows from all tables together."""
        raise NotImplementedError("true numbers are decided for all tables together")

    def published_error(self, values: Integers) -> Floats:
        """Values that are published are true."""
        return np.zeros(len(values))

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """The value itself."""
        check_confidence(confidence)
        return values.astype(np.float64), values.astype(np.float64)


def is_hidden_in(answer: Cells) -> Flags:
    """Which cells of an answer are withheld."""
    hidden: Flags = answer["status"] == SUPPRESSED if "status" in answer.columns else np.zeros(len(answer), dtype=bool)
    return hidden
