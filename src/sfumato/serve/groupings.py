"""Groups of codes that cubes may be asked for: a file of the office, such as broad occupations.

Only cubes have them, because they add up exactly and tell the error of every sum.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from sfumato.errors import SfumatoError
from sfumato.frame import Described
from sfumato.serve.model import Grouping, ServedDimension
from sfumato.serve.selection import places_of


class Group(Described):
    """One group of codes."""

    label: str = Field(description="words for people")
    codes: tuple[str, ...] = Field(
        min_length=1, description='its codes, or expressions such as "11-*" and "range(20,29)"'
    )


class GroupingSection(Described):
    """A `[[grouping]]` section: groups of the codes of one dimension."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="clients ask for it as the code list agg_<name>"
    )
    dimension: str = Field(description="name of the dimension")
    label: str = Field(description="words for people")
    groups: dict[str, Group] = Field(min_length=1, description="by its code every group")


class _File(Described):
    grouping: tuple[GroupingSection, ...]


def read_groupings(path: Path) -> tuple[GroupingSection, ...]:
    """Read a file of groupings."""
    try:
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).grouping
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        raise SfumatoError(
            f"groupings {path}",
            expected="a TOML file with [[grouping]] sections: name, dimension, label and groups",
            found=f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error),
            do="correct the file; docs/serve.md shows one",
        ) from error
    names = [section.name for section in found]
    if len(set(names)) != len(names):
        raise SfumatoError(f"groupings {path}", expected="names that differ", found="one twice", do="rename one")
    return found


def of_dimension(sections: Sequence[GroupingSection], dimension: ServedDimension) -> tuple[Grouping, ...]:
    """The groupings of a dimension, with codes in place of expressions."""
    return tuple(
        Grouping(
            id=f"agg_{section.name}",
            label=section.label,
            groups={
                code: (group.label, tuple(dimension.codes[place] for place in places_of(dimension, group.codes)))
                for code, group in section.groups.items()
            },
        )
        for section in sections
        if section.dimension == dimension.name
    )
