"""What a `[[table]]` says of flows and graphs: pairs by an attribute of both ends."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from sfumato.description import Described
from sfumato.frame.data import Data

Weight = Literal["edges", "multiplicity", "earnings", "origin-earnings", "destination-earnings"]
EARNINGS: tuple[Weight, ...] = ("earnings", "origin-earnings", "destination-earnings")
"""The weights that are sums of earnings: at both employers of a pair, or at one of them."""
ENDS = {True: ("origin", "destination"), False: ("first", "second")}
"""What the two ends of a pair are called, directed and not."""


def _refuse_one_end(weight: str, *, directed: bool) -> None:
    if weight in EARNINGS[1:] and not directed:
        raise ValueError(f"pairs without a direction have no origin or destination: write earnings, not {weight}")


class Flow(Described):
    """Moves of workers who left one employer and joined another in the same period, by an attribute of both."""

    attribute: tuple[str, ...] = Field(
        min_length=1, description="attribute of workplaces, or several, that classifies origin and destination"
    )
    weight: Literal["edges", "workers", "earnings", "origin-earnings", "destination-earnings"] = Field(
        "workers",
        description="count workers who moved, or pairs of employers with a move; or add up what movers earned in the "
        "period of the move, at both employers or at one",
    )
    directed: bool = Field(True, description="whether moves there and back are told apart")

    @field_validator("attribute", mode="before")
    @classmethod
    def _accepts_one(cls, attribute: object) -> object:
        return (attribute,) if isinstance(attribute, str) else attribute

    @model_validator(mode="after")
    def _earns_somewhere(self) -> Self:
        _refuse_one_end(self.weight, directed=self.directed)
        return self


class Degrees(Described):
    """Employers by the number of others that they share workers with, or of workers that they share."""

    weight: Literal["edges", "workers"] = Field(
        "edges", description="the number of other employers (degree), or of workers shared with them (strength)"
    )
    bounds: tuple[int, ...] = Field(
        (1, 2, 5, 10, 20, 50, 100), description="where classes begin, increasing; below the first is one"
    )

    @field_validator("bounds")
    @classmethod
    def _increase(cls, bounds: tuple[int, ...]) -> tuple[int, ...]:
        if not bounds or bounds[0] < 1 or any(high <= low for low, high in pairwise(bounds)):
            raise ValueError("one or more whole numbers from 1 that increase, such as [1, 5, 20, 100]")
        return bounds


def degree_codes(bounds: Sequence[int]) -> tuple[str, ...]:
    """The codes of the classes of degrees.

    >>> degree_codes((1, 2, 5))
    ('0', '1', '2-4', '5+')
    """
    ranges = ((low, high - 1) for low, high in pairwise((0, *bounds)))
    return (*(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges), f"{bounds[-1]}+")


class Graph(Described):
    """Pairs of employers that share a worker, or of workers that share an employer, in the jobs that `where` keeps."""

    LATER: ClassVar[tuple[str, ...]] = ("directed", "loops")
    between: Literal["employers", "workers"] = Field("employers", description="what the pairs are made of")
    attribute: tuple[str, ...] = Field(
        min_length=1, description="attribute of employers or workers, or several, that classifies both ends"
    )
    weight: Literal["edges", "workers", "employers", "earnings", "origin-earnings", "destination-earnings"] = Field(
        "edges",
        description="count pairs once, or by the workers (or employers) that both share, or by what shared workers "
        "earned at both employers or, directed, at one",
    )
    directed: bool = Field(
        False, description="tell apart where shared workers were first, by the first period with earnings; of a panel"
    )
    loops: bool = Field(
        False, description="add pairs of an employer with itself, made by workers who have no other; or of a worker"
    )

    @field_validator("attribute", mode="before")
    @classmethod
    def _accepts_one(cls, attribute: object) -> object:
        return (attribute,) if isinstance(attribute, str) else attribute

    @model_validator(mode="after")
    def _counts_what_is_shared(self) -> Self:
        if self.weight == self.between:
            shared = "workers" if self.between == "employers" else "employers"
            raise ValueError(f"pairs of {self.between} share {shared}: `weight` is edges or {shared}")
        if self.between == "workers" and (self.directed or self.weight in EARNINGS):
            raise ValueError("pairs of workers have no direction, and no earnings: ask for those of employers")
        _refuse_one_end(self.weight, directed=self.directed)
        return self


def renamed_end(asked: Flow | Graph | None, name: str, data: Data) -> str:
    """What to write for one end by a name that it has in pairs with a direction, or in those without; else nothing."""
    end, _, of = name.partition("_")
    if asked is None or end not in ENDS[not asked.directed] or of not in data.attributes:
        return ""
    one, other = (f"{end}_{of}" for end in ENDS[asked.directed])
    text = f"its pairs have {'a' if asked.directed else 'no'} direction: "
    if of in asked.attribute:
        return f"{text}ends are {one} and {other}; choose by '{of}' for both, rows of one are chosen by the reader"
    if not data.is_public(of) or getattr(asked, "between", "") == "workers":
        return f"{text}choose by '{of}' for both ends"
    return f"{text}write {one} or {other}, or directed = {'false' if asked.directed else 'true'}"
