"""What is withheld of all tables of true numbers together, with the proof that what is shown does not tell it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from time import monotonic
from types import MappingProxyType
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.exact.pattern import Costs, withhold
from sfumato.exact.programs import NEAR, Extremes, Window
from sfumato.exact.proof import Proof, prove
from sfumato.exact.rules import Contributions, Protection, Rules
from sfumato.keys import Secret
from sfumato.method import SUPPRESSED
from sfumato.statistic import Busy
from sfumato.statistics.exact.contributions import ExactCells
from sfumato.statistics.exact.linked import Linked, LinkedTable, linked

_BY_VALUE = Costs(cell=0.01, value=1.0)
_BY_CELLS = Costs(cell=1.0, value=0.01)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """What is published of some tables, and all that it was decided by: confidential."""

    answers: Mapping[str, Cells]
    linked: Linked
    protection: Protection
    proof: Proof | None = None

    def foreseen(self, batch: "Batch") -> "dict[str, Foreseen]":
        """How much of every table is sensitive and withheld."""
        found = {}
        for name, (_, cells) in batch.items():
            if "status" not in self.answers[name].columns or not len(cells):
                continue  # nothing is withheld
            hidden = is_hidden_in(self.answers[name])
            found[name] = Foreseen(
                cells=int((cells["count"] != 0).sum()),
                sensitive=int(self.linked.of(name, self.protection.sensitive).sum()),
                withheld=int(hidden.sum()),
                value=int(cells["count"][hidden].sum()),
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """What would be withheld of a table: confidential."""

    cells: int
    """Those that are not zero."""
    sensitive: int
    withheld: int
    value: int

    def in_words(self) -> str:
        """The same in a sentence."""
        return (
            f"of {self.cells:,} cells that are not zero {self.sensitive:,} are sensitive and {self.withheld:,} would "
            f"be withheld, with a value of {self.value:,}. Confidential: how many are sensitive is not told."
        )

    def figures(self) -> dict[str, int]:
        """The same for machines."""
        return asdict(self)


Batch = Mapping[str, tuple[Any, ExactCells]]
"""Tables with their true cells."""
Known = Mapping[str, tuple[Any, ExactCells, Cells]]
"""Tables that were published before, each with its true cells and its answer."""


def decide(
    batch: Batch, known: Known, secret: Secret | None, busy: Busy, last: Mapping[str, Cells] = MappingProxyType({})
) -> Decision:
    """What is published of all tables, by the method that they share."""
    module, _, name = next(iter(batch.values()))[0].method.decided_in.partition(":")
    found = getattr(import_module(f"sfumato.statistics.exact.{module}"), name)
    decided: Decision = found(batch, known, secret, busy, last)
    return decided


def link(batch: Batch, known: Known) -> tuple[Linked, Protection]:
    """All tables as one system, and what is sensitive in it."""
    every = {**batch, **{name: (one, cells) for name, (one, cells, _) in known.items()}}
    tables = [LinkedTable.of(name, one.question, cells) for name, (one, cells) in every.items()]
    nested = next(iter(every.values()))[1].nested
    zeros_known = all(one.method.zeros == "published" for one, _ in every.values())
    found = linked(tables, nested, zeros_known=zeros_known)
    return found, protection_over(found, {name: sensitivity(one, cells) for name, (one, cells) in every.items()})


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


def is_hidden_in(answer: Cells) -> Flags:
    """Which cells of an answer are withheld."""
    hidden: Flags = answer["status"] == SUPPRESSED if "status" in answer.columns else np.zeros(len(answer), dtype=bool)
    return hidden


def sensitivity(table: Any, cells: Cells) -> Protection:
    """Which cells of a table are sensitive, by all rules at all levels of unit."""
    method, found = table.method, []
    if not method.has_rules:
        none = np.zeros(len(cells))
        return Protection(
            sensitive=none > 0, reasons=none.astype(np.int64), down=none, up=none, owner=none.astype(np.int64) - 1
        )
    for rules in rules_of(method, count=table.question.measure is None):
        found += [rules.protection(_contributions(cells, level, rules)) for level in range(len(table.question.units))]
    if method.minimum_count > 1 and table.question.measure is not None:
        # Of a total, the number of jobs or records behind it counts.
        of = replace(_contributions(cells, 0, Rules()), units=cells["records"], owner=None)
        found.append(Rules(units=method.minimum_count).protection(of))
    return Protection.joined(found)


def rules_of(method: Any, *, count: bool) -> list[Rules]:
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
    )
    return [first, *(Rules(dominance=pair) for pair in pairs[1:])]


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
    methods = [one.method for one, _ in batch.values()]
    costs = _BY_VALUE if all(one.cost == "value" for one in methods) else _BY_CELLS
    end = monotonic() + min(one.seconds for one in methods)
    pattern = withhold(
        system,
        protection,
        cost=costs.of(system, before=_withheld_last(found, batch, last)),
        start=before if bool(before.any()) else None,
        stop=lambda: monotonic() > end,
        progress=busy,
    )
    busy("proving", 0.0)
    proof = prove(system, pattern.withheld, protection, pieces=pattern.pieces)
    found = replace(found, system=system)
    every = {**batch, **{name: (one, cells) for name, (one, cells, _) in known.items()}}
    proof = replace(proof, pairs=still_open(found, pattern.withheld, protection, proof.pairs, every))
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
    return Decision(answers=answers, linked=found, protection=protection, proof=proof)


def _withheld_last(found: Linked, batch: Batch, last: Mapping[str, Cells]) -> Flags | None:
    """The cells that were withheld in another period: they cost next to nothing, so that patterns stay alike."""
    flags = np.zeros(len(found.system), dtype=bool)
    for name in last.keys() & batch.keys():
        hidden = last[name].positions[is_hidden_in(last[name])]
        at = found.places[name][np.isin(batch[name][1].positions, hidden)]
        flags[at[at >= 0]] = True
    return flags if bool(flags.any()) else None


def still_open(found: Linked, withheld: Flags, protection: Protection, pairs: Integers, every: Batch) -> Integers:
    """The cells that single contributors to others know too well, but for what they know as contributors to the cell.

    Who contributes y to a cell knows that it is not below y, whatever is withheld: the lower bound has to be as far
    away as the rest of the cell, and the upper one as the rules ask for.
    """
    system, left = found.system, []
    far = 1e3 * max(float(np.abs(system.value).max(initial=1.0)), 1.0)  # without totals cells have no upper bound
    down, up = (np.minimum(side, far) for side in system.freedom)
    for cell, reader in pairs:
        own = max((_contribution(found, one, int(cell), int(reader)) for one in every.items()), default=0)
        free = (withheld | system.hidden) & (protection.owner != reader) & (system.lower < system.upper)
        cells = np.flatnonzero(free)
        programs = Extremes(Window.of(system.by_cell, cells, down, up))
        place = int(np.searchsorted(cells, cell))
        higher, lower = (programs.furthest(place, sign)[place] for sign in (1, -1))
        enough = min(protection.down[cell], max(system.value[cell] - own, 0.0))
        if own == 0 or higher < protection.up[cell] - NEAR or -lower < enough - NEAR:
            left.append((cell, reader))
    return np.array(left, dtype=np.int64).reshape(-1, 2)


def _contribution(found: Linked, named: tuple[str, tuple[Any, ExactCells]], cell: int, reader: int) -> int:
    """What one of the two largest contributors has in a cell; 0 where the reader is none of them."""
    name, (one, cells) = named
    return max(
        (
            int(cells[f"{size}_{level}"][at])
            for at in np.flatnonzero(found.places[name] == cell)
            for level in range(len(one.question.units))
            for who, size in (("first", "largest"), ("next", "second"))
            if cells[f"{who}_{level}"][at] == reader
        ),
        default=0,
    )


def _answer(cells: Cells, withheld: Flags) -> Cells:
    """True values but where they are withheld, and nothing of the others."""
    columns = {
        "value": np.where(withheld, 0, cells["count"]),
        "status": np.where(withheld, SUPPRESSED, 0).astype(np.int64),
    }
    if "establishments" in cells.columns:
        columns["establishments"] = cells["establishments"]
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)
