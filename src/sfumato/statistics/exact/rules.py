"""The options that say which cells are sensitive, which all methods of true numbers have, and their words."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import PlannedError, check_confidence
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import NoFormalGuarantee, plain, rounded_up

Choice = Literal["published", "protected"]
BEYOND = "beyond"
"""The column of rounded answers that says of how many cells the number is not next to the truth, if it is of any."""
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


@dataclass(frozen=True, kw_only=True)
class Suppression(SensitivityRules):
    """Sensitive cells are withheld, and others beside them so that none can be worked out."""

    name: ClassVar[str] = "suppression"
    decided_in: ClassVar[str] = "decide:suppressed"
    against_contributors: ClassVar[bool] = True
    cost: Literal["cells", "value"] = "cells"
    """Whether as few cells as possible are withheld beside sensitive ones, or as little of the total."""
    seconds: int = 600
    """After so long nothing is improved any more: what comes is proved all the same, and perhaps larger."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check(
            (
                self.has_rules,
                "a rule: minimum_units, minimum_count, dominance, p, pq, or zeros or full that are protected",
                "none, so that nothing would be withheld",
            ),
            (self.cost in ("cells", "value"), 'cost = "cells" or "value"', f"cost = {self.cost!r}"),
            (self.seconds >= 1, "seconds ≥ 1", f"seconds = {self.seconds}"),
        )

    @property
    def description(self) -> str:
        """What was done, as a clause of the statement."""
        return (
            "true numbers are published, but for cells that are withheld: sensitive ones, and others without which "
            f"these could be worked out. A cell is sensitive where {', or '.join(self.rules())}"
        )

    lacking: ClassVar[tuple[str, ...]] = ("low", "high")
    column_texts: ClassVar[dict[str, str]] = {
        "value": "true value; empty where it is withheld",
        "status": "empty, or suppressed: the value is withheld because it, or another that follows from it, would "
        "reveal too much",
    }
    error_words: ClassVar[tuple[str, str]] = ("exact", "exact, or withheld")
    reading: ClassVar[str] = (
        "Values that are published are true numbers, without error by the protection. A cell that is withheld is "
        "sensitive itself, or one that is not: its status does not tell which, though what else is known of it may, "
        "such as how many contribute."
    )

    def facts(self) -> dict[str, Any]:
        """The options as fields."""
        return {"cost": self.cost, "zeros": self.zeros}

    @property
    def proved(self) -> str:
        """What was proved, for the statement."""
        return (
            "For every sensitive cell it was proved, by linear programs over all cells and sums of all tables of the "
            "release and of earlier ones that it names, that what is published leaves an interval around the true "
            "value at least as wide as the rules ask for: to readers outside, and to each contributor who is alone in "
            f"a cell, or holds all of it, and so knows that cell. {self.reach}"
        )

    @property
    def not_proved(self) -> str:
        """What was not, for the statement."""
        return (
            "The proof is about readers who know the published tables, the least that a value can be, and, as "
            "contributors, their own cells. A withheld cell that is not sensitive itself may be worked out. Nothing is "
            "said of readers who know more of others, of several contributors who put together what they know beyond "
            "what the rules ask for, of tables about other periods or other versions of the data, and of how likely "
            "values inside an interval are."
        )


