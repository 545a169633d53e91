"""The frame: the confidential data described: jobs, panels, their links, attributes and periods."""

import csv
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from unicodedata import category

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from sfumato.cluster import spark_settings
from sfumato.errors import ReleaseError
from sfumato.geography.read import MapFile
from sfumato.periods import Span

PUBLISHED_COLUMNS = ("value", "error", "low", "high", "establishments", "status", "convergence_ratio", "indicator")
"""Columns of every published table; an attribute cannot have one of these names."""


def exact(value: Any) -> Any:
    """Read a number of a release file as the exact fraction that was typed.

    >>> from decimal import Decimal
    >>> exact(Decimal("0.1")), exact("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    if isinstance(value, Fraction):
        return value
    if not re.fullmatch(
        r"[+-]?[\d_]{0,20}\.?\d{0,20}(e[+-]?\d{1,2})?|[+-]?\d{1,20}/\d{1,20}", str(value).strip().lower()
    ):
        raise ValueError("a number such as 0.1, 2 or '1/3' is needed, of at most twenty digits")
    try:
        return Fraction(str(value).strip())
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError("a number such as 0.1, 2 or '1/3' is needed") from error


Exact = Annotated[Fraction, BeforeValidator(exact)]


class Described(BaseModel):
    """A frozen description that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    LATER: ClassVar[tuple[str, ...]] = ()
    """Keys that earlier versions did not have: at their defaults, bundles say what they said."""

    def said(self) -> dict[str, Any]:
        """What is said, but for keys that have no value, and later ones at their defaults."""
        unsaid = {name for name in self.LATER if getattr(self, name) == type(self).model_fields[name].default}
        return {name: part for name, part in self if part is not None and name not in unsaid}


class Codelist(Described):
    """The public codes of an attribute, in order, each with its label."""

    codes: tuple[str, ...]
    labels: tuple[str, ...]

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if not self.codes:
            raise ValueError("a codelist needs at least one code")
        repeated = [code for code, times in Counter(self.codes).items() if times > 1]
        if repeated:
            raise ValueError(f"a codelist lists each code once; repeated: {', '.join(repeated[:5])}")
        if any(not code.strip() for code in self.codes):
            raise ValueError("a code cannot be empty")
        if any(category(sign) == "Cc" for code in self.codes for sign in code):
            raise ValueError("a code cannot have control characters, such as tabs or line ends")
        return self

    @classmethod
    def of(cls, codes: Any) -> "Codelist":
        """Make a codelist of a mapping from code to label, or of codes that are their own labels."""
        if isinstance(codes, dict):
            return cls(codes=tuple(map(str, codes)), labels=tuple(map(str, codes.values())))
        if isinstance(codes, list | tuple):
            return cls(codes=tuple(map(str, codes)), labels=tuple(map(str, codes)))
        raise ValueError("codes are a list, or a table of code = label")

    @classmethod
    def read(cls, path: Path) -> "Codelist":
        """Read a CSV file with the columns code and, if there is one, label."""
        try:
            with path.open(newline="", encoding="utf-8-sig") as lines:
                rows = list(csv.DictReader(lines))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ReleaseError(
                f"codelist {path}",
                expected="a CSV file in UTF-8",
                found=str(error),
                do="check the path and the file",
            ) from error
        if not rows or "code" not in rows[0] or any(row["code"] is None for row in rows):
            raise ReleaseError(
                f"codelist {path}",
                expected="a header line with the column 'code' (and 'label'), then one line a code",
                found=f"the columns {', '.join(map(str, rows[0]))}" if rows else "no lines",
                do="add the header, or give the codes in the release file",
            )
        codes = tuple(row["code"] for row in rows)
        labels = tuple(row.get("label") or row["code"] for row in rows)
        try:
            return cls(codes=codes, labels=labels)
        except ValueError as error:
            raise ReleaseError(
                f"codelist {path}",
                expected="each code once, none empty",
                found=str(error.errors()[0]["msg"]) if hasattr(error, "errors") else str(error),
                do="mend the file",
            ) from error


class Attribute(Described):
    """A column that can classify a table; its codes are public even where its values are confidential."""

    label: str = Field("", description="words for people; made from the name when not given")
    codelist: Path | None = Field(None, description="CSV file with the columns code and label")
    codes: Codelist | None = Field(None, description="the codes in order, as a list or as code = label")
    origin_of: str | None = Field(
        None,
        exclude=True,  # it changes no number
        description="of where workers come from: the attribute of workplaces, with the same codes, that they go to; a "
        "table by both has flows",
    )
    map: MapFile | None = Field(
        None,
        exclude=True,  # it changes no number
        description="file with the areas of the codes, which the page shows as a map; attributes of one file can be "
        "origin and destination",
    )

    @field_validator("codes", mode="before")
    @classmethod
    def _read_codes(cls, codes: Any) -> Any:
        return codes if codes is None or isinstance(codes, Codelist) else Codelist.of(codes)

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.codelist is not None and self.codes is not None:
            raise ValueError("give either `codelist` (a file) or `codes`, not both")
        return self


