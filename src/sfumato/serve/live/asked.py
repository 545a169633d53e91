"""What analysts ask for, as programs write it."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sfumato.live import FormalLive, Live
from sfumato.live.asked import in_order
from sfumato.methods.registry import METHODS
from sfumato.plan import PlannedTable
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.protection import OF_PEOPLE
from sfumato.serve.errors import RefusedError
from sfumato.serve.live.offered import offered

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
    method: Name = Field("smooth-pareto", description="for jobs: the method of protection")

    def planned(self, live: Live | FormalLive) -> PlannedTable:
        """What is asked of the data, in one spelling; the same question is the same plan."""
        self._refuse_repeated()
        if isinstance(live, Live):
            self._refuse({"epsilon": self.epsilon, "alpha": self.alpha, "delta": self.delta}, "records cost nothing")
            by, where = in_order(self.by, self.where, live.codelists)
            statistic: dict[str, str] = {str(self.statistic): self.measure or "none"}
            if self.statistic == "count":
                self._refuse({"measure": self.measure}, "a count has no measure")
                statistic = {"count": "records"}
            return live.planned(by=by, where=where, totals=self.totals, **statistic)
        said = {"measure": self.measure, "totals": self.totals or None}
        self._refuse(said | {"statistic": None if self.statistic == "count" else self.statistic}, "jobs are counted")
        if self.method not in METHODS:
            raise RefusedError(
                "method",
                expected=f"one of {', '.join(offered(live).methods)}",
                found=self.method,
                do="choose one of them; GET /live/config tells what each may be asked for",
            )
        if self.method in OF_PEOPLE:
            raise RefusedError(
                "method",
                expected="a method that counts jobs",
                found=f"{self.method}, which is made for surveys of people",
                do="choose another method; GET /live/config lists them",
            )
        if self.epsilon is None:
            raise RefusedError(
                "epsilon",
                expected="what the question may cost: a number above 0",
                found="none",
                do="choose one; POST /live/prices tells the cost and the expected error",
            )
        return live.planned(
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
            )

    @staticmethod
    def _refuse(said: Mapping[str, Any], why: str) -> None:
        for name, value in said.items():
            if value is not None:
                raise RefusedError(name, expected=f"nothing: {why}", found=str(value), do="leave it out")


def in_words(planned: PlannedTable) -> dict[str, Any]:
    """A question for the log: names and codes, how it is protected and what it may cost."""
    table = planned.table
    words: dict[str, Any] = {"by": list(table.by)}
    if table.measure is not None:
        words = {table.statistic: table.measure, **words}
    if table.where:
        words["where"] = {name: list(codes) for name, codes in table.where.items()}
    if table.totals:
        words["totals"] = True
    guarantee = planned.guarantee
    if isinstance(guarantee, EmployerEmployee):  # as it is charged: the same question in other words is the same line
        words |= {"method": planned.method.name, "alpha": float(guarantee.alpha), "epsilon": float(guarantee.epsilon)}
        if guarantee.delta:
            words["delta"] = float(guarantee.delta)
    return words
