"""What the keys `predict` and `quantiles` of a table say: what is estimated of the people of each group, and where."""

from fractions import Fraction
from itertools import pairwise
from typing import Self

from pydantic import Field, field_validator, model_validator

from sfumato.description import Described, Exact


class Predict(Described):
    """What a least-squares line through the people of each group says at chosen values."""

    outcome: str = Field(description="measure that is predicted; it needs a minimum and a maximum")
    on: str = Field(description="measure it is predicted from; it needs a minimum and a maximum")
    at: tuple[Exact, ...] = Field(
        min_length=1,
        description="values of `on` to predict at, in its smallest unit; with mose and theil-sen each costs a share",
    )

    @model_validator(mode="after")
    def _predicts_something_else(self) -> Self:
        if self.outcome == self.on:
            raise ValueError("`outcome` and `on` are two measures")
        if len(set(self.at)) != len(self.at):
            raise ValueError("each value of `at` once")
        return self


class Bins(Described):
    """The public bins in which values are counted: a list of edges, or bins of equal mass of a log-normal guess."""

    edges: tuple[int, ...] | None = Field(
        None, description="ends of the bins, in the smallest unit, increasing; bins = [0, 20000, …] is short for this"
    )
    median: Exact | None = Field(None, description="median of the log-normal distribution that is guessed; not of data")
    sigma: Exact | None = Field(None, description="standard deviation of its logarithm, such as 0.6")
    number: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="number of bins that share it equally; with the adaptive curve the outer two are divided further",
    )

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_list(cls, bins: object) -> object:
        return {"edges": bins} if isinstance(bins, list | tuple) else bins

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        guess = (self.median, self.sigma, self.number)
        if self.edges is None:
            if any(part is None for part in guess):
                raise ValueError("a list of edges, or all of `median`, `sigma` and `number`")
            if not (self.median and self.median > 0 and self.sigma and self.sigma > 0):
                raise ValueError("`median` and `sigma` above 0")
            return self
        if any(part is not None for part in guess):
            raise ValueError("either a list of edges, or `median`, `sigma` and `number`")
        if len(self.edges) < 3:
            raise ValueError(f"at least three edges that increase, not {len(self.edges)}")
        for low, high in pairwise(self.edges):
            if high <= low:
                raise ValueError(
                    f"increasing edges: edges that increase from each to the next, not {low} and then {high}"
                )
        return self


class Quantiles(Described):
    """Percentiles of a measure among the people of each group, from a noisy histogram."""

    of: str = Field(description="measure whose percentiles are published")
    at: tuple[Exact, ...] = Field(
        min_length=1, description="percentiles such as [25, 50, 75]: increasing, above 0 and below 100"
    )
    bins: Bins = Field(description="public bins in which values are counted; never read off the data")

    @field_validator("at")
    @classmethod
    def _are_percentiles(cls, at: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        if any(not 0 < place < 100 for place in at) or any(high <= low for low, high in pairwise(at)):
            raise ValueError("percentiles that increase, above 0 and below 100")
        return at
