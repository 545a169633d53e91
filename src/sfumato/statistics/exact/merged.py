"""What tables ask whose codes may be merged into those above them."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from sfumato.cells import Dimension
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.levels import TOTAL
from sfumato.statistics.exact.question import ExactQuestion
from sfumato.statistics.table import Table


def merged_question(
    table: Table,
    data: Any,
    codelists: Mapping[str, Codelist],
    method: Any,
    *,
    units: tuple[str, ...],
    holdings: tuple[str, ...],
    public: bool,
) -> ExactQuestion:
    """What a table asks, with the codes of all levels of every dimension, and the total."""
    weighted = getattr(getattr(data, "records", None), "weight", None) is not None
    if method.minimum_count > 1 and (table.measure is not None or weighted):
        raise ReleaseError(
            f"table '{table.name}', minimum_count",
            expected="minimum_units: of totals and of weighted records, groups are judged by their contributors",
            found="minimum_count",
            do="write minimum_units",
        )
    _refuse_own_filter(table, data)
    levels = {name: levels_above(data, name, codelists) for name in table.by}
    steps = [step for name, some in levels.items() for step in pairwise((name, *some))]
    return ExactQuestion(
        by=tuple(
            Dimension(
                name=name,
                codes=_refuse_twice(table, name, all_levels(name, some, codelists).codes),
                public=data.is_public(name) or not public,
            )
            for name, some in levels.items()
        ),
        measure=table.measure,
        margins=table.totals,
        period=data.time,
        where=table.where,
        units=units,
        holdings=holdings,
        top=method.top,
        codes={name: codelists[name].codes for name in dict.fromkeys((*table.by, *table.where))},
        merged=levels,
        filters=tuple(
            Dimension(name=name, codes=codelists[name].codes, public=data.is_public(name) or not public)
            for name in table.where
        ),
        above={(fine, coarse): data.codes_above(fine, coarse, codelists[fine].codes) for fine, coarse in steps},
    )


def _refuse_own_filter(table: Table, data: Any) -> None:
    """Refuse a filter by what a table is by, or a level of it: groups would hold some of their codes only."""
    columns = {data.column_of(name): name for name in table.by}
    for name in table.where:
        if (own := columns.get(data.column_of(name))) is not None:
            raise ReleaseError(
                f"table '{table.name}', where",
                expected="filters by other attributes than those the table is by: a group of codes is shown as a whole",
                found=f"'{name}' beside '{own}'",
                do="leave the filter out, or use suppression",
            )


def levels_above(data: Any, name: str, codelists: Mapping[str, Codelist]) -> tuple[str, ...]:
    """The described levels of an attribute, the finest first, each lying in the next."""
    described = [one for one, attribute in data.attributes.items() if (attribute.level_of or ("",))[0] == name]
    ordered = sorted(described, key=lambda one: -len(codelists[one].codes))
    for fine, coarse in pairwise((name, *ordered)):
        above = data.codes_above(fine, coarse, codelists[fine].codes)
        if above is None or not set(codelists[fine].codes) <= above.keys():
            raise ReleaseError(
                f"attribute '{name}'",
                expected="levels of which each lies in the next, to merge codes upwards",
                found=f"'{fine}' and '{coarse}', which do not",
                do="describe one chain of levels",
            )
    return tuple(ordered)


def all_levels(name: str, above: tuple[str, ...], codelists: Mapping[str, Codelist]) -> Codelist:
    """The codes of an attribute and of the levels above it, with their words."""
    lists = [codelists[one] for one in (name, *above)]
    codes = [code for one in lists for code in one.codes]
    labels = [label for one in lists for label in one.labels]
    return Codelist(codes=(*codes, TOTAL), labels=(*labels, "Total"))


def _refuse_twice(table: Table, name: str, codes: tuple[str, ...]) -> tuple[str, ...]:
    """Codes of all levels, each once, so that a merged code says which group it is."""
    if len(set(codes)) < len(codes):
        raise ReleaseError(
            f"table '{table.name}', '{name}'",
            expected="codes that are different at all levels, so that a merged code says which group it is",
            found="a code that is at two levels",
            do="rename the codes of a level",
        )
    return codes
