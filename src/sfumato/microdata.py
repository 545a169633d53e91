"""Microdata: one table of records with their units, weights and measures, for totals of businesses or surveys."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from sfumato.errors import ReleaseError
from sfumato.frame import Data, Described, Exact


class Replicates(Described):
    """Replicate weights, and how their estimates spread to a variance."""

    columns: tuple[str, ...] = Field(
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

    def matching(self, pattern: str, columns: Sequence[str]) -> list[str]:
        """The columns that one of the patterns stands for: the one of this name, or all that match it."""
        return [pattern] if pattern in columns else [column for column in columns if fnmatchcase(column, pattern)]

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


NO_RECORDS = "no records"


class Records(Described):
    """The table with one row a record: a business, an employee, an answer of a survey."""

    path: str = Field(description="Parquet file, folder of Parquet files, or pattern")
    unit: str = Field(description="column that names the unit of each record, once: the business, the employee")
    period: str | None = Field(
        None,
        description="column with the period of each record, described as an attribute: a unit then has at most one "
        "record in each period. Statistics of people protect its whole history; totals keep its key in every period",
    )
    levels: tuple[str, ...] = Field(
        (), description="columns that name larger units to protect as well, such as the establishment or the enterprise"
    )
    weight: str | None = Field(None, description="column with the sampling weight; 1 when not given")
    replicates: Replicates | None = Field(None, description="replicate weights, for standard errors")
    consent: str | None = Field(
        None, description="column that is true where the unit asked to be protected; only those are then perturbed"
    )
    accept: Literal["no records"] | None = Field(
        None,
        exclude=True,  # it changes no number
        description="what would be refused as a mistake, and is meant: a file without any record",
    )

    @model_validator(mode="after")
    def _names_each_column_once(self) -> Self:
        names = [self.unit, *self.levels, *filter(None, [self.period, self.weight, self.consent])]
        if len(set(names)) != len(names):
            raise ValueError("`unit`, `period`, `levels`, `weight` and `consent` are different columns")
        if self.replicates is not None and self.weight is None:
            raise ValueError("replicate weights need the full sample's: give `weight` too")
        return self


class Microdata(Data):
    """The `[data]` section of one table of records."""

    records: Records = Field(description="the table whose measures are summed, one row a record")

    @model_validator(mode="after")
    def _tells_columns_apart(self) -> Self:
        kept = {self.records.unit, *self.records.levels, *filter(None, [self.records.weight, self.records.consent])}
        both = sorted(kept & (self.attributes.keys() | self.measures.keys()))
        if both:
            raise ValueError(f"'{both[0]}' is named both in `records` and as an attribute or measure")
        if self.records.period is not None and self.records.period not in self.attributes:
            raise ValueError(f"the period '{self.records.period}' has codes: describe it under [data.attributes]")
        return self

    def linking_columns(self) -> tuple[str, ...]:
        """The columns that name units and periods, and those of weights and consent."""
        records = self.records
        return tuple(filter(None, (records.unit, *records.levels, records.period, records.weight, records.consent)))

    def need_codes(self, named: str, attributes: Iterable[str]) -> None:
        """Refuse attributes of a guarantee without declared codes: read off the records, one would add a row."""
        for name in attributes:
            described = self.attributes[name]
            if described.codes is None and described.codelist is None:
                raise ReleaseError(
                    f"{named}, attribute '{name}'",
                    expected="its codes in the release file: a guarantee does not hold if they are read off the "
                    "records, where one record with a new code adds a row",
                    found="no codes",
                    do=f"give {name} its `codes` or a `codelist` under [data.attributes]",
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

    def sources(self) -> dict[str, str]:
        """The path of the one table."""
        return {"records": self.records.path}

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
        described = self.records.replicates
        replicates = [] if described is None else [c for p in described.columns for c in described.matching(p, columns)]
        one = filter(None, [self.records.weight, self.records.consent])
        return tuple(dict.fromkeys([*self.records.levels, *one, *replicates]))

    def known_by(self, used: Iterable[str]) -> frozenset[str]:
        """All attributes and measures: units are often numbered from 1 on, and numbers tell no two files apart."""
        return frozenset(used) | self.attributes.keys() | self.measures.keys()

    def links(self) -> str:
        """Everything but files and codes that decides which record counts how much, as one text."""
        # Records without a period are named as they were before there were periods, or they would be charged again.
        left_out = {"path"} if self.records.period is not None else {"path", "period"}
        return self.records.model_dump_json(exclude=left_out)
