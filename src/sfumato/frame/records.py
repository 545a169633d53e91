"""Microdata: one table of records with their units, weights and measures, for totals of businesses or surveys."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from sfumato.description import Described, Exact
from sfumato.errors import ReleaseError
from sfumato.frame.data import Data
from sfumato.frame.measured import measured
from sfumato.frame.sources import Column, Role, Source, written


def matching(pattern: str, columns: Sequence[str]) -> list[str]:
    """The columns that a pattern stands for: the one of this name, or all that match it."""
    return [pattern] if pattern in columns else [column for column in columns if fnmatchcase(column, pattern)]


class Replicates(Described):
    """Replicate weights, and how their estimates spread to a variance."""

    columns: tuple[Column, ...] = Field(
        description='columns of replicate weights: a pattern such as "rw_*", or a list of names'
    )
    rule: Literal["jackknife", "successive-difference", "bootstrap"] = Field(
        description="jackknife (delete a group): (R−1)/R times the sum of squared differences; successive-difference: "
        "4/R times; bootstrap: 1/R times"
    )
    scale: Exact | None = Field(None, description="another factor than the rule's, where the design has one")

    @field_validator("columns", mode="before")
    @classmethod
    def _accepts_a_pattern(cls, columns: object) -> object:
        return (columns,) if isinstance(columns, str) else columns

    def factor(self, replicates: int) -> Fraction:
        """What the sum of squared differences between the replicates' estimates and the full one is multiplied by.

        >>> Replicates(columns="rw_*", rule="jackknife").factor(80)
        Fraction(79, 80)
        """
        if self.scale is not None:
            return self.scale
        rules = {
            "jackknife": Fraction(replicates - 1, replicates),
            "successive-difference": Fraction(4, replicates),
            "bootstrap": Fraction(1, replicates),
        }
        return rules[self.rule]


NO_RECORDS, OTHER_UNITS = "no records", "other units"


class Records(Source):
    """The table with one row a record: a business, an employee, an answer of a survey."""

    unit: Column = Field(description="column that names the unit of each record, once: the business, the employee")
    period: Column | None = Field(
        None,
        description="column with the period of each record, described as an attribute: a unit then has at most one "
        "record in each period. Statistics of people protect its whole history; totals keep its key in every period",
    )
    levels: tuple[Column, ...] = Field(
        (),
        description="columns that name larger units to protect as well, such as the establishment or the enterprise; "
        "for top-contributors, perturbed-values and the rules of true numbers; "
        "cubes and counts of records protect the last of them with "
        '`protects = "unit"`; otherwise cubes and weighted counts protect single records all the same, and other '
        "statistics of people refuse it",
    )
    key_names: dict[Column, Column] = Field(
        {},
        description="permanent names of units whose column is now called otherwise, such as { Firma = "
        '"Unternehmen-Nr" }: keys are made with these, and stay the same whatever the column is called; the name of '
        "the column when not given",
    )
    weight: Column | None = Field(None, description="column with the sampling weight; 1 when not given")
    replicates: Replicates | None = Field(None, description="replicate weights, for standard errors")
    consent: Column | None = Field(
        None,
        description="column that is true where the unit asked to be protected; only those are then perturbed, by "
        "top-contributors and perturbed-values; refused by cubes and by statistics of people",
    )
    public: bool = Field(
        False,
        exclude=True,  # it changes no number
        description="whether everyone may know which units have a record, and its weight, as of a register or of all "
        "large businesses: means with a guarantee, and those of larger units or with weights, need it",
    )
    accept: Literal["no records", "other units"] | None = Field(
        None,
        exclude=True,  # it changes no number
        description="what would be refused as a mistake, and is meant: a file without any record, or units that are "
        "others than those published before under the same population and key",
    )

    @model_validator(mode="after")
    def _names_each_column_once(self) -> Self:
        names = [self.unit, *self.levels, *filter(None, [self.period, self.weight, self.consent])]
        if len(set(names)) != len(names):
            raise ValueError("`unit`, `period`, `levels`, `weight` and `consent` are different columns")
        if self.replicates is not None and self.weight is None:
            raise ValueError("replicate weights need the full sample's: give `weight` too")
        return self

    @model_validator(mode="after")
    def _names_units_for_good(self) -> Self:
        if unknown := [column for column in self.key_names if column not in (self.unit, *self.levels)]:
            raise ValueError(
                f"`key_names` has '{unknown[0]}', which is neither `unit` nor one of `levels`: write the column of "
                "now, and behind it the name it had"
            )
        if not all(self.key_names.values()) or len(set(self.units)) < 1 + len(self.levels):
            raise ValueError("`key_names` gives the units of every level a name of their own")
        return self

    @property
    def units(self) -> tuple[str, ...]:
        """The permanent names of the units that are protected, that of a record first: what keys are made with."""
        return tuple(self.key_names.get(column, column) for column in (self.unit, *self.levels))


@dataclass(frozen=True, kw_only=True)
class UnitLimit:
    """The most records of one larger unit that are counted, so that noise can hide a whole unit."""

    column: str
    """The column that names the units."""
    name: str
    """Their permanent name, which keys are made with."""
    most: int

    def described(self) -> dict[str, str | int]:
        """What is protected, as fields of the structure of a bundle."""
        return {"protects": "unit", "unit": self.column, "most_records": self.most}


MOST_RECORDS = 10_000
"""The most that may be counted of a unit: noise for more would leave nothing."""


class Microdata(Data):
    """The `[data]` section of one table of records."""

    records: Records = Field(description="the table whose measures are summed, one row a record")

    @model_validator(mode="after")
    def _tells_columns_apart(self) -> Self:
        if of_jobs := [name for name, measure in self.measures.items() if measure.cap is not None]:
            raise ValueError(
                f"`cap` of '{of_jobs[0]}' is for measures of jobs: records of businesses have a `floor`, and those of "
                "people are within `minimum` and `maximum`"
            )
        kept = {self.records.unit, *self.records.levels, *filter(None, [self.records.weight, self.records.consent])}
        both = sorted(kept & (self.attributes.keys() | self.measures.keys()))
        if both:
            raise ValueError(f"'{both[0]}' is named both in `records` and as an attribute or measure")
        if self.records.period is not None and self.records.period not in self.attributes:
            raise ValueError(f"the period '{self.records.period}' has codes: describe it under [data.attributes]")
        return self

    def links_by_table(self) -> dict[str, tuple[str, ...]]:
        """The columns that name units and periods, and those of weights and consent."""
        of, named = self.records, (self.records.unit, *self.records.levels)
        return {"records": (*named, *filter(None, (of.period, of.weight, of.consent)))}

    def need_codes(self, named: str, attributes: Iterable[str]) -> None:
        """Refuse attributes of a guarantee without declared codes: read off the records, one would add a row."""
        for name in attributes:
            described = self.attributes[name]
            if not described.tells_codes:
                raise ReleaseError(
                    f"{named}, attribute '{name}'",
                    expected="its codes in the release file: a guarantee does not hold if they are read off the "
                    "records, where one record with a new code adds a row",
                    found="no codes",
                    do=f"give {name} its `codes` or a `codelist` under [data.attributes]",
                )

    def not_kept(self, named: Sequence[str]) -> list[str]:
        """That larger units are not protected as such, where noise hides single records."""
        levels = " and ".join(self.records.levels)
        if not (named and levels):
            return []
        return [
            f"`levels` changes nothing in {', '.join(named)}: the noise hides one record, and not all those of one "
            f"{levels}, of whom more can be learnt the more records there are. Only top-contributors, "
            'perturbed-values, totals and means by smooth-pareto, and cubes and counts with protects = "unit", protect '
            "larger units."
        ]

    def unit_limit(self, most: int) -> UnitLimit:
        """At most so many records of one of the largest units that are named, which hold the others."""
        if not self.records.levels:
            raise ReleaseError(
                "protects",
                expected="larger units that have several records, named by `levels` under [data] records",
                found='protects = "unit" and no `levels`: every record is a unit of its own',
                do='name the column, such as levels = ["establishment"], or leave out `protects` and `most_records`',
            )
        return UnitLimit(column=self.records.levels[-1], name=self.records.units[-1], most=most)

    def need_single_records(self, named: str, *, instead: str, but: Collection[str] = ()) -> None:
        """Refuse what changes nothing where noise hides every record by itself, and larger units not at all.

        `but` is what earlier versions took without a word: releases of theirs get their answers, and are told.
        """
        promised = {"levels": "larger units to protect as well", "consent": "units that need no protection"}
        kept = [key for key in promised if getattr(self.records, key) and key not in but]
        if kept:
            raise ReleaseError(
                named,
                expected="records that are all protected, each for itself: the noise hides one record, not all those "
                "of a larger unit",
                found=f"`{kept[0]}` in [data.records], {promised[kept[0]]}",
                do=f"leave it out, or {instead}, which knows it; what needs it and what does not are two releases",
            )

    def as_records(self) -> "Microdata":
        """These data."""
        return self

    @property
    def time(self) -> str | None:
        """The column with the period of a record."""
        return self.records.period

    @property
    def units(self) -> tuple[str, ...]:
        """The columns that name protected units, that of a record first."""
        return (self.records.unit, *self.records.levels)

    def measured(self, name: str) -> str:
        """A measure with what makes its values and whose values are protected: those of the largest units."""
        return measured(name, self.rule(name) | {"unit": self.records.units[-1]})

    def sources(self) -> dict[str, Source]:
        """Where the one table is."""
        return {"records": self.records}

    def patterns(self) -> tuple[str, ...]:
        """The columns of replicate weights."""
        return () if self.records.replicates is None else tuple(map(written, self.records.replicates.columns))

    def roles(self) -> dict[str, Role]:
        """What the columns of the records are for."""
        weights: dict[str, Role] = {written(self.records.weight): "weight"} if self.records.weight else {}
        consent: dict[str, Role] = {written(self.records.consent): "truth"} if self.records.consent else {}
        return {**super().roles(), **weights, **consent}

    @property
    def accepted(self) -> str | None:
        """What looks like a mistake in the records and is meant."""
        return self.records.accept

    def keys(self) -> dict[str, tuple[str, ...]]:
        """The columns that name a record."""
        return {"records": (self.records.unit, *filter(None, [self.records.period]))}

    def holders(self, column: str) -> tuple[str, ...]:  # noqa: ARG002 (there is one table)
        """The one table."""
        return ("records",)

    def always(self, columns: Sequence[str]) -> tuple[str, ...]:
        """What says how much a record counts, and for whom."""
        replicates = [column for pattern in self.patterns() for column in matching(pattern, columns)]
        one = filter(None, [*self.records.levels, self.records.weight, self.records.consent])
        return tuple(dict.fromkeys([*map(written, one), *replicates]))

    def known_by(self, used: Iterable[str]) -> frozenset[str]:
        """All attributes and measures: units are often numbered from 1 on, and numbers tell no two files apart."""
        return frozenset(used) | self.attributes.keys() | self.measures.keys()

    def links(self) -> str:
        """Everything but files and codes that decides which record counts how much, as one text."""
        # Records without a period are named as they were before there were periods, or they would be charged again.
        unsaid = {"key_names"} if self.records.period is not None else {"key_names", "period"}
        unit, *levels = self.records.units  # under another name of its column a unit is the same
        lasting = self.records.model_copy(update={"unit": unit, "levels": tuple(levels)})
        return lasting.model_dump_json(exclude={*Source.model_fields, *unsaid})

    def key_columns(self, table: str) -> tuple[str, ...]:
        """The columns that name a record, the unit by its permanent name."""
        return (written(self.records.units[0]), *super().key_columns(table)[1:])

    @property
    def levels(self) -> tuple[str, ...]:
        """The permanent names of larger units, where columns are called otherwise."""
        return tuple(map(written, self.records.units[1:])) if self.records.key_names else ()
