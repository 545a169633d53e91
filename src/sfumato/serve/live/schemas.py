"""What programs get beside the tables themselves: what can be asked, and what a question costs."""

from pydantic import BaseModel, Field

from sfumato.live import FormalLive, Live
from sfumato.live.formal import WIDEST
from sfumato.privacy.account import Balance
from sfumato.serve.live.offered import Offered


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
        description="what it would take from the budget, at the budget's alpha; null where it cannot be paid for at all"
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


def live_config(live: Live | FormalLive, left: Balance | None, methods: Offered | None) -> LiveConfig:
    """What can be asked of open data; where that costs something, what is left and which methods there are."""
    release, data = live.release, live.release.data
    formal = isinstance(live, FormalLive)
    budget = None
    if isinstance(live, FormalLive) and left is not None and methods is not None:
        most = live.most
        budget = LiveBudget(
            definition=most.definition,
            alpha=float(most.alpha),
            epsilon=float(most.epsilon),
            delta=float(most.delta),
            left=float(left.remaining_epsilon),
            least_epsilon=float(min(release.live.least_epsilon, most.epsilon)),
            quota=float(live.quotas.most),
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
        counts="jobs" if formal else "records",
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