class Measure(Described):
    """A number of a job, a whole count of its smallest unit, within bounds."""

    label: str = Field("", description="words for people; the name when not given")
    unit: str = Field("", description="what one is, such as dollars a year")
    minimum: Exact = Field(Fraction(0), description="least value that is allowed")
    maximum: Exact | None = Field(None, description="greatest value that is allowed; no limit when not given")
    outside: Literal["refuse", "clip"] = Field(
        "refuse",
        description="whether rows with a value outside the bounds are refused before anything is charged, or count "
        "with the nearest bound (winsorising), in predictions, means and percentiles of people",
    )


NO_JOBS, ONE_JOB_EACH = "no jobs", "one job each"


class Jobs(Described):
    """The table with one row a job, or one row a job and period; it links a worker to a workplace."""

    path: str = Field(
        description="Parquet file, folder of them, or pattern such as jobs/*.parquet; or an address: s3://office/jobs"
    )
    workplace: str = Field("workplace", description="column that names the workplace of the job")
    worker: str | None = Field(None, description="column that names the worker; needed when `workers` is given")
    period: str | None = Field(
        None, description="column with the quarter (2025-Q1) or year of each row, which makes the jobs a panel"
    )
    first: str | None = Field(None, description="first period of the panel")
    last: str | None = Field(None, description="last period of the panel")
    earnings: str | None = Field(
        None, description="column with the earnings of the job in the period, whole numbers of the smallest unit"
    )
    accept: Literal["no jobs", "one job each"] | None = Field(
        None,
        exclude=True,  # it changes no number
        description="what would be refused as a mistake, and is meant: a file without any job, or one with exactly one "
        "job at every workplace",
    )

    @model_validator(mode="after")
    def _describes_a_panel(self) -> Self:
        parts = [self.period, self.first, self.last, self.earnings]
        if any(part is not None for part in parts):
            if any(part is None for part in parts) or self.worker is None:
                raise ValueError("a panel needs all of `worker`, `period`, `first`, `last` and `earnings`")
            self.span()
        return self

    def span(self) -> Span | None:
        """The periods of a panel."""
        return None if self.first is None or self.last is None else Span(first=self.first, last=self.last)


class Unit(Described):
    """A table with one row a unit, named by its key."""

    path: str = Field(description="Parquet file, folder of Parquet files, or pattern")
    key: str = Field(description="column that names each unit once")


