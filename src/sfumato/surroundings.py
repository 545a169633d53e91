"""What a statistic may know of the release that it is part of."""

from collections.abc import Mapping
from typing import Any, Protocol

from sfumato.agree.largest import PublicFacts
from sfumato.cells import Dimension
from sfumato.privacy.guarantee import Guarantee


class Surroundings(PublicFacts, Protocol):
    """What a statistic may know of the release that it is part of; `sfumato.plan.Plan` is it."""

    @property
    def release(self) -> Any:
        """What the release file says."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What all statistics together reveal at most."""
        ...

    @property
    def tables(self) -> tuple[Any, ...]:
        """The statistics that are tables of cells."""
        ...

    @property
    def cubes(self) -> tuple[Any, ...]:
        """The statistics that are cubes."""
        ...

    @property
    def kinds(self) -> tuple[type[Any], ...]:
        """The kinds of its statistics."""
        ...

    @property
    def reconciled(self) -> tuple[str, ...]:
        """The tables that are made to agree."""
        ...

    @property
    def not_reconciled(self) -> Mapping[str, str]:
        """The tables that are not, although the release asks for it, each with the reason."""
        ...

    @property
    def composites(self) -> Mapping[str, Any]:
        """How composite estimates are made, of the tables that ask for them."""
        ...

    @property
    def finer_tables(self) -> Mapping[str, tuple[str, ...]]:
        """The tables that tell of others how large their establishments can be, by the name of each of these."""
        ...

    def of_kind(self, kind: Any) -> tuple[Any, ...]:
        """The statistics of one kind."""
        ...

    def label(self, dimension: str) -> str:
        """The words for a dimension in a heading."""
        ...

    def map_of(self, dimension: str) -> str | None:
        """The file of a bundle that has the areas of a dimension, if it is on a map."""
        ...


def describe_dimension(plan: Surroundings, dimension: Dimension) -> dict[str, Any]:
    """A dimension in the structure of a bundle, with what not every one has: `map`, `made_of`, `level`."""
    file, made = plan.map_of(dimension.name), plan.release.data.made_of(dimension.name)
    attribute = plan.release.data.attributes.get(dimension.name)
    level = None if attribute is None else attribute.level_of
    return {
        "name": dimension.name,
        "label": plan.label(dimension.name),
        "codes": len(dimension),
        "codelist": f"codelists/{dimension.name}.csv",
        "role": "time" if dimension.name == plan.release.time else None if file is None else "geo",
        **{name: told for name, told in (("map", file), ("made_of", made)) if told},
        **({"level": {"of": level[0], "name": level[1]}} if level else {}),
    }


def describe_time(plan: Surroundings) -> list[dict[str, Any]]:
    """The time dimension of a series, which has one code in a bundle of one period; nothing else has one of its own."""
    if plan.release.series is None:
        return []
    name = plan.release.series.name
    label = name.replace("_", " ").capitalize()
    return [{"name": name, "label": label, "codes": 1, "codelist": f"codelists/{name}.csv", "role": "time"}]
