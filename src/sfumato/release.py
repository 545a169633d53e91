"""A release: what is published, from which data, with which protection and budget."""

import re
from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sfumato.cells import Dimension
from sfumato.engine.question import Question
from sfumato.errors import ReleaseError
from sfumato.frame import Codelist, Described, Exact, Frame
from sfumato.methods.method import Method
from sfumato.methods.registry import build, needs
from sfumato.privacy.account import Account
from sfumato.privacy.guarantee import Definition, EmployerEmployee

WHOLE_WORKFORCES = frozenset({"vector-pareto", "auto"})
"""Methods whose published error figures need all workers of an establishment in the table."""
LISTED_CELLS = 100_000
"""Larger tables are mostly combinations without any establishment, which only make files longer."""


class Budget(Described):
    """What all releases about one population and period may spend together."""

    alpha: Exact = Field(description="sizes of an establishment within a factor 1 + alpha are hard to tell apart")
    epsilon: Exact = Field(description="how far the log-odds of any secret may move in all; the tables add up to it")
    delta: Exact = Field(
        Fraction(0), description="probability with which the bound may fail; only smooth-laplace needs one"
    )
    definition: Definition = Field(
        "strong",
        description="strong hides an establishment's size from every reader; weak, which tables with worker attributes "
        "need, from readers who do not know the attributes of its workers; individuals hides single jobs only",
    )

    @field_validator("alpha", "epsilon")
    @classmethod
    def _is_positive(cls, value: Fraction) -> Fraction:
        if value <= 0:
            raise ValueError("a number above 0 is needed")
        return value

    def guarantee(self) -> EmployerEmployee:
        """The guarantee that holds for everything published within this budget."""
        return EmployerEmployee(definition=self.definition, alpha=self.alpha, epsilon=self.epsilon, delta=self.delta)


class About(Described):
    """The `[release]` section."""

    title: str = Field(description="heading of the bundle")
    population: str = Field("jobs", description="whose privacy is spent: one budget for each population and period")
    period: str = Field(description="the reference period of the data, such as 2025 or 2025-Q3")
    budget: Budget = Field(description="what all tables about the population and period may cost together")
    ledger: Path = Field(Path("ledger.sqlite"), description="file that keeps the budget; answers go beside it")
    bundle: Path = Field(Path("bundle"), description="folder to publish into")
    reconcile: bool = Field(
        False,
        description="make tables about the same jobs agree where they share margins, at no cost; see docs/adjust.md",
    )

    @field_validator("ledger", "bundle")
    @classmethod
    def _names_something(cls, path: Path) -> Path:
        if path.name in ("", "..") or path.suffix == ".store":
            raise ValueError("the name of a file or folder is needed, not ending in .store")
        return path

    @field_validator("title", "population", "period")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("a text that is not empty is needed")
        return value.strip()


class Protection(Described):
    """How a table is protected; a method may take further options, which docs/methods describes."""

    model_config = ConfigDict(frozen=True, extra="allow", arbitrary_types_allowed=True)

    method: str = Field("smooth-pareto", description="name of the method of protection")
    epsilon: Exact = Field(description="what the whole table spends of the budget")
    alpha: Exact | None = Field(None, description="the budget's alpha when not given")

    @property
    def options(self) -> dict[str, Any]:
        """What only the chosen method knows, such as delta."""
        return dict(self.model_extra or {})


