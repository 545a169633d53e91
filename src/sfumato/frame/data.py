"""The `[data]` section: what all kinds of data have in common, and jobs with their workplaces and workers."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from sfumato.description import Described
from sfumato.errors import ReleaseError
from sfumato.frame.attributes import Attribute, Measure, PublishedName
from sfumato.frame.cluster import spark_settings
from sfumato.frame.codelists import NO_CODES, Codelist
from sfumato.frame.jobs import Jobs
from sfumato.frame.levels import AT, with_levels
from sfumato.frame.measured import measured
from sfumato.frame.periods import Span, layout
from sfumato.frame.series import OnlyPeriod
from sfumato.frame.sources import Role, Source, Unit, written


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
    attributes: dict[PublishedName, Attribute] = Field({}, description="columns that can classify a table, by name")
    measures: dict[PublishedName, Measure] = Field({}, description="numbers of a record, by name")
    folder: Path = Field(Path(), exclude=True, description="paths are relative to this folder")
    only: OnlyPeriod | None = Field(None, description="rows that a period of a series is about")

    @field_validator("spark", mode="before")
    @classmethod
    def _reads_settings(cls, settings: Any) -> Any:
        return spark_settings(settings) if isinstance(settings, dict) else settings

    @model_validator(mode="before")
    @classmethod
    def _public_attributes_need_no_description(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("attributes", {}), dict):
            bare: dict[str, Any] = {name: {} for name in data.get("public", ()) if isinstance(name, str)}
            return {**data, "attributes": with_levels(bare | data.get("attributes", {}))}
        return data

    @model_validator(mode="after")
    def _names_columns(self) -> Self:
        named = (*self.attributes, *self.measures)
        for links in self.links_by_table().values():  # those of two tables never come together
            alike: dict[str, str] = {}
            for name in (*named, *links):
                if (other := alike.setdefault(name.casefold(), name)) != name:
                    raise ValueError(
                        f"'{other}' and '{name}' differ in case only, which engines ignore: rename an attribute or "
                        "measure and say where it is with `column`, or rename a column of the file"
                    )
        for name in self.linking_columns():
            if name != self.time and self.rule(name):
                raise ValueError(
                    f"'{name}' is a column that names or links rows, and also made of another one: rename the "
                    "attribute or measure"
                )
        if levels := [name for name in self.public if AT in name]:
            raise ValueError(f"'{levels[0]}' is as public as its attribute: list '{levels[0].partition(AT)[0]}' alone")
        both = sorted(self.attributes.keys() & self.measures.keys())
        if both:
            raise ValueError(f"'{both[0]}' is described both as an attribute and as a measure")
        for name, attribute in self.attributes.items():
            if not attribute.tells_codes and not self.is_public(name) and name != self.panel_period:
                raise ValueError(
                    f"attribute '{name}' is confidential, so its codes cannot be read off the data: "
                    "give them as `codes` or `codelist`, or list it in `public` if everyone knows it"
                )
        return self

    @abstractmethod
    def links_by_table(self) -> dict[str, tuple[str, ...]]:
        """The columns that are no attributes or measures, by their table: keys, links, weights, periods."""

    def linking_columns(self) -> tuple[str, ...]:
        """The columns of all tables that are no attributes or measures."""
        return tuple(dict.fromkeys(column for columns in self.links_by_table().values() for column in columns))

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

    def not_kept(self, named: Sequence[str]) -> list[str]:  # noqa: ARG002 (records may name larger units)
        """What the data say of protection, and statistics whose noise hides single records do not keep, in words."""
        return []

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
    def sources(self) -> dict[str, Source]:
        """Where every table is, by its name."""

    def roles(self) -> dict[str, Role]:
        """What the columns of the data are for, by which they are read where a file does not say what it has."""
        classes = [name for name, described in self.attributes.items() if described.classes is not None]
        texts = [name for name in (*self.linking_columns(), *self.attributes) if name not in classes]
        used: dict[Role, Iterable[str]] = {"number": classes, "text": texts}
        # A column that has codes is text, of which classes are made too.
        found = {self.column_of(name): role for role, names in used.items() for name in names}
        found |= {} if self.only is None else {self.only.column: "text"}
        return found | {self.column_of(name): "number" for name in self.measures}

    def classed(self) -> frozenset[str]:
        """The columns of which classes of numbers are made, also those that are text because they have codes."""
        return frozenset(self.column_of(name) for name, one in self.attributes.items() if one.classes is not None)

    def dated(self) -> dict[str, str]:
        """The columns whose dates stand for the period that they fall in, each with a period as it is written."""
        chosen = {} if self.only is None else {self.only.column: self.only.period}
        columns = [name for name, one in self.attributes.items() if not (one.derivation() or one.level_of)]
        first = {name: codes.codes[0] for name in columns if (codes := self.declared_codes(name)) is not None}
        return chosen | {
            self.column_of(name): code
            for name, code in first.items()
            if (form := layout(code)) is not None
            and all(layout(other) == form for other in (self.declared_codes(name) or NO_CODES).codes)
        }

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

    def key_columns(self, table: str) -> tuple[str, ...]:
        """The columns of the files that name the rows of a table, by which the ledger knows it."""
        return tuple(map(self.column_of, self.keys()[table]))

    @property
    def levels(self) -> tuple[str, ...]:
        """The permanent names of larger units, where columns are called otherwise."""
        return ()

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
        """The columns, out of those of the file and named as there, that every question may look at beside the keys."""

    def known_by(self, used: Iterable[str]) -> frozenset[str]:
        """The attributes and measures that data are known by when a release looks at some of them."""
        return frozenset(used)

    def is_public(self, attribute: str) -> bool:
        """Whether an attribute, or the one it is a level of, describes workplaces or businesses as everyone knows."""
        described = self.attributes.get(attribute)
        return (attribute if described is None or described.level_of is None else described.level_of[0]) in self.public

    def is_known(self, name: str) -> bool:
        """Whether everyone knows the codes of a dimension: those of a public attribute, or the period of a panel."""
        return name == self.panel_period or self.is_public(name)

    @property
    def public_attributes(self) -> tuple[str, ...]:
        """The attributes that are known to everyone, and their levels."""
        return tuple(filter(self.is_public, self.attributes))

    def declared_codes(self, attribute: str) -> Codelist | None:
        """The codelist the release file gives, or None when it is to be read off the public attributes."""
        return self.attributes[attribute].declared(self.folder)

    def patterns(self) -> tuple[str, ...]:
        """Patterns of the names of further columns, all of them weights."""
        return ()

    def column_of(self, name: str) -> str:
        """The column of the files in which an attribute or measure is, or out of which it is made."""
        described = self.attributes.get(name) or self.measures.get(name)
        return (described.column if described else "") or written(name)

    def rule(self, name: str) -> dict[str, Any]:
        """What makes an attribute or measure: a column of another name, and what its codes are made by."""
        described = self.attributes.get(name) or self.measures.get(name)
        column = {} if self.column_of(name) == written(name) else {"column": self.column_of(name)}
        return column | ({} if described is None else described.derivation())

    def measured(self, name: str) -> str:
        """A measure with what makes its values, by which caps are kept apart; its name where it is a column as it is.

        All measures of jobs are columns of the jobs, so that nothing says of which table.
        """
        return measured(name, self.rule(name))

    def derivations(self, names: Iterable[str]) -> str:
        """How some attributes and measures are made out of columns, as one text; empty where all are columns."""
        above = {name: {"above": dict(pairs)} for name in names if (pairs := sorted(self.counted_in(name)))}
        made = {name: rule for name in sorted(names) if (rule := self.rule(name) | above.get(name, {}))}
        return json.dumps(made, sort_keys=True) if made else ""

    def counted_in(self, name: str) -> tuple[tuple[str, str], ...]:
        """The codes of an attribute that are counted in one above them in its codelist, each with that one."""
        by_heads = bool(self.headcounts()) and not self.is_public(name)  # columns of a register have the codes
        return () if by_heads or name not in self.attributes else self.attributes[name].counted_in(self.folder)

    def codes_above(self, fine: str, coarse: str, codes: Iterable[str]) -> Mapping[str, str] | None:
        """The code of an attribute that each of some codes of a finer one of its column lies in; None if none does."""
        one, other = self.attributes.get(fine), self.attributes.get(coarse)
        known = one and other and self.column_of(fine) == self.column_of(coarse)
        return other.codes_above(one, codes, self.folder) if known and one and other else None

    def headcounts(self) -> dict[tuple[str, ...], str]:
        """The columns of a register that count workers, by the codes of the attributes that they are counted by."""
        return {}

    def made_of(self, attribute: str) -> str:
        """What makes the codes of an attribute out of a column, in words; empty where the column has them."""
        described = self.attributes.get(attribute)
        return "" if described is None else described.in_words(attribute, above=bool(self.counted_in(attribute)))

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

    @model_validator(mode="before")
    @classmethod
    def _register_lists_workplaces(cls, data: Any) -> Any:
        """A register with headcounts has every establishment: it is the table of workplaces, if no other is named."""
        if isinstance(data, dict) and isinstance(jobs := data.get("jobs"), dict) and jobs.get("employees"):
            register = {name: option for name, option in jobs.items() if name in Source.model_fields}
            return {"workplaces": {**register, "key": jobs.get("workplace", "workplace")}, **data}
        return data

    @model_validator(mode="after")
    def _describes_headcounts(self) -> Self:
        if self.jobs.employees is None:
            return self
        if self.workers is not None or self.measures:
            raise ValueError("`employees` counts workers of whom nothing else is known: leave out workers and measures")
        heads = set(self.headcounts().values())
        if written(self.jobs.workplace) in heads:
            raise ValueError("`employees` counts workers, and `workplace` names establishments: they are two columns")
        if len(heads) < len(self.headcounts()):
            raise ValueError("`employees` has one column for each code: name each column once")
        told = [name for name in self.public if self.column_of(name) in heads]
        if told and self.is_register:
            raise ValueError(
                f"'{told[0]}' is `public` and made of the number of workers, which is what is protected: if everyone "
                "knows it, have it in a column of its own, which does not change when a worker comes or leaves"
            )
        attributes = self.headcount_attributes()
        if made := [name for name in attributes if self.rule(name)]:
            raise ValueError(f"'{made[0]}' is made by `employees`, column by column: leave out what else makes it")
        if other := [name for name in self.attributes if not self.is_public(name) and name not in attributes]:
            do = "ask for its attribute" if self.attributes[other[0]].level_of else "list it in `public`"
            raise ValueError(f"'{other[0]}' describes workers, whose number alone is known: {do}")
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if of_units := [name for name, measure in self.measures.items() if measure.floor is not None]:
            raise ValueError(f"`floor` of '{of_units[0]}' is for records of businesses: one job counts up to its `cap`")
        for name, attribute in self.attributes.items():
            if not attribute.tells_codes and self.joined:
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
            if attribute.known_codes != other.known_codes:
                raise ValueError(f"'{name}' and '{end}' are origin and destination: give both the same codes")
        if self.jobs.worker == self.jobs.workplace:
            raise ValueError("jobs link a worker to a workplace: `worker` and `workplace` are two columns")
        if self.jobs.period in self.attributes:
            raise ValueError(f"'{self.jobs.period}' is the period, not an attribute; its words: `period_label` of jobs")
        if self.span is not None and self.joined:
            raise ValueError("a panel needs its table of workplaces: factors and flows belong to employers")
        if self.workers is not None and self.jobs.worker is None:
            raise ValueError('jobs need the column that names the worker: jobs = { …, worker = "worker" }')
        return self

    def links_by_table(self) -> dict[str, tuple[str, ...]]:
        """The columns that name workers, workplaces and periods, and the earnings of a panel."""
        jobs, units = self.jobs, {"workplaces": self.workplaces, "workers": self.workers}
        named = tuple(filter(None, (jobs.worker, jobs.workplace, jobs.period, jobs.earnings)))
        return {"jobs": named, **{name: (unit.key,) for name, unit in units.items() if unit is not None}}

    of_jobs: ClassVar[bool] = True

    def headcounts(self) -> dict[tuple[str, ...], str]:
        """The columns of a register that count workers, by the codes of the attributes that they are counted by."""
        given, found = self.jobs.employees, dict[tuple[str, ...], str]()
        for outer, within in given.items() if isinstance(given, dict) else ():
            inner = within.items() if isinstance(within, dict) else [(None, within)]
            found |= {(outer, *([] if code is None else [code])): column for code, column in inner}
        return {(): given} if isinstance(given, str) else found

    @property
    def is_register(self) -> bool:
        """Whether one file has the establishments and the numbers of their workers."""
        units, jobs = self.workplaces, self.jobs
        if jobs.employees is None or units is None or Path(units.path) != Path(jobs.path):
            return False
        options = (name for name in Source.model_fields if name != "path")  # of one file, such as a sheet of it
        return units.key == jobs.workplace and all(getattr(units, name) == getattr(jobs, name) for name in options)

    def headcount_attributes(self) -> tuple[str, ...]:
        """The attributes of workers by which a register counts them, which are those with these codes."""
        levels = [set(codes) for codes in zip(*self.headcounts(), strict=True)]
        known = {n: set((self.declared_codes(n) or NO_CODES).codes) for n in self.attributes if not self.is_public(n)}
        fitting = [
            names
            for names in permutations(known, len(levels))
            if all(codes <= known[name] for name, codes in zip(names, levels, strict=True))
        ]
        if len(fitting) != 1:
            raise ValueError(
                "`employees` has codes of attributes of workers: describe "
                + " and ".join(f"one that has {', '.join(sorted(codes))}" for codes in levels)
                + (" as its codes, and is not `public`" if not fitting else ", and no other one that has them too")
            )
        return fitting[0]

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
    def period_of_series(self) -> str | None:
        """The one period that a series is run for, as a panel writes it; None of all other data."""
        known = () if self.only is None else self.only.writings()
        return next((code for code in (() if self.span is None else self.span.codes()) if code in known), None)

    def measured(self, name: str, population: str | None = None) -> str:
        """A measure with what makes its values: of a panel, also of which of its jobs it is, its own if not given."""
        of = "any" if self.span is None else population or self.jobs.population
        return measured(name, self.rule(name) | ({} if of == "any" else {"population": of}))

    @property
    def joined(self) -> bool:
        """Whether all attributes are columns of the one table of jobs."""
        return self.workplaces is None

    def sources(self) -> dict[str, Source]:
        """Where every table is, by its name."""
        described = {"jobs": self.jobs, "workplaces": self.workplaces, "workers": self.workers}
        return {name: table for name, table in described.items() if table is not None}

    def roles(self) -> dict[str, Role]:
        """What the columns of the data are for."""
        return {**super().roles(), **dict.fromkeys(self.always(()), "number")}

    def dated(self) -> dict[str, str]:
        """The column with the period of a panel, and those of attributes that are periods."""
        period, first = self.jobs.period, self.jobs.first
        return super().dated() | ({} if period is None or first is None else {self.column_of(period): first})

    @property
    def accepted(self) -> str | None:
        """What looks like a mistake in the jobs and is meant."""
        return self.jobs.accept

    def links(self) -> str:
        """Everything of the frame but files and codes that decides which job is counted where, as one text."""
        keys = [unit.key if unit else None for unit in (self.workplaces, self.workers)]
        panel = (self.jobs.period, self.jobs.first, self.jobs.last, self.jobs.earnings) if self.span else ()
        heads = sorted(self.headcounts().items())
        return repr((self.jobs.workplace, self.jobs.worker, *keys, sorted(self.public), *panel, *heads))

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
        return table != "jobs" or self.jobs.worker is not None or self.jobs.employees is not None

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
        """The earnings of a panel, and the headcounts of a register."""
        return (*map(written, filter(None, [self.jobs.earnings])), *self.headcounts().values())