class Data(Described, ABC):
    """What every kind of `[data]` section describes: attributes that classify, and measures that are summed."""

    engine: Literal["duckdb", "spark"] = Field("duckdb", description="what reads and counts the data")
    spark: dict[str, str] = Field(
        {},
        exclude=True,
        description="settings of Spark: `master`, and any whose name begins with `spark.`; see docs/cluster.md",
    )
    memory: int | None = Field(
        None,
        ge=1,
        exclude=True,  # it changes no number: what was validated with less memory is valid
        description="gigabytes of memory that DuckDB may use, beyond which it works on disk; four fifths of the "
        "machine's when not given",
    )
    public: tuple[str, ...] = Field((), description="attributes known to everyone, of workplaces or of businesses")
    attributes: dict[str, Attribute] = Field({}, description="columns that can classify a table, by name")
    measures: dict[str, Measure] = Field({}, description="numbers of a record, by name")
    folder: Path = Field(Path(), exclude=True, description="paths are relative to this folder")

    @field_validator("spark", mode="before")
    @classmethod
    def _reads_settings(cls, settings: Any) -> Any:
        return spark_settings(settings) if isinstance(settings, dict) else settings

    @model_validator(mode="before")
    @classmethod
    def _public_attributes_need_no_description(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("attributes", {}), dict):
            bare: dict[str, Any] = {name: {} for name in data.get("public", ()) if isinstance(name, str)}
            return {**data, "attributes": bare | data.get("attributes", {})}
        return data

    @model_validator(mode="after")
    def _names_columns(self) -> Self:
        for name in (*self.attributes, *self.measures):
            if name in PUBLISHED_COLUMNS:
                raise ValueError(f"'{name}' is a column of every published table; rename the attribute or measure")
            if not re.fullmatch(r"[^\W_][\w -]*", name):
                raise ValueError(
                    f"'{name}' is no name for a column: a letter or digit, then letters, digits, blanks, _ or -"
                )
        for name in self.linking_columns():
            if name.startswith("_"):
                raise ValueError(f"'{name}' begins with _, as columns of our own do: give the column another name")
        told_apart: dict[str, str] = {}
        for name in (*self.attributes, *self.measures, *self.linking_columns()):
            if (other := told_apart.setdefault(name.casefold(), name)) != name:
                raise ValueError(f"'{other}' and '{name}' differ in case only, which engines ignore: rename one")
        both = sorted(self.attributes.keys() & self.measures.keys())
        if both:
            raise ValueError(f"'{both[0]}' is described both as an attribute and as a measure")
        for name, attribute in self.attributes.items():
            if attribute.codes is None and attribute.codelist is None and not self.is_public(name):
                raise ValueError(
                    f"attribute '{name}' is confidential, so its codes cannot be read off the data: "
                    "give them as `codes` or `codelist`, or list it in `public` if everyone knows it"
                )
        return self

    def linking_columns(self) -> tuple[str, ...]:
        """The columns that are no attributes or measures: keys, links, weights, periods."""
        return ()

    of_jobs: ClassVar[bool] = False
    """Whether the data are jobs with their workplaces and workers, and not records."""

    @property
    def span(self) -> Span | None:
        """The periods of a panel of jobs."""
        return None

    @property
    def panel_period(self) -> str | None:
        """The column with the period of a panel of jobs."""
        return None

    @property
    def time(self) -> str | None:
        """The column that says of when a row is."""
        return self.panel_period

    @property
    def joined(self) -> bool:
        """Whether jobs and workplaces are one table, in which nothing tells where establishments without jobs are."""
        return False

    def as_jobs(self) -> "Frame":
        """These data as jobs."""
        raise ReleaseError("data", expected="jobs", found="a table of records", do="describe jobs = { … } under [data]")

    def as_records(self) -> Any:
        """These data as records."""
        raise ReleaseError(
            "data", expected="a table of records", found="jobs", do="describe records = { … } under [data]"
        )

    @abstractmethod
    def sources(self) -> dict[str, str]:
        """The path of every table, by its name."""

    @property
    @abstractmethod
    def accepted(self) -> str | None:
        """What looks like a mistake in the data and is meant."""

    @abstractmethod
    def links(self) -> str:
        """Everything but files and codes that decides which record is counted where, as one text."""

    @abstractmethod
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The columns that name the rows of every table, by its name."""

    def telling_keys(self) -> tuple[str, ...]:
        """The keys of the main table whose values, each column alone, tell data from all others."""
        return ()

    def names_every_row(self, table: str) -> bool:  # noqa: ARG002 (a frame may have jobs that nothing names)
        """Whether the keys of a table tell all its rows apart."""
        return True

    def counts_by_itself(self, table: str) -> bool:  # noqa: ARG002 (a frame may have workers of whom nothing is asked)
        """Whether the rows of a table decide answers also where no column beside its keys is looked at."""
        return True

    @abstractmethod
    def holders(self, column: str) -> tuple[str, ...]:
        """The tables in which an attribute or measure may be a column."""

    @abstractmethod
    def always(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns, out of those of the file, that every question may look at beside the keys."""

    def known_by(self, used: Iterable[str]) -> frozenset[str]:
        """The attributes and measures that data are known by when a release looks at some of them."""
        return frozenset(used)

    def is_public(self, attribute: str) -> bool:
        """Whether an attribute describes workplaces or businesses and is known to everyone."""
        return attribute in self.public

    def declared_codes(self, attribute: str) -> Codelist | None:
        """The codelist the release file gives, or None when it is to be read off the public attributes."""
        described = self.attributes[attribute]
        if described.codelist is not None:
            return Codelist.read(self.folder / described.codelist)
        return described.codes

    def label(self, attribute: str) -> str:
        """The words for an attribute in a heading."""
        return self.attributes[attribute].label or attribute.replace("_", " ").capitalize()


