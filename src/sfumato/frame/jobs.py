"""The table of jobs in a `[data]` section: what links workers to workplaces, and the periods of a panel."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from sfumato.frame.periods import Span
from sfumato.frame.sources import Column, Source

NO_JOBS, ONE_JOB_EACH = "no jobs", "one job each"
Population = Literal["beginning", "end", "full_quarter", "any"]
"""Which rows of a panel are jobs at a period, when jobs are counted."""


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a job at period t had earnings in: t, and so many periods before it and after it."""

    before: int = 0
    after: int = 0


POPULATIONS: Final = MappingProxyType(
    {
        "beginning": Around(before=1),
        "end": Around(after=1),
        "full_quarter": Around(before=1, after=1),
        "any": Around(),
    }
)
"""What each population of a panel looks at; docs/methods/panels.md defines them."""


class Jobs(Source):
    """The table with one row a job, or one row a job and period; it links a worker to a workplace."""

    workplace: Column = Field("workplace", description="column that names the workplace of the job")
    worker: Column | None = Field(None, description="column that names the worker; needed when `workers` is given")
    period: Column | None = Field(
        None, description="column with the quarter (2025-Q1) or year of each row, which makes the jobs a panel"
    )
    period_label: str = Field("", exclude=True, description="words for the period in headings; its column if not given")
    first: str | None = Field(None, description="first period of the panel")
    last: str | None = Field(None, description="last period of the panel")
    earnings: Column | None = Field(
        None, description="column with the earnings of the job in the period, whole numbers of the smallest unit"
    )
    population: Population = Field(
        "beginning",
        description="of a panel, which jobs are counted at a period: `beginning`, those with earnings in it and in the "
        "period before; `end`, in it and in the one after; `full_quarter`, in all three; `any`, in the period itself. "
        "Indicators, flows and graphs do not look at it",
    )
    employees: str | dict[str, str] | dict[str, dict[str, str]] | None = Field(
        None,
        description="of a register with one row for each establishment: the column with the number of its workers, or "
        'the columns by the codes of an attribute of workers, such as { women = "f", men = "m" }, or of two, one '
        "within the other",
    )
    accept: Literal["no jobs", "one job each"] | None = Field(
        None,
        exclude=True,  # it changes no number
        description="what would be refused as a mistake, and is meant: a file without any job, or one with exactly one "
        "job at every workplace",
    )

    @model_validator(mode="after")
    def _counts_heads(self) -> Self:
        if self.employees is not None and (self.worker is not None or self.period is not None):
            raise ValueError("`employees` is for a row that stands for many jobs: leave out `worker` and `period`")
        if isinstance(self.employees, dict) and not all([self.employees, *self.employees.values()]):
            raise ValueError("`employees` names a column, or at least one column by its code")
        return self

    @model_validator(mode="after")
    def _describes_a_panel(self) -> Self:
        parts = [self.period, self.first, self.last, self.earnings]
        if any(part is not None for part in parts):
            if any(part is None for part in parts) or self.worker is None:
                raise ValueError("a panel needs all of `worker`, `period`, `first`, `last` and `earnings`")
            self.span()
        return self

    @model_validator(mode="after")
    def _is_of_a_panel(self) -> Self:
        if "population" in self.model_fields_set and self.period is None:
            raise ValueError("`population` chooses jobs of a panel: describe `period`, or leave it out")
        return self

    @property
    def around(self) -> Around:
        """What jobs of a panel at a period had earnings in."""
        return POPULATIONS[self.population]

    def span(self) -> Span | None:
        """The periods of a panel."""
        return None if self.first is None or self.last is None else Span(first=self.first, last=self.last)
