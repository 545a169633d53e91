"""What a plan says: the epsilon of every table, what is to be expected of it, and the release file that uses it."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from sfumato.description import exact
from sfumato.errors import ReleaseError
from sfumato.frame.levels import TOTAL, at_level, each_combination
from sfumato.statistics.jobs.tune import in_toml
from sfumato.statistics.table import BUYS, name_at_levels, title_at_levels
from sfumato.statistics.wish import Wish


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """One table of a plan; errors are in jobs, or shares of the mean cell, as its wish is."""

    name: str
    wish: Wish | None
    cells: int
    """Those with an establishment, where a register tells."""
    epsilon: Fraction
    """0 where it is not measured."""
    alone: float | None
    """The error before tables agree; None where it is not measured."""
    agreed: float
    sum_of: str = ""
    """Of a table that is not measured: a measured one whose cells add up to its own."""
    scale: Fraction = Fraction(0)
    """For which epsilon the scale of its noise is bought, on top; 0 where it is not, or the table is not measured."""

    @property
    def normalised(self) -> float | None:
        """The error over the wish: 1 and less is what was wished for."""
        return None if self.wish is None else self.agreed / self.wish.limit


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Which tables of a release are measured, with which epsilon, and what is to be expected of it."""

    tables: tuple[Allotment, ...]
    total: Fraction
    """What all tables cost the budget."""
    budget: Fraction
    others: Mapping[str, float]
    """The worst error over its wish if the same total were split otherwise."""
    register: bool
    """Whether establishments are known; otherwise all cells of a table are taken for alike."""
    workers: float

    @property
    def worst(self) -> float:
        """The largest error over its wish."""
        return max(one.normalised for one in self.tables if one.normalised is not None)


# The release file with what was found in it.

_HEADING = re.compile(r"(?m)^(?=[ \t]*\[\[?[ \t]*(?!table[ \t]*\.)[\w\"'-]+)")
_NAME = re.compile(r"""(?m)^([ \t]*name[ \t]*=[ \t]*)(?:"[^"]*"|'[^']*')""")
_TITLE = re.compile(r"""(?m)^([ \t]*title[ \t]*=[ \t]*)(?:"[^"]*"|'[^']*')""")
_BY = re.compile(r"""(?m)^([ \t]*by[ \t]*=[ \t]*)(?:\[[^\]]*\]|"[^"]*"|'[^']*')""")
_LEVELS = re.compile(r"(?m)^[ \t]*levels[ \t]*=[ \t]*\{[^}]*\}[^\n]*\n?")
_VALUE = r"""("[^"]*"|'[^']*'|\{[^}]*\}|[\d.+_eE-]+)"""
_EPSILON = re.compile(rf"(?<![\w-])(epsilon[ \t]*=[ \t]*){_VALUE}")
_SCALE = re.compile(rf"({BUYS}[ \t]*=[ \t]*){_VALUE}")
_RECONCILE = re.compile(r"(?m)^([ \t]*reconcile[ \t]*=[ \t]*)\w+")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def rewritten(text: str, found: Allocation) -> str:
    """The text of a release file with the epsilons of a plan: comments stay, tables not measured become comments.

    A table with `levels` gets an epsilon for each, or becomes a table for each that is measured. The text is read
    again, and refused where it does not say what the plan says.
    """
    allotted = {one.name: one for one in found.tables}
    written = "".join(_rewritten(section, allotted) for section in _HEADING.split(text))
    said = {name: epsilon for table in _tables(written) for name, epsilon in _epsilons(table)}
    meant = {name for table in _tables(text) for name, _ in _epsilons(table) if table.get("levels")}
    meant |= {one.name for one in found.tables if one.wish is not None}
    scales = {name: epsilon for table in _tables(written) for name, epsilon in _epsilons(table, BUYS)}
    if any(
        (said.get(name, Fraction(0)), scales.get(name, Fraction(0))) != (allotted[name].epsilon, allotted[name].scale)
        for name in meant & allotted.keys()
    ):
        raise ReleaseError(
            "release file",
            expected="tables with `name` and `epsilon`, and `by` and `levels` beside them, written in the usual way",
            found="another way, which was not understood",
            do="write the lines that are shown into it yourself",
        )
    return written


