"""The sections of a release file beside its data and tables: what it is about, its budget, periods, live questions."""

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from sfumato.description import Described, Exact, line_of
from sfumato.errors import ReleaseError
from sfumato.frame.attributes import PUBLISHED_COLUMNS
from sfumato.frame.jobs import Population
from sfumato.frame.periods import Period
from sfumato.frame.series import filled, has_words, panel_at
from sfumato.privacy.guarantee import CONDITIONAL, NO_ALPHA, Caps, Definition, EmployerEmployee, caps_together
from sfumato.privacy.windows import Window

NO_CAPS: Mapping[str, tuple[str, int]] = MappingProxyType({})


class BudgetWindow(Described):
    """What several consecutive periods of one population may spend together."""

    periods: int = Field(
        ge=2, description="how many periods in a row, as long as that of the release: with a quarter, 4 are any four"
    )
    epsilon: Exact = Field(gt=0, description="what all their tables may cost together")
    delta: Exact | None = Field(
        None, ge=0, description="the same of delta; that of the budget for each of the periods when not given"
    )
    alpha: Exact | None = Field(
        None, gt=0, description="at which alpha they are added up; that of the budget when not given"
    )
    definition: Definition | None = Field(None, description="under which definition; that of the budget when not given")
    conditional: bool | None = Field(
        None, description="whether tables on a condition may spend it; as the budget says when not given"
    )
    first: str | None = Field(
        None, description="the first period that counts, where periods before it have spent more; all when not given"
    )

    @field_validator("first")
    @classmethod
    def _is_period(cls, typed: str | None) -> str | None:
        return None if typed is None else str(Period.read(typed, "budget, window, first"))


class Budget(Described):
    """What all releases about one population and period may spend together."""

    alpha: Exact = Field(
        description="sizes of an establishment within a factor 1 + alpha are hard to tell apart; may be left out under "
        'definition = "individuals", where it plays no part'
    )
    epsilon: Exact = Field(description="how far the log-odds of any secret may move in all; the tables add up to it")
    delta: Exact = Field(
        Fraction(0), description="probability with which the bound may fail; smooth-laplace and cubes need one"
    )
    definition: Definition = Field(
        "strong",
        description="strong hides an establishment's size from every reader; weak, which tables with worker attributes "
        "need, from readers who do not know the attributes of its workers; individuals hides single jobs, or people; "
        "units hides the values of businesses, or of other units that records are of, within a factor 1 + alpha",
    )
    conditional: bool = Field(
        False,
        description="whether tables may spend it that are not differentially private, such as those of mose: what "
        "they cost holds only on a condition, which the privacy statement names",
    )
    window: BudgetWindow | None = Field(
        None,
        description="the most that so many consecutive periods of the population may spend together; without it, "
        "nothing limits their sum, unless the ledger has a window",
    )
    totals: tuple[str, ...] = Field(
        (),
        description="measures of jobs, each with a `cap`, whose totals may spend it: the definition is then about "
        "establishments whose workers and whose part of these totals grow alike, as the privacy statement says. With "
        'definition = "units" measures of records, each with a `floor`',
    )

    populations: tuple[Population, ...] = Field(
        (),
        description="of a panel, the populations whose counts, totals and means may spend it, where these are more "
        "than that of its jobs: steps are then limited by the numbers of all of them",
    )

    @field_validator("totals")
    @classmethod
    def _lists_each_once(cls, totals: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(totals)) < len(totals):
            raise ValueError("each measure is listed once")
        return totals

    @model_validator(mode="before")
    @classmethod
    def _individuals_need_no_alpha(cls, budget: Any) -> Any:
        if isinstance(budget, dict) and budget.get("definition") == "individuals":
            return {"alpha": NO_ALPHA, **budget}
        return budget

    @field_validator("alpha", "epsilon")
    @classmethod
    def _is_positive(cls, value: Fraction) -> Fraction:
        if value <= 0:
            raise ValueError("a number above 0 is needed")
        return value

    def guarantee(self, caps: Mapping[str, tuple[str, int]] = NO_CAPS, panel: Caps = ()) -> EmployerEmployee:
        """The guarantee that holds for everything published within this budget, given the caps of measures.

        These are by the names of measures, each with what makes its values: `Data.measured`. `panel` are limits that
        the populations of a panel bring along.
        """
        return EmployerEmployee(
            definition=self.definition,
            alpha=self.alpha,
            epsilon=self.epsilon,
            delta=self.delta,
            condition=CONDITIONAL if self.conditional else "",
            caps=caps_together([tuple(caps[name] for name in self.totals if name in caps), panel]),
        )

    def window_of(self, period: str, caps: Mapping[str, tuple[str, int]] = NO_CAPS, panel: Caps = ()) -> Window | None:
        """What consecutive periods may spend together, of the length of the one that is published, given the caps."""
        stated = self.written_window()
        if stated is None:
            return None
        return Window(
            periods=stated.periods,
            length=Period.read(period, "[release] period").name,
            first=stated.first or "",
            most=EmployerEmployee(
                definition=stated.definition or self.definition,
                alpha=stated.alpha or self.alpha,
                epsilon=stated.epsilon,
                delta=stated.delta or Fraction(0),
                condition=CONDITIONAL if stated.conditional else "",
                caps=self.guarantee(caps, panel).caps,
            ),
        )

    def written_window(self) -> BudgetWindow | None:
        """The window with all that it takes from the budget when it does not say it."""
        if self.window is None:
            return None
        own: dict[str, Any] = {
            "delta": self.window.periods * self.delta,
            "alpha": self.alpha,
            "definition": self.definition,
            "conditional": self.conditional,
        }
        said = {name: value for name, value in self.window if value is not None}
        return self.window.model_copy(update={**own, **said})