class Table(Described):
    """A `[[table]]` section: one statistic by some attributes."""

    name: str = Field(description="file name in the bundle: lower-case letters, digits, - and _")
    title: str = Field("", description="heading of the table; the name when not given")
    count: Literal["jobs"] = Field(description="what is counted: jobs")
    by: tuple[str, ...] = Field(min_length=1, description="the attributes that make the cells")
    where: dict[str, tuple[str, ...]] = Field({}, description="count only jobs with these codes, by attribute")
    protect: Protection = Field(description="how the table is protected, and what it costs")
    nonnegative: bool = Field(False, description="publish negative values as 0; the statement then warns of the bias")
    structural_zeros: Literal["auto", "listed", "implied"] = Field(
        "auto",
        description="whether combinations without any establishment are rows (exactly 0) or left out; "
        f"auto lists them in tables of up to {LISTED_CELLS:,} cells",
    )

    @field_validator("name")
    @classmethod
    def _names_a_file(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
            raise ValueError("lower-case letters, digits, - and _ are allowed, at most 64")
        return name

    @field_validator("by")
    @classmethod
    def _lists_each_once(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        repeated = [name for name, times in Counter(by).items() if times > 1]
        if repeated:
            raise ValueError(f"'{repeated[0]}' is listed twice")
        return by

    @field_validator("where", mode="before")
    @classmethod
    def _accepts_one_code(cls, where: object) -> object:
        if not isinstance(where, dict):
            return where
        return {name: [codes] if isinstance(codes, str) else codes for name, codes in where.items()}


class Release(Described):
    """Everything a release file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    about: About = Field(alias="release", description="what the release is called, and its budget")
    frame: Frame = Field(alias="data", description="where the confidential data are, and what they mean")
    tables: tuple[Table, ...] = Field(alias="table", min_length=1, description="the tables to publish, in order")
    folder: Path = Field(Path(), exclude=True, description="paths are relative to the folder of the release file")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        repeated = [name for name, times in Counter(table.name for table in self.tables).items() if times > 1]
        if repeated:
            raise ValueError(f"two tables are called '{repeated[0]}'")
        self._keep_apart()
        for table in self.tables:
            for name in (*table.by, *table.where):
                if name not in self.frame.attributes:
                    close = get_close_matches(name, list(self.frame.attributes), n=1)
                    raise ReleaseError(
                        f"table '{table.name}'",
                        expected=f"an attribute: {', '.join(self.frame.attributes)}",
                        found=f"'{name}'",
                        do=f"did you mean '{close[0]}'?" if close else "describe it under [data.attributes]",
                    )
        return self

    def _keep_apart(self) -> None:
        """Refuse a bundle folder that holds anything else of the release: publishing replaces that folder."""
        frame = self.frame
        tables = [table.path for table in (frame.jobs, frame.workplaces, frame.workers) if table is not None]
        codelists = [str(a.codelist) for a in frame.attributes.values() if a.codelist is not None]
        inside = [self.folder, self.ledger, self.store, *(frame.folder / path for path in (*tables, *codelists))]
        for path in (path.resolve() for path in inside):
            if path.is_relative_to(self.bundle):
                raise ReleaseError(
                    f"bundle folder {self.bundle}",
                    expected="a folder of its own, which publishing may replace",
                    found=f"a folder that holds {path.name}",
                    do="choose another folder: `bundle = …` under [release]",
                )
        if self.bundle.is_relative_to(self.store.resolve()):
            raise ReleaseError(
                f"bundle folder {self.bundle}",
                expected="a folder outside the confidential store of answers",
                found=str(self.store),
                do="choose another folder: `bundle = …` under [release]",
            )

    @property
    def account(self) -> Account:
        """The account in the ledger that this release is charged to."""
        return Account(population=self.about.population, period=self.about.period)

    @property
    def ledger(self) -> Path:
        """The path of the ledger."""
        return self.folder / self.about.ledger

    @property
    def bundle(self) -> Path:
        """The folder the bundle is published into; through a symbolic link, the folder it leads to."""
        return (self.folder / self.about.bundle).resolve()

    @property
    def store(self) -> Path:
        """The folder beside the ledger that keeps answers and what is known about files."""
        name = self.ledger.name.removesuffix(".sqlite")
        return self.ledger.with_name(f"{name}.store")

    def question(self, table: Table, codelists: Mapping[str, Codelist]) -> Question:
        """What a table asks of the data, given the codes of the attributes."""
        for name, codes in table.where.items():
            unknown = [code for code in codes if code not in codelists[name].codes]
            if unknown or not codes:
                raise ReleaseError(
                    f"table '{table.name}', where {name}",
                    expected=f"codes of {name}, such as {', '.join(codelists[name].codes[:5])}",
                    found=", ".join(unknown) or "none",
                    do="correct the codes",
                )
        kept = {name: set(codes) for name, codes in table.where.items()}
        by = tuple(
            Dimension(
                name=name,
                codes=tuple(c for c in codelists[name].codes if name not in kept or c in kept[name]),
                public=self.frame.is_public(name),
            )
            for name in table.by
        )
        needed = needs(self.method_name(table))
        return Question(by=by, where=table.where, needs=needed, threshold=table.protect.options.get("threshold", 100))

    def method_name(self, table: Table) -> str:
        """The method as it is used: Smooth Pareto protects a table by worker attributes as one vector.

        That is strong and costs epsilon once. The scalar form, one number at a time, is weak; it is used when the
        release asks for it (`form = "scalar"`) and where workers are filtered: then the largest employer may have more
        workers than the table, and a vector's error figures would understate.
        """
        protect = table.protect
        filtered = [name for name in table.where if not self.frame.is_public(name)]
        if filtered and protect.method in WHOLE_WORKFORCES:
            raise ReleaseError(
                f"table '{table.name}', method '{protect.method}'",
                expected="a table of all workers: its error figures need their total",
                found=f"`where` on {', '.join(filtered)}",
                do='put the attribute into `by`, or use method = "smooth-pareto"',
            )
        by_workers = any(not self.frame.is_public(name) for name in table.by)
        form = protect.options.get("form", "vector" if by_workers and not filtered else "scalar")
        if protect.method != "smooth-pareto" or form == "scalar":
            return protect.method
        if form != "vector" or not by_workers or filtered:
            raise ReleaseError(
                f"table '{table.name}', form",
                expected='"scalar", or "vector" in a table by worker attributes without a filter on workers',
                found=repr(form),
                do="leave `form` out: the fitting one is chosen",
            )
        return "vector-pareto"

    def method(self, table: Table, question: Question) -> Method:
        """The method that protects a table, with its parameters."""
        protect = table.protect
        return build(
            self.method_name(table),
            alpha=self.about.budget.alpha if protect.alpha is None else protect.alpha,
            epsilon=protect.epsilon,
            worker_cells=question.worker_cells(self.frame),
            options={name: value for name, value in protect.options.items() if name != "form"},
        )
