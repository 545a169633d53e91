"""What analysts may ask for, what it costs, and what programs get."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from sfumato.live import ChargedSession, Session
from sfumato.live.charged import WIDEST
from sfumato.live.session import Price as FormalPrice
from sfumato.live.session import in_order
from sfumato.privacy.account import Balance
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.live.available_methods import AvailableMethods, available_methods
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.registry import METHODS, is_for_records

Name = Annotated[str, Field(max_length=200)]
Number = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, strict=True)]


class LiveQuestion(BaseModel):
    """An ad-hoc table: a statistic by some attributes, among some records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    statistic: Literal["count", "total", "mean"] = Field("count", description="jobs are counted; records also summed")
    measure: Name | None = Field(None, description="what is summed or averaged; nothing where records are counted")
    by: Annotated[list[Name], Field(max_length=20)] = Field(description="the attributes that make the cells")
    where: Annotated[dict[Name, list[Name]], Field(max_length=20)] = Field(
        default_factory=dict, description="only records with these codes, by attribute"
    )
    totals: bool = Field(False, description="for records: protected totals as well, under the code total")
    epsilon: Number | None = Field(None, description="for jobs: what the question may cost")
    alpha: Number | None = Field(None, description="for jobs: the budget's when not given")
    delta: Annotated[float, Field(ge=0, lt=1, strict=True)] | None = Field(
        None, description="for methods that need one"
    )
    method: Name | None = Field(
        None, description="the method of protection; when not given, smooth-pareto for jobs and laplace for records"
    )

    def plan(self, live: Session) -> PublishedTable:
        """What is asked of the data, in one spelling; the same question is the same plan."""
        self._refuse_repeated()
        self._refuse_unknown(live)
        if live.most is None:
            self._refuse({"epsilon": self.epsilon, "alpha": self.alpha, "delta": self.delta}, "records cost nothing")
            by, where = in_order(self.by, self.where, live.codelists)
            statistic: dict[str, str] = {str(self.statistic): self.measure or "none"}
            if self.statistic == "count":
                self._refuse({"measure": self.measure}, "a count has no measure")
                statistic = {"count": "records"}
            return live.plan(by=by, where=where, totals=self.totals, **statistic)
        others = {"measure": self.measure, "totals": self.totals or None}
        counted = "jobs" if live.release.data.of_jobs else "records"
        why = f"{counted} are counted"
        self._refuse(others | {"statistic": None if self.statistic == "count" else self.statistic}, why)
        if self.method is not None and self.method not in METHODS:
            raise RefusedError(
                "method",
                expected=f"one of {', '.join(available_methods(cast(ChargedSession, live)).methods)}",
                found=self.method,
                do="choose one of them; GET /live/config tells what each may be asked for",
            )
        if self.method is not None and is_for_records(self.method):
            raise RefusedError(
                "method",
                expected="a method that counts jobs",
                found=f"{self.method}, which is made for records of people or businesses",
                do="choose another method; GET /live/config lists them",
            )
        if self.epsilon is None:
            raise RefusedError(
                "epsilon",
                expected="what the question may cost: a number above 0",
                found="none",
                do="choose one; POST /live/prices tells the cost and the expected error",
                said=said("Say what the question may cost: write a number for ε, such as 0.25."),
            )
        return live.plan(
            by=tuple(self.by),
            where=self.where,
            method=self.method,
            epsilon=Fraction(str(self.epsilon)),
            alpha=None if self.alpha is None else Fraction(str(self.alpha)),
            delta=None if self.delta is None else Fraction(str(self.delta)),
        )

    def _refuse_repeated(self) -> None:
        repeated = [name for name, times in Counter(self.by).items() if times > 1]
        if repeated or not self.by:
            raise RefusedError(
                "by",
                expected="every attribute once" if repeated else "at least one attribute to tabulate by",
                found=f"'{repeated[0]}' twice" if repeated else "none",
                do="leave out the second" if repeated else "choose one",
                said=None if repeated else said("Choose at least one attribute to tabulate by."),
            )

    def _refuse_unknown(self, live: Session) -> None:
        for where, name in (*(("by", name) for name in self.by), *(("where", name) for name in self.where)):
            if name not in live.codelists:
                raise RefusedError(
                    where,
                    expected=f"attributes: {', '.join(live.codelists)}",
                    found=name,
                    do="choose one of them; GET /live/config tells their codes",
                )

    @staticmethod
    def _refuse(others: Mapping[str, Any], why: str) -> None:
        for name, value in others.items():
            if value is not None:
                raise RefusedError(name, expected=f"nothing: {why}", found=str(value), do="leave it out")


def in_words(statistic: PublishedTable) -> dict[str, Any]:
    """A question for the log: names and codes, how it is protected and what it may cost."""
    table = statistic.table
    words: dict[str, Any] = {"by": list(table.by)}
    if table.measure is not None:
        words = {table.statistic: table.measure, **words}
    if table.where:
        words["where"] = {name: list(codes) for name, codes in table.where.items()}
    if table.totals:
        words["totals"] = True
    guarantee = statistic.guarantee.bound
    if guarantee is not None:  # as it is charged: the same question in other words is the same line
        words |= {"method": statistic.method.name, "alpha": float(guarantee.alpha), "epsilon": float(guarantee.epsilon)}
        if guarantee.delta:
            words["delta"] = float(guarantee.delta)
    return words


class LiveAttribute(BaseModel):
    """An attribute to tabulate by."""

    name: str
    label: str
    codes: dict[str, str] = Field(description="label by code, in order")
    public: bool = Field(description="whether it describes workplaces, as everyone knows; records have no such")


