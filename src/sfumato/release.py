"""A release: what is published, from which data, with which protection and budget."""

from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sfumato.asking import ask
from sfumato.engine.question import Asked, IndicatorQuestion, PairQuestion, Question
from sfumato.errors import ReleaseError
from sfumato.frame import Codelist, Described, Exact, Frame
from sfumato.keys import Secret, read_key
from sfumato.methods.method import Method
from sfumato.methods.registry import KEYED, build
from sfumato.privacy.account import Account
from sfumato.privacy.guarantee import Definition, EmployerEmployee
from sfumato.table import Table

WHOLE_WORKFORCES = frozenset({"vector-pareto", "auto"})
"""Methods whose published error figures need all workers of an establishment in the table."""


SMALLEST_PAIR_CELL = 3
"""Cells of flows and graphs below this are not published unless the release sets another `minimum`."""


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
    budget: Budget | None = Field(
        None,
        description="what all tables about the population and period may cost together; needed by every method with a "
        "formal guarantee",
    )
    key: Path | None = Field(None, description="key file of permanent factors (`sfumato keys new`), for noise-infusion")
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
            self._knows_attributes(table)
            if table.protect.method not in KEYED and self.about.budget is None:
                raise ReleaseError(
                    f"table '{table.name}', method '{table.protect.method}'",
                    expected="a budget, which this method spends",
                    found="none",
                    do="state one under [release], such as budget = { alpha = 0.1, epsilon = 4 }",
                )
            if table.protect.method in KEYED and self.about.key is None:
                raise ReleaseError(
                    f"table '{table.name}', method '{table.protect.method}'",
                    expected="a key file, from which its factors are computed",
                    found="none",
                    do='make one with `sfumato keys new sfumato.key` and write key = "sfumato.key" under [release]',
                )
        return self

    def _knows_attributes(self, table: Table) -> None:
        known = [*self.frame.attributes, *filter(None, [self.frame.jobs.period])]
        for name in (*table.by, *table.where, *table.ends):
            if name not in known:
                close = get_close_matches(name, known, n=1)
                raise ReleaseError(
                    f"table '{table.name}'",
                    expected=f"an attribute: {', '.join(known)}",
                    found=f"'{name}'",
                    do=f"did you mean '{close[0]}'?" if close else "describe it under [data.attributes]",
                )

    def _keep_apart(self) -> None:
        """Refuse a bundle folder that holds anything else of the release: publishing replaces that folder."""
        frame = self.frame
        tables = [table.path for table in (frame.jobs, frame.workplaces, frame.workers) if table is not None]
        codelists = [str(a.codelist) for a in frame.attributes.values() if a.codelist is not None]
        kept = [self.folder, self.ledger, self.store, *([] if self.key is None else [self.key])]
        inside = [*kept, *(frame.folder / path for path in (*tables, *codelists))]
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
    def budget(self) -> EmployerEmployee | None:
        """What the account may spend, if anything of this release costs."""
        return None if self.about.budget is None else self.about.budget.guarantee()

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

    @property
    def key(self) -> Path | None:
        """The path of the key file."""
        return None if self.about.key is None else self.folder / self.about.key

    def secret(self) -> Secret | None:
        """The key in force, when a table needs one."""
        keyed = any(self.method_name(table) in KEYED for table in self.tables)
        return read_key(self.key) if keyed and self.key is not None else None

    def question(self, table: Table, codelists: Mapping[str, Codelist]) -> Asked:
        """What a table asks of the data, given the codes of the attributes."""
        return ask(table, self.frame, codelists, method=self.method_name(table))

    def method_name(self, table: Table) -> str:
        """The method as it is used: Smooth Pareto protects a table by worker attributes as one vector.

        That is strong and costs epsilon once. The scalar form, one number at a time, is weak; it is used when the
        release asks for it (`form = "scalar"`) and where workers are filtered: then the largest employer may have more
        workers than the table, and a vector's error figures would understate.
        """
        protect = table.protect
        if table.statistic != "count":
            if protect.method != "noise-infusion":
                raise ReleaseError(
                    f"table '{table.name}', method '{protect.method}'",
                    expected="noise-infusion, the method for indicators, flows and graphs",
                    found=f"'{protect.method}'",
                    do='write protect = { method = "noise-infusion" }',
                )
            return "noise-infusion-sums"
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

    def method(self, table: Table, question: Asked) -> Method:
        """The method that protects a table, with its parameters."""
        protect, name = table.protect, self.method_name(table)
        options = {option: value for option, value in protect.options.items() if option not in ("form", "edges")}
        if name in KEYED:
            for parameter in ("alpha", "epsilon"):
                if getattr(protect, parameter) is not None:
                    raise ReleaseError(
                        f"method '{protect.method}', {parameter}",
                        expected="neither alpha nor epsilon: it has no formal guarantee and costs no budget",
                        found=f"{parameter} = {float(getattr(protect, parameter)):g}",
                        do="leave it out",
                    )
            if isinstance(question, PairQuestion):
                options = {
                    "minimum": SMALLEST_PAIR_CELL,
                    **options,
                    "directed": question.directed,
                    "ends": len(question.attributes),
                }
            elif isinstance(question, IndicatorQuestion):
                self._refuse_synthesis(table)
                options["months"] = 3 if self.frame.span is not None and self.frame.span.quarterly else 12
            return build(name, options=options)
        budget = self.about.budget
        return build(
            name,
            alpha=budget.alpha if protect.alpha is None and budget is not None else protect.alpha,
            epsilon=protect.epsilon,
            worker_cells=question.worker_cells(self.frame) if isinstance(question, Question) else 0,
            options=options,
        )

    def _refuse_synthesis(self, table: Table) -> None:
        if table.protect.options.get("below", "suppressed") != "suppressed":
            raise ReleaseError(
                f"table '{table.name}', below",
                expected='"suppressed": only cells of flows and graphs can be drawn from a model of the others',
                found=repr(table.protect.options["below"]),
                do="leave it out",
            )
