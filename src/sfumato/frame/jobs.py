"""The table of jobs in a `[data]` section: what links workers to workplaces, and the periods of a panel."""

from typing import Literal, Self

from pydantic import Field, model_validator

from sfumato.frame.periods import Span
from sfumato.frame.sources import Column, Source

NO_JOBS, ONE_JOB_EACH = "no jobs", "one job each"


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

    def span(self) -> Span | None:
        """The periods of a panel."""
        return None if self.first is None or self.last is None else Span(first=self.first, last=self.last)
