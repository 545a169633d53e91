"""The statistic: what a `[[table]]` or `[[cube]]` of a release asks for, and all that follows from its kind.

Plan, check, run, bundle, assess, live and the server know this noun, and never ask which kind it is. Each folder of
`sfumato.statistics` has the kinds that it implements; `sfumato.statistics.kinds` lists them.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import Chunked
from sfumato.keys import Secret
from sfumato.method import Method, method_words
from sfumato.noise.factors import WHOLE_NUMBERS, RoundingNote
from sfumato.noise.keyed import CellWords, Keyed
from sfumato.noise.randomness import OperatingSystem, Randomness
from sfumato.privacy.account import Charge
from sfumato.privacy.answers import Layout, cells_of, content_of
from sfumato.privacy.blocks import EVERYTHING, Block
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.meaning import Comparison
from sfumato.surroundings import Surroundings

KEY_NOTE = "key "
"""Begins the note of a charge that was answered with a key: its fingerprint, and the question under any key."""
EXACT_NOTE = "exact"
"""Begins the note of a charge of true numbers, or what stands in it behind a key: later ones are linked to them."""
LEVELS_NOTED = "+"
"""In that note, between what decides a perturbation and how many levels of units it protects, if several."""
Busy = Callable[[str, float], None]
"""Told what takes long, and which share of it is done."""
_SomeStatistic = TypeVar("_SomeStatistic", bound="Statistic")


class Asked(Protocol):
    """What is tabulated for a statistic; each kind has its own, and no one else looks into it."""

    @property
    def by(self) -> tuple[Dimension, ...]:
        """The dimensions of the answer."""
        ...

    @property
    def cells(self) -> int:
        """The number of cells, empty ones included."""
        ...

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class Statistic(ABC):
    """One statistic of a release: what it asks and how it is protected, before anything is counted."""

    folder: ClassVar[str]
    """Where a bundle has it, and under which name its structure lists it: tables or cubes."""
    section: Any
    """What the release file says of it."""
    question: Any
    method: Any
    links: str = ""
    """How the tables of the frame hang together: another link between the same files is another question."""
    period: str = ""
    """The column with the period of a panel."""
    key: str = ""
    """The fingerprint of the key, when the method has one: another key gives another answer."""
    block: Block = EVERYTHING
    """The establishments that it is about."""
    in_chunks: bool = False
    """Whether it is made chunk by chunk. That changes no number: an answer in one piece stays the answer."""
    before: "Statistic | None" = None
    """The statistic as an earlier version asked for it, where that was another question."""

    @property
    def name(self) -> str:
        """Its name, which no other one of the release has."""
        return str(self.section.name)

    @property
    def title(self) -> str:
        """Its heading."""
        return self.section.title or self.name.replace("_", " ").capitalize()

    @cached_property
    def guarantee(self) -> Guarantee:
        """What everything that is published of it reveals at most, together."""
        return cast(Guarantee, self.method.guarantee())

    @property
    def by(self) -> tuple[Dimension, ...]:
        """The dimensions of what is published."""
        return cast(Asked, self.question).by

    @property
    def cells(self) -> int:
        """The number of cells in the product of the dimensions, structural zeros included."""
        return cast(Asked, self.question).cells

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return cast(Asked, self.question).looks_at

    @property
    def spent_at(self) -> Mapping[str, Fraction]:
        """The epsilon that each period of a panel spends; statistics of other data spend none at a period."""
        return {}

    @property
    def moved_by_record(self) -> Mapping[int, int]:
        """How many steps one record of a job in a period of a panel is, by how many periods later its numbers are."""
        return {}

    @property
    def protects_units(self) -> bool:
        """Whether a guarantee is about all records of one larger unit together, and not about one record."""
        return False

    @property
    def chooses_records(self) -> bool:
        """Whether only some records of a larger unit are counted, which are chosen by a key."""
        return self.protects_units

    @property
    @abstractmethod
    def classified_by(self) -> tuple[str, ...]:
        """Every dimension and every attribute it is filtered by, each once: their codes are published with it."""

    # Its name in the ledger, stable for ever.

    @abstractmethod
    def digest(self, data: str, *, any_key: bool = False) -> str:
        """Name this question to these data: the same name means that the stored answer is given again.

        In whatever order dimensions and codes are written, the question has one name. With `any_key` the name is the
        same under every key.
        """

    @abstractmethod
    def digest_as_laid_out(self, data: str, layout: Layout | None = None, *, any_key: bool = False) -> str:
        """The name that version 0.1 gave this question when it was written as an answer is laid out, or as it is now.

        It depended on the order of dimensions and codes. Answers that were stored under such names stay the answers.
        """

    def can_be_laid_out_as(self, layout: Layout) -> bool:
        """Whether an answer has the dimensions and codes that are asked for, in whatever order."""
        return layout.is_by(self.by)

    def in_every_order(self) -> Iterator["Statistic"]:
        """The same question in every order in which it may have been written, where version 0.1 told these apart."""
        yield self

    def may_have_cost(self, guarantee: Guarantee | None) -> bool:
        """Whether the same question may have been charged with this guarantee by an earlier version."""
        return guarantee == self.guarantee

    def charge(self, data: str, question: str | None = None) -> Charge:
        """What the ledger is asked to charge for it; `question` is an earlier name of what it asks."""
        asked = self.digest(data) if question is None else question
        return Charge(
            question=asked,
            table=self.name,
            guarantee=self.guarantee,
            data=data,
            block=EVERYTHING if self.guarantee.bound is None else self.block,
            note=self._note(data),
        )

    def _note(self, data: str) -> str:  # noqa: ARG002 (some kinds have one)
        """What the ledger keeps beside the charge."""
        return ""

    # From records to the answer. One scan may serve many statistics of a kind.

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: Any) -> None:  # noqa: ARG003 (most kinds take any)
        """Refuse data that these statistics cannot be made of, before anything is charged."""
        return

    @classmethod
    def scanned_as(cls) -> "type[Statistic]":
        """The kind whose `tabulate` makes it too: its own, unless one scan serves several kinds."""
        return cls

    @classmethod
    @abstractmethod
    def tabulate(cls, batch: Mapping[str, Self], data: Any, secret: Secret | None) -> Iterator[tuple[str, Any]]:
        """The true numbers of some statistics of this kind, one after the other; nothing else counts records."""

    @classmethod
    def tabulate_in_chunks(
        cls, batch: Mapping[str, Self], data: Any, secret: Secret | None
    ) -> AbstractContextManager[Mapping[str, Chunked]]:
        """Some statistics of this kind cut into chunks, which are counted when they are worked on."""
        raise NotImplementedError("a kind that is never in chunks")

    @abstractmethod
    def answer(self, counted: Any, secret: Secret | None) -> Any:
        """The answer to a charged question, drawn by chance, with what is public of it: keep it, and give no other."""

    @classmethod
    def decided_by(cls) -> "type[Statistic] | None":
        """The kind that answers all its statistics at once, when all are counted; None where each is answered alone."""
        return None

    @classmethod
    def answer_together(
        cls,
        batch: Mapping[str, tuple[Self, Any]],
        known: Mapping[str, tuple[Self, Any, Any]],  # noqa: ARG003 (some kinds look at them)
        secret: Secret | None,
        busy: Busy = lambda _words, _share: None,  # noqa: ARG003
        last: Mapping[str, Any] = MappingProxyType({}),  # noqa: ARG003
    ) -> Mapping[str, Any]:
        """The answers to several statistics with their true numbers, decided together.

        `known` are those that were answered before, each with its true numbers and its answer, which stays; `last` are
        the answers of another period, which new ones are to look like.
        """
        return {name: one.answer(counted, secret) for name, (one, counted) in batch.items()}

    @abstractmethod
    def content(self, answer: Any) -> Any:
        """An answer as the content of a file."""

    @abstractmethod
    def as_asked(self, content: Any) -> Any:
        """A stored answer, in the order in which this statistic asks for it."""

    # What is published of it.

    @abstractmethod
    def files(self, answer: Any, agreed: Any = None, when: Any = None) -> "Mapping[str, list[Callable[[], Any]]]":
        """The files of a bundle that have it, each in pieces that can be made side by side.

        `agreed` is the answer after several statistics were made to agree, `when` its period in a series.
        """

    @abstractmethod
    def describe(self, plan: Surroundings, chunks: Any = None) -> dict[str, Any]:
        """Its part of the structure of a bundle: every fact as a field."""

    def found(self, answer: Any) -> dict[str, Any]:  # noqa: ARG002 (some kinds look at it)
        """What only its answer tells of how it was made, as fields beside its description."""
        return {}

    @classmethod
    def in_short(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (some kinds say it)
        """What all statistics of this kind protect, where that is not what tables of establishments do."""
        return []

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:  # noqa: ARG003 (some kinds say it)
        """What all statistics of this kind bound, where that is not what tables of establishments do."""
        return ()

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (some kinds say it)
        """What statistics of this kind do not protect, where that is not what tables of establishments leave open."""
        return []

    @classmethod
    def exceptions(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (some kinds have some)
        """For whom what is said of a release without a formal guarantee does not hold."""
        return []

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (some kinds say it)
        """How to read the error figures of statistics of this kind."""
        return []

    @classmethod
    def operator_notes(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (some kinds have some)
        """What whoever runs a release should know of statistics of this kind, and readers of the bundle need not."""
        return []

    @abstractmethod
    def expected_error(self) -> tuple[str, str]:
        """How far values are typically off before any data are read, in short, in small cells and in large ones."""

    @abstractmethod
    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:
        """What was done to its numbers, in the words of the privacy statement."""


def decided_together(
    statistics: Mapping[str, Statistic],
    known: Mapping[str, tuple[Statistic, Any]],
    count: Callable[[Mapping[str, Statistic]], Mapping[str, Any]],
    secret: Secret | None,
    busy: Busy = lambda _words, _share: None,
    *,
    last: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The answers to those of some statistics that are decided together; nothing is counted where there are none.

    `known` are statistics that were answered before, each with its answer; they are counted, too.
    """
    found: dict[str, Any] = {}
    for kind in filter(None, dict.fromkeys(one.decided_by() for one in statistics.values())):
        batch = {name: one for name, one in statistics.items() if one.decided_by() is kind}
        before = {name: one for name, (one, _) in known.items() if one.decided_by() is kind}
        counted = count({**batch, **before})
        found |= kind.answer_together(
            {name: (one, counted[name]) for name, one in batch.items()},
            {name: (one, counted[name], known[name][1]) for name, one in before.items()},
            secret,
            busy,
            last,
        )
    return found


