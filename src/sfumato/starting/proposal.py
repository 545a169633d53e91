"""What tables are taken for: their kind, keys and links, what classifies and what is added up; and what was wished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from sfumato.errors import UsageError
from sfumato.starting.look import Looked
from sfumato.starting.names import near_ones

Kind = Literal["jobs", "register", "panel", "businesses", "people"]
KINDS: Mapping[str, str] = {
    "jobs": "jobs: one row a job, with the worker and the workplace; in one table or several",
    "register": "register: one row for each establishment, with the number of its workers",
    "panel": "panel: jobs in several quarters or years, with earnings",
    "businesses": "businesses: one row a business (and period), with measures such as turnover",
    "people": "people: one row a person (and period), such as a survey with weights, or graduates",
}
_MOST_CELLS = 10_000
"""A first table is one that can be read."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What whoever starts says; all that is None is guessed or asked."""

    kind: Kind | None = None
    jobs: str | None = None
    workplaces: str | None = None
    workers: str | None = None
    worker: str | None = None
    workplace: str | None = None
    unit: str | None = None
    period: str | None = None
    weight: str | None = None
    earnings: str | None = None
    employees: tuple[str, ...] | None = None
    public: tuple[str, ...] | None = None
    by: tuple[str, ...] | None = None
    measure: str | None = None
    periods: tuple[str, ...] | None = None
    largest_weight: int | None = None
    skip: int | None = None
    dates: str | None = None
    decimal: str | None = None
    codelists: Mapping[str, str] = field(default_factory=dict)
    key: Path | None = None
    title: str | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in get_args(Kind):
            raise UsageError("kind", expected=", ".join(get_args(Kind)), found=self.kind, do="choose one of them")
        if self.decimal not in (None, ".", ","):
            raise UsageError("decimal", expected=". or ,", found=self.decimal, do="choose one of them")


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """A column that can classify, and where its codes come from."""

    name: str
    column: str
    holder: str
    """The table that has it."""
    public: bool
    may_be_public: bool
    size: int
    """How many codes it has."""
    codelist: str = ""
    level: int | None = None
    """Of a codelist of several levels, the one whose codes all rows have, or codes below them."""
    codes: Mapping[str, str] | None = None
    why: str = ""
    """Why these codes may be used."""
    classes: Mapping[str, int] | None = None
    read_off: bool = False
    """Public, and its codes are read off the public register, or off records for a method without a guarantee."""
    draft: Sequence[str] = ()
    labelled: Mapping[str, str] | None = None
    """The codes that the file has labels for: metadata that may be public."""
    empty: bool = False
    """Whether some rows have none, which a code is for: of what is public, or for a method without a guarantee."""
    undecided: bool = False
    """Whether some rows of what is confidential have none: one record must not change codes, so somebody decides."""

    @property
    def usable(self) -> bool:
        """Whether its codes may be used as they are."""
        return bool(self.codelist or self.codes or self.classes or self.read_off)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A column of numbers that can be added up, or why it cannot."""

    name: str
    column: str
    negative: bool = False
    factor: int = 1
    """How many of the smallest unit one in the file is."""
    why_not: str = ""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What the tables are taken for."""

    kind: Kind
    tables: Mapping[str, Looked]
    """Jobs, workplaces and workers, or records."""
    keys: Mapping[str, str]
    """Columns by what they are for: worker, workplace, unit, period, weight, earnings, and keys of other tables."""
    links: Sequence[str]
    """What was measured between tables, in words."""
    attributes: Sequence[Attribute]
    measures: Sequence[Measure]
    employees: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Columns that count workers by their names, and are not among those that are counted."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Files among the data that are lists of codes, by the column that has them."""
    periods: tuple[str, ...] = ()
    """Those of the data, in order; of people only as they were told."""
    doubts: tuple[str, ...] = ()
    """What was guessed and may be wrong, in words."""
    wishes: Wishes

    @property
    def jobs(self) -> int | None:
        """How many jobs the data have, as a check counts them: confidential."""
        table = self.tables.get("jobs")
        if table is None or self.kind == "panel":
            return None
        heads = sum(table.columns[name].total for name in self.employees)
        return round(heads) if self.employees else table.rows

    @property
    def keyed(self) -> bool:
        """Whether its methods need a key file."""
        return self.kind in ("panel", "businesses")

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes of the first table; none where none has codes that may be used."""
        usable = {one.name: one for one in self.attributes if one.usable}
        if self.wishes.by is not None:
            named = tuple(name for name in self.wishes.by if name != self.keys.get("period"))  # which is always there
            for name in named:
                if name not in usable:
                    raise UsageError(
                        f"first table by '{name}'",
                        expected=f"attributes with codes that may be used: {', '.join(usable) or 'there are none'}",
                        found=f"'{name}'",
                        do=f"give --codelist {name}=FILE, or --public {name} if everyone knows it of an establishment"
                        if name in {one.name for one in self.attributes}
                        else near_ones(name, usable),
                    )
            return named
        of_workplaces = [one for one in usable.values() if one.public or self.kind in ("people", "businesses")]
        chosen: list[Attribute] = []
        cells = 1
        for one in sorted(of_workplaces, key=lambda one: one.size):
            if len(chosen) < 2 and cells * one.size <= _MOST_CELLS:
                chosen.append(one)
                cells *= one.size
        return tuple(one.name for one in chosen)


def candidates(proposal: Proposal) -> list[str]:
    """Attributes of establishments that everybody may know: for the office to decide."""
    return [one.name for one in proposal.attributes if one.may_be_public and not one.public]


def drafts(proposal: Proposal) -> list[Attribute]:
    """Attributes that cannot be used yet."""
    return [one for one in proposal.attributes if not one.usable]


def need_codes(proposal: Proposal) -> list[Attribute]:
    """Those of them that can be once somebody gives their codes; others must be public first."""
    of_units = [one for one in drafts(proposal) if proposal.kind == "register" or one.holder == "workplaces"]
    return [one for one in drafts(proposal) if one.public or one not in of_units]