class LiveBudget(BaseModel):
    """What ad-hoc questions may cost together, and have left."""

    definition: str
    alpha: float
    epsilon: float
    delta: float
    left: float = Field(description="epsilon that new questions of yours may still cost")
    least_epsilon: float = Field(description="the least epsilon of one question")
    quota: float = Field(description="the epsilon that all questions of one analyst may cost together")
    most_epsilon: float = Field(description="the largest epsilon of one question")
    alphas: tuple[float, float] = Field(description="the least and the largest alpha that may be chosen")
    methods: list[str] = Field(description="those that this budget can pay for")
    restrictions: dict[str, str] = Field(description="what some of them may be asked for, by method")
    for_some_workers: list[str] = Field(description="those that may be asked with a filter on attributes of workers")
    not_offered: dict[str, str] = Field(description="why the others are not among them, by method")


class LiveConfig(BaseModel):
    """What can be asked."""

    title: str
    population: str
    period: str
    counts: str = Field(description="what a count is a number of")
    attributes: list[LiveAttribute]
    measures: dict[str, str] = Field(description="unit by measure, for totals and means")
    most_cells: int
    most_seconds: int
    guard: str | None = Field(
        description="what is done to cells that differ by few units, or by none, from one answered before"
    )
    budget: LiveBudget | None = Field(description="where questions cost something")


class ExpectedError(BaseModel):
    """The mean absolute error of a cell, as far as it is known before any data are read."""

    small: float = Field(description="where the largest establishment is small")
    small_size: int = Field(description="up to so many workers")
    share: float | None = Field(description="above that at most this share of what `of` names")
    of: str
    examples: dict[str, float] = Field(description="by the size of what `of` names")


class Price(BaseModel):
    """What a question would cost; nothing was charged."""

    cells: int
    method: str
    definition: str | None = None
    alpha: float | None = None
    epsilon: float | None = Field(
        description="what it takes from the budget at most, at its alpha; null where it cannot be paid for at all"
    )
    delta: float | None = 0
    left: float | None = Field(default=None, description="what your ad-hoc questions may still cost")
    answered: bool = Field(
        description="whether you paid for it before, or a release published it: the stored answer then costs nothing"
    )
    fits: bool = Field(description="whether it would be answered now")
    refusal: str = ""
    error: ExpectedError | None = Field(
        default=None, description="nothing for records: their errors come with the answer"
    )


def live_config(live: Session, left: Balance | None, methods: AvailableMethods | None) -> LiveConfig:
    """What can be asked of open data; where that costs something, what is left and which methods there are."""
    release, data = live.release, live.release.data
    most = live.most
    formal, budget = most is not None, None
    if most is not None and left is not None and methods is not None:
        budget = LiveBudget(
            definition=most.definition,
            alpha=float(most.alpha),
            epsilon=float(most.epsilon),
            delta=float(most.delta),
            left=float(left.remaining_epsilon),
            least_epsilon=float(min(release.live.least_epsilon, most.epsilon)),
            quota=float(cast(ChargedSession, live).quotas.most),
            most_epsilon=float(release.live.most_epsilon or most.epsilon),
            alphas=(float(most.alpha / WIDEST), float(most.alpha * WIDEST)),
            methods=list(methods.methods),
            restrictions={name: words for name, words in methods.methods.items() if words},
            for_some_workers=list(methods.for_some_workers),
            not_offered=methods.others,
        )
    return LiveConfig(
        title=release.about.title,
        population=release.about.population,
        period=release.about.period,
        counts="jobs" if data.of_jobs else "records",
        attributes=[
            LiveAttribute(
                name=name,
                label=data.label(name),
                codes=dict(zip(codelist.codes, codelist.labels, strict=True)),
                public=formal and data.is_public(name),
            )
            for name, codelist in live.codelists.items()
        ],
        measures={} if formal else {name: measure.unit for name, measure in data.measures.items()},
        most_cells=release.live.most_cells,
        most_seconds=release.live.most_seconds,
        guard=None if formal else release.live.guard,
        budget=budget,
    )


SIZES = (10, 100, 1_000)
"""Establishments, or cells, whose errors are told as examples."""


def price_of(live: Session, statistic: PublishedTable, *, analyst: str | None) -> Price:
    """The price of a question; one about records costs nothing, and its errors come with the answer."""
    price = live.price(statistic, analyst=analyst)
    if price is None:
        return Price(cells=statistic.cells, method=statistic.method.name, epsilon=0, answered=False, fits=True)
    return shown_price(statistic, price)


def shown_price(statistic: PublishedTable, price: FormalPrice) -> Price:
    """The price of a question that costs something, in numbers and words."""
    guarantee, refusal = price.guarantee, price.refusal
    return Price(
        cells=statistic.cells,
        method=statistic.method.name,
        definition=guarantee.definition,
        alpha=float(guarantee.alpha),
        epsilon=_cost(price.epsilon, price),
        delta=_cost(price.delta, price),
        left=float(price.left.remaining_epsilon),
        answered=price.answered,
        fits=refusal is None,
        refusal="" if refusal is None else f"expected {refusal.expected}; found {refusal.found}. To do: {refusal.do}.",
        error=expected_error(statistic),
    )


def _cost(number: Fraction | None, price: FormalPrice) -> float | None:
    """What is taken from the budget; nothing is said where the budget cannot pay for such a question at all."""
    if price.answered:
        return 0
    return None if number is None else float(number)


def expected_error(statistic: PublishedTable) -> ExpectedError:
    """The mean absolute error of a cell, from the parameters alone."""
    error = statistic.method.planned_error()
    share = error.share or 0.0
    return ExpectedError(
        small=error.floor,
        small_size=error.floor_size,
        share=error.share,
        of=error.of,
        examples={
            str(size): error.floor if size <= error.floor_size else max(error.floor, share * size) for size in SIZES
        },
    )