class About(Described):
    """The `[release]` section."""

    title: str = Field(description="heading of the bundle")
    population: str = Field("jobs", description="whose privacy is spent: one budget for each population and period")
    period: str = Field(
        description="the reference period of the data, such as 2025 or 2025-Q3; of a [series], which has many, left out"
    )
    budget: Budget | None = Field(
        None,
        description="what all tables about the population and period may cost together; needed by every method with a "
        "formal guarantee",
    )
    key: Path | None = Field(
        None,
        description="key file (`sfumato keys new`) of noise-infusion, top-contributors, perturbed-values and random "
        "rounding",
    )
    key_fingerprint: str | None = Field(
        None, description="an earlier key of the key file; without it, the one in force (`sfumato keys show`)"
    )
    rekeyed: bool = Field(
        False,
        description="publish under a new key what was published under another, because that one leaked: in the same "
        "account, series or data",
    )
    ledger: Path = Field(Path("ledger.sqlite"), description="file that keeps the budget; answers go beside it")
    bundle: Path = Field(Path("bundle"), description="folder to publish into")
    reconcile: bool = Field(
        False,
        description="make tables about the same jobs agree where they share margins, at no cost; see docs/adjust.md",
    )

    earlier: tuple[Path, ...] = Field(
        (),
        description="release files that were published from the same data, with the same ledger: their tables make "
        "errors of these smaller, and with `reconcile` these are made to agree with them, which stay as they are; "
        "tables of true numbers are "
        "linked to those that were published before, and have to name them",
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


class LiveSettings(Described):
    """The `[live]` section: how ad-hoc tables over records are answered."""

    guard: Literal["refuse", "flag", "off"] = Field(
        "refuse",
        description="what is done to a cell that differs by few units, or by none, from a cell answered before",
    )
    most_cells: int = Field(100_000, ge=1, description="larger tables are refused")
    most_seconds: int = Field(60, ge=1, description="a question that takes the engine longer is stopped")
    most_memory: int | None = Field(
        None,
        ge=1,
        description="gigabytes that the engine may use, the data in memory included; its own limit if not given",
    )
    budget: Exact | None = Field(
        None,
        gt=0,
        description="the epsilon that all ad-hoc counts of jobs, or of records in a release without a key, may cost "
        "together, within the budget of the release; without it, none are answered",
    )
    most_epsilon: Exact | None = Field(
        None, gt=0, description="the largest epsilon of one ad-hoc count; without it, all that is left"
    )
    least_epsilon: Exact = Field(
        Fraction(1, 100),
        gt=0,
        description="the least epsilon of one ad-hoc count: smaller ones are too noisy to use, and fill the ledger",
    )
    establishments: bool | None = Field(
        None,
        description="whether ad-hoc counts of jobs tell the number of establishments of each cell, and list only cells "
        "with one; if not given, they do unless every table of the release says establishments = false",
    )
    largest_weight: int | None = Field(
        None,
        ge=1,
        description="for ad-hoc counts of records with weights that cost something: no record may weigh more, and the "
        "noise hides one that does",
    )
    quota: Exact | None = Field(
        None,
        gt=0,
        description="the epsilon that the ad-hoc counts of one analyst may cost together, whoever asked the same "
        "before; half of the budget for them when not given",
    )


class Series(Described):
    """The `[series]` section: the periods that a release file is for, and where they are in the data."""

    first: str = Field(description="first period: a year such as 2026, a quarter such as 2026-Q1, or a month, 2026-01")
    last: str | None = Field(None, description="last period; without it, the series goes on")
    title: str = Field(
        "", description="heading of the whole series; the `title` of the release, with all periods, when not given"
    )
    dimension: str = Field(
        "", description="name of the time dimension of every table; year, quarter or month when not given"
    )
    column: str | None = Field(
        None,
        min_length=1,
        description="column with the period of each row, or a date in it, where one file has several periods: only "
        "rows of the period that is run are read, of every table that has the column",
    )
    budgets: dict[str, Budget] = Field(
        {}, description="periods that have another budget than the one of the release, such as one that was revised"
    )

    @field_validator("first", "last")
    @classmethod
    def _is_period(cls, typed: str | None) -> str | None:
        return None if typed is None else str(Period.read(typed, "[series]"))

    @field_validator("budgets")
    @classmethod
    def _of_periods(cls, budgets: dict[str, Budget]) -> dict[str, Budget]:
        return {str(Period.read(typed, "[series], budgets")): budget for typed, budget in budgets.items()}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.last is not None and not self._has(Period.read(self.last)):
            raise ValueError(f"`last` = {self.last} is not one of the {self.name}s from {self.first} on")
        if self.name in PUBLISHED_COLUMNS or not re.fullmatch(r"[a-zA-Z][\w-]*", self.name):
            raise ValueError(f"'{self.name}' is no name for a dimension: a letter, then letters, digits, _ or -")
        return self

    @property
    def name(self) -> str:
        """The name of the time dimension."""
        return self.dimension or Period.read(self.first).name

    def period(self, typed: str) -> Period:
        """The period that is meant, if the series has it."""
        found = Period.read(typed, "--period")
        if not self._has(found):
            until = f" to {self.last}" if self.last else " on"
            raise ReleaseError(
                f"--period {typed}",
                expected=f"a {Period.read(self.first).name} of this series, from {self.first}{until}",
                found=str(found),
                do="choose another period, or correct `first` and `last` under [series]",
            )
        return found

    def budget(self, period: Period, shared: Any) -> Any:
        """The budget of a period: its own, with the window that all periods share unless it has one, or that of all."""
        own = self.budgets.get(str(period))
        if own is None or own.window is not None:
            return own or shared
        try:
            window = Budget.model_validate(shared).written_window()
        except ValidationError:  # which the check of the whole file explains
            return own
        return own.model_copy(update={"window": window})

    def _has(self, period: Period) -> bool:
        first, last = Period.read(self.first), None if self.last is None else Period.read(self.last)
        return period.in_a_year == first.in_a_year and first.number <= period.number <= (last or period).number


# A release file for many periods, as it is for one of them.

_SHARED = ("population", "key", "ledger", "bundle")
"""What all periods of a series have in common."""


def content_of_period(path: Path, text: str, content: dict[str, Any], typed: str | None) -> dict[str, Any]:
    """What the file of a series says of one of its periods; ValidationError where its section is wrong."""
    series = Series.model_validate(content["series"])
    about = content.get("release")
    if not isinstance(about, dict):
        return {**content, "series": series}  # which the check of the whole file refuses
    wrong = "period" if "period" in about else next((key for key in _SHARED if has_words(about.get(key))), None)
    if wrong is not None:
        raise ReleaseError(
            f"{path}, line {line_of(text, ('release', wrong))}: release, {wrong}",
            expected="no period: the series has many, and one population, key, ledger and bundle for all",
            found=str(about[wrong]),
            do="leave it out; {period} may stand in `title` and in all texts under [data]",
        )
    if typed is None:
        folder = path.resolve().parent / str(about.get("bundle", About.model_fields["bundle"].default))
        newest, following = _latest(series, folder)
        raise ReleaseError(
            str(path),
            expected="a period: this release file is a series of many",
            found="none",
            do=(f"name one: --period {newest} is the newest that is published, and " if newest else "name one: ")
            + f"--period {following} is the next that is not; in Python load("
            + f'"{path.name}", period="{newest or following}")',
        )
    period = series.period(typed)
    budget = series.budget(period, about.get("budget"))
    chosen = {**about, "title": filled(about.get("title"), period), "period": str(period)}
    return {
        **content,
        "series": series.model_copy(update={"title": series.title or str(about.get("title", ""))}),
        "release": {name: part for name, part in {**chosen, "budget": budget}.items() if part is not None},
        "data": panel_at(filled(content.get("data"), period), period),
    }


def _latest(series: Series, bundle: Path) -> tuple[Period | None, Period]:
    """The newest period that the bundle of a series has, and the first that it does not have."""
    try:
        versions = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["series"]["versions"]
        published = {str(version["period"]) for version in versions}
    except (OSError, ValueError, KeyError, TypeError):
        published = set()  # nothing was published yet
    period = Period.read(series.first)
    while str(period) in published:
        period = period.next
    newest = max(map(Period.read, published), key=lambda one: one.number, default=None)
    return newest, period