@dataclass(frozen=True, kw_only=True)
class Rounding(SensitivityRules):
    """All values are rounded to multiples of a base: so that tables still add up, to the nearest, or by chance."""

    name: ClassVar[str] = "rounding"
    decided_in: ClassVar[str] = "rounded:rounded"
    shown: ClassVar[str] = "rounded numbers"
    keyed_forms: ClassVar[tuple[str, ...]] = ("random",)
    base: int = 5
    """Published values are multiples of it."""
    form: Literal["controlled", "plain", "random"] = "controlled"
    """Whether all sums hold, every value goes to its nearest multiple, or up or down by chance from a key."""

    lacking: ClassVar[tuple[str, ...]] = ("status",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check(
            (2 <= self.base <= 10**9, f"a base from 2 to {10**9:,}", f"base = {self.base}"),
            (
                self.form in ("controlled", "plain", "random"),
                'form = "controlled", "plain" or "random"',
                f"form = {self.form!r}",
            ),
        )

    @property
    def column_texts(self) -> dict[str, str]:
        """What the columns say."""
        return {
            "value": f"true value, rounded to a multiple of {self.base}",
            "low": "least true value that is rounded so",
            "high": "greatest true value that is rounded so",
        }

    @property
    def description(self) -> str:
        """What was done, as a clause of the statement."""
        how = {
            "controlled": "next to it, such that all sums hold in all tables together",
            "plain": "nearest to it; sums need not hold",
            "random": "next to it, up or down by chance from a key and right on average; sums need not hold",
        }[self.form]
        return f"every true number was replaced by a multiple of {self.base} {how}"

    @property
    def error_words(self) -> tuple[str, str]:
        """How far values are off."""
        most = self.base // 2 if self.form == "plain" else self.base - 1
        return f"at most {most}" if self.form != "controlled" else f"mostly below {self.base}", "the same"

    @property
    def reading(self) -> str:
        """How to read the values."""
        return (
            "`low` and `high` are the least and the greatest true value that is rounded to the value; sums of several "
            "values may tell more of some of them."
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The way to the nearest multiple, or what chance makes of it: controlled rounding lies between."""
        rest = cells["count"] % self.base
        nearest, chance = np.minimum(rest, self.base - rest), 2 * rest * (self.base - rest) / self.base
        found: Floats = nearest.astype(np.float64) if self.form == "plain" else chance
        return found

    def facts(self) -> dict[str, Any]:
        """The options as fields."""
        return {"base": self.base, "form": self.form}

    def found(self, answer: Cells) -> dict[str, Any]:
        """How far numbers may be from the truth where all sums hold, and how many are not next to it."""
        if self.form != "controlled":
            return {}
        beyond = int(answer[BEYOND].max(initial=0)) if BEYOND in answer.columns else 0
        reach = int((answer["high"] - answer["value"]).max(initial=0))
        return {"rounding": {"zero_restricted": reach < self.base, "at_most": reach, "beyond": beyond}}

    def found_in_words(self, answer: Cells) -> str:
        """The same where numbers are not next to the truth."""
        for found in self.found(answer).values():
            if not found["zero_restricted"]:
                return (
                    " No rounding was found in which all numbers are next to the true ones and all sums hold. The "
                    f"nearest that was found is published: {found['beyond']:,} of {len(answer):,} numbers of this "
                    f"table are farther away, none by more than {found['at_most']:,}."
                )
        return ""

    @property
    def proved(self) -> str:
        """What was proved, for the statement."""
        if not self.has_rules:
            return "Nothing was proved of what sums of rounded numbers tell: the release states no rule."
        return (
            f"A cell is sensitive where {', or '.join(self.rules())}. For every sensitive cell it was proved, by "
            "linear programs over all cells and sums of all tables of the release, that rounded numbers leave an "
            f"interval around the true value at least as wide as the rules ask for. {self.reach}"
        )

    @property
    def not_proved(self) -> str:
        """What was not, for the statement."""
        return (
            "Every published number tells the true one to within the base. Nothing is said of readers who know single "
            "contributions, of tables about other periods or other versions of the data, and of how likely values "
            "inside an interval are."
        )


@dataclass(frozen=True, kw_only=True)
class Ranges(SensitivityRules):
    """Ranges instead of sensitive numbers, and of others beside them so that sums do not tell them."""

    name: ClassVar[str] = "ranges"
    decided_in: ClassVar[str] = "ranged:ranged"
    instead: ClassVar[str] = "shown as ranges"
    shown: ClassVar[str] = "true numbers and ranges"
    classes: tuple[int, ...] = ()
    """Where classes begin: the first at 1, or at 0 where zero is part of it, the last without end."""
    width: Fraction = Fraction(0)
    """How many times the lower end of a class the upper one is, instead of `classes`."""
    everywhere: bool = False
    """Whether all cells are shown as ranges, and no number but zeros that everybody knows."""

    lacking: ClassVar[tuple[str, ...]] = ()
    column_texts: ClassVar[dict[str, str]] = {
        "value": "true value; empty where a range is shown instead",
        "status": "empty, or suppressed: a range is shown, because the value, or another that follows from it, would "
        "reveal too much",
        "low": "least value of the range; the value itself where it is shown",
        "high": "greatest value of the range; empty where it has no upper end, the value itself where it is shown",
    }
    error_words: ClassVar[tuple[str, str]] = ("exact", "exact, or a range")
    reading: ClassVar[str] = (
        "Values that are published are true numbers, without error by the protection; `low` and `high` are the ends of "
        "the range that the others lie in. A cell with a range is sensitive itself, or one that is not: its status "
        "does not tell which, though what else is known of it may, such as how many contribute."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check(
            (self.has_rules or self.everywhere, "a rule, such as minimum_units, or everywhere = true", "neither"),
            (bool(self.classes) != bool(self.width), "classes or width", "both" if self.classes else "neither"),
        )
        _ = self.declared

    @property
    def declared(self) -> Any:
        """The classes that a range is one of, or made of."""
        from sfumato.exact.ranges import Classes

        return Classes(self.classes) if self.classes else Classes.relative(self.width)

    @property
    def description(self) -> str:
        """What was done, as a clause of the statement."""
        classes = (
            f"that begin at {', '.join(map(str, self.classes))}"
            if self.classes
            else f"of which each ends at about {plain(self.width)} times its lower end"
        )
        where = "instead of all numbers but known zeros" if self.everywhere else "instead of some of the true numbers"
        return f"ranges are published {where}: classes {classes}, two, four, eight … of them together where needed"

    def facts(self) -> dict[str, Any]:
        """The options as fields."""
        classes = {"classes": list(self.classes)} if self.classes else {"width": float(self.width)}
        return {**classes, "everywhere": self.everywhere, "zeros": self.zeros}

    @property
    def proved(self) -> str:
        """What was proved, for the statement."""
        alike = (
            "The same cell has the same range in all tables. Two ranges of one value are the same, apart, or one "
            "inside the other, in every release with these classes: the narrower one is all that both together tell."
        )
        if not self.has_rules:
            return f"{alike} Nothing was proved of what sums of ranges tell: the release states no rule."
        return (
            f"A cell is sensitive where {', or '.join(self.rules())}. For every sensitive cell it was proved, by "
            "linear programs over all cells and sums of all tables of the release and of earlier ones that it names, "
            "that numbers and ranges together leave an interval around the true value at least as wide as the rules "
            f"ask for. {self.reach} {alike}"
        )

    @property
    def not_proved(self) -> str:
        """What was not, for the statement."""
        return (
            "The proof is about readers who know the published tables and the least that a value can be. A number that "
            "is not sensitive itself may be worked out. Nothing is said of readers who know single contributions, of "
            "tables about other periods or other versions of the data, and of how likely values inside a range are."
        )


@dataclass(frozen=True, kw_only=True)
class Coarsening(SensitivityRules):
    """True numbers of coarser groups: codes are merged upwards until no cell of any table is sensitive."""

    name: ClassVar[str] = "coarsening"
    decided_in: ClassVar[str] = "coarsened:coarsened"
    merges: ClassVar[bool] = True
    shown: ClassVar[str] = "true numbers of coarser groups"
    cost: Literal["cells", "value"] = "cells"
    """Whether as many cells as possible are kept, or as much as possible of where the value lies."""

    lacking: ClassVar[tuple[str, ...]] = ("low", "high", "establishments")
    column_texts: ClassVar[dict[str, str]] = {
        "value": "true value of the group of codes",
        "status": "empty, or not available: the code was merged into the one above it, or that one was not needed",
    }
    error_words: ClassVar[tuple[str, str]] = ("exact", "exact, of coarser groups")
    reading: ClassVar[str] = (
        "Values are true numbers, without error by the protection, of groups that pass the rules. "
        "Codes that are not available were merged into the one above them, or are shown by those below them."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check(
            (self.has_rules, "a rule: minimum_units, minimum_count, dominance, p or pq", "none"),
            (
                self.zeros == self.full == "published",
                "nothing of zeros and full cells: rules for coarser groups are about contributors",
                f"zeros = {self.zeros!r}, full = {self.full!r}",
            ),
            (self.cost in ("cells", "value"), 'cost = "cells" or "value"', f"cost = {self.cost!r}"),
        )

    @property
    def description(self) -> str:
        """What was done, as a clause of the statement."""
        return (
            "true numbers are published of groups of codes, which were merged upwards, alike in all tables of the "
            f"release, until no cell was sensitive: a cell is sensitive where {', or '.join(self.rules())}"
        )

    def facts(self) -> dict[str, Any]:
        """The options as fields."""
        return {"cost": self.cost}

    @property
    def proved(self) -> str:
        """What was proved, for the statement."""
        return (
            "Every published cell was checked against the rules, with the largest units that are named, and so was "
            "what tables about some of the records tell beside others."
        )

    @property
    def not_proved(self) -> str:
        """What was not, for the statement."""
        return (
            "Which codes were merged tells that one of them was sensitive. Nothing is said of readers who know other "
            "contributions, and of tables about other periods or other versions of the data, which may be merged "
            "otherwise and can be subtracted."
        )
