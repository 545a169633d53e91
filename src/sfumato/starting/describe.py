"""Attributes and measures of tables that nobody has described, and whether their codes may be used.

A guarantee holds only for codes that are the same whoever is in the data. So codes are taken from a codelist, from a
list that everybody knows, from classes that everybody uses, or from the register of workplaces where the office says
that an attribute is public. Codes that were only seen in confidential records are a draft, which a person has to
compare with the public list.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import UsageError
from sfumato.frame.attributes import PUBLISHED_COLUMNS
from sfumato.frame.codelists import CodelistFile
from sfumato.starting.look import MOST_CODES, Column, Looked
from sfumato.starting.names import (
    AGE,
    AGE_CLASSES,
    CODES,
    IDS,
    PERSONAL,
    PUBLIC,
    WORKER,
    WORKPLACE,
    known_codes,
    names_one,
    near_ones,
    speaks_of,
)
from sfumato.starting.proposal import Attribute, Measure, Proposal

DRAFTED = 20
"""A longer draft is no help: nobody compares it by eye."""
_MOST_LABELLED = 60
"""More labels than these are no help in a line."""
RARE = 10
"""Codes of fewer rows are in no draft: that they occur may say something about somebody."""


REPLICATES = 10
"""As many numbered columns beside a weight are taken for its replicates."""


def attributes_of(proposal: Proposal) -> tuple[Attribute, ...]:
    """Every column that may classify a table, with codes where there are any that may be used."""
    wished, taken = proposal.wishes.public or (), {*proposal.keys.values(), *proposal.employees}
    taken |= {*replicates_of(proposal)[1], *larger_units(proposal)}
    found: dict[str, Attribute] = {}
    names = {column.casefold() for column in taken}
    for holder, table in proposal.tables.items():
        for column in table.columns.values():
            if column.name in taken or (column.name not in wished and not _classifies(column)):
                continue
            name = _name(column.name, names)
            if column.name in found or name in found:
                continue  # of two tables with the same column the first is taken
            names.add(name.casefold())
            found[name] = _attribute(proposal, holder, table, column, name)
    unknown = [name for name in wished if name not in {one.column for one in found.values()}]
    known = {*found, *(one.column for one in found.values()), *_periods(proposal)}
    unknown += [name for name in proposal.wishes.codelists if name not in known]
    if unknown:
        raise UsageError(
            f"attribute '{unknown[0]}'",
            expected=f"one of {', '.join(found)}",
            found=f"'{unknown[0]}'",
            do=near_ones(unknown[0], {*found, *(one.column for one in found.values())}),
        )
    return tuple(found.values())


def _periods(proposal: Proposal) -> tuple[str, ...]:
    return tuple(filter(None, [proposal.keys.get("period")]))


def _classifies(column: Column) -> bool:
    if speaks_of(column.name, AGE) and column.is_number:
        return True
    is_count = column.is_number and column.different > 30 and not speaks_of(column.name, CODES)
    return column.is_code and not is_count


def _attribute(proposal: Proposal, holder: str, table: Looked, column: Column, name: str) -> Attribute:
    of_units = proposal.kind in ("jobs", "register", "panel")
    at_workplaces = holder == "workplaces" or proposal.kind in ("register", "businesses")
    joined = proposal.kind == "jobs" and "workplaces" not in proposal.tables
    may = at_workplaces or (joined and table.depends(column.name, proposal.keys["workplace"]))
    public = column.name in (proposal.wishes.public or ()) or name in (proposal.wishes.public or ())
    if public and not may:
        raise UsageError(
            f"--public {column.name}",
            expected="attributes of establishments or businesses, each with one value",
            found="a column of workers or jobs" if of_units else "a column of people",
            do="leave it out: it is confidential",
        )
    seen = table.codes(column.name) if column.different <= MOST_CODES else []
    hidden = not public and (proposal.kind == "register" or holder == "workplaces")  # no table has these by itself
    known = None if hidden else known_codes(column.name, seen)
    if known and known[0].keys() <= column.values.keys():  # 1 may be women: the file knows better
        known = {code: column.values[code] for code in known[0]}, known[1]
    aged = not hidden and speaks_of(column.name, AGE) and column.is_number and column.different > len(AGE_CLASSES)
    listed = proposal.wishes.codelists.get(name) or proposal.wishes.codelists.get(column.name) or ""
    listed = "" if hidden else listed
    reads = public and (proposal.kind in ("register", "businesses") or not joined)
    usable = bool(listed or known or aged)
    hollow, follows = column.filled < column.rows, public or proposal.keyed
    names_public = speaks_of(column.told, PUBLIC) or _is_industry(seen)
    return Attribute(
        name=name,
        column=column.name,
        holder=holder,
        public=public,
        may_be_public=may and names_public and not speaks_of(column.told, PERSONAL),
        size=len(AGE_CLASSES) if aged else len(known[0]) if known else column.different,
        codelist=listed,
        level=_level(column.name, listed, seen) if listed else None,
        codes=known[0] if known and not listed and not aged else None,
        why=known[1] if known and not listed else "",
        classes=AGE_CLASSES if aged and not listed else None,
        read_off=reads and not usable,
        draft=table.codes(column.name, RARE) if not (usable or column.values) and column.different <= DRAFTED else (),
        labelled=column.values if not usable and 0 < len(column.values) <= _MOST_LABELLED else None,
        empty=hollow and follows,
        undecided=hollow and not follows,
    )


def _level(column: str, listed: str, seen: Sequence[str]) -> int | None:
    """The level of a codelist that the codes of a column have, the uppermost of them; None where it has one only."""
    codes = CodelistFile.model_validate({"file": listed}).read(Path())
    if lacking := set(seen) - {*codes.codes}:
        spelt = all(re.sub(r"[.,]0+$", "", code) in codes.codes for code in lacking)
        raise UsageError(
            f"codelist {listed}",
            expected=f"all codes of '{column}'",
            found=f"{len(lacking):,} of the {len(seen):,} in the column are none of its {len(codes.codes):,} codes",
            do="save the column without decimals: it has 1.0 for 1" if spelt else "name the list that the column is by",
        )
    levels = dict(zip(codes.codes, codes.levels or (), strict=codes.levels is not None))
    found = {levels[code] for code in seen if code in levels}
    return min(found) if found and len(set(levels.values())) > 1 else None


def _is_industry(seen: Sequence[str]) -> bool:
    """Whether codes look like those of NACE and its kin: 01.11, 46.9, C10.1."""
    return any("." in code for code in seen) and all(
        re.fullmatch(r"[A-U]?\d{2}(\.\d{1,2}){0,2}", code) for code in seen
    )


def measures_of(proposal: Proposal) -> tuple[Measure, ...]:
    """Every column of numbers that is nothing else."""
    taken = {*proposal.keys.values(), *(one.column for one in proposal.attributes), *replicates_of(proposal)[1]}
    taken |= {*larger_units(proposal)}
    names = {column.casefold() for column in taken} | {one.name.casefold() for one in proposal.attributes}
    found = []
    for column in proposal.tables["records"].columns.values():
        is_id = column.is_key and column.whole == column.numbers and speaks_of(column.name, IDS)
        if column.name in taken or not (column.is_number or column.is_nearly_number) or is_id:
            continue
        name = _name(column.name, names)
        names.add(name.casefold())
        why = ""
        if column.is_nearly_number:
            why = column.unreadable
        elif column.decimals is None:
            why = "has more than three decimals: round it to whole numbers of a smallest unit"
        elif column.filled < column.rows:
            why = "is empty in some rows: fill them in, or add empty = 0 to it where that is meant"
        factor = (1, 100, 100, 1000)[column.decimals or 0]
        negative = (column.least or 0) < 0
        found.append(Measure(name=name, column=column.name, negative=negative, factor=factor, why_not=why))
    return tuple(found)


def larger_units(proposal: Proposal) -> tuple[str, ...]:
    """Columns of records that name other units than a record is of, such as the enterprise of a business."""
    if "records" not in proposal.tables:
        return ()
    columns = proposal.tables["records"].columns.values()
    named = {*WORKER, *WORKPLACE}
    taken = proposal.keys.values()
    return tuple(one.name for one in columns if one.name not in taken and one.may_name and names_one(one.name, named))


def replicates_of(proposal: Proposal) -> tuple[str, tuple[str, ...]]:
    """The columns of replicate weights of a survey with weights, and a pattern for them: many that are numbered."""
    if "weight" not in proposal.keys:
        return "", ()
    numbered: dict[str, list[str]] = {}
    for name, column in proposal.tables["records"].columns.items():
        if column.is_number and re.search(r"\d$", name):
            numbered.setdefault(re.sub(r"\d+$", "*", name), []).append(name)
    pattern, names = max(numbered.items(), key=lambda found: len(found[1]), default=("", []))
    return (pattern, tuple(names)) if len(names) >= REPLICATES else ("", ())


def _name(column: str, taken: set[str]) -> str:
    """A name for a column that a release file may use: its own if it can be."""
    name = column
    if not re.fullmatch(r"[^\W_][\w -]*", column):
        name = re.sub(r"\W+", "_", column).strip("_").lower() or "column"
    while name.casefold() in taken or name in PUBLISHED_COLUMNS:
        name = f"{name}_code"
    return name