@dataclass(frozen=True, kw_only=True)
class TableStatistic(Statistic):
    """A statistic whose answer is a table of cells."""

    folder: ClassVar[str] = "tables"
    method: Method
    before: "TableStatistic | None" = None

    @property
    def table(self) -> Any:
        """What the release file says of it."""
        return self.section

    @property
    def where(self) -> Mapping[str, tuple[str, ...]]:
        """The codes that are kept of some attributes."""
        return cast(Mapping[str, tuple[str, ...]], self.question.where)

    @property
    def classified_by(self) -> tuple[str, ...]:
        """Every dimension of the table and every attribute it is filtered by, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.by), *self.where]))

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations in which nothing can be are published as rows that are exactly 0."""
        return False

    @property
    def tells_establishments(self) -> bool:
        """Whether it may tell where there is an establishment."""
        return True

    def with_method(self, **options: Any) -> Self:
        """The same with other options of its method."""
        return replace(self, method=replace(cast(Any, self.method), **options))

    # Its name in the ledger.

    def statistic_words(self) -> list[Any]:
        """What is counted, beside the dimensions, as digests have it for ever."""
        return [self.table.statistic]

    def words_in_any_order(self) -> list[Any]:
        """The same, in one order however it is written."""
        return self.statistic_words()

    def words_as_laid_out(self, by: Sequence[Dimension]) -> list[Any]:  # noqa: ARG002 (some kinds look at it)
        """The same, in the order in which an answer is laid out."""
        return self.statistic_words()

    def method_in_order(self) -> Method:
        """The method, with what it lists in one order."""
        return self.method

    def digest(self, data: str, *, any_key: bool = False) -> str:
        """Name this question to these data, in one order however it is written."""
        asked = {"statistic": self.words_in_any_order(), "by": sorted_codes(self.by), "where": self._where()}
        return self._digest(data, asked, self.method_in_order(), any_key=any_key)

    def digest_as_laid_out(self, data: str, layout: Layout | None = None, *, any_key: bool = False) -> str:
        """The name that version 0.1 gave this question when it was written as an answer is laid out, or as now."""
        by = self.by if layout is None else layout.by
        named = [[dimension.name, dimension.codes] for dimension in by]
        asked = {"statistic": self.words_as_laid_out(by), "by": named, "where": self._where()}
        return self._digest(data, asked, self.method, any_key=any_key)

    def _where(self) -> list[Any]:
        return sorted((name, sorted(codes)) for name, codes in self.where.items())

    def _digest(self, data: str, asked: dict[str, Any], method: Method, *, any_key: bool) -> str:
        named = {
            **asked,
            "data": data,
            "links": self.links,
            "method": method_words(method),
            "key": "" if any_key else self.key,
        }
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()

    def _note(self, data: str) -> str:
        """Of a table with a key: its fingerprint, the question under any key, and what else must stay as it was."""
        return f"{KEY_NOTE}{self.key} {self.digest(data, any_key=True)} {self.noted(data)}" if self.key else ""

    def noted(self, data: str) -> str:
        """What the ledger keeps of how a table with a key was made: its rounding, or its perturbation."""
        return "" if self.roundings is None else self.rounding_note(data).text

    def rounding_note(self, data: str) -> RoundingNote:
        """What the ledger keeps of how sums with factors were rounded."""
        question = self.in_whole_numbers().digest(data, any_key=True)
        return RoundingNote(bases=self.roundings or (WHOLE_NUMBERS, WHOLE_NUMBERS), question=question)

    # Permanent factors: how sums with them are rounded.

    @property
    def values_of_one_employer(self) -> int:
        """How many values may hold the factor of one employer alone, over the life of a key; 0 without factors."""
        return 0

    @property
    def rounds_earnings(self) -> bool:
        """Whether some of its values are sums of earnings."""
        return False

    @property
    def roundings(self) -> tuple[int, int] | None:
        """To multiples of what distorted sums of jobs and of earnings are rounded; None for other methods."""
        if not hasattr(self.method, "rounding"):
            return None
        return self.method.rounding, getattr(self.method, "earnings_rounding", WHOLE_NUMBERS)

    def at_rounding(self, rounding: int, earnings_rounding: int) -> Self:
        """The same table with distorted sums rounded to other bases."""
        known = {"rounding": rounding, "earnings_rounding": earnings_rounding}
        bases = {name: base for name, base in known.items() if hasattr(self.method, name)}
        return self.with_method(**bases) if bases else self

    def in_whole_numbers(self) -> Self:
        """The same table before its rounding could be chosen, which is what all roundings of it have in common."""
        return self.at_rounding(WHOLE_NUMBERS, WHOLE_NUMBERS)

    @property
    def noise(self) -> str:
        """A digest of what decides by how much records are perturbed; empty for other methods."""
        return ""

    # From true cells to the answer.

    @property
    def lasting(self) -> frozenset[str]:
        """Dimensions over which chance from a key is the same."""
        return frozenset()

    def randomness(self, secret: Secret | None, cells: Cells) -> Randomness:
        """Where the method's chance comes from: of a keyed method, from what each cell is about, for ever."""
        if secret is None or not self.key:
            return OperatingSystem()
        topic = json.dumps(["answer", *self.statistic_words()])
        keyed = Keyed(key=secret.key)
        return CellWords(keyed=keyed, cells=cells, topic=topic, where=self.where, lasting=self.lasting)

    def answer(self, counted: Cells, secret: Secret | None) -> Cells:
        """The protected cells, with the public number of establishments where it is known."""
        return self.drawn(counted, self.randomness(secret, counted))

    def drawn(self, counted: Cells, randomness: Randomness) -> Cells:
        """The same by some chance."""
        drawn = self.method.protect(counted, randomness)
        if "establishments" not in counted.columns:
            return drawn
        return drawn.with_column("establishments", counted["establishments"])

    def content(self, answer: Cells) -> Any:
        """The protected cells as the content of a file."""
        return content_of(answer)

    def as_asked(self, content: Any) -> Cells:
        """A stored answer as cells, in the order of the dimensions and codes of the table."""
        return self.laid_out(content if isinstance(content, Cells) else cells_of(content))

    def laid_out(self, answer: Cells) -> Cells:
        """Cells in the order of the dimensions and codes of the table."""
        return answer.laid_out(self.by)


def sorted_codes(dimensions: Iterable[Dimension]) -> list[Any]:
    """Dimensions with their codes, in the order of their names."""
    return sorted([dimension.name, sorted(dimension.codes)] for dimension in dimensions)