def _tables(text: str) -> list[dict[str, Any]]:
    """The sections of tables of a release file that say how they are protected."""
    content = tomllib.loads(text, parse_float=Decimal)
    return [table for table in content.get("table", ()) if "epsilon" in table.get("protect", {})]


def _levels(table: Mapping[str, Any]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The dimensions of each combination of levels of a section, published and as they are written, by their words."""
    by = [table["by"]] if isinstance(table["by"], str) else table["by"]
    levels = {name: [str(level) for level in some] for name, some in table["levels"].items()}
    options = [[None if one == TOTAL else at_level(name, one) for one in levels.get(name, [name])] for name in by]
    written = (tuple(name for name in names if name is not None) for names in product(*options))
    pairs = zip(each_combination(by, levels).items(), filter(None, written), strict=True)
    return {words: (published, names) for (words, published), names in pairs}


def _epsilons(table: Mapping[str, Any], key: str = "epsilon") -> list[tuple[str, Fraction]]:
    """What each table spends that a section stands for, on its values or on their scale."""
    epsilon = table["protect"].get(key, 0)
    if not table.get("levels"):
        return [] if isinstance(epsilon, dict) else [(table["name"], exact(epsilon))]
    combined = _levels(table)
    each = epsilon if isinstance(epsilon, dict) else dict.fromkeys(combined, exact(epsilon) / len(combined))
    return [(name_at_levels(table["name"], words), exact(each[words])) for words in combined if words in each]


def _rewritten(section: str, allotted: Mapping[str, Allotment]) -> str:
    heading = section.strip().split("\n", 1)[0].strip()
    if heading.startswith("[release]"):
        changed, times = _RECONCILE.subn(r"\1true", section)
        return changed if times else section.replace("[release]", "[release]\nreconcile = true", 1)
    table = next(iter(_tables(section)), None) if heading.startswith("[[table]]") else None
    if table is None:
        return section
    if table.get("levels"):
        return _each_level(section, table, allotted)
    one = allotted.get(table["name"])
    if one is None or one.wish is None:
        return section
    if one.epsilon:
        return _EPSILON.sub(rf"\g<1>{in_toml(one.epsilon)}", section, count=1)
    return f"{_not_measured(one, 'it')}{_commented(section)}"


def _each_level(section: str, table: Mapping[str, Any], allotted: Mapping[str, Allotment]) -> str:
    """A section of several levels: with an epsilon for each, or as a section for each that is measured."""
    combined = _levels(table)
    known = {words: allotted.get(name_at_levels(table["name"], words)) for words in combined}
    planned = {words: one for words, one in known.items() if one is not None}
    if len(planned) < len(combined) or all(one.wish is None for one in planned.values()):
        return section
    left_out = [one for one in planned.values() if not one.epsilon]
    if len(left_out) == len(planned):
        return f"{_not_measured(left_out[0], 'each')}{_commented(section)}"
    if not left_out:
        each = ", ".join(f"{_key(words)} = {in_toml(one.epsilon)}" for words, one in planned.items())
        return _EPSILON.sub(lambda found: f"{found[1]}{{ {each} }}", section, count=1)
    written = [_not_measured(one, one.name) for one in left_out]
    for words, (published, names) in combined.items():
        if planned[words].epsilon:
            listed = ", ".join(map(_quoted, names))
            made = _LEVELS.sub("", section, count=1)
            for pattern, value in (
                (_NAME, _quoted(name_at_levels(table["name"], words))),
                (_TITLE, _quoted(title_at_levels(str(table.get("title", "")), published))),
                (_BY, f"[{listed}]"),
                (_EPSILON, in_toml(planned[words].epsilon)),
                (_SCALE, in_toml(planned[words].scale)),
            ):
                made = pattern.sub(partial(_replaced, value=value), made, count=1)
            written.append(f"{made.rstrip()}\n\n")
    return "".join(written)


def _replaced(found: re.Match[str], *, value: str) -> str:
    return f"{found[1]}{value}"


def _not_measured(one: Allotment, what: str) -> str:
    return f"# Not measured: {what} is what {one.sum_of or 'other tables'} adds up to.\n"


def _commented(section: str) -> str:
    return "".join(f"# {line}" if line.strip() else line for line in section.splitlines(keepends=True))


def _key(words: str) -> str:
    return words if _BARE.fullmatch(words) else _quoted(words)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