class Frame(Data):
    """The `[data]` section of jobs: three linked tables, or one joined table of jobs."""

    jobs: Jobs = Field(description="the table that is counted, one row a job")
    workplaces: Unit | None = Field(
        None,
        description="one row for every establishment, also those without jobs; left out when the jobs already carry "
        "the attributes of their workplaces",
    )
    workers: Unit | None = Field(None, description="one row for every worker, with the worker's attributes")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, attribute in self.attributes.items():
            if attribute.codes is None and attribute.codelist is None and self.joined:
                raise ValueError(
                    f"without a table of workplaces the codes of '{name}' can only be read off the jobs, which are "
                    "confidential: give them as `codes` or `codelist`, or add the workplaces"
                )
        for name, attribute in self.attributes.items():
            end = attribute.origin_of
            if end is None:
                continue
            if self.is_public(name) or end not in self.attributes or not self.is_public(end):
                raise ValueError(
                    f"'{name}' is the origin of '{end}', so it describes workers, and '{end}' workplaces: list the "
                    "second in `public`, and the first not"
                )
            other = self.attributes[end]
            if (attribute.codelist, attribute.codes) != (other.codelist, other.codes):
                raise ValueError(f"'{name}' and '{end}' are origin and destination: give both the same codes")
        if self.jobs.worker == self.jobs.workplace:
            raise ValueError("jobs link a worker to a workplace: `worker` and `workplace` are two columns")
        if self.jobs.period in self.attributes:
            raise ValueError(f"'{self.jobs.period}' is the period, whose codes are known: do not describe it")
        if self.span is not None and self.joined:
            raise ValueError("a panel needs its table of workplaces: factors and flows belong to employers")
        if self.workers is not None and self.jobs.worker is None:
            raise ValueError('jobs need the column that names the worker: jobs = { …, worker = "worker" }')
        return self

    def linking_columns(self) -> tuple[str, ...]:
        """The columns that name workers, workplaces and periods, and the earnings of a panel."""
        jobs, units = self.jobs, (self.workplaces, self.workers)
        named = (jobs.worker, jobs.workplace, jobs.period, jobs.earnings, *(unit.key for unit in units if unit))
        return tuple(dict.fromkeys(filter(None, named)))

    of_jobs: ClassVar[bool] = True

    @property
    def panel_period(self) -> str | None:
        """The column with the period of a panel."""
        return self.jobs.period

    def as_jobs(self) -> "Frame":
        """These data."""
        return self

    @property
    def span(self) -> Span | None:
        """The periods, when the jobs are a panel."""
        return self.jobs.span()

    @property
    def joined(self) -> bool:
        """Whether all attributes are columns of the one table of jobs."""
        return self.workplaces is None

    def sources(self) -> dict[str, str]:
        """The path of every table, by its name."""
        described = {"jobs": self.jobs, "workplaces": self.workplaces, "workers": self.workers}
        return {name: table.path for name, table in described.items() if table is not None}

    @property
    def accepted(self) -> str | None:
        """What looks like a mistake in the jobs and is meant."""
        return self.jobs.accept

    def links(self) -> str:
        """Everything of the frame but files and codes that decides which job is counted where, as one text."""
        keys = [unit.key if unit else None for unit in (self.workplaces, self.workers)]
        panel = (self.jobs.period, self.jobs.first, self.jobs.last, self.jobs.earnings) if self.span else ()
        return repr((self.jobs.workplace, self.jobs.worker, *keys, sorted(self.public), *panel))

    def keys(self) -> dict[str, tuple[str, ...]]:
        """The columns that name the rows of every table, by its name."""
        jobs = (self.jobs.workplace, *filter(None, (self.jobs.worker, self.jobs.period)))
        units = {"workplaces": self.workplaces, "workers": self.workers}
        return {"jobs": jobs, **{name: (unit.key,) for name, unit in units.items() if unit is not None}}

    def telling_keys(self) -> tuple[str, ...]:
        """Workplaces and workers, each with the number of their jobs; periods are those of many files."""
        return tuple(filter(None, (self.jobs.workplace, self.jobs.worker)))

    def names_every_row(self, table: str) -> bool:
        """Whether the keys of a table tell all its rows apart: jobs without a worker have none of their own."""
        return table != "jobs" or self.jobs.worker is not None

    def counts_by_itself(self, table: str) -> bool:
        """Whether the rows of a table decide answers also where no column beside its keys is looked at.

        Jobs are counted, and so are workplaces without any; workers only by what is known of them.
        """
        return table != "workers"

    def holders(self, column: str) -> tuple[str, ...]:
        """The tables in which an attribute may be a column: workplaces for a public one, workers or jobs for others."""
        if self.is_public(column):
            return ("jobs",) if self.joined else ("workplaces",)
        return ("jobs",) if self.workers is None else ("workers", "jobs")

    def always(self, columns: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 (records have patterns)
        """The earnings of a panel."""
        return tuple(filter(None, (self.jobs.earnings,)))
