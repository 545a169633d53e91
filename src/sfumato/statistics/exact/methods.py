"""The methods of true numbers: what each publishes, and what its statement says of it."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.cells import Cells
from sfumato.frame.levels import TOTAL
from sfumato.method import ADDED
from sfumato.privacy.guarantee import plain
from sfumato.statistics.exact.foreseen import Foreseen, Merged, Rounded
from sfumato.statistics.exact.question import ExactQuestion
from sfumato.statistics.exact.rules import SensitivityRules

_LIGHTEST, _HEAVIEST = Fraction(1, 1000), 1000
BEYOND = "beyond"
"""The column of rounded answers that says of how many cells the number is not next to the truth, if it is of any."""


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
    weight: Fraction = field(default=Fraction(1), repr=False, metadata={ADDED: True})
    """What it costs to withhold a cell of this table beside one of the same cost in others."""
    total_weight: Fraction = field(default=Fraction(1), repr=False, metadata={ADDED: True})
    """The same of its totals, on top."""

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
            *(
                (_LIGHTEST <= weight <= _HEAVIEST, f"{name} from 0.001 to 1,000", f"{name} = {plain(weight)}")
                for name, weight in (("weight", self.weight), ("total_weight", self.total_weight))
            ),
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
    error_words: ClassVar[tuple[str, str]] = ("exact, or withheld", "the same")
    reading: ClassVar[str] = (
        "Values that are published are true numbers, without error by the protection. A cell that is withheld is "
        "sensitive itself, or one that is not: its status does not tell which, though what else is known of it may, "
        "such as how many contribute."
    )

    def facts(self) -> dict[str, Any]:
        """The options as fields."""
        weights = {"weight": float(self.weight), "total_weight": float(self.total_weight)}
        return {"cost": self.cost, "zeros": self.zeros} | {name: one for name, one in weights.items() if one != 1}

    def weights(self, cells: Cells) -> Floats:
        """What it costs to withhold each cell of a table beside one of weight 1."""
        total = np.zeros(len(cells), dtype=bool)
        for one in cells.dimensions:
            if TOTAL in one.codes:
                total |= cells.codes(one.name) == one.codes.index(TOTAL)
        found: Floats = np.where(total, float(self.weight * self.total_weight), float(self.weight))
        return found

    @property
    def proved(self) -> str:
        """What was proved, for the statement."""
        return (
            "For every sensitive cell that is withheld it was proved, by linear programs over all cells and sums of "
            "all tables of the release and of earlier ones that it names, that what is published leaves an interval "
            "around the true value at least as wide as the rules ask for: to readers outside, and to each contributor "
            f"who is alone in a cell, or holds all of it, and so knows that cell. {self.reach}"
        )

    @property
    def not_proved(self) -> str:
        """What was not, for the statement."""
        return (
            "The proof is about readers who know the published tables, the least that a value can be, and, as "
            "contributors, the cells they are alone in. A withheld cell that is not sensitive itself may be worked "
            "out. Nothing is said of readers who know more of others, or most of another cell that is withheld; of the "
            "sum of several withheld cells of one contributor; of several contributors who put together what they know "
            "beyond what the rules ask for; of more than two filtered tables that are added and subtracted; of tables "
            "about other periods or other versions of the data; and of how likely values inside an interval are."
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
        # Weighted values next to their multiple are up to the base away from it, in whole units.
        return {"rounding": {"zero_restricted": reach <= self.base, "at_most": reach, "beyond": beyond}}

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

    def foreseen(self, question: ExactQuestion, cells: Cells, answer: Cells, sensitive: Flags) -> Foreseen | None:  # noqa: ARG002
        """How far numbers would be from the truth; the form of others says it."""
        for found in self.found(answer).values():
            return Rounded(cells=len(answer), beyond=found["beyond"], at_most=found["at_most"])
        return None

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
    against_contributors: ClassVar[bool] = True
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
    error_words: ClassVar[tuple[str, str]] = ("exact, or a range", "the same")
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
            "ask for: to readers outside, and to each contributor who is alone in a cell, and so knows that cell. "
            f"{self.reach} {alike}"
        )

    @property
    def not_proved(self) -> str:
        """What was not, for the statement."""
        return (
            "The proof is about readers who know the published tables, the least that a value can be, and, as "
            "contributors, the cells they are alone in. A number that is not sensitive itself may be worked out. "
            "Nothing is said of readers who know more of others, or most of another cell; of several contributors who "
            "put together what they know beyond what the rules ask for; of tables about other periods or other "
            "versions of the data; and of how likely values inside a range are."
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
    error_words: ClassVar[tuple[str, str]] = ("exact, of coarser groups", "the same")
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

    def foreseen(self, question: ExactQuestion, cells: Cells, answer: Cells, sensitive: Flags) -> Foreseen | None:  # noqa: ARG002
        """How coarse the table would be."""
        shown, codes = answer["status"] == 0, dict[str, tuple[int, int, int]]()
        for one in answer.dimensions:
            told = {one.codes[at] for at in np.unique(answer.codes(one.name)[shown]).tolist()}
            groups = told - {TOTAL} or told
            finest = question.codes[one.name]
            codes[one.name] = len(finest), len(groups.intersection(finest)), len(groups)
        return Merged(codes=codes, cells=int(shown.sum()))

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
