"""What is withheld of all tables of true numbers together, with the proof that what is shown does not tell it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from time import monotonic
from types import MappingProxyType
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.exact.pattern import Costs, withhold
from sfumato.exact.proof import Proof, prove
from sfumato.exact.rules import Contributions, Protection, Reason, Rules
from sfumato.exact.shares import NO_SHARES, Shares
from sfumato.exact.system import System
from sfumato.frame.levels import TOTAL
from sfumato.keys import Secret
from sfumato.method import SUPPRESSED
from sfumato.statistic import Busy
from sfumato.statistics.exact.contributions import ABOUT_PARTS, ExactCells
from sfumato.statistics.exact.differences import differences, with_unshown
from sfumato.statistics.exact.foreseen import Foreseen
from sfumato.statistics.exact.linked import Linked, LinkedTable, linked
from sfumato.statistics.exact.rules import is_hidden_in

_COSTS = {"value": Costs(cell=0.01, value=1.0), "cells": Costs(cell=1.0, value=0.01)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """What is published of some tables, and what is sensitive in them: confidential."""

    answers: Mapping[str, Cells]
    sensitive: Mapping[str, Flags] = field(default_factory=dict)
    """Of tables whose cells may be withheld, which of them are sensitive."""

    @classmethod
    def together(cls, several: "Iterable[Decision]") -> "Decision":
        """Decisions about tables that share no sum as one."""
        answers, sensitive = dict[str, Cells](), dict[str, Flags]()
        for one in several:
            answers |= one.answers
            sensitive |= one.sensitive
        return cls(answers=answers, sensitive=sensitive)

    def foreseen(self, batch: "Batch") -> dict[str, Foreseen]:
        """What becomes of every table."""
        found = dict[str, Foreseen]()
        for name, answer in self.answers.items():
            table, cells = batch[name]
            sensitive = self.sensitive.get(name, np.zeros(len(cells), dtype=bool))
            one = table.method.foreseen(table.question, cells, answer, sensitive)
            if one is not None:
                found[name] = one
        return found


Batch = Mapping[str, tuple[Any, ExactCells]]
"""Tables with their true cells."""
Known = Mapping[str, tuple[Any, ExactCells, Cells]]
"""Tables that were published before, each with its true cells and its answer."""


def part_of(busy: Busy, words: str, at: int, number: int) -> Callable[[float], None]:
    """What tells of the share that is done of one of several parts."""
    return lambda share: busy(words, (at + share) / number)


def decide(
    batch: Batch, known: Known, secret: Secret | None, busy: Busy, last: Mapping[str, Cells] = MappingProxyType({})
) -> Decision:
    """What is published of all tables, by the method that they share."""
    first = next(iter(batch.values()))[0]
    others = [one for one, *_ in known.values() if one.method.name != first.method.name]
    if others:
        raise MethodError(
            f"tables '{first.name}' and '{others[0].name}'",
            expected="true numbers of the same data that are all protected by one method: readers who have both of one "
            "cell learn what either hides",
            found=f"{first.method.name}, and {others[0].method.name} before",
            do="publish all of them by the method that was used first",
        )
    module, _, name = first.method.decided_in.partition(":")
    found = getattr(import_module(f"sfumato.statistics.exact.{module}"), name)
    decided: Decision = found(batch, known, secret, busy, last)
    return decided


def link(batch: Batch, known: Known, *, beyond: bool = True) -> tuple[Linked, Protection]:
    """All tables as one system, with what they tell `beyond` themselves by subtraction, and what is sensitive in it."""
    every = {**batch, **{name: (one, cells) for name, (one, cells, _) in known.items()}}
    refuse_other_levels(every)
    tables = [LinkedTable.of(name, one.question, cells) for name, (one, cells) in every.items()]
    nested = next(iter(every.values()))[1].nested
    zeros_known = all(one.method.zeros == "published" for one, _ in every.values())
    found = linked(tables, nested, zeros_known=zeros_known)
    needs = {name: sensitivity(one, cells) for name, (one, cells) in every.items()}
    if beyond:
        more = {one.name: one for one in differences(every)}
        asked = {name: (one.question, cells) for name, (one, cells) in every.items()}
        system, located = with_unshown(found.system, found.places, asked, more, zeros_known=zeros_known)
        found = Linked(system=system, places=located)
        for name, one in more.items():
            needs[name] = Protection.joined([sensitivity(every[own][0], one.cells) for own in (one.whole, one.part)])
    told = {name: (one.question.of_workplaces, one.question.measure, cells) for name, (one, cells) in every.items()}
    if beyond:  # these tell establishments only where both tables do
        told |= {name: (True, every[one.part][0].question.measure, one.cells) for name, one in more.items()}
    system = found.system.with_bounds(lower=_least_jobs(found, told))
    if zeros_known:
        system = system.with_bounds(lower=_least_units(found, told))
    found = replace(found, system=system)
    return found, protection_over(found, needs)


def refuse_other_levels(every: Batch) -> None:
    """An enterprise that one table calls a unit knows the cells of its establishments in all tables."""
    levels = {one.question.units: one.name for one, _ in every.values()}
    if len(levels) > 1:
        raise MethodError(
            f"tables {', '.join(repr(name) for name in levels.values())}",
            expected="the same `levels` in all tables, and in earlier releases: who owns several units knows what "
            "each of them has, in every table",
            found="others",
            do="write the same `levels` in every table",
        )


def _least_jobs(found: Linked, tables: Mapping[str, tuple[bool, str | None, Cells]]) -> Floats:
    """What readers know who take every establishment that is told of a cell of workplaces to have a job in it.

    Of every table whether its filters are public, what it adds up, and its cells.
    """
    least = np.full(len(found.system), -np.inf)
    for name, (of_workplaces, measure, cells) in tables.items():
        if "establishments" not in cells.columns or measure is not None or not of_workplaces:
            continue
        everyone = np.ones(len(cells), dtype=bool)
        for one in (one for one in cells.dimensions if not one.public):
            everyone &= cells.codes(one.name) == (one.codes.index(TOTAL) if TOTAL in one.codes else -1)
        at = found.places[name]
        some = everyone & (at >= 0)
        told = np.minimum(cells["establishments"] * cells["parts"], cells["exact"])
        least[at[some]] = np.maximum(least[at[some]], told[some])
    return least


def _least_units(found: Linked, tables: Mapping[str, tuple[bool, str | None, Cells]]) -> Floats:
    """What readers know who take every weighted value that is no zero to be one at least, as it is without weights.

    Where a value of a measure is less, by weights below 1, they know of all of them that they are above zero.
    """
    least = np.full(len(found.system), -np.inf)
    for measure in {measure for _, measure, _ in tables.values()}:
        some = {name: cells for name, (_, own, cells) in tables.items() if own == measure}
        if any(bool(np.any((one["exact"] != 0) & (one["exact"] < one[ABOUT_PARTS]))) for one in some.values()):
            continue
        for name, cells in some.items():
            at = found.places[name]
            least[at[at >= 0]] = cells[ABOUT_PARTS][at >= 0]
    return least


def with_differences_of(batch: Batch) -> Batch:
    """The same tables, and what each wider one has beyond a filtered one."""
    return {**batch, **{one.name: (batch[one.whole][0], one.cells) for one in differences(batch)}}


def protection_over(found: Linked, tables: Mapping[str, Protection]) -> Protection:
    """The protection of all tables over the cells of their system."""
    inside = {name: at >= 0 for name, at in found.places.items()}
    placed = replace(found.system, places={name: at[inside[name]] for name, at in found.places.items()})
    return Protection.over(placed, {name: _only(one, inside[name]) for name, one in tables.items()})


def _only(of: Protection, chosen: Flags) -> Protection:
    return Protection(
        sensitive=of.sensitive[chosen],
        reasons=of.reasons[chosen],
        down=of.down[chosen],
        up=of.up[chosen],
        owner=of.owner[chosen],
    )


def sensitivity(table: Any, cells: Cells) -> Protection:
    """Which cells of a table are sensitive, by all rules at all levels of unit."""
    if found := [protection for _, protection in _judged(table, cells)]:
        # Who is alone at the coarsest level knows every cell that one of its parts is alone in.
        owner = np.maximum.reduce([cells[f"owner_{level}"] for level in range(len(table.question.units))])
        return replace(Protection.joined(found), owner=owner)
    none = np.zeros(len(cells))
    return Protection(
        sensitive=none > 0, reasons=none.astype(np.int64), down=none, up=none, owner=none.astype(np.int64) - 1
    )


def reasons_of(table: Any, cells: Cells) -> list[tuple[str, Flags]]:
    """Why cells are sensitive, in words, with the level of unit where there are several; and which cells are."""
    found: dict[str, Flags] = {}
    several = len(table.question.units) > 1
    for unit, protection in _judged(table, cells):
        for reason in Reason:
            flags = protection.reasons & reason > 0
            if unit is None and reason is Reason.UNITS:
                reason = Reason.COUNT  # noqa: PLW2901 (units are records there)
            words = f"{reason.words} ({unit})" if several and unit and reason.is_about_units else reason.words
            found[words] = found[words] | flags if words in found else flags
    return list(found.items())


def _judged(table: Any, cells: Cells) -> Iterator[tuple[str | None, Protection]]:
    """What every rule says of the cells of a table, at every level of unit; None stands for records."""
    method = table.method
    if not method.has_rules:
        return
    # Of a total, and of records with weights, the number of jobs or records behind it counts.
    count = table.question.measure is None and np.array_equal(cells["exact"], cells["records"])
    parts = int(cells[ABOUT_PARTS][0]) if len(cells) else 1
    for rules in rules_of(method, count=count, parts=parts):
        for level, unit in enumerate(table.question.units):
            yield unit, rules.protection(_contributions(cells, level, rules))
    if method.minimum_count > 1 and not count:
        of = replace(_contributions(cells, 0, Rules()), units=cells["records"], owner=None)
        yield None, Rules(units=method.minimum_count, least=float(parts)).protection(of)


def rules_of(method: Any, *, count: bool, parts: int = 1) -> list[Rules]:
    """The rules of a method; several pairs of dominance are several rules."""
    pairs = [(int(n), float(k)) for n, k in method.dominance]
    first = Rules(
        units=method.minimum_units or None,
        count=float(method.minimum_count) if count and method.minimum_count > 1 else None,
        dominance=pairs[0] if pairs else None,
        percent=float(method.p) or None,
        coalition=method.coalition,
        prior=(float(method.pq[0]), float(method.pq[1])) if method.pq else None,
        zeros=method.zeros == "protected",
        full=method.full == "protected",
        least=float(parts),
    )
    return [first, *(Rules(dominance=pair, least=float(parts)) for pair in pairs[1:])]


def _contributions(cells: Cells, level: int, rules: Rules) -> Contributions:
    return Contributions(
        value=cells["exact"].astype(np.float64),
        units=cells[f"units_{level}"],
        largest=cells[f"largest_{level}"].astype(np.float64),
        second=cells[f"second_{level}"].astype(np.float64),
        top=cells[f"top_{level}"].astype(np.float64) if rules.top else None,
        waived=cells[f"waived_{level}"] == 1,
        full=_full(cells) if rules.full else None,
        owner=cells[f"owner_{level}"],
    )


def _full(cells: Cells) -> Flags:
    """Cells that hold all that there is over one of the dimensions that not everybody knows of units."""
    found = np.zeros(len(cells), dtype=bool)
    whole = np.zeros(cells.domain, dtype=np.int64)
    whole[cells.positions] = cells["exact"]
    shaped = whole.reshape([len(one) for one in cells.dimensions])
    for place, dimension in enumerate(cells.dimensions):
        last = len(dimension) - (dimension.codes[-1] == "total")
        inner = np.take(shaped, range(last), axis=place)
        full = (shaped == inner.sum(axis=place, keepdims=True)) & (shaped > 0)
        full[(slice(None),) * place + (slice(last, None),)] = False
        found |= full.reshape(-1)[cells.positions]
    return found


def suppressed(
    batch: Batch,
    known: Known,
    secret: Secret | None,  # noqa: ARG001 (there is no chance)
    busy: Busy,
    last: Mapping[str, Cells],
) -> Decision:
    """Withhold what is sensitive, and what tells it; what was published before stays as it is."""
    found, protection = link(batch, known)
    system = found.system
    public, before = np.zeros(len(system), dtype=bool), np.zeros(len(system), dtype=bool)
    for name, (_, _, answer) in known.items():
        at = found.places[name]
        shown = ~is_hidden_in(answer)
        public[at[(at >= 0) & shown]] = True
        before[at[(at >= 0) & ~shown]] = True
    before &= ~public  # what any table shows is known
    system = system.with_bounds(
        lower=np.where(public, system.value, -np.inf), upper=np.where(public, system.value, np.inf)
    )
    protection = replace(protection, sensitive=protection.sensitive & ~public)
    end = monotonic() + min(one.method.seconds for one, _ in batch.values())
    every = with_differences_of({**batch, **{name: (one, cells) for name, (one, cells, _) in known.items()}})
    shares = shares_in(found, every, protection.sensitive)
    cost = _costs(found, batch, _withheld_last(found, batch, last))
    pattern = withhold(
        system,
        protection,
        cost=cost,
        start=before if bool(before.any()) else None,
        shares=shares,
        stop=lambda: monotonic() > end,
        progress=busy,
    )
    if len(pattern.pairs) and monotonic() > end:  # no time to improve it is no reason to leave it open
        pattern = withhold(system, protection, cost=cost, start=pattern.withheld, shares=shares, progress=busy)
    proof = prove_with_unshown(
        system,
        pattern.withheld,
        protection,
        pieces=pattern.pieces,
        shares=shares,
        progress=lambda share: busy("proving", share),
    )
    found = replace(found, system=system)
    if not proof.holds:
        raise MethodError(
            "suppression",
            expected="cells to withhold beside the sensitive ones, so that none can be worked out",
            found=f"{int(proof.unprotected.sum())} sensitive cells that the other numbers tell whatever is withheld"
            + (f", and {len(proof.pairs)} that single contributors can work out" if len(proof.pairs) else ""),
            do="publish fewer or coarser tables; or, if an earlier release tells too much already, leave out what is "
            "linked to it",
        )
    answers = {name: _answer(cells, found.of(name, pattern.withheld)) for name, (_, cells) in batch.items()}
    return Decision(answers=answers, sensitive={name: found.of(name, protection.sensitive) for name in batch})


def prove_with_unshown(system: System, withheld: Flags, protection: Protection, **options: Any) -> Proof:
    """The proof of withheld cells and of those that no table shows, which may be sensitive as well."""
    nothing = np.zeros(len(system), dtype=bool)
    return prove(replace(system, hidden=nothing), withheld | system.hidden, protection, **options)


def _costs(found: Linked, batch: Batch, before: Flags | None) -> Floats:
    """What it costs to withhold every cell: as much as in the table that it costs most in.

    Values are told beside those of the same measure: dollars would make all jobs cost nothing.
    """
    cost, weights = np.zeros(len(found.system)), np.zeros(len(found.system))
    of_measure: dict[str | None, Flags] = {}
    for name, (one, cells) in batch.items():
        at = found.places[name]
        np.maximum.at(weights, at[at >= 0], one.method.weights(cells)[at >= 0])
        alike = of_measure.setdefault(one.question.measure, np.zeros(len(found.system), dtype=bool))
        alike[at[at >= 0]] = True
    weights = np.where(weights > 0, weights, 1.0)
    for name, (one, _) in batch.items():
        at = found.places[name][found.places[name] >= 0]
        among = of_measure[one.question.measure] if len(of_measure) > 1 else None
        price = _COSTS[one.method.cost].of(found.system, weights=weights, before=before, among=among)
        cost[at] = np.maximum(cost[at], price[at])
    elsewhere = _COSTS["cells"].of(found.system, before=before)
    return np.where(cost > 0, cost, elsewhere)


def _withheld_last(found: Linked, batch: Batch, last: Mapping[str, Cells]) -> Flags | None:
    """The cells that were withheld in another period: they cost next to nothing, so that patterns stay alike."""
    flags = np.zeros(len(found.system), dtype=bool)
    for name in last.keys() & batch.keys():
        hidden = last[name].positions[is_hidden_in(last[name])]
        at = found.places[name][np.isin(batch[name][1].positions, hidden)]
        flags[at[at >= 0]] = True
    return flags if bool(flags.any()) else None


def shares_in(found: Linked, every: Batch, sensitive: Flags) -> Shares:
    """What the two largest contributors at every level have in sensitive cells."""
    parts: list[list[Any]] = []
    for name, (one, cells) in every.items():
        at = found.places[name]
        for level in range(len(one.question.units) if "first_0" in cells.columns else 0):
            for who, size in (("first", "share"), ("next", "other")):
                reader, amount = cells[f"{who}_{level}"], cells[f"{size}_{level}"]
                chosen = np.flatnonzero((at >= 0) & (reader >= 0))
                chosen = chosen[sensitive[at[chosen]]]
                parts.append([at[chosen], reader[chosen], amount[chosen]])
    if not parts:
        return NO_SHARES
    cell, reader, amount = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Shares(cell=cell, reader=reader, amount=amount.astype(np.float64))


def _answer(cells: Cells, withheld: Flags) -> Cells:
    """True values but where they are withheld, and nothing of the others."""
    columns = {
        "value": np.where(withheld, 0, cells["count"]),
        "status": np.where(withheld, SUPPRESSED, 0).astype(np.int64),
    }
    if "establishments" in cells.columns:
        columns["establishments"] = cells["establishments"]
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)
