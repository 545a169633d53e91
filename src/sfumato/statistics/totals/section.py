"""What the key `growth` of a table says: of which measure, and since when."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from sfumato.description import Described

Since = Literal["previous", "year"]
LABELS: dict[str, str] = {"previous": "Previous period", "year": "Same period of the year before"}


class GrowthOf(Described):
    """Growth of a total from period to period, in percent, with its error."""

    of: str = Field(description='measure whose total grows; `growth = "turnover"` is short for this')
    since: tuple[Since, ...] = Field(
        ("previous",),
        min_length=1,
        description="previous: from each period to the next; year: from the same month or quarter of the year before",
    )

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_measure(cls, growth: object) -> object:
        return {"of": growth} if isinstance(growth, str) else growth

    @field_validator("since", mode="before")
    @classmethod
    def _accepts_one(cls, since: object) -> object:
        return (since,) if isinstance(since, str) else since

    @field_validator("since")
    @classmethod
    def _lists_each_once(cls, since: tuple[Since, ...]) -> tuple[Since, ...]:
        if len(set(since)) != len(since):
            raise ValueError("each of previous and year once")
        return since
